"""Who wrote the lines of a file, for people and programs."""

from collections.abc import Iterator
from typing import Any, Final

from steno.report import clock, words
from steno.report.blame.values import Blame, Origin
from steno.report.files.timeline import brief_day
from steno.report.files.values import Version
from steno.safe.terminal import Line, clean, cut, one_line, pad, width
from steno.store.git import Commit

__all__ = ["blame_json", "blame_lines"]

_SECOND: Final = 1000
_SHORT: Final = 8
_AUTHOR: Final = 16
_WIDEST: Final = 34
_GAP: Final = 2
_END: Final = 1 << 30
_NOBODY: Final = {
    "outside": "changed outside",
    "before": "there before",
    "unknown": "no session",
}
_MEANS: Final = {
    "outside": "found changed between two touches of sessions",
    "before": "there when a session first saw the file",
    "unknown": "written by no session that is known",
}
_STYLES: Final = {"session": "cyan", "commit": "yellow"}


def blame_lines(
    found: Blame, columns: int, now: float, *, summary: bool = False, whole: bool = False
) -> Iterator[Line]:
    """Yield every line with who wrote it, then what each of them is about.

    `summary` leaves the lines out, `whole` cuts none of them.
    """
    if not found.lines:
        yield ["The file is empty."]
        return
    if not summary:
        yield from _lines(found, _END if whole else columns, now)
        yield []
    yield from _legend(found, columns, now)
    yield from _notes(found)


def _lines(found: Blame, columns: int, now: float) -> Iterator[Line]:
    who = [_who(origin) for origin in found.origins]
    when = [_day(origin, now) for origin in found.origins]
    first = min(max(map(width, who)), _WIDEST)
    second = max(map(width, when))
    digits = len(str(found.lines[-1].number))
    before = ""
    for line in found.lines:
        origin = found.origins[line.origin]
        again = who[line.origin] == before
        before = who[line.origin]
        style = _STYLES.get(origin.kind, "dim")
        yield [
            (pad("" if again else who[line.origin], first), style),
            " " * _GAP,
            (pad("" if again else when[line.origin], second), "dim"),
            (f"  {line.number:>{digits}} │ ", "dim"),
            cut(clean(line.text).expandtabs(4), max(20, columns - first - second - digits - 7)),
        ]


def _who(origin: Origin) -> str:
    if origin.kind == "session" and origin.version is not None:
        return _at(origin.version)
    if origin.commit is not None:
        return f"{origin.commit.hash[:_SHORT]} {one_line(origin.commit.author, _AUTHOR)}"
    return f"{_at(origin.suspect)} command?" if origin.suspect else _NOBODY[origin.kind]


def _at(version: Version) -> str:
    agent = " sub-agent" if version.agent else ""
    rewound = " rewound" if version.abandoned else ""
    return f"{version.session[:_SHORT]}:{version.turn}{agent}{rewound}"


def _day(origin: Origin, now: float) -> str:
    seconds = _seconds(origin)
    return "" if seconds is None else brief_day(seconds, now)


def _seconds(origin: Origin) -> float | None:
    if origin.kind == "session" and origin.version is not None:
        return None if origin.version.time is None else origin.version.time / _SECOND
    return float(origin.commit.time) if origin.commit is not None else None


def _legend(found: Blame, columns: int, now: float) -> Iterator[Line]:
    """Yield who wrote how much, the most first, and what they were asked."""
    sums: dict[str, list[Origin]] = {}
    for origin in found.origins:
        sums.setdefault(_who(origin), []).append(origin)
    total = sum(origin.lines for origin in found.origins)
    ranked = sorted(sums.items(), key=lambda each: -sum(one.lines for one in each[1]))
    for who, origins in ranked:
        origin = origins[0]
        number = sum(each.lines for each in origins)
        head = f"{words.count(number, 'line')}, {_share(number, total)}"
        about = " · ".join(
            part for part in (_time(origin, now), _title(origin, git=found.git)) if part
        )
        yield [
            (who, _STYLES.get(origin.kind, "dim")),
            f"  {head}",
            (f"  {cut(about, max(12, columns - width(who) - width(head) - 4))}", "dim"),
        ]
        if origin.kind == "session" and origin.version is not None:
            yield ["    ", one_line(origin.version.prompt, columns - 4) or ("(no prompt)", "dim")]
        elif origin.suspect is not None:
            ran = f"this ran before: {origin.suspect.command}"
            yield ["    ", one_line(ran, columns - 4)]
        commits = {each.commit.hash[:_SHORT]: each.commit for each in origins if each.commit}
        if origin.kind == "session" and commits:
            told = ", ".join(
                f"{name} {one_line(each.summary, 40)}" for name, each in commits.items()
            )
            yield ["    ", (cut(f"committed as {told}", columns - 4), "yellow")]


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.0%}" if part * 200 >= whole else "<1%"


def _time(origin: Origin, now: float) -> str:
    seconds = _seconds(origin)
    return "" if seconds is None else f"{brief_day(seconds, now)} {words.clock(seconds)}"


def _title(origin: Origin, *, git: bool) -> str:
    if origin.kind == "session" and origin.version is not None:
        return one_line(origin.version.title, 120)
    if origin.commit is not None:
        return one_line(origin.commit.summary, 120)
    return _MEANS[origin.kind] + (", and not committed" if git else "")


def _notes(found: Blame) -> Iterator[Line]:
    others = [name for name in found.names if name != found.path]
    if others:
        yield [(f"also known as {', '.join(one_line(name) for name in others)}", "dim")]
    if not found.names:
        yield [("no session that is known touched this file", "dim")]
    if found.doubts:
        said = words.count(found.doubts, "touch", "touches")
        yield [(f"{said} may have changed it in a way that nobody recorded", "dim")]


# For programs


def blame_json(found: Blame) -> dict[str, Any]:
    """Return the blame of a file: its lines, and where they come from by number."""
    return {
        "path": found.path,
        "total": found.total,
        "git": found.git,
        "names": found.names,
        "doubts": found.doubts,
        "origins": [_origin_json(each) for each in found.origins],
        "lines": [
            {"number": each.number, "text": each.text, "origin": each.origin}
            for each in found.lines
        ],
    }


def _origin_json(origin: Origin) -> dict[str, Any]:
    version = origin.version if origin.kind == "session" else None
    told: dict[str, Any] = {"kind": origin.kind, "lines": origin.lines, "commit": None}
    if version is not None:
        told |= {
            "session": version.session,
            "agent": version.agent or None,
            "turn": version.turn,
            "time": clock.iso(None if version.time is None else version.time / _SECOND),
            "tool": version.tool,
            "abandoned": version.abandoned,
            "title": version.title,
            "prompt": version.prompt,
            "path": origin.path,
            "version": version.name,
        }
    if origin.suspect is not None:
        ran = origin.suspect
        told["suspect"] = {"session": ran.session, "turn": ran.turn, "command": ran.command}
    if origin.commit is not None:
        told["commit"] = _commit_json(origin.commit)
    return told


def _commit_json(commit: Commit) -> dict[str, Any]:
    return {
        "hash": commit.hash,
        "author": commit.author,
        "time": clock.iso(commit.time),
        "summary": commit.summary,
    }
