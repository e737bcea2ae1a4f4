"""Query parameters of the endpoints: types, parsing, cursors of paged lists, shared filters."""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b
from typing import Annotated, Any, Final, Literal, TypeAlias, TypeVar
from urllib.parse import parse_qsl

import msgspec
from msgspec import UNSET, Meta, UnsetType

from steno.errors import BadRequest
from steno.format.records import Dialect
from steno.index.database import SessionIndex
from steno.report import clock
from steno.report.humanize import MS_PER_SECOND
from steno.report.usage.usage_query import Grouping, matches_project
from steno.web.urls import path_tag

_MAX_LENGTH: Final = 2_000
_MAX_NAME: Final = 300
_MAX_PAIRS: Final = 100
_DIGITS: Final = re.compile(r"-?[0-9]{1,17}")
_FIELD: Final = re.compile(r" - at `\$\.(\w+)`$")
_MOMENT_DOC: Final = (
    "A date (2026-11-07), a time (2026-11-07T12:00:00Z), a relative time (7d, 3h), `today` or `yesterday`."
)
_FEATURES: Final = (*("failed", "agents", "compacted", "abandoned", "archived", "pr", "answered", "damaged"),)
_VALUE_HINTS: Final = {
    "since": _MOMENT_DOC,
    "until": _MOMENT_DOC,
    "cursor": "Omit it to get the first page.",
    "has": f"One or more of {', '.join(_FEATURES)}, separated by commas.",
}
"""Hints for parameters that must match a pattern."""
_MAX_SHOWN: Final = 40
_BOOLEANS: Final = {"true": True, "false": False}

Text: TypeAlias = Annotated[str, Meta(max_length=_MAX_LENGTH)]
Natural: TypeAlias = Annotated[int, Meta(ge=0, le=1_000_000_000)]
Positive: TypeAlias = Annotated[int, Meta(ge=1, le=1_000_000_000)]
Name: TypeAlias = Annotated[str, Meta(min_length=1, max_length=_MAX_NAME)]
Moment: TypeAlias = Annotated[
    str,
    Meta(
        max_length=_MAX_NAME,
        pattern=r"^(today|yesterday|[0-9]{1,6}[mhdw]"
        r"|(19[7-9][0-9]|[2-9][0-9]{3})-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
        r"(T([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,6})?)?(Z|[+-][01][0-9]:[0-5][0-9])?)?)$",
        examples=["2026-11-07"],
    ),
]
Cursor: TypeAlias = Annotated[
    str,
    Meta(
        max_length=_MAX_LENGTH,
        pattern="^[A-Za-z0-9_-]+$",
        description="`next_cursor` of the previous page. The other parameters must not change, except `limit`.",
    ),
]
Limit: TypeAlias = Annotated[int, Meta(ge=1, le=500, description="Items per page.")]
Project: TypeAlias = Annotated[
    str,
    Meta(min_length=1, max_length=_MAX_LENGTH, description="A project ID or full path; otherwise a part of the path."),
]
Agent: TypeAlias = Annotated[
    str, Meta(min_length=1, max_length=_MAX_NAME, description="The ID of a sub-agent of the session.")
]
Has: TypeAlias = Annotated[
    str,
    Meta(
        pattern=f"^({'|'.join(_FEATURES)})(,({'|'.join(_FEATURES)}))*$",
        description="Required features, separated by commas: `failed` steps, sub-agents (`agents`), "
        "compactions (`compacted`), `abandoned` branches, no file on disk (`archived`), a pull "
        "request (`pr`), an assistant message (`answered`), damage found by the check (`damaged`).",
        examples=["failed,agents"],
    ),
]
_P = TypeVar("_P", bound="Parameters")


class Parameters(msgspec.Struct, frozen=True, kw_only=True):
    """Base class of all parameter types, without parameters."""


class Paged(Parameters, frozen=True, kw_only=True):
    """The parameters of every paged list."""

    limit: Limit = 50
    cursor: Cursor | UnsetType = UNSET


