"""The time machine: every version of a file that agents read or wrote, as far as it can be known.

values    a touch, a version, a history
texts     edits and recorded patches carried out, texts compared, lines known in part
said      what one touch says about the file: before, after, a stretch of it
rebuild   touches in order → versions, with gaps where nobody knows
commands  whether a shell command may have changed a file it names
finding   the touches of one file, from the index and the records behind it
recorded  the touches in one transcript, without an index
kept      the client's own backups of the file
history   one file: `history`, `diff`
timeline  versions → what stands in the column of time
unified   what lies between two texts, for `patch`
moments   which version somebody means
touched   all files: `touched`, filtered and sorted
naming    which of them somebody means
session   what one session did to files
verify    whether files are rebuilt as clients recorded them
restore   a version put on the disk
"""
