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
touched   all files: `touched`, filtered and sorted
"""
