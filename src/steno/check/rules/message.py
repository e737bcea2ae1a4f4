"""What messages hold: blocks the API would refuse, and shapes the clients drop or merge."""

from typing import Any, Final

from steno.check.evidence import Evidence
from steno.check.findings import Findings, Place, Rule
from steno.check.plain import Shape
from steno.check.responses import misnamed, nameless
from steno.check.seen import Seen
from steno.format.values import as_list, as_object, shown
from steno.session.nodes import ROLES
from steno.session.resume.images import MANY_IMAGES, MAX_SIDE_OF_MANY, image_flaw
from steno.session.resume.rules import KNOWN_BLOCKS

__all__ = ["RULES", "Watch", "wants"]

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
_NOTHING: Final = 0
_REASONING: Final = 1
_SUBSTANCE: Final = 2


def wants(kind: str, _shape: Shape | None) -> bool:
    """Say whether such a record is a message."""
    return kind in ROLES


class Watch:
    """Looks into every message of one file."""

    def __init__(self) -> None:
        self._nameless: list[tuple[Place, int]] = []
        self._substantial: set[str] = set()
        """The names of responses that say something."""
        self._hollow: dict[str, tuple[Place, int]] = {}
        self._blank: list[tuple[Place, int, str]] = []
        self._images: list[int] = []
        self._big: list[tuple[Place, int, int]] = []

    def on_record(self, seen: Seen, findings: Findings) -> None:
        """Look at one message and its blocks."""
        message = seen.message
        if message is None:
            if "message" in seen.fields:
                findings.defer(_NOT_A_MESSAGE, seen.place, _NOT_A_MESSAGE.title, seen.node.index)
            return
        kind, role, content = seen.node.type, message.get("role"), message.get("content")
        if role != kind:
            findings.add(_ROLE, seen.place, f"the role {shown(role)} is not {kind!r}")
        plain = _plain_weight(content)
        if kind == "assistant":
            weight = plain or _weight(content)
            # Nearly every line; the others are followed closer.
            if weight == _SUBSTANCE and seen.node.message_id:
                self._substantial.add(seen.node.message_id)
            else:
                self._follow_response(seen, weight)
            if weight == _NOTHING:
                return
        if not plain:
            self._look_closer(content, seen, findings)

    def _follow_response(self, seen: Seen, weight: int) -> None:
        """Remember what can only be judged once all lines of a response were read."""
        node = seen.node
        if node.message_id is None:
            self._nameless.append((seen.place, node.index))
        name = node.message_id or node.uuid or ""
        if weight == _SUBSTANCE:
            self._substantial.add(name)
        elif weight == _REASONING:
            self._hollow.setdefault(name, (seen.place, node.index))
        else:
            self._blank.append((seen.place, node.index, name))

    def _look_closer(self, content: Any, seen: Seen, findings: Findings) -> None:
        blocks = as_list(content)
        if blocks:
            for block in blocks:
                self._look_at(block, seen, findings)
        else:
            rule = _EMPTY_TEXT if isinstance(content, str) else _NO_CONTENT
            findings.defer(rule, seen.place, rule.title, seen.node.index)

    def _look_at(self, item: Any, seen: Seen, findings: Findings, *, within: str = "") -> None:
        block = as_object(item) or {}
        kind = block.get("type")
        flaw: Rule | None = None
        said = ""
        if kind == "text":
            flaw = _EMPTY_TEXT if _is_blank(block.get("text")) else None
        elif kind == "tool_result" and not within:
            for inner in as_list(block.get("content")) or ():
                self._look_at(inner, seen, findings, within=" in a tool result")
        elif kind == "thinking":
            flaw = None if _is_signed(block) else _UNSIGNED
        elif kind == "image":
            said = self._look_at_image(block.get("source"), seen)
            flaw = _IMAGE if said else None
        elif kind is None:
            flaw = _UNKNOWN_BLOCK
            said = "no type" if isinstance(item, dict) else "no object"
        elif not isinstance(kind, str) or kind not in KNOWN_BLOCKS:
            flaw, said = _UNKNOWN_BLOCK, shown(kind)
        if flaw is not None:
            message = f"{flaw.title}{within}: {said}" if said else f"{flaw.title}{within}"
            findings.defer(flaw, seen.place, message, seen.node.index)

    def _look_at_image(self, source: Any, seen: Seen) -> str:
        flaw, side = image_flaw(source)
        self._images.append(seen.node.index)
        if side > MAX_SIDE_OF_MANY and not flaw:
            self._big.append((seen.place, seen.node.index, side))
        return flaw

    def look(self, evidence: Evidence) -> None:
        """Judge what only the whole file tells."""
        findings = evidence.findings
        for name, (place, node) in self._hollow.items():
            if name not in self._substantial:
                findings.defer(_THINKING_ONLY, place, _THINKING_ONLY.title, node)
        for place, node, name in self._blank:
            if name not in self._substantial and name not in self._hollow:
                findings.defer(_EMPTY_TEXT, place, "an answer is nothing but empty text", node)
            else:
                findings.add(_EMPTY_TEXT, place, mild=True)
        if self._nameless:
            self._look_at_nameless(evidence)
        for each, _ in misnamed(evidence.graph):
            evidence.note(_MIXED, each)
        if self._big and len(self._images) > MANY_IMAGES:
            self._look_at_big(evidence)

    def _look_at_nameless(self, evidence: Evidence) -> None:
        merged = [run for run, _ in nameless(evidence.graph.conversation)]
        harmed = {node.index for run in merged for node in run}
        for place, node in self._nameless:
            if node in harmed:
                evidence.findings.add(_NO_ID, place, f"{_NO_ID.title}: {len(merged):,} here")
            else:
                evidence.findings.add(_NO_ID, place, "a response without an id", mild=True)

    def _look_at_big(self, evidence: Evidence) -> None:
        sent = {node.index for node in evidence.graph.conversation}
        count = sum(node in sent for node in self._images)
        if count <= MANY_IMAGES:
            return
        for place, node, side in self._big:
            message = (
                f"{_IMAGE.title}: {side:,} pixels a side, {MAX_SIDE_OF_MANY:,} allowed among "
                f"{count:,} images"
            )
            evidence.findings.defer(_IMAGE, place, message, node)


