-- EC2's Capacity Reservations. All of today's are Capacity Blocks (reservation_type capacity-block): then `block_id`
-- names the Capacity Block object, which has the same window and state. `number` is the order of creation and the
-- key of pages. `in_use` are the places taken by instances, those still being cleaned included; whoever launches
-- or cleans changes it in the same transaction (services/ec2/blocks.py), and the check is the last guard against
-- promising a place twice. `reclaimed` is 1 from the moment at which instances are taken back.
CREATE TABLE capacity_reservations (
    number           INTEGER PRIMARY KEY,
    reservation_id   TEXT NOT NULL UNIQUE,
    arn              TEXT NOT NULL UNIQUE,
    reservation_type TEXT NOT NULL,
    block_id         TEXT UNIQUE,
    account_id       TEXT NOT NULL,
    region           TEXT NOT NULL,
    status           TEXT NOT NULL,
    instance_type    TEXT NOT NULL,
    platform         TEXT NOT NULL,
    count            INTEGER NOT NULL CHECK (count > 0),
    in_use           INTEGER NOT NULL DEFAULT 0 CHECK (in_use BETWEEN 0 AND count),
    pool             TEXT NOT NULL,
    zone_id          TEXT NOT NULL,
    start_us         INTEGER NOT NULL,
    end_us           INTEGER NOT NULL,
    fee_micros       INTEGER NOT NULL,
    currency         TEXT NOT NULL,
    offering_id      TEXT NOT NULL,
    created_us       INTEGER NOT NULL,
    reclaimed        INTEGER NOT NULL DEFAULT 0
) STRICT;
-- Each ends with the row's number, so a page in order of creation is read straight from it.
CREATE INDEX reservations_of ON capacity_reservations (account_id, region);
CREATE INDEX reservations_by_status ON capacity_reservations (account_id, region, status);
CREATE INDEX reservations_by_type ON capacity_reservations (account_id, region, instance_type);
CREATE INDEX reservations_by_offering ON capacity_reservations (offering_id);
-- Covers the question that every purchase asks: what the account holds, and when. Its size is what is live.
CREATE INDEX reservations_held
    ON capacity_reservations (account_id, region, end_us, start_us, instance_type, count)
    WHERE status IN ('payment-pending', 'scheduled', 'active');

-- EC2's tags go by resource id; `set_us` is when the value was set.
CREATE TABLE ec2_tags (
    resource_id   TEXT NOT NULL,
    key           TEXT NOT NULL,
    value         TEXT NOT NULL,
    account_id    TEXT NOT NULL,
    region        TEXT NOT NULL,
    resource_type TEXT NOT NULL,
    set_us        INTEGER NOT NULL,
    PRIMARY KEY (resource_id, key)
) STRICT, WITHOUT ROWID;
CREATE INDEX ec2_tags_of ON ec2_tags (account_id, region, resource_id, key);
CREATE INDEX ec2_tags_by_value ON ec2_tags (account_id, region, key, value, resource_id);

-- A number for good for each pool that EC2 sells from: a Capacity Block offering's id has room for 11 bits of it.
CREATE TABLE pool_numbers (
    number INTEGER PRIMARY KEY CHECK (number BETWEEN 0 AND 2047),
    pool   TEXT NOT NULL UNIQUE
) STRICT;

-- Local Zones that an account has opted into.
CREATE TABLE zone_opt_ins (
    account_id TEXT NOT NULL,
    group_name TEXT NOT NULL,
    PRIMARY KEY (account_id, group_name)
) STRICT, WITHOUT ROWID;
