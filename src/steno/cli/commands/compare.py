"""`steno compare`: compares two sessions, as text, Markdown or JSON.

In Markdown, text from sessions is quoted as code, so that it is never markup.
"""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from steno.cli.command_arguments import root_arguments, search_roots
from steno.cli.fresh_index import NO_SYNC, open_fresh_index
from steno.cli.options import COLOR, JSON, ROOT_OPTIONS, WIDTH, add_options, complete
from steno.cli.output.file_history_lines import added_text, removed_text
from steno.cli.output.screen import Screen, write_bytes, write_json
from steno.cli.output.table_layout import Column, layout_columns
from steno.errors import BadRequest
from steno.format.paths import SHORT_ID_LENGTH
from steno.report import clock, humanize
from steno.report.actions.action import TestResult
from steno.report.compare import Comparison, SessionSide
from steno.report.compare.comparison import (
    RELATION_TEXTS,
    ComparisonRow,
    comparison_rows,
    current_action_text,
    divergence_text,
    limitation_texts,
    prompts_of_both,
    shared_text,
)
from steno.report.compare.session_side import CommandRuns, FileTouches, PathItem
from steno.sanitize.terminal import ColourMode, StyledLine, display_width, one_line, truncate, wrap
from steno.store import environment

if TYPE_CHECKING:
    from steno.index.database import SessionIndex
    from steno.report.pricing import PriceTable
    from steno.store.discovery import DiscoveredFile


_MAX_TABLE_ROWS: Final = 15
_FOLD_HEAD: Final = 3
_FOLD_TAIL: Final = 2
_FOLD_SIDE: Final = 12
_SIDE_STYLES: Final = {"A": "cyan", "B": "magenta", " ": ""}
_MAX_SUBJECT_WIDTH: Final = 160
_MAX_CELL_WIDTH: Final = 28


def side_title(side: SessionSide) -> str:
    """Return the title of a session."""
    return one_line(side.known.title, 200) or "(no title)"


def side_details(side: SessionSide, now: float) -> str:
    """Return the project, branch and start time of a session."""
    start_time = "" if side.started is None else humanize.day_and_time(side.started, now)
    parts = (humanize.project_name(side.known.project), side.known.branch, start_time)
    return ", ".join(one_line(part, 60) for part in parts if part)


def comparison_lines(comparison: Comparison, columns: int, now: float, *, show_all: bool) -> Iterator[StyledLine]:
    """Yield a comparison: figures, path of steps, prompts, files, commands and tools."""
    for label, side in (("A", comparison.a), ("B", comparison.b)):
        details = side_details(side, now)
        title_width = max(12, columns - display_width(details) - SHORT_ID_LENGTH - 8)
        yield [
            (label, f"bold {_SIDE_STYLES[label]}"),
            ("  " + side.id[:SHORT_ID_LENGTH], "bold"),
            f"  {truncate(side_title(side), title_width)}  ",
            (details, "dim"),
        ]
    yield [(f"   {RELATION_TEXTS[comparison.relation]}", "dim")]
    for text in wrap(shared_text(comparison), columns - 3) if comparison.shared else ():
        yield ["   ", text]
    yield []
    yield from _figure_lines(comparison_rows(comparison), columns)
    yield []
    yield from _path_lines(comparison, columns, show_all=show_all)
    yield from _prompt_lines(comparison, columns, show_all=show_all)
    max_rows = None if show_all else _MAX_TABLE_ROWS
    yield from _side_table_lines("FILES", comparison.files, file_change_cell, columns, max_rows)
    yield from _side_table_lines("COMMANDS", comparison.commands, command_cell, columns, max_rows)
    yield from _side_table_lines("TOOLS", comparison.tools, tool_call_cell, columns, max_rows)
    for text in limitation_texts(comparison):
        yield [(text, "yellow")]


def _figure_lines(rows: Sequence[ComparisonRow], columns: int) -> Iterator[StyledLine]:
    heads, lines = layout_columns(
        [
            Column("", [row.name for row in rows], "dim"),
            Column("A", [_mark_better(row.a, better=row.better == "a") for row in rows], _SIDE_STYLES["A"]),
            Column("B", [_mark_better(row.b, better=row.better == "b") for row in rows], _SIDE_STYLES["B"]),
            Column("B VS A", [row.delta for row in rows], "dim"),
        ],
        columns - 1,
    )
    yield [" ", *heads]
    for line in lines:
        yield [" ", *line]


