"""The two paths, drawn: what is common once, what is apart side by side, long stretches folded."""

from collections.abc import Sequence
from typing import Final

import msgspec

from steno.format.tool_catalogue import facts_of
from steno.report import words
from steno.report.compare.path import Item
from steno.report.compare.weigh import Comparison, doing
from steno.web.links import Links
from steno.web.paint import duration

__all__ = ["Chunk", "Drawn", "Line", "Pile", "drawn"]

_HEAD: Final = 5
_TAIL: Final = 3
_FEW: Final = 6
_SIDE: Final = 12
"""How much of a long stretch stands open, at its beginning and (where both go on) at its end."""
_MOST: Final = 600
_ALL: Final = 4_000
"""How many lines a page has at most, and when all of them are asked for."""
_SUBJECT: Final = 160
_KINDS: Final = {"agent": "agent", "error": "warn", "unknown": "unknown"}
_STATES: Final = {
    "ok": "done",
    "failed": "failed",
    "denied": "denied",
    "interrupted": "interrupted",
    "open": "open",
    "unknown": "",
}


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt or a step, as a line."""

    item: Item
    icon: str
    subject: str
    time: str
    tokens: str
    state: str
    href: str
    source: str = ""
    """Where the inside of a step can be asked for."""
    outcomes: tuple[tuple[str, str, bool], ...] = ()
    """What came of it where that differs: for whom, what, and whether it failed."""

    @property
    def failed(self) -> bool:
        """Whether it went wrong, for either."""
        return self.state == "failed" or any(failed for _, _, failed in self.outcomes)


class Pile(msgspec.Struct, frozen=True):
    """Lines of which some are folded away."""

    head: list[Line]
    folded: list[Line]
    tail: list[Line]
    left: int = 0
    """How many are not on the page at all."""

    @property
    def steps(self) -> int:
        """How many steps are folded away."""
        return sum(not line.item.is_prompt for line in self.folded)


class Chunk(msgspec.Struct, frozen=True):
    """A stretch that both went, or a place where each went its own way."""

    common: bool
    a: Pile
    b: Pile
    label: str = ""


class Drawn(msgspec.Struct, frozen=True):
    """Both paths."""

    chunks: list[Chunk]
    left: int
    """How many prompts and steps are not on the page."""


def drawn(found: Comparison, keys: tuple[str, str], links: Links, *, whole: bool = False) -> Drawn:
    """Return the paths as a page shows them; with `whole` nothing is folded."""
    room = _ALL if whole else _MOST
    chunks: list[Chunk] = []
    left = 0
    parted = False
    for part in found.path.parts:
        mine = [found.a.path[place] for place in part.a]
        theirs = [found.b.path[place] for place in part.b]
        size = len(mine) if part.common else len(mine) + len(theirs)
        if room <= 0:
            left += size
            continue
        if part.common:
            pile = _pile(_both(mine, theirs, keys, links), room, tail=True, whole=whole)
            label = _together(mine) if parted else ""
            chunks.append(Chunk(True, pile, _EMPTY, label))
            left += pile.left
        else:
            label = _apart(found, part.a.start, part.b.start, again=parted)
            one = _pile([_line(item, keys[0], links) for item in mine], room, whole=whole)
            other = _pile([_line(item, keys[1], links) for item in theirs], room, whole=whole)
            chunks.append(Chunk(False, one, other, label))
            left += one.left + other.left
            parted = True
        room -= size
    return Drawn(chunks, left)


_EMPTY: Final = Pile([], [], [])


def _pile(lines: list[Line], room: int, *, tail: bool = False, whole: bool = False) -> Pile:
    shown, left = lines[:room], max(0, len(lines) - room)
    head, end = (_HEAD, _TAIL) if tail else (_SIDE, 0)
    # To fold a few lines away saves nothing.
    if whole or len(shown) <= head + end + _FEW:
        return Pile(shown, [], [], left)
    at = len(shown) - end
    return Pile(shown[:head], shown[head:at], shown[at:], left)


def _together(items: list[Item]) -> str:
    steps = sum(not item.is_prompt for item in items)
    return f"the same again: {words.count(steps, 'step')}" if steps else "asked the same again"


def _apart(found: Comparison, at: int, to: int, *, again: bool) -> str:
    if again:
        return "apart again"
    mine = found.a.path[at] if at < len(found.a.path) else None
    theirs = found.b.path[to] if to < len(found.b.path) else None
    near = mine or theirs
    number = near.number if near is not None and not near.is_prompt else 0
    where = f"step {number:,}: " if number else ""
    one, other = _brief(mine), _brief(theirs)
    return f"{where}A {doing(one, other)}, B {doing(other, one)}"


def _brief(item: Item | None) -> Item | None:
    if item is None or len(item.subject) <= _SUBJECT // 2:
        return item
    return msgspec.structs.replace(item, subject=item.subject[: _SUBJECT // 2] + "…")


def _both(
    mine: Sequence[Item], theirs: Sequence[Item], keys: tuple[str, str], links: Links
) -> list[Line]:
    made: list[Line] = []
    for one, other in zip(mine, theirs, strict=True):
        line = _line(one, keys[0], links)
        if (one.outcome, one.state) != (other.outcome, other.state):
            said = tuple(
                (who, each.outcome or _STATES[each.state], each.state == "failed")
                for who, each in (("a", one), ("b", other))
            )
            line = msgspec.structs.replace(line, outcomes=said, state="")
        made.append(line)
    return made


def _line(item: Item, key: str, links: Links) -> Line:
    icon = _KINDS.get(item.kind) or facts_of(item.verb).icon
    anchor = f"t{item.turn}"
    way = f"step/{item.place}"
    subject = item.subject
    if not item.is_prompt and len(subject) > _SUBJECT:
        subject = subject[: _SUBJECT - 1] + "…"
    known = bool(item.place) and not item.is_prompt
    return Line(
        item=item,
        icon="say" if item.is_prompt else icon,
        subject=subject,
        time=duration(item.seconds),
        tokens=words.tokens(item.tokens) if item.tokens is not None else "",
        state=_STATES[item.state] if not item.is_prompt else "",
        href=links.inside(key, way) if known else links.session(key, anchor, turn=item.turn),
        source=links.inside(key, way, part=1) if known else "",
    )
