"""Exports sessions in formats for other tools, with secrets masked.

export_options   names of the formats and levels
export_formats   Markdown, plain text, lossless JSON, API messages
session_masking  masks a session before it is read; lists secrets
session_export   selects sessions, writes files, exports index tables
steps_format     steps.jsonl and metadata.json
steps_folder     keeps a steps directory in sync

HTML is rendered in `steno.web.export`, with the templates of the explorer.
"""
