"""Blame: the session, sub-agent or commit that wrote each line of a file.

Lines are carried from version to version: unchanged lines keep their attribution, new lines are attributed to the
version that adds them. An outside version that restores an earlier text restores its attribution.
"""

import os
import sqlite3
from collections.abc import Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from steno.errors import BadRequest
from steno.format.line_diff import align
from steno.report.file_history.file_versions import Version
from steno.report.file_history.history import history
from steno.report.file_history.text_edits import normalize_newlines, text_lines
from steno.report.file_history.touch_finder import SessionOpener
from steno.report.humanize import MS_PER_SECOND
from steno.report.session_references import printable_path
from steno.store.discovery import read_regular_file
from steno.store.git import AnnotatedLine, Commit, FormerName, Repository, find_repository, is_in_work_tree

OriginKind: TypeAlias = Literal["session", "commit", "outside", "before", "unknown"]
"""session  written by a session or one of its sub-agents
commit   not written by a session, but committed
outside  changed between two touches, not by a session
before   present when a session first read the file
unknown  added after the last version known from sessions
"""


class LineOrigin(msgspec.Struct, frozen=True, kw_only=True):
    """Origin of lines."""

    kind: OriginKind
    version: Version | None = None
    """Version that wrote the lines, or first contained them."""
    path: str = ""
    """Path of the file in that version."""
    commit: Commit | None = None
    """Commit that contains the lines; for lines of a session, the commit they went into."""
    suspect: Version | None = None
    """Earlier command that names the file and may have written the lines."""
    lines: int = 0
    """Number of lines with this origin."""


class BlamedLine(msgspec.Struct, frozen=True):
    """A line of the file, and the index of its origin."""

    number: int
    text: str
    origin: int


class FileBlame(msgspec.Struct, frozen=True, kw_only=True):
    """Blame of a file; origins are ordered by their first lines."""

    path: str
    total: int
    """Number of lines in the file."""
    lines: tuple[BlamedLine, ...]
    origins: tuple[LineOrigin, ...]
    names: tuple[str, ...]
    """Paths of the file known from sessions."""
    git: bool
    """Whether a Git repository was read."""
    trouble: str = ""
    """Reason why the Git data is missing or incomplete."""
    doubts: int = 0
    """Number of commands and unlocated edits after which the content is uncertain."""


AFTER_LAST_VERSION: Final = -1
"""Mark of a line added after the last version."""
BEFORE_FIRST_VERSION: Final = -2
"""Mark of a line that was present in the first version."""
_BOM: Final = "\ufeff"


class Attribution(msgspec.Struct, frozen=True):
    """A mark for each line: the index of a version, `AFTER_LAST_VERSION` or `BEFORE_FIRST_VERSION`."""

    marks: tuple[int, ...]
    doubts: int
    """Number of touches with an unknown effect on the file."""


def split_lines(text: str) -> list[str]:
    """Return the lines of a file as editors show them."""
    return text_lines(text.removeprefix(_BOM))


def attribute_lines(versions: Sequence[Version], current_text: str) -> Attribution:
    """Attribute each line of a text to one of the versions of its file, oldest first."""
    text = normalize_newlines(current_text)
    last = next(
        (
            candidate.name
            for candidate in reversed(versions)
            if candidate.text and normalize_newlines(candidate.text) == text
        ),
        "",
    )
    needed_versions = {each.back for each in versions if each.back} | {last}
    attributor = _LineAttributor(needed_versions)
    for index, version in enumerate(versions):
        attributor.add_version(index, version)
    if last and last in attributor.marks_by_version:
        return Attribution(tuple(attributor.marks_by_version[last][1]), attributor.uncertain_changes)
    attributor.replace_text(split_lines(current_text), AFTER_LAST_VERSION)
    return Attribution(tuple(attributor.marks), attributor.uncertain_changes)


