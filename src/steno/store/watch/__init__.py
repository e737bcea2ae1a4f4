"""Files that are read while they grow: the file watcher, incremental reading and the multi-session tail."""
