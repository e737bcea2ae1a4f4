"""Everything known about the format, as data: kinds, fields, JSON types, versions.

The facts are in `catalogue.json`, one field per line, and are loaded on first use. The typed views (`record_views`) and
the format reference in the docs are generated from the same file, so a new version of Claude Code is one edit there.
The catalogue only describes: a kind or field that it does not contain is unknown, but not an error.
`truncate_catalogue` returns the catalogue as of an older version.

    types     the JSON types seen (`str num bool obj arr null`); empty if not recorded
    optional  not on every record of that kind, within the versions that have the field at all
    versions  the first and the last client version it was seen in
    claimed   reported by others about versions not examined here
    sub       the fields of an object
    items     the fields of the objects in an array; `of`: the types of its elements
    values    the fields of the objects in a map with free keys
    ref       described elsewhere: `blocks`, `usage` or `tools`
"""

import pkgutil
import re
from functools import cache
from typing import Final, Literal, TypeAlias, TypeVar

import msgspec

from steno.errors import BadRequest
from steno.format.lenient_json import DECODE_ERRORS
from steno.format.records import Dialect

JsonType: TypeAlias = Literal["str", "num", "bool", "obj", "arr", "null"]
Family: TypeAlias = Literal["graph", "side"]
Fields: TypeAlias = dict[str, "Field"]

_NUMBER: Final = re.compile("[0-9]{1,9}")
MCP_PREFIX: Final = "mcp__"
ANY_MCP: Final = "mcp__*"


class Field(msgspec.Struct, frozen=True, omit_defaults=True):
    """One field: its JSON types, whether it is optional, and its versions."""

    types: tuple[JsonType, ...]
    optional: bool = False
    versions: tuple[str, ...] = ()
    claimed: bool = False
    of: tuple[JsonType, ...] = ()
    ref: Literal["", "blocks", "tools", "usage"] = ""
    sub: Fields = {}
    items: Fields = {}
    values: Fields = {}

    def known_in(self, version: str) -> bool:
        """Return whether `version` is between the first and the last version with the field."""
        return _is_in_range(self.versions, version)


class KindEntry(msgspec.Struct, frozen=True):
    """A kind of record. `fields` does not include the envelope of its dialect."""

    name: str
    dialect: Dialect
    family: Family
    fields: Fields
    seen: tuple[str, ...] = ()
    claimed: bool = False


class BlockEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A kind of content block."""

    fields: Fields
    seen: tuple[str, ...] = ()
    claimed: bool = False


class ToolEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A tool: the fields of its input and of its `toolUseResult`.

    `result_types` are the types of the whole result: an object described by `result`, a string (mostly an error), an
    array (MCP).
    """

    input: Fields
    result: Fields
    result_types: tuple[JsonType, ...] = ()
    seen: tuple[str, ...] = ()


class ClientVersions(msgspec.Struct, frozen=True):
    """The client versions that the facts are based on.

    `driven` ran in scripted scenarios; `surveyed` is the range of versions in published sessions; `claimed` is the
    range reported by others; `known` lists every version seen.
    """

    driven: tuple[str, ...]
    surveyed: tuple[str, str]
    claimed: tuple[str, str]
    known: tuple[str, ...]


class _RecordEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    family: Family
    fields: Fields
    seen: tuple[str, ...] = ()
    claimed: bool = False


class _DialectEntry(msgspec.Struct, frozen=True):
    envelope: Fields
    records: dict[str, _RecordEntry]


class _CatalogueFile(msgspec.Struct, frozen=True):
    client_versions: ClientVersions
    envelope: Fields
    records: dict[str, _RecordEntry]
    dialects: dict[Dialect, _DialectEntry]
    blocks: dict[str, BlockEntry]
    usage: Fields
    tools: dict[str, ToolEntry]
    enums: dict[str, tuple[str, ...]]


