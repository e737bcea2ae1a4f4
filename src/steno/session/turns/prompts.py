"""Prompts: which user records people wrote and which the client wrote; queued prompts; session titles.

Newer clients record the origin (`origin.kind`, `promptSource`, `isMeta`); otherwise the tags that
the client puts around its own text decide. Newer clients write a queued prompt into the
conversation when it is taken up; older ones only remove it from the queue, so that the queue record
is the only trace of it.
"""

import re
from collections import OrderedDict, deque
from collections.abc import Callable, Container, Iterable, Iterator
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

import msgspec

from steno.format.lenient_json import DECODE_ERRORS, decode_lenient, decode_or_default, fill_struct
from steno.format.message import (
    Block,
    Document,
    Image,
    RecordFields,
    Text,
    ToolResult,
    UnknownBlock,
    projection,
    read_blocks,
)
from steno.format.records import Record
from steno.session.transcript import Node, Transcript

Origin: TypeAlias = Literal[
    "human",
    "command",
    "shell",
    "queued",
    "notification",
    "teammate",
    "summary",
    "agent",
    "fork",
    "meta",
    "output",
    "hook",
    "interrupt",
    "result",
    "other",
]
"""Where the words of a user record come from.

human         typed, or given to `-p`
command       a slash command
shell         a shell command typed behind `!`
queued        typed while the agent was busy, taken up inside the running turn
notification  a background task that reports
teammate      another agent of a team
summary       the summary a compaction left
agent         the prompt a sub-agent was given
fork          the prompt a forked agent was given
meta          the client itself
output        what a local command or shell command printed
hook          a hook of an old client
interrupt     the mark an interruption leaves
result        tool results
other         a kind this version does not know
"""

TURN_ORIGINS: Final = frozenset(("human", "command", "shell", "notification", "teammate", "agent", "fork", "other"))
"""Origins that begin a turn."""
PERSON_ORIGINS: Final = frozenset(("human", "command", "shell", "queued"))
WARMUP_PROMPT: Final = "Warmup"
"""What 2.0 asks of the idle agents that it starts with every session."""
CONDITIONAL_ORIGINS: Final = frozenset(("command", "summary", "notification", "fork"))
"""Origins that make a turn only when the model answers."""

# The rules for what a turn is. Whatever counts or builds turns calls these.


def is_tentative(origin: Origin | None, *, answered: bool) -> bool:
    """Whether a turn counts only if the model answers it, and the model has not done so yet."""
    return not answered and (origin is None or origin in CONDITIONAL_ORIGINS)


def begins_turn(origin: Origin, *, tentative: bool = False) -> bool:
    """Whether a user record begins a turn, where the turn before it is `tentative` or not."""
    return origin in TURN_ORIGINS or (origin == "summary" and tentative)


def takes_turn_over(*, tentative: bool, first: bool, after_compaction: bool) -> bool:
    """Whether a prompt becomes the prompt of the current turn instead of beginning the next one."""
    return tentative and (first or after_compaction)


def is_unprompted(origin: Origin | None, *, after_compaction: bool) -> bool:
    """Whether an answer now continues the turn before the compaction."""
    return after_compaction and origin in (None, "summary")


_TAGS: Final[tuple[tuple[str, Origin], ...]] = (
    ("<command-name>", "command"),
    ("<command-message>", "command"),
    ("<bash-input>", "shell"),
    ("<bash-stdout>", "output"),
    ("<bash-stderr>", "output"),
    ("<local-command-stdout>", "output"),
    ("<local-command-stderr>", "output"),
    ("<local-command-caveat>", "meta"),
    ("<task-notification>\n<fork-source>", "fork"),
    ("<task-notification>", "notification"),
    ("<teammate-message", "teammate"),
    ("<session-start-hook>", "hook"),
    ("<user-prompt-submit-hook>", "hook"),
    ("<pre-tool-use-hook>", "hook"),
    ("<post-tool-use-hook>", "hook"),
    ("Stop hook feedback:", "hook"),
    ("[Request interrupted by user", "interrupt"),
    ("This session is being continued from a previous conversation", "summary"),
)
_TAG_STARTS: Final = tuple(tag for tag, _ in _TAGS)
_ORIGINS_BY_KIND: Final[dict[str, Origin]] = {
    "human": "human",
    "task-notification": "notification",
    "teammate": "teammate",
    "teammate-message": "teammate",
    "agent": "agent",
    "fork": "fork",
}
_REMINDER: Final = re.compile(r"\s*<system-reminder>.*?</system-reminder>\s*", re.DOTALL)
_SUMMARY_TYPES: Final = frozenset(("compact_recap", "compact_prelude"))


