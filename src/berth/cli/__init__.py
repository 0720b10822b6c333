"""The command line: one file a verb. Faces hold no rules."""
