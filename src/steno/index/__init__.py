"""The index: all sessions in one SQLite database, with a full-text index next to it.

It is a cache that can be rebuilt from the session files, except for sessions whose file was deleted.
"""
