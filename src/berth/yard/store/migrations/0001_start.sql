-- Instants are integer microseconds since 1970-01-01T00:00Z (suffix _us); money is millionths (suffix _micros).
-- Zones are zone ids everywhere; zone names exist at the wire only.

CREATE TABLE meta (
    key   TEXT PRIMARY KEY,
    value TEXT NOT NULL
) STRICT, WITHOUT ROWID;

CREATE TABLE accounts (
    account_id TEXT PRIMARY KEY,
    name       TEXT NOT NULL UNIQUE,
    created_us INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- In the order in which they were made: a clock that stands still gives several the same instant.
CREATE TABLE access_keys (
    key_number    INTEGER PRIMARY KEY,
    access_key_id TEXT NOT NULL UNIQUE,
    account_id    TEXT NOT NULL REFERENCES accounts,
    secret        TEXT NOT NULL,
    created_us    INTEGER NOT NULL
) STRICT;

-- What will happen, and when. A timer's row goes in the transaction that plays it.
CREATE TABLE timers (
    timer_id INTEGER PRIMARY KEY,
    due_us   INTEGER NOT NULL,
    rank     INTEGER NOT NULL,
    kind     TEXT NOT NULL,
    subject  TEXT NOT NULL
) STRICT;
CREATE INDEX timers_by_due ON timers (due_us, rank, timer_id);
CREATE INDEX timers_by_subject ON timers (subject, kind);

-- What happened: one row a move or notable fact, append-only.
CREATE TABLE events (
    event_id   INTEGER PRIMARY KEY,
    at_us      INTEGER NOT NULL,
    account_id TEXT,
    region     TEXT,
    subject    TEXT NOT NULL,
    kind       TEXT NOT NULL,
    from_state TEXT,
    to_state   TEXT,
    reason     TEXT NOT NULL
) STRICT;
CREATE INDEX events_by_subject ON events (subject, event_id);

-- The calendar's rows: `count` hosts of `pool` are promised over [start_us, end_us); no end = open.
CREATE TABLE bookings (
    booking_id INTEGER PRIMARY KEY,
    pool       TEXT NOT NULL,
    face       TEXT,
    holder     TEXT NOT NULL,
    count      INTEGER NOT NULL CHECK (count > 0),
    start_us   INTEGER NOT NULL,
    end_us     INTEGER CHECK (end_us IS NULL OR end_us > start_us)
) STRICT;
CREATE INDEX bookings_by_end ON bookings (end_us);
CREATE INDEX bookings_by_holder ON bookings (holder);

CREATE TABLE ledger (
    entry_id      INTEGER PRIMARY KEY,
    at_us         INTEGER NOT NULL,
    account_id    TEXT NOT NULL,
    region        TEXT NOT NULL,
    subject       TEXT NOT NULL,
    kind          TEXT NOT NULL,
    amount_micros INTEGER NOT NULL,
    currency      TEXT NOT NULL,
    description   TEXT NOT NULL
) STRICT;
CREATE INDEX ledger_by_account ON ledger (account_id, entry_id);

-- Calls that the yard accepted (signature good, account known). `wrote` rows commit with what they wrote.
CREATE TABLE calls (
    call_id       INTEGER PRIMARY KEY,
    at_us         INTEGER NOT NULL,
    real_us       INTEGER NOT NULL,
    account_id    TEXT NOT NULL,
    region        TEXT NOT NULL,
    service       TEXT NOT NULL,
    operation     TEXT NOT NULL,
    request_id    TEXT NOT NULL,
    invocation_id TEXT NOT NULL,
    wrote         INTEGER NOT NULL,
    outcome       TEXT NOT NULL
) STRICT;
CREATE INDEX calls_by_operation ON calls (operation, call_id);
CREATE INDEX calls_read ON calls (call_id) WHERE wrote = 0;

CREATE TABLE training_plans (
    arn            TEXT PRIMARY KEY,
    account_id     TEXT NOT NULL,
    region         TEXT NOT NULL,
    name           TEXT NOT NULL,
    status         TEXT NOT NULL,
    status_message TEXT NOT NULL,
    targets        TEXT NOT NULL,
    instance_type  TEXT NOT NULL,
    count          INTEGER NOT NULL,
    pool           TEXT NOT NULL,
    zone_id        TEXT NOT NULL,
    start_us       INTEGER NOT NULL,
    end_us         INTEGER NOT NULL,
    fee_micros     INTEGER NOT NULL,
    currency       TEXT NOT NULL,
    offering_id    TEXT NOT NULL,
    created_us     INTEGER NOT NULL,
    reclaimed      INTEGER NOT NULL DEFAULT 0,
    UNIQUE (account_id, region, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX plans_by_start ON training_plans (account_id, region, start_us, name);
CREATE INDEX plans_by_status ON training_plans (account_id, region, status, name);
-- Covers the question that every purchase asks: how much of a type an account holds.
CREATE INDEX plans_held ON training_plans (account_id, region, status, instance_type, count);

CREATE TABLE models (
    arn         TEXT PRIMARY KEY,
    account_id  TEXT NOT NULL,
    region      TEXT NOT NULL,
    name        TEXT NOT NULL,
    created_us  INTEGER NOT NULL,
    request     TEXT NOT NULL,
    UNIQUE (account_id, region, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX models_by_creation ON models (account_id, region, created_us, name);

CREATE TABLE endpoint_configs (
    arn         TEXT PRIMARY KEY,
    account_id  TEXT NOT NULL,
    region      TEXT NOT NULL,
    name        TEXT NOT NULL,
    created_us  INTEGER NOT NULL,
    request     TEXT NOT NULL,
    UNIQUE (account_id, region, name)
) STRICT, WITHOUT ROWID;
CREATE INDEX configs_by_creation ON endpoint_configs (account_id, region, created_us, name);

-- `config` is the request of the endpoint configuration as it was at creation: a configuration may be deleted
-- while its endpoint runs. `name_folded` makes names unique without regard to case, as on AWS.
CREATE TABLE endpoints (
    arn            TEXT PRIMARY KEY,
    account_id     TEXT NOT NULL,
    region         TEXT NOT NULL,
    name           TEXT NOT NULL,
    name_folded    TEXT NOT NULL,
    config_name    TEXT NOT NULL,
    config         TEXT NOT NULL,
    status         TEXT NOT NULL,
    failure_reason TEXT NOT NULL,
    created_us     INTEGER NOT NULL,
    modified_us    INTEGER NOT NULL,
    UNIQUE (account_id, region, name_folded)
) STRICT, WITHOUT ROWID;
CREATE INDEX endpoints_by_creation ON endpoints (account_id, region, created_us, name);
CREATE INDEX endpoints_by_status ON endpoints (status);

-- One row a production variant of a live endpoint: what it holds of a plan, and the container that stands for it.
CREATE TABLE variants (
    container_key TEXT PRIMARY KEY,
    endpoint_arn  TEXT NOT NULL REFERENCES endpoints ON DELETE CASCADE,
    name          TEXT NOT NULL,
    model_name    TEXT NOT NULL,
    model         TEXT NOT NULL,
    instance_type TEXT NOT NULL,
    count         INTEGER NOT NULL,
    weight        REAL NOT NULL,
    plan_arn      TEXT REFERENCES training_plans,
    state         TEXT NOT NULL,
    deaths        INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;
CREATE INDEX variants_by_endpoint ON variants (endpoint_arn, name);
CREATE INDEX variants_by_plan ON variants (plan_arn) WHERE plan_arn IS NOT NULL;

CREATE TABLE tags (
    arn   TEXT NOT NULL,
    key   TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (arn, key)
) STRICT, WITHOUT ROWID;
