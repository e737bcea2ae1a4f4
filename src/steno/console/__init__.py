"""The console: `steno chat` in a terminal, a face of the engine that the engine knows nothing of.

screen.py   finished lines are printed once; below them a small region is redrawn
prompt.py   where one types: history, pastes, completion, keys
stream.py   what the engine does, as finished lines and as what goes on now
status.py   the last line
dialog.py   questions to the user: permission, plans, choices, sessions to pick
talk.py     ties these to the engine; commands/ has what begins with a slash

Nothing here imports the engine before the first prompt is on the screen.
"""