class Catalogue(msgspec.Struct, frozen=True):
    """The loaded facts."""

    client_versions: ClientVersions
    envelopes: dict[Dialect, Fields]
    records: dict[Dialect, dict[str, KindEntry]]
    blocks: dict[str, BlockEntry]
    usage: Fields
    tools: dict[str, ToolEntry]
    enums: dict[str, tuple[str, ...]]

    def kind(self, name: str, dialect: Dialect | None = None) -> KindEntry | None:
        """Return a kind of one dialect; without one, Claude Code's own has precedence."""
        for entries in self._entries_of(dialect):
            if name in entries:
                return entries[name]
        return None

    def kinds(self, dialect: Dialect | None = None) -> tuple[KindEntry, ...]:
        """Return the kinds of one dialect, or of all, sorted by name within each."""
        return tuple(entry for entries in self._entries_of(dialect) for entry in entries.values())

    def fields(self, kind: KindEntry) -> Fields:
        """Return every known field of a kind: its own and, for graph records, those of the envelope."""
        if kind.family == "side":
            return kind.fields
        return {**self.envelopes[kind.dialect], **kind.fields}

    def block(self, name: str) -> BlockEntry | None:
        """Return a kind of content block."""
        return self.blocks.get(name)

    def tool(self, name: str) -> ToolEntry | None:
        """Return a tool; all tools of MCP servers share one entry."""
        return self.tools.get(ANY_MCP if name.startswith(MCP_PREFIX) else name)

    @property
    def newest(self) -> str:
        """The newest known client version, or an empty string."""
        return max(self.client_versions.known, key=version_key, default="")

    def as_of(self, version: str) -> "Catalogue":
        """Return the facts as of the time when `version` was the newest.

        Later kinds, fields, blocks and tools are removed. Types and listed values are not dated, so they stay.
        """
        return truncate_catalogue(self, version)

    def dump(self) -> bytes:
        """Return the JSON that `load_catalogue` reads, with keys in order."""
        return msgspec.json.format(msgspec.json.encode(_catalogue_file_of(self)), indent=2) + b"\n"

    def _entries_of(self, dialect: Dialect | None) -> tuple[dict[str, KindEntry], ...]:
        return tuple(self.records.values()) if dialect is None else (self.records[dialect],)


@cache
def catalogue() -> Catalogue:
    """Return the catalogue, loaded once from the package data."""
    return load_catalogue(pkgutil.get_data("steno.format", "catalogue.json") or b"")


def load_catalogue(content: bytes) -> Catalogue:
    """Return the catalogue from bytes in the format of `catalogue.json`.

    Raises:
        BadRequest: the bytes are not a catalogue.
    """
    try:
        return _catalogue_of(msgspec.json.decode(content, type=_CatalogueFile))
    except DECODE_ERRORS as error:
        raise BadRequest(f"not a catalogue: {error}") from error


def _catalogue_of(data: _CatalogueFile) -> Catalogue:
    records: dict[Dialect, dict[str, _RecordEntry]] = {"claude": data.records}
    envelopes: dict[Dialect, Fields] = {"claude": data.envelope}
    for dialect, published in data.dialects.items():
        records[dialect] = published.records
        envelopes[dialect] = published.envelope
    return Catalogue(
        client_versions=data.client_versions,
        envelopes=envelopes,
        records={dialect: _kind_entries(dialect, entries) for dialect, entries in records.items()},
        blocks=data.blocks,
        usage=data.usage,
        tools=data.tools,
        enums=data.enums,
    )


def _catalogue_file_of(facts: Catalogue) -> _CatalogueFile:
    records: dict[Dialect, dict[str, _RecordEntry]] = {
        dialect: {name: _RecordEntry(kind.family, kind.fields, kind.seen, kind.claimed) for name, kind in kinds.items()}
        for dialect, kinds in facts.records.items()
    }
    return _CatalogueFile(
        client_versions=facts.client_versions,
        envelope=facts.envelopes["claude"],
        records=records.pop("claude"),
        dialects={d: _DialectEntry(facts.envelopes[d], entries) for d, entries in records.items()},
        blocks=facts.blocks,
        usage=facts.usage,
        tools=facts.tools,
        enums=facts.enums,
    )