class _LineAttributor:
    """The lines of the file at one version, each with its mark."""

    def __init__(self, needed_versions: set[str]) -> None:
        self.marks_by_version: dict[str, tuple[list[str], list[int]]] = {}
        self.marks: list[int] = []
        self.uncertain_changes = 0
        self._needed_versions = needed_versions
        self._lines: list[str] | None = None
        self._unplaced_lines: dict[str, int] = {}
        """Lines added by edits while the full text was unknown, and the index of the version."""

    def add_version(self, index: int, version: Version) -> None:
        """Advance to the next version."""
        if version.settled:
            return
        if version.text is None:
            self.uncertain_changes += version.changes
            self._unplaced_lines |= {line: index for line in version.wrote if line.strip()}
            return
        if version.back in self.marks_by_version:
            self._lines, self.marks = self.marks_by_version[version.back]
        elif version.verb in ("write", "edit"):
            self._add_change(index, version, version.text)
        else:
            self.replace_text(split_lines(version.text), BEFORE_FIRST_VERSION if self._lines is None else index)
        if version.name in self._needed_versions and self._lines is not None:
            self.marks_by_version[version.name] = (self._lines, self.marks)

    def _add_change(self, index: int, version: Version, text: str) -> None:
        if version.before is not None:
            # Text that the change found but no version has is unattributed.
            lines_before = split_lines(version.before)
            self.replace_text(lines_before, BEFORE_FIRST_VERSION if self._lines is None else AFTER_LAST_VERSION)
        elif self._lines is None and version.verb == "edit":
            self.replace_text(split_lines(text), BEFORE_FIRST_VERSION)
        self.replace_text(split_lines(text), index)

    def replace_text(self, lines: list[str], mark: int) -> None:
        """Replace the text; new lines get the mark."""
        old_lines = self._lines
        if old_lines is not None and old_lines == lines:
            return
        marks = [mark] * len(lines)
        for old_index, new_index in align(old_lines or (), lines).pairs:
            marks[new_index] = self.marks[old_index]
        if self._unplaced_lines:
            self._assign_loose_lines(lines, marks, mark)
        self._lines, self.marks = lines, marks

    def _assign_loose_lines(self, lines: list[str], marks: list[int], mark: int) -> None:
        """Attribute new lines to the earlier edits that added them while the full text was unknown."""
        for at, line in enumerate(lines):
            if marks[at] == mark and line in self._unplaced_lines:
                marks[at] = self._unplaced_lines[line]
        self._unplaced_lines = {}


class NamedHistory(msgspec.Struct, frozen=True):
    """Versions under one path of the file, and a mark for each current line."""

    path: str
    versions: Sequence[Version]
    marks: Sequence[int]


def commits_by_line(head_lines: Sequence[AnnotatedLine], lines: Sequence[str]) -> list[Commit | None]:
    """Return the commit of each current line; None if the line is not committed."""
    commits: list[Commit | None] = [None] * len(lines)
    for old_index, new_index in align([row.text.removesuffix("\r") for row in head_lines], lines).pairs:
        commits[new_index] = head_lines[old_index].commit
    return commits


def merge_origins(
    lines: Sequence[str], histories: Sequence[NamedHistory], commits: Sequence[Commit | None], line_range: range
) -> tuple[list[BlamedLine], list[LineOrigin]]:
    """Return the lines in a range, and their origins with line counts."""
    origin_indexes: dict[tuple[str, str, str, str], int] = {}
    origins: list[LineOrigin] = []
    counts: list[int] = []
    blamed: list[BlamedLine] = []
    for line_index in line_range:
        origin = _origin_of_line(line_index, histories, commits[line_index])
        version, commit = origin.version, origin.commit
        key = (
            origin.kind,
            origin.path,
            version.name if version is not None else "",
            commit.hash if commit is not None else "",
        )
        if key not in origin_indexes:
            origin_indexes[key] = len(origins)
            origins.append(origin)
            counts.append(0)
        counts[origin_indexes[key]] += 1
        blamed.append(BlamedLine(line_index + 1, lines[line_index], origin_indexes[key]))
    counted_origins = [
        msgspec.structs.replace(origin, lines=count) for origin, count in zip(origins, counts, strict=True)
    ]
    return blamed, counted_origins


def _origin_of_line(line_index: int, histories: Sequence[NamedHistory], commit: Commit | None) -> LineOrigin:
    fallback: LineOrigin | None = None
    for named_history in histories:
        mark = named_history.marks[line_index]
        version = named_history.versions[mark] if mark >= 0 else None
        if version is not None and version.verb in ("write", "edit"):
            if not _was_committed_before(version, commit):
                return LineOrigin(kind="session", version=version, path=named_history.path, commit=commit)
        elif fallback is None:
            fallback = _origin_outside_sessions(named_history, mark)
    if commit is not None:
        return LineOrigin(kind="commit", commit=commit)
    return fallback or LineOrigin(kind="unknown")


def _origin_outside_sessions(named_history: NamedHistory, mark: int) -> LineOrigin | None:
    """Return the origin of a line that no session wrote; None if nothing is known."""
    if mark == BEFORE_FIRST_VERSION:
        return LineOrigin(kind="before", version=named_history.versions[0], path=named_history.path)
    end = len(named_history.versions) if mark == AFTER_LAST_VERSION else mark
    previous = named_history.versions[end - 1] if end else None
    suspect = previous if previous is not None and previous.verb == "command" and not previous.settled else None
    if mark != AFTER_LAST_VERSION:
        version = named_history.versions[mark]
        return LineOrigin(kind="outside", version=version, path=named_history.path, suspect=suspect)
    return LineOrigin(kind="unknown", path=named_history.path, suspect=suspect) if suspect else None


