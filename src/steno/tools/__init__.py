"""The tools an agent may use: one file each, one protocol (`base`)."""
