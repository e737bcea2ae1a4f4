"""Reports on sessions, from the index or from the session files."""