class Prompt(msgspec.Struct, frozen=True):
    """What a turn begins with."""

    text: str
    """The words as a person would say them: tags taken off, reminders left out."""
    origin: Origin
    node: Node
    images: int = 0
    time: datetime | None = None
    name: str = ""
    """The command, teammate or task it names."""

    @property
    def by_person(self) -> bool:
        """Whether a person said it."""
        return self.origin in PERSON_ORIGINS


class _OriginKind(msgspec.Struct):
    kind: str | None = None


@projection("prompt_source")
class _PromptSource(RecordFields):
    pass


def origin_of(record: Record, *, agent: bool = False) -> Origin:
    """Return where the words of a user record come from; `agent` when it is a sub-agent's."""
    if any(map(_is_result, record.blocks)):
        return "result"
    envelope = record.envelope
    if envelope.is_compact_summary or record.type in _SUMMARY_TYPES:
        return "summary"
    if envelope.is_meta:
        return "meta"
    text = prompt_text(record)
    by_tag = origin_by_tag(text)
    if by_tag is not None:
        return by_tag
    if not text and not _count_images(record) and record.text:
        return "meta"
    return "agent" if agent else _recorded_origin(record)


def _is_result(block: Block) -> bool:
    """Whether a block is a tool's result, also one with a value that no result may have."""
    return isinstance(block, ToolResult) or (isinstance(block, UnknownBlock) and block.type == "tool_result")


def origin_by_tag(text: str) -> Origin | None:
    """Return the origin that the beginning of a text gives away."""
    start = text.lstrip()[:80]
    if not start.startswith(_TAG_STARTS):
        return None
    return next(origin for tag, origin in _TAGS if start.startswith(tag))


def prompt_text(record: Record) -> str:
    """Return the words of a user record without the reminders the client put in."""
    parts = [block.text for block in record.blocks if isinstance(block, Text)]
    if any("<system-reminder>" in part for part in parts):
        parts = [_without_reminders(part) for part in parts]
    return "\n\n".join(part for part in parts if part)


def _without_reminders(text: str) -> str:
    end = 0
    while (match := _REMINDER.match(text, end)) is not None:
        end = match.end()
    return text[end:]


def _recorded_origin(record: Record) -> Origin:
    """Return what the record itself says about its origin; silence means a person."""
    origin = record.envelope.origin
    if kind := decode_or_default(origin, _OriginKind).kind:
        return _ORIGINS_BY_KIND.get(kind, "other")
    if b'"promptSource"' not in record.line:
        return "human"
    source = decode_or_default(record.line, _PromptSource).prompt_source
    return "other" if source == "system" else "human"


def _count_images(record: Record) -> int:
    return sum(isinstance(block, Image | Document) for block in record.blocks)


def read_prompt(record: Record, node: Node, origin: Origin) -> Prompt:
    """Return a user record as the prompt of a turn."""
    name, text = _strip_tags(prompt_text(record), origin)
    return Prompt(text, origin, node, _count_images(record), record.time, name)


def _strip_tags(text: str, origin: Origin) -> tuple[str, str]:
    match origin:
        case "command":
            name = tag_content(text, "command-name") or f"/{tag_content(text, 'command-message')}"
            return name, f"{name} {tag_content(text, 'command-args')}".strip()
        case "shell":
            return "", tag_content(text, "bash-input")
        case "notification":
            return tag_content(text, "task-id"), tag_content(text, "summary") or text
        case "teammate":
            match = re.search(r'teammate_id="([^"]*)"', text[:400])
            return (match[1] if match else ""), tag_content(text, "teammate-message") or text
        case _:
            return "", text


