"""Pickling of the stand-in for Ray, whose nodes import modules."""

from types import ModuleType


def register_pickle_by_value(module: ModuleType) -> None:
    """Do nothing."""
