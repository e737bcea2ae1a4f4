"""Browse, search, price, repair and export Claude Code sessions.

Session files are read without changing them:

>>> import steno
>>> from steno.demo.recording import write_demo
>>> folder = write_demo("demo").root
>>> session = steno.open("One cent off", root=folder)
>>> session.title.text, len(session.turns())
('One cent off in October', 1)
>>> [step.verb for step in session.turns()[0].steps if step.kind == "tool"][:3]
['Read', 'Bash', 'Grep']

Records are views of the bytes of the file. Records and gaps together cover the whole file:

>>> file = steno.find("One cent off", root=folder)
>>> sum(piece.length for piece in steno.read(file.path)) == file.size
True
>>> [session_file.title for session_file in steno.sessions(folder)][:2]
['Tag the release, but do not push.', 'Write the changelog, then.']

Packages, from the bottom up; a package imports only from those above it in this list:

    errors       exceptions
    extras       optional dependencies
    format       JSON Lines to records and back: lines, salvage, envelope, catalogue, dialects
    sanitize     untrusted text to a terminal, a page, a CSV cell; secret masking
    session      one session: transcript, turns, sub-agents, compactions, resume
    store        files: discovery, reading, appending, atomic writes, archive, watching
    check        findings, verdicts, drift, repair
    llm          Messages API: client, retry policy, test server
    permissions  permission rules, shell parsing, project trust, sandbox
    demo         recorded demo sessions
    tools        tool protocol, registry, built-in tools
    index        SQLite and full-text index over all sessions
    report       usage, cost, session list, brief, file history, comparison, export
    agent        agent loop, conversation, context, hooks, checkpoints, sub-agents
    mcp_server   MCP server: session history for agents
    web          web explorer and JSON API
    console      terminal chat
    acp          Agent Client Protocol: the agent in editors
    cli          the `steno` command

`docs/explanation/architecture.md` describes sub-packages and data flow. Names are imported on first
use, so that `import steno` stays fast; `__init__.pyi` has their types.
"""

from steno._version import __version__ as __version__

_PLACES = {
    "Ambiguous": "steno.errors",
    "BadRequest": "steno.errors",
    "Block": "steno.format.message",
    "Branch": "steno.session.turns.branches",
    "Compaction": "steno.session.turns.compactions",
    "Damage": "steno.format.source",
    "Document": "steno.format.message",
    "Gap": "steno.format.records",
    "Image": "steno.format.message",
    "Message": "steno.format.message",
    "NotFound": "steno.errors",
    "Piece": "steno.format.records",
    "Prompt": "steno.session.turns.prompts",
    "Record": "steno.format.records",
    "RedactedThinking": "steno.format.message",
    "ServerToolUse": "steno.format.message",
    "Session": "steno.session.session",
    "SessionFile": "steno.store.session_lookup",
    "Span": "steno.format.source",
    "StenoError": "steno.errors",
    "Step": "steno.session.turns.steps",
    "Text": "steno.format.message",
    "Thinking": "steno.format.message",
    "Thread": "steno.session.turns.subagents",
    "ToolReference": "steno.format.message",
    "ToolResult": "steno.format.message",
    "ToolUse": "steno.format.message",
    "Totals": "steno.session.turns.usage",
    "Turn": "steno.session.turns.turn_builder",
    "UnknownBlock": "steno.format.message",
    "Unreadable": "steno.errors",
    "Usage": "steno.format.message",
    "find": "steno.store.session_lookup",
    "open": "steno.store.session_lookup:open_session",
    "read": "steno.store.session_lookup",
    "sessions": "steno.store.session_lookup",
}


def __getattr__(name: str) -> object:
    if name == "__all__":
        return sorted((*_PLACES, "__version__"))
    if name not in _PLACES:
        raise AttributeError(f"module 'steno' has no attribute {name!r}")
    from importlib import import_module

    module, _, known = _PLACES[name].partition(":")
    value = getattr(import_module(module), known or name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES, "__all__"})
