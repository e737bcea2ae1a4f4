"""Rules on messages: blocks, response IDs, tool calls and token usage."""

from collections.abc import Iterable, Iterator, Sequence
from operator import itemgetter
from typing import Any, Final

from steno.check.evidence import Evidence, RecordShape, RecordView, RuleFamily
from steno.check.findings import Findings, Location, Rule, error_rule, info_rule, rules_in, warning_rule
from steno.check.record_graph import RecordGraph, ToolBlock
from steno.format.catalogue import version_key
from steno.format.lenient_json import as_list, as_object, describe_value
from steno.format.message import SYNTHETIC
from steno.format.records import ROLES
from steno.session.resume.api_rules import KNOWN_BLOCKS, MANY_IMAGES, MAX_SIDE_AMONG_MANY, image_flaw
from steno.session.transcript import Node

_Run = list[Node]
_COMMAND: Final = "local_command"


def unnamed_responses(conversation: Iterable[Node]) -> list[tuple[_Run, str]]:
    """Return records with a model but no response ID, with the ID they should have, if known.

    Claude Code merges all such records into one response. A single response of that kind is harmless; two are merged
    into one, and a record between records with an ID is separated from its response.
    """
    responses = list(_unnamed_runs(conversation))
    return responses if len(responses) > 1 or any(name for _, name in responses) else []


def _unnamed_runs(conversation: Iterable[Node]) -> Iterator[tuple[_Run, str]]:
    for run, _ in _answer_runs(conversation):
        lines = [node for node in run if node.message_id is None and node.model]
        if lines:
            names = [node.message_id for node in run if node.message_id is not None]
            yield lines, names[0] if names else ""


def misnamed_lines(graph: RecordGraph) -> list[tuple[Node, str]]:
    """Return records with the ID of another response, with the ID they should have, if known.

    Gathering works by response ID, so a wrong ID moves records to a wrong position. If the chain has misnamed records,
    the parent chain is checked first, then records whose parent is a call of another response. If it has none, the
    parent chain only shows IDs that recur, because results may have been gathered after them; missing results prove
    nothing.
    """
    in_chain = _misnamed_in(graph.conversation)
    if len(graph.parent_chain) == len(graph.chain):
        return in_chain
    on_parent_chain = _misnamed_in([node for node in graph.parent_chain if node.index in graph.sent])
    if not in_chain:
        return [(node, name) for node, name in on_parent_chain if not name]
    return on_parent_chain or _lines_below_other_calls(graph) or in_chain


def _lines_below_other_calls(graph: RecordGraph) -> list[tuple[Node, str]]:
    """Return records whose parent is an answered call of another response, with the ID of that response."""
    answered = {call for node in graph.conversation for call in node.results}
    lines: list[tuple[Node, str]] = []
    for node in graph.conversation:
        parent = graph.parent(node) if node.type == "assistant" and node.message_id else None
        if parent is None or parent.type != "assistant" or parent.message_id in (None, node.message_id):
            continue
        if not answered.isdisjoint(parent.uses):
            lines.append((node, parent.message_id or ""))
    return lines


def _misnamed_in(conversation: Sequence[Node]) -> list[tuple[Node, str]]:
    """Return the misnamed records of a conversation.

    A response is contiguous except for the results of its own calls. A record between two records of one response, or
    after a call whose result is still to come, belongs to it. An ID that recurs after another response of the same turn
    is wrong; in another turn it is harmless. A prompt directly after results does not start a turn, because Claude Code
    merges them into one message. No response continues after a local command.
    """
    lines: list[tuple[Node, str]] = []
    answered = {call for node in conversation for call in node.results}
    finished: set[str] = set()
    current: str | None = None
    for run, begins in _answer_runs(conversation):
        if begins == "prompt":
            finished.clear()
            current = None
        elif begins == "command":
            finished |= {current} if current is not None else set()
            current = None
        calling = False
        last = {node.message_id: index for index, node in enumerate(run)}
        for place, node in enumerate(run):
            name = node.message_id
            if name is None or name == current:
                calling = calling or not answered.isdisjoint(node.uses)
            elif current is not None and (calling or last.get(current, -1) > place):
                lines.append((node, current))
            elif name in finished:
                lines.append((node, ""))
            else:
                finished |= {current} if current is not None else set()
                current, calling = name, not answered.isdisjoint(node.uses)
    return lines


