"""Comparison of two sessions: shared records, divergence, differences, and their texts."""

import sqlite3
from collections.abc import Callable, Iterator
from typing import Final, Literal, TypeAlias, TypeVar

import msgspec

from steno.format.line_diff import Alignment, align
from steno.format.tool_catalogue import tool_facts
from steno.report import humanize
from steno.report.compare.session_side import CommandRuns, FileTouches, IndexedFacts, PathItem, SessionSide
from steno.report.pricing import PriceTable
from steno.report.session_list import SessionRow, usage_by_session
from steno.report.usage.usage_from_files import FilePartition
from steno.report.usage.usage_query import UsageQuery
from steno.report.usage.usage_report import build_report
from steno.session.session import Session
from steno.session.turns.session_facts import SessionCounts
from steno.store.discovery import DiscoveredFile, discover_agents
from steno.store.session_counts import count_turns

SideName: TypeAlias = Literal["a", "b", ""]
Relation: TypeAlias = Literal["fork", "prompt", "project", ""]
"""fork     one session is a fork of the other
prompt   same first prompt
project  same project
"""
Unit: TypeAlias = Literal["count", "tokens", "seconds", "money", "share"]
T = TypeVar("T")


class Figure(msgspec.Struct, frozen=True):
    """A number for both sessions; None if unknown."""

    name: str
    a: float | None
    b: float | None
    unit: Unit = "count"
    better: SideName = ""
    """Side with the better value, if one value is better."""


class Divergence(msgspec.Struct, frozen=True):
    """First difference between two paths; a side is None if its path has ended."""

    steps: int
    """Number of identical steps before the difference."""
    a: PathItem | None
    b: PathItem | None


class SharedRecords(msgspec.Struct, frozen=True):
    """Number of shared records, if one session is a fork of the other."""

    turns: int
    steps: int


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """Comparison of two sessions."""

    a: SessionSide
    b: SessionSide
    relation: Relation
    forked: SideName
    """Side that is the fork."""
    shared: SharedRecords | None
    prompts: Alignment
    """Alignment of the prompts."""
    path: Alignment
    """Alignment of `a.path` and `b.path`."""
    divergence: Divergence | None
    """None if the paths are identical."""
    common: int
    """Number of common steps, in the same order."""
    figures: tuple[Figure, ...]
    files: tuple[tuple[str, FileTouches | None, FileTouches | None], ...]
    """Touched files; files touched by both come first."""
    commands: tuple[tuple[str, CommandRuns | None, CommandRuns | None], ...]
    tools: tuple[tuple[str, tuple[int, int] | None, tuple[int, int] | None], ...]


def compare(a: SessionSide, b: SessionSide) -> Comparison:
    """Compare two sessions."""
    prompts_a, prompts_b = _indexed_prompts(a), _indexed_prompts(b)
    prompts = align([item.key for _, item in prompts_a], [item.key for _, item in prompts_b])
    anchors = [(prompts_a[index_a][0], prompts_b[index_b][0]) for index_a, index_b in prompts.pairs]
    path = align([item.key for item in a.path], [item.key for item in b.path], anchors=anchors)
    shared = _shared_records(a, b, path)
    fork: SideName = "a" if b.id in a.continues else "b" if a.id in b.continues else ""
    return Comparison(
        a=a,
        b=b,
        relation=_relation(a, b, forked=bool(fork) or shared is not None),
        forked=fork,
        shared=shared,
        prompts=prompts,
        path=path,
        divergence=_divergence(a, b, path),
        common=sum(not a.path[place].is_prompt for part in path.parts if part.common for place in part.a),
        figures=tuple(_without_judgement(figure, shared) for figure in _comparison_figures(a, b)),
        files=_join_rows(a.files, b.files, _by_change),
        commands=_join_rows(a.commands, b.commands),
        tools=_join_rows(a.tools, b.tools, _by_calls),
    )


