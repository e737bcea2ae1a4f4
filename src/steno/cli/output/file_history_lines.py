"""Output of `steno files`: accessed files, versions of a file, diffs, verification."""

from collections.abc import Iterable, Iterator, Sequence
from itertools import takewhile
from typing import Any, Final

from steno.cli.output.table_layout import Column, layout_columns
from steno.format.paths import SHORT_ID_LENGTH
from steno.report import humanize
from steno.report.clock import iso_time_from_ms
from steno.report.file_history.file_versions import History, Version, version_number
from steno.report.file_history.history import (
    TimelineEntry,
    certainty_text,
    diff_texts,
    event_text,
    timeline_entries,
    unified_diff,
)
from steno.report.file_history.touched_files import SessionFileTouches, TouchedFile
from steno.report.file_history.verification import VerificationReport
from steno.report.humanize import MINUS_SIGN, MS_PER_SECOND, relative_to_project
from steno.sanitize.terminal import StyledLine, clean, one_line, shorten_path, wrap

_MAX_MISMATCHES = 20


def added_text(number: int) -> str:
    """Return the number of added lines as text; "" for none."""
    return f"+{number:,}" if number else ""


def removed_text(number: int) -> str:
    """Return the number of removed lines as text; "" for none."""
    return f"{MINUS_SIGN}{number:,}" if number else ""


def touched_file_lines(rows: Sequence[TouchedFile], width: int, now: float, *, has_more: bool) -> Iterator[StyledLine]:
    """Yield the table of accessed files."""
    if not rows:
        yield ["No session accessed a file."]
        return
    columns = [
        Column("FILE", [one_line(row.path) for row in rows], "bold", flexible=True),
        Column("EDITS", [f"{row.edits:,}" if row.edits else "" for row in rows], align_right=True),
        Column("+", [added_text(row.added) for row in rows], "green", align_right=True, min_flexible_width=24),
        Column(MINUS_SIGN, [removed_text(row.removed) for row in rows], "red", align_right=True, min_flexible_width=24),
        Column(
            "READS", [f"{row.reads:,}" if row.reads else "" for row in rows], align_right=True, min_flexible_width=26
        ),
        Column("SESSIONS", [f"{row.sessions:,}" for row in rows], align_right=True, min_flexible_width=30),
        *_source_columns(rows),
        Column("LAST", [_last_touch_time(row.last, now) for row in rows], "dim", min_flexible_width=20),
    ]
    yield from _file_table_lines(columns, width, rows)
    if has_more:
        yield [(f" first {len(rows):,} files; use --limit 0 to show all", "dim")]


def _source_columns(rows: Sequence[TouchedFile | SessionFileTouches]) -> list[Column]:
    """Return the column that marks files known only from backups, if any."""
    marks = [f"snapshot ({row.backups})" if row.source == "snapshot" else "" for row in rows]
    return [Column("SOURCE", marks, "yellow", min_flexible_width=30)] if any(marks) else []


def _file_table_lines(
    columns: list[Column], width: int, rows: Sequence[TouchedFile | SessionFileTouches]
) -> Iterator[StyledLine]:
    """Yield a table whose first column has paths; directories of long paths are shortened."""
    heads, _ = layout_columns(columns, width - 1)
    path_width = len(heads[0][0]) if heads else 0
    columns[0].cells = ["".join(shorten_path(cell, path_width)) for cell in columns[0].cells]
    heads, lines = layout_columns(columns, width - 1)
    yield [" ", *heads]
    for line, _ in zip(lines, rows, strict=True):
        yield [" ", *line]


def _last_touch_time(last: int | None, now: float) -> str:
    if last is None:
        return ""
    return humanize.weekday_and_time(last / MS_PER_SECOND, now)


