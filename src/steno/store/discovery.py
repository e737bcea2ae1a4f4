"""Discovery of sessions, their sub-agents and their sidecar files.

    for session in discover("/home/ada/.claude"): …

    discovery = Discovery(folder)
    for session in discovery.sessions():
        discovery.agents(session), discovery.sidecars(session)
    discovery.problems

A root is a config directory, its `projects`, one project, any directory with transcripts, or a single file. Nothing on
disk is changed, and a file is opened only if its name does not identify it.
"""

import errno
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator
from operator import attrgetter
from typing import Final, Literal

import msgspec

from steno.errors import BadRequest, Unreadable
from steno.format.paths import CONFIG_FOLDERS, JSONL_SUFFIX, PathInfo, classify_path, classify_transcript, is_uuid

ProblemKind = Literal[
    "dangling",  # broken symbolic link
    "denied",  # permission denied
    "loop",  # link to a directory that contains it
    "missing",  # no such file or directory
    "not-a-file",  # directory named like a transcript
    "special",  # pipe, socket or device named like a transcript
    "too-deep",  # nested deeper than any client creates
    "unreadable",  # other system error
]


class Problem(msgspec.Struct, frozen=True):
    """A file or directory that was skipped, with the reason."""

    kind: ProblemKind
    path: str
    message: str = ""


def unreadable_problems(problems: Iterable[Problem], *more_kinds: ProblemKind) -> list[Problem]:
    """Return the problems with files that exist but cannot be read, plus problems of the kinds in `more_kinds`."""
    kinds = ("denied", "unreadable", *more_kinds)
    return [problem for problem in problems if problem.kind in kinds]


class DiscoveredFile(msgspec.Struct, frozen=True, gc=False):
    """A discovered file with its status at the time of discovery.

    `path` may contain bytes that are not UTF-8 (as lone surrogates): pass it through `os.fsencode` to open it, and
    through `steno.sanitize` to show it.
    """

    path: str
    size: int
    mtime_ns: int
    place: PathInfo
    root: str
    agents: tuple["DiscoveredFile", ...] = ()


HEAD_SIZE: Final = 1 << 16
_entry_name: Final = attrgetter("name")
_PEEK_FLAGS: Final = (
    os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_NOCTTY", 0) | getattr(os, "O_BINARY", 0)
)
_PROBLEM_KINDS: Final[dict[int | None, ProblemKind]] = {
    errno.ENOENT: "missing",
    errno.EACCES: "denied",
    errno.EPERM: "denied",
    errno.ELOOP: "loop",
}
# A quote after a backslash is inside a JSON string and does not start a key.
_KEY_PATTERN: Final = rb'(?<!\\)"(?:%s)"\s*:'
_GRAPH_KEYS: Final = _KEY_PATTERN % rb"parentUuid|isSidechain"
_TYPE_KEY: Final = _KEY_PATTERN % rb"type"
_STATE_KEYS: Final = _KEY_PATTERN % rb"sessionId|leafUuid|messageId"
_HISTORY_KEY: Final = _KEY_PATTERN % rb"pastedContents"
_SESSION_ID_PATTERN: Final = _KEY_PATTERN % rb"sessionId" + rb'\s*"([^"\\\x00-\x1f]{1,200})"'


class ArchivedFile(DiscoveredFile, frozen=True, gc=False):
    """A file that exists only in the archive; `path` is its original path."""

    folder: str = ""
    """Archive directory with the file."""
    copy_number: int = 0
    """Number of the file in the archive directory."""


class _SessionIds(msgspec.Struct, rename="camel"):
    session_id: str = ""


def problem_from_error(path: str, error: OSError | ValueError) -> Problem:
    """Convert a system error to a problem; a ValueError means that the file name is invalid."""
    if isinstance(error, OSError):
        return Problem(_PROBLEM_KINDS.get(error.errno, "unreadable"), path, error.strerror or "")
    return Problem("missing", path, "invalid file name")


