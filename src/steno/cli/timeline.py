"""One file through time, one of its versions, or what lies between two, for people and programs."""

from collections.abc import Iterator, Sequence
from itertools import takewhile
from typing import Any, Final

from steno.cli.table import Column, layout
from steno.cli.touched import minus, plus
from steno.report import clock, words
from steno.report.files.history import diff
from steno.report.files.moments import number_of
from steno.report.files.timeline import Entry, brief_day, entries_of, how_of, what_of
from steno.report.files.unified import unified
from steno.report.files.values import History, Version
from steno.report.words import below
from steno.safe.terminal import Line, clean, one_line, wrap

__all__ = [
    "diff_json",
    "diff_lines",
    "diff_text",
    "history_json",
    "timeline_lines",
    "version_json",
    "version_lines",
]

_SECOND: Final = 1000
_SHORT: Final = 8
_PROMPT: Final = 3
_STYLES: Final = {"+": "green", "-": "red", "@": "cyan", "\\": "dim"}


# Through time


def timeline_lines(history: History, width: int, now: float, *, everything: bool) -> Iterator[Line]:
    """Yield the head, a table of versions (newest first), and what is to be said below it."""
    yield [(one_line(history.path, width), "bold")]
    yield [(_about(history), "dim")]
    yield []
    entries = _each(history, now) if everything else entries_of(history.versions, now)
    yield from _table(history, entries, width, now)
    for note in _notes(history):
        for number, text in enumerate(wrap(note, width - 3)):
            yield [(" " if number == 0 else "   ") + text]


def _each(history: History, now: float) -> list[Entry]:
    versions = reversed(history.versions)
    return [_idle(each) if each.settled else entries_of([each], now)[0] for each in versions]


def _idle(version: Version) -> Entry:
    return Entry(
        version=version,
        names=(version.name,),
        what="Changed nothing",
        kind="command",
        say=one_line(version.command),
        where="",
        when="",
    )


def _about(history: History) -> str:
    versions = history.versions
    changes = [each for each in versions if each.verb in ("write", "edit")]
    sessions = len({each.session for each in versions})
    said = f"{words.count(len(changes), 'change')} in {words.count(sessions, 'session')}"
    lines = (plus(sum(each.added for each in changes)), minus(sum(e.removed for e in changes)))
    return ", ".join(filter(None, (said, " ".join(filter(None, lines)))))


def _table(history: History, entries: Sequence[Entry], width: int, now: float) -> Iterator[Line]:
    versions = [entry.version for entry in entries]
    places = {id(each): number for number, each in enumerate(history.versions, 1)}
    columns = [
        Column("#", [_numbers(places, entry) for entry in entries], "bold", right=True),
        Column("WHEN", [_when(each, now) for each in versions]),
        Column("WHAT", [entry.what for entry in entries], most=24),
        Column("+", [plus(each.added) for each in versions], "green", right=True),
        Column("\N{MINUS SIGN}", [minus(each.removed) for each in versions], "red", right=True),
        Column("KNOWN", [_known(each) for each in versions], "yellow", needs=20),
        Column("AT", [_at(each) for each in versions], "cyan", needs=12),
        Column("ASKED", _said(entries), "dim", flexible=True, most=400),
    ]
    heads, lines = layout(columns, width - 1)
    yield [" ", *heads]
    for line in lines:
        yield [" ", *line]


def _said(entries: Sequence[Entry]) -> list[str]:
    """Return what led to each version, once where it led to several in a row."""
    said = [(_at(entry.version), entry.say) for entry in entries]
    above = [("", ""), *said[:-1]]
    return ["" if each == before else each[1] for each, before in zip(said, above, strict=True)]


def _numbers(places: dict[int, int], entry: Entry) -> str:
    last = places[id(entry.version)]
    first = last - len(entry.names) + 1
    return str(last) if first == last else f"{first}-{last}"


def _when(version: Version, now: float) -> str:
    if version.time is None:
        return "undated"
    seconds = version.time / _SECOND
    return f"{brief_day(seconds, now)} {words.clock(seconds)}"


def _known(version: Version) -> str:
    """Return what is to be said of a version whose text is not known for sure."""
    if version.known == "unknown":
        return "" if version.verb == "read" else "not known"
    return "in part" if version.known == "partial" else "doubtful" if _is_doubtful(version) else ""


def _is_doubtful(version: Version) -> bool:
    return bool(version.note) and version.verb != "outside"


def _at(version: Version) -> str:
    agent = " sub-agent" if version.agent else ""
    return f"{version.session[:_SHORT]}:{version.turn}{agent}"


