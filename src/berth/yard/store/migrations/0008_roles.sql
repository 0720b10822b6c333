-- Roles of accounts: who may assume one, and what its sessions may do ('': everything). `trusted` is a JSON array of ARNs;
-- `external_id` '' asks for none. Sessions have no rows: their tokens are signed with a key in `meta` (identity/sessions.py).
CREATE TABLE roles (
    role_id       TEXT PRIMARY KEY,
    account_id    TEXT NOT NULL REFERENCES accounts,
    name          TEXT NOT NULL,
    trusted       TEXT NOT NULL,
    external_id   TEXT NOT NULL,
    policy        TEXT NOT NULL,
    max_session_s INTEGER NOT NULL,
    created_us    INTEGER NOT NULL,
    UNIQUE (account_id, name)
) STRICT, WITHOUT ROWID;