class SessionParameters(Paged, frozen=True, kw_only=True):
    """Filters of the session list, combined with AND."""

    q: Annotated[Text | UnsetType, Meta(description="Words in the title, case-insensitive.")] = UNSET
    project: Project | UnsetType = UNSET
    branch: Annotated[Name | UnsetType, Meta(description="The git branch.")] = UNSET
    model: Annotated[Name | UnsetType, Meta(description="The last model used.")] = UNSET
    status: Annotated[
        Literal["running", "waiting", "finished", "interrupted", "failed", "empty"] | UnsetType,
        Meta(description="The `status` of the session."),
    ] = UNSET
    live: Annotated[bool | UnsetType, Meta(description="Whether the session is `live`.")] = UNSET
    since: Annotated[Moment | UnsetType, Meta(description=f"Only sessions active since this time. {_MOMENT_DOC}")] = (
        UNSET
    )
    until: Annotated[
        Moment | UnsetType,
        Meta(description=f"Only sessions last active until this time; a date includes the whole day. {_MOMENT_DOC}"),
    ] = UNSET
    size: Annotated[
        Literal["small", "medium", "large", "huge"] | UnsetType,
        Meta(description="Under 100 KB, under 1 MB, under 10 MB, larger."),
    ] = UNSET
    has: Has | UnsetType = UNSET
    min_turns: Annotated[Natural | UnsetType, Meta(description="Minimum number of turns.")] = UNSET
    min_steps: Annotated[
        Natural | UnsetType, Meta(description="Minimum number of user and assistant records (lines of `steps.jsonl`).")
    ] = UNSET
    listed: Annotated[bool, Meta(description="Hide short sessions, as `steno ls --listed` does.")] = False
    dialect: Annotated[
        Dialect | UnsetType, Meta(description="The dialect of the file; `claude` is the format of Claude Code.")
    ] = UNSET
    sort: Annotated[
        Literal["newest", "oldest", "longest", "turns", "largest", "added"],
        Meta(
            description="Sort by last activity, duration, turns, size, or time added to the index. "
            "Only the order of `added` is stable."
        ),
    ] = "newest"


class TurnParameters(Paged, frozen=True, kw_only=True):
    """Parameters of the turn list."""

    agent: Agent | UnsetType = UNSET


class SearchParameters(Paged, frozen=True, kw_only=True):
    """Parameters of the search."""

    q: Annotated[str, Meta(min_length=1, max_length=_MAX_LENGTH, description="A query in steno's search syntax.")]
    project: Annotated[Name | UnsetType, Meta(description="Part of the project path, as with `project:` in `q`.")] = (
        UNSET
    )
    session: Annotated[
        Name | UnsetType, Meta(description="The `key` of a session: search only in it and its sub-agents.")
    ] = UNSET
    since: Annotated[Moment | UnsetType, Meta(description=f"Only messages since this time. {_MOMENT_DOC}")] = UNSET
    until: Annotated[
        Moment | UnsetType,
        Meta(description=f"Only messages until this time; a date includes the whole day. {_MOMENT_DOC}"),
    ] = UNSET
    order: Literal["newest", "oldest", "rank"] = "newest"


class UsageParameters(Parameters, frozen=True, kw_only=True):
    """Parameters of the usage report."""

    by: Annotated[Grouping, Meta(description="The grouping of the rows.")] = "day"
    since: Annotated[Moment | UnsetType, Meta(description=f"Start of the period. {_MOMENT_DOC}")] = UNSET
    until: Annotated[
        Moment | UnsetType, Meta(description=f"End of the period; a date includes the whole day. {_MOMENT_DOC}")
    ] = UNSET
    project: Annotated[
        Name | UnsetType, Meta(description="Part of the project path, as with `steno usage --project`.")
    ] = UNSET
    limit: Annotated[Positive | UnsetType, Meta(description="Maximum number of rows; all by default.")] = UNSET


class FileParameters(Paged, frozen=True, kw_only=True):
    """Parameters of the file list."""

    q: Annotated[Text | UnsetType, Meta(description="Words in the path, case-insensitive.")] = UNSET
    project: Project | UnsetType = UNSET
    changed: Annotated[bool, Meta(description="Only changed files.")] = False
    since: Annotated[Moment | UnsetType, Meta(description=f"Only activity since this time. {_MOMENT_DOC}")] = UNSET
    sort: Annotated[
        Literal["last", "edits", "reads", "lines", "sessions", "path"],
        Meta(description="Sort order: highest first; `path` alphabetically."),
    ] = "last"


