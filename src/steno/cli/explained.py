"""The lines behind a total, for people and for programs."""

from collections.abc import Iterable, Iterator
from typing import Any, Final

from steno.cli.screen import Screen
from steno.cli.usage_table import cost
from steno.report import clock, words
from steno.report.usage.as_json import figures_json, names_json
from steno.report.usage.explain import Explained, LineSeen, Response
from steno.safe.terminal import Line as Words
from steno.safe.terminal import one_line, short_path, width, wrap

__all__ = ["explained_json", "show_explained"]

_RESPONSES: Final = 20
_SKIPPED: Final = 5
_INDENT: Final = " " * 5
_NARROW: Final = 24
"""Where a path would have less room than that, the figures go below it."""
_NAMELESS: Final = {"agent": ("unknown", "the session"), "branch": ("unknown", "(none)")}
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
    explained: Explained, by: str, limit: int | None, color: Any, columns: int | None
) -> None:
    """Write the lines behind a total for people."""
    screen = Screen(color, columns)
    shown = explained.responses[: _RESPONSES if limit is None else limit or None]
    groups: dict[tuple[str, ...], list[Response]] = {}
    for response in explained.responses:
        groups.setdefault(response.names, []).append(response)
    group: tuple[str, ...] | None = None
    for response in shown:
        if response.names != group:
            group = response.names
            screen.lines(_head(by, group, groups[group], screen.width))
        screen.lines(_response(response, screen.width))
    skipped = explained.skipped[: None if limit == 0 else _SKIPPED]
    screen.lines(_end(explained, len(shown), len(skipped), screen.width))
    for line in skipped:
        screen.lines(_line(line, screen.width))


def _head(
    by: str, names: tuple[str, ...], members: list[Response], columns: int
) -> Iterator[Words]:
    nameless = _NAMELESS.get(by, ("unknown",))
    named = (one_line(name, 60) or other for name, other in zip(names, nameless, strict=True))
    said = words.count(len(members), "response")
    name = one_line(" · ".join(named), columns)
    return _flow([(name, "bold"), (said, "dim"), (_sum(members), "dim")], columns, "", " ")


def _sum(members: list[Response]) -> str:
    """Return what responses cost together, as far as that is known."""
    known = [each.cost for each in members if each.cost is not None]
    if not known:
        return "cost unknown"
    return f"${sum(known) / 1e6:,.6f}{'+?' if len(known) < len(members) else ''}"


def _response(response: Response, columns: int) -> Iterator[Words]:
    price = "no price known" if response.cost is None else f"${response.cost / 1e6:.6f}"
    stamp = clock.iso(None if response.time is None else response.time / 1000) or "time unknown"
    pieces = [
        (one_line(response.key, min(40, columns - 1)), "bold"),
        (one_line(words.model_name(response.model), 30) or "no model", ""),
        (stamp, ""),
        (price, ""),
    ]
    if response.figures.estimated:
        pieces.append(("≈ placeholder", "yellow"))
    yield from _flow(pieces, columns, " ", "   ")
    for number, line in enumerate(response.lines):
        following = response.lines[number + 1 : number + 2]
        # What holds for several lines in a row is said once, below the last of them.
        told = any((each.verdict, each.why) == (line.verdict, line.why) for each in following)
        yield from _line(line, columns, why=not told)


def _line(line: LineSeen, columns: int, *, why: bool = True) -> Iterator[Words]:
    mark, style = _MARKS[line.verdict]
    place = f":{line.line}" if line.line else f" @{line.offset}"
    figures = _figures(line)
    told = sum(width(text) + 2 for text, _ in figures)
    beside = columns - told - width(place) - len(_INDENT) - 1
    room = beside if beside >= _NARROW else columns - width(place) - len(_INDENT)
    folder, name = short_path(line.path, room)
    head: Words = ["   ", (mark, style), " ", (folder, "dim"), name + place]
    if beside >= _NARROW:
        yield [*head, *(bit for figure in figures for bit in ("  ", figure))]
    else:
        yield head
        yield from _flow(figures, columns, _INDENT, _INDENT)
    if why and (line.verdict != "counted" or not line.line):
        said = one_line(f"{line.verdict}: {line.why}")
        for text in wrap(said, columns - len(_INDENT)):
            yield [(_INDENT + text, "dim")]


def _figures(line: LineSeen) -> list[tuple[str, str]]:
    fresh, output, short, long, read, searches = line.figures
    parts = [f"in {fresh:,}", f"out {output:,}", f"5m {short:,}", f"1h {long:,}", f"read {read:,}"]
    if searches:
        parts.append(words.count(searches, "search", "searches"))
    return [*((part, "") for part in parts), *([("cut to bounds", "yellow")] if line.cut else [])]


def _end(explained: Explained, shown: int, skipped: int, columns: int) -> Iterator[Words]:
    yield []
    everything = len(explained.responses)
    if shown < everything:
        said = f"{shown:,} of {everything:,} responses; --limit 0 shows all"
        for text in wrap(said, columns):
            yield [(text, "dim")]
    merged = sum(line.verdict == "merged" for each in explained.responses for line in each.lines)
    copies = sum(line.verdict == "copy" for each in explained.responses for line in each.lines)
    counted = words.count(everything, "response")
    counted = f"{counted} counted, {cost(explained.cost, explained.totals)}"
    rest = (
        f"{words.count(merged, 'line')} merged, {words.count(copies, 'line')} of copies, "
        f"{words.count(len(explained.skipped), 'line')} skipped"
    )
    if skipped < len(explained.skipped):
        rest += f", {skipped:,} of {len(explained.skipped):,} shown; --limit 0 shows all"
    parts = [(text, "") for text in wrap(rest, columns)]
    yield from _flow([(counted, "bold"), *parts], columns, "", "")


def _flow(
    pieces: Iterable[tuple[str, str]], columns: int, first: str, rest: str
) -> Iterator[Words]:
    """Yield pieces side by side, on as many lines as they take."""
    line: Words = [first]
    used, empty = width(first), True
    for text, style in pieces:
        if not empty and used + 2 + width(text) > columns:
            yield line
            line = [rest]
            used, empty = width(rest), True
        gap = "" if empty else "  "
        line += [gap, (text, style)]
        used += len(gap) + width(text)
        empty = False
    yield line


def explained_json(explained: Explained, by: str) -> dict[str, Any]:
    """Return the lines behind a total as a value for JSON."""
    return {
        "by": by,
        "complete": explained.complete,
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
        "cut": line.cut,
        **dict(zip(_FIGURES, line.figures, strict=True)),
    }


def _text(path: str) -> str:
    """Return a path as text, whatever bytes it is made of."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
