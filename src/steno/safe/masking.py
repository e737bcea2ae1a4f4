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
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final

import msgspec

from steno.safe.disguises import Cover, covers_of
from steno.safe.families import FAMILIES, Family
from steno.safe.personal import HOME_NEEDLES, MAIL_NEEDLE, home_at, mail_at

__all__ = ["IDS", "PERSONAL", "Edit", "Masker", "Place", "Receipt", "applied", "edits_of"]

_CHUNK: Final = 1 << 20
"""Bytes of a text that are looked through at once."""
_PLACES: Final = 1_000
"""Places of a family in one text that a receipt names."""
_HOME: Final = "home"
_MAIL: Final = "e-mail"
PERSONAL: Final = frozenset((_HOME, _MAIL))
"""What is masked but is no secret."""
IDS: Final = (*(family.id for family in FAMILIES), _HOME, _MAIL)
"""Whatever may be masked."""


class Edit(msgspec.Struct, frozen=True, order=True, gc=False):
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

    def note(self, data: bytes, edits: Sequence[Edit], where: str) -> None:
        """Write down what was masked in a text."""
        told = Counter([edit.family for edit in edits])
        own = self.texts.setdefault(where, {}) if where else {}
        for family, count in told.items():
            self.counts[family] = self.counts.get(family, 0) + count
            own[family] = own.get(family, 0) + count
        if len(told) > (_HOME in told):
            self._place(data, [edit for edit in edits if edit.family != _HOME], where)

    def _place(self, data: bytes, edits: Sequence[Edit], where: str) -> None:
        starts = _starts(data)
        placed: Counter[str] = Counter()
        for edit in edits:
            if edit.cover:
                self.covers[edit.cover] = self.covers.get(edit.cover, 0) + 1
            placed[edit.family] += 1
            if placed[edit.family] > _PLACES:
                continue
            at = starts[bisect_right(starts, edit.begin) - 1]
            place = Place(where, edit.family, edit.cover, at)
            if not self.places or self.places[-1] != place:
                self.places.append(place)


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
            self.receipt.note(data, edits, where)


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
    found: list[Edit] = []
    for low in range(0, len(data), _CHUNK):
        _look(data, low, found)
    if all(one.end <= other.begin for one, other in pairwise(found)):
        # As nearly always.
        return found
    found.sort(key=_order)
    made: list[Edit] = []
    end = -1
    for edit in found:
        if edit.begin >= end:
            made.append(edit)
            end = edit.end
        elif edit.end > end:
            last = made[-1]
            end = edit.end
            made[-1] = Edit(last.begin, end, last.family, last.cover, last.new)
    return made


def _order(edit: Edit) -> tuple[int, int]:
    return edit.begin, -edit.end


# Looking


class _Needle(msgspec.Struct, frozen=True):
    """Letters that are looked for, and what they may be a part of."""

    text: bytes
    families: tuple[Family, ...]
    covers: tuple[Cover, ...]
    mail: bool


class _Needles(msgspec.Struct, frozen=True):
    """Everything that is looked for, in one go."""

    all: tuple[_Needle, ...]
    homes: frozenset[int]
    """Those that a home folder begins with."""
    longest: int
    find: Callable[[bytes], list[tuple[int, int, int]]]
    """Says which needle stands from where to where."""


@lru_cache(maxsize=1)
def _needles() -> _Needles:
    from ahocorasick_rs import BytesAhoCorasick, Implementation, MatchKind

    families: dict[bytes, list[Family]] = {}
    for family in FAMILIES:
        for text in family.needles:
            families.setdefault(text, []).append(family)
    covers = covers_of(dict.fromkeys(stem for family in FAMILIES for stem in family.stems))
    hidden: dict[bytes, list[Cover]] = {}
    for cover in covers:
        for text in cover.needles:
            hidden.setdefault(text, []).append(cover)
    # Those of families first, which come in the order of what they are taken for.
    texts = list(dict.fromkeys((*families, *hidden, *HOME_NEEDLES, MAIL_NEEDLE)))
    made = [
        _Needle(
            text,
            tuple(families.get(text, ())),
            tuple(hidden.get(text, ())),
            text == MAIL_NEEDLE,
        )
        for text in texts
    ]
    # Hundreds of needles at the price of one: every byte is looked at once.
    machine = BytesAhoCorasick(
        texts, matchkind=MatchKind.Standard, implementation=Implementation.DFA
    )

    def find(data: bytes) -> list[tuple[int, int, int]]:
        return machine.find_matches_as_indexes(data, overlapping=True)

    homes = frozenset(map(texts.index, HOME_NEEDLES))
    return _Needles(tuple(made), homes, max(map(len, texts)), find)


def _look(data: bytes, low: int, found: list[Edit]) -> None:
    """Find what is to be masked and whose needle begins in one chunk of a text."""
    needles = _needles()
    all_of_them, homes = needles.all, needles.homes
    hidden: dict[str, tuple[Cover, list[tuple[int, bytes]]]] = {}
    for number, begin, _ in needles.find(data[low : low + _CHUNK + needles.longest - 1]):
        if begin >= _CHUNK:
            continue
        at = low + begin
        if number in homes:
            # Nearly everything that is found is one.
            home = home_at(data, at)
            if home is not None:
                found.append(Edit(home[0], home[1], _HOME, "", home[2]))
            continue
        needle = all_of_them[number]
        for cover in needle.covers:
            hidden.setdefault(cover.id, (cover, []))[1].append((at, needle.text))
        if needle.families or needle.mail:
            found += _bare(data, at, needle)
    for cover, hits in hidden.values():
        found += _uncovered(data, cover, sorted(hits))


def _bare(data: bytes, at: int, needle: _Needle) -> Iterator[Edit]:
    """Yield the secrets and addresses that stand plainly where a needle does."""
    for family in needle.families:
        found = family.at(data, at)
        if found is not None:
            yield _masked(*found, family.id)
    if needle.mail:
        mail = mail_at(data, at)
        if mail is not None:
            yield _masked(*mail, _MAIL)


def _masked(begin: int, end: int, family: str, cover: str = "") -> Edit:
    return Edit(begin, end, family, cover, b"<masked:%s>" % family.encode())


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
    needles = _needles()
    for number, at, _ in sorted(needles.find(text)):
        for family in needles.all[number].families:
            if family.at(text, at) is not None:
                return family.id
    return ""
