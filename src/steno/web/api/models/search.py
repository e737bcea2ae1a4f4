"""Responses of the search."""

from typing import Annotated, Literal

from msgspec import Meta

from steno.web.api.models.base import Count, Cursor, Model, Timestamp


class TextRange(Model, frozen=True, kw_only=True):
    """A range of a text, in Unicode code points; `end` is exclusive."""

    start: Count
    end: Count


class Excerpt(Model, frozen=True, kw_only=True):
    """A part of a text around a match. Plain text, never HTML."""

    text: str
    matches: list[TextRange]
    starts_text: Annotated[bool, Meta(description="Whether nothing precedes it.")]
    ends_text: Annotated[bool, Meta(description="Whether nothing follows it.")]


class Hit(Model, frozen=True, kw_only=True):
    """A message in which all words were found."""

    session: Annotated[str, Meta(description="The key of the session.")]
    session_id: str
    title: str
    project: str
    agent: Annotated[str | None, Meta(description="The sub-agent whose message it is.")]
    turn: Annotated[int, Meta(ge=0, description="0 for what precedes the first prompt.")]
    uuid: str | None
    offset: Annotated[int, Meta(ge=0, description="Of the record in its file, in bytes.")]
    time: Timestamp | None
    kind: Annotated[
        str | None,
        Meta(description="prompt, answer, thinking, input, output, note, title or summary."),
    ]
    tool: str | None
    failed: bool
    excerpt: Annotated[
        Excerpt | None, Meta(description="Null where the text cannot be read any more.")
    ]
    lost: Annotated[
        Literal["gone", "changed"] | None, Meta(description="Why the text cannot be read.")
    ]
    archived: Annotated[bool, Meta(description="Whether it was read from the archive.")]


class SearchResult(Model, frozen=True, kw_only=True):
    """A page of hits."""

    query: str
    hits: list[Hit]
    total: Annotated[int, Meta(ge=0, description="How many messages were found.")]
    sessions: Annotated[int, Meta(ge=0, description="In how many sessions.")]
    inside_words: Annotated[
        bool, Meta(description="Whether a word was searched inside longer words.")
    ]
    ignored: Annotated[list[str], Meta(description="Words that cannot be searched.")]
    next_cursor: Cursor | None
