"""From a need and offers to a plan. Pure: no I/O, no clock of its own, same inputs same plan."""
