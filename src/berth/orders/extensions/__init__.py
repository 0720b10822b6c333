"""Extending what an order bought: later ends, paid once each."""