class TaskParameters(Paged, frozen=True, kw_only=True):
    """Parameters of the task list."""

    status: Annotated[Literal["running", "completed"] | UnsetType, Meta(description="The `status` of the task.")] = (
        UNSET
    )
    project: Project | UnsetType = UNSET
    everything: Annotated[bool, Meta(description="Include short sessions, which are hidden by default.")] = False


def parse_parameters(query: bytes, kind: type[_P]) -> _P:
    """Return the parameters of a query.

    Raises:
        BadRequest: A parameter is unknown, repeated, missing or invalid; the message names it.
    """
    fields = {field.name: field for field in msgspec.structs.fields(kind)}
    values: dict[str, Any] = {}
    for name, value in _pairs(query):
        if name not in fields:
            known_names = ", ".join(fields) or "none"
            raise BadRequest(f"unknown parameter: {_shortened(name)}", hint=f"Known parameters: {known_names}")
        if name in values:
            raise BadRequest(f"{name}: given more than once", hint="Give each parameter once.")
        values[name] = _parse_value(name, value, _schemas(kind)[name].get("type", "string"))
    missing = [name for name, field in fields.items() if field.required and name not in values]
    if missing:
        raise BadRequest(f"{missing[0]}: required parameter is missing", hint="")
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        raise _parameter_error(str(error), values, kind) from error


def _pairs(query: bytes) -> Iterable[tuple[str, str]]:
    try:
        # As in HTML forms, `+` is a space. Invalid UTF-8 is rejected.
        return parse_qsl(query.decode("ascii"), keep_blank_values=True, max_num_fields=_MAX_PAIRS, errors="strict")
    except ValueError as error:
        raise BadRequest("invalid query string", hint="Encode it as UTF-8.") from error


@lru_cache(maxsize=64)
def _schemas(kind: type[Parameters]) -> dict[str, dict[str, Any]]:
    """Return the JSON schema of each parameter."""
    properties: dict[str, dict[str, Any]] = msgspec.json.schema_components((kind,))[1][kind.__name__]["properties"]
    return properties


def _parse_value(name: str, value: str, kind: str) -> bool | int | str:
    if kind == "boolean":
        if value not in _BOOLEANS:
            raise BadRequest(f"{name}: not a boolean: {_shortened(value)}", hint="Use true or false.")
        return _BOOLEANS[value]
    if kind == "integer":
        if _DIGITS.fullmatch(value) is None:
            raise BadRequest(f"{name}: not an integer: {_shortened(value)}", hint="")
        return int(value)
    if "\0" in value:
        raise BadRequest(f"{name}: contains a NUL character", hint="")
    return value


def _parameter_error(message: str, values: dict[str, Any], kind: type[Parameters]) -> BadRequest:
    """Return an error that names the parameter and its valid values."""
    match = _FIELD.search(message)
    if match is None:
        return BadRequest(message, hint="")
    name = match[1]
    schema = _schemas(kind)[name]
    value = _shortened(str(values[name]))
    if "enum" in schema:
        return BadRequest(f"{name}: invalid value: {value}", hint=_one_of(schema["enum"]))
    if "pattern" in schema:
        return BadRequest(f"{name}: invalid value: {value}", hint=_VALUE_HINTS.get(name, ""))
    if schema.get("type") == "integer":
        low, high = schema.get("minimum", ""), schema.get("maximum", "")
        limits = f"Use a value from {low} to {high}." if high else f"Use a value of at least {low}."
        return BadRequest(f"{name}: out of range: {value}", hint=limits)
    if len(str(values[name])) > schema.get("maxLength", _MAX_LENGTH):
        return BadRequest(f"{name}: too long", hint=f"Use at most {schema['maxLength']:,} characters.")
    return BadRequest(f"{name}: must not be empty", hint="")


