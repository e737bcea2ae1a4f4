"""Reads the records of a file as a session.

transcript      one file: nodes of its records, its gaps, access to its bytes
session         the public API of a session
session_status  status, liveness, and which sessions lists show
live_turns      events of a growing file
resume/         the messages that each client version sends on resume; valid API messages
turns/          turns, steps, sub-agents, branches, compactions, titles, status, usage
"""
