"""Agent Client Protocol: editors drive the agent over standard input and output.

server.py              the requests of a client, its open sessions, JSON-RPC over streams
editor_session.py      one session: prompts in, updates and permission requests out
message_conversion.py  prompts to engine input; events and past records to updates
tool_calls.py          a tool call as clients show it: kind, title, locations, changes
"""
