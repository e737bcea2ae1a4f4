"""What a search found: ripgrep's output, read and put into words."""

import os
import re
from operator import itemgetter
from typing import Any, Final, TypeAlias

from steno.tools.base import ToolResult
from steno.tools.context import ToolContext
from steno.tools.grep_search import Job, Search
from steno.tools.listing import relative, when_changed
from steno.tools.words import shown, spoken

__all__ = ["show_counts", "show_files", "show_lines"]

_MOST_SHOWN: Final = 512 << 10
# ripgrep says this in between when a file turns out to be no text.
_BINARY: Final = re.compile(
    rb"[^\0]*?: (?:WARNING: stopped searching binary file|binary file matches)[^\n\0]*\n"
)
_BETWEEN: Final = re.compile(rb"--\r?\n")
_NUMBERED: Final = re.compile(r"\d+([:-])")
_Lines: TypeAlias = list[tuple[str, list[str]]]
"""Files and the lines to show of each."""


def show_lines(out: bytes, job: Job, context: ToolContext) -> ToolResult:
    """Show the lines that were found."""
    found = sorted(_shown(_parsed(out), job, context), key=itemgetter(0))
    lines: list[str] = []
    has_groups = any(job.asked.around)
    for path, texts in found:
        name = shown(relative(os.path.join(job.folder, path), context))
        lines += ["--"] * (has_groups and bool(lines))
        lines += texts if job.name else [_led(name, text, job.asked) for text in texts]
    chosen, limits = _chosen(lines, job.asked)
    content = "\n".join(chosen)
    detail: dict[str, Any] = {
        "mode": "content",
        "numFiles": 0,
        "filenames": [],
        "content": content,
        "numLines": len(chosen),
        "totalLines": len(lines),
        **limits,
    }
    return ToolResult((content or "No matches found") + _rest(lines, chosen, job.asked), detail)


def _shown(found: _Lines, job: Job, context: ToolContext) -> _Lines:
    """Leave out the files that are kept from being read; a single one was judged by its name."""
    if job.name:
        return found
    is_shown = context.shown_in(job.folder)
    return [(path, texts) for path, texts in found if is_shown(path)]


def _led(name: str, text: str, asked: Search) -> str:
    """Put a file's name before a line: with a colon if it matches, else with a dash."""
    if text == "--":
        return text
    number = _NUMBERED.match(text) if asked.numbers else None
    return f"{name}{number[1] if number else ':'}{text}"


def _parsed(out: bytes) -> _Lines:
    """Return the lines of each file, in the order in which they came."""
    found: _Lines = []
    at = 0
    while at < len(out):
        between = _BETWEEN.match(out, at)
        if between is not None:
            if found:
                found[-1][1].append("--")
            at = between.end()
            continue
        note = _BINARY.match(out, at)
        middle = out.find(b"\0", at)
        if note is not None or middle < 0:
            at = note.end() if note is not None else len(out)
            continue
        end = out.find(b"\n", middle)
        end = end if end >= 0 else len(out)
        path = os.fsdecode(out[at:middle]).removeprefix("./")
        text = out[middle + 1 : end].removesuffix(b"\r").decode("utf-8", "replace")
        if not found or found[-1][0] != path:
            _end_group(found)
            found.append((path, []))
        found[-1][1].append(text)
        at = end + 1
    _end_group(found)
    return found


def _end_group(found: _Lines) -> None:
    """Take out the mark between two files: it is put back when they are in order."""
    if found and found[-1][1][-1] == "--":
        found[-1][1].pop()


def show_counts(out: bytes, job: Job, context: ToolContext) -> ToolResult:
    """Say how many lines were found in each file."""
    found = sorted(_shown(_parsed(out), job, context))
    counts = [(path, int(text)) for path, (text, *_) in found if text.isdigit()]
    paths = [relative(os.path.join(job.folder, path), context) for path, _ in counts]
    lines = [f"{shown(path)}:{count}" for path, (_, count) in zip(paths, counts, strict=True)]
    chosen, limits = _chosen(lines, job.asked)
    content = "\n".join(chosen)
    first = max(job.asked.offset, 0)
    matches = sum(count for _, count in counts[first : first + len(chosen)])
    detail: dict[str, Any] = {
        "mode": "count",
        "numFiles": len(chosen),
        "filenames": [],
        "content": content,
        "numMatches": matches,
        **limits,
    }
    if not chosen:
        return ToolResult("No matches found" + _rest(lines, chosen, job.asked), detail)
    words = f"{content}\n\n{matches:,} in {_files_words(len(chosen))}"
    return ToolResult(words + _rest(lines, chosen, job.asked), detail)


def show_files(out: bytes, job: Job, context: ToolContext) -> ToolResult:
    """Name the files, the newest first."""
    every_name = [name.removeprefix("./") for name in os.fsdecode(out).split("\0")[:-1]]
    names = [name for name, _ in _shown([(name, []) for name in every_name], job, context)]
    paths = sorted(os.path.join(job.folder, name) for name in names)
    paths.sort(key=when_changed, reverse=True)
    every = [relative(path, context) for path in paths]
    chosen, detail = _chosen(every, job.asked)
    filenames = [spoken(path) for path in chosen]
    detail = {
        "mode": "files_with_matches",
        "filenames": filenames,
        "numFiles": len(chosen),
        **detail,
    }
    if not chosen:
        return ToolResult("No files found" + _rest(every, chosen, job.asked), detail)
    words = "\n".join([f"Found {_files_words(len(chosen))}", *map(shown, chosen)])
    return ToolResult(words + _rest(every, chosen, job.asked), detail)


def _files_words(count: int) -> str:
    return f"{count:,} file{'s' * (count != 1)}"


def _chosen(every: list[str], asked: Search) -> tuple[list[str], dict[str, Any]]:
    """Return what is to be shown of all that was found, and what the session keeps of that."""
    first = max(asked.offset, 0)
    last = first + asked.head_limit if asked.head_limit > 0 else len(every)
    chosen = every[first:last]
    size = 0
    for count, line in enumerate(chosen):
        size += len(line) + 1
        if size > _MOST_SHOWN:
            chosen = chosen[:count]
            break
    detail: dict[str, Any] = {}
    if first + len(chosen) < len(every):
        detail["appliedLimit"] = len(chosen)
    if first:
        detail["appliedOffset"] = first
    return chosen, detail


def _rest(every: list[str], chosen: list[str], asked: Search) -> str:
    """Say what was left out."""
    first = max(asked.offset, 0)
    after = first + len(chosen)
    if len(chosen) == len(every):
        return ""
    if not chosen:
        return f"\n\n[there are only {len(every):,}]"
    going = f"; go on with offset: {after}" if after < len(every) else ""
    return f"\n\n[{first + 1:,} to {after:,} of {len(every):,} are shown{going}]"
