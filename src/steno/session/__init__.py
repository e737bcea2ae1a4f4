"""Many records → one session.

transcript      one file: its records reduced to nodes, its gaps, a way back to its bytes
session         the public API of a session
session_status  status, liveness and whether lists show a session
live_turns      a growing file → events
resume/         what each client would send on resume; messages the API accepts
turns/          turns, steps, sub-agents, branches, compactions, titles, status, usage
"""
