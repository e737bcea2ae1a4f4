"""The plan of a relocation: the project's files, their rewritten paths, and the step for each file.

All results are computed, including sizes and hashes, before a file is changed. Two projects may share a directory
(`/my-work` and `/my/work`), so the working directories in each session decide which project it belongs to.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator
from hashlib import blake2b, sha256
from typing import Any, Final, Literal, cast

import msgspec

from steno.errors import BadRequest, Busy, NotFound, Unreadable
from steno.format.lenient_json import DECODE_ERRORS, decode_lenient
from steno.format.path_rewriter import PathRewriter
from steno.format.paths import JSONL_SUFFIX, SLUG_LIMIT, classify_transcript, slug_by_same_rule, slug_candidates
from steno.store.atomic import TEMP_SUFFIX
from steno.store.client_folders import ConfigFolder
from steno.store.discovery import HEAD_SIZE, is_folder, list_folder, peek, session_id_in
from steno.store.environment import home_dir
from steno.store.file_source import FileSource
from steno.store.session_lock import current_identity, is_recently_written, is_running, refuse_if_locked

RewriteMode = Literal["lines", "whole", "bytes"]
"""How paths are found in a file: line by line, as one JSON document, or not at all."""
StepAction = Literal["move", "rewrite", "add", "merge"]
"""Action for a file: move it, rewrite it in place, add it, or merge its lines into another file."""
RelocationState = Literal["begun", "placed", "done", "undoing", "undone"]


class FileSum(msgspec.Struct, frozen=True):
    """Size and hash of a file."""

    size: int
    sha256: str


class FileMove(msgspec.Struct, frozen=True):
    """A file of the project, before its content is read."""

    source: str
    target: str
    mode: RewriteMode
    action: StepAction = "move"
    session: bool = False
    """Whether the file is a transcript of a session or sub-agent."""


class RelocationStep(msgspec.Struct, frozen=True):
    """The planned change of one file."""

    source: str
    target: str
    mode: RewriteMode
    action: StepAction
    before: FileSum
    after: FileSum
    paths: int = 0
    """Number of rewritten paths in the file."""
    exact: bool = True
    """Whether the rewriting can be reversed exactly; otherwise a copy is kept."""
    lines: tuple[str, ...] = ()
    """For files shared with other processes: marks of the lines that were rewritten or added."""
    session: bool = False


class RelocationPlan(msgspec.Struct, frozen=True):
    """All planned changes."""

    old: str
    new: str
    config: str
    pairs: tuple[tuple[str, str], ...]
    """Pairs of old and new directories."""
    steps: tuple[RelocationStep, ...] = ()
    notes: tuple[str, ...] = ()
    """Files that are skipped, and other notes."""
    folders: tuple[str, ...] = ()
    """Directories that may be empty afterwards."""

    @property
    def sessions(self) -> int:
        """Number of sessions that are moved, not counting sub-agent files."""
        return sum(step.session and "agent-" not in _base_name(step.source) for step in self.steps)

    @property
    def size(self) -> int:
        """Total bytes of all files."""
        return sum(step.before.size for step in self.steps)

    @property
    def paths(self) -> int:
        """Number of rewritten paths."""
        return sum(step.paths for step in self.steps)


def _base_name(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


class RewriteMeasurement(msgspec.Struct, frozen=True):
    """The result of rewriting the paths in a file."""

    before: FileSum
    after: FileSum
    paths: int
    exact: bool
    lines: tuple[str, ...]


class _RunningSum:
    """An incremental hash that counts bytes."""

    def __init__(self) -> None:
        self._hash = sha256()
        self._size = 0

    def add(self, data: bytes) -> None:
        """Add bytes to the hash."""
        self._hash.update(data)
        self._size += len(data)

    def sum(self) -> FileSum:
        """Return the size and hash of all bytes so far."""
        return FileSum(self._size, self._hash.hexdigest())


def compute_sum(chunks: Iterable[bytes]) -> FileSum:
    """Return the size and hash of bytes."""
    running_sum = _RunningSum()
    for chunk in chunks:
        running_sum.add(chunk)
    return running_sum.sum()


def file_sum(path: str) -> FileSum | None:
    """Return the size and hash of a file; None if it cannot be read."""
    try:
        with FileSource(path) as file:
            return compute_sum(file.chunks())
    except Unreadable:
        return None


def rewrite_units(chunks: Iterable[bytes], mode: RewriteMode) -> Iterator[bytes]:
    """Yield the units in which paths are rewritten: lines with their newlines, the whole file, or chunks."""
    if mode == "bytes":
        yield from chunks
        return
    if mode == "whole":
        yield b"".join(chunks)
        return
    line_parts: list[bytes] = []
    for chunk in chunks:
        first, *others = chunk.split(b"\n")
        line_parts.append(first)
        for line in others:
            yield b"".join(line_parts) + b"\n"
            line_parts = [line]
    if last := b"".join(line_parts):
        yield last


def rewrite_paths(chunks: Iterable[bytes], paths: PathRewriter, mode: RewriteMode) -> Iterator[bytes]:
    """Yield the content of a file with rewritten paths."""
    for piece in rewrite_units(chunks, mode):
        yield piece if mode == "bytes" else paths.rewrite(piece)[0]


def measure_rewrite(
    chunks: Iterable[bytes],
    paths: PathRewriter,
    mode: RewriteMode,
    *,
    collect_marks: bool = False,
    on_progress: Callable[[int], None] | None = None,
) -> RewriteMeasurement:
    """Measure the effect of rewriting; `collect_marks` adds the marks of changed lines."""
    before, after = _RunningSum(), _RunningSum()
    reverse_paths = paths.inverse()
    path_count, exact, lines = 0, True, list[str]()
    for piece in rewrite_units(chunks, mode):
        new, count = (piece, 0) if mode == "bytes" else paths.rewrite(piece)
        before.add(piece)
        after.add(new)
        path_count += count
        if count:
            exact = exact and reverse_paths.rewrite(new)[0] == piece
            lines += _changed_line_marks(piece, new) if collect_marks else ()
        elif exact and mode != "bytes":
            # Existing references to the new directory would be changed when the move is undone.
            exact = reverse_paths.rewrite(piece)[1] == 0
        if on_progress is not None:
            on_progress(len(piece))
    return RewriteMeasurement(before.sum(), after.sum(), path_count, exact, tuple(lines))


def _changed_line_marks(old: bytes, new: bytes) -> Iterator[str]:
    pairs = zip(old.split(b"\n"), new.split(b"\n"), strict=True)
    return (line_mark(after) for before, after in pairs if before != after)


def line_mark(line: bytes) -> str:
    """Return a hash of a line without its line ending, to recognize the line later."""
    return blake2b(line.rstrip(b"\r\n"), digest_size=12).hexdigest()


_SESSION_FOLDERS: Final = ("projects", "conversations")
_CWD_PATTERN: Final = re.compile(rb'(?<!\\)"cwd"\s*:\s*("[^"\\]*(?:\\.[^"\\]*)*")')
_MAX_JSON_SIZE: Final = 64 << 20


class ProjectFiles(msgspec.Struct):
    """The files and directories of a project, with their new paths."""

    moves: list[FileMove] = []
    folders: list[tuple[str, str]] = []
    notes: list[str] = []


class _SlugFolder:
    """One directory below `projects`, with the working directories of its sessions."""

    def __init__(self, path: str, old: str) -> None:
        self.path = path
        self.name = os.path.basename(path)
        self._project = old
        self.working_dirs: dict[str, str] = {}
        self.foreign: set[str] = set()
        self.misplaced: list[str] = []
        self._classify_sessions()

    @property
    def is_shared(self) -> bool:
        """Whether the directory also contains sessions of another project."""
        return bool(self.foreign)

    def _classify_sessions(self) -> None:
        undecided: list[str] = []
        for entry in list_folder(self.path, []):
            if not entry.name.endswith(JSONL_SUFFIX) or entry.name.startswith("agent-"):
                continue
            stem = entry.name.removesuffix(JSONL_SUFFIX)
            working_dir = self._find_working_dir(entry.path)
            if working_dir is None:
                undecided.append(stem)
                self.misplaced += [entry.path] if self._ran_in_project(entry.path) else []
            elif is_inside_path(working_dir, self._project):
                self.working_dirs[stem] = working_dir
            else:
                self.foreign.add(stem)
        is_project_folder = self.name in slug_candidates(self._project) and not self.foreign
        for stem in undecided:
            if is_project_folder:
                self.working_dirs[stem] = self._project
            else:
                self.foreign.add(stem)
        self.misplaced = [] if is_project_folder else self.misplaced

    def _find_working_dir(self, path: str) -> str | None:
        """Return the working directory of a session from which this directory's name is derived."""
        return next((cwd for cwd in _working_dirs(path) if self.name in slug_candidates(cwd)), None)

    def _ran_in_project(self, path: str) -> bool:
        return any(is_inside_path(cwd, self._project) for cwd in _working_dirs(path))

    def working_dir_of(self, entry: os.DirEntry[str]) -> str | None:
        """Return the working directory of the session that an entry belongs to; None for other projects."""
        name = entry.name
        if name.startswith("agent-"):
            session = self._session_of(entry)
            if session in self.working_dirs or session in self.foreign:
                return self.working_dirs.get(session)
            working_dir = self._find_working_dir(entry.path)
            return (
                working_dir
                if working_dir and is_inside_path(working_dir, self._project)
                else self._default_working_dir()
            )
        for stem in (name, name.removesuffix(JSONL_SUFFIX), name.partition(JSONL_SUFFIX + ".")[0]):
            if stem in self.working_dirs or stem in self.foreign:
                return self.working_dirs.get(stem)
        return self._default_working_dir()

    def _session_of(self, entry: os.DirEntry[str]) -> str:
        path = entry.path
        if path.endswith(".meta.json"):
            path = path.removesuffix(".meta.json") + JSONL_SUFFIX
        return session_id_in(peek(path, HEAD_SIZE, []) or b"")

    def _default_working_dir(self) -> str | None:
        """Return the working directory for entries without a session; None if projects share the directory."""
        if self.is_shared:
            return None
        if self.working_dirs:
            return next(iter(self.working_dirs.values()))
        return self._project if self.name in slug_candidates(self._project) else None


