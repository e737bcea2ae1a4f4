"""The catalogue as it was when an older client was the newest: what came later is taken away."""

from typing import TypeVar

import msgspec

from steno.format.catalogue import (
    BlockEntry,
    Catalogue,
    ClientVersions,
    Fields,
    KindEntry,
    ToolEntry,
    version_key,
)

__all__ = ["cut_back"]

_Entry = TypeVar("_Entry", KindEntry, BlockEntry, ToolEntry)


def cut_back(facts: Catalogue, version: str) -> Catalogue:
    """Return what was known when `version` was the newest client; published dialects stay."""
    return _Cut(facts.client_versions, version).catalogue(facts)


class _Cut:
    def __init__(self, versions: ClientVersions, version: str) -> None:
        self._limit = version_key(version)
        known = self._seen(versions.known)
        self._last = max(known, key=version_key, default=version)
        self._versions = ClientVersions(
            driven=self._seen(versions.driven),
            surveyed=(versions.surveyed[0], self._earlier(versions.surveyed[1])),
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

    def _earlier(self, version: str) -> str:
        return min(version, self._last, key=version_key)

    def _fields(self, fields: Fields) -> Fields:
        return {
            name: msgspec.structs.replace(
                field,
                versions=tuple(self._earlier(version) for version in field.versions),
                sub=self._fields(field.sub),
                items=self._fields(field.items),
                values=self._fields(field.values),
            )
            for name, field in fields.items()
            if not field.versions or version_key(field.versions[0]) <= self._limit
        }

    def _entries(self, entries: dict[str, _Entry]) -> dict[str, _Entry]:
        left = {name: self._entry(entry) for name, entry in entries.items()}
        return {name: entry for name, entry in left.items() if entry is not None}

    def _entry(self, entry: _Entry) -> _Entry | None:
        seen = self._seen(entry.seen)
        parts = ("input", "result") if isinstance(entry, ToolEntry) else ("fields",)
        left: dict[str, Fields] = {name: self._fields(getattr(entry, name)) for name in parts}
        # What nobody dated is there as long as one of its fields is, if it has any.
        bare = not any(getattr(entry, name) for name in parts)
        there = bool(seen) or (not entry.seen and (bare or any(left.values())))
        return msgspec.structs.replace(entry, seen=seen, **left) if there else None
