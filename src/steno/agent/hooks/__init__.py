"""Hooks: programs of the user that run at events and may block, change or add to what happens."""