def find_project_files(config: str, old: str, new: str) -> ProjectFiles:
    """Return the files of the project at `old` in a config directory, with their new paths."""
    project_files = ProjectFiles()
    for folder_name in _SESSION_FOLDERS:
        parent = os.path.join(config, folder_name)
        for entry in list_folder(parent, []) if os.path.isdir(parent) else ():
            if is_folder(entry, links=False) and _may_be_project_folder(entry.name, old):
                _add_folder(_SlugFolder(entry.path, old), old, new, project_files)
    return project_files


def _may_be_project_folder(name: str, old: str) -> bool:
    """Return whether a directory name can be that of the project or of a directory inside it."""
    return any(name.startswith(slug[:SLUG_LIMIT]) for slug in slug_candidates(old))


def _add_folder(folder: _SlugFolder, old: str, new: str, project_files: ProjectFiles) -> None:
    parent = os.path.dirname(folder.path)
    project_files.notes += [
        f"{path} was skipped: its directory name does not match its working directory" for path in folder.misplaced
    ]
    for entry in list_folder(folder.path, []):
        working_dir = folder.working_dir_of(entry)
        if working_dir is None:
            if folder.working_dirs and entry.name.removesuffix(JSONL_SUFFIX) not in folder.foreign:
                project_files.notes.append(f"{entry.path} was skipped: sessions of two projects share it")
            continue
        target_folder = os.path.join(parent, slug_by_same_rule(folder.name, working_dir, new + working_dir[len(old) :]))
        if (folder.path, target_folder) not in project_files.folders:
            project_files.folders.append((folder.path, target_folder))
        for source in _regular_files(entry, project_files.notes):
            target = target_folder + source[len(folder.path) :]
            project_files.moves.append(
                FileMove(source, target, rewrite_mode(source), session=_is_transcript_path(source))
            )


