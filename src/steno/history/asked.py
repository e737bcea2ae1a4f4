"""What each question takes. The schema that a client sees is made from these."""

from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar

import msgspec
from msgspec import Meta

from steno.errors import BadRequest

__all__ = ["Asked", "Brief", "Files", "Search", "Show", "Usage", "asked", "schema"]

_Text: TypeAlias = Annotated[str, Meta(max_length=2_000)]
_Name: TypeAlias = Annotated[str, Meta(max_length=1_000)]
_Page: TypeAlias = Annotated[
    int,
    Meta(ge=1, le=10_000, description="Which page of the answer; the answer says if it goes on."),
]
_Session: TypeAlias = Annotated[
    _Name,
    Meta(
        description="A session: its id, the first letters of it, a title or part of one, or `last`."
    ),
]
_Project: TypeAlias = Annotated[_Name, Meta(description="Only projects whose path has this in it.")]
_Since: TypeAlias = Annotated[
    _Name, Meta(description="Only since then: 2026-11-07, 7d, 3h, yesterday.")
]
_Until: TypeAlias = Annotated[_Name, Meta(description="Only until then, that day included.")]


class Search(msgspec.Struct, forbid_unknown_fields=True):
    """Find words in prompts, answers, tool inputs and outputs of all recorded sessions.

    All words must stand in one message. `"a phrase"`, `auth*`, `this OR that`, `-without`; filters:
    `tool:Bash file:login.py in:prompt role:user has:error branch:main`. Newest sessions first. Each
    hit has a session, a turn and a record, for `show`.
    """

    query: Annotated[_Text, Meta(min_length=1, description="The words, with filters if wanted.")]
    project: _Project = ""
    since: _Since = ""
    until: _Until = ""
    rank: Annotated[bool, Meta(description="The best first instead of the newest.")] = False
    each: Annotated[int, Meta(ge=1, le=50, description="How many hits of each session.")] = 4
    page: _Page = 1


class Brief(msgspec.Struct, forbid_unknown_fields=True):
    """Tell sessions in brief: what was asked, done, decided, and what is left open.

    Of one session, or of the newest of a project or a time. Without anything: the newest session.
    """

    session: _Session = ""
    project: _Project = ""
    since: _Since = ""
    until: _Until = ""
    last: Annotated[int, Meta(ge=1, le=20, description="How many sessions, the newest.")] = 3
    budget: Annotated[int, Meta(ge=300, le=5_000, description="At most so many tokens.")] = 2_000


class Show(msgspec.Struct, forbid_unknown_fields=True):
    """Read a session: its turns; one turn with its steps; or one record in full.

    Without a session, the newest sessions are listed.
    """

    session: _Session = ""
    turn: Annotated[int, Meta(ge=0, description="This turn in full; 0 lists the turns.")] = 0
    record: Annotated[_Name, Meta(description="One record in full, by its id.")] = ""
    detail: Annotated[bool, Meta(description="With a turn: what each step was given and gave.")] = (
        False
    )
    project: _Project = ""
    page: _Page = 1


class Files(msgspec.Struct, forbid_unknown_fields=True):
    """Tell which files agents read and changed; or the versions of one file; or one version.

    With `path` and `version`, the text as it was then, or with `diff` what that version changed.
    """

    path: Annotated[_Name, Meta(description="A file by its whole path, for its versions.")] = ""
    version: Annotated[_Name, Meta(description="A version by its name, for its text.")] = ""
    diff: Annotated[bool, Meta(description="Of the version, only what it changed.")] = False
    words: Annotated[_Name, Meta(description="Only files whose path has these words in it.")] = ""
    changed: Annotated[bool, Meta(description="Only files that were changed.")] = False
    since: _Since = ""
    page: _Page = 1


class Usage(msgspec.Struct, forbid_unknown_fields=True):
    """Say how many tokens were used and what they cost, each response counted once."""

    by: Annotated[
        Literal["day", "week", "month", "session", "project", "model", "tool", "agent", "branch"],
        Meta(description="What the rows are."),
    ] = "day"
    project: _Project = ""
    since: _Since = ""
    until: _Until = ""
    page: _Page = 1


Asked: TypeAlias = Search | Brief | Show | Files | Usage
A = TypeVar("A", bound=msgspec.Struct)
_SAID: Final = 300


def asked(kind: type[A], arguments: dict[str, Any] | None) -> A:
    """Return what was asked for.

    Raises:
        BadRequest: it makes no sense; the message says what does not.
    """
    try:
        return msgspec.convert(arguments or {}, kind)
    except msgspec.ValidationError as error:
        raise BadRequest(str(error)[:_SAID]) from error


def schema(kind: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the JSON schema of a question's arguments."""
    made = msgspec.json.schema(kind)["$defs"][kind.__name__]
    return {key: value for key, value in made.items() if key not in ("title", "description")}
