"""History of one file across sessions: versions, diffs and timeline entries."""

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Final

import msgspec

from steno.format.line_diff import Hunk, make_hunks, readable_diff
from steno.report import humanize
from steno.report.file_history.file_versions import History, Version
from steno.report.file_history.text_edits import normalize_newlines, text_lines
from steno.report.file_history.touch_finder import SessionOpener, TouchFinder
from steno.report.file_history.version_builder import build_versions
from steno.report.humanize import MS_PER_SECOND
from steno.session.turns.steps import one_line

_MAX_LINE_PAIRS: Final = 50_000_000


def history(
    connection: sqlite3.Connection,
    path: str,
    open_session: SessionOpener | None = None,
    includes_project: Callable[[str], bool] | None = None,
) -> History | None:
    """Return the history of a file; None if no session touched it.

    `open_session` opens a session; without it abandoned branches are not detected. `includes_project` selects projects;
    without it all are included.
    """
    with TouchFinder(connection, path, open_session, includes_project) as finder:
        versions = build_versions(finder.touches())
        owners = finder.owners
        complete_versions = tuple(
            msgspec.structs.replace(
                version,
                title=owners[version.file].title,
                turn=finder.turn(version.file, version.turn),
                prompt=finder.prompt(version.file, version.turn, version.offset),
            )
            for version in versions
        )
        if not complete_versions and not finder.unreadable:
            return None
        project = next((owners[v.file].project for v in reversed(complete_versions)), "")
        if not project and owners:
            project = next(iter(owners.values())).project
        return History(path=path, project=project, versions=complete_versions, lost=finder.unreadable)


def normalized_text(version: Version) -> str | None:
    """Return the text of a version with normalized newlines; None if the text is not fully known."""
    return None if version.text is None else normalize_newlines(version.text)


def diff_texts(before: str, after: str, context: int = 3) -> list[Hunk]:
    """Return the hunks of the diff between two texts."""
    old, new = text_lines(before), text_lines(after)
    return make_hunks(old, new, readable_diff(old, new, max_pairs=_MAX_LINE_PAIRS), context)


def count_surviving_lines(before: str, after: str, last: str) -> tuple[int, int]:
    """Return the number of added lines that remain in the last text, and the number of added lines."""
    remaining: dict[str, int] = {}
    for line in text_lines(last):
        remaining[line] = remaining.get(line, 0) + 1
    added = [
        line[1:]
        for hunk in diff_texts(before, after, 0)
        for line in hunk.lines
        if line.startswith("+") and line[1:].strip()
    ]
    surviving_count = 0
    for line in added:
        if remaining.get(line):
            remaining[line] -= 1
            surviving_count += 1
    return surviving_count, len(added)


_NO_NEWLINE_SIGN: Final = "\0"
"""Marks a last line without a newline; no other line of a diff ends with it."""
_NO_NEWLINE_TEXT: Final = "\\ No newline at end of file"
_PATH_ESCAPES: Final = str.maketrans(
    {
        **{chr(code): f"\\{code:03o}" for code in range(32)},
        "\x7f": r"\177",
        '"': r"\"",
        "\\": r"\\",
        "\n": r"\n",
        "\t": r"\t",
    }
)


def unified_diff(path: str, before: str, after: str) -> str:
    r"""Return a unified diff with normalized newlines; empty if the texts are equal.

    >>> print(unified_diff("a.txt", "one\ntwo\n", "one\n2"), end="")
    --- a/a.txt
    +++ b/a.txt
    @@ -1,2 +1,2 @@
     one
    -two
    +2
    \ No newline at end of file
    """
    body = "".join(
        f"{line}\n"
        for hunk in diff_texts(_mark_missing_newline(before), _mark_missing_newline(after))
        for line in _hunk_lines(hunk)
    )
    if not body:
        return ""
    return f"--- {_file_header('a', path)}\n+++ {_file_header('b', path)}\n{body}"


def _mark_missing_newline(text: str) -> str:
    normalized = normalize_newlines(text)
    return normalized if not normalized or normalized.endswith("\n") else f"{normalized}{_NO_NEWLINE_SIGN}"


def _hunk_lines(hunk: Hunk) -> Iterator[str]:
    old_count = sum(not line.startswith("+") for line in hunk.lines)
    new_count = sum(not line.startswith("-") for line in hunk.lines)
    # A side without lines refers to the line before it.
    old, new = hunk.old - (not old_count), hunk.new - (not new_count)
    yield f"@@ -{_hunk_range(old, old_count)} +{_hunk_range(new, new_count)} @@"
    for line in hunk.lines:
        if line.endswith(_NO_NEWLINE_SIGN):
            yield line[: -len(_NO_NEWLINE_SIGN)]
            yield _NO_NEWLINE_TEXT
        else:
            yield line


def _hunk_range(start: int, number: int) -> str:
    return str(start) if number == 1 else f"{start},{number}"