def version_key(version: str) -> tuple[int, ...]:
    """Return the sort key of a client version; a suffix after a dash is ignored.

    >>> version_key("2.1.9") < version_key("2.1.42") < version_key("2.1.325")
    True
    """
    return tuple(int(number) for number in _NUMBER.findall(version.partition("-")[0]))


def json_type(value: object) -> JsonType:
    """Return the catalogue's name for the type of a decoded JSON value."""
    match value:
        case None:
            return "null"
        case bool():
            return "bool"
        case int() | float():
            return "num"
        case str():
            return "str"
        case dict():
            return "obj"
        case _:
            return "arr"


def _kind_entries(dialect: Dialect, records: dict[str, _RecordEntry]) -> dict[str, KindEntry]:
    return {
        name: KindEntry(
            name=name,
            dialect=dialect,
            family=record.family,
            fields=record.fields,
            seen=record.seen,
            claimed=record.claimed,
        )
        for name, record in records.items()
    }


def _is_in_range(versions: tuple[str, ...], version: str) -> bool:
    if not versions:
        return True
    return version_key(versions[0]) <= version_key(version) <= version_key(versions[-1])


_Entry = TypeVar("_Entry", KindEntry, BlockEntry, ToolEntry)


def truncate_catalogue(facts: Catalogue, version: str) -> Catalogue:
    """Return the facts as of the time when `version` was the newest; published dialects stay."""
    return _CatalogueTruncation(facts.client_versions, version).catalogue(facts)


class _CatalogueTruncation:
    def __init__(self, versions: ClientVersions, version: str) -> None:
        self._limit = version_key(version)
        known = self._seen(versions.known)
        self._last = max(known, key=version_key, default=version)
        self._versions = ClientVersions(
            driven=self._seen(versions.driven),
            surveyed=(versions.surveyed[0], self._clamp(versions.surveyed[1])),
            claimed=versions.claimed,
            known=known,
        )

    def catalogue(self, facts: Catalogue) -> Catalogue:
        return Catalogue(
            client_versions=self._versions,
            envelopes={**facts.envelopes, "claude": self._fields(facts.envelopes["claude"])},
            records={**facts.records, "claude": self._entries(facts.records["claude"])},
            blocks=self._entries(facts.blocks),
            usage=self._fields(facts.usage),
            tools=self._entries(facts.tools),
            enums=facts.enums,
        )

    def _seen(self, versions: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(version for version in versions if version_key(version) <= self._limit)

    def _clamp(self, version: str) -> str:
        return min(version, self._last, key=version_key)

    def _fields(self, fields: Fields) -> Fields:
        return {
            name: msgspec.structs.replace(
                field,
                versions=tuple(self._clamp(version) for version in field.versions),
                sub=self._fields(field.sub),
                items=self._fields(field.items),
                values=self._fields(field.values),
            )
            for name, field in fields.items()
            if not field.versions or version_key(field.versions[0]) <= self._limit
        }

    def _entries(self, entries: dict[str, _Entry]) -> dict[str, _Entry]:
        remaining = {name: self._entry(entry) for name, entry in entries.items()}
        return {name: entry for name, entry in remaining.items() if entry is not None}

    def _entry(self, entry: _Entry) -> _Entry | None:
        seen = self._seen(entry.seen)
        parts = ("input", "result") if isinstance(entry, ToolEntry) else ("fields",)
        remaining: dict[str, Fields] = {name: self._fields(getattr(entry, name)) for name in parts}
        # An undated entry stays as long as one of its fields stays, or if it has no fields.
        has_no_fields = not any(getattr(entry, name) for name in parts)
        is_known = bool(seen) or (not entry.seen and (has_no_fields or any(remaining.values())))
        return msgspec.structs.replace(entry, seen=seen, **remaining) if is_known else None
