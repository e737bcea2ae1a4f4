"""One line ↔ one record: the session format, read from bytes and written back to bytes.

Pure: bytes and values in, values out. From the bottom up:

    spans      where something lies, and what is wrong with it
    source     bytes that can be read again by span
    lines      bytes → pieces that tile the file, damage noted, everything readable kept
    records    a piece as a record: its raw bytes, its envelope, its lazy views
    blocks     what a message is made of
    dialects   published forms that no client writes, read into the same views
    catalogue  every known kind, field and type, by version; views/ is generated from it
    encode     values → the bytes the real client would write
    paths      how folders and files are named; sidecars: what the small files hold
"""