def session_file_lines(
    touches: Sequence[SessionFileTouches], session: str, title: str, project: str, width: int
) -> Iterator[StyledLine]:
    """Yield the table of the files of a session."""
    yield [(session[:SHORT_ID_LENGTH], "bold"), "  ", one_line(title, max(12, width - 10)) or "(no title)"]
    if project:
        yield [(one_line(project, width), "dim")]
    yield []
    if not touches:
        yield ["This session accessed no files."]
        return
    columns = [
        Column(
            "FILE", [relative_to_project(one_line(touch.path), project) for touch in touches], "bold", flexible=True
        ),
        Column("EDITS", [f"{each.edits:,}" if each.edits else "" for each in touches], align_right=True),
        Column("+", [added_text(each.added) for each in touches], "green", align_right=True),
        Column(MINUS_SIGN, [removed_text(each.removed) for each in touches], "red", align_right=True),
        Column("READS", [f"{each.reads:,}" if each.reads else "" for each in touches], align_right=True),
        *_source_columns(touches),
        Column("TURNS", [_turn_ranges(each) for each in touches], "dim", max_width=24, min_flexible_width=24),
    ]
    yield from _file_table_lines(columns, width, touches)
    yield []
    yield [_touch_summary(touches)]


def _turn_ranges(touch: SessionFileTouches) -> str:
    parts = _number_ranges(sorted(touch.turns))
    if touch.agents:
        parts.append("sub-agents" if len(touch.agents) > 1 else "sub-agent")
    return ", ".join(parts)


def _number_ranges(numbers: list[int]) -> list[str]:
    """Join consecutive numbers into ranges.

    >>> _number_ranges([1, 2, 3, 7])
    ['1-3', '7']
    """
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1].append(number)
        else:
            ranges.append([number])
    return [f"{bounds[0]}-{bounds[-1]}" if len(bounds) > 1 else str(bounds[0]) for bounds in ranges]


def _touch_summary(file_touches: Iterable[SessionFileTouches]) -> str:
    touches = list(file_touches)
    changed = [touch for touch in touches if touch.edits]
    backup_only = sum(each.source == "snapshot" for each in touches)
    added, removed = sum(each.added for each in touches), sum(each.removed for each in touches)
    text = f"{humanize.count(len(changed), 'file')} changed"
    if changed:
        text += f", {humanize.line_changes(added, removed)}"
    if backup_only:
        text += f"; {humanize.count(backup_only, 'more file')} known only from Claude Code backups"
    read = len(touches) - len(changed) - backup_only
    return f"{text}; {humanize.count(read, 'file')} only read" if read else text


def verification_lines(report: VerificationReport, width: int) -> Iterator[StyledLine]:
    """Yield the results of a verification."""
    counts = (
        (report.transcripts, "transcript", "read"),
        (report.changes, "change", f"of {humanize.count(report.files, 'file')} found"),
        (report.rebuilt, "change", "rebuilt completely"),
        (report.befores, "change", "compared with the recorded file before the change"),
        (report.patches, "change", "compared with the recorded patch"),
        (report.chained, "change", "rebuilt from tool calls alone, with the same result"),
        (report.gaps, "external change", "between recorded changes"),
    )
    for number, noun, description in counts:
        yield [f"{number:>9,} ", f"{noun if number == 1 else noun + 's'} {description}"]
    for reason, number in sorted(report.unknown.items()):
        for text in wrap(f"{number:>9,} not rebuilt: {reason}", width):
            yield [(text, "yellow")]
    if report.unreadable:
        yield [(f"{report.unreadable:>9,} transcripts could not be read", "yellow")]
    if not report.wrong:
        yield [("        0 mismatches", "green")]
        return
    noun = "mismatch" if len(report.wrong) == 1 else "mismatches"
    yield [(f"{len(report.wrong):>9,} {noun}:", "red")]
    for mismatch in report.wrong[:_MAX_MISMATCHES]:
        where = f"{mismatch.session[:SHORT_ID_LENGTH]} at byte {mismatch.offset:,}"
        yield ["          ", one_line(f"{mismatch.tool} {mismatch.path}: {mismatch.why} ({where})", width - 10)]


_MAX_PROMPT_LINES: Final = 3
_DIFF_STYLES: Final = {"+": "green", "-": "red", "@": "cyan", "\\": "dim"}


# History of a file


