"""The context window: system prompt and memory, token usage, trimming and compaction."""
