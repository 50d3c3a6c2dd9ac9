"""Sources: kernel files and what they import, found, loaded and read."""