def _is_transcript_path(path: str) -> bool:
    names = path.replace(os.sep, "/").split("/")[-6:]
    return path.endswith(JSONL_SUFFIX) and classify_transcript(names).role in {"session", "agent"}


def _regular_files(entry: os.DirEntry[str], notes: list[str]) -> Iterator[str]:
    """Yield the regular files of an entry; symbolic links are skipped."""
    if entry.is_symlink():
        notes.append(f"{entry.path} was skipped: symbolic link")
    elif entry.is_dir(follow_symlinks=False):
        for child in list_folder(entry.path, []):
            yield from _regular_files(child, notes)
    elif entry.is_file(follow_symlinks=False) and not entry.name.endswith(TEMP_SUFFIX):
        yield entry.path


def rewrite_mode(path: str) -> RewriteMode:
    """Return how paths are found in a file, by its name."""
    if path.endswith(JSONL_SUFFIX):
        return "lines"
    if not path.endswith(".json") or "/tool-results/" in path.replace(os.sep, "/"):
        return "bytes"
    try:
        return "whole" if os.path.getsize(path) <= _MAX_JSON_SIZE else "bytes"
    except OSError:
        return "bytes"


def is_inside_path(path: str, folder: str) -> bool:
    """Return whether a path is a directory or below it, in POSIX or Windows notation."""
    separator = "\\" if "\\" in folder and not folder.startswith("/") else "/"
    return path == folder or path.startswith(folder.rstrip(separator) + separator)


