"""The decision framework: which ways can hold a need, what each is like, and which to try first."""
