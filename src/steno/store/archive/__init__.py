"""Copies of sessions that outlive Claude Code's cleanup: byte-exact, compressed, append-only.

    archive      `Archive(home)` with `keep`, `entries`, `source`, `restore`; and `archive_all`
    catalogue    one line per session; sessions that exist only in the archive
    file_access  opens a file from disk or from the archive
    copies       writes new bytes of a session's files, verifies every frame
    journal      the journal and frames of one session's directory

`docs/decisions/0008-the-archive.md` explains the layout.
"""
