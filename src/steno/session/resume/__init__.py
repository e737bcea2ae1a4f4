"""How the real clients read a session back, and a session as messages the API accepts.

clients says what each client does differently; the steps are walk (take in, back to the root),
leaf, gather, segments (compaction), entries, mend, replay; rules are the API's own.
"""
