"""Schema of the journal, one numbered file a step, the same steps on SQLite and PostgreSQL.

To add one, take the next free number and never edit a file that is committed:

- `0007_name.sql` runs on both. Write what both take: TEXT, BIGINT (instants in microseconds, money in
  millionths, flags as 0 and 1), NOT NULL, PRIMARY KEY, UNIQUE, CHECK, REFERENCES, CREATE TABLE, CREATE INDEX,
  ALTER TABLE ... ADD COLUMN. Not: AUTOINCREMENT, BOOLEAN, JSON types, STRICT, WITHOUT ROWID, INSERT OR ...
- `0007_name.sqlite.sql` and `0007_name.postgresql.sql`, both, where the two cannot say it alike (triggers).
- In queries the placeholder is `?` on both, and every row is read by its columns' names. Numbers are counted
  with COALESCE(MAX(number), 0) + 1 inside the same write; ask for no order that depends on a collation.
"""
