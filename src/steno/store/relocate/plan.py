"""The plan of a relocation: the project's files, their rewritten paths, and the step for each file.

Everything is computed to the byte before a file is touched. Two projects may share a folder (`/my-work` and
`/my/work`), so the working directories in each session decide.
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
"""How a file is read for paths: line by line, as one piece of JSON, or not at all."""
StepAction = Literal["move", "rewrite", "add", "merge"]
"""A file gets another place; stays and is rewritten; is new here; or its lines join another's."""
RelocationState = Literal["begun", "placed", "done", "undoing", "undone"]


class FileSum(msgspec.Struct, frozen=True):
    """How long a file is, and the hash of it."""

    size: int
    sha256: str


class FileMove(msgspec.Struct, frozen=True):
    """A file that is the project's, before anybody looked into it."""

    source: str
    target: str
    mode: RewriteMode
    action: StepAction = "move"
    session: bool = False
    """Whether it is a transcript, of a session or a sub-agent."""


class RelocationStep(msgspec.Struct, frozen=True):
    """What will become of one file, to the byte."""

    source: str
    target: str
    mode: RewriteMode
    action: StepAction
    before: FileSum
    after: FileSum
    paths: int = 0
    """How many paths in it are rewritten."""
    exact: bool = True
    """Whether rewriting them back gives the very same bytes; if not, a copy is kept."""
    lines: tuple[str, ...] = ()
    """Of a file that others write too: marks of the lines that were rewritten, or joined it."""
    session: bool = False


class RelocationPlan(msgspec.Struct, frozen=True):
    """Everything that will be done."""

    old: str
    new: str
    config: str
    pairs: tuple[tuple[str, str], ...]
    """Folders, and what they are in paths from now on."""
    steps: tuple[RelocationStep, ...] = ()
    notes: tuple[str, ...] = ()
    """What is left as it is, or worth knowing."""
    folders: tuple[str, ...] = ()
    """Folders that may be empty afterwards."""

    @property
    def sessions(self) -> int:
        """How many sessions move, without the files of sub-agents."""
        return sum(step.session and "agent-" not in _base_name(step.source) for step in self.steps)

    @property
    def size(self) -> int:
        """How many bytes there are in all."""
        return sum(step.before.size for step in self.steps)

    @property
    def paths(self) -> int:
        """How many paths are rewritten."""
        return sum(step.paths for step in self.steps)


