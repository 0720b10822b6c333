-- An order of several pieces as a whole, and what its pieces are. `state` says whether somebody is buying: only
-- then do pieces that are not intended yet count against caps. `agreement` holds, as JSON, what was agreed to.

CREATE TABLE wholes (
    order_id   TEXT   NOT NULL PRIMARY KEY,
    realm      TEXT   NOT NULL,
    account    TEXT   NOT NULL,
    need       TEXT   NOT NULL,
    sequence   BIGINT NOT NULL,
    state      TEXT   NOT NULL,
    agreement  TEXT   NOT NULL,
    team       TEXT,
    holder     TEXT   NOT NULL,
    created_at BIGINT NOT NULL,
    changed_at BIGINT NOT NULL,
    UNIQUE (realm, account, need, sequence),
    CHECK (sequence >= 1)
);

CREATE TABLE pieces (
    whole      TEXT   NOT NULL REFERENCES wholes (order_id),
    number     BIGINT NOT NULL,
    order_id   TEXT   NOT NULL UNIQUE,
    account    TEXT   NOT NULL,
    offer      TEXT   NOT NULL,
    fee_micros BIGINT NOT NULL,
    currency   TEXT   NOT NULL,
    instead_of BIGINT,
    PRIMARY KEY (whole, number),
    CHECK (number >= 1)
);
