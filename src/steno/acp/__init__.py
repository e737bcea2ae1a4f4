"""Editors drive the engine: the Agent Client Protocol on the standard input and output.

server.py   what a client can ask; the sessions it has open
thread.py   one session: prompts in, updates and questions out
telling.py  what the engine does, as updates
calls.pya tool call as clients show it: kind, title, places, changes
asking.py   what the user is asked: permission, plans, questions, trust
prompts.py  what the user says, as the engine takes it
past.py a session that was, as updates
lines.pythe wire: one JSON object a line, whatever comes in
"""
