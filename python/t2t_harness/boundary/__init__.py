"""What t2t and the harness tell each other, as types."""
