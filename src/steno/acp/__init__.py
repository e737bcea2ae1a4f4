"""Agent Client Protocol: runs the agent in editors, over standard input and output.

server.py              client requests, open sessions, JSON-RPC over streams
editor_session.py      one session: prompts in, updates and permission requests out
message_conversion.py  prompts to agent input; agent events and past records to updates
tool_calls.py          tool calls for clients: kind, title, locations, changes
"""
