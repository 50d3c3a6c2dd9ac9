"""Measuring: clocks, the figures made from them, and what the device did meanwhile."""
