"""Rules on messages: blocks, response ids, tool calls and token usage."""

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
    """Return lines that name a model but no message, with the name they should have, if known.

    Clients take all such lines for one response. A single response of that kind does no harm; two are merged into one,
    and a line among lines that have a name is torn from its response.
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
    """Return lines under the name of another response, with the name they should have, if known.

    What is pulled in beside the way goes by its name, so a wrong one brings it to a wrong place: where something is
    wrong, the way is looked at first, and then what hangs on a call of another response. Where nothing seems to be, the
    way tells only of names that come back, as results may have been brought behind them; results that are missing from
    it prove nothing.
    """
    in_chain = _misnamed_in(graph.conversation)
    if len(graph.parent_chain) == len(graph.chain):
        return in_chain
    on_parent_chain = _misnamed_in([node for node in graph.parent_chain if node.index in graph.sent])
    if not in_chain:
        return [(node, name) for node, name in on_parent_chain if not name]
    return on_parent_chain or _lines_below_other_calls(graph) or in_chain


def _lines_below_other_calls(graph: RecordGraph) -> list[tuple[Node, str]]:
    """Return lines that hang on a call of another response, and so belong to that."""
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
    """Return the misnamed lines of a conversation as it stands.

    A response is written without a break but for the results of its own calls. A line between two lines of one
    response, or behind a call whose result is still to come, belongs to it; a name that comes back after another
    response of the same turn is not its own. In another turn it may come back: clients do not mind. But a prompt right
    behind results begins none: clients make one message of them. And no response goes on behind a command of the
    user's.
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
    """Yield the answers between the user's messages, and by what these begin something new."""
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
    """Return `prompt`, `command`, or nothing where a response may go on."""
    if any(node.results for node in user_records):
        return "command" if any(node.subtype == _COMMAND for node in user_records) else ""
    return "prompt" if user_records else ""


_EMPTY_TEXT: Final = error_rule(
    "message.empty-text",
    "a text is empty",
    "the API refuses empty text; `steno repair` takes the block out",
    "The API refuses a request with a text block that is empty or blank. 2.1.325 leaves out an "
    "answer that holds nothing else and merges its neighbours, so the conversation is not what it "
    "was; in a message of the user the block is sent as it is. A blank line of an answer that says "
    "more is common and harmless: the clients leave it out. Repair takes the block out.",
)
_ROLE: Final = info_rule(
    "message.role",
    "the role of a message is not its record's type",
    "harmless: the clients go by the record's type",
    "`message.role` says again what `type` says. The clients go by the type and do not need the "
    "role; readers that look into the message alone take it for somebody else's.",
)
_UNSIGNED: Final = error_rule(
    "message.unsigned-thinking",
    "thinking has no signature",
    "the API refuses it when it is sent again; `steno repair` takes the block out",
    "The API signs its reasoning and wants the signature back. Sessions recorded through another "
    "provider, or edited, have thinking without one, or with something else than text there. Every "
    "client sends the block again as it is, and the API refuses the request. Repair takes the block "
    "out. Whether a signature fits its thinking only the API can tell.",
)
_THINKING_ONLY: Final = warning_rule(
    "message.thinking-only",
    "a response is nothing but thinking",
    "the client drops it; nothing that was said is lost",
    "The response was interrupted, or its other lines were lost. The API does not take a message that ends in "
    "thinking, so 2.1.325 drops the response, and what stands before and behind it is merged.",
)
_IMAGE: Final = error_rule(
    "message.image",
    "an image cannot be sent",
    "the API refuses every request with it; `steno repair` puts a note in its place",
    "The API takes PNG, JPEG, GIF and WebP as base64, up to 5 MB and 8,000 pixels a side, 2,000 when a request holds "
    "more than 20 images. The media type must be that of the bytes. An image beyond that stays in the conversation, "
    "so every later request fails in the same way. Repair puts a line of text in its place.",
)
_UNKNOWN_BLOCK: Final = error_rule(
    "message.unknown-block",
    "a block is of a kind the API does not know",
    "clients pass it on and the API refuses it; `steno repair` takes it out",
    "Every client sends a block of an unknown type to the API unchanged, and the API refuses the "
    "request. Such blocks come from other programs, or from features that are not part of the "
    "format. A block that is no object at all is refused as well. Repair takes it out.",
)
_NO_ID: Final = error_rule(
    "message.no-id",
    "responses without an id are merged into one",
    "the clients reorder the conversation; `steno repair` gives every response its id",
    "The lines of one response are told by `message.id`. Every client takes all lines without one for the same "
    "response, and puts their words and calls together, out of order. Only lines that name no model either are kept "
    "apart, by 2.1.200 and newer. One such response alone is harmless. Repair gives each response an id of its own.",
)
_MIXED: Final = error_rule(
    "message.mixed",
    "lines of two responses are mixed",
    "clients lose results there; `steno repair` takes the lines for one response",
    "A response is written without a break but for the results of its own calls. Two clients at work on one session "
    "write theirs into each other, and a damaged `message.id` does the same. The newest client then finds no result "
    "behind the call and sends an error in its place, though the result is in the file. Repair gives the lines the "
    "name of the response they stand in, and takes out thinking that was signed for the other.",
)
_NO_CONTENT: Final = error_rule(
    "message.no-content",
    "a message has no content",
    "2.1.325 leaves it out, older clients fail; `steno repair` takes it out of the chain",
    "`message.content` is missing, null or empty, or neither text nor a list of blocks. 2.1.325 passes over the "
    "record and joins its neighbours; clients up to 2.1.200 fail when they come to it.",
)
_NOT_A_MESSAGE: Final = error_rule(
    "message.not-a-message",
    "`message` is no object",
    "no client takes the record in",
    "The record of a user or an assistant holds the API's message as an object, with `role` and "
    "`content`. The newest client leaves out a record that has anything else there.",
)

