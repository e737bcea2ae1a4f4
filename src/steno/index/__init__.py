"""The index: all sessions in one SQLite file, and a full-text index next to it.

It is a cache that can be rebuilt from the sessions, except for sessions whose file is gone.
"""