def _mark_better(text: str, *, better: bool) -> str:
    return f"{text} ✓" if better else text


# Paths of steps


def _path_lines(comparison: Comparison, columns: int, *, show_all: bool) -> Iterator[StyledLine]:
    yield [("PATH", "bold"), f"  {divergence_text(comparison)}"]
    has_diverged = False
    for part in comparison.path.parts:
        items_a = [comparison.a.path[index] for index in part.a]
        items_b = [comparison.b.path[place] for place in part.b]
        if part.common:
            lines = [_common_item_line(*pair, columns) for pair in zip(items_a, items_b, strict=True)]
            yield from _fold_lines(lines, _FOLD_HEAD, _FOLD_TAIL, show_all=show_all)
            continue
        yield [
            (
                _divergence_heading(comparison, items_a, items_b, is_repeated=has_diverged, columns=columns),
                "bold yellow",
            )
        ]
        has_diverged = True
        for label, items in (("A", items_a), ("B", items_b)):
            lines = [_path_item_line(label, item, path_item_text(item), columns) for item in items]
            yield from _fold_lines(lines, _FOLD_SIDE, 0, show_all=show_all)
    yield []


def _divergence_heading(
    comparison: Comparison, items_a: Sequence[PathItem], items_b: Sequence[PathItem], *, is_repeated: bool, columns: int
) -> str:
    if is_repeated:
        return "  diverges again"
    divergence = comparison.divergence
    first = divergence.a if divergence is not None else None
    second = divergence.b if divergence is not None else None
    if first is not None and second is not None and first.is_prompt and second.is_prompt:
        return "  different prompts"
    next_step = next((item for item in (*items_a, *items_b) if not item.is_prompt), None)
    step_label = f"step {next_step.number:,}: " if next_step is not None else ""
    text = f"{step_label}A {current_action_text(first, second)}, B {current_action_text(second, first)}"
    return f"  {one_line(text, columns - 2)}"


def _common_item_line(first: PathItem, second: PathItem, columns: int) -> StyledLine:
    text = path_item_text(first)
    if (first.outcome, first.state) != (second.outcome, second.state):
        text = f"{_item_subject(first)}  A: {_item_outcome(first)}  B: {_item_outcome(second)}"
    return _path_item_line(" ", first, text, columns)


def path_item_text(item: PathItem) -> str:
    """Return a prompt, or a step and its outcome, on one line."""
    outcome = _item_outcome(item)
    return f"{_item_subject(item)}  {outcome}" if outcome and not item.is_prompt else _item_subject(item)


def _item_subject(item: PathItem) -> str:
    if item.is_prompt:
        return f"“{one_line(item.subject, _MAX_SUBJECT_WIDTH)}”"
    return one_line(f"{item.verb} {item.subject}", _MAX_SUBJECT_WIDTH)


def _item_outcome(item: PathItem) -> str:
    if item.added or item.removed:
        return " ".join(filter(None, (added_text(item.added), removed_text(item.removed))))
    return one_line(item.outcome, 60) or ("" if item.state == "ok" else item.state)


def _path_item_line(label: str, item: PathItem, text: str, columns: int) -> StyledLine:
    style = "bold" if item.is_prompt else "red" if item.state == "failed" else _SIDE_STYLES[label]
    return [(f"  {label} ", f"bold {_SIDE_STYLES[label]}".strip()), (truncate(text, columns - 4), style)]


def _fold_lines(lines: list[StyledLine], head: int, tail: int, *, show_all: bool) -> Iterator[StyledLine]:
    if show_all or len(lines) <= head + tail + 1:
        yield from lines
        return
    yield from lines[:head]
    yield [(f"    … {len(lines) - head - tail:,} more", "dim")]
    yield from lines[len(lines) - tail :]


def _prompt_lines(comparison: Comparison, columns: int, *, show_all: bool) -> Iterator[StyledLine]:
    prompts = list(prompts_of_both(comparison))
    max_rows = len(prompts) if show_all else _MAX_TABLE_ROWS
    yield [("PROMPTS", "bold")]
    for in_a, in_b, text in prompts[:max_rows]:
        yield [
            ("  " + ("A" if in_a else " "), _SIDE_STYLES["A"]),
            ("B " if in_b else "  ", _SIDE_STYLES["B"]),
            one_line(text, columns - 5) or "(no text)",
        ]
    if len(prompts) > max_rows:
        yield [(f"     … {len(prompts) - max_rows:,} more", "dim")]
    yield []