def _answer_runs(conversation: Iterable[Node]) -> Iterator[tuple[_Run, str]]:
    """Yield the runs of answer records, with the kind of user record before each run."""
    run: _Run = []
    user_records: list[Node] = []
    for node in conversation:
        if node.type == "assistant":
            run.append(node)
        elif node.type == "user" or node.subtype == _COMMAND:
            if run:
                yield run, _run_start(user_records)
                run, user_records = [], []
            user_records.append(node)
    if run:
        yield run, _run_start(user_records)


def _run_start(user_records: list[Node]) -> str:
    """Return `prompt`, `command`, or an empty string if a response may continue."""
    if any(node.results for node in user_records):
        return "command" if any(node.subtype == _COMMAND for node in user_records) else ""
    return "prompt" if user_records else ""


_EMPTY_TEXT: Final = error_rule(
    "message.empty-text",
    "Empty text",
    "The API rejects empty text. Run `steno repair SESSION` to remove the block.",
    "The API rejects a request with an empty or blank text block. Claude Code 2.1.325 drops an answer that "
    "contains nothing else and merges its neighbours, which changes the conversation; in a user message it "
    "sends the block unchanged. A blank record of a response with other content is common and harmless: Claude "
    "Code drops it. Repair removes the block.",
)
_ROLE: Final = info_rule(
    "message.role",
    "Role differs from the record type",
    "Claude Code uses the record type. No action is needed.",
    "`message.role` repeats `type`. Claude Code uses the type and does not need the role; readers that use "
    "only the message attribute it to the wrong role.",
)
_UNSIGNED: Final = error_rule(
    "message.unsigned-thinking",
    "Thinking without a signature",
    "The API rejects unsigned thinking. Run `steno repair SESSION` to remove the block.",
    "The API signs thinking blocks and requires the signature when they are sent back. Sessions that were "
    "edited or recorded through another provider contain thinking without a signature, or with a value other "
    "than text. Claude Code sends the block unchanged, and the API rejects the request. Repair removes the "
    "block. Only the API can check whether a signature matches its thinking.",
)
_THINKING_ONLY: Final = warning_rule(
    "message.thinking-only",
    "Response with only thinking",
    "Claude Code drops the response. No text or tool call is lost.",
    "The response was interrupted, or its other records were lost. The API does not accept a message that ends "
    "in thinking, so Claude Code 2.1.325 drops the response and merges the messages before and after it.",
)
_IMAGE: Final = error_rule(
    "message.image",
    "Invalid image",
    "Every request with this image fails. Run `steno repair SESSION` to replace it with a note.",
    "The API accepts PNG, JPEG, GIF and WebP as base64, up to 5 MB and 8,000 pixels a side, or 2,000 pixels if "
    "a request contains more than 20 images. The media type must match the data. An invalid image stays in the "
    "conversation, so every later request fails. Repair replaces it with a line of text.",
)
_UNKNOWN_BLOCK: Final = error_rule(
    "message.unknown-block",
    "Unknown block type",
    "Claude Code sends the block and the API rejects it. Run `steno repair SESSION` to remove it.",
    "Claude Code sends a block of an unknown type unchanged, and the API rejects the request. Such blocks come "
    "from other programs, or from features that are not part of the format. A block that is not an object is "
    "rejected as well. Repair removes it.",
)
_NO_ID: Final = error_rule(
    "message.no-id",
    "Responses without an ID",
    "Claude Code merges them into one and reorders the conversation. Run `steno repair SESSION` to give each "
    "response an ID.",
    "Records of a response share a `message.id`. Claude Code treats all records without one as the same "
    "response, and merges their text and calls out of order. Only records without a model are kept apart, by "
    "2.1.200 and later. A single response without an ID is harmless. Repair gives each response an ID.",
)
_MIXED: Final = error_rule(
    "message.mixed",
    "Interleaved responses",
    "Claude Code replaces tool results with errors. Run `steno repair SESSION` to merge the records into one response.",
    "A response is contiguous except for the results of its own calls. Two Claude Code processes on the same "
    "session, or a damaged `message.id`, interleave responses. The latest Claude Code then finds no result "
    "after the call and sends an error instead, although the result is in the file. Repair gives the records "
    "the ID of the surrounding response, and removes thinking that was signed for the other one.",
)
_NO_CONTENT: Final = error_rule(
    "message.no-content",
    "Message without content",
    "Claude Code 2.1.325 skips the message; older versions fail. Run `steno repair SESSION` to remove it from "
    "the chain.",
    "`message.content` is missing, null, empty, or neither text nor a list of blocks. Claude Code 2.1.325 "
    "skips the record and merges its neighbours; 2.1.200 and older fail.",
)
_NOT_A_MESSAGE: Final = error_rule(
    "message.not-a-message",
    "`message` is not an object",
    "Claude Code ignores the record. Run `steno repair SESSION` to set it aside.",
    "A user or assistant record contains the API message as an object with `role` and `content`. The latest "
    "Claude Code ignores a record with any other value.",
)