def _shortened(value: str) -> str:
    return repr(value if len(value) <= _MAX_SHOWN else f"{value[:_MAX_SHOWN]}…")


def _one_of(values: Iterable[str]) -> str:
    return f"One of {', '.join(values)}."


_PAGING_PARAMETERS: Final = ("cursor", "limit")
FIRST_PAGE: Final = "Omit it to get the first page."
_INTEGER_LIMIT: Final = 1 << 63


class _Cursor(msgspec.Struct, frozen=True, array_like=True):
    digest: str
    position: list[int | str]


def make_cursor(path: str, parameters: Paged, *position: int | str) -> str:
    """Return the cursor of the page that follows a position in the list."""
    packed = msgspec.json.encode(_Cursor(_parameters_digest(path, parameters), list(position)))
    return urlsafe_b64encode(packed).decode().rstrip("=")


def read_cursor(path: str, parameters: Paged, length: int) -> list[Any] | None:
    """Return the list position in a cursor, which has `length` parts; None without a cursor.

    Raises:
        BadRequest: The cursor is invalid, or belongs to other parameters.
    """
    text = parameters.cursor
    if not isinstance(text, str):
        return None
    try:
        packed = urlsafe_b64decode(text + "=" * (-len(text) % 4))
        cursor = msgspec.json.decode(packed, type=_Cursor)
    except (ValueError, msgspec.MsgspecError) as error:
        raise invalid_cursor() from error
    if cursor.digest != _parameters_digest(path, parameters):
        raise BadRequest("cursor: created with different parameters", hint=FIRST_PAGE)
    if len(cursor.position) != length or not all(map(_is_valid_part, cursor.position)):
        raise invalid_cursor()
    return cursor.position


def invalid_cursor() -> BadRequest:
    """Return the error for a cursor that the API did not create."""
    return BadRequest("cursor: not a cursor of this API", hint=FIRST_PAGE)


def require_integers(position: list[Any]) -> list[int]:
    """Return the parts of a position, which must be integers.

    Raises:
        BadRequest: A part is not an integer.
    """
    if not all(isinstance(part, int) for part in position):
        raise invalid_cursor()
    return position


def _is_valid_part(part: int | str) -> bool:
    return isinstance(part, str) or -_INTEGER_LIMIT <= part < _INTEGER_LIMIT


def _parameters_digest(path: str, parameters: Paged) -> str:
    """Return a digest of the path and the filters of a list; a cursor is only valid for the same digest."""
    values = msgspec.to_builtins(parameters)
    filters = [(name, value) for name, value in sorted(values.items()) if name not in _PAGING_PARAMETERS]
    return blake2b(msgspec.json.encode([path, filters]), digest_size=8).hexdigest()


def projects_matching(index: SessionIndex, text: str | UnsetType) -> tuple[str, ...] | None:
    """Return the projects whose ID or path equals the text, else those whose path contains it.

    Return None for all projects.
    """
    if not isinstance(text, str):
        return None
    rows = index.connection.execute("SELECT DISTINCT project FROM sessions")
    paths = [path for (path,) in rows]
    exact = [path for path in paths if path and text in (path, path_tag(path))]
    return tuple(exact or [path for path in paths if matches_project(path, text, "")])


def period_start(name: str, text: str | UnsetType, now: float) -> int | None:
    """Return the start of a period in milliseconds.

    Raises:
        BadRequest: The time is invalid; the message names the parameter.
    """
    return None if not isinstance(text, str) else _parse_period(name, text, now)[0]


def period_end(name: str, text: str | UnsetType, now: float) -> int | None:
    """Return the exclusive end of a period in milliseconds; for a date, the end of that day.

    Raises:
        BadRequest: The time is invalid; the message names the parameter.
    """
    return None if not isinstance(text, str) else _parse_period(name, text, now)[1]


def _parse_period(name: str, text: str, now: float) -> tuple[int, int]:
    try:
        first, end = clock.parse_time_range(text, now)
    except BadRequest as error:
        raise BadRequest(f"{name}: {error}", hint=error.hint) from error
    return round(first * MS_PER_SECOND), round(end * MS_PER_SECOND)
