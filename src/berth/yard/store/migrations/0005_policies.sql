-- What an account may do: one IAM policy document, as JSON text. '' is everything, as for an administrator.
ALTER TABLE accounts ADD COLUMN policy TEXT NOT NULL DEFAULT '';
