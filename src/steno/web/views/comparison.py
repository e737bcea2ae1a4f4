"""Comparison of two sessions: both paths, session choices, cached data of each session."""

import threading
from collections.abc import Iterable, Sequence
from typing import Final
from weakref import WeakKeyDictionary

import msgspec

from steno.format.tool_catalogue import tool_facts
from steno.index.database import SessionIndex
from steno.report import humanize
from steno.report.compare import IndexedFacts, SessionSide, build_side
from steno.report.compare.comparison import Comparison, current_action_text
from steno.report.compare.session_side import PathItem
from steno.report.session_list import SessionRow, usage_by_session
from steno.session.session import Session
from steno.web.state.app_state import AppState
from steno.web.urls import Links, path_tag

_VISIBLE_HEAD: Final = 5
_VISIBLE_TAIL: Final = 3
_MIN_FOLDED: Final = 6
_VISIBLE_BRANCH: Final = 12
"""Lines of a long diverging section that are initially visible."""
_MAX_LINES: Final = 600
_MAX_ALL_LINES: Final = 4_000
"""Maximum lines on a page, by default and with all lines shown."""
_MAX_SUBJECT: Final = 160
_KIND_ICONS: Final = {"agent": "agent", "error": "warn", "unknown": "unknown"}
_STATE_LABELS: Final = {
    "ok": "done",
    "failed": "failed",
    "denied": "denied",
    "interrupted": "interrupted",
    "open": "open",
    "unknown": "",
}


