"""The user's session history for agents, as an MCP server: read-only, paged and quoted.

tool_io         input of each tool, and text from sessions: masked, fenced, paged
session_access  the index and the sessions
tool_answers    the answers of `search`, `brief`, `show`, `files` and `usage`
server          the MCP server

`docs/decisions/0016-history-for-agents.md` explains why it is a package of its own.
"""
