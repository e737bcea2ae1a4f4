"""Hooks: programs configured by the user that run at events and can block, change or add to them."""