def typed_command(text: str) -> str:
    """Return a slash command or a shell command of the user as it was typed; "" for other texts.

    >>> typed_command("<command-name>/tag</command-name><command-args>v1</command-args>")
    '/tag v1'
    """
    if "<command-name>" in text or "<command-message>" in text:
        return _strip_tags(text, "command")[1]
    return _strip_tags(text, "shell")[1] if "<bash-input>" in text else ""


def tag_content(text: str, tag: str) -> str:
    """Return what stands between a tag and its end.

    >>> tag_content("<task-id>b7</task-id>", "task-id")
    'b7'
    """
    start = text.find(f"<{tag}")
    tag_end = text.find(">", start)
    if start < 0 or tag_end < 0:
        return ""
    end = text.find(f"</{tag}>", tag_end)
    return text[tag_end + 1 : end if end >= 0 else len(text)].strip()


_QUEUED_TYPE: Final = b'"queued_command"'


class _QueuedAttachment(msgspec.Struct):
    type: str = ""
    prompt: Any = None


class _Queue:
    """Prompts in the order they came, from which the first or a certain one can be taken."""

    def __init__(self) -> None:
        self._items: OrderedDict[int, tuple[str, Node]] = OrderedDict()
        self._by_text: dict[str, deque[int]] = {}

    def __bool__(self) -> bool:
        return bool(self._items)

    def add(self, text: str, node: Node) -> None:
        """Put one at the end."""
        self._items[node.index] = text, node
        self._by_text.setdefault(text, deque()).append(node.index)

    def pop(self, text: str | None = None) -> tuple[str, Node]:
        """Take out the first one with that text, or the first of all."""
        same_text = self._by_text.get(text, ()) if text is not None else ()
        while same_text:
            index = same_text.popleft()
            # It may have been taken as the first of all.
            if index in self._items:
                return self._items.pop(index)
        return self._items.popitem(last=False)[1]


def unrecorded_queued_prompts(transcript: Transcript) -> list[Node]:
    """Return the queue records of prompts that were taken up and are written nowhere else."""
    queue = _Queue()
    removed: list[tuple[str, Node]] = []
    for node in transcript.of_type("queue-operation"):
        envelope = transcript.record(node).envelope
        content = decode_lenient(envelope.content) if envelope.content else None
        text = content if isinstance(content, str) else ""
        match envelope.operation:
            case "enqueue":
                queue.add(text, node)
            case "popAll":
                queue = _Queue()
            case "dequeue" if queue:
                queue.pop()
            case "remove" if queue:
                removed.append(queue.pop(text))
            case _:
                continue
    if not removed:
        return []
    recorded = _recorded_queued_prompts(transcript)
    return [node for text, node in removed if text and text not in recorded]


def _recorded_queued_prompts(transcript: Transcript) -> set[str]:
    texts: set[str] = set()
    for node in transcript.of_type("attachment"):
        if _QUEUED_TYPE not in transcript.source.read(node.offset, node.length):
            continue
        raw = transcript.record(node).envelope.attachment
        try:
            data = msgspec.json.decode(raw, type=_QueuedAttachment)
        except DECODE_ERRORS:
            continue
        blocks = read_blocks(data.prompt)
        texts.add("\n".join(block.text for block in blocks if isinstance(block, Text)))
    return texts


# Titles of sessions, by the rules of the client's own list: the user's own title comes first, then one
# the model made, then the summary (which old clients wrote into some later session of the project),
# then the last prompt, then the first one.

UNTITLED: Final = "(session)"
TitleSource: TypeAlias = Literal["custom", "ai", "summary", "last prompt", "first prompt", "none"]
_MAX_TITLE_LENGTH: Final = 200


class Title(msgspec.Struct, frozen=True):
    """A session's name, and where it comes from."""

    text: str = UNTITLED
    source: TitleSource = "none"

    @property
    def is_given(self) -> bool:
        """Whether somebody or something gave it; else it is a prompt."""
        return self.source in ("custom", "ai", "summary")

    def __str__(self) -> str:
        return self.text


@projection("custom_title ai_title last_prompt summary leaf_uuid")
class _TitleFields(RecordFields):
    """The fields of the records that may name a session."""


