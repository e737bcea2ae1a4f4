"""Two published descriptions of the format that Claude Code does not write, converted to its format.

`spec-000`  messages as plain strings, `toolName`/`toolArguments`, `system/tool_result`,
            `compact_system` with its four operations.
`spec-004`  types `human` and `tool_result`, millisecond timestamps, `compact_prelude` and
            `compact_recap`, directories under `conversations/`.

Files in these dialects exist because tools were built from those descriptions.

    detection         the dialect of a file
    dialect_record    one record: its parsed fields, and its form in Claude Code's format
    record_links      links between the records of a file: calls and results, branches, parents, compactions
    converted_source  a whole file, converted to Claude Code's format
"""
