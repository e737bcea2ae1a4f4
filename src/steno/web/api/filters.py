"""Filters that several endpoints share: projects and times."""

from msgspec import UnsetType

from steno.errors import BadRequest
from steno.index.opened import Index
from steno.report import clock
from steno.report.usage.wanted import fits
from steno.web.tags import tag_of

_SECOND = 1000


def projects_matching(index: Index, text: str | UnsetType) -> tuple[str, ...] | None:
    """Return the projects with that id or path, or else those whose path contains it.

    None stands for all projects.
    """
    if not isinstance(text, str):
        return None
    rows = index.connection.execute("SELECT DISTINCT project FROM sessions")
    paths = [path for (path,) in rows]
    exact = [path for path in paths if path and text in (path, tag_of(path))]
    return tuple(exact or [path for path in paths if fits(path, text, "")])


def start_of(name: str, text: str | UnsetType, now: float) -> int | None:
    """Return the first moment of a time in milliseconds.

    Raises:
        BadRequest: it means no time; the message names the parameter.
    """
    return None if not isinstance(text, str) else _moment(name, text, now)[0]


def end_of(name: str, text: str | UnsetType, now: float) -> int | None:
    """Return the first moment behind a time in milliseconds; a day is meant to its end.

    Raises:
        BadRequest: it means no time; the message names the parameter.
    """
    return None if not isinstance(text, str) else _moment(name, text, now)[1]


def _moment(name: str, text: str, now: float) -> tuple[int, int]:
    try:
        first, behind = clock.meant(text, now)
    except BadRequest as error:
        raise BadRequest(f"{name}: {error}", hint=error.hint) from error
    return round(first * _SECOND), round(behind * _SECOND)


def iso(milliseconds: int | None) -> str | None:
    """Return a time in ISO 8601."""
    return clock.iso(None if milliseconds is None else milliseconds / _SECOND)
