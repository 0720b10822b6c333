-- Launches of instances into a bought Capacity Block. `request` is RunInstances' parameters as sent, so that a
-- launch whose answer was lost is repeated to the letter; `instance_ids` is a JSON list.

CREATE TABLE launches (
    order_id     TEXT   NOT NULL REFERENCES orders (order_id),
    number       BIGINT NOT NULL,
    block        TEXT   NOT NULL,
    token        TEXT   NOT NULL,
    count        BIGINT NOT NULL,
    state        TEXT   NOT NULL,
    request      TEXT   NOT NULL,
    instance_ids TEXT   NOT NULL,
    began_at     BIGINT NOT NULL,
    made_at      BIGINT,
    removing_at  BIGINT,
    PRIMARY KEY (order_id, number),
    CHECK (number >= 1)
);
