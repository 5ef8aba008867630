"""The terminal interface; it needs the extra `tui`."""
