"""The command line of the yard: `berth yard ...`."""
