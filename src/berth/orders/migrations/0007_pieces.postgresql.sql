-- Orders of several pieces. A piece is an order of its own with the whole's sequence and a number (0: no piece);
-- `whole` is the whole's `order_id`.

ALTER TABLE orders ADD COLUMN piece BIGINT NOT NULL DEFAULT 0 CHECK (piece >= 0);
ALTER TABLE orders ADD COLUMN whole TEXT;
ALTER TABLE orders DROP CONSTRAINT orders_realm_account_need_sequence_key;
ALTER TABLE orders ADD CONSTRAINT orders_once UNIQUE (realm, account, need, sequence, piece);
