"""Fleet file, pools, calendar, zones."""
