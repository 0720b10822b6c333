"""Schema of the journal, one numbered file a step; plain SQL that PostgreSQL takes too."""
