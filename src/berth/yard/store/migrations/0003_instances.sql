-- One row a RunInstances that launched something (EC2 calls it a reservation, `r-`). `scope` is the zone id when the
-- call named a zone or a subnet, else '': a client token counts within it. `request` is a digest of what was asked.
CREATE TABLE launches (
    launch_id    TEXT PRIMARY KEY,
    account_id   TEXT NOT NULL,
    region       TEXT NOT NULL,
    scope        TEXT NOT NULL,
    client_token TEXT NOT NULL,
    request      TEXT NOT NULL,
    created_us   INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE UNIQUE INDEX launches_by_token ON launches (account_id, region, scope, client_token)
    WHERE client_token != '';

-- EC2's instances. `number` is the order of launching and the key of pages. `reservation_id` is the Capacity
-- Reservation whose place it holds, NULL for one that runs on demand: then it holds an open booking of `pool` and is
-- billed at `usd_per_hour`, a decimal; `rate_label` says whose figure that is. `vcpus` NULL = not known. `running_us` and `ending_us` bound what is billed.
-- A row goes an hour after its instance was terminated; its events and ledger entries stay.
CREATE TABLE instances (
    number            INTEGER PRIMARY KEY,
    instance_id       TEXT NOT NULL UNIQUE,
    arn               TEXT NOT NULL UNIQUE,
    launch_id         TEXT NOT NULL REFERENCES launches,
    launch_index      INTEGER NOT NULL,
    account_id        TEXT NOT NULL,
    region            TEXT NOT NULL,
    status            TEXT NOT NULL,
    instance_type     TEXT NOT NULL,
    quota_family      TEXT NOT NULL,
    vcpus             INTEGER,
    pool              TEXT NOT NULL,
    zone_id           TEXT NOT NULL,
    reservation_id    TEXT,
    block_id          TEXT,
    usd_per_hour      TEXT,
    rate_label        TEXT NOT NULL,
    image_id          TEXT NOT NULL,
    platform_details  TEXT NOT NULL,
    usage_operation   TEXT NOT NULL,
    architecture      TEXT NOT NULL,
    vpc_id            TEXT NOT NULL,
    subnet_id         TEXT NOT NULL,
    private_ip        TEXT NOT NULL,
    client_token      TEXT NOT NULL,
    details           TEXT NOT NULL,
    reason_code       TEXT NOT NULL DEFAULT '',
    reason_message    TEXT NOT NULL DEFAULT '',
    transition_reason TEXT NOT NULL DEFAULT '',
    created_us        INTEGER NOT NULL,
    running_us        INTEGER,
    ending_us         INTEGER
) STRICT;
-- Ends with the row's number, so a page in order of launching is read straight from it.
CREATE INDEX instances_of ON instances (account_id, region);
CREATE INDEX instances_by_launch ON instances (launch_id, launch_index);
CREATE INDEX instances_in_reservation ON instances (reservation_id) WHERE reservation_id IS NOT NULL;
-- Covers the question that every on-demand launch asks: how many vCPUs the account runs.
CREATE INDEX instances_on_demand ON instances (account_id, region, quota_family, vcpus, status, reservation_id)
    WHERE reservation_id IS NULL AND status IN ('pending', 'running');