# Tables


def _side_table_lines(
    heading: str, rows: Sequence[tuple[str, Any, Any]], format_cell: Any, columns: int, max_rows: int | None
) -> Iterator[StyledLine]:
    if not rows:
        return
    visible = rows[:max_rows]
    title_width = max(16, columns - 2 * _MAX_CELL_WIDTH - 6)
    heads, lines = layout_columns(
        [
            Column(heading, [one_line(name, 400) for name, _, _ in visible], max_width=title_width),
            Column("A", [format_cell(a) for _, a, _ in visible], _SIDE_STYLES["A"], max_width=_MAX_CELL_WIDTH),
            Column("B", [format_cell(b) for _, _, b in visible], _SIDE_STYLES["B"], max_width=_MAX_CELL_WIDTH),
        ],
        columns - 2,
    )
    yield [" ", *heads]
    for line in lines:
        yield [" ", *line]
    if len(rows) > len(visible):
        yield [(f"  … {len(rows) - len(visible):,} more", "dim")]
    yield []


def file_change_cell(file_touch: FileTouches | None) -> str:
    """Return the changes of one session to a file."""
    if file_touch is None:
        return "-"
    if not file_touch.edits:
        return "read"
    return " ".join(filter(None, (added_text(file_touch.added), removed_text(file_touch.removed)))) or "±0"


def command_cell(command_run: CommandRuns | None) -> str:
    """Return the outcome of a command in one session."""
    if command_run is None:
        return "-"
    result = one_line(str(command_run.tests or command_run.outcome or command_run.state), 28)
    return f"{result} ({command_run.times} times)" if command_run.times > 1 else result


def tool_call_cell(calls: tuple[int, int] | None) -> str:
    """Return the number of calls of a tool in one session."""
    if calls is None:
        return "-"
    return f"{calls[0]:,}, {calls[1]:,} failed" if calls[1] else f"{calls[0]:,}"


# JSON


