-- The history only grows: no program that opens the file through SQLite changes or removes a line of it.
-- INSERT OR REPLACE removes without the trigger for DELETE, so a number that is taken is refused as well.

CREATE TRIGGER events_keep_update BEFORE UPDATE ON events
BEGIN
    SELECT RAISE(ABORT, 'events only grow: a line of the history is never changed');
END;

CREATE TRIGGER events_keep_delete BEFORE DELETE ON events
BEGIN
    SELECT RAISE(ABORT, 'events only grow: a line of the history is never removed');
END;

CREATE TRIGGER events_keep_insert BEFORE INSERT ON events
WHEN EXISTS (SELECT 1 FROM events WHERE order_id = NEW.order_id AND number = NEW.number)
BEGIN
    SELECT RAISE(ABORT, 'events only grow: a line of the history is never replaced');
END;