def current_action_text(item: PathItem | None, other_item: PathItem | None = None) -> str:
    """Return the action of an item as a verb phrase; `other_item` is its counterpart."""
    if item is None:
        return "has ended"
    if item.is_prompt:
        return "receives another prompt" if other_item is None else "receives a different prompt"
    if item.kind == "agent":
        return f"starts {item.verb}"
    if item.kind == "error":
        return "gets an API error"
    verb = tool_facts(item.verb).doing
    return f"{verb} {item.subject}" if verb else f"calls {item.verb}"


def _indexed_prompts(side: SessionSide) -> list[tuple[int, PathItem]]:
    return [(place, item) for place, item in enumerate(side.path) if item.is_prompt]


def _relation(a: SessionSide, b: SessionSide, *, forked: bool) -> Relation:
    if forked:
        return "fork"
    prompts_a, prompts_b = _indexed_prompts(a), _indexed_prompts(b)
    if prompts_a and prompts_b and prompts_a[0][1].key == prompts_b[0][1].key and prompts_a[0][1].key[1]:
        return "prompt"
    return "project" if a.known.project and a.known.project == b.known.project else ""


def _shared_records(a: SessionSide, b: SessionSide, path: Alignment) -> SharedRecords | None:
    """Count the leading records that both sessions have in common."""
    first_range = path.parts[0] if path.parts else None
    if first_range is None or not first_range.common:
        return None
    turns = steps = 0
    for index_a, index_b in zip(first_range.a, first_range.b, strict=True):
        item_a, item_b = a.path[index_a], b.path[index_b]
        if not item_a.uuid or item_a.uuid != item_b.uuid:
            break
        turns += item_a.is_prompt
        steps += not item_a.is_prompt
    return SharedRecords(turns, steps) if turns or steps else None


def _divergence(a: SessionSide, b: SessionSide, path: Alignment) -> Divergence | None:
    steps = 0
    for part in path.parts:
        if part.common:
            steps += sum(not a.path[place].is_prompt for place in part.a)
            continue
        # One path may have additional items and then continue like the other.
        index_a = part.a.start if part.a.start < len(a.path) else None
        index_b = part.b.start if part.b.start < len(b.path) else None
        return Divergence(
            steps, None if index_a is None else a.path[index_a], None if index_b is None else b.path[index_b]
        )
    return None


# Figures


def _comparison_figures(a: SessionSide, b: SessionSide) -> list[Figure]:
    figures = [
        _less_is_better("Turns", a.turns, b.turns),
        _less_is_better("Steps", a.steps, b.steps),
        _less_is_better("Failed steps", a.failed, b.failed),
        _less_is_better("Working time", a.worked or None, b.worked or None, "seconds"),
        _less_is_better("Cost", _cost_of_side(a), _cost_of_side(b), "money"),
        _less_is_better("Input tokens", _usage_value(a, "context"), _usage_value(b, "context"), "tokens"),
        _less_is_better("Output tokens", _usage_value(a, "output"), _usage_value(b, "output"), "tokens"),
        Figure("Cache hit rate", _cache_hit_rate(a), _cache_hit_rate(b), "share"),
        Figure("Sub-agents", a.agents, b.agents),
        Figure("Compactions", a.compactions, b.compactions),
        _less_is_better("Abandoned branches", a.branches, b.branches),
        _less_is_better("Abandoned tokens", a.abandoned, b.abandoned, "tokens"),
        Figure("Files changed", len(a.changed), len(b.changed)),
        Figure("Lines added", _line_total(a, "added"), _line_total(b, "added")),
        Figure("Lines removed", _line_total(a, "removed"), _line_total(b, "removed")),
    ]
    failing_a, failing_b = (side.last_tests and side.last_tests.failing for side in (a, b))
    if failing_a is not None and failing_b is not None:
        figures.append(_less_is_better("Failing tests", failing_a, failing_b))
    return figures


