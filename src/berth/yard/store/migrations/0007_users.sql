-- Who a key belongs to within its account: '' is the account's first user, who is named like the account and may do what
-- the account's policy says. A further user has a name and a policy of its own ('': everything).
ALTER TABLE access_keys ADD COLUMN user_name TEXT NOT NULL DEFAULT '';
ALTER TABLE access_keys ADD COLUMN policy TEXT NOT NULL DEFAULT '';
CREATE UNIQUE INDEX access_keys_of_users ON access_keys (account_id, user_name) WHERE user_name <> '';
