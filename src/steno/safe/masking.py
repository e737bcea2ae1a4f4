"""Takes out of a text what must not leave the machine, and keeps account of it.

Secrets are found by families, bare or in disguise; home folders and e-mail addresses beside them.
What is masked says of which family it was. Nothing else of a text changes, so a line of JSON is one
afterwards, and its records stay the records they were.

>>> masker = Masker()
>>> masker.text("export K=ghp_4f9b2c8d1e7a6f5b3c0d9e8f7a6b5c4d3e2f in /home/ada/x")
'export K=<masked:github-token> in ~/x'
>>> masker.receipt.counts
{'github-token': 1, 'home': 1}
"""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Final

import msgspec

from steno.safe.disguises import Cover, covers_of
from steno.safe.families import FAMILIES, Family
from steno.safe.personal import HOME_NEEDLES, MAIL_NEEDLE, home_at, mail_at

__all__ = ["IDS", "Edit", "Masker", "Place", "Receipt", "applied", "edits_of"]

_CHUNK: Final = 1 << 18
"""Bytes that stay in the cache of a processor while all needles are looked for."""
_PLACES: Final = 1_000
"""Places of a family in one text that a receipt names."""
_HOME: Final = "home"
_MAIL: Final = "e-mail"
IDS: Final = (*(family.id for family in FAMILIES), _HOME, _MAIL)
"""Whatever may be masked."""


class Edit(msgspec.Struct, frozen=True, order=True):
    """A stretch of a text that is replaced."""

    begin: int
    end: int
    family: str
    cover: str
    """What it was disguised as; nothing for what stood there plainly."""
    new: bytes


class Place(msgspec.Struct, frozen=True):
    """Where something was masked: never what."""

    where: str
    family: str
    cover: str
    at: int
    """The byte in the file where its record begins."""


class Receipt(msgspec.Struct):
    """What was masked."""

    counts: dict[str, int] = {}
    covers: dict[str, int] = {}
    texts: dict[str, dict[str, int]] = {}
    """The counts of each text by itself."""
    places: list[Place] = []
    """Where; home folders are only counted, because they stand everywhere."""

    @property
    def total(self) -> int:
        """How much was masked in all."""
        return sum(self.counts.values())

    def note(self, edits: Sequence[Edit], where: str, starts: Sequence[int] = ()) -> None:
        """Write down what was masked in a text; `starts` says where its records begin."""
        told: Counter[str] = Counter()
        for edit in edits:
            self.counts[edit.family] = self.counts.get(edit.family, 0) + 1
            if edit.cover:
                self.covers[edit.cover] = self.covers.get(edit.cover, 0) + 1
            told[edit.family] += 1
            if told[edit.family] > _PLACES or edit.family == _HOME:
                continue
            at = starts[bisect_right(starts, edit.begin) - 1] if starts else edit.begin
            place = Place(where, edit.family, edit.cover, at)
            if not self.places or self.places[-1] != place:
                self.places.append(place)
        if where:
            own = self.texts.setdefault(where, {})
            for family, count in told.items():
                own[family] = own.get(family, 0) + count


class Masker:
    """Masks texts, one after the other, and notes what it did."""

    def __init__(self) -> None:
        self.receipt = Receipt()

    def text(self, text: str, where: str = "") -> str:
        """Return a text as it may be shown to others."""
        data = text.encode("utf-8", "surrogatepass")
        return self.data(data, where).decode("utf-8", "surrogatepass")

    def data(self, data: bytes, where: str = "") -> bytes:
        """Return bytes of a text, or of lines of JSON, as they may be shown to others."""
        edits = edits_of(data)
        self.note(data, edits, where)
        return applied(data, edits) if edits else data

    def note(self, data: bytes, edits: Sequence[Edit], where: str = "") -> None:
        """Note what was found in a text that somebody else masks."""
        if edits:
            self.receipt.note(edits, where, _starts(data))


def applied(data: bytes, edits: Sequence[Edit]) -> bytes:
    """Return a text with stretches of it replaced; they stand in order, and none in another."""
    parts: list[bytes] = []
    end = 0
    for edit in edits:
        parts += (data[end : edit.begin], edit.new)
        end = edit.end
    parts.append(data[end:])
    return b"".join(parts)


