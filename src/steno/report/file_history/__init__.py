"""File history: every version of a file that agents read or wrote.

file_versions    data model and version references (`v3`, `SESSION:TURN`, `@yesterday`)
text_edits       applies edits and recorded patches to text, complete or partial
touch_finder     finds touches of a file in the index, its records, and backups
version_builder  builds versions from touches in order, with gaps for unrecorded changes
history          history of one file: versions, diffs, timeline
touched_files    lists all touched files, filtered and sorted, or those of one session
verification     compares rebuilt files with the content that Claude Code recorded
"""