def list_folder(folder: str, problems: list[Problem]) -> list[os.DirEntry[str]]:
    """Return the entries of a directory, sorted by name; record a problem if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=_entry_name)
    except OSError as error:
        problems.append(problem_from_error(folder, error))
        return []


def is_folder(entry: os.DirEntry[str], *, links: bool) -> bool:
    """Return whether an entry is a directory, or with `links` a link to one."""
    try:
        return entry.is_dir(follow_symlinks=links)
    except OSError:
        return False


def discover_entry(
    entry: os.DirEntry[str], location: PathInfo, root: str, problems: list[Problem]
) -> DiscoveredFile | None:
    """Return the regular file of an entry (links followed); None with a recorded problem otherwise."""
    try:
        status = entry.stat()
    except FileNotFoundError as error:
        # Either a broken link, or a file deleted since the directory was listed.
        if entry.is_symlink():
            problems.append(Problem("dangling", entry.path, "broken symbolic link"))
        else:
            problems.append(problem_from_error(entry.path, error))
        return None
    except OSError as error:
        problems.append(problem_from_error(entry.path, error))
        return None
    if stat.S_ISREG(status.st_mode):
        return DiscoveredFile(entry.path, status.st_size, status.st_mtime_ns, location, root)
    if stat.S_ISDIR(status.st_mode):
        problems.append(Problem("not-a-file", entry.path, "is a directory"))
    else:
        problems.append(Problem("special", entry.path, "is a pipe, socket or device"))
    return None


def unreadable_problem(path: str, error: Unreadable) -> Problem:
    """Return the problem with the underlying system error of a file that cannot be read."""
    cause = error.__cause__
    return problem_from_error(path, cause) if isinstance(cause, OSError) else Problem("unreadable", path)


def peek(path: str, limit: int, problems: list[Problem]) -> bytes | None:
    """Return the first `limit` bytes of a regular file; None with a recorded problem otherwise.

    The file is opened without blocking, so that a pipe in its place cannot stall the process.
    """
    try:
        handle = os.open(path, _PEEK_FLAGS)
    except (OSError, ValueError) as error:
        problems.append(problem_from_error(path, error))
        return None
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            problems.append(Problem("special", path, "not a regular file"))
            return None
        return b"".join(_read_up_to(handle, limit))
    except OSError as error:
        problems.append(problem_from_error(path, error))
        return None
    finally:
        os.close(handle)


def _read_up_to(handle: int, limit: int) -> Iterator[bytes]:
    while limit > 0 and (piece := os.read(handle, min(limit, 1 << 20))):
        limit -= len(piece)
        yield piece


def is_transcript(head: bytes) -> bool:
    """Return whether the first bytes of a file are those of a session, intact or damaged."""
    if re.search(_HISTORY_KEY, head):
        return False
    if re.search(_GRAPH_KEYS, head):
        return True
    return re.search(_TYPE_KEY, head) is not None and re.search(_STATE_KEYS, head) is not None


def session_id_in(head: bytes) -> str:
    """Return the session ID in the first bytes of a transcript, or an empty string."""
    for line in head.split(b"\n"):
        try:
            ids = msgspec.json.decode(line, type=_SessionIds)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            continue
        if ids.session_id:
            return ids.session_id
    # The first record is longer than the head; its ID precedes its message.
    match = re.search(_SESSION_ID_PATTERN, head)
    return match[1].decode("utf-8", "replace") if match else ""


MAX_DEPTH: Final = 24
IGNORED_FOLDERS: Final = frozenset({".git", "node_modules", "tool-results"})
_SESSION_FOLDERS: Final = frozenset({"projects", "conversations"})
_PATH_PARTS: Final = 6


def list_entries(folder: str) -> list[os.DirEntry[str]]:
    """Return the entries of a directory; an empty list if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return list(entries)
    except OSError:
        return []


def is_below(path: str, folder: str, *, or_equal: bool = False) -> bool:
    """Return whether a path is below a directory at any depth; with `or_equal`, also the directory itself."""
    return path.startswith(folder.rstrip(os.sep) + os.sep) or (or_equal and path == folder)


def path_context(path: str) -> tuple[str, ...]:
    """Return the last names of a directory path, enough to classify a file in it."""
    names = os.path.abspath(path).split(os.sep)
    return tuple(name for name in names[-_PATH_PARTS:] if name)


def watched_folders(root: str) -> tuple[str, ...]:
    """Return the directories that discovery walks: in a config directory, those with transcripts."""
    entries = list_folder(root, [])
    if not any(entry.name in _SESSION_FOLDERS for entry in entries):
        return (root,)
    ignored = IGNORED_FOLDERS | CONFIG_FOLDERS
    return tuple(e.path for e in entries if e.name not in ignored and is_folder(e, links=True))


