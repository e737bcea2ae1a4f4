"""The index: a lifetime of sessions in one SQLite file, and every word of them beside it.

All of it can be thrown away and built again from the sessions, but for those whose file is gone.
"""
