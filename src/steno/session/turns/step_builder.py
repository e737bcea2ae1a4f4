"""Builds steps from records: a turn under construction, and the effect of each record type on it."""

from collections.abc import Mapping
from copy import copy
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, cast

import msgspec

from steno.format.lenient_json import DECODE_ERRORS, decode_lenient, fill_struct, valid_duration
from steno.format.message import (
    SYNTHETIC,
    Block,
    RedactedThinking,
    ServerToolUse,
    Text,
    Thinking,
    ToolResult,
    ToolUse,
    read_blocks,
)
from steno.format.records import Record, read_time
from steno.format.tool_catalogue import AGENT, AGENT_TOOLS, SHELL
from steno.session.transcript import Node
from steno.session.turns.compactions import Compaction
from steno.session.turns.prompts import Origin, Prompt, is_tentative, origin_by_tag, prompt_text, tag_content
from steno.session.turns.steps import RESULT_DELETED, FileTouch, Step, StepDraft, StepKind, one_line
from steno.session.turns.tool_outcomes import call_outcome, tool_call_subject, touched_file
from steno.session.turns.usage import UsageCounter

if TYPE_CHECKING:
    from steno.session.turns.subagents import Thread


_SILENT_KINDS: Final = frozenset(("note", "hook", "thought"))
"""Kinds that do not interrupt the text of an answer."""
WorkKind = Literal["", "prompt", "words", "call", "result", "end"]


