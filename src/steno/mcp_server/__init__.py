"""The user's session history for agents, as an MCP server: read-only, paged and quoted.

tool_io         input of each tool, session access, and quoted text: masked, fenced, paged
server          the MCP server, and the answers of `search`, `brief`, `show`, `files` and `usage`

`docs/decisions/0016-history-for-agents.md` explains why this is a separate package.
"""