def _working_dirs(path: str) -> Iterator[str]:
    """Yield each distinct working directory in a transcript."""
    known: set[bytes] = set()
    rest = b""
    with FileSource(path) as source:
        for chunk in source.chunks():
            complete_lines, _, rest = (rest + chunk).rpartition(b"\n")
            yield from _decode_working_dirs(complete_lines, known)
    yield from _decode_working_dirs(rest, known)


def _decode_working_dirs(data: bytes, known: set[bytes]) -> Iterator[str]:
    for match in _CWD_PATTERN.finditer(data):
        if match[1] in known:
            continue
        known.add(match[1])
        try:
            yield msgspec.json.decode(match[1], type=str)
        except DECODE_ERRORS:
            continue


ProgressCallback = Callable[[int], None]
HISTORY_NAME: Final = "history.jsonl"
_CLIENT_STATE_FILE: Final = ".claude.json"


def plan_move(old: str, new: str, config: str, *, on_progress: ProgressCallback | None = None) -> RelocationPlan:
    """Plan the move of the sessions of the project at `old` to `new`.

    Raises BadRequest if both are the same directory, one is the root of a disk, or a session ID exists at both;
    NotFound if the project has no files; Busy if a client uses it.
    """
    for folder in (old, new):
        refuse_root(folder)
    named_config, config = os.path.abspath(config), os.path.realpath(config)
    old, project_files = _find_project(old, os.path.realpath(new), config)
    new = os.path.realpath(new)
    folders = [(source, target) for source, target in project_files.folders if source != target]
    moves = [*project_files.moves, *shared_files(config)]
    pairs = path_pairs(old, new, config, folders)
    if named_config != config:
        # Claude Code writes the directory as given, with links unresolved.
        pairs += [(named_config + a[len(config) :], named_config + b[len(config) :]) for a, b in folders]
    steps = plan_steps(moves, PathRewriter(pairs), on_progress)
    plan = RelocationPlan(
        old, new, config, tuple(pairs), folders=tuple(source for source, _ in folders), notes=tuple(project_files.notes)
    )
    plan = check_steps(plan, list(steps))
    if not plan.steps:
        raise NotFound(f"no sessions found for {old}", hint="Run `steno ls` to list sessions and their directories.")
    refuse_if_active(plan)
    return plan


def refuse_root(folder: str) -> None:
    """Refuse the root of a disk: as the parent of every path it cannot be a project.

    Raises BadRequest for a root directory.
    """
    real_path = os.path.realpath(folder)
    if os.path.dirname(real_path) == real_path:
        raise BadRequest(f"{folder} is not a project directory")


def _find_project(folder: str, new: str, config: str) -> tuple[str, Any]:
    """Return the directory as spelled in its sessions, and its files."""
    # Claude Code names a project by its real path, which can no longer be resolved after a move.
    names = dict.fromkeys((os.path.abspath(folder), os.path.realpath(folder)))
    if new in names and len(names) == 1:
        raise BadRequest("both are the same directory")
    for old in names:
        project_files = find_project_files(config, old, new)
        if old != new and project_files.moves:
            return old, project_files
    return next(iter(names)), find_project_files(config, next(iter(names)), new)