# What a line adds to its response: the clients drop a response that is not substantial.
_NO_SUBSTANCE: Final = 0
_ONLY_REASONING: Final = 1
_SUBSTANCE: Final = 2


class MessageRules(RuleFamily):
    """Messages: blocks the API would refuse, content clients drop, lines under a wrong response id."""

    rules = rules_in(globals(), "message")

    def __init__(self) -> None:
        self._unnamed: list[tuple[Location, int]] = []
        self._substantial: set[str] = set()
        """The names of responses that say something."""
        self._thinking_only: dict[str, tuple[Location, int]] = {}
        self._blank_lines: list[tuple[Location, int, str]] = []
        self._images: list[int] = []
        self._large_images: list[tuple[Location, int, int]] = []

    @staticmethod
    def applies_to(kind: str, _shape: RecordShape | None) -> bool:
        """Say whether such a record is a message."""
        return kind in ROLES

    def on_record(self, view: RecordView, findings: Findings) -> None:
        """Look at one message and its blocks."""
        message = view.message
        if message is None:
            if "message" in view.fields:
                findings.defer(_NOT_A_MESSAGE, view.location, _NOT_A_MESSAGE.title, view.node.index)
            return
        kind, role, content = view.node.type, message.get("role"), message.get("content")
        if role != kind:
            findings.add(_ROLE, view.location, f"the role {describe_value(role)} is not {kind!r}")
        plain = _plain_content_weight(content)
        if kind == "assistant":
            weight = plain or _content_weight(content)
            # Nearly every line; the others are followed closer.
            if weight == _SUBSTANCE and view.node.message_id:
                self._substantial.add(view.node.message_id)
            else:
                self._follow_response(view, weight)
            if weight == _NO_SUBSTANCE:
                return
        if not plain:
            self._check_blocks(content, view, findings)

    def _follow_response(self, view: RecordView, weight: int) -> None:
        """Remember what can only be judged once all lines of a response were read."""
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
            detail = "no type" if isinstance(item, dict) else "no object"
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
        """Judge what only the whole file tells."""
        findings = evidence.findings
        for name, (location, node) in self._thinking_only.items():
            if name not in self._substantial:
                findings.defer(_THINKING_ONLY, location, _THINKING_ONLY.title, node)
        for location, node, name in self._blank_lines:
            if name not in self._substantial and name not in self._thinking_only:
                findings.defer(_EMPTY_TEXT, location, "an answer is nothing but empty text", node)
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
                evidence.findings.add(_NO_ID, location, f"{_NO_ID.title}: {len(merged):,} here")
            else:
                evidence.findings.add(_NO_ID, location, "a response without an id", mild=True)

    def _check_large_images(self, evidence: Evidence) -> None:
        sent = {node.index for node in evidence.graph.conversation}
        count = sum(node in sent for node in self._images)
        if count <= MANY_IMAGES:
            return
        for location, node, side in self._large_images:
            message = f"{_IMAGE.title}: {side:,} pixels a side, {MAX_SIDE_AMONG_MANY:,} allowed among {count:,} images"
            evidence.findings.defer(_IMAGE, location, message, node)