def file_history_lines(history: History, width: int, now: float, *, show_all: bool) -> Iterator[StyledLine]:
    """Yield a heading, the table of versions (newest first), and notes."""
    yield [(one_line(history.path, width), "bold")]
    yield [(_history_summary(history), "dim")]
    yield []
    entries = _all_entries(history, now) if show_all else timeline_entries(history.versions, now)
    yield from _version_table_lines(history, entries, width, now)
    for note in _history_notes(history):
        for number, text in enumerate(wrap(note, width - 3)):
            yield [(" " if number == 0 else "   ") + text]


def _all_entries(history: History, now: float) -> list[TimelineEntry]:
    versions = reversed(history.versions)
    return [
        _unchanged_entry(version) if version.settled else timeline_entries([version], now)[0] for version in versions
    ]


def _unchanged_entry(version: Version) -> TimelineEntry:
    return TimelineEntry(
        version=version,
        names=(version.name,),
        what="No change",
        kind="command",
        say=one_line(version.command),
        where="",
        when="",
    )


def _history_summary(history: History) -> str:
    versions = history.versions
    changes = [version for version in versions if version.verb in ("write", "edit")]
    sessions = len({each.session for each in versions})
    text = f"{humanize.count(len(changes), 'change')} in {humanize.count(sessions, 'session')}"
    lines = (added_text(sum(each.added for each in changes)), removed_text(sum(e.removed for e in changes)))
    return ", ".join(filter(None, (text, " ".join(filter(None, lines)))))


def _version_table_lines(
    history: History, entries: Sequence[TimelineEntry], width: int, now: float
) -> Iterator[StyledLine]:
    versions = [entry.version for entry in entries]
    numbers = {id(version): number for number, version in enumerate(history.versions, 1)}
    columns = [
        Column("#", [_number_range(numbers, entry) for entry in entries], "bold", align_right=True),
        Column("TIME", [_version_time(each, now) for each in versions]),
        Column("CHANGE", [entry.what for entry in entries], max_width=24),
        Column("+", [added_text(each.added) for each in versions], "green", align_right=True),
        Column(MINUS_SIGN, [removed_text(each.removed) for each in versions], "red", align_right=True),
        Column("CONTENT", [_certainty_note(each) for each in versions], "yellow", min_flexible_width=20),
        Column("AT", [version_origin(each) for each in versions], "cyan", min_flexible_width=12),
        Column("PROMPT", _prompt_column(entries), "dim", flexible=True, max_width=400),
    ]
    heads, lines = layout_columns(columns, width - 1)
    yield [" ", *heads]
    for line in lines:
        yield [" ", *line]


def _prompt_column(entries: Sequence[TimelineEntry]) -> list[str]:
    """Return the prompt of each version, blank where it repeats."""
    prompts = [(version_origin(entry.version), entry.say) for entry in entries]
    previous = [("", ""), *prompts[:-1]]
    return [
        "" if prompt == previous_prompt else prompt[1]
        for prompt, previous_prompt in zip(prompts, previous, strict=True)
    ]


def _number_range(numbers: dict[int, int], entry: TimelineEntry) -> str:
    last = numbers[id(entry.version)]
    first = last - len(entry.names) + 1
    return str(last) if first == last else f"{first}-{last}"


def _version_time(version: Version, now: float) -> str:
    if version.time is None:
        return "undated"
    return humanize.weekday_and_time(version.time / MS_PER_SECOND, now)


def _certainty_note(version: Version) -> str:
    """Return a note if the content of a version is not known exactly, else ""."""
    if version.known == "unknown":
        return "" if version.verb == "read" else "unknown"
    return "partial" if version.known == "partial" else "uncertain" if _is_doubtful(version) else ""


def _is_doubtful(version: Version) -> bool:
    return bool(version.note) and version.verb != "outside"


def version_origin(version: Version) -> str:
    """Return the session and turn of a version."""
    agent = " sub-agent" if version.agent else ""
    return f"{version.session[:SHORT_ID_LENGTH]}:{version.turn}{agent}"


def _history_notes(history: History) -> Iterator[str]:
    if history.lost:
        yield (
            f"{humanize.count(history.lost, 'access', 'accesses')} cannot be read: the sessions were deleted "
            "and not archived"
        )
    # A later read or write shows the effect of the commands before it.
    since = takewhile(lambda each: each.verb != "outside", reversed(history.versions))
    gaps = sum(version.verb == "command" and not version.settled for version in since)
    if gaps:
        yield f"{humanize.count(gaps, 'command')} may have changed the file without recording the change"


