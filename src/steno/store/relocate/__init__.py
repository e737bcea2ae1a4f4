"""A project that moved, or goes to another machine: its sessions follow, and can come back.

values      what a move is made of
belongs     which files are the project's, and where each will lie
plan        what will become of each of them, to the byte; nothing is changed
carry       does it, so that it can be cut off anywhere and finished or undone
receipt     what was done, kept in steno's own folder
moved       where sessions lie now that the archive knows by another path
rewrite     files with the paths in them rewritten
manifest    what an archive says of itself, and what is believed of it
pack        a project's sessions in one file for another machine
unpack      such a file, proven before anything of it is used
"""