def _without_judgement(figure: Figure, shared: SharedRecords | None) -> Figure:
    """Remove the better side of cost and token figures if the sessions share records, which count for one side only."""
    if shared is None or figure.unit not in ("money", "tokens"):
        return figure
    return msgspec.structs.replace(figure, better="")


def _less_is_better(name: str, a: float | None, b: float | None, unit: Unit = "count") -> Figure:
    better: SideName = ""
    if a is not None and b is not None and a != b:
        better = "a" if a < b else "b"
    return Figure(name, a, b, unit, better)


def _cost_of_side(side: SessionSide) -> int | None:
    figures = side.known.figures
    return None if figures is None else figures.cost


def _usage_value(side: SessionSide, name: str) -> int | None:
    return None if side.known.figures is None else getattr(side.known.figures, name)


def _cache_hit_rate(side: SessionSide) -> float | None:
    figures = side.known.figures
    return figures.cache_read / figures.context if figures and figures.context else None


def _line_total(side: SessionSide, name: str) -> int:
    return sum(getattr(touch, name) for touch in side.files.values())


# Joined rows


def _by_change(row: tuple[str, FileTouches | None, FileTouches | None]) -> tuple[bool, int]:
    touches = [touch for touch in row[1:] if touch is not None]
    return not any(each.edits for each in touches), -sum(each.added + each.removed for each in touches)


def _by_calls(row: tuple[str, tuple[int, int] | None, tuple[int, int] | None]) -> tuple[bool, int]:
    return False, -sum(counts[0] for counts in row[1:] if counts is not None)


def _join_rows(
    a: dict[str, T], b: dict[str, T], rank: Callable[[tuple[str, T | None, T | None]], tuple[bool, int]] | None = None
) -> tuple[tuple[str, T | None, T | None], ...]:
    """Join the rows of both sides by name: common names first, each group by rank or in original order."""
    rows = [(name, a.get(name), b.get(name)) for name in dict.fromkeys((*a, *b))]
    rows.sort(key=lambda row: (row[1] is None or row[2] is None, row[1] is None))
    if rank is not None:
        rows.sort(key=lambda row: (row[1] is None or row[2] is None, rank(row), row[0]))
    return tuple(rows)


_SMALL_COUNT: Final = 10
"""Maximum count for which the absolute difference is shown instead of a percentage."""
_STATUS_TEXTS: Final = {
    "finished": "finished",
    "waiting": "waiting for input",
    "running": "running",
    "interrupted": "interrupted",
    "failed": "failed",
}


class ComparisonRow(msgspec.Struct, frozen=True):
    """A row of the comparison table."""

    name: str
    a: str
    b: str
    delta: str = ""
    better: SideName = ""


def comparison_rows(
    comparison: Comparison, duration: Callable[[float | None], str] = humanize.duration
) -> list[ComparisonRow]:
    """Return the rows of the comparison table, without empty rows. `duration` formats durations."""
    return list(_table_rows(comparison, duration))


def _table_rows(comparison: Comparison, duration: Callable[[float | None], str]) -> Iterator[ComparisonRow]:
    a, b = comparison.a, comparison.b
    figures = {figure.name: figure for figure in comparison.figures}
    yield ComparisonRow("Model", _model_names(a), _model_names(b))
    yield ComparisonRow("Status", _status_text(a), _status_text(b), better=_side_that_finished(a, b))
    yield _figure_row(figures["Turns"], duration)
    yield _figure_row(figures["Steps"], duration)
    failed_steps = figures["Failed steps"]
    if a.failed or b.failed:
        shares = _part_of_total(a.failed, a.steps), _part_of_total(b.failed, b.steps)
        yield ComparisonRow(failed_steps.name, *shares, _difference_text(failed_steps), failed_steps.better)
    for name in ("Working time", "Cost", "Input tokens", "Output tokens", "Cache hit rate"):
        if figures[name].a is not None or figures[name].b is not None:
            yield _figure_row(figures[name], duration)
    for name in ("Sub-agents", "Compactions"):
        if figures[name].a or figures[name].b:
            yield _figure_row(figures[name], duration)
    if a.branches or b.branches:
        abandoned_branches = figures["Abandoned branches"]
        yield ComparisonRow(
            "Abandoned",
            _abandoned_text(a),
            _abandoned_text(b),
            _difference_text(abandoned_branches),
            abandoned_branches.better,
        )
    yield from _test_rows(comparison, figures.get("Failing tests"))
    if a.changed or b.changed:
        yield ComparisonRow(
            "Files changed", _changed_files_text(a), _changed_files_text(b), _difference_text(figures["Files changed"])
        )


