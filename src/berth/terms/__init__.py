"""Value types without rules, shared by the client and the yard."""
