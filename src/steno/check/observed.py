"""What was observed: one tally for each thing, and the report made of them."""

from typing import Final, Literal, TypeAlias

import msgspec

from steno.check.published import PAGE
from steno.check.shapes import Place
from steno.check.sketch import Sketch
from steno.format.catalogue import JsonType, version_key

__all__ = ["CODES", "Code", "Drift", "Key", "Tally", "report"]

Code: TypeAlias = Literal[
    "UNKNOWN_TYPE",
    "PUBLISHED_FORM",
    "NEW_FIELD",
    "TYPE_MISMATCH",
    "MISSING_FIELD",
    "NEW_BLOCK",
    "NEW_TOOL",
    "NEW_VALUE",
]
CODES: Final[tuple[Code, ...]] = (
    "UNKNOWN_TYPE",
    "PUBLISHED_FORM",
    "NEW_BLOCK",
    "NEW_TOOL",
    "NEW_FIELD",
    "NEW_VALUE",
    "TYPE_MISMATCH",
    "MISSING_FIELD",
)
"""What may be observed, in the order of a report."""

Key: TypeAlias = tuple[Code, str, str, str]
"""Code, kind, path, name."""


class Tally:
    """One thing observed: how often, by which versions, what it looked like the first time."""

    __slots__ = ("count", "enum", "known", "place", "result", "sample", "sketch", "versions")

    def __init__(self, place: Place, known: tuple[JsonType, ...], sample: str) -> None:
        self.place = place
        self.known = known
        self.sample = sample
        self.count = 0
        self.versions: dict[str, int] = {}
        self.sketch = Sketch()
        self.result = Sketch()
        """Of an unknown tool: what its results look like."""
        self.enum = ""
        """Of a new value: the list it is not in."""


class Drift(msgspec.Struct, frozen=True):
    """One difference between the files and the catalogue.

    `kind` is a kind of record, or `block …`, `tool …`, `usage`; `path` the field in it; `name` the
    new value. `types` are the JSON types seen, `known` those of the catalogue.
    """

    code: Code
    kind: str
    path: str
    name: str
    count: int
    versions: dict[str, int]
    types: tuple[str, ...]
    known: tuple[str, ...]
    sample: str
    docs: str | None = None
    """The page of the documentation that explains it, where one does."""


def report(tallies: dict[Key, Tally]) -> list[Drift]:
    """Return what was observed: by code, then the most frequent first."""
    return sorted((_drift(key, tally) for key, tally in tallies.items()), key=_order)


def _drift(key: Key, tally: Tally) -> Drift:
    code, kind, path, name = key
    return Drift(
        code=code,
        kind=kind,
        path=path,
        name=name,
        count=tally.count,
        versions={v: tally.versions[v] for v in sorted(tally.versions, key=version_key)},
        types=tuple(tally.sketch.entry()["types"]) if code != "MISSING_FIELD" else (),
        known=tally.known,
        sample=tally.sample,
        docs=PAGE if code == "PUBLISHED_FORM" else None,
    )


def _order(drift: Drift) -> tuple[int, int, str, str, str]:
    return CODES.index(drift.code), -drift.count, drift.kind, drift.path, drift.name
