"""Clues about sub-agents in a transcript: the calls that start them, and what is heard of them.

The bytes of a record are searched before it is decoded, so that a long session costs little.
"""

from typing import Any, Final, cast

import msgspec

from steno.format.blocks import Text, ToolUse, read_blocks
from steno.format.loose import REFUSED, loose
from steno.format.records import Record
from steno.format.tool_catalogue import AGENT_TOOLS
from steno.session.nodes import Node
from steno.session.story.prompts import inside
from steno.session.transcript import Transcript

__all__ = ["Clues", "Notice", "Spawn", "clues_in"]

_CALLS: Final = tuple(f'"{name}"'.encode() for name in sorted(AGENT_TOOLS))
_NOTICE: Final = b"<task-notification>"
_TELLS: Final = frozenset(("user", "attachment", "queue-operation"))
_PROGRESS: Final = b'"agent_progress"'


class Spawn(msgspec.Struct, kw_only=True):
    """A call that started, or could have started, a sub-agent."""

    call_id: str
    node: Node
    kind: str = ""
    description: str = ""
    prompt: str = ""
    background: bool = False
    status: str = ""
    result: Node | None = None


class Notice(msgspec.Struct, frozen=True):
    """What a background task reported."""

    node: Node
    call_id: str = ""
    status: str = ""
    report: str = ""


class Clues:
    """What one transcript knows about sub-agents."""

    def __init__(self) -> None:
        self.spawns: dict[str, Spawn] = {}
        self.started: dict[str, str] = {}
        """Calls by the agent their result names."""
        self.notices: dict[str, Notice] = {}
        """Reports by agent."""
        self.seen: dict[str, str] = {}
        """Calls by the agent whose progress the client noted under them."""
        self.nodes: list[Node] = []
        """The records that were read for it."""


class _Result(msgspec.Struct, rename="camel"):
    agent_id: str = ""
    is_async: bool = False
    status: str = ""
    description: str = ""
    prompt: str = ""
    agent_type: str = ""


class _Progress(msgspec.Struct, rename="camel"):
    agent_id: str = ""


class _ProgressLine(msgspec.Struct):
    data: _Progress | None = None
    parent_tool_use_id: str = msgspec.field(name="parentToolUseID", default="")


def clues_in(transcript: Transcript, before: Clues | None = None) -> Clues:
    """Return what a transcript says about sub-agents that it started.

    `before` is what its first records said: it is added to, and they are not read again.
    """
    nodes = transcript.nodes
    known = before is not None and nodes[: len(before.nodes)] == before.nodes
    clues = before if before is not None and known else Clues()
    for node in nodes[len(clues.nodes) :]:
        _look(clues, transcript, node)
    clues.nodes = nodes.copy()
    return clues


def _look(clues: Clues, transcript: Transcript, node: Node) -> None:
    if node.uses:
        if transcript.held(node) is not None or _names_agent(transcript, node):
            _calls(clues, transcript.record(node), node)
    elif node.results:
        _result(clues, transcript, node)
    elif node.type in _TELLS:
        if _NOTICE in transcript.source.read(node.offset, node.length):
            _notice(clues, transcript.record(node), node)
    elif node.type == "progress":
        raw = transcript.source.read(node.offset, node.length)
        if _PROGRESS in raw:
            _progress(clues, raw)


def _names_agent(transcript: Transcript, node: Node) -> bool:
    raw = transcript.source.read(node.offset, node.length)
    return any(name in raw for name in _CALLS)


def _calls(clues: Clues, record: Record, node: Node) -> None:
    for block in record.blocks:
        if isinstance(block, ToolUse) and block.name in AGENT_TOOLS and block.id:
            asked = block.input
            clues.spawns.setdefault(
                block.id,
                Spawn(
                    call_id=block.id,
                    node=node,
                    kind=_text(asked.get("subagent_type")),
                    description=_text(asked.get("description")),
                    prompt=_text(asked.get("prompt")),
                    background=asked.get("run_in_background") is True,
                ),
            )


def _result(clues: Clues, transcript: Transcript, node: Node) -> None:
    """Read the result of a call that may have started an agent, whatever the tool."""
    known = [clues.spawns[use] for use in node.results if use in clues.spawns]
    if not known and not _tells_agent(transcript, node):
        return
    record = transcript.record(node)
    kept = _decoded(record.envelope.tool_use_result, _Result)
    if not known and kept.agent_id and len(node.results) == 1:
        spawn = Spawn(call_id=node.results[0], node=node, kind=kept.agent_type)
        known = [clues.spawns.setdefault(spawn.call_id, spawn)]
    for spawn in known:
        spawn.result = spawn.result or node
        spawn.status = kept.status or spawn.status
        spawn.background = kept.is_async or spawn.background
        spawn.kind = spawn.kind or kept.agent_type
        spawn.description = spawn.description or kept.description
        spawn.prompt = spawn.prompt or kept.prompt
        if kept.agent_id:
            clues.started.setdefault(kept.agent_id, spawn.call_id)


def _tells_agent(transcript: Transcript, node: Node) -> bool:
    held = transcript.held(node)
    if held is None:
        return b'"agentId"' in transcript.source.read(node.offset, node.length)
    kept = held.tool_use_result
    return isinstance(kept, dict) and "agentId" in kept


def _notice(clues: Clues, record: Record, node: Node) -> None:
    """Note a report; the queue's record of it counts only where there is no other."""
    text = record.text or _queued(record)
    agent = inside(text, "task-id")
    before = clues.notices.get(agent)
    if agent and (before is None or before.node.type == "queue-operation"):
        tags = ("tool-use-id", "status", "result")
        clues.notices[agent] = Notice(node, *(inside(text, tag) for tag in tags))


def _queued(record: Record) -> str:
    """Return the words of an attachment or of an entry of the queue."""
    envelope = record.envelope
    value: Any = loose(envelope.attachment) if envelope.attachment else None
    if isinstance(value, dict):
        value = cast("dict[str, Any]", value).get("prompt")
    elif envelope.content:
        value = loose(envelope.content)
    return "\n".join(block.text for block in read_blocks(value) if isinstance(block, Text))


def _progress(clues: Clues, raw: bytes) -> None:
    line = _decoded(raw, _ProgressLine)
    if line.data is not None and line.data.agent_id and line.parent_tool_use_id:
        clues.seen.setdefault(line.data.agent_id, line.parent_tool_use_id)


def _decoded(raw: bytes | msgspec.Raw, shape: type[Any]) -> Any:
    try:
        return msgspec.json.decode(raw, type=shape) if raw else shape()
    except REFUSED:
        return shape()


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
