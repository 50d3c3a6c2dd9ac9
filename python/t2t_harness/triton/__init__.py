"""Triton: what extends its interpreter, stands in for its driver, keeps what it compiled and watches what is launched through it."""