class TranscriptWalk:
    """One walk from one root. Each directory is read once, regardless of how many links lead to it.

    Links to directories are followed last, so that a directory inside the tree is reported under its own path. A link
    to a parent directory is never followed.
    """

    def __init__(
        self,
        root: str,
        problems: list[Problem],
        *,
        agents: bool,
        is_known: Callable[[os.DirEntry[str]], bool] | None = None,
    ) -> None:
        """Take `is_known` to skip files that the caller does not need."""
        self._root = root
        self._is_known = is_known
        self._problems = problems
        self._agents = agents
        self._visited: set[tuple[int, int]] = set()
        self._folders: list[tuple[str, tuple[str, ...], int]] = []
        self._links: list[tuple[str, tuple[str, ...], int]] = []

    def run(self) -> Iterator[DiscoveredFile]:
        """Yield the transcripts, sorted by name within each directory."""
        try:
            status = os.stat(self._root)
        except (OSError, ValueError) as error:
            self._problems.append(problem_from_error(self._root, error))
            return
        if not stat.S_ISDIR(status.st_mode):
            yield from self._single_file(status)
            return
        self._folders.append((self._root, path_context(self._root), 0))
        while self._folders or self._links:
            if self._folders:
                yield from self._walk_folder(*self._folders.pop())
            else:
                self._follow_link(*self._links.pop(0))

    def _single_file(self, status: os.stat_result) -> Iterator[DiscoveredFile]:
        if not stat.S_ISREG(status.st_mode):
            self._problems.append(Problem("special", self._root, "not a regular file"))
            return
        location = classify_transcript(path_context(self._root))
        if location.role != "agent":
            # A file that is named explicitly is always read as a session.
            location = msgspec.structs.replace(location, role="session")
        yield DiscoveredFile(self._root, status.st_size, status.st_mtime_ns, location, self._root)

    def _walk_folder(self, path: str, names: tuple[str, ...], depth: int) -> Iterator[DiscoveredFile]:
        if not self._is_first_visit(path):
            return
        entries = list_folder(path, self._problems)
        entry_names = {entry.name for entry in entries}
        config = not _SESSION_FOLDERS.isdisjoint(entry_names)
        is_known = self._is_known
        subfolders: list[tuple[str, tuple[str, ...], int]] = []
        for entry in entries:
            name = entry.name
            if name.endswith(JSONL_SUFFIX):
                if is_known is not None and is_known(entry):
                    continue
                file = self._transcript_file(entry, names)
                if file is not None:
                    yield file
            elif self._is_walked(name, entry_names, config=config):
                subfolders += self._subfolder(entry, names, depth)
        self._folders += reversed(subfolders)

    def _is_walked(self, name: str, entry_names: set[str], *, config: bool) -> bool:
        if name in IGNORED_FOLDERS or (config and name in CONFIG_FOLDERS):
            return False
        if self._agents:
            return True
        # The directory next to a session holds its sidecar files but no other session.
        return name != "subagents" and not (name + JSONL_SUFFIX in entry_names and is_uuid(name))

    def _subfolder(
        self, entry: os.DirEntry[str], names: tuple[str, ...], depth: int
    ) -> list[tuple[str, tuple[str, ...], int]]:
        try:
            if entry.is_dir(follow_symlinks=False):
                subfolder = (entry.path, (*names, entry.name), depth + 1)
                if depth < MAX_DEPTH:
                    return [subfolder]
                self._problems.append(Problem("too-deep", entry.path, "nested too deeply"))
            elif entry.is_symlink():
                if entry.is_dir():
                    self._links.append((entry.path, (*names, entry.name), depth + 1))
                else:
                    entry.stat()
        except FileNotFoundError:
            self._problems.append(Problem("dangling", entry.path, "broken symbolic link"))
        except OSError as error:
            self._problems.append(problem_from_error(entry.path, error))
        return []

    def _follow_link(self, path: str, names: tuple[str, ...], depth: int) -> None:
        target = os.path.realpath(path)
        parent = os.path.realpath(os.path.dirname(path))
        if (parent + os.sep).startswith(target.rstrip(os.sep) + os.sep):
            self._problems.append(Problem("loop", path, "link to a parent directory"))
        elif depth <= MAX_DEPTH:
            self._folders.append((path, names, depth))

    def _is_first_visit(self, path: str) -> bool:
        try:
            status = os.stat(path)
        except OSError as error:
            self._problems.append(problem_from_error(path, error))
            return False
        identity = (status.st_dev, status.st_ino)
        if identity in self._visited:
            return False
        self._visited.add(identity)
        return True

    def _transcript_file(self, entry: os.DirEntry[str], names: tuple[str, ...]) -> DiscoveredFile | None:
        location = classify_transcript((*names, entry.name))
        if location.role == "session" or (location.role == "agent" and self._agents):
            return discover_entry(entry, location, self._root, self._problems)
        return self._inspect_file(entry, location) if location.role == "unknown" else None

    def _inspect_file(self, entry: os.DirEntry[str], location: PathInfo) -> DiscoveredFile | None:
        """Classify a file by its content if its name is inconclusive."""
        file = discover_entry(entry, location, self._root, self._problems)
        if file is None or not file.size:
            return None
        head = peek(file.path, HEAD_SIZE, self._problems)
        if head is None or not is_transcript(head):
            return None
        return msgspec.structs.replace(file, place=msgspec.structs.replace(location, role="session"))


