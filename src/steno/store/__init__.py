"""Session files on disk: discovery, reading, appending, atomic replacement, locks and the archive."""