def _base_name(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


class RewriteMeasurement(msgspec.Struct, frozen=True):
    """What rewriting a file comes to."""

    before: FileSum
    after: FileSum
    paths: int
    exact: bool
    lines: tuple[str, ...]


class _RunningSum:
    """A hash that knows how much it has seen."""

    def __init__(self) -> None:
        self._hash = sha256()
        self._size = 0

    def add(self, data: bytes) -> None:
        """Take more."""
        self._hash.update(data)
        self._size += len(data)

    def sum(self) -> FileSum:
        """Return what it comes to so far."""
        return FileSum(self._size, self._hash.hexdigest())


def compute_sum(chunks: Iterable[bytes]) -> FileSum:
    """Return size and hash of bytes."""
    running_sum = _RunningSum()
    for chunk in chunks:
        running_sum.add(chunk)
    return running_sum.sum()


def file_sum(path: str) -> FileSum | None:
    """Return size and hash of a file; None if it cannot be read."""
    try:
        with FileSource(path) as file:
            return compute_sum(file.chunks())
    except Unreadable:
        return None


def rewrite_units(chunks: Iterable[bytes], mode: RewriteMode) -> Iterator[bytes]:
    """Yield what is looked at as one: a line with its end, a whole file, or whatever comes."""
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
    """Yield a file with its paths as they are now."""
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
    """Return what rewriting comes to; `collect_marks` adds those of the lines that change."""
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
            # What names the new folder already would be taken along on the way back.
            exact = reverse_paths.rewrite(piece)[1] == 0
        if on_progress is not None:
            on_progress(len(piece))
    return RewriteMeasurement(before.sum(), after.sum(), path_count, exact, tuple(lines))


def _changed_line_marks(old: bytes, new: bytes) -> Iterator[str]:
    pairs = zip(old.split(b"\n"), new.split(b"\n"), strict=True)
    return (line_mark(after) for before, after in pairs if before != after)


def line_mark(line: bytes) -> str:
    """Return what a line is known by, without its end."""
    return blake2b(line.rstrip(b"\r\n"), digest_size=12).hexdigest()


_SESSION_FOLDERS: Final = ("projects", "conversations")
_CWD_PATTERN: Final = re.compile(rb'(?<!\\)"cwd"\s*:\s*("[^"\\]*(?:\\.[^"\\]*)*")')
_MAX_JSON_SIZE: Final = 64 << 20


class ProjectFiles(msgspec.Struct):
    """What is a project's: files and where they go, folders and what they will be called."""

    moves: list[FileMove] = []
    folders: list[tuple[str, str]] = []
    notes: list[str] = []


class _SlugFolder:
    """One folder below `projects`: which of its sessions ran in the project, and where."""

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
        """Whether sessions of another project lie here too."""
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
        """Return the folder that a session ran in and this folder is named after."""
        return next((cwd for cwd in _working_dirs(path) if self.name in slug_candidates(cwd)), None)

    def _ran_in_project(self, path: str) -> bool:
        return any(is_inside_path(cwd, self._project) for cwd in _working_dirs(path))

    def working_dir_of(self, entry: os.DirEntry[str]) -> str | None:
        """Return where the session ran that something in the folder belongs to; None if not ours."""
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
        """Return the home of what belongs to no session: the folder's, if it is ours alone."""
        if self.is_shared:
            return None
        if self.working_dirs:
            return next(iter(self.working_dirs.values()))
        return self._project if self.name in slug_candidates(self._project) else None


def find_project_files(config: str, old: str, new: str) -> ProjectFiles:
    """Return what a config folder has of the project at `old`, and where it will lie."""
    project_files = ProjectFiles()
    for folder_name in _SESSION_FOLDERS:
        parent = os.path.join(config, folder_name)
        for entry in list_folder(parent, []) if os.path.isdir(parent) else ():
            if is_folder(entry, links=False) and _may_be_project_folder(entry.name, old):
                _add_folder(_SlugFolder(entry.path, old), old, new, project_files)
    return project_files


def _may_be_project_folder(name: str, old: str) -> bool:
    """Say whether a folder's name may be that of the project, or of a folder in it."""
    return any(name.startswith(slug[:SLUG_LIMIT]) for slug in slug_candidates(old))


def _add_folder(folder: _SlugFolder, old: str, new: str, project_files: ProjectFiles) -> None:
    parent = os.path.dirname(folder.path)
    project_files.notes += [f"{path} is left: no rule names its folder so" for path in folder.misplaced]
    for entry in list_folder(folder.path, []):
        working_dir = folder.working_dir_of(entry)
        if working_dir is None:
            if folder.working_dirs and entry.name.removesuffix(JSONL_SUFFIX) not in folder.foreign:
                project_files.notes.append(f"{entry.path} is left: sessions of two projects share it")
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
    """Yield the regular files of an entry; links stay where they are."""
    if entry.is_symlink():
        notes.append(f"{entry.path} is left: a link")
    elif entry.is_dir(follow_symlinks=False):
        for child in list_folder(entry.path, []):
            yield from _regular_files(child, notes)
    elif entry.is_file(follow_symlinks=False) and not entry.name.endswith(TEMP_SUFFIX):
        yield entry.path


def rewrite_mode(path: str) -> RewriteMode:
    """Return how paths are looked for in a file, by its name."""
    if path.endswith(JSONL_SUFFIX):
        return "lines"
    if not path.endswith(".json") or "/tool-results/" in path.replace(os.sep, "/"):
        return "bytes"
    try:
        return "whole" if os.path.getsize(path) <= _MAX_JSON_SIZE else "bytes"
    except OSError:
        return "bytes"


def is_inside_path(path: str, folder: str) -> bool:
    """Say whether a path is a folder, or below it; of any system."""
    separator = "\\" if "\\" in folder and not folder.startswith("/") else "/"
    return path == folder or path.startswith(folder.rstrip(separator) + separator)


def _working_dirs(path: str) -> Iterator[str]:
    """Yield the folders that a transcript says it ran in, each once."""
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
    """Return what it takes to have the sessions of the project at `old` follow it to `new`.

    Raises BadRequest if both are the same folder, one is a whole disk, or sessions of the same id lie at both, or
    NotFound if there is nothing of such a project, or Busy if a client is at work in it.
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
        # The client writes the folder as it is named, links and all.
        pairs += [(named_config + a[len(config) :], named_config + b[len(config) :]) for a, b in folders]
    steps = plan_steps(moves, PathRewriter(pairs), on_progress)
    plan = RelocationPlan(
        old, new, config, tuple(pairs), folders=tuple(source for source, _ in folders), notes=tuple(project_files.notes)
    )
    plan = check_steps(plan, list(steps))
    if not plan.steps:
        raise NotFound(f"there is nothing of a project at {old}", hint="`steno ls` says where sessions ran")
    refuse_if_active(plan)
    return plan


def refuse_root(folder: str) -> None:
    """Refuse what everything else lies in: no path would say which project it is of.

    Raises BadRequest if it is the root of a disk.
    """
    real_path = os.path.realpath(folder)
    if os.path.dirname(real_path) == real_path:
        raise BadRequest(f"{folder} is no folder of a project")


def _find_project(folder: str, new: str, config: str) -> tuple[str, Any]:
    """Return the folder under the name that its sessions know, and what there is of it."""
    # Clients name a project by where it really lies; what is gone cannot be asked any more.
    names = dict.fromkeys((os.path.abspath(folder), os.path.realpath(folder)))
    if new in names and len(names) == 1:
        raise BadRequest("both are the same folder")
    for old in names:
        project_files = find_project_files(config, old, new)
        if old != new and project_files.moves:
            return old, project_files
    return next(iter(names)), find_project_files(config, next(iter(names)), new)


def path_pairs(old: str, new: str, config: str, folders: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return folders and what they are from now on; the config folder itself stays."""
    pairs = [(old, new), *folders]
    if is_inside_path(config, old):
        pairs.append((config, config))
    return pairs


def shared_files(config: str) -> list[FileMove]:
    """Return the files in which all projects are named: they stay, and are rewritten."""
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
    """Yield what becomes of each file; files that stay and do not change are left out."""
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
    """Leave out what cannot go, and say so; refuse where a session would get lost."""
    accepted: list[RelocationStep] = []
    notes = list(plan.notes)
    _refuse_invalid_names((plan.old, plan.new, *(candidate.source for candidate in steps)))
    for step in steps:
        if os.path.basename(step.source) == _CLIENT_STATE_FILE and (duplicate := _duplicate_project(step, plan)):
            notes.append(f"{step.source} is left: it has an entry for {duplicate} already")
        elif step.action in ("move", "add") and os.path.lexists(step.target):
            if file_sum(step.target) == step.after:
                # What an earlier run placed before it was cut off; what was unpacked before.
                accepted += [step] if step.action == "move" else []
            elif step.session:
                raise BadRequest(
                    f"{step.target} is there already, with other content",
                    hint="nothing was changed; two sessions cannot have one name",
                )
            else:
                notes.append(f"{step.source} is left: there is one at {step.target}")
        else:
            accepted.append(step)
    if not os.path.isdir(plan.new):
        notes.append(f"there is no folder {plan.new} yet")
    return msgspec.structs.replace(plan, steps=tuple(accepted), notes=tuple(notes))


def _refuse_invalid_names(paths: Iterable[str]) -> None:
    """Refuse names that are not UTF-8: neither JSON nor a receipt can hold them."""
    for path in paths:
        try:
            path.encode()
        except UnicodeEncodeError as error:
            raise BadRequest(f"{path!r} is not UTF-8", hint="rename it first") from error


def _duplicate_project(step: RelocationStep, plan: RelocationPlan) -> str:
    """Return a project that the client's own file would have two entries for."""
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
    """Let nobody move what a client is at work on. Raises Busy if one is, or a session was written to a moment ago."""
    hint = "nothing was changed; leave that session first"
    running = [live_process for live_process in ConfigFolder(plan.config).live_processes() if is_running(live_process)]
    for process in running:
        if any(is_inside_path(process.cwd, each) for each in (plan.old, plan.new)):
            raise Busy(f"a client is at work in {process.cwd} (process {process.pid})", hint=hint)
    ids = {process.session_id for process in running} - {""}
    for step in plan.steps:
        identity = current_identity(step.source) if step.session else None
        if identity is None:
            continue
        if is_recently_written(identity.mtime_ns) or not ids.isdisjoint(_path_names(step.source)):
            raise Busy(f"{step.source} is being written to", hint=hint)
        refuse_if_locked(step.source)


def _path_names(path: str) -> list[str]:
    return path.removesuffix(".jsonl").split(os.sep)