# Weight of a record within its response: Claude Code drops responses without substance.
_NO_SUBSTANCE: Final = 0
_ONLY_REASONING: Final = 1
_SUBSTANCE: Final = 2


class MessageRules(RuleFamily):
    """Message blocks that the API rejects, content that Claude Code drops, and wrong response IDs."""

    rules = rules_in(globals(), "message")

    def __init__(self) -> None:
        self._unnamed: list[tuple[Location, int]] = []
        self._substantial: set[str] = set()
        """IDs of responses with text or tool calls."""
        self._thinking_only: dict[str, tuple[Location, int]] = {}
        self._blank_lines: list[tuple[Location, int, str]] = []
        self._images: list[int] = []
        self._large_images: list[tuple[Location, int, int]] = []

    @staticmethod
    def applies_to(kind: str, _shape: RecordShape | None) -> bool:
        """Return whether a record of this kind and shape is a message."""
        return kind in ROLES

    def on_record(self, view: RecordView, findings: Findings) -> None:
        """Check one message and its blocks."""
        message = view.message
        if message is None:
            if "message" in view.fields:
                findings.defer(_NOT_A_MESSAGE, view.location, _NOT_A_MESSAGE.title, view.node.index)
            return
        kind, role, content = view.node.type, message.get("role"), message.get("content")
        if role != kind:
            findings.add(_ROLE, view.location, f"Role {describe_value(role)} in a record of type {kind!r}")
        plain = _plain_content_weight(content)
        if kind == "assistant":
            weight = plain or _content_weight(content)
            # The common case; other records are checked at the end.
            if weight == _SUBSTANCE and view.node.message_id:
                self._substantial.add(view.node.message_id)
            else:
                self._follow_response(view, weight)
            if weight == _NO_SUBSTANCE:
                return
        if not plain:
            self._check_blocks(content, view, findings)

    def _follow_response(self, view: RecordView, weight: int) -> None:
        """Record the data for checks that require all records of a response."""
        node = view.node
        if node.message_id is None:
            self._unnamed.append((view.location, node.index))
        name = node.message_id or node.uuid or ""
        if weight == _SUBSTANCE:
            self._substantial.add(name)
        elif weight == _ONLY_REASONING:
            self._thinking_only.setdefault(name, (view.location, node.index))
        else:
            self._blank_lines.append((view.location, node.index, name))

    def _check_blocks(self, content: Any, view: RecordView, findings: Findings) -> None:
        blocks = as_list(content)
        if blocks:
            for block in blocks:
                self._check_block(block, view, findings)
        else:
            rule = _EMPTY_TEXT if isinstance(content, str) else _NO_CONTENT
            findings.defer(rule, view.location, rule.title, view.node.index)

    def _check_block(self, item: Any, view: RecordView, findings: Findings, *, within: str = "") -> None:
        block = as_object(item) or {}
        kind = block.get("type")
        flaw: Rule | None = None
        detail = ""
        if kind == "text":
            flaw = _EMPTY_TEXT if _is_blank(block.get("text")) else None
        elif kind == "tool_result" and not within:
            for inner in as_list(block.get("content")) or ():
                self._check_block(inner, view, findings, within=" in a tool result")
        elif kind == "thinking":
            flaw = None if _is_signed(block) else _UNSIGNED
        elif kind == "image":
            detail = self._check_image(block.get("source"), view)
            flaw = _IMAGE if detail else None
        elif kind is None:
            flaw = _UNKNOWN_BLOCK
            detail = "missing" if isinstance(item, dict) else "not an object"
        elif not isinstance(kind, str) or kind not in KNOWN_BLOCKS:
            flaw, detail = _UNKNOWN_BLOCK, describe_value(kind)
        if flaw is not None:
            message = f"{flaw.title}{within}: {detail}" if detail else f"{flaw.title}{within}"
            findings.defer(flaw, view.location, message, view.node.index)

    def _check_image(self, source: Any, view: RecordView) -> str:
        flaw, side = image_flaw(source)
        self._images.append(view.node.index)
        if side > MAX_SIDE_AMONG_MANY and not flaw:
            self._large_images.append((view.location, view.node.index, side))
        return flaw

    def on_end(self, evidence: Evidence) -> None:
        """Run the checks that require the whole file."""
        findings = evidence.findings
        for name, (location, node) in self._thinking_only.items():
            if name not in self._substantial:
                findings.defer(_THINKING_ONLY, location, _THINKING_ONLY.title, node)
        for location, node, name in self._blank_lines:
            if name not in self._substantial and name not in self._thinking_only:
                findings.defer(_EMPTY_TEXT, location, "Answer with only empty text", node)
            else:
                findings.add(_EMPTY_TEXT, location, mild=True)
        if self._unnamed:
            self._check_unnamed(evidence)
        for node_of_line, _ in misnamed_lines(evidence.graph):
            evidence.add_finding(_MIXED, node_of_line)
        if self._large_images and len(self._images) > MANY_IMAGES:
            self._check_large_images(evidence)

    def _check_unnamed(self, evidence: Evidence) -> None:
        merged = [run for run, _ in unnamed_responses(evidence.graph.conversation)]
        merged_indexes = {node.index for run in merged for node in run}
        for location, node in self._unnamed:
            if node in merged_indexes:
                evidence.findings.add(_NO_ID, location, f"{_NO_ID.title}: {len(merged):,} in this conversation")
            else:
                evidence.findings.add(_NO_ID, location, "Response without an ID", mild=True)

    def _check_large_images(self, evidence: Evidence) -> None:
        sent = {node.index for node in evidence.graph.conversation}
        count = sum(node in sent for node in self._images)
        if count <= MANY_IMAGES:
            return
        for location, node, side in self._large_images:
            message = (
                f"{_IMAGE.title}: {side:,} pixels a side; the limit is {MAX_SIDE_AMONG_MANY:,} with {count:,} images"
            )
            evidence.findings.defer(_IMAGE, location, message, node)