_TITLE_DECODER: Final = msgspec.json.Decoder(_TitleFields)


def choose_title(
    *, custom: str = "", ai: str = "", summary: str = "", last_prompt: str = "", first: str = "", command: str = ""
) -> Title:
    """Return the best of what there is; the first command only where there is no prompt.

    >>> choose_title(ai="Tide tables", first="fix it").text
    'Tide tables'
    """
    choices: tuple[tuple[str, TitleSource], ...] = (
        (custom, "custom"),
        (ai, "ai"),
        (summary, "summary"),
        (last_prompt, "last prompt"),
        (first, "first prompt"),
        (command, "first prompt"),
    )
    for text, source in choices:
        line = shorten_title(text)
        if line:
            return Title(line, source)
    return Title()


def shorten_title(text: str) -> str:
    """Return a text as one line, as long as lists and the index keep it."""
    return " ".join(text.lstrip()[: 4 * _MAX_TITLE_LENGTH].split())[:_MAX_TITLE_LENGTH].rstrip()


def title_of(
    transcript: Transcript, *, custom_title: str = "", summaries: Iterable[tuple[str, str]] = (), agent: bool = False
) -> Title:
    """Return the title of a session.

    `custom_title` is the text of its `custom-title.json`, `summaries` the pairs of leaf and
    summary found anywhere in the project.
    """
    custom = _last_field(transcript, "custom-title", "custom_title") or custom_title
    ai = "" if custom.strip() else _last_field(transcript, "ai-title", "ai_title")
    recorded_title = choose_title(custom=custom, ai=ai)
    if recorded_title.is_given:
        return recorded_title
    summary = summary_for(transcript.by_uuid, (*summaries_in(transcript), *summaries))
    last = _last_field(transcript, "last-prompt", "last_prompt", lambda text: not origin_by_tag(text))
    first = "" if summary or last.strip() else first_prompt(transcript, transcript.nodes, agent=agent)
    command = "" if summary or last.strip() or first or agent else first_command(transcript)
    return choose_title(summary=summary, last_prompt=last, first=first, command=command)


def summary_for(uuids: Container[str], summaries: Iterable[tuple[str, str]]) -> str:
    """Return the last summary whose leaf is one of those records."""
    last_summary = ""
    for leaf, summary in summaries:
        if leaf in uuids and summary.strip():
            last_summary = summary
    return last_summary


def summaries_in(transcript: Transcript) -> Iterator[tuple[str, str]]:
    """Yield the pairs of leaf and summary that a file holds, for whatever session they are."""
    for node in transcript.of_type("summary"):
        state = _decode_title_fields(transcript, node)
        yield state.leaf_uuid or "", state.summary or ""


def first_prompt(transcript: Transcript, nodes: Iterable[Node], *, agent: bool = False) -> str:
    """Return what was said first among some records; a sub-agent's words only if asked for."""
    for node in nodes:
        if node.type not in ("user", "human") or node.meta or node.results:
            continue
        if node.sidechain and not agent:
            continue
        record = transcript.record(node)
        text = prompt_text(record)
        if text.strip() and (agent or origin_of(record) == "human"):
            return text
    return ""


def first_command(transcript: Transcript) -> str:
    """Return the first command of the main conversation as it was typed, or ""."""
    for node in transcript.nodes:
        if node.type in ("user", "human") and not (node.meta or node.results or node.sidechain):
            record = transcript.record(node)
            if origin_of(record) in ("command", "shell"):
                return typed_command(prompt_text(record))
    return ""


def _last_field(transcript: Transcript, kind: str, field: str, condition: Callable[[str], bool] = bool) -> str:
    """Return a field of the last record of a kind that has it, and in which it fits."""
    for node in reversed(transcript.nodes):
        if node.type == kind:
            value: Any = getattr(_decode_title_fields(transcript, node), field)
            if value and condition(str(value)):
                return str(value)
    return ""


def _decode_title_fields(transcript: Transcript, node: Node) -> _TitleFields:
    record = transcript.record(node)
    try:
        return _TITLE_DECODER.decode(record.line)
    except DECODE_ERRORS:
        return fill_struct(_TitleFields, record.fields)
