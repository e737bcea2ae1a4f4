"""The user's history as an agent may ask for it: read-only, in pages, quoted, without secrets.

quoted    text from sessions: masked, fenced, marked
pages     an answer in pieces of a size that every client takes
asked     what each question takes, and its schema
library   where the answers come from: the index, the sessions
finding   the answer of `search`
telling   the answers of `brief` and `show`
touching  the answer of `files`
spending  the answer of `usage`
server    the questions as tools of an MCP server

`docs/decisions/0016-history-for-agents.md` says why it is a room of its own.
"""