class PathLine(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt or a step as a line."""

    item: PathItem
    icon: str
    subject: str
    time: str
    tokens: str
    state: str
    href: str
    source: str = ""
    """URL of the content of a step."""
    outcomes: tuple[tuple[str, str, bool], ...] = ()
    """Differing outcomes: session, text, and whether the step failed."""

    @property
    def failed(self) -> bool:
        """Whether the step failed in either session."""
        return self.state == "failed" or any(failed for _, _, failed in self.outcomes)


class FoldedLines(msgspec.Struct, frozen=True):
    """A list of lines, some of them folded."""

    head: list[PathLine]
    folded: list[PathLine]
    tail: list[PathLine]
    omitted: int = 0
    """Number of lines that are not on the page."""


class PathSection(msgspec.Struct, frozen=True):
    """A section that both sessions share, or in which they diverge."""

    is_common: bool
    a: FoldedLines
    b: FoldedLines
    label: str = ""


class PathView(msgspec.Struct, frozen=True):
    """The paths of both sessions."""

    chunks: list[PathSection]
    omitted: int
    """Number of prompts and steps that are not on the page."""


def compare_paths(comparison: Comparison, keys: tuple[str, str], links: Links, *, show_all: bool = False) -> PathView:
    """Return the paths for a page; with `show_all`, do not fold lines."""
    remaining = _MAX_ALL_LINES if show_all else _MAX_LINES
    chunks: list[PathSection] = []
    omitted = 0
    has_diverged = False
    for part in comparison.path.parts:
        items_a = [comparison.a.path[position] for position in part.a]
        items_b = [comparison.b.path[place] for place in part.b]
        size = len(items_a) if part.common else len(items_a) + len(items_b)
        if remaining <= 0:
            omitted += size
            continue
        if part.common:
            lines = _fold(_common_lines(items_a, items_b, keys, links), remaining, tail=True, show_all=show_all)
            label = _common_label(items_a) if has_diverged else ""
            chunks.append(PathSection(True, lines, _NO_LINES, label))
            omitted += lines.omitted
        else:
            label = _divergence_label(comparison, part.a.start, part.b.start, diverged_before=has_diverged)
            lines_a = _fold([_path_line(item, keys[0], links) for item in items_a], remaining, show_all=show_all)
            lines_b = _fold([_path_line(item, keys[1], links) for item in items_b], remaining, show_all=show_all)
            chunks.append(PathSection(False, lines_a, lines_b, label))
            omitted += lines_a.omitted + lines_b.omitted
            has_diverged = True
        remaining -= size
    return PathView(chunks, omitted)


_NO_LINES: Final = FoldedLines([], [], [])


def _fold(lines: list[PathLine], remaining: int, *, tail: bool = False, show_all: bool = False) -> FoldedLines:
    visible, omitted = lines[:remaining], max(0, len(lines) - remaining)
    head, end = (_VISIBLE_HEAD, _VISIBLE_TAIL) if tail else (_VISIBLE_BRANCH, 0)
    # Folding only a few lines saves no space.
    if show_all or len(visible) <= head + end + _MIN_FOLDED:
        return FoldedLines(visible, [], [], omitted)
    at = len(visible) - end
    return FoldedLines(visible[:head], visible[head:at], visible[at:], omitted)


def _common_label(items: list[PathItem]) -> str:
    steps = sum(not item.is_prompt for item in items)
    return f"{humanize.count(steps, 'common step')}" if steps else "Same prompt again"


def _divergence_label(comparison: Comparison, start_a: int, start_b: int, *, diverged_before: bool) -> str:
    if diverged_before:
        return "Diverges again"
    item_a = comparison.a.path[start_a] if start_a < len(comparison.a.path) else None
    item_b = comparison.b.path[start_b] if start_b < len(comparison.b.path) else None
    first_item = item_a or item_b
    number = first_item.number if first_item is not None and not first_item.is_prompt else 0
    where = f"step {number:,}: " if number else ""
    short_a, short_b = _shorten(item_a), _shorten(item_b)
    return f"{where}A {current_action_text(short_a, short_b)}, B {current_action_text(short_b, short_a)}"


def _shorten(item: PathItem | None) -> PathItem | None:
    if item is None or len(item.subject) <= _MAX_SUBJECT // 2:
        return item
    return msgspec.structs.replace(item, subject=item.subject[: _MAX_SUBJECT // 2] + "…")


def _common_lines(
    items_a: Sequence[PathItem], items_b: Sequence[PathItem], keys: tuple[str, str], links: Links
) -> list[PathLine]:
    lines: list[PathLine] = []
    for item_a, item_b in zip(items_a, items_b, strict=True):
        line = _path_line(item_a, keys[0], links)
        if (item_a.outcome, item_a.state) != (item_b.outcome, item_b.state):
            outcomes = tuple(
                (who, each.outcome or _STATE_LABELS[each.state], each.state == "failed")
                for who, each in (("a", item_a), ("b", item_b))
            )
            line = msgspec.structs.replace(line, outcomes=outcomes, state="")
        lines.append(line)
    return lines


def _path_line(item: PathItem, key: str, links: Links) -> PathLine:
    icon = _KIND_ICONS.get(item.kind) or tool_facts(item.verb).icon
    anchor = f"t{item.turn}"
    step_path = f"step/{item.place}"
    subject = item.subject
    if not item.is_prompt and len(subject) > _MAX_SUBJECT:
        subject = subject[: _MAX_SUBJECT - 1] + "…"
    has_step = bool(item.place) and not item.is_prompt
    return PathLine(
        item=item,
        icon="say" if item.is_prompt else icon,
        subject=subject,
        time=humanize.spaced_duration(item.seconds),
        tokens=humanize.tokens(item.tokens) if item.tokens is not None else "",
        state=_STATE_LABELS[item.state] if not item.is_prompt else "",
        href=links.inside(key, step_path) if has_step else links.session(key, anchor, turn=item.turn),
        source=links.inside(key, step_path, part=1) if has_step else "",
    )


class SessionChoice(msgspec.Struct, frozen=True):
    """A session that can be chosen for comparison."""

    listed: SessionRow
    key: str
    when: str
    cost: int | None
    reason: str = ""
    project: str = ""


def session_choices(
    app_state: AppState, index: SessionIndex, sessions: Iterable[tuple[SessionRow, str]]
) -> list[SessionChoice]:
    """Return sessions as list rows, each with the reason for its suggestion."""
    pairs = list(sessions)
    costs = usage_by_session(index.connection, [each.file for each, _ in pairs], app_state.prices)
    now = app_state.now()
    choices: list[SessionChoice] = []
    for each, why in pairs:
        figures = costs.get(each.file)
        choices.append(
            SessionChoice(
                each,
                each.key,
                "" if each.ended is None else humanize.day_name(each.ended / 1000, now),
                None if figures is None else figures.cost,
                why,
                path_tag(each.project) if each.project else "",
            )
        )
    return choices


_sides_lock = threading.Lock()
_sides: WeakKeyDictionary[Session, SessionSide] = WeakKeyDictionary()


def cached_side(session: Session, metadata: IndexedFacts) -> SessionSide:
    """Return the comparison data of a session, cached: a changed session is reopened as a new object."""
    with _sides_lock:
        cached = _sides.get(session)
    if cached is not None and cached.known.project == metadata.project:
        return msgspec.structs.replace(cached, known=metadata)
    comparison_side = build_side(session, metadata)
    with _sides_lock:
        _sides[session] = comparison_side
    return comparison_side
