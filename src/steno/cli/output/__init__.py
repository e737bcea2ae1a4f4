"""Output of the commands: screen, tables, progress bars, transcripts, and reports as lines or JSON."""
