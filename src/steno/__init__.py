"""steno: the record of what coding agents said and did.

A session file is read byte for byte, told turn by turn, and never changed:

>>> import steno
>>> from steno.demo.write import write_demo
>>> folder = write_demo("demo").root
>>> session = steno.open("One cent off", root=folder)
>>> session.title.text, len(session.turns())
('One cent off in October', 1)
>>> [step.verb for step in session.turns()[0].steps if step.kind == "tool"][:3]
['Read', 'Bash', 'Grep']

Every record is a view on its bytes, and together with the gaps they are the file:

>>> found = steno.find("One cent off", root=folder)
>>> sum(piece.length for piece in steno.read(found.path)) == found.size
True
>>> [each.title for each in steno.sessions(folder)][:2]
['Tag the release, but do not push.', 'Write the changelog, then.']

A map of the house, from the ground up; imports go down only:

    errors    one tree of exceptions
    format    one line is one record: lines, records, blocks, dialects, what each kind may hold
    safe      every way of untrusted text to a terminal, page or cell
    session   many records are one session: graph, turns, sub-agents, compactions, replay
    store     files: where sessions lie, how they are found, read and exchanged
    check     the bench: what is wrong with a session, what is new in it, how it is mended
    model     the Messages API: a client for it, and a strict server
    guard     what an agent may do: rules, commands, paths, trust
    tools     what an agent does it with: one file each
    index     everything in one place: what is where, every word, what it cost
    report    what people ask: usage and cost
    agent     the agent: the loop, its record, what surrounds it
    demo      recorded sessions to try things on
    history   all of it for an agent that asks: quoted, in pages
    web       the explorer: a page in a browser over all of it
    console   a chat in a terminal: the face of the agent
    acp       the same for editors, over the Agent Client Protocol
    cli       the `steno` command

Names are imported when they are first used, so `import steno` costs next to nothing. What they
are is said in `__init__.pyi`.
"""

from steno._version import __version__ as __version__

_PLACES = {
    "Ambiguous": "steno.errors",
    "BadRequest": "steno.errors",
    "Block": "steno.format.blocks",
    "Branch": "steno.session.story.branches",
    "Compaction": "steno.session.story.compactions",
    "Damage": "steno.format.spans",
    "Document": "steno.format.blocks",
    "Gap": "steno.format.records",
    "Image": "steno.format.blocks",
    "Message": "steno.format.message",
    "NotFound": "steno.errors",
    "Piece": "steno.format.records",
    "Prompt": "steno.session.story.prompts",
    "Record": "steno.format.records",
    "RedactedThinking": "steno.format.blocks",
    "ServerToolUse": "steno.format.blocks",
    "Session": "steno.session.session",
    "SessionFile": "steno.store.library",
    "Span": "steno.format.spans",
    "StenoError": "steno.errors",
    "Step": "steno.session.story.steps",
    "Text": "steno.format.blocks",
    "Thinking": "steno.format.blocks",
    "Thread": "steno.session.story.threads",
    "ToolReference": "steno.format.blocks",
    "ToolResult": "steno.format.blocks",
    "ToolUse": "steno.format.blocks",
    "Totals": "steno.session.story.usage",
    "Turn": "steno.session.story.turns",
    "UnknownBlock": "steno.format.blocks",
    "Unreadable": "steno.errors",
    "Usage": "steno.format.message",
    "find": "steno.store.library",
    "open": "steno.store.library:open_session",
    "read": "steno.store.library",
    "sessions": "steno.store.library",
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
