"""Opening a SQLite file durably and bringing its schema up to date."""
