"""Phases: the functions that t2t calls, one file each."""