def path_pairs(old: str, new: str, config: str, folders: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return pairs of old and new directories; the config directory itself stays."""
    pairs = [(old, new), *folders]
    if is_inside_path(config, old):
        pairs.append((config, config))
    return pairs


def shared_files(config: str) -> list[FileMove]:
    """Return the files that contain paths of all projects; they are rewritten in place."""
    state = os.path.join(config, _CLIENT_STATE_FILE)
    if not os.path.isfile(state) and os.path.basename(config) == ".claude":
        home_state = os.path.join(os.path.dirname(config), _CLIENT_STATE_FILE)
        state = home_state if os.path.realpath(home_dir()) == os.path.dirname(config) else state
    history = os.path.join(config, HISTORY_NAME)
    candidates = [FileMove(history, history, "lines", "rewrite"), FileMove(state, state, "whole", "rewrite")]
    return [move for move in candidates if os.path.isfile(move.source)]


def plan_steps(
    moves: Iterable[FileMove], paths: PathRewriter, on_progress: ProgressCallback | None = None
) -> Iterator[RelocationStep]:
    """Yield the step for each file, skipping unchanged files."""
    for move in moves:
        shared = move.action == "rewrite"
        with FileSource(move.source) as source:
            measurement = measure_rewrite(
                source.chunks(), paths, move.mode, collect_marks=shared, on_progress=on_progress
            )
        if move.source == move.target and not measurement.paths:
            continue
        yield RelocationStep(
            move.source,
            move.target,
            move.mode,
            "rewrite" if move.source == move.target else move.action,
            measurement.before,
            measurement.after,
            measurement.paths,
            exact=measurement.exact,
            lines=measurement.lines,
            session=move.session,
        )


def check_steps(plan: RelocationPlan, steps: list[RelocationStep]) -> RelocationPlan:
    """Remove steps that cannot be executed, with a note; refuse those that would lose a session."""
    accepted: list[RelocationStep] = []
    notes = list(plan.notes)
    _refuse_invalid_names((plan.old, plan.new, *(candidate.source for candidate in steps)))
    for step in steps:
        if os.path.basename(step.source) == _CLIENT_STATE_FILE and (duplicate := _duplicate_project(step, plan)):
            notes.append(f"{step.source} was skipped: it already has an entry for {duplicate}")
        elif step.action in ("move", "add") and os.path.lexists(step.target):
            if file_sum(step.target) == step.after:
                # Placed by an earlier, interrupted move, or unpacked before.
                accepted += [step] if step.action == "move" else []
            elif step.session:
                raise BadRequest(
                    f"{step.target} already exists with different content",
                    hint="Nothing was changed. Rename or remove one of the two sessions.",
                )
            else:
                notes.append(f"{step.source} was skipped: {step.target} already exists")
        else:
            accepted.append(step)
    if not os.path.isdir(plan.new):
        notes.append(f"the directory {plan.new} does not exist yet")
    return msgspec.structs.replace(plan, steps=tuple(accepted), notes=tuple(notes))


def _refuse_invalid_names(paths: Iterable[str]) -> None:
    """Refuse names that are not UTF-8, which neither JSON nor a receipt can contain."""
    for path in paths:
        try:
            path.encode()
        except UnicodeEncodeError as error:
            raise BadRequest(f"{path!r} is not UTF-8", hint="Rename it first.") from error


def _duplicate_project(step: RelocationStep, plan: RelocationPlan) -> str:
    """Return a project that Claude Code's state file would contain twice."""
    with FileSource(step.source) as source:
        state = decode_lenient(source.read(0, source.size))
    projects = cast("dict[str, Any]", state).get("projects") if isinstance(state, dict) else None
    if not isinstance(projects, dict):
        return ""
    names = cast("dict[str, Any]", projects)
    paths = PathRewriter(plan.pairs)
    for name in names:
        if (new := paths.rewrite_path(name)) != name and new in names:
            return new
    return ""


def refuse_if_active(plan: RelocationPlan) -> None:
    """Raise Busy if a client uses one of the sessions, or a session was modified seconds ago."""
    hint = "Nothing was changed. Close that session first."
    running = [live_process for live_process in ConfigFolder(plan.config).live_processes() if is_running(live_process)]
    for process in running:
        if any(is_inside_path(process.cwd, folder) for folder in (plan.old, plan.new)):
            raise Busy(f"{process.cwd} is in use by process {process.pid}", hint=hint)
    ids = {process.session_id for process in running} - {""}
    for step in plan.steps:
        identity = current_identity(step.source) if step.session else None
        if identity is None:
            continue
        if is_recently_written(identity.mtime_ns) or not ids.isdisjoint(_path_names(step.source)):
            raise Busy(f"{step.source} is being written", hint=hint)
        refuse_if_locked(step.source)


def _path_names(path: str) -> list[str]:
    return path.removesuffix(".jsonl").split(os.sep)