def _file_header(side: str, path: str) -> str:
    """Return a file name for a diff header; special characters are quoted as in git."""
    name = f"{side}/{path.lstrip('/')}"
    quoted = name.translate(_PATH_ESCAPES)
    return name if quoted == name else f'"{quoted}"'


_MAX_PROMPT_LENGTH: Final = 160
_MAX_TITLE_LENGTH: Final = 80
_EVENT_TEXTS: Final = {"write": "Written", "edit": "Edited", "read": "Read", "command": "May have changed"}

_CERTAINTY_TEXTS: Final = {
    "exact": {
        "write": "Exact: written as a whole.",
        "edit": "Exact: Claude Code recorded the whole file.",
        "read": "Exact: read as a whole.",
        "outside": "Exact: the next access recorded the whole file.",
        "command": "Exact: a later access shows that nothing changed.",
    },
    "derived": "Derived: the previous version with the edit applied.",
    "partial": "Partial: only some lines were read or recorded.",
    "unknown": "Unknown: the content was not recorded.",
}


class TimelineEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A row of the timeline: a version, or consecutive reads."""

    version: Version
    """Version that selecting the row shows."""
    names: tuple[str, ...]
    what: str
    kind: str
    say: str
    where: str
    when: str
    day: str = ""
    """Day, if it differs from the previous row."""


def timeline_entries(versions: Sequence[Version], now: float) -> list[TimelineEntry]:
    """Return the rows of the timeline, without commands known to have changed nothing."""
    visible = [version for version in reversed(versions) if not version.settled]
    entries = [_timeline_entry(group, now) for group in _group_reads(visible)]
    days = [_entry_day(entry.version, now) for entry in entries]
    return [
        msgspec.structs.replace(entry, day=day if day != before else "")
        for entry, (before, day) in zip(entries, pairwise(["", *days]), strict=True)
    ]


def _group_reads(visible: Iterable[Version]) -> Iterator[list[Version]]:
    group: list[Version] = []
    for version in visible:
        if group and not _is_same_read(group[0], version):
            yield group
            group = []
        group.append(version)
    if group:
        yield group


def _is_same_read(first: Version, second: Version) -> bool:
    return (
        first.verb == second.verb == "read"
        and first.session == second.session
        and first.agent == second.agent
        and first.abandoned == second.abandoned
    )


def _timeline_entry(group: list[Version], now: float) -> TimelineEntry:
    version = group[0]
    turns = sorted({grouped.turn for grouped in group})
    return TimelineEntry(
        version=version,
        names=tuple(each.name for each in group),
        what=f"Read {len(group)} times" if len(group) > 1 else event_text(version),
        kind=_entry_kind(version),
        say=_entry_text(version),
        where=origin_text(version, turns),
        when=time_text(version),
        day=_entry_day(version, now),
    )


def event_text(version: Version) -> str:
    """Return a short label for the event of a version."""
    if version.verb == "outside":
        return "Restored" if version.back else "Changed outside"
    text = _EVENT_TEXTS[version.verb]
    if version.tool == "attached":
        text = "Attached"
    return f"{text}, then rewound" if version.abandoned and version.verb != "read" else text


def certainty_text(version: Version) -> str:
    """Return a sentence about the certainty of a version."""
    text = _CERTAINTY_TEXTS[version.known]
    return text if isinstance(text, str) else text[version.verb]


def _entry_kind(version: Version) -> str:
    if version.abandoned:
        return "gone"
    return {"write": "edit", "edit": "edit"}.get(version.verb, version.verb)


def _entry_text(version: Version) -> str:
    if version.verb == "outside":
        return version.note.partition(";")[0].partition(":")[0].rstrip(".")
    if version.verb == "command":
        return one_line(version.command, _MAX_PROMPT_LENGTH)
    return one_line(version.prompt, _MAX_PROMPT_LENGTH)


def origin_text(version: Version, turns: Sequence[int] = ()) -> str:
    """Return the turn or sub-agent, and the session title."""
    numbers = [number for number in turns or [version.turn] if number]
    parts: list[str] = []
    if version.agent:
        parts.append("sub-agent")
    elif len(numbers) > 1:
        parts.append(f"turns {numbers[0]}\N{EN DASH}{numbers[-1]}")
    elif numbers:
        parts.append(f"turn {numbers[0]}")
    if version.verb == "outside" and parts:
        parts[0] = f"found in {parts[0]}"
    return " · ".join([*parts, one_line(version.title, _MAX_TITLE_LENGTH) or "Untitled"])


def time_text(version: Version) -> str:
    """Return the time of day of a version."""
    return "" if version.time is None else humanize.time_of_day(version.time / MS_PER_SECOND)


def _entry_day(version: Version, now: float) -> str:
    return "Undated" if version.time is None else humanize.short_weekday(version.time / MS_PER_SECOND, now)
