"""Records → steps: what each kind of record adds to the turn it stands in."""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec

from steno.format.blocks import (
    Block,
    RedactedThinking,
    ServerToolUse,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    read_blocks,
)
from steno.format.loose import REFUSED, fill, loose
from steno.format.records import Record
from steno.format.tool_catalogue import AGENT, AGENT_TOOLS, SHELL
from steno.format.values import measured_time
from steno.session.nodes import Node
from steno.session.story.outcomes import outcome_of, subject_of, touch_of
from steno.session.story.prompts import Origin, inside, tagged, words_of
from steno.session.story.scenes import Scene, Work
from steno.session.story.steps import RESULT_DELETED, Draft, one_line
from steno.session.story.usage import SYNTHETIC

if TYPE_CHECKING:
    from steno.session.story.threads import Thread

__all__ = ["Teller", "answered_by"]


_NOTES: Final[dict[str, str]] = {
    "meta": "Note",
    "summary": "Summary",
    "output": "Output",
    "hook": "Hook",
    "interrupt": "Interrupted",
}
_QUIET_SYSTEM: Final = frozenset(("turn_duration", "compact_boundary"))
_CAVEATS: Final = ("<local-command-caveat>", "Caveat:")


class _Attached(msgspec.Struct, rename="camel"):
    """What is wanted of an attachment, or of a progress record's data."""

    type: str = ""
    hook_name: str = ""
    hook_event: str = ""
    command: str = ""
    exit_code: float | None = None
    command_mode: str = ""
    filename: str = ""
    display_path: str = ""
    path: str = ""
    prompt: Any = None


class _ErrorDetail(msgspec.Struct, rename="camel"):
    formatted: str = ""
    message: str = ""
    status: float | None = None


class _System(msgspec.Struct, rename="camel"):
    """What is wanted of a system record."""

    subtype: str = ""
    content: str = ""
    duration_ms: float | None = None
    error: _ErrorDetail | None = None
    hook_infos: list[Any] = []
    hook_errors: list[Any] = []
    stop_reason: str = ""


