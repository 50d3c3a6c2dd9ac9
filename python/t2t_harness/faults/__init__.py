"""Faults: failures, whose fault they are, and their wording."""
