"""Dated tables with sources: instance types, Regions, zones, list prices.

Facts are what public sources said at a date, never what a service answers now. Every row carries `as_of` and
`source`; provenance and gaps are told in `data/README.md`.
"""
