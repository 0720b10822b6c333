"""The yard's schema, one numbered file a change, never edited after it shipped."""
