-- Whose money an order's is (the tag `team`; NULL: no tag says), and approvals by another identity. `document` is
-- a request as its hash was made of it. Of an approval there is who, when and how much, and never the proof.

ALTER TABLE orders ADD COLUMN team TEXT;

CREATE TABLE approval_requests (
    realm      TEXT   NOT NULL,
    hash       TEXT   NOT NULL,
    order_id   TEXT   NOT NULL,
    document   TEXT   NOT NULL,
    asked_at   BIGINT NOT NULL,
    alarmed_at BIGINT,
    PRIMARY KEY (realm, hash)
);

CREATE TABLE approvals (
    realm         TEXT   NOT NULL,
    hash          TEXT   NOT NULL,
    approver      TEXT   NOT NULL,
    approved_at   BIGINT NOT NULL,
    amount_micros BIGINT NOT NULL,
    currency      TEXT   NOT NULL,
    PRIMARY KEY (realm, hash, approver)
);
