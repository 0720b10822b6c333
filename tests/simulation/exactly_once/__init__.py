"""Both halves of Berth in one process: simulated clock, store and wire, troubles from a seed."""
