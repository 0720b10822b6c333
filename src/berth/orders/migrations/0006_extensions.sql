-- Extensions of what an order bought: one row a paid intent. `start_at` is the end before, `end_at` the end that is
-- bought; `payment` is AWS's last word on the payment ('': none was read). Of an order at most one is in doubt.

CREATE TABLE extensions (
    order_id    TEXT   NOT NULL REFERENCES orders (order_id),
    number      BIGINT NOT NULL,
    state       TEXT   NOT NULL,
    start_at    BIGINT NOT NULL,
    end_at      BIGINT NOT NULL,
    offering_id TEXT   NOT NULL,
    fee_micros  BIGINT NOT NULL,
    currency    TEXT   NOT NULL,
    intent_id   TEXT   NOT NULL,
    holder      TEXT   NOT NULL,
    started_at  BIGINT NOT NULL,
    changed_at  BIGINT NOT NULL,
    payment     TEXT   NOT NULL,
    detail      TEXT   NOT NULL,
    PRIMARY KEY (order_id, number),
    CHECK (number >= 1),
    CHECK (end_at > start_at)
);

CREATE UNIQUE INDEX extensions_in_doubt ON extensions (order_id) WHERE state IN ('buying', 'unknown');

CREATE TABLE extension_looks (
    order_id  TEXT   NOT NULL,
    extension BIGINT NOT NULL,
    number    BIGINT NOT NULL,
    began_at  BIGINT NOT NULL,
    ended_at  BIGINT NOT NULL,
    complete  BIGINT NOT NULL,
    found     BIGINT NOT NULL,
    PRIMARY KEY (order_id, extension, number),
    FOREIGN KEY (order_id, extension) REFERENCES extensions (order_id, number)
);