def _plain_content_weight(content: Any) -> int:
    """Return the weight of content without any flaw: the fast path.

    Returns `_NO_SUBSTANCE` if the content needs further checks.
    """
    if content.__class__ is not list:
        return _SUBSTANCE if content.__class__ is str and not _is_blank(content) else _NO_SUBSTANCE
    weight = _NO_SUBSTANCE
    for block in content:
        kind = block.get("type") if block.__class__ is dict else None
        if (
            kind == "tool_use"
            or (kind == "tool_result" and block.get("content").__class__ is str)
            or (kind == "text" and not _is_blank(block.get("text")))
        ):
            weight = _SUBSTANCE
        elif kind == "thinking" and _is_signed(block):
            weight = weight or _ONLY_REASONING
        else:
            return _NO_SUBSTANCE
    return weight


def _is_signed(block: dict[str, Any]) -> bool:
    signature, thinking = block.get("signature"), block.get("thinking")
    return isinstance(thinking, str) and isinstance(signature, str) and bool(signature)


def _content_weight(content: Any) -> int:
    """Return the weight of a record's content; invalid content is reported by another rule."""
    if content.__class__ is not list or not content:
        blank = isinstance(content, str) and _is_blank(content)
        return _NO_SUBSTANCE if blank else _SUBSTANCE
    weight = _NO_SUBSTANCE
    for block in content:
        fields = as_object(block) or {}
        kind = fields.get("type")
        if kind in ("thinking", "redacted_thinking"):
            weight = _ONLY_REASONING
        elif kind != "text" or not _is_blank(fields.get("text")):
            return _SUBSTANCE
    return weight


def _is_blank(text: Any) -> bool:
    return not isinstance(text, str) or not text or text.isspace()


