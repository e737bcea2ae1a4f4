"""Responses about files."""

from typing import Annotated, Literal

from msgspec import Meta

from steno.web.api.models.base import Count, Cursor, Model, Timestamp


class File(Model, frozen=True, kw_only=True):
    """A file that sessions read or changed."""

    id: Annotated[str, Meta(description="Names the file in `/api/v1/files/{tag}`.")]
    path: str
    reads: Count
    edits: Count
    added: Annotated[int, Meta(ge=0, description="Lines.")]
    removed: Annotated[int, Meta(ge=0, description="Lines.")]
    sessions: Count
    last: Timestamp | None


class FileList(Model, frozen=True, kw_only=True):
    """A page of files."""

    files: list[File]
    total: Count
    next_cursor: Cursor | None


class FileSession(Model, frozen=True, kw_only=True):
    """A session that read or changed a file."""

    key: str
    id: str
    title: str
    versions: Annotated[int, Meta(ge=0, description="How many versions of the file it made.")]
    last: Timestamp | None


class FileVersion(Model, frozen=True, kw_only=True):
    """A version of a file."""

    name: Annotated[str, Meta(description="Stays the same when versions are added.")]
    verb: Literal["write", "edit", "read", "outside", "command"]
    tool: str
    known: Annotated[
        Literal["exact", "derived", "partial", "unknown"],
        Meta(description="How the text at that time is known."),
    ]
    added: Count
    removed: Count
    note: str
    same_as: Annotated[str | None, Meta(description="The version with the same text.")]
    command: str | None
    changed_nothing: bool
    session: Annotated[str, Meta(description="The key of the session.")]
    agent: str | None
    turn: Count
    offset: Count
    time: Timestamp | None
    abandoned: bool
    copies: Count
    prompt: str


class FileHistory(Model, frozen=True, kw_only=True):
    """A file, its sessions and its versions."""

    id: str
    path: str
    project: str
    unreadable: Annotated[
        int, Meta(ge=0, description="Versions whose sessions are gone and not archived.")
    ]
    sessions: list[FileSession]
    versions: Annotated[list[FileVersion], Meta(description="Oldest first.")]
    total: Annotated[int, Meta(ge=0, description="How many versions there are.")]
    next_cursor: Cursor | None
