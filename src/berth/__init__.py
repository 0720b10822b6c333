"""Berth gets you GPUs for a window of time."""

__version__ = "0.1.0"
