"""Two published descriptions of the format that no client writes, converted to what one does.

`spec-000`  messages as plain strings, `toolName`/`toolArguments`, `system/tool_result`,
            `compact_system` with its four operations.
`spec-004`  types `human` and `tool_result`, millisecond timestamps, `compact_prelude` and
            `compact_recap`, folders under `conversations/`.

Files in these dialects exist because tools were built from those descriptions.

    names       the dialects
    single      one record by itself: which dialect it has, its role and blocks
    detection   which dialect a file has
    rows        one record as the conversion needs it
    links       what the records of a file are to each other: calls and results, branches, parents
    fields      one record, written as the real client writes it
    compactions what a compaction leaves of the conversation before it
    converted   a whole file in a dialect, read as the file the real client would have written
"""
