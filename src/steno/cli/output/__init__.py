"""Output of the commands: the screen, tables, progress bars, transcripts, reports as lines and JSON."""