def comparison_json(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as JSON."""
    divergence = comparison.divergence
    return {
        "a": _side_json(comparison.a),
        "b": _side_json(comparison.b),
        "relation": comparison.relation or None,
        "forked": comparison.forked or None,
        "shared": msgspec.to_builtins(comparison.shared),
        "divergence_text": divergence_text(comparison),
        "divergence": None
        if divergence is None
        else {
            "steps": divergence.steps,
            "a": None if divergence.a is None else _item_json(divergence.a),
            "b": None if divergence.b is None else _item_json(divergence.b),
        },
        "common_steps": comparison.common,
        "figures": [msgspec.to_builtins(figure) for figure in comparison.figures],
        "prompts": [{"a": a, "b": b, "text": text} for a, b, text in prompts_of_both(comparison)],
        "path": [
            {
                "common": part.common,
                "a": [_item_json(comparison.a.path[index]) for index in part.a],
                "b": [_item_json(comparison.b.path[place]) for place in part.b],
            }
            for part in comparison.path.parts
        ],
        "files": [_pair_json("path", row) for row in comparison.files],
        "commands": [_pair_json("command", row) for row in comparison.commands],
        "tools": [{"tool": name, "a": _calls_json(a), "b": _calls_json(b)} for name, a, b in comparison.tools],
        "limitations": list(limitation_texts(comparison)),
    }


def _side_json(side: SessionSide) -> dict[str, Any]:
    figures = side.known.figures
    return {
        "session": side.id,
        "title": side.known.title,
        "project": side.known.project,
        "branch": side.known.branch,
        "models": side.known.models,
        "started": clock.iso_time(side.started),
        "ended": clock.iso_time(side.ended),
        "seconds_worked": side.worked,
        "status": side.standing,
        "cost_micro_usd": None if figures is None else figures.cost,
        "tests": _tests_json(side.last_tests),
    }


def _tests_json(tests: TestResult | None) -> dict[str, Any] | None:
    if tests is None:
        return None
    numbers = tests.counts
    return {
        "ok": tests.ok,
        "passed": None if numbers is None else numbers.passed,
        "failed": None if numbers is None else numbers.failed,
    }


def _item_json(item: PathItem) -> dict[str, Any]:
    return {
        "kind": item.kind,
        "turn": item.turn,
        "step": item.number,
        "verb": item.verb or None,
        "subject": item.subject,
        "outcome": item.outcome or None,
        "state": item.state,
        "seconds": item.seconds,
        "added": item.added,
        "removed": item.removed,
        "uuid": item.uuid or None,
        "agent": item.agent or None,
    }


def _pair_json(name: str, row: tuple[str, Any, Any]) -> dict[str, Any]:
    return {name: row[0], "a": msgspec.to_builtins(row[1]), "b": msgspec.to_builtins(row[2])}


def _calls_json(calls: tuple[int, int] | None) -> dict[str, int] | None:
    return None if calls is None else {"calls": calls[0], "failed": calls[1]}


_MAX_MARKDOWN_ROWS: Final = 15
_MAX_PATH_STEPS: Final = 12
_MAX_QUOTE_LENGTH: Final = 300


def markdown_code_quote(text: str) -> str:
    """Return text of a session as inline code on one line, with a safe fence.

    >>> markdown_code_quote("a `b` c"), markdown_code_quote("")
    ('`` a `b` c ``', '(none)')
    """
    one_line_text = one_line(text, _MAX_QUOTE_LENGTH)
    if not one_line_text:
        return "(none)"
    longest = max((len(run) for run in re.findall(r"`+", one_line_text)), default=0)
    fence = "`" * (longest + 1)
    space = " " if longest else ""
    return f"{fence}{space}{one_line_text}{space}{fence}"


def comparison_markdown(comparison: Comparison, now: float, *, show_all: bool) -> str:
    """Return a comparison as Markdown."""
    return "\n".join(_markdown_lines(comparison, now, show_all=show_all)) + "\n"


def _markdown_lines(comparison: Comparison, now: float, *, show_all: bool) -> Iterator[str]:
    max_rows = None if show_all else _MAX_MARKDOWN_ROWS
    yield f"# Two sessions: {RELATION_TEXTS[comparison.relation]}"
    yield ""
    for label, side in (("A", comparison.a), ("B", comparison.b)):
        yield f"- **{label}** {markdown_code_quote(side.id)} {markdown_code_quote(side_title(side))} {markdown_code_quote(side_details(side, now))}"
    if comparison.shared is not None:
        yield f"\n{shared_text(comparison)}"
    yield ""
    rows = [
        (row.name, markdown_code_quote(row.a), markdown_code_quote(row.b), row.delta)
        for row in comparison_rows(comparison)
    ]
    yield from _markdown_table(("", "A", "B", "B vs A"), rows)
    yield f"## Path\n\n{divergence_text(comparison).capitalize()}.\n"
    yield from _markdown_path(comparison, show_all=show_all)
    yield "\n## Prompts\n"
    prompts = list(prompts_of_both(comparison))[:max_rows]
    yield from _markdown_table(
        ("A", "B", "prompt"),
        [("x" if a else "", "x" if b else "", markdown_code_quote(text)) for a, b, text in prompts],
    )
    for head, name, side_rows, format_cell in (
        ("Files", "file", comparison.files, file_change_cell),
        ("Commands", "command", comparison.commands, command_cell),
        ("Tools", "tool", comparison.tools, tool_call_cell),
    ):
        if side_rows:
            yield f"## {head}\n"
            yield from _markdown_side_table(name, side_rows[:max_rows], format_cell)
    for text in limitation_texts(comparison):
        yield f"> {text}"


def _markdown_side_table(name: str, rows: Sequence[tuple[str, Any, Any]], format_cell: Any) -> Iterator[str]:
    table_rows = [
        (markdown_code_quote(row_name), markdown_code_quote(format_cell(a)), markdown_code_quote(format_cell(b)))
        for row_name, a, b in rows
    ]
    yield from _markdown_table((name, "A", "B"), table_rows)


def _markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for row in rows:
        # A bar ends a cell, even in code.
        cells = (cell.replace("|", "\\|") for cell in row)
        yield f"| {' | '.join(cells)} |"
    yield ""


def _markdown_path(comparison: Comparison, *, show_all: bool) -> Iterator[str]:
    for part in comparison.path.parts:
        sides = (
            [("A and B", comparison.a.path, part.a)]
            if part.common
            else [("A", comparison.a.path, part.a), ("B", comparison.b.path, part.b)]
        )
        for side_label, path, indexes in sides:
            visible = indexes if show_all else indexes[:_MAX_PATH_STEPS]
            for index in visible:
                yield f"- **{side_label}** {markdown_code_quote(path_item_text(path[index]))}"
            if len(indexes) > len(visible):
                yield f"- **{side_label}** … {len(indexes) - len(visible):,} more"


_FORMATS: Final = ("text", "markdown", "json")
_HELP: Final = """\
Compare two sessions: prompts, steps, files, commands, tests, cost and time.

A and B are SESSION arguments, as in `steno show`. Steps are equal if they perform the same
action on the same target, relative to the project directory. The result distinguishes two attempts
at one prompt, a session and its fork or resumed copy, and sessions that only share a project.

\b
Examples:
  steno compare 7c1f 9e02          Show the differences
  steno compare 7c1f last --all    Show every step
  steno compare 7c1f 9e02 --format markdown > comparison.md
"""


class _CompareOptions(msgspec.Struct):
    everything: bool = False
    style: str = "text"
    as_json: bool = False
    no_sync: bool = False
    no_pager: bool = False
    root: tuple[str, ...] = ()
    demo: bool = False


@click.command("compare", help=_HELP, short_help="Compare two sessions.")
@click.argument("a", metavar="A", shell_complete=complete)
@click.argument("b", metavar="B", shell_complete=complete)
@click.option("--all", "everything", is_flag=True, help="Show every step, file and command")
@click.option("--format", "style", type=click.Choice(_FORMATS), default="text", show_default=True, help="Output format")
@add_options(NO_SYNC, ROOT_OPTIONS, JSON)
@click.option("--no-pager", is_flag=True, help="Do not use a pager")
@WIDTH
@add_options(COLOR)
def command(a: str, b: str, color: ColourMode, width: int | None, **values: Any) -> None:
    """Compare two sessions."""
    from steno.cli.output.screen import print_paged
    from steno.report.compare import compare
    from steno.report.price_sources import load_price_table
    from steno.store.session_lookup import find

    command_options = _CompareOptions(**values)
    folders = search_roots(command_options.root, demo=command_options.demo)
    first_file, second_file = (find(name, folders) for name in (a, b))
    if first_file.path == second_file.path:
        raise BadRequest(f"{a!r} and {b!r} are the same session")
    screen = Screen(color, width)
    prices = load_price_table("")
    with open_fresh_index(
        command_options.root,
        demo=command_options.demo,
        no_sync=command_options.no_sync,
        while_syncing="cost and models may be incomplete",
    ) as index:
        comparison = compare(*(_build_side(index, file, prices) for file in (first_file, second_file)))
    if command_options.as_json or command_options.style == "json":
        write_json(comparison_json(comparison))
    elif command_options.style == "markdown":
        text = comparison_markdown(comparison, environment.now(), show_all=command_options.everything)
        write_bytes(text.encode())
    else:
        lines = comparison_lines(comparison, screen.width, environment.now(), show_all=command_options.everything)
        print_paged(screen, lines, use_pager=not command_options.no_pager)
        root_options = root_arguments(command_options.root, demo=command_options.demo)
        screen.print_next_steps([f"steno compare{root_options} A B --all", f"steno show{root_options} A --turn N"])


def _build_side(index: "SessionIndex", file: "DiscoveredFile", prices: "PriceTable") -> "SessionSide":
    """Return one side; the facts of a session that is not indexed come from its file."""
    from steno.report.compare import build_side
    from steno.report.compare.comparison import facts_from_files, facts_from_index
    from steno.report.compare.comparison_candidates import session_row_of
    from steno.report.session_lookup import session_at
    from steno.store.session_lookup import open_file_session

    row = session_at(index.connection, file.path)
    listed_session = session_row_of(index.connection, *row) if row is not None else None
    with open_file_session(file) as session:
        if listed_session is None:
            session_info = facts_from_files(session, file, prices)
        else:
            session_info = facts_from_index(index.connection, listed_session, prices)
        return build_side(session, session_info)
