"""Accounts, keys, authorisation."""
