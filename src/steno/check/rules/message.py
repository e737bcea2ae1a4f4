"""Messages: blocks the API would refuse, content clients drop, lines under a wrong response id.

Repair uses the same functions to find the response of a line where `message.id` does not say.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from steno.check.evidence import Evidence, RecordShape, RecordView
from steno.check.findings import Findings, Location, Rule
from steno.check.record_graph import RecordGraph
from steno.format.lenient_json import as_list, as_object, describe_value
from steno.format.records import ROLES
from steno.session.resume.api_rules import KNOWN_BLOCKS, MANY_IMAGES, MAX_SIDE_AMONG_MANY, image_flaw
from steno.session.transcript import Node

_Run = list[Node]
_COMMAND: Final = "local_command"


def unnamed_responses(conversation: Iterable[Node]) -> list[tuple[_Run, str]]:
    """Return lines that name a model but no message, with the name they should have, if known.

    Clients take all such lines for one response. A single response of that kind does no harm; two
    are merged into one, and a line among lines that have a name is torn from its response.
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

    What is pulled in beside the way goes by its name, so a wrong one brings it to a wrong place:
    where something is wrong, the way is looked at first, and then what hangs on a call of another
    response. Where nothing seems to be, the way tells only of names that come back, as results
    may have been brought behind them; results that are missing from it prove nothing.
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

    A response is written without a break but for the results of its own calls. A line between two
    lines of one response, or behind a call whose result is still to come, belongs to it; a
    name that comes back after another response of the same turn is not its own. In another turn
    it may come back: clients do not mind. But a prompt right behind results begins none: clients
    make one message of them. And no response goes on behind a command of the user's.
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


_EMPTY_TEXT: Final = Rule(
    "message.empty-text",
    "error",
    "a text is empty",
    "the API refuses empty text; `steno repair` takes the block out",
    "The API refuses a request with a text block that is empty or blank. 2.1.325 leaves out an "
    "answer that holds nothing else and merges its neighbours, so the conversation is not what it "
    "was; in a message of the user the block is sent as it is. A blank line of an answer that says "
    "more is common and harmless: the clients leave it out. Repair takes the block out.",
)
_ROLE: Final = Rule(
    "message.role",
    "info",
    "the role of a message is not its record's type",
    "harmless: the clients go by the record's type",
    "`message.role` says again what `type` says. The clients go by the type and do not need the "
    "role; readers that look into the message alone take it for somebody else's.",
)
_UNSIGNED: Final = Rule(
    "message.unsigned-thinking",
    "error",
    "thinking has no signature",
    "the API refuses it when it is sent again; `steno repair` takes the block out",
    "The API signs its reasoning and wants the signature back. Sessions recorded through another "
    "provider, or edited, have thinking without one, or with something else than text there. Every "
    "client sends the block again as it is, and the API refuses the request. Repair takes the block "
    "out. Whether a signature fits its thinking only the API can tell.",
)
_THINKING_ONLY: Final = Rule(
    "message.thinking-only",
    "warning",
    "a response is nothing but thinking",
    "the client drops it; nothing that was said is lost",
    "The response was interrupted, or its other lines were lost. The API does not take a message "
    "that ends in thinking, so 2.1.325 drops the response, and what stands before and behind it "
    "is merged.",
)
_IMAGE: Final = Rule(
    "message.image",
    "error",
    "an image cannot be sent",
    "the API refuses every request with it; `steno repair` puts a note in its place",
    "The API takes PNG, JPEG, GIF and WebP as base64, up to 5 MB and 8,000 pixels a side, 2,000 "
    "when a request holds more than 20 images. The media type must be that of the bytes. An image "
    "beyond that stays in the conversation, so every later request fails in the same way. Repair "
    "puts a line of text in its place.",
)
_UNKNOWN_BLOCK: Final = Rule(
    "message.unknown-block",
    "error",
    "a block is of a kind the API does not know",
    "clients pass it on and the API refuses it; `steno repair` takes it out",
    "Every client sends a block of an unknown type to the API unchanged, and the API refuses the "
    "request. Such blocks come from other programs, or from features that are not part of the "
    "format. A block that is no object at all is refused as well. Repair takes it out.",
)
_NO_ID: Final = Rule(
    "message.no-id",
    "error",
    "responses without an id are merged into one",
    "the clients reorder the conversation; `steno repair` gives every response its id",
    "The lines of one response are told by `message.id`. Every client takes all lines without one "
    "for the same response, and puts their words and calls together, out of order. Only lines that "
    "name no model either are kept apart, by 2.1.200 and newer. One such response alone is "
    "harmless. Repair gives each response an id of its own.",
)
_MIXED: Final = Rule(
    "message.mixed",
    "error",
    "lines of two responses are mixed",
    "clients lose results there; `steno repair` takes the lines for one response",
    "A response is written without a break but for the results of its own calls. Two clients at "
    "work on one session write theirs into each other, and a damaged `message.id` does the same. "
    "The newest client then finds no result behind the call and sends an error in its place, though "
    "the result is in the file. Repair gives the lines the name of the response they stand in, and "
    "takes out thinking that was signed for the other.",
)
_NO_CONTENT: Final = Rule(
    "message.no-content",
    "error",
    "a message has no content",
    "2.1.325 leaves it out, older clients fail; `steno repair` takes it out of the chain",
    "`message.content` is missing, null or empty, or neither text nor a list of blocks. 2.1.325 "
    "passes over the record and joins its neighbours; clients up to 2.1.200 fail when they come to "
    "it.",
)
_NOT_A_MESSAGE: Final = Rule(
    "message.not-a-message",
    "error",
    "`message` is no object",
    "no client takes the record in",
    "The record of a user or an assistant holds the API's message as an object, with `role` and "
    "`content`. The newest client leaves out a record that has anything else there.",
)
RULES: Final[tuple[Rule, ...]] = (
    _EMPTY_TEXT,
    _ROLE,
    _UNSIGNED,
    _THINKING_ONLY,
    _IMAGE,
    _UNKNOWN_BLOCK,
    _NO_ID,
    _MIXED,
    _NO_CONTENT,
    _NOT_A_MESSAGE,
)

# What a line adds to its response: the clients drop a response that is not substantial.
_NO_SUBSTANCE: Final = 0
_ONLY_REASONING: Final = 1
_SUBSTANCE: Final = 2


def applies_to(kind: str, _shape: RecordShape | None) -> bool:
    """Say whether such a record is a message."""
    return kind in ROLES


class FileChecker:
    """Looks into every message of one file."""

    def __init__(self) -> None:
        self._unnamed: list[tuple[Location, int]] = []
        self._substantial: set[str] = set()
        """The names of responses that say something."""
        self._thinking_only: dict[str, tuple[Location, int]] = {}
        self._blank_lines: list[tuple[Location, int, str]] = []
        self._images: list[int] = []
        self._large_images: list[tuple[Location, int, int]] = []

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