def _plain_content_weight(content: Any) -> int:
    """Return how much content says that nothing can be wrong with, as nearly all of it is.

    Nothing, where that takes a closer look.
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
    """Return how much a line says; content that is neither text nor blocks is another rule's."""
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
    "a tool result belongs to no call of the conversation",
    "2.1.200 and newer leave it out, older clients send it and the API refuses; `steno repair` leaves it out",
    "The call was lost with a damaged line, compacted away, or lies on another branch. The API "
    "refuses a request with a result whose call is not in the message before. 2.1.200 and 2.1.325 "
    "leave such results out, 2.1.42 and older send them. Repair takes the record off the chain.",
)
UNANSWERED: Final = error_rule(
    "tools.unanswered",
    "a tool call has no result, and the conversation went on",
    "clients leave the call out; `steno repair` adds a result that says so",
    "The client was killed while the tool ran, or the result was lost with a damaged line. The API refuses a request "
    "with an unanswered call, so every client leaves the call out on resume, and the model does not know that it was "
    "made. Repair adds a result that says that none was recorded.",
)
INTERRUPTED: Final = warning_rule(
    "tools.interrupted",
    "the session ends in a tool call without a result",
    "2.1.325 answers it with an error, older clients leave it out; a running session looks the same",
    "The session ended, or was killed, while a tool ran; while a client is at work every session "
    "looks like this for a moment. 2.1.325 writes a result that says that the call was "
    "interrupted. Older clients leave the call out. Repair adds such a result.",
)
DUPLICATE_RESULT: Final = error_rule(
    "tools.duplicate-result",
    "a tool call has a second result",
    "2.1.200 and newer send the first only, older clients both and the API refuses; `steno repair` leaves it out",
    "The API takes one result per call. 2.1.200 and 2.1.325 leave out all but the first, 2.1.42 "
    "and older send them all. Repair takes the second record off the chain.",
)
RESULT_BEFORE_USE: Final = warning_rule(
    "tools.result-before-use",
    "a tool result stands before its call",
    "clients have to guess; `steno repair` puts it behind the call",
    "By its parents the result comes before the call it answers, which the API refuses. Clients that leave out "
    "results without a call leave this one out, and with it the call. Repair hangs the result on the call.",
)
RESULT_LATE: Final = error_rule(
    "tools.result-late",
    "a tool result stands behind another response",
    "2.1.200 and newer send an error in its place; `steno repair` puts it behind the call",
    "The API wants results right behind the response that called. Where another response comes between, 2.1.200 and "
    "2.1.325 say that the result is missing, though it is in the file, and 2.1.42 and older send what the API "
    "refuses. A lost or wrong parent does this. Repair hangs the result on the call.",
)
INPUT: Final = error_rule(
    "tools.input",
    "the input of a tool call is no object",
    "the API refuses the request; `steno repair` puts an object in its place",
    "Clients pass the input of a call on as it is, and the API refuses anything but an object. "
    "Converters write it as text, and a response that was cut off leaves half of it. Repair reads "
    "the object out of text that holds one, and keeps any other value inside an object.",
)
DUPLICATE_USE: Final = error_rule(
    "tools.duplicate-use",
    "two tool calls have one id",
    "the API refuses the request; `steno repair` gives the second an id of its own",
    "Ids of tool calls are unique in a conversation. Gateways to other models that count them from one, and copied "
    "turns or lines, break this. Clients send them as they are, and match results with either call.",
)


