"""Two sessions side by side as Markdown. What sessions say is quoted: code, never markup."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from steno.cli.compared import call_cell, file_cell, item_text, name_of, ran_cell, when_of
from steno.report.compare import Comparison
from steno.report.compare.figures import rows_of
from steno.report.compare.told import ALIKE, asked_of, limits_of, said_of, shared_of
from steno.safe.terminal import one_line

__all__ = ["comparison_markdown", "quoted"]

_ROWS: Final = 15
_STEPS: Final = 12
_LONGEST: Final = 300


def quoted(text: str) -> str:
    """Return a text of a session as code on one line, whatever marks are in it.

    >>> quoted("a `b` c"), quoted("")
    ('`` a `b` c ``', '(none)')
    """
    flat = one_line(text, _LONGEST)
    if not flat:
        return "(none)"
    longest = max((len(run) for run in re.findall(r"`+", flat)), default=0)
    fence = "`" * (longest + 1)
    space = " " if longest else ""
    return f"{fence}{space}{flat}{space}{fence}"


def comparison_markdown(found: Comparison, now: float, *, everything: bool) -> str:
    """Return a comparison as a document."""
    return "\n".join(_lines(found, now, everything=everything)) + "\n"


def _lines(found: Comparison, now: float, *, everything: bool) -> Iterator[str]:
    most = None if everything else _ROWS
    yield f"# Two sessions: {ALIKE[found.alike]}"
    yield ""
    for letter, side in (("A", found.a), ("B", found.b)):
        yield f"- **{letter}** {quoted(side.id)} {quoted(name_of(side))} {quoted(when_of(side, now))}"
    if found.shared is not None:
        yield f"\n{shared_of(found)}"
    yield ""
    rows = [(row.name, quoted(row.a), quoted(row.b), row.delta) for row in rows_of(found)]
    yield from _table(("", "A", "B", "B against A"), rows)
    yield f"## Path\n\n{said_of(found).capitalize()}.\n"
    yield from _path(found, everything=everything)
    yield "\n## Prompts\n"
    asked = list(asked_of(found))[:most]
    yield from _table(
        ("A", "B", "prompt"),
        [("x" if a else "", "x" if b else "", quoted(text)) for a, b, text in asked],
    )
    for head, name, some, cell in (
        ("Files", "file", found.files, file_cell),
        ("Commands", "command", found.commands, ran_cell),
        ("Tools", "tool", found.tools, call_cell),
    ):
        if some:
            yield f"## {head}\n"
            yield from _pairs(name, some[:most], cell)
    for text in limits_of(found):
        yield f"> {text}"


def _pairs(name: str, rows: Sequence[tuple[str, Any, Any]], cell: Any) -> Iterator[str]:
    made = [(quoted(each), quoted(cell(a)), quoted(cell(b))) for each, a, b in rows]
    yield from _table((name, "A", "B"), made)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(heads)} |"
    yield f"|{'---|' * len(heads)}"
    for row in rows:
        # A bar would end a cell, in code as well.
        cells = (cell.replace("|", "\\|") for cell in row)
        yield f"| {' | '.join(cells)} |"
    yield ""


def _path(found: Comparison, *, everything: bool) -> Iterator[str]:
    for part in found.path.parts:
        sides = (
            [("A and B", found.a.path, part.a)]
            if part.common
            else [("A", found.a.path, part.a), ("B", found.b.path, part.b)]
        )
        for who, path, places in sides:
            shown = places if everything else places[:_STEPS]
            for place in shown:
                yield f"- **{who}** {quoted(item_text(path[place]))}"
            if len(places) > len(shown):
                yield f"- **{who}** and {len(places) - len(shown):,} more"