def _test_rows(comparison: Comparison, failing: Figure | None) -> Iterator[ComparisonRow]:
    result_a, result_b = comparison.a.last_tests, comparison.b.last_tests
    if result_a is None and result_b is None:
        return
    yield ComparisonRow(
        "Last tests",
        "none" if result_a is None else str(result_a),
        "none" if result_b is None else str(result_b),
        better=failing.better if failing is not None else "",
    )


def _figure_row(figure: Figure, duration: Callable[[float | None], str]) -> ComparisonRow:
    text_a, text_b = (_figure_text(figure, value, duration) for value in (figure.a, figure.b))
    if text_a == text_b:
        return ComparisonRow(figure.name, text_a, text_b)
    return ComparisonRow(figure.name, text_a, text_b, _difference_text(figure), figure.better)


def _figure_text(figure: Figure, value: float | None, duration: Callable[[float | None], str]) -> str:
    if value is None:
        return "unknown"
    match figure.unit:
        case "seconds":
            return duration(value)
        case "money":
            return humanize.money(int(value))
        case "tokens":
            return humanize.tokens(int(value))
        case "share":
            return f"{value:.0%}"
        case "count":
            return f"{int(value):,}" if value else "none"


def _difference_text(figure: Figure) -> str:
    """Return the difference from A to B: absolute for small counts, otherwise in percent."""
    a, b = figure.a, figure.b
    if a is None or b is None or a == b:
        return ""
    if figure.unit == "share":
        points = round(b * 100) - round(a * 100)
        return f"{humanize.signed(points)} points" if points else ""
    if figure.unit == "count" and max(a, b) <= _SMALL_COUNT:
        return humanize.signed(int(b - a))
    return f"{humanize.signed(round((b - a) / a * 100))}%" if a else ""


def _model_names(side: SessionSide) -> str:
    return ", ".join(humanize.model_name(model) for model in side.known.models) or "none"


def _status_text(side: SessionSide) -> str:
    text = _STATUS_TEXTS[side.standing]
    if side.standing == "interrupted" and side.path:
        return f"{text} in turn {side.path[-1].turn}"
    return text


def _side_that_finished(a: SessionSide, b: SessionSide) -> SideName:
    a_finished, b_finished = a.standing == "finished", b.standing == "finished"
    if a_finished == b_finished:
        return ""
    return "a" if a_finished else "b"


def _part_of_total(part: int, total: int) -> str:
    return f"{part:,} of {total:,}" if part else "none"


def _abandoned_text(side: SessionSide) -> str:
    if not side.branches:
        return "none"
    text = humanize.count(side.branches, "branch", "branches")
    return text if not side.abandoned else f"{text}, {humanize.tokens(side.abandoned)} tokens"


def _changed_files_text(side: SessionSide) -> str:
    changed = side.changed.values()
    added, removed = sum(touch.added for touch in changed), sum(each.removed for each in changed)
    return f"{len(changed):,}, {humanize.line_changes(added, removed)}" if changed else "none"


RELATION_TEXTS: Final[dict[Relation, str]] = {
    "fork": "fork",
    "prompt": "same first prompt",
    "project": "same project",
    "": "unrelated",
}