def file_history_json(history: History) -> dict[str, Any]:
    """Return the history of a file as JSON, oldest version first, without content."""
    return {
        "path": history.path,
        "project": history.project,
        "lost": history.lost,
        "versions": [_version_fields(number, version) for number, version in enumerate(history.versions, 1)],
    }


# One version


def version_json(history: History, version: Version, *, with_text: bool = False) -> dict[str, Any]:
    """Return a version as JSON; `with_text` adds its content, or the known parts."""
    data = _version_fields(version_number(history, version), version)
    if with_text:
        data |= {"path": history.path, "text": version.text, "total": version.total}
        data["pieces"] = [{"start": known_lines.start, "lines": known_lines.lines} for known_lines in version.pieces]
    return data


def _version_fields(number: int, version: Version) -> dict[str, Any]:
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
        "time": iso_time_from_ms(version.time),
        "abandoned": version.abandoned,
        "copies": version.copies,
        "title": version.title,
        "prompt": version.prompt,
    }


def version_lines(history: History, version: Version, width: int) -> Iterator[StyledLine]:
    """Yield a version: heading, certainty, prompt and numbered lines."""
    yield [(one_line(history.path, width), "bold")]
    yield [_version_heading(history, version)]
    yield [(certainty_text(version), "dim")]
    if version.note:
        yield [(one_line(version.note, width), "yellow")]
    for text in wrap(version.prompt, width - 2)[:_MAX_PROMPT_LINES]:
        yield ["  ", (text, "dim")]
    yield []
    if version.text is not None:
        lines = version.text.replace("\r\n", "\n").split("\n")
        if not lines[-1]:
            lines.pop()
        yield from _numbered_lines(lines, 1)
        return
    line_number = 1
    for piece in version.pieces:
        if piece.start > line_number:
            yield [(f"       {humanize.count(piece.start - line_number, 'line')} unknown", "dim")]
        yield from _numbered_lines(piece.lines, piece.start)
        line_number = piece.start + len(piece.lines)
    if version.total is not None and line_number <= version.total:
        yield [(f"       {humanize.count(version.total - line_number + 1, 'line')} unknown", "dim")]


def _version_heading(history: History, version: Version) -> str:
    number = version_number(history, version)
    if not number:
        return "on disk"
    parts = [
        f"version {number} of {len(history.versions)}",
        event_text(version).lower(),
        version_origin(version),
        one_line(version.title, 60),
    ]
    return " · ".join(part for part in parts if part)


def _numbered_lines(lines: Sequence[str], start: int) -> Iterator[StyledLine]:
    for number, line in enumerate(lines, start):
        yield [(f"{number:>6}  ", "dim"), clean(line).expandtabs(4)]


# Two versions


def diff_json(history: History, old_version: Version, new_version: Version) -> dict[str, Any]:
    """Return the differences between two versions as JSON."""
    hunks = diff_texts(old_version.text or "", new_version.text or "")
    signs = [line[:1] for hunk in hunks for line in hunk.lines]
    return {
        "path": history.path,
        "a": version_json(history, old_version),
        "b": version_json(history, new_version),
        "added": signs.count("+"),
        "removed": signs.count("-"),
        "hunks": hunks,
    }


def diff_text(history: History, old_version: Version, new_version: Version) -> bytes:
    """Return the differences between two versions as a unified diff."""
    path = relative_to_project(history.path, history.project)
    return unified_diff(path, old_version.text or "", new_version.text or "").encode("utf-8", "surrogatepass")


def diff_lines(history: History, old_version: Version, new_version: Version) -> Iterator[StyledLine]:
    """Yield the differences between two versions."""
    yield [("A ", "bold"), _version_heading(history, old_version)]
    yield [("B ", "bold"), _version_heading(history, new_version)]
    yield []
    text = unified_diff(
        relative_to_project(history.path, history.project), old_version.text or "", new_version.text or ""
    )
    if not text:
        yield ["No differences."]
    for line in text.split("\n")[2:-1]:
        yield [(clean(line).expandtabs(4), _DIFF_STYLES.get(line[:1], ""))]