ORPHAN_RESULT: Final = error_rule(
    "tools.orphan-result",
    "Tool result without a call",
    "Claude Code 2.1.200 and later drop the result; the API rejects the request of older versions. Run `steno "
    "repair SESSION` to remove it.",
    "The call was lost with a damaged line, compacted away, or is on another branch. The API rejects a result "
    "whose call is not in the previous message. Claude Code 2.1.200 and 2.1.325 drop such results; 2.1.42 and "
    "older send them. Repair removes the result from the chain.",
)
UNANSWERED: Final = error_rule(
    "tools.unanswered",
    "Tool call without a result",
    "Claude Code drops the call. Run `steno repair SESSION` to add a result that reports the interruption.",
    "Claude Code was killed while the tool ran, or the result was lost with a damaged line. The API rejects a "
    "request with an unanswered call, so Claude Code drops the call on resume, and the model does not see that "
    "it was made. Repair adds a result that states that no result was recorded.",
)
INTERRUPTED: Final = warning_rule(
    "tools.interrupted",
    "Session ends with an open tool call",
    "Claude Code 2.1.325 answers the call with an error; older versions drop it. No action is needed for a "
    "running session.",
    "The session ended or was killed while a tool ran. While a tool runs, every session looks like this. "
    "Claude Code 2.1.325 adds a result that states that the call was interrupted; older versions drop the "
    "call. Repair adds such a result.",
)
DUPLICATE_RESULT: Final = error_rule(
    "tools.duplicate-result",
    "Second result of a tool call",
    "Claude Code 2.1.200 and later send only the first; the API rejects the request of older versions. Run "
    "`steno repair SESSION` to remove the second.",
    "The API accepts one result per call. Claude Code 2.1.200 and 2.1.325 drop all but the first; 2.1.42 and "
    "older send all. Repair removes the second result from the chain.",
)
RESULT_BEFORE_USE: Final = warning_rule(
    "tools.result-before-use",
    "Tool result before its call",
    "Claude Code drops the result and the call. Run `steno repair SESSION` to move the result after its call.",
    "According to its parent, the result comes before the call that it answers, which the API rejects. Versions of "
    "Claude Code that drop results without a call drop this one, and then the call. Repair relinks the result "
    "to the call.",
)
RESULT_LATE: Final = error_rule(
    "tools.result-late",
    "Tool result after another response",
    "Claude Code 2.1.200 and later send an error instead of the result. Run `steno repair SESSION` to move the "
    "result after its call.",
    "The API requires results directly after the response with the call. If another response comes between, "
    "Claude Code 2.1.200 and 2.1.325 report the result as missing although it is in the file, and the API "
    "rejects the requests of 2.1.42 and older. The cause is a lost or wrong parent. Repair relinks the result "
    "to the call.",
)
INPUT: Final = error_rule(
    "tools.input",
    "Tool input is not an object",
    "The API rejects the request. Run `steno repair SESSION` to convert the input to an object.",
    "Claude Code sends the input of a call unchanged, and the API accepts only objects. Converters write it as "
    "text, and an interrupted response leaves an incomplete one. Repair parses text that contains an object, "
    "and wraps any other value in an object.",
)
DUPLICATE_USE: Final = error_rule(
    "tools.duplicate-use",
    "Duplicate tool call ID",
    "The API rejects the request. Run `steno repair SESSION` to give the second call a new ID.",
    "Tool call IDs are unique in a conversation. Gateways to other models that number calls from one, and "
    "copied turns or records, break this. Claude Code sends the IDs unchanged, and may match results with "
    "either call.",
)


class ToolRules(RuleFamily):
    """Pairing of tool calls and results: the API requires one result directly after each call."""

    rules = rules_in(globals(), "tools")

    @staticmethod
    def applies_to(kind: str, _shape: RecordShape | None) -> bool:
        """Return whether a record of this kind and shape is an answer."""
        return kind == "assistant"

    def on_record(self, view: RecordView, findings: Findings) -> None:
        """Check the input of tool calls."""
        if not view.node.uses:
            return
        content: Any = view.message.get("content") if view.message else None
        for block in content if content.__class__ is list else ():
            if block.__class__ is not dict or block.get("type") != "tool_use":
                continue
            if block.get("input").__class__ is not dict:
                flaw = "missing" if "input" not in block else "not an object"
                message = f"Input of call {block.get('id')!r} is {flaw}"
                findings.defer(INPUT, view.location, message, view.node.index)

    def on_end(self, evidence: Evidence) -> None:
        """Pair calls and results along the conversation."""
        pairs = evidence.graph.pairs
        if pairs.is_complete:
            return
        _add_findings(evidence, UNANSWERED, pairs.open, "Call {} has no result")
        _add_findings(evidence, INTERRUPTED, pairs.interrupted, "Call {} has no result yet")
        _add_findings(evidence, ORPHAN_RESULT, pairs.orphans, "Result of {} has no call")
        _add_findings(evidence, DUPLICATE_RESULT, pairs.repeated, "Call {} already has a result")
        _add_findings(evidence, RESULT_BEFORE_USE, pairs.early, "Result of {} comes before the call")
        _add_findings(evidence, RESULT_LATE, pairs.late, "Result of {} comes after another response")
        _add_findings(evidence, DUPLICATE_USE, pairs.reused, "An earlier call has the ID {}")


