"""Exports sessions in formats for other tools, with secrets masked.

export_options   names of the formats and levels
export_formats   Markdown, plain text, lossless JSON, messages for the API
session_masking  masks a session before it is read; lists secrets
session_export   selects sessions and writes files; tables of the index
steps_format     steps.jsonl and metadata.json
steps_folder     keeps a folder of steps in sync

HTML is rendered in `steno.web.export`, with the templates of the explorer.
"""
