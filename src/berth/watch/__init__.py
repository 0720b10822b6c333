"""Waiting for states and windows on the clock that Berth follows."""