class TurnDraft:
    """A turn under construction."""

    def __init__(self, compaction: Compaction | None = None) -> None:
        self.compaction = compaction
        self.closing: Compaction | None = None
        """The last compaction at its end, without a later prompt."""
        self.prompt: Prompt | None = None
        self.nodes: list[Node] = []
        self.drafts: list[StepDraft] = []
        self.counter = UsageCounter()
        self.answered = False
        self.interrupted = False
        self.seconds: float | None = None
        self.started: datetime | None = None
        self.ended: datetime | None = None
        self.last: WorkKind = ""
        self.output: tuple[Node, str] | None = None
        self.trailing_count = 0
        """Number of trailing records that only introduce the next turn."""
        self._prompt_index = 0

    @property
    def origin(self) -> Origin | None:
        """Origin of the prompt."""
        return self.prompt.origin if self.prompt is not None else None

    @property
    def is_conditional(self) -> bool:
        """Whether the turn had no effect yet, so that the next prompt may replace its prompt."""
        return is_tentative(self.origin, answered=self.answered)

    @property
    def is_idle(self) -> bool:
        """Whether the turn made no request to the model: a local command or a shell escape."""
        return (self.origin == "shell" and not self.answered) or self.is_conditional

    def set_prompt(self, prompt: Prompt) -> None:
        """Set the prompt; a previous one without effect becomes a note."""
        self.demote_prompt()
        self.prompt = prompt
        self.started = prompt.time
        self.ended = None
        self.last = "prompt"
        self._prompt_index = len(self.drafts)

    def demote_prompt(self) -> None:
        """Turn a command without an answer into a note."""
        prompt = self.prompt
        self.prompt = None
        if prompt is None or prompt.origin == "summary":
            return
        if prompt.origin == "command":
            draft = StepDraft("note", prompt.name, prompt.text.removeprefix(prompt.name).strip())
        else:
            draft = StepDraft("note", "Notification", one_line(prompt.text))
        draft.call, draft.started = prompt.node, prompt.time
        if self.output is not None:
            draft.result, draft.outcome = self.output[0], one_line(self.output[1], 80)
            self.output = None
        self.drafts.insert(self._prompt_index, draft)

    def absorb(self, other: "TurnDraft") -> None:
        """Append another turn, which had no effect itself."""
        other.demote_prompt()
        self.nodes += other.nodes
        self.drafts += other.drafts
        self.interrupted = self.interrupted or other.interrupted

    def add_compaction_note(self, compaction: Compaction) -> None:
        """Add a note that the conversation was compacted during this turn."""
        time = read_time(compaction.boundary.timestamp)
        self.add("note", "Compacted", compaction.trigger, compaction.boundary, time).seam = compaction

    def set_closing_compaction(self, compaction: Compaction | None) -> None:
        """Set the compaction at its end; a previous one becomes a note."""
        if self.closing is not None and compaction is not None:
            self.add_compaction_note(self.closing)
        self.closing = compaction or self.closing

    def continue_after(self, compaction: Compaction) -> None:
        """Continue the turn after a compaction; compactions at its end become notes."""
        self.set_closing_compaction(compaction)
        self.add_compaction_note(compaction)
        self.closing = None

    def pass_trailing_records(self, other: "TurnDraft") -> None:
        """Pass the records that only introduce the next turn to it."""
        if self.trailing_count:
            other.nodes, self.nodes = (self.nodes[-self.trailing_count :], self.nodes[: -self.trailing_count])
            other.drafts, self.drafts = (self.drafts[-self.trailing_count :], self.drafts[: -self.trailing_count])
            self.trailing_count = 0

    def copy(self) -> "TurnDraft":
        """Return a copy that may change independently, except for its steps."""
        other = copy(self)
        other.nodes, other.drafts = self.nodes.copy(), self.drafts.copy()
        return other

    def add(self, kind: StepKind, verb: str, subject: str, node: "Node | None", time: datetime | None) -> StepDraft:
        """Append a step."""
        draft = StepDraft(kind, verb, subject, node, time)
        self.drafts.append(draft)
        return draft

    def record_work(self, kind: WorkKind, time: datetime | None) -> None:
        """Record that work was done: the turn lasts at least until `time`."""
        self.last = kind
        if time is None:
            return
        self.started = self.started or time
        if self.ended is None or time > self.ended:
            self.ended = time

    @property
    def latest_step(self) -> StepDraft | None:
        """The last step that is not deleted."""
        return next((draft for draft in reversed(self.drafts) if not draft.is_deleted), None)

    def last_error(self) -> StepDraft | None:
        """Return the error that has just occurred, if nothing came after it."""
        last = self.latest_step
        return last if last is not None and last.kind == "error" else None

    def build(self, *, final: bool) -> tuple[tuple[Step, ...], str, int]:
        """Return the steps including deleted ones, the answer, and the number of steps before the answer.

        `final` means that no turn follows.
        """
        drafts = self._steps_with_output()
        answer = _answer_drafts(drafts)
        answer_ids = {id(draft) for draft in answer}
        counted_responses: set[str] = set()
        steps: list[Step] = []
        before = len(drafts)
        is_cut = self.interrupted or not final
        for draft in drafts:
            if id(draft) in answer_ids:
                before = len(steps)
                continue
            tokens = None
            if draft.message_id and draft.message_id not in counted_responses:
                counted_responses.add(draft.message_id)
                tokens = self.counter.output_of(draft.message_id)
            steps.append(draft.build(tokens, cut=is_cut))
        text = "\n\n".join(draft.text for draft in answer)
        return tuple(steps), text, min(before, len(steps))

    def _steps_with_output(self) -> list[StepDraft]:
        if self.output is None:
            return self.drafts
        node, text = self.output
        draft = StepDraft("note", "Output", one_line(text), call=node)
        return [*self.drafts[: self._prompt_index], draft, *self.drafts[self._prompt_index :]]

    def files(self) -> tuple[FileTouch, ...]:
        """Return the files that were touched, once per file and verb."""
        touches: dict[tuple[str, str], FileTouch] = {}
        for draft in self.drafts:
            touch = draft.touch
            if touch is None or draft.state != "ok":
                continue
            key = (touch.path, touch.verb)
            before = touches.get(key, FileTouch(*key))
            touches[key] = FileTouch(*key, before.added + touch.added, before.removed + touch.removed)
        return tuple(touches.values())


def _answer_drafts(drafts: list[StepDraft]) -> list[StepDraft]:
    """Return the text after the last work step; an error may follow it."""
    answer: list[StepDraft] = []
    for draft in reversed(drafts):
        if draft.kind == "words":
            answer.append(draft)
        elif draft.kind not in _SILENT_KINDS and (answer or draft.kind != "error"):
            break
    return answer[::-1]


_NOTE_VERBS: Final[dict[str, str]] = {
    "meta": "Note",
    "summary": "Summary",
    "output": "Output",
    "hook": "Hook",
    "interrupt": "Interrupted",
}
_SILENT_SUBTYPES: Final = frozenset(("turn_duration", "compact_boundary"))
_CAVEATS: Final = ("<local-command-caveat>", "Caveat:")


class _Attachment(msgspec.Struct, rename="camel"):
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


class _SystemRecord(msgspec.Struct, rename="camel"):
    subtype: str = ""
    content: str = ""
    duration_ms: float | None = None
    error: _ErrorDetail | None = None
    hook_infos: list[Any] = []
    hook_errors: list[Any] = []
    stop_reason: str = ""


