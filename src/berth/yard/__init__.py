"""A capacity service that speaks AWS's APIs over a fleet of one's own, or over nothing: a rehearsal."""
