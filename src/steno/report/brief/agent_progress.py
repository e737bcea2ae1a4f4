"""What `agent_progress` records say of sub-agents: the only trace of some of them.

Clients from 2.1.12 to 2.1.81 wrote one for each message of a sub-agent.
"""

from typing import Any, Final, cast

import msgspec

from steno.format.blocks import ServerToolUse, Text, ToolResult, ToolUse, read_blocks
from steno.format.loose import loose
from steno.format.records import Record, read_time
from steno.format.values import as_object
from steno.report.brief.tool_inputs import shortened_input
from steno.report.brief.turn_content import AssistantText, ToolCall
from steno.session.transcript import Transcript

__all__ = ["AgentProgress", "progress_by_call"]

_MARK: Final = b'"agent_progress"'


class AgentProgress:
    """The progress of one sub-agent."""

    def __init__(self, call_id: str, first: int, longest: int) -> None:
        self.call_id = call_id
        self.first = first
        """The position of its first record in the file."""
        self.agent_id = ""
        self.prompt = ""
        self.updates = 0
        self.texts: list[AssistantText] = []
        self.calls: list[ToolCall] = []
        self._longest = longest
        self._seen: set[str] = set()

    def add(self, data: dict[str, Any], record: Record) -> None:
        """Take in the data of one record."""
        self.updates += 1
        agent_id, prompt = data.get("agentId"), data.get("prompt")
        self.agent_id = self.agent_id or (agent_id if isinstance(agent_id, str) else "")
        self.prompt = self.prompt or (prompt if isinstance(prompt, str) else "")
        outer = as_object(data.get("message")) or {}
        message = as_object(outer.get("message")) or outer
        uuid = outer.get("uuid")
        uuid = uuid if isinstance(uuid, str) else ""
        if uuid and uuid in self._seen:
            return
        self._seen.add(uuid)
        stamp = outer.get("timestamp")
        time = read_time(stamp) if isinstance(stamp, str) else record.time
        seconds = time.timestamp() if time is not None else None
        spoken = "assistant" in (outer.get("type"), message.get("role"))
        for block in read_blocks(message.get("content")):
            if isinstance(block, ToolResult):
                self._answer(block)
            elif spoken:
                self._say(block, seconds, uuid)

    def _say(self, block: Any, time: float | None, uuid: str) -> None:
        order = len(self.texts) + len(self.calls)
        if isinstance(block, ToolUse | ServerToolUse):
            given, cut = shortened_input(block.input, self._longest)
            self.calls.append(
                ToolCall(
                    order=order,
                    id=block.id,
                    tool=block.name,
                    input=given,
                    cut=cut,
                    time=time,
                    uuid=uuid,
                )
            )
        elif isinstance(block, Text) and block.text.strip():
            self.texts.append(
                AssistantText(
                    order=order, text=block.text, size=len(block.text), time=time, uuid=uuid
                )
            )

    def _answer(self, block: ToolResult) -> None:
        state = "failed" if block.is_error else "ok"
        for place, call in enumerate(self.calls):
            if call.id == block.tool_use_id and call.state == "open":
                self.calls[place] = msgspec.structs.replace(call, state=state)


def progress_by_call(transcript: Transcript, longest: int) -> dict[str, AgentProgress]:
    """Return the progress of the sub-agents of a session, by the call that started each."""
    found: dict[str, AgentProgress] = {}
    for node in transcript.of_type("progress"):
        if _MARK not in transcript.source.read(node.offset, node.length):
            continue
        record = transcript.record(node)
        value: Any = loose(record.envelope.data) if record.envelope.data else None
        if not isinstance(value, dict):
            continue
        data = cast("dict[str, Any]", value)
        if data.get("type") != "agent_progress":
            continue
        names = _calls_of(record)
        noted = next((found[name] for name in names if name in found), None)
        noted = noted or AgentProgress(names[0] if names else "", node.index, longest)
        noted.add(data, record)
        for name in names or [""]:
            found.setdefault(name, noted)
    return found


def _calls_of(record: Record) -> list[str]:
    """Return the ids of the call: clients name it as the parent, a description as `toolUseID`."""
    values = (record.fields.get(name) for name in ("parentToolUseID", "toolUseID"))
    return [value for value in values if isinstance(value, str) and value]
