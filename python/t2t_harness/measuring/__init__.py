"""Measuring: clocks, the figures that are made of them, and what the device did meanwhile."""
