"""Files that change while they are read: the file watcher, incremental reading and the multi-session tail."""

from steno.store.watch.watcher import Changes, FileWatcher

__all__ = ["Changes", "FileWatcher"]
