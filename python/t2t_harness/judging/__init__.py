"""Judging: what is right, how a result is held against it, and what a wrapper may not do."""
