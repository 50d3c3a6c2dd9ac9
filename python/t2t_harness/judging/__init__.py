"""Judging: what is right, how results are compared with it, and what a wrapper may not do."""
