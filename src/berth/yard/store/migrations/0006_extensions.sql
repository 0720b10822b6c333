-- Extensions that were bought of Capacity Blocks and of training plans, one row each, kept for good: AWS names no time
-- after which its histories forget. `arn` is a name of ours (AWS gives an extension none): the subject of its timers,
-- events and booking. `parent_arn` is what is extended and `name` the id or name that AWS knows that by; `number` is the
-- order of buying and the key of pages. A row repeats what the answers show, since a block is forgotten and its history
-- is not.
CREATE TABLE extensions (
    number        INTEGER PRIMARY KEY,
    arn           TEXT NOT NULL UNIQUE,
    kind          TEXT NOT NULL,
    parent_arn    TEXT NOT NULL,
    name          TEXT NOT NULL,
    account_id    TEXT NOT NULL,
    region        TEXT NOT NULL,
    status        TEXT NOT NULL,
    instance_type TEXT NOT NULL,
    count         INTEGER NOT NULL,
    zone_id       TEXT NOT NULL,
    offering_id   TEXT NOT NULL,
    start_us      INTEGER NOT NULL,
    end_us        INTEGER NOT NULL CHECK (end_us > start_us),
    fee_micros    INTEGER NOT NULL,
    currency      TEXT NOT NULL,
    created_us    INTEGER NOT NULL
) STRICT;
CREATE INDEX extensions_of ON extensions (account_id, region, kind);
CREATE INDEX extensions_by_parent ON extensions (parent_arn);
CREATE INDEX extensions_by_name ON extensions (name);
-- One that is not paid yet at a time, as on AWS.
CREATE UNIQUE INDEX extensions_unpaid ON extensions (parent_arn) WHERE status IN ('payment-pending', 'Pending');
