"""Copies of sessions that outlive the client's cleanup: byte for byte, compressed, append-only.

    archive      the door: `Archive(home)` with `keep`, `entries`, `source`, and `archive_all`
    gather       which files belong to a session
    keep         writes what is new of them
    index        the journal of a session's folder: files, generations, frames
    catalogue    one line for each session, so that a listing opens one file
    source       reads a kept file by span
    verify       proves every byte
    restore      puts files back
    gone         sessions that are only here, as if they were found on the disk
    opened       a file that was found, from the disk or from here
    disk, lock   how bytes get to the disk, and one writer at a time

`docs/decisions/0008-the-archive.md` says why it is laid out as it is.
"""