class Teller:
    """Reads records into scenes; calls stay open across turns until their results come."""

    def __init__(self, agents: Mapping[str, "Thread"]) -> None:
        self._agents = agents
        self._calls: dict[str, Draft] = {}

    def call(self, call_id: str) -> Draft | None:
        """Return the step of a tool call, or of a result whose call has not come yet."""
        return self._calls.get(call_id)

    # The model

    def assistant(self, scene: Scene, record: Record, node: Node) -> None:
        """Take in a line of a response."""
        envelope = record.envelope
        if node.model == SYNTHETIC or envelope.is_api_error_message:
            self._synthetic(scene, record, node)
            return
        scene.answered = True
        scene.counter.add(record)
        self._recovered(scene)
        for block in record.blocks:
            draft = self._block(scene, record, node, block)
            if draft is not None:
                draft.message_id = node.message_id or envelope.request_id or node.uuid or ""
        aborted = envelope.is_aborted_mid_stream
        if aborted and bytes(aborted) == b"true":
            scene.interrupted = True

    def _block(self, scene: Scene, record: Record, node: Node, block: Block) -> Draft | None:
        """Take in a part of a response; words that say nothing are no step."""
        time = record.time
        work: Work = "call"
        if type(block) is ToolUse or type(block) is ServerToolUse:
            draft = self._call(scene, node, block, time)
        elif type(block) is Text:
            if not block.text.strip():
                return None
            draft = scene.add("words", "Said", one_line(block.text), node, time)
            draft.text = block.text
            if record.message is None or record.message.stop_reason != "tool_use":
                work = "words"
        elif type(block) is Thinking or type(block) is RedactedThinking:
            thought = block.thinking if type(block) is Thinking else ""
            draft = scene.add("thought", "Thought", one_line(thought), node, time)
        else:
            draft = scene.add("unknown", block.type or "block", "", node, time)
            work = "words"
        scene.work(work, time)
        return draft

    def _call(
        self, scene: Scene, node: Node, block: ToolUse | ServerToolUse, time: datetime | None
    ) -> Draft:
        name, asked = block.name, block.input
        draft = self._calls.get(block.id) if block.id else None
        if draft is None or draft.call is not None:
            draft = scene.add("tool", "", "", node, time)
            draft.state = "ok" if type(block) is ServerToolUse else "open"
            if block.id:
                self._calls.setdefault(block.id, draft)
        draft.call, draft.call_id, draft.started = node, block.id, time
        draft.verb = one_line(name) or "tool"
        draft.subject = subject_of(name, asked)
        draft.touch = touch_of(name, asked)
        draft.agent = self._agents.get(block.id)
        if name == SHELL:
            command = asked.get("command")
            draft.command = command if isinstance(command, str) else ""
        if name in AGENT_TOOLS or draft.agent is not None:
            draft.kind = "agent"
            kind = asked.get("subagent_type")
            named = draft.agent.kind if draft.agent is not None else ""
            draft.verb = (kind if isinstance(kind, str) else "") or named or draft.verb
        return draft

    def _synthetic(self, scene: Scene, record: Record, node: Node) -> None:
        """Take in what the client said in the model's name: mostly that something failed."""
        if not record.envelope.is_api_error_message:
            scene.add("note", "Note", one_line(record.text), node, record.time)
            return
        draft = scene.last_error() or scene.add("error", "API error", "", node, record.time)
        draft.subject = one_line(record.text)
        draft.call, draft.state = node, "failed"
        scene.answered = True
        scene.work("end", record.time)

    def _recovered(self, scene: Scene) -> None:
        for draft in reversed(scene.drafts):
            if draft.kind == "error" and draft.retries:
                draft.state = "ok"
            if draft.kind not in ("note", "hook", "error"):
                return

    # Results

    def results(self, scene: Scene, record: Record, node: Node) -> None:
        """Take in tool results, and what else stands beside them."""
        for block in record.blocks:
            if type(block) is ToolResult:
                self._result(scene, record, node, block)
            elif type(block) is Text:
                self._aside(scene, record, node, block.text)
        scene.work("result", record.time)

    def _result(self, scene: Scene, record: Record, node: Node, block: ToolResult) -> None:
        draft = self._calls.get(block.tool_use_id)
        if draft is None:
            draft = scene.add("tool", "Result", "", None, record.time)
            draft.call_id = block.tool_use_id
            self._calls[block.tool_use_id] = draft
        elif draft.result is not None:
            return
        tool = AGENT if draft.kind == "agent" else draft.verb
        outcome = outcome_of(tool, block, record, draft.touch)
        draft.outcome, draft.state = outcome.words, outcome.state
        draft.touch = outcome.touch
        draft.result, draft.ended = node, record.time

    def _aside(self, scene: Scene, record: Record, node: Node, text: str) -> None:
        origin = tagged(text)
        if origin == "interrupt":
            scene.interrupted = True
            self.mark(scene, record, node, "interrupt", text)
        elif text.lstrip().startswith("<system-reminder>"):
            self.mark(scene, record, node, "meta", text)
        elif text.strip():
            scene.add("queued", "Said", one_line(text), node, record.time)

    # Users that are nobody

    def user(self, scene: Scene, record: Record, node: Node, origin: Origin) -> None:
        """Take in a user record that begins no turn."""
        text = words_of(record) or record.text
        if origin == "interrupt":
            scene.interrupted = True
            scene.work("end", record.time)
        waits = scene.prompt is not None and scene.prompt.origin in ("command", "shell")
        if origin == "output" and waits and not scene.answered and scene.output is None:
            scene.output = (node, _printed(text))
            return
        self.mark(scene, record, node, origin, text)
        introduces = record.text.startswith(_CAVEATS) or b'"turnCompanion":true' in record.line
        if origin == "meta" and introduces and b'"sourceToolUseID"' not in record.line:
            scene.trail += 1

    def mark(self, scene: Scene, record: Record, node: Node, origin: Origin, text: str) -> None:
        """Leave a note of a record."""
        said = _printed(text) if origin == "output" else text
        verb = _NOTES.get(origin, "Note")
        draft = scene.add("note", verb, one_line(said), node, record.time)
        if origin == "hook":
            draft.kind = "hook"
        if origin == "interrupt":
            draft.state = "interrupted"

    # What is no message

    def other(self, scene: Scene, record: Record, node: Node) -> None:
        """Take in an attachment, a system record, a link, or something nobody has seen yet."""
        match record.type:
            case "attachment":
                self._attachment(scene, record, node)
            case "system":
                self._system(scene, record, node)
            case "progress":
                data = _read(record.envelope.data, _Attached)
                if data.type == "hook_progress":
                    self._hook(scene, record, node, data)
            case "queue-operation":
                text = _words(loose(record.envelope.content) if record.envelope.content else "")
                scene.add("queued", "Queued", one_line(text), node, record.time)
            case "deleted":
                self._deleted(scene, record, node)
            case kind:
                said = one_line(record.text)
                scene.add("unknown", kind or "record", said, node, record.time)

    def _deleted(self, scene: Scene, record: Record, node: Node) -> None:
        """Note a deleted record; of a call whose result it was, nothing more is told."""
        text = _words(loose(record.envelope.content) if record.envelope.content else "")
        scene.add("note", "Deleted", one_line(text), node, record.time)
        for name in answered_by(record):
            draft = self._calls.get(name)
            if draft is not None and draft.call is not None and draft.result is None:
                draft.outcome, draft.state, draft.touch = RESULT_DELETED, "unknown", None
                draft.ended = record.time
                scene.work("result", record.time)

    def _attachment(self, scene: Scene, record: Record, node: Node) -> None:
        data = _read(record.envelope.attachment, _Attached)
        if data.type.startswith("hook_"):
            self._hook(scene, record, node, data)
        elif data.type == "queued_command":
            self._queued(scene, record, node, data)
        else:
            subject = data.display_path or data.filename or data.path
            verb = data.type.replace("_", " ") or "attachment"
            scene.add("note", verb, one_line(subject), node, record.time)

    def _queued(self, scene: Scene, record: Record, node: Node, data: _Attached) -> None:
        text = _words(data.prompt)
        if data.command_mode != "task-notification" and tagged(text) != "notification":
            scene.add("queued", "Queued", one_line(text), node, record.time)
            return
        summary = inside(text, "summary") or text
        draft = scene.add("note", "Notification", one_line(summary), node, record.time)
        names = (inside(text, "tool-use-id"), inside(text, "task-id"))
        draft.agent = next((self._agents[name] for name in names if name in self._agents), None)
        draft.kind = "note" if draft.agent is None else "agent"

    def _hook(self, scene: Scene, record: Record, node: Node, data: _Attached) -> None:
        verb = data.hook_name or data.hook_event or "Hook"
        said = one_line(data.command)
        draft = scene.add("hook", one_line(verb), said, node, record.time)
        if data.exit_code:
            draft.outcome = f"exit {data.exit_code:.0f}"
        if data.type.endswith("_error"):
            draft.state = "failed"
            draft.outcome = draft.outcome or "blocked" * (data.type == "hook_blocking_error")

    def _system(self, scene: Scene, record: Record, node: Node) -> None:
        data = _read(record.line, _System)
        match data.subtype:
            case "turn_duration":
                took = measured_time(data.duration_ms)
                if took is not None:
                    scene.seconds = took / 1000
                scene.last = "end" if scene.last == "words" else scene.last
            case "api_error":
                self._retry(scene, record, node, data)
            case "stop_hook_summary":
                self._stopped(scene, record, node, data)
            case "local_command":
                self._local(scene, record, node, data.content)
            case subtype if subtype not in _QUIET_SYSTEM:
                verb = subtype.replace("_", " ").capitalize() or "System"
                said = one_line(data.content or record.text)
                scene.add("note", verb, said, node, record.time)
            case _:
                return

    def _stopped(self, scene: Scene, record: Record, node: Node, data: _System) -> None:
        """Take in the summary of the hooks that ran at the end; each may have its own record."""
        last = scene.latest
        if last is None or last.kind != "hook" or not last.verb.startswith("Stop"):
            last = scene.add("hook", "Stop", _hooks(data), node, record.time)
        last.result = node
        if data.hook_errors:
            last.state = "failed"
            last.outcome = one_line(_words(data.hook_errors[0]), 80) or last.outcome

    def _retry(self, scene: Scene, record: Record, node: Node, data: _System) -> None:
        error = data.error or _ErrorDetail()
        draft = scene.last_error() or scene.add("error", "API error", "", node, record.time)
        draft.retries += 1
        status = f"{error.status:.0f}" if error.status is not None else ""
        draft.subject = one_line(error.message or error.formatted or status) or draft.subject
        draft.outcome = "1 retry" if draft.retries == 1 else f"{draft.retries} retries"
        draft.call, draft.state = draft.call or node, "failed"
        draft.ended = record.time
        scene.work("result", record.time)

    def _local(self, scene: Scene, record: Record, node: Node, content: str) -> None:
        if tagged(content) == "command":
            name = inside(content, "command-name")
            args = one_line(inside(content, "command-args"))
            scene.add("note", name or "Command", args, node, record.time)
            return
        last = scene.latest
        said = one_line(_printed(content), 80)
        if last is not None and last.verb.startswith("/") and last.result is None:
            last.result, last.outcome = node, said
        else:
            scene.add("note", "Output", said, node, record.time)


