"""Turns, steps, sub-agents, branches, compactions, titles, status and usage of a session."""