def facts_from_index(connection: sqlite3.Connection, session_row: SessionRow, prices: PriceTable) -> IndexedFacts:
    """Return the facts of a session from the index."""
    models = connection.execute(
        "SELECT u.model FROM usage u JOIN sessions s ON s.file = u.file "
        "WHERE s.owner = ? AND u.model != '' GROUP BY 1 ORDER BY sum(u.output) DESC, 1 LIMIT 6",
        (session_row.file,),
    )
    return IndexedFacts(
        title=session_row.title,
        project=session_row.project,
        branch=session_row.branch,
        models=tuple(model for (model,) in models),
        figures=usage_by_session(connection, [session_row.file], prices).get(session_row.file),
        counted=session_row.figures,
    )


def facts_from_files(session: Session, session_file: DiscoveredFile, prices: PriceTable) -> IndexedFacts:
    """Return the facts of a session from its files."""
    paths = (session_file.path, *(agent_file.path for agent_file in discover_agents(session_file)))
    partition = FilePartition(list(enumerate(paths)))
    partition.read()
    return IndexedFacts(
        title=session.title.text,
        project=session.project,
        branch=session.branch,
        models=session.models,
        figures=build_report(partition.aggregate(UsageQuery(by="model")), "model", prices).totals,
        counted=SessionCounts(
            turns=count_turns(session_file) or 0, steps=sum(len(node.uses) for node in session.transcript.nodes)
        ),
    )


def prompts_of_both(comparison: Comparison) -> Iterator[tuple[bool, bool, str]]:
    """Yield each prompt once: whether A has it, whether B has it, and its text."""
    prompts_a, prompts_b = (
        [item.subject for item in side.path if item.is_prompt] for side in (comparison.a, comparison.b)
    )
    for part in comparison.prompts.parts:
        for index in part.a:
            yield True, part.common, prompts_a[index]
        if not part.common:
            for index in part.b:
                yield False, True, prompts_b[index]


def divergence_text(comparison: Comparison) -> str:
    """Return a phrase that describes the divergence."""
    has_steps_a, has_steps_b = (any(not item.is_prompt for item in side.path) for side in (comparison.a, comparison.b))
    if not has_steps_a and not has_steps_b:
        return "no steps in either session"
    if comparison.divergence is None:
        return "identical steps"
    if not comparison.divergence.steps and not comparison.common:
        return "no common steps" if has_steps_a else "no steps in A"
    shared_steps = humanize.count(comparison.divergence.steps, "common step")
    later_steps = comparison.common - comparison.divergence.steps
    later_text = f", {humanize.count(later_steps, 'more common step')} later" if later_steps else ""
    if not comparison.divergence.steps:
        return f"diverges at the first step{later_text}"
    return f"diverges after {shared_steps}{later_text}"


def shared_text(comparison: Comparison) -> str:
    """Return a sentence about shared records; empty if there are none."""
    if comparison.shared is None:
        return ""
    fork_texts = {"a": "A is a fork of B: they", "b": "B is a fork of A: they", "": "They"}
    turns, steps = comparison.shared.turns, comparison.shared.steps
    return (
        f"{fork_texts[comparison.forked]} share {humanize.count(turns, 'turn')} and {humanize.count(steps, 'step')}. "
        "Tokens of shared records are counted once, in the original session."
    )


def limitation_texts(comparison: Comparison) -> Iterator[str]:
    """Yield the limits that the comparison exceeded."""
    for letter, side in (("A", comparison.a), ("B", comparison.b)):
        if side.cut:
            yield f"{letter} is too long to compare in full: {side.cut:,} records or steps are omitted"
        if side.unheard:
            agents = humanize.count(side.unheard, "sub-agent")
            yield f"{agents} of {letter} exceed the read limit; their files and commands are omitted"
    if comparison.path.loose:
        yield f"{comparison.path.loose:,} steps exceed the limit and are not aligned"