def _read(raw: bytes | msgspec.Raw, shape: type[Any]) -> Any:
    """Return the fields that are wanted; those of an odd type are left out."""
    if not raw:
        return shape()
    try:
        return msgspec.json.decode(raw, type=shape)
    except REFUSED:
        value = loose(raw)
    return fill(shape, cast("dict[str, Any]", value)) if isinstance(value, dict) else shape()


def answered_by(record: Record) -> tuple[str, ...]:
    """Return the calls that a deleted record has the results of."""
    answers = record.fields.get("answers") if record.type == "deleted" else None
    names = cast("list[Any]", answers) if isinstance(answers, list) else []
    return tuple(name for name in names if isinstance(name, str) and name)


def _words(value: Any) -> str:
    """Return the words of a value that may be text or blocks."""
    return "\n\n".join(part.text for part in read_blocks(value) if isinstance(part, Text))


def _hooks(data: _System) -> str:
    infos = [cast("dict[str, Any]", info) for info in data.hook_infos if isinstance(info, dict)]
    return one_line(", ".join(str(info.get("command", "")) for info in infos))


def _printed(text: str) -> str:
    """Return what a command printed, without the tags."""
    tags = ("local-command-stdout", "local-command-stderr", "bash-stdout", "bash-stderr")
    return "\n".join(said for tag in tags if (said := inside(text, tag)))
