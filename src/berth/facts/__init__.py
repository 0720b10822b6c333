"""Dated tables with sources: instance types, Regions, zones, list prices."""
