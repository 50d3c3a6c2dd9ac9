"""Parts of the stand-in for Ray."""
