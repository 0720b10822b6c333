"""Both halves of Berth in one process: simulated clock, store and wire, faults from a seed (docs/internals/simulation.md)."""
