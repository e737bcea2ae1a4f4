"""Session text to safe HTML."""
