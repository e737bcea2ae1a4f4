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
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise
from typing import Final

import msgspec

from steno.safe.disguises import EMPTY_QUOTES, Cover, covers_of
from steno.safe.families import FAMILIES, Family
from steno.safe.mask_text import MASK_START, mask_end, mask_of
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
    examined: dict[str, int] = {}
    for low in range(0, len(data), _CHUNK):
        _look(data, low, found, examined)
    if all(one.end <= other.begin for one, other in pairwise(found)):
        # As nearly always.
        return found
    found.sort(key=_order)
    made: list[Edit] = []
    for edit in found:
        last = made[-1] if made else None
        if last is None or edit.begin >= last.end:
            made.append(edit)
            continue
        if edit.family == _MAIL and last.family != _MAIL:
            # Behind a password with `@` comes a host: `ada:p@ss9@db.internal`.
            continue
        # Of two that overlap, one is made: the more certain of them names it.
        surer = min(last, edit, key=_rank)
        end = max(last.end, edit.end)
        made[-1] = Edit(last.begin, end, surer.family, surer.cover, surer.new)
    return made


def _order(edit: Edit) -> tuple[int, int, int]:
    return edit.begin, -edit.end, _rank(edit)


def _rank(edit: Edit) -> int:
    return _RANKS[edit.family]


_RANKS: Final = {family: number for number, family in enumerate(IDS)}
_MASKS: Final = frozenset(map(mask_of, IDS))
_LONGEST_MASK: Final = max(map(len, _MASKS))


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
    quotes: frozenset[int]
    """Two quotes without anything between them."""
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
    quotes = frozenset(map(texts.index, EMPTY_QUOTES))
    return _Needles(tuple(made), homes, quotes, max(map(len, texts)), find)


def _look(data: bytes, low: int, found: list[Edit], examined: dict[str, int]) -> None:
    """Find what is to be masked and whose needle begins in one chunk of a text.

    `examined` says of each family up to where it looked already.
    """
    needles = _needles()
    all_of_them, homes = needles.all, needles.homes
    hidden: defaultdict[int, list[int]] = defaultdict(list)
    hits = needles.find(data[low : low + _CHUNK + needles.longest - 1])
    for number, begin, _ in _outside_masks(data, low, hits):
        if begin >= _CHUNK:
            continue
        at = low + begin
        if number in homes:
            # Nearly everything that is found is one.
            home = home_at(data, at)
            if home is not None:
                found.append(Edit(home[0], home[1], _HOME, "", home[2]))
            continue
        if number in needles.quotes and data[at + 2 : at + 3] == data[at : at + 1]:
            # The first of three, as around texts of several lines.
            continue
        needle = all_of_them[number]
        if needle.covers:
            hidden[number].append(at)
        if needle.families:
            _examine(data, at, needle.families, found, examined)
        mail = mail_at(data, at) if needle.mail else None
        if mail is not None:
            found.append(_masked(*mail, _MAIL))
    for cover, hits in _by_cover(hidden):
        found += [
            _masked(start, end, family, cover.id)
            for start, end, family in cover.scan(data, hits, _family_in)
        ]


def _outside_masks(
    data: bytes, low: int, hits: list[tuple[int, int, int]]
) -> list[tuple[int, int, int]]:
    """Return the needles that are not a part of a mask: `token` in it is no name of a secret."""
    begins: list[int] = []
    ends: list[int] = []
    at = data.find(MASK_START, max(0, low - _LONGEST_MASK), low + _CHUNK)
    while at >= 0:
        end = mask_end(data, at)
        if data[at:end] in _MASKS:
            begins.append(at)
            ends.append(end)
        at = data.find(MASK_START, at + 1, low + _CHUNK)
    if not begins:
        return hits
    made: list[tuple[int, int, int]] = []
    for hit in hits:
        place = low + hit[1]
        number = bisect_right(begins, place) - 1
        if number < 0 or place >= ends[number]:
            made.append(hit)
    return made


def _examine(
    data: bytes,
    at: int,
    families: tuple[Family, ...],
    found: list[Edit],
    examined: dict[str, int],
) -> None:
    """Find the secrets of families whose needle stands at a place."""
    for family in families:
        if at < examined.get(family.id, 0):
            continue
        match = family.at(data, at)
        if match is not None:
            examined[family.id] = match.examined
            found += [_masked(*span, match.family or family.id) for span in match.spans]


def _by_cover(places: dict[int, list[int]]) -> list[tuple[Cover, list[tuple[int, bytes]]]]:
    """Return the places of needles by the cover that they belong to, in order."""
    needles = _needles().all
    made: dict[str, tuple[Cover, list[tuple[int, bytes]]]] = {}
    for number, all_places in places.items():
        needle = needles[number]
        for cover in needle.covers:
            hits = made.setdefault(cover.id, (cover, []))[1]
            hits += [(at, needle.text) for at in all_places]
    return [(cover, sorted(hits)) for cover, hits in made.values()]


def _masked(begin: int, end: int, family: str, cover: str = "") -> Edit:
    return Edit(begin, end, family, cover, mask_of(family))


def _family_in(text: bytes) -> str:
    """Return the most certain family of the secrets that stand in a text, or nothing."""
    needles = _needles()
    examined: dict[str, int] = {}
    found: set[str] = set()
    for at, number in sorted((begin, number) for number, begin, _ in needles.find(text)):
        for family in needles.all[number].families:
            if at < examined.get(family.id, 0):
                continue
            match = family.at(text, at)
            if match is not None:
                examined[family.id] = match.examined
                found.update((match.family or family.id,) if match.spans else ())
    return min(found, key=_RANKS.__getitem__) if found else ""
