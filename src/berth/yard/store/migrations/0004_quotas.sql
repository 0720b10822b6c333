-- One row a request to raise a quota (Service Quotas). What an account may hold in a Region is what the fleet file says,
-- or the highest `desired` of its APPROVED requests where that is more. `kind` and `name` say which quota, as the fleet
-- file names it (`name` '' where there is one of the kind); `number` is the order of asking and the key of pages.
CREATE TABLE quota_requests (
    number       INTEGER PRIMARY KEY,
    request_id   TEXT NOT NULL UNIQUE,
    arn          TEXT NOT NULL UNIQUE,
    account_id   TEXT NOT NULL,
    region       TEXT NOT NULL,
    kind         TEXT NOT NULL,
    name         TEXT NOT NULL,
    service_code TEXT NOT NULL,
    quota_code   TEXT NOT NULL,
    desired      INTEGER NOT NULL CHECK (desired >= 0),
    status       TEXT NOT NULL,
    created_us   INTEGER NOT NULL,
    updated_us   INTEGER NOT NULL
) STRICT;
-- Covers what every search, purchase and launch asks: what the account was granted.
CREATE INDEX quota_requests_granted ON quota_requests (account_id, region, kind, name, desired, updated_us)
    WHERE status = 'APPROVED';
CREATE INDEX quota_requests_of ON quota_requests (account_id, region);
-- One open request a quota, as on AWS.
CREATE UNIQUE INDEX quota_requests_open ON quota_requests (account_id, region, kind, name) WHERE status = 'PENDING';
