-- Who made an event: `caller` is the ARN that STS told (NULL: not asked), `process` is user, machine and process.
-- Both are NULL in what was written before.

ALTER TABLE events ADD COLUMN caller TEXT;
ALTER TABLE events ADD COLUMN process TEXT;
