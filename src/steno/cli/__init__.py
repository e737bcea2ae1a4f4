"""Command line: entry point, shared options, one module per command, terminal and JSON output."""
