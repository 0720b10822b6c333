-- Instants are microseconds since 1970 (UTC); money is millionths of its currency; JSON is text.
-- `realm` keeps a rehearsal's orders apart from those that were paid: 'aws', or the yard's address.
-- `order_id` is 'REALM ACCOUNT/NEED/SEQUENCE'.

CREATE TABLE plans (
    realm         TEXT   NOT NULL,
    account       TEXT   NOT NULL,
    need          TEXT   NOT NULL,
    remembered_at BIGINT NOT NULL,
    document      TEXT   NOT NULL,
    PRIMARY KEY (realm, account, need)
);

CREATE TABLE orders (
    order_id   TEXT   NOT NULL PRIMARY KEY,
    realm      TEXT   NOT NULL,
    account    TEXT   NOT NULL,
    need       TEXT   NOT NULL,
    sequence   BIGINT NOT NULL,
    state      TEXT   NOT NULL,
    reservation_name  TEXT   NOT NULL,
    offer      TEXT   NOT NULL,
    cap        TEXT,
    context    TEXT   NOT NULL,
    reservation_arn   TEXT,
    seen       TEXT,
    created_at BIGINT NOT NULL,
    changed_at BIGINT NOT NULL,
    UNIQUE (realm, account, need, sequence),
    CHECK (sequence >= 1)
);

CREATE TABLE attempts (
    order_id    TEXT   NOT NULL REFERENCES orders (order_id),
    number      BIGINT NOT NULL,
    intent_id   TEXT   NOT NULL,
    offering_id TEXT   NOT NULL,
    fee_micros  BIGINT NOT NULL,
    currency    TEXT   NOT NULL,
    holder      TEXT   NOT NULL,
    started_at  BIGINT NOT NULL,
    ended_at    BIGINT,
    outcome     TEXT,
    detail      TEXT   NOT NULL,
    PRIMARY KEY (order_id, number)
);

CREATE TABLE looks (
    order_id TEXT   NOT NULL REFERENCES orders (order_id),
    attempt  BIGINT NOT NULL,
    number   BIGINT NOT NULL,
    began_at BIGINT NOT NULL,
    ended_at BIGINT NOT NULL,
    complete BIGINT NOT NULL,
    found    BIGINT NOT NULL,
    PRIMARY KEY (order_id, attempt, number)
);

CREATE TABLE steps (
    order_id   TEXT   NOT NULL REFERENCES orders (order_id),
    kind       TEXT   NOT NULL,
    name       TEXT   NOT NULL,
    state      TEXT   NOT NULL,
    ours       BIGINT NOT NULL,
    detail     TEXT   NOT NULL,
    started_at BIGINT NOT NULL,
    changed_at BIGINT NOT NULL,
    PRIMARY KEY (order_id, kind)
);

-- Append-only: nothing in the program updates or deletes a row of this table.
CREATE TABLE events (
    order_id TEXT   NOT NULL,
    number   BIGINT NOT NULL,
    at       BIGINT NOT NULL,
    kind     TEXT   NOT NULL,
    detail   TEXT   NOT NULL,
    PRIMARY KEY (order_id, number)
);