def _notes(history: History) -> Iterator[str]:
    if history.lost:
        yield (
            f"{words.count(history.lost, 'touch', 'touches')} cannot be read any more: the sessions "
            "are gone, and were not archived"
        )
    # What was found changed later shows what the commands before it did.
    since = takewhile(lambda each: each.verb != "outside", reversed(history.versions))
    gaps = sum(each.verb == "command" and not each.settled for each in since)
    if gaps:
        yield f"{words.count(gaps, 'command')} may have changed it, and nothing shows what it did"


def history_json(history: History) -> dict[str, Any]:
    """Return a file through time for programs, oldest first, without the texts."""
    return {
        "path": history.path,
        "project": history.project,
        "lost": history.lost,
        "versions": [_json(number, each) for number, each in enumerate(history.versions, 1)],
    }


# One version


def version_json(history: History, version: Version, *, whole: bool = False) -> dict[str, Any]:
    """Return a version for programs; `whole` adds its text, or what is known of it."""
    told = _json(number_of(history, version), version)
    if whole:
        told |= {"path": history.path, "text": version.text, "total": version.total}
        told["pieces"] = [{"start": each.start, "lines": each.lines} for each in version.pieces]
    return told


def _json(number: int, version: Version) -> dict[str, Any]:
    return {
        "number": number or None,
        "name": version.name,
        "verb": version.verb,
        "tool": version.tool,
        "known": version.known,
        "added": version.added,
        "removed": version.removed,
        "note": version.note,
        "same_as": version.back or None,
        "command": version.command or None,
        "changed_nothing": version.settled,
        "session": version.session,
        "agent": version.agent or None,
        "turn": version.turn,
        "offset": version.offset,
        "time": clock.iso(None if version.time is None else version.time / _SECOND),
        "abandoned": version.abandoned,
        "copies": version.copies,
        "title": version.title,
        "prompt": version.prompt,
    }


def version_lines(history: History, version: Version, width: int) -> Iterator[Line]:
    """Yield a version: what it is, how it is known, and its lines with their numbers."""
    yield [(one_line(history.path, width), "bold")]
    yield [_head(history, version)]
    yield [(how_of(version), "dim")]
    if version.note:
        yield [(one_line(version.note, width), "yellow")]
    for text in wrap(version.prompt, width - 2)[:_PROMPT]:
        yield ["  ", (text, "dim")]
    yield []
    if version.text is not None:
        lines = version.text.replace("\r\n", "\n").split("\n")
        if not lines[-1]:
            lines.pop()
        yield from _numbered(lines, 1)
        return
    at = 1
    for piece in version.pieces:
        if piece.start > at:
            yield [(f"       {words.count(piece.start - at, 'line')} not known", "dim")]
        yield from _numbered(piece.lines, piece.start)
        at = piece.start + len(piece.lines)
    if version.total is not None and at <= version.total:
        yield [(f"       {words.count(version.total - at + 1, 'line')} not known", "dim")]


def _head(history: History, version: Version) -> str:
    number = number_of(history, version)
    if not number:
        return "as it is on the disk"
    parts = [
        f"version {number} of {len(history.versions)}",
        what_of(version).lower(),
        _at(version),
        one_line(version.title, 60),
    ]
    return " · ".join(part for part in parts if part)


def _numbered(lines: Sequence[str], start: int) -> Iterator[Line]:
    for number, line in enumerate(lines, start):
        yield [(f"{number:>6}  ", "dim"), clean(line).expandtabs(4)]


# Two versions


def diff_json(history: History, one: Version, other: Version) -> dict[str, Any]:
    """Return what lies between two versions for programs."""
    stretches = diff(one.text or "", other.text or "")
    signs = [line[:1] for each in stretches for line in each.lines]
    return {
        "path": history.path,
        "a": version_json(history, one),
        "b": version_json(history, other),
        "added": signs.count("+"),
        "removed": signs.count("-"),
        "stretches": stretches,
    }


def diff_text(history: History, one: Version, other: Version) -> bytes:
    """Return what lies between two versions as `patch` reads it."""
    path = below(history.path, history.project)
    return unified(path, one.text or "", other.text or "").encode("utf-8", "surrogatepass")


def diff_lines(history: History, one: Version, other: Version) -> Iterator[Line]:
    """Yield the same for people."""
    yield [("A ", "bold"), _head(history, one)]
    yield [("B ", "bold"), _head(history, other)]
    yield []
    text = unified(below(history.path, history.project), one.text or "", other.text or "")
    if not text:
        yield ["Not a line is different."]
    for line in text.split("\n")[2:-1]:
        yield [(clean(line).expandtabs(4), _STYLES.get(line[:1], ""))]
