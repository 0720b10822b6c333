"""Where workloads really run, behind one protocol."""
