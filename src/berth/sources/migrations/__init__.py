"""The numbered schema changes of the local history."""