def _plain_weight(content: Any) -> int:
    """Return how much content says that nothing can be wrong with, as nearly all of it is.

    Nothing, where that takes a closer look.
    """
    if content.__class__ is not list:
        return _SUBSTANCE if content.__class__ is str and not _is_blank(content) else _NOTHING
    weight = _NOTHING
    for block in content:
        kind = block.get("type") if block.__class__ is dict else None
        if (
            kind == "tool_use"
            or (kind == "tool_result" and block.get("content").__class__ is str)
            or (kind == "text" and not _is_blank(block.get("text")))
        ):
            weight = _SUBSTANCE
        elif kind == "thinking" and _is_signed(block):
            weight = weight or _REASONING
        else:
            return _NOTHING
    return weight


def _is_signed(block: dict[str, Any]) -> bool:
    signature, said = block.get("signature"), block.get("thinking")
    return isinstance(said, str) and isinstance(signature, str) and bool(signature)


def _weight(content: Any) -> int:
    """Return how much a line says; content that is neither text nor blocks is another rule's."""
    if content.__class__ is not list or not content:
        blank = isinstance(content, str) and _is_blank(content)
        return _NOTHING if blank else _SUBSTANCE
    weight = _NOTHING
    for block in content:
        fields = as_object(block) or {}
        kind = fields.get("type")
        if kind in ("thinking", "redacted_thinking"):
            weight = _REASONING
        elif kind != "text" or not _is_blank(fields.get("text")):
            return _SUBSTANCE
    return weight


def _is_blank(text: Any) -> bool:
    return not isinstance(text, str) or not text or text.isspace()