class ToolRules(RuleFamily):
    """Tool calls and their results: the API requires one result directly after each call."""

    rules = rules_in(globals(), "tools")

    @staticmethod
    def applies_to(kind: str, _shape: RecordShape | None) -> bool:
        """Say whether such a record is an answer."""
        return kind == "assistant"

    def on_record(self, view: RecordView, findings: Findings) -> None:
        """Look at the input of calls."""
        if not view.node.uses:
            return
        content: Any = view.message.get("content") if view.message else None
        for block in content if content.__class__ is list else ():
            if block.__class__ is not dict or block.get("type") != "tool_use":
                continue
            if block.get("input").__class__ is not dict:
                flaw = "missing" if "input" not in block else "no object"
                message = f"the input of call {block.get('id')!r} is {flaw}"
                findings.defer(INPUT, view.location, message, view.node.index)

    def on_end(self, evidence: Evidence) -> None:
        """Pair calls and results along the conversation."""
        pairs = evidence.graph.pairs
        if pairs.is_complete:
            return
        _add_findings(evidence, UNANSWERED, pairs.open, "call {} has no result")
        _add_findings(evidence, INTERRUPTED, pairs.interrupted, "call {} has no result yet")
        _add_findings(evidence, ORPHAN_RESULT, pairs.orphans, "the result of {} has no call")
        _add_findings(evidence, DUPLICATE_RESULT, pairs.repeated, "call {} has a result already")
        _add_findings(evidence, RESULT_BEFORE_USE, pairs.early, "the result of {} stands before the call")
        _add_findings(evidence, RESULT_LATE, pairs.late, "the result of {} stands behind another response")
        _add_findings(evidence, DUPLICATE_USE, pairs.reused, "an earlier call has the id {}")


def _add_findings(evidence: Evidence, rule: Rule, blocks: tuple[ToolBlock, ...], template: str) -> None:
    for block in blocks:
        evidence.add_finding(rule, block.node, template.format(repr(block.id)))


_PLACEHOLDER: Final = info_rule(
    "usage.placeholder",
    "output tokens are a placeholder",
    "clients from 2.1.0 to 2.1.52 did not write the final figure; estimate the output from the text",
    "While a response streams in, its first figure for output tokens is a placeholder of a few tokens. Clients from "
    "2.1.0 to 2.1.52 wrote that figure and never the final one, with a `stop_reason` of null. Sums over such sessions "
    "come out far too low; the other figures are right. It is said once per file.",
)
_CONFLICT: Final = info_rule(
    "usage.conflict",
    "the lines of one response have figures that do not grow",
    "count the highest figure of a response, not the last one or the sum",
    "A response is written as several lines with one `message.id`, each with the figures as they "
    "were known by then: the same, or growing. Figures that fall mean that lines were changed, "
    "reordered or mixed from two responses. No client minds; sums of tokens differ by reader.",
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
        """Say whether such a record is an answer."""
        return kind == "assistant"

    def on_record(self, view: RecordView, findings: Findings) -> None:
        """Compare the figures of a line with those of the same response before it."""
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
                message_text = f"{_PLACEHOLDER.title} in sessions of {node.version}"
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
                findings.add(_CONFLICT, view.location, f"{key} of {name} fall from {old:,} to {new:,}")
                return


def _figures(usage: dict[str, Any]) -> tuple[Any, ...]:
    try:
        return _all_figures(usage)
    except KeyError:
        return tuple(map(usage.get, _FIGURES))


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0