def _was_committed_before(version: Version, commit: Commit | None) -> bool:
    """Return whether a line was committed before the version that adds it, whose prior content is unknown."""
    if commit is None or version.before is not None or version.time is None:
        return False
    return (commit.time + 1) * MS_PER_SECOND < version.time


_MAX_FILE_SIZE: Final = 32 << 20
_GIT_UNAVAILABLE: Final = "git is not installed or rejects this repository"
_GIT_TIMEOUT: Final = "git timed out: commits may be missing for some lines"


def blame(
    connection: sqlite3.Connection,
    path: str,
    open_session: SessionOpener | None = None,
    *,
    lines: tuple[int, int] | None = None,
    names: Sequence[str] = (),
    git: bool = True,
) -> FileBlame:
    """Return the blame of the current file.

    `lines` is the first and the last line to include; `names` are additional paths of the file in sessions; with
    `git=False` no repository is read.

    Raises:
        BadRequest: The file is not a text file, is too large, or does not have these lines.
        Unreadable: The file cannot be read.
    """
    text = _read_text(path)
    current_lines = split_lines(text)
    line_range = _line_range(lines, len(current_lines), path)
    absolute_path = os.path.abspath(path)
    repository = find_repository(absolute_path) if git else None
    named_histories: list[NamedHistory] = []
    doubts = 0
    for name, until in _names_in_sessions(absolute_path, names, repository).items():
        # Sessions record paths as text, so a path that is not valid text cannot occur.
        known_history = history(connection, name, open_session) if printable_path(name) == name else None
        if known_history is not None:
            end = None if until is None else (until + 1) * MS_PER_SECOND
            versions = [version for version in known_history.versions if end is None or (version.time or 0) < end]
            attribution = attribute_lines(versions, text)
            named_histories.append(NamedHistory(name, versions, attribution.marks))
            doubts += attribution.doubts
    head_lines = _head_lines(repository, absolute_path)
    blamed, origins = merge_origins(
        current_lines, named_histories, commits_by_line(head_lines, current_lines), line_range
    )
    return FileBlame(
        path=absolute_path,
        total=len(current_lines),
        lines=tuple(blamed),
        origins=tuple(origins),
        names=tuple(named_history.path for named_history in named_histories),
        git=repository is not None,
        trouble=_git_problem(repository, absolute_path) if git else "",
        doubts=doubts,
    )


def _git_problem(repository: Repository | None, path: str) -> str:
    if repository is None:
        return _GIT_UNAVAILABLE if is_in_work_tree(path) else ""
    return _GIT_TIMEOUT if repository.timed_out else ""


def _read_text(path: str) -> str:
    data = read_regular_file(path, _MAX_FILE_SIZE)
    if b"\0" in data:
        raise BadRequest(f"{path} is not a text file")
    return data.decode("utf-8", "replace")


def _line_range(requested_lines: tuple[int, int] | None, total: int, path: str) -> range:
    if requested_lines is None:
        return range(total)
    first, last = requested_lines
    if not 1 <= first <= last or first > total:
        raise BadRequest(f"{path} has no line {first}", hint=f"The file has {total:,} lines.")
    return range(first - 1, min(last, total))


def _names_in_sessions(path: str, other_names: Sequence[str], repository: Repository | None) -> dict[str, int | None]:
    """Return the paths that the file may have in sessions, each with the time of its rename in seconds, if any."""
    names: dict[str, int | None] = dict.fromkeys((path, os.path.realpath(path), *other_names))
    if repository is None:
        return names
    name = repository.name_of(path)
    work_tree = path.removesuffix(f"/{name}") if path.endswith(f"/{name}") else repository.top
    work_trees = dict.fromkeys((work_tree, repository.top, *repository.work_trees()))
    for former_name in (FormerName(name, None), *repository.former_names(name)):
        for work_tree_ in work_trees:
            names.setdefault(os.path.join(work_tree_, former_name.name), former_name.until)
    return names


def _head_lines(repository: Repository | None, path: str) -> list[AnnotatedLine]:
    """Return the lines at HEAD; a file renamed since is found by its name at HEAD."""
    if repository is None:
        return []
    name = repository.name_of(path)
    head_lines = repository.annotate(name)
    if not head_lines:
        staged_names = [former_name.name for former_name in repository.former_names(name) if former_name.until is None]
        head_lines = repository.annotate(staged_names[0]) if staged_names else []
    return head_lines
