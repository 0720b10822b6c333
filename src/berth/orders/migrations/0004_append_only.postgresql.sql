-- The history only grows: whoever may not change the schema can neither change nor remove a line of it.

CREATE FUNCTION events_only_grow() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'events only grow: a line of the history is never changed or removed';
END;
$$;

CREATE TRIGGER events_keep_lines BEFORE UPDATE OR DELETE ON events
    FOR EACH ROW EXECUTE FUNCTION events_only_grow();

CREATE TRIGGER events_keep_all BEFORE TRUNCATE ON events
    FOR EACH STATEMENT EXECUTE FUNCTION events_only_grow();