def _add_findings(evidence: Evidence, rule: Rule, blocks: tuple[ToolBlock, ...], template: str) -> None:
    for block in blocks:
        evidence.add_finding(rule, block.node, template.format(repr(block.id)))


_PLACEHOLDER: Final = info_rule(
    "usage.placeholder",
    "Placeholder for output tokens",
    "Claude Code 2.1.0 to 2.1.52 under-reported output tokens; the real count is higher. Estimate output from "
    "the text.",
    "While a response streams, its first output token count is a placeholder of a few tokens. Claude Code "
    "2.1.0 to 2.1.52 recorded that count and never the final one, with a `stop_reason` of null. Totals of such "
    "sessions are far too low; the other counts are correct. Reported once per file.",
)
_CONFLICT: Final = info_rule(
    "usage.conflict",
    "Decreasing usage within a response",
    "Use the highest count of each response, not the last or the sum.",
    "A response is recorded as several lines with the same `message.id`, each with the usage known at that "
    "time: equal or increasing. Decreasing counts mean that lines were changed, reordered or mixed from two "
    "responses. Claude Code is not affected; token totals differ between readers.",
)

_FIRST_VERSION: Final = (2, 1, 0)
_LAST_VERSION: Final = (2, 1, 52)
_FIGURES: Final = ("output_tokens", "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_all_figures: Final = itemgetter(*_FIGURES)
_INTEGER: Final = frozenset((int,))


class UsageRules(RuleFamily):
    """Token usage that is a placeholder or inconsistent."""

    rules = rules_in(globals(), "usage")

    def __init__(self) -> None:
        self._usage_by_response: dict[str, tuple[int, ...]] = {}
        self._conflicting: set[str] = set()
        self._versions: dict[str, bool] = {}
        self._is_reported = False

    @staticmethod
    def applies_to(kind: str, _shape: RecordShape | None) -> bool:
        """Return whether a record of this kind and shape is an answer."""
        return kind == "assistant"

    def on_record(self, view: RecordView, findings: Findings) -> None:
        """Compare the usage of a record with the earlier records of its response."""
        node = view.node
        if not node.has_message or node.model == SYNTHETIC:
            return
        message = view.message or {}
        usage: Any = message.get("usage")
        if usage.__class__ is not dict:
            return
        if not self._is_reported and message.get("stop_reason") is None:
            self._is_reported = self._is_placeholder(node.version)
            if self._is_reported:
                message_text = f"{_PLACEHOLDER.title} (Claude Code {node.version})"
                findings.add(_PLACEHOLDER, view.location, message_text)
        if node.message_id is not None:
            self._compare(node.message_id, usage, view, findings)

    def _is_placeholder(self, version: str) -> bool:
        if version not in self._versions:
            self._versions[version] = _FIRST_VERSION <= version_key(version) <= _LAST_VERSION
        return self._versions[version]

    def _compare(self, name: str, usage: dict[str, Any], view: RecordView, findings: Findings) -> None:
        figures = _figures(usage)
        before = self._usage_by_response.get(name)
        if before == figures:
            return
        if not _INTEGER.issuperset(map(type, figures)):
            figures = tuple(map(_number, figures))
        self._usage_by_response[name] = figures
        if before is None or name in self._conflicting:
            return
        for key, old, new in zip(_FIGURES, before, figures, strict=True):
            if new < old:
                self._conflicting.add(name)
                findings.add(_CONFLICT, view.location, f"{key} of {name} decreases from {old:,} to {new:,}")
                return


def _figures(usage: dict[str, Any]) -> tuple[Any, ...]:
    try:
        return _all_figures(usage)
    except KeyError:
        return tuple(map(usage.get, _FIGURES))


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0
