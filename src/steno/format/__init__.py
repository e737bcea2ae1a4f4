"""One line ↔ one record: the session format, read from bytes and written back to bytes.

Pure: bytes and values in, values out. From the bottom up:

    source          bytes that can be read by span, and notes on damaged bytes
    lenient_json    decodes JSON that strict decoders refuse
    message         every field of the envelope of a record, its API message and content blocks
    lines, salvage  bytes → pieces that cover the file, damage noted, everything readable kept
    records         a piece as a record: its raw bytes, its dialect, its lazy views
    dialects        published forms that no client writes, read into the same views
    line_diff       differences of two sequences: equal ranges, changes, hunks
    catalogue       every known kind, field and type, by version; record_views: typed views from it
    encode          values → the bytes the real client writes, and new records
    paths           how folders and files are named; sidecars: the small files around a session
"""
