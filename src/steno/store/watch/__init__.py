"""Files that change while they are read: the file watcher, incremental reading and the multi-session tail."""