class StepBuilder:
    """Adds records to turns; calls stay open across turns until their results come."""

    def __init__(self, agents: Mapping[str, "Thread"]) -> None:
        self._agents = agents
        self._calls: dict[str, StepDraft] = {}

    def step_of_call(self, call_id: str) -> StepDraft | None:
        """Return the step of a tool call, or of a result whose call has not come yet."""
        return self._calls.get(call_id)

    # Assistant records

    def add_response_line(self, turn: TurnDraft, record: Record, node: Node) -> None:
        """Add a record of a response."""
        envelope = record.envelope
        if node.model == SYNTHETIC or envelope.is_api_error_message:
            self._add_synthetic(turn, record, node)
            return
        turn.answered = True
        turn.counter.add(record)
        self._mark_recovered(turn)
        for block in record.blocks:
            draft = self._add_block(turn, record, node, block)
            if draft is not None:
                draft.message_id = node.message_id or envelope.request_id or node.uuid or ""
        aborted = envelope.is_aborted_mid_stream
        if aborted and bytes(aborted) == b"true":
            turn.interrupted = True

    def _add_block(self, turn: TurnDraft, record: Record, node: Node, block: Block) -> StepDraft | None:
        """Add a block of a response; blank text is not a step."""
        time = record.time
        work: WorkKind = "call"
        if type(block) is ToolUse or type(block) is ServerToolUse:
            draft = self._add_call(turn, node, block, time)
        elif type(block) is Text:
            if not block.text.strip():
                return None
            draft = turn.add("words", "Text", one_line(block.text), node, time)
            draft.text = block.text
            if record.message is None or record.message.stop_reason != "tool_use":
                work = "words"
        elif type(block) is Thinking or type(block) is RedactedThinking:
            thought = block.thinking if type(block) is Thinking else ""
            draft = turn.add("thought", "Thought", one_line(thought), node, time)
        else:
            draft = turn.add("unknown", block.type or "block", "", node, time)
            work = "words"
        turn.record_work(work, time)
        return draft

    def _add_call(
        self, turn: TurnDraft, node: Node, block: ToolUse | ServerToolUse, time: datetime | None
    ) -> StepDraft:
        name, tool_input = block.name, block.input
        draft = self._calls.get(block.id) if block.id else None
        if draft is None or draft.call is not None:
            draft = turn.add("tool", "", "", node, time)
            draft.state = "ok" if type(block) is ServerToolUse else "open"
            if block.id:
                self._calls.setdefault(block.id, draft)
        draft.call, draft.call_id, draft.started = node, block.id, time
        draft.verb = one_line(name) or "tool"
        draft.subject = tool_call_subject(name, tool_input)
        draft.touch = touched_file(name, tool_input)
        draft.agent = self._agents.get(block.id)
        if name == SHELL:
            command = tool_input.get("command")
            draft.command = command if isinstance(command, str) else ""
        if name in AGENT_TOOLS or draft.agent is not None:
            draft.kind = "agent"
            kind = tool_input.get("subagent_type")
            agent_kind = draft.agent.kind if draft.agent is not None else ""
            draft.verb = (kind if isinstance(kind, str) else "") or agent_kind or draft.verb
        return draft

    def _add_synthetic(self, turn: TurnDraft, record: Record, node: Node) -> None:
        """Add a synthetic answer, which usually reports an error."""
        if not record.envelope.is_api_error_message:
            turn.add("note", "Note", one_line(record.text), node, record.time)
            return
        draft = turn.last_error() or turn.add("error", "API error", "", node, record.time)
        draft.subject = one_line(record.text)
        draft.call, draft.state = node, "failed"
        turn.answered = True
        turn.record_work("end", record.time)

    def _mark_recovered(self, turn: TurnDraft) -> None:
        for draft in reversed(turn.drafts):
            if draft.kind == "error" and draft.retries:
                draft.state = "ok"
            if draft.kind not in ("note", "hook", "error"):
                return

    # Tool results

    def add_results(self, turn: TurnDraft, record: Record, node: Node) -> None:
        """Add tool results, and other blocks in the same record."""
        for block in record.blocks:
            if type(block) is ToolResult:
                self._add_result(turn, record, node, block)
            elif type(block) is Text:
                self._add_text_in_results(turn, record, node, block.text)
        turn.record_work("result", record.time)

    def _add_result(self, turn: TurnDraft, record: Record, node: Node, block: ToolResult) -> None:
        draft = self._calls.get(block.tool_use_id)
        if draft is None:
            draft = turn.add("tool", "Result", "", None, record.time)
            draft.call_id = block.tool_use_id
            self._calls[block.tool_use_id] = draft
        elif draft.result is not None:
            return
        tool = AGENT if draft.kind == "agent" else draft.verb
        outcome = call_outcome(tool, block, record, draft.touch)
        draft.outcome, draft.state = outcome.text, outcome.state
        draft.touch = outcome.touch
        draft.result, draft.ended = node, record.time

    def _add_text_in_results(self, turn: TurnDraft, record: Record, node: Node, text: str) -> None:
        origin = origin_by_tag(text)
        if origin == "interrupt":
            turn.interrupted = True
            self.add_note(turn, record, node, "interrupt", text)
        elif text.lstrip().startswith("<system-reminder>"):
            self.add_note(turn, record, node, "meta", text)
        elif text.strip():
            turn.add("queued", "Queued", one_line(text), node, record.time)

    # Other user records

    def add_user_record(self, turn: TurnDraft, record: Record, node: Node, origin: Origin) -> None:
        """Add a user record that does not start a turn."""
        text = prompt_text(record) or record.text
        if origin == "interrupt":
            turn.interrupted = True
            turn.record_work("end", record.time)
        waits = turn.prompt is not None and turn.prompt.origin in ("command", "shell")
        if origin == "output" and waits and not turn.answered and turn.output is None:
            turn.output = (node, _command_output(text))
            return
        self.add_note(turn, record, node, origin, text)
        introduces = record.text.startswith(_CAVEATS) or b'"turnCompanion":true' in record.line
        if origin == "meta" and introduces and b'"sourceToolUseID"' not in record.line:
            turn.trailing_count += 1

    def add_note(self, turn: TurnDraft, record: Record, node: Node, origin: Origin, text: str) -> None:
        """Add a note for a record."""
        line = _command_output(text) if origin == "output" else text
        verb = _NOTE_VERBS.get(origin, "Note")
        draft = turn.add("note", verb, one_line(line), node, record.time)
        if origin == "hook":
            draft.kind = "hook"
        if origin == "interrupt":
            draft.state = "interrupted"

    # Other records

    def add_other_record(self, turn: TurnDraft, record: Record, node: Node) -> None:
        """Add an attachment, a system record, a link, or a record of an unknown type."""
        match record.type:
            case "attachment":
                self._add_attachment(turn, record, node)
            case "system":
                self._add_system_record(turn, record, node)
            case "progress":
                data = _decode_as(record.envelope.data, _Attachment)
                if data.type == "hook_progress":
                    self._add_hook(turn, record, node, data)
            case "queue-operation":
                text = _text_of(decode_lenient(record.envelope.content) if record.envelope.content else "")
                turn.add("queued", "Queued", one_line(text), node, record.time)
            case "deleted":
                self._add_deleted(turn, record, node)
            case kind:
                line = one_line(record.text)
                turn.add("unknown", kind or "record", line, node, record.time)

    def _add_deleted(self, turn: TurnDraft, record: Record, node: Node) -> None:
        """Add a deleted record; the outcome of a call whose result it contained becomes unknown."""
        text = _text_of(decode_lenient(record.envelope.content) if record.envelope.content else "")
        turn.add("note", "Deleted", one_line(text), node, record.time)
        for name in answered_calls(record):
            draft = self._calls.get(name)
            if draft is not None and draft.call is not None and draft.result is None:
                draft.outcome, draft.state, draft.touch = RESULT_DELETED, "unknown", None
                draft.ended = record.time
                turn.record_work("result", record.time)

    def _add_attachment(self, turn: TurnDraft, record: Record, node: Node) -> None:
        data = _decode_as(record.envelope.attachment, _Attachment)
        if data.type.startswith("hook_"):
            self._add_hook(turn, record, node, data)
        elif data.type == "queued_command":
            self._add_queued(turn, record, node, data)
        else:
            subject = data.display_path or data.filename or data.path
            verb = data.type.replace("_", " ") or "attachment"
            turn.add("note", verb, one_line(subject), node, record.time)

    def _add_queued(self, turn: TurnDraft, record: Record, node: Node, data: _Attachment) -> None:
        text = _text_of(data.prompt)
        if data.command_mode != "task-notification" and origin_by_tag(text) != "notification":
            turn.add("queued", "Queued", one_line(text), node, record.time)
            return
        summary = tag_content(text, "summary") or text
        draft = turn.add("note", "Notification", one_line(summary), node, record.time)
        names = (tag_content(text, "tool-use-id"), tag_content(text, "task-id"))
        draft.agent = next((self._agents[name] for name in names if name in self._agents), None)
        draft.kind = "note" if draft.agent is None else "agent"

    def _add_hook(self, turn: TurnDraft, record: Record, node: Node, data: _Attachment) -> None:
        verb = data.hook_name or data.hook_event or "Hook"
        command = one_line(data.command)
        draft = turn.add("hook", one_line(verb), command, node, record.time)
        if data.exit_code:
            draft.outcome = f"exit {data.exit_code:.0f}"
        if data.type.endswith("_error"):
            draft.state = "failed"
            draft.outcome = draft.outcome or "blocked" * (data.type == "hook_blocking_error")

    def _add_system_record(self, turn: TurnDraft, record: Record, node: Node) -> None:
        data = _decode_as(record.line, _SystemRecord)
        match data.subtype:
            case "turn_duration":
                duration = valid_duration(data.duration_ms)
                if duration is not None:
                    turn.seconds = duration / 1000
                turn.last = "end" if turn.last == "words" else turn.last
            case "api_error":
                self._add_retry(turn, record, node, data)
            case "stop_hook_summary":
                self._add_stop_hooks(turn, record, node, data)
            case "local_command":
                self._add_local_command(turn, record, node, data.content)
            case subtype if subtype not in _SILENT_SUBTYPES:
                verb = subtype.replace("_", " ").capitalize() or "System"
                line = one_line(data.content or record.text)
                turn.add("note", verb, line, node, record.time)
            case _:
                return

    def _add_stop_hooks(self, turn: TurnDraft, record: Record, node: Node, data: _SystemRecord) -> None:
        """Add the summary of the stop hooks; each hook may have its own record."""
        last = turn.latest_step
        if last is None or last.kind != "hook" or not last.verb.startswith("Stop"):
            last = turn.add("hook", "Stop", _hook_commands(data), node, record.time)
        last.result = node
        if data.hook_errors:
            last.state = "failed"
            last.outcome = one_line(_text_of(data.hook_errors[0]), 80) or last.outcome

    def _add_retry(self, turn: TurnDraft, record: Record, node: Node, data: _SystemRecord) -> None:
        error = data.error or _ErrorDetail()
        draft = turn.last_error() or turn.add("error", "API error", "", node, record.time)
        draft.retries += 1
        status = f"{error.status:.0f}" if error.status is not None else ""
        draft.subject = one_line(error.message or error.formatted or status) or draft.subject
        draft.outcome = "1 retry" if draft.retries == 1 else f"{draft.retries} retries"
        draft.call, draft.state = draft.call or node, "failed"
        draft.ended = record.time
        turn.record_work("result", record.time)

    def _add_local_command(self, turn: TurnDraft, record: Record, node: Node, content: str) -> None:
        if origin_by_tag(content) == "command":
            name = tag_content(content, "command-name")
            args = one_line(tag_content(content, "command-args"))
            turn.add("note", name or "Command", args, node, record.time)
            return
        last = turn.latest_step
        output = one_line(_command_output(content), 80)
        if last is not None and last.verb.startswith("/") and last.result is None:
            last.result, last.outcome = node, output
        else:
            turn.add("note", "Output", output, node, record.time)


