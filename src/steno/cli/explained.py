"""The lines behind a total, for people and for programs."""

from collections.abc import Iterator
from typing import Any, Final

from steno.cli import clock, words
from steno.cli.screen import Screen
from steno.cli.usage import figures_json, names_json
from steno.cli.usage_table import cost
from steno.report.usage.explain import Explained, LineSeen, Response
from steno.safe.terminal import Line as Words
from steno.safe.terminal import one_line, pad, short_path, width

__all__ = ["explained_json", "show_explained"]

_RESPONSES: Final = 20
_SKIPPED: Final = 5
_MARKS: Final = {
    "counted": ("✓", "green"),
    "merged": ("·", "dim"),
    "copy": ("·", "dim"),
    "skipped": ("·", "dim"),
}
_FIGURES: Final = (
    "input_tokens",
    "output_tokens",
    "cache_creation_5m_input_tokens",
    "cache_creation_1h_input_tokens",
    "cache_read_input_tokens",
    "web_search_requests",
)


def show_explained(
    explained: Explained, limit: int | None, color: Any, columns: int | None
) -> None:
    """Write the lines behind a total for people."""
    screen = Screen(color, columns)
    limit = _RESPONSES if limit is None else limit
    shown = explained.responses[: limit or None]
    group: tuple[str, ...] | None = None
    for response in shown:
        if response.names != group:
            group = response.names
            members = [each for each in explained.responses if each.names == group]
            screen.lines(_head(group, members))
        screen.lines(_response(response, screen.width))
    screen.lines(_end(explained, len(shown), screen.width))


def _head(names: tuple[str, ...], members: list[Response]) -> Iterator[Words]:
    known = sum(each.cost or 0 for each in members)
    name = " · ".join(one_line(each, 60) or "unknown" for each in names)
    said = words.count(len(members), "response")
    yield [(name, "bold"), (f"  {said}  ${known / 1e6:,.6f}", "dim")]


def _response(response: Response, columns: int) -> Iterator[Words]:
    figures = response.figures
    price = "no price known" if response.cost is None else f"${response.cost / 1e6:.6f}"
    stamp = clock.iso(None if response.time is None else response.time / 1000) or "time unknown"
    about = f"  {one_line(words.model_name(response.model), 30) or 'no model'}  {stamp}  {price}"
    mark = "  ≈ placeholder" if figures.estimated else ""
    yield [" ", (one_line(response.key, 40), "bold"), (about, ""), (mark, "yellow")]
    for number, line in enumerate(response.lines):
        following = response.lines[number + 1 : number + 2]
        # What holds for several lines in a row is said once, below the last of them.
        told = any((each.verdict, each.why) == (line.verdict, line.why) for each in following)
        yield from _line(line, columns, why=not told)


def _line(line: LineSeen, columns: int, *, why: bool = True) -> Iterator[Words]:
    mark, style = _MARKS[line.verdict]
    place = f":{line.line}" if line.line else f" @{line.offset}"
    fresh, output, short, long, read, searches = line.figures
    parts = [f"in {fresh:,}", f"out {output:,}", f"5m {short:,}", f"1h {long:,}", f"read {read:,}"]
    if searches:
        parts.append(words.count(searches, "search", "searches"))
    told = "  ".join(parts)
    folder, name = short_path(line.path, max(16, columns - width(told) - width(place) - 8))
    yield ["   ", (mark, style), " ", (folder, "dim"), name + place, "  ", told]
    if why and (line.verdict != "counted" or not line.line):
        yield [(pad("", 5) + one_line(f"{line.verdict}: {line.why}", columns - 6), "dim")]


def _end(explained: Explained, shown: int, columns: int) -> Iterator[Words]:
    yield []
    everything = len(explained.responses)
    if shown < everything:
        yield [(f"{shown:,} of {everything:,} responses; --limit 0 shows all", "dim")]
    merged = sum(line.verdict == "merged" for each in explained.responses for line in each.lines)
    copies = sum(line.verdict == "copy" for each in explained.responses for line in each.lines)
    totals = explained.totals
    counted = words.count(everything, "response")
    rest = (
        f"  {words.count(merged, 'line')} merged, {words.count(copies, 'line')} of copies, "
        f"{words.count(len(explained.skipped), 'line')} skipped"
    )
    yield [
        (f"{counted} counted, {cost(explained.cost, totals)}", "bold"),
        rest,
    ]
    for line in explained.skipped[:_SKIPPED]:
        yield from _line(line, columns)


def explained_json(explained: Explained, by: str) -> dict[str, Any]:
    """Return the lines behind a total as a value for JSON."""
    return {
        "by": by,
        "totals": figures_json(explained.totals, explained.cost),
        "responses": [
            {
                "key": each.key,
                **names_json(by, each.names),
                "model": each.model,
                "time": clock.iso(None if each.time is None else each.time / 1000),
                "session": each.session,
                "project": each.project,
                **figures_json(each.figures, each.cost or 0),
                "lines": [_line_json(line) for line in each.lines],
            }
            for each in explained.responses
        ],
        "skipped": [_line_json(line) for line in explained.skipped],
    }


def _line_json(line: LineSeen) -> dict[str, Any]:
    return {
        "path": _text(line.path),
        "line": line.line or None,
        "offset": line.offset,
        "verdict": line.verdict,
        "why": _text(line.why),
        "counts_in": _text(line.counts_in) or None,
        **dict(zip(_FIGURES, line.figures, strict=True)),
    }


def _text(path: str) -> str:
    """Return a path as text, whatever bytes it is made of."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