def read_regular_file(path: str, max_size: int) -> bytes:
    """Return the content of a regular file.

    Raises BadRequest if it is larger than `max_size` bytes, or Unreadable if it does not exist, is not a regular file,
    or cannot be read.
    """
    problems: list[Problem] = []
    data = peek(path, max_size + 1, problems)
    if data is None:
        reason = problems[0].message.lower() if problems else ""
        raise Unreadable(f"cannot read {path}: {reason or 'no such file'}")
    if len(data) > max_size:
        raise BadRequest(f"{path} is larger than {max_size >> 20} MB")
    return data


_FIRST_READ_SIZE: Final = 4096


def discover(root: str, problems: list[Problem] | None = None) -> Iterator[DiscoveredFile]:
    """Yield every session below `root`, sorted by directory and name; add skipped paths to `problems`."""
    return TranscriptWalk(root, [] if problems is None else problems, agents=False).run()


def discover_file(path: str) -> DiscoveredFile:
    """Return the transcript at exactly this path. Raises Unreadable if it is missing or not a regular file."""
    problems: list[Problem] = []
    for file in TranscriptWalk(path, problems, agents=True).run():
        if file.path == path:
            return file
        break
    reason = problems[0].message if problems else "not a file"
    raise Unreadable(f"{path}: {reason}")


def discover_agents(session: DiscoveredFile | str, problems: list[Problem] | None = None) -> list[DiscoveredFile]:
    """Return the transcripts of a session's sub-agents, nested and adjacent."""
    discovery = Discovery("", problems)
    return discovery.agents(discover_file(session) if isinstance(session, str) else session)


def config_folder_of(path: str) -> str:
    """Return the config directory that contains a transcript, or an empty string."""
    names = os.path.abspath(path).split(os.sep)
    for index in range(len(names) - 3, -1, -1):
        if names[index] in {"projects", "conversations"}:
            return os.sep.join(names[:index]) or os.sep
    return ""