def _decode_as(raw: bytes | msgspec.Raw, shape: type[Any]) -> Any:
    """Return the decoded fields; those of an unexpected type are left at their default."""
    if not raw:
        return shape()
    try:
        return msgspec.json.decode(raw, type=shape)
    except DECODE_ERRORS:
        value = decode_lenient(raw)
    return fill_struct(shape, cast("dict[str, Any]", value)) if isinstance(value, dict) else shape()


def answered_calls(record: Record) -> tuple[str, ...]:
    """Return the calls whose results a deleted record contains."""
    answers = record.fields.get("answers") if record.type == "deleted" else None
    names = cast("list[Any]", answers) if isinstance(answers, list) else []
    return tuple(name for name in names if isinstance(name, str) and name)


def _text_of(value: Any) -> str:
    return "\n\n".join(part.text for part in read_blocks(value) if isinstance(part, Text))


def _hook_commands(data: _SystemRecord) -> str:
    infos = [cast("dict[str, Any]", info) for info in data.hook_infos if isinstance(info, dict)]
    return one_line(", ".join(str(info.get("command", "")) for info in infos))


def _command_output(text: str) -> str:
    tags = ("local-command-stdout", "local-command-stderr", "bash-stdout", "bash-stderr")
    return "\n".join(content for tag in tags if (content := tag_content(text, tag)))
