"""The console: `steno chat` in a terminal.

chat.py            connects agent, screen and prompt
screen.py          finished lines are printed once; below them a small region is redrawn
prompt.py          the input: history, pastes, completion; key_bindings.py: its keys
event_renderer.py  agent events as finished lines and as a live view
chat_status.py     greeting, queue, status line, notifications
dialog.py          questions to the user; approval_dialogs.py: permissions, plans, trust
commands/          the slash commands of the console

Nothing here imports the agent before the first prompt is on the screen.
"""
