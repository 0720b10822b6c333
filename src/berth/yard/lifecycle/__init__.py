"""The yard's clock, timers, and tables of states."""