class Discovery:
    """Discovery of one root. `problems` is filled while results are read."""

    def __init__(self, root: str, problems: list[Problem] | None = None) -> None:
        self.root = root
        self.problems: list[Problem] = [] if problems is None else problems
        self._adjacent_agents: dict[str, dict[str, list[DiscoveredFile]]] = {}
        self._files_by_session: dict[str, dict[str, list[DiscoveredFile]]] = {}

    def sessions(self) -> Iterator[DiscoveredFile]:
        """Yield every session below the root."""
        return TranscriptWalk(self.root, self.problems, agents=False).run()

    def transcripts(self) -> Iterator[DiscoveredFile]:
        """Yield every session and sub-agent below the root, including orphaned sub-agents."""
        return TranscriptWalk(self.root, self.problems, agents=True).run()

    def agents(self, session: DiscoveredFile) -> list[DiscoveredFile]:
        """Return the transcripts of a session's sub-agents, in every directory layout."""
        if isinstance(session, ArchivedFile):
            from steno.store.archive.catalogue import archived_agents

            return [*archived_agents(session)]
        nested = [file for file in self._session_folder_files(session, "subagents") if file.place.role == "agent"]
        adjacent = self._find_adjacent_agents(os.path.dirname(session.path), session.root)
        session_id = session.place.session_id
        if adjacent and not session_id:
            session_id = self._read_session_id(session.path)
        return [*adjacent.get(session_id, ()), *nested]

    def with_agents(self, session: DiscoveredFile) -> DiscoveredFile:
        """Return the session with its `agents` field set."""
        return msgspec.structs.replace(session, agents=tuple(self.agents(session)))

    def sidecars(self, session: DiscoveredFile) -> list[DiscoveredFile]:
        """Return the sidecar files of a session, from the whole config directory."""
        files = [f for f in self._session_folder_files(session) if f.place.role != "agent"]
        config, session_id = config_folder_of(session.path), session.place.session_id
        if not config or not session_id:
            return files
        for folder in ("file-history", "tasks", "session-env"):
            session_folder = os.path.join(config, folder, session_id)
            files += files_below(session_folder, self.problems, prefix=f"{folder}/{session_id}")
        for folder in ("todos", "debug"):
            files += self._group_by_session(os.path.join(config, folder), folder).get(session_id, ())
        return files

    def _group_by_session(self, folder: str, prefix: str) -> dict[str, list[DiscoveredFile]]:
        """Group the files of a directory by the session ID in their names; the directory is read once."""
        if folder not in self._files_by_session:
            groups: dict[str, list[DiscoveredFile]] = {}
            for file in files_below(folder, self.problems, prefix=prefix):
                groups.setdefault(file.place.session_id, []).append(file)
            self._files_by_session[folder] = groups
        return self._files_by_session[folder]

    def _session_folder_files(self, session: DiscoveredFile, folder: str = "") -> Iterator[DiscoveredFile]:
        base = session.path.removesuffix(JSONL_SUFFIX)
        if base == session.path:
            return iter(())
        # Classified as if below `projects/`, wherever the session is.
        prefix = "/".join(("projects", session.place.slug or "-", os.path.basename(base)))
        if not folder:
            return files_below(base, self.problems, prefix=prefix)
        return files_below(os.path.join(base, folder), self.problems, prefix=f"{prefix}/{folder}")

    def _find_adjacent_agents(self, folder: str, root: str) -> dict[str, list[DiscoveredFile]]:
        """Group the agent files of one directory (2.0.x) by the session ID in their content."""
        if folder not in self._adjacent_agents:
            names = path_context(folder)
            groups: dict[str, list[DiscoveredFile]] = {}
            for entry in list_folder(folder or os.curdir, self.problems):
                if not (entry.name.startswith("agent-") and entry.name.endswith(JSONL_SUFFIX)):
                    continue
                place = classify_transcript((*names, entry.name))
                file = discover_entry(entry, place, root, self.problems)
                if file is not None and place.role == "agent":
                    session_id = self._read_session_id(file.path)
                    place = msgspec.structs.replace(place, session_id=session_id)
                    file = msgspec.structs.replace(file, place=place)
                    groups.setdefault(session_id, []).append(file)
            self._adjacent_agents[folder] = groups
        return self._adjacent_agents[folder]

    def _read_session_id(self, path: str) -> str:
        for limit in (_FIRST_READ_SIZE, HEAD_SIZE):
            head = peek(path, limit, self.problems)
            if head is None:
                return ""
            if session_id := session_id_in(head):
                return session_id
        return ""


def files_below(
    folder: str, problems: list[Problem], *, prefix: str, name_prefix: str = "", depth: int = 0
) -> Iterator[DiscoveredFile]:
    """Yield the regular files below a directory, each classified by its path.

    `prefix` is the path of the directory relative to the config directory. A missing directory is not a problem; links
    to directories are not followed.
    """
    if not os.path.isdir(folder):
        return
    for entry in list_folder(folder, problems):
        if not entry.name.startswith(name_prefix):
            continue
        path = f"{prefix}/{entry.name}"
        if is_folder(entry, links=False):
            if depth < MAX_DEPTH:
                yield from files_below(entry.path, problems, prefix=path, depth=depth + 1)
            continue
        file = discover_entry(entry, classify_path(path), folder, problems)
        if file is not None:
            yield file
