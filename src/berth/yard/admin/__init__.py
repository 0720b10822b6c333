"""Operating a yard: clock, faults, accounts, events."""
