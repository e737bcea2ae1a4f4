"""The session format: lines read from bytes to records, and written back to bytes.

No I/O: bytes and values in, values out. From the bottom up:

    source          bytes that can be read by range, and notes on damaged bytes
    lenient_json    decodes JSON that strict decoders reject
    message         every field of the envelope of a record, its API message and content blocks
    lines, salvage  bytes → pieces that cover the file, with damage noted and all readable records kept
    records         a piece as a record: its raw bytes, its dialect, its lazy views
    dialects        published formats that Claude Code does not write, converted to its format
    line_diff       differences of two sequences: equal ranges, changes, hunks
    catalogue       every known kind, field and type, by version; record_views: typed views from it
    encode          values → the bytes that Claude Code writes, and new records
    paths           names of directories and files; sidecars: the small files of a session
"""