def _starts(data: bytes) -> list[int]:
    found = [0]
    at = data.find(b"\n")
    while at >= 0:
        found.append(at + 1)
        at = data.find(b"\n", at + 1)
    return found


def edits_of(data: bytes) -> list[Edit]:
    """Return everything that has to be masked in a text, in order."""
    found = [*_bare(data), *_disguised(data), *_personal(data)]
    if not found:
        return []
    found.sort(key=_order)
    made: list[Edit] = []
    for edit in found:
        if made and edit.begin < made[-1].end:
            last = made[-1]
            if edit.end > last.end:
                made[-1] = Edit(last.begin, edit.end, last.family, last.cover, last.new)
            continue
        made.append(edit)
    return made


def _order(edit: Edit) -> tuple[int, int]:
    return edit.begin, -edit.end


# Looking


@lru_cache(maxsize=1)
def _plain_needles() -> dict[bytes, list[Family]]:
    """Return every needle with the families that it may stand for."""
    found: dict[bytes, list[Family]] = {}
    for family in FAMILIES:
        for needle in family.needles:
            found.setdefault(needle, []).append(family)
    return found


@lru_cache(maxsize=1)
def _covers() -> tuple[Cover, ...]:
    return covers_of(dict.fromkeys(stem for family in FAMILIES for stem in family.stems))


@lru_cache(maxsize=1)
def _find() -> Callable[[bytes, bytes, int, int], int]:
    try:
        import stringzilla
    except ImportError:  # no wheel for this machine; the same, slower
        return bytes.find
    library: Any = stringzilla
    return library.find


def _hits(data: bytes, needles: Iterable[bytes], low: int) -> Iterator[tuple[int, bytes]]:
    """Yield where needles stand in a chunk; nearly all of them nowhere, so that comes first."""
    find = _find()
    high = low + _CHUNK
    size = len(data)
    for needle in needles:
        end = min(size, high + len(needle) - 1)
        at = find(data, needle, low, end)
        while at >= 0:
            yield at, needle
            at = find(data, needle, at + 1, end)


def _bare(data: bytes) -> Iterator[Edit]:
    families = _plain_needles()
    for low in range(0, len(data), _CHUNK):
        for at, needle in _hits(data, families, low):
            for family in families[needle]:
                found = family.at(data, at)
                if found is not None:
                    yield _masked(*found, family.id)


def _masked(begin: int, end: int, family: str, cover: str = "") -> Edit:
    return Edit(begin, end, family, cover, b"<masked:%s>" % family.encode())


def _disguised(data: bytes) -> Iterator[Edit]:
    for low in range(0, len(data), _CHUNK):
        for cover in _covers():
            hits = list(_hits(data, cover.needles, low))
            if hits:
                yield from _uncovered(data, cover, sorted(hits))


def _uncovered(data: bytes, cover: Cover, hits: list[tuple[int, bytes]]) -> Iterator[Edit]:
    """Yield the secrets under a cover; a run that has many needles in it is looked at once."""
    done = -1
    for at, needle in hits:
        if at < done:
            continue
        run = cover.run(data, at, needle)
        if run is None:
            continue
        begin, end, text = run
        family = _family_in(text)
        if family:
            yield _masked(begin, end, family, cover.id)
        if family or cover.whole:
            done = end


def _family_in(text: bytes) -> str:
    """Return the family of a secret that stands in a text, or nothing."""
    for needle, families in _plain_needles().items():
        at = text.find(needle)
        while at >= 0:
            for family in families:
                if family.at(text, at) is not None:
                    return family.id
            at = text.find(needle, at + 1)
    return ""


def _personal(data: bytes) -> Iterator[Edit]:
    for low in range(0, len(data), _CHUNK):
        for at, _ in _hits(data, HOME_NEEDLES, low):
            home = home_at(data, at)
            if home is not None:
                yield Edit(home[0], home[1], _HOME, "", home[2])
        for at, _ in _hits(data, (MAIL_NEEDLE,), low):
            mail = mail_at(data, at)
            if mail is not None:
                yield _masked(*mail, _MAIL)
