"""Faults: what goes wrong, whose doing it is, and how that is told."""
