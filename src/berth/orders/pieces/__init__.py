"""Orders of several pieces: agreed to as a whole, bought one by one, each exactly once."""
