-- Orders of several pieces. A piece is an order of its own with the whole's sequence and a number (0: no piece);
-- `whole` is the whole's `order_id`. SQLite cannot change what is UNIQUE, so the table is made anew; what refers
-- to it is checked when the transaction ends.

PRAGMA defer_foreign_keys = ON;

CREATE TABLE orders_before AS SELECT * FROM orders;

DROP TABLE orders;

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
    team       TEXT,
    piece      BIGINT NOT NULL DEFAULT 0,
    whole      TEXT,
    UNIQUE (realm, account, need, sequence, piece),
    CHECK (sequence >= 1),
    CHECK (piece >= 0)
);

INSERT INTO orders (order_id, realm, account, need, sequence, state, reservation_name, offer, cap, context,
                    reservation_arn, seen, created_at, changed_at, team)
SELECT order_id, realm, account, need, sequence, state, reservation_name, offer, cap, context,
       reservation_arn, seen, created_at, changed_at, team
FROM orders_before;

DROP TABLE orders_before;

