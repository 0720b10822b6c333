"""Offerings, price lists, purchases, ledger, the demand of others."""
