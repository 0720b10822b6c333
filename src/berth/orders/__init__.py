"""Buying: the journal, the guard, one call, and finding out what became of it."""
