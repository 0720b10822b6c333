"""Shops: how each way is searched, looked at and paid for, behind one protocol."""
