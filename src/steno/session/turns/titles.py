"""The title of a session, by the rules of the client's own list.

The user's own title comes first, then one the model made, then the summary (which old clients wrote
into some later session of the project), then the last prompt, then the first one.
"""

from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any, Final, Literal, TypeAlias

import msgspec

from steno.format.lenient_json import DECODE_ERRORS, fill_struct
from steno.format.message import RecordFields, projection
from steno.session.transcript import Node, Transcript
from steno.session.turns.prompts import origin_by_tag, origin_of, prompt_text, typed_command

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
