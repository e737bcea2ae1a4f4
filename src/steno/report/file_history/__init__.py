"""File history: every version of a file that agents read or wrote.

file_versions    data model, and version references (`v3`, `SESSION:TURN`, `@yesterday`)
text_edits       edits and recorded patches applied to text, and partially known text
touch_finder     touches of a file, from the index, the records behind it, and backups
version_builder  touches in order → versions, with gaps where nothing is recorded
history          history of one file: versions, diffs, timeline
touched_files    all touched files, filtered and sorted, and those of one session
verification     checks rebuilt files against what the client recorded
"""
