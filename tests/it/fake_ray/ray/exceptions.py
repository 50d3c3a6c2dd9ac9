"""Errors of the stand-in for Ray."""


class RayError(Exception):
    """The cluster failed."""


class AuthenticationError(RayError):
    """The token is none."""
