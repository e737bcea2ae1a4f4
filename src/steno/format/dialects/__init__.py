"""Two published descriptions of the format that no client writes, converted to the client's form.

`spec-000`  messages as plain strings, `toolName`/`toolArguments`, `system/tool_result`,
            `compact_system` with its four operations.
`spec-004`  types `human` and `tool_result`, millisecond timestamps, `compact_prelude` and
            `compact_recap`, folders under `conversations/`.

Files in these dialects exist because tools were built from those descriptions.

    detection         which dialect a file has
    dialect_record    one record: what the conversion needs of it, and its client form
    record_links      how the records of a file relate: calls and results, branches, parents, compactions
    converted_source  a whole file, converted to the file the real client would have written
"""
