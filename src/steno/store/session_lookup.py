"""Lookup of sessions by path, ID, ID prefix, sub-agent ID, title or `last`.

file = find("7c1f") session = open_session("last", root="/home/ada/.claude")
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from steno.errors import Ambiguous, BadRequest, NotFound, Unreadable
from steno.format.paths import JSONL_SUFFIX, SHORT_ID_LENGTH, is_agent_id
from steno.store import environment
from steno.store.archive.file_access import archive_exists
from steno.store.discovery import (
    ArchivedFile,
    DiscoveredFile,
    Discovery,
    Problem,
    discover,
    discover_file,
    unreadable_problem,
)
from steno.store.environment import CONFIG_FILE, config_dir, steno_home
from steno.store.session_counts import count_turns
from steno.store.summary import SessionSummary, read_custom_title, summarize

if TYPE_CHECKING:
    from steno.format.records import Piece
    from steno.session.session import Session
    from steno.store.archive.journal import ArchiveSource
    from steno.store.file_source import PathSource


Roots: TypeAlias = str | Sequence[str] | None


def resolve_roots(root: Roots = None) -> tuple[str, ...]:
    """Return the directories to search: those given, or the config directory and `index.roots`.

    Raises BadRequest if the configuration file is invalid, or Unreadable if it cannot be read.
    """
    if root is None:
        client_folder = config_dir()
        return (client_folder, *_configured_roots(client_folder)) if _config_exists() else (client_folder,)
    return (root,) if isinstance(root, str) else tuple(root)


def _config_exists() -> bool:
    """Return whether a configuration file exists, without reading it."""
    with suppress(BadRequest):
        return os.path.lexists(os.path.join(steno_home(), CONFIG_FILE))
    return False


def _configured_roots(client_folder: str) -> list[str]:
    """Return the directories of `index.roots`, without duplicates."""
    from steno.store.config import read_config

    seen_paths = {os.path.realpath(client_folder)}
    folders: list[str] = []
    for root in read_config().roots:
        folder = os.path.abspath(os.path.expanduser(root))
        if (real := os.path.realpath(folder)) not in seen_paths:
            seen_paths.add(real)
            folders.append(folder)
    return folders


def sessions_newest_first(
    root: Roots = None, problems: list[Problem] | None = None, *, archived: bool = False
) -> list[DiscoveredFile]:
    """Return every session below the roots, most recently written first.

    `archived` adds sessions that exist only in the archive.
    """
    files: dict[str, DiscoveredFile] = {}
    folders = resolve_roots(root)
    for folder in folders:
        for file in discover(folder, problems):
            files.setdefault(file.path, file)
    archived_only = _archived_only(folders, files.values()) if archived else ()
    return sorted((*files.values(), *archived_only), key=_newest_first_key)


def _archived_only(folders: tuple[str, ...], existing: Iterable[DiscoveredFile]) -> "list[ArchivedFile]":
    if not archive_exists():
        return []
    from steno.store.archive.catalogue import archived_only_below

    return archived_only_below(folders, existing)


def _newest_first_key(file: DiscoveredFile) -> tuple[int, str]:
    return -file.mtime_ns, file.path


def summarize_files(
    files: Iterable[DiscoveredFile], now: float | None = None, problems: list[Problem] | None = None
) -> Iterator[tuple[DiscoveredFile, SessionSummary]]:
    """Yield each file with its summary; files that cannot be read are added to `problems`."""
    now = environment.now() if now is None else now
    for file in files:
        try:
            summary = summarize(file, now)
        except Unreadable as error:
            if problems is not None:
                problems.append(unreadable_problem(file.path, error))
        else:
            yield file, summary


SessionFilter: TypeAlias = Callable[[SessionSummary], bool]
"""Predicate that selects sessions by their summary."""
MIN_PREFIX_LENGTH: Final = 4
_MAX_CANDIDATES: Final = 6
_MAX_COMPARED_SESSIONS: Final = 300
"""Recent sessions whose IDs and titles are compared with a name that matches none."""
_MAX_COMPARED_NAME: Final = 60
_MAX_SIMILAR: Final = 2
_MIN_SIMILARITY: Final = 0.7
_AGENT_PREFIX: Final = "agent-"


def _with_foreign_titles(
    summaries: list[tuple[DiscoveredFile, SessionSummary]],
) -> list[tuple[DiscoveredFile, SessionSummary]]:
    """Apply titles stored in the files of other sessions."""
    titles = {leaf: title for _, summary in summaries for leaf, title in summary.foreign_titles}
    return [
        (file, summary)
        if summary.has_title or summary.last_uuid not in titles
        else (file, msgspec.structs.replace(summary, title=titles[summary.last_uuid]))
        for file, summary in summaries
    ]


class SessionFile(msgspec.Struct, frozen=True):
    """A session with its summary; `open` reads the whole session."""

    file: DiscoveredFile
    summary: SessionSummary

    @property
    def id(self) -> str:
        """The session ID."""
        return self.summary.id

    @property
    def path(self) -> str:
        """Path of the session file."""
        return self.file.path

    @property
    def title(self) -> str:
        """Title of the session."""
        return self.summary.title

    @property
    def turns(self) -> int:
        """Number of turns; scans the file."""
        return count_turns(self.file) or 0

    def open(self) -> "Session":
        """Read the whole session."""
        return open_file_session(self.file)


def sessions(root: Roots = None, *, hidden: bool = False) -> Iterator[SessionFile]:
    """Yield every session, newest first; `hidden` includes sessions that lists omit."""
    for file, summary in summarize_files(sessions_newest_first(root, archived=True)):
        if hidden or not summary.hidden:
            yield SessionFile(file, summary)


def read(path: str | os.PathLike[str]) -> "Iterator[Piece]":
    """Yield every record and gap of a file in order, covering the whole file.

    Raises:
        Unreadable: the file cannot be read.
    """
    from steno.store.archive.file_access import lazy_source
    from steno.store.file_source import PathSource

    path = os.fspath(path)
    archived = _archived_at(path)
    # Opened here, so that a wrong path raises in this call and not in the first `next`.
    return _iter_pieces(PathSource(path) if archived is None else lazy_source(archived))


def _iter_pieces(source: "PathSource | ArchiveSource") -> "Iterator[Piece]":
    from steno.format.lines import read_pieces
    from steno.store.file_source import PathSource

    if not isinstance(source, PathSource):
        yield from read_pieces(source)
        return
    with source.open() as file:
        yield from read_pieces(file)


def _archived_at(path: str) -> "ArchivedFile | None":
    """Return the archived file of a path that no longer exists."""
    if os.path.lexists(path) or not archive_exists():
        return None
    from steno.store.archive.catalogue import archived_at

    return archived_at(path)


def find(
    name: str,
    root: Roots = None,
    cwd: str | None = None,
    *,
    archived: bool = True,
    session_filter: SessionFilter | None = None,
) -> DiscoveredFile:
    """Return the session that a name matches.

    `archived=False` is for callers that need the file itself. With `session_filter`, only sessions that it accepts
    match, and the name is never a path.

    Raises:
        NotFound: no session matches, or with `archived=False` only an archived one.
        Ambiguous: several sessions match; the hint lists them.
        Unreadable: the name is a path to a file that is not a session.
    """
    file = _find_any(name, root, cwd) if session_filter is None else _find_filtered(name, root, session_filter)
    if isinstance(file, ArchivedFile) and not archived:
        from shlex import quote

        raise NotFound(
            f"{name!r} is only in the archive", hint=f"Run `steno archive --restore {quote(name)}` to restore it."
        )
    return file


def _find_any(name: str, root: Roots, cwd: str | None) -> DiscoveredFile:
    path = os.path.join(cwd, name) if cwd else name
    is_path = _is_path(name, path)
    if is_path and os.path.isdir(path):
        raise _folder_error(path)
    if is_path and (os.path.lexists(path) or name.endswith(JSONL_SUFFIX)):
        return _archived_at(path) or discover_file(path)
    file = _find_by_name(name, root, _accept_all)
    if file is not None:
        return file
    if is_path:
        # Titles may look like paths (`/context`), but no title matched; report the missing path.
        return discover_file(path)
    if os.path.isdir(path):
        raise _folder_error(path)
    raise _not_found_error(name, root)


def _find_filtered(name: str, root: Roots, session_filter: SessionFilter) -> DiscoveredFile:
    file = _find_by_name(name, root, session_filter)
    if file is None:
        raise _not_found_error(name, root, session_filter)
    return file


def _accept_all(_: SessionSummary) -> bool:
    return True


def _find_by_name(name: str, root: Roots, session_filter: SessionFilter) -> DiscoveredFile | None:
    folders = resolve_roots(root)
    files = sessions_newest_first(folders, archived=True)
    if name == "last":
        return _find_last(files, folders, session_filter)
    if not name.strip():
        return None
    match = _find_by_id(name, files, session_filter) or _find_by_agent(name, files, folders, session_filter)
    return match or _find_by_title(name, files, session_filter)


def _not_found_error(name: str, root: Roots, session_filter: SessionFilter = _accept_all) -> NotFound:
    similar = _similar_sessions(name, root, session_filter)
    if similar:
        hint = f"Did you mean {' or '.join(similar)}?"
    elif len(name) < MIN_PREFIX_LENGTH and name.isalnum():
        hint = f"An ID needs at least {MIN_PREFIX_LENGTH} characters. Run `steno ls` to list sessions."
    else:
        hint = "Run `steno ls` to list sessions."
    return NotFound(f"no session matches {name!r}", hint=hint)


def _similar_sessions(name: str, root: Roots, session_filter: SessionFilter) -> list[str]:
    """Return short IDs, with titles, of recent sessions with a similar ID or title."""
    from difflib import get_close_matches

    from steno.sanitize.terminal import one_line

    if not MIN_PREFIX_LENGTH <= len(name) <= _MAX_COMPARED_NAME:
        return []
    labels: dict[str, str] = {}
    for _, summary in summarize_files(sessions_newest_first(root)[:_MAX_COMPARED_SESSIONS]):
        if not session_filter(summary):
            continue
        label = f"{one_line(summary.id)[:SHORT_ID_LENGTH]} ({one_line(summary.title, _MAX_COMPARED_NAME)})"
        labels.setdefault(summary.id[: len(name)].lower(), label)
        labels.setdefault(summary.title[:_MAX_COMPARED_NAME].casefold(), label)
    names = get_close_matches(name.casefold(), labels, _MAX_SIMILAR, _MIN_SIMILARITY)
    return list(dict.fromkeys(labels[each] for each in names))


def _folder_error(path: str) -> Unreadable:
    from shlex import quote

    return Unreadable(
        f"{path} is a directory, not a session file", hint=f"Run `steno ls --root {quote(path)}` to list its sessions."
    )


def _is_path(name: str, path: str) -> bool:
    separators = (os.sep, os.altsep or os.sep)
    if name.endswith(JSONL_SUFFIX) or name.startswith((".", *separators)):
        return True
    # A title may contain a slash and a directory may be named like a session, so only existing files count.
    return os.path.lexists(path) and not os.path.isdir(path)


def _find_last(files: list[DiscoveredFile], folders: tuple[str, ...], session_filter: SessionFilter) -> DiscoveredFile:
    for file, summary in summarize_files(files):
        if not summary.hidden and session_filter(summary):
            return file
    searched = ", ".join(folders)
    raise NotFound(f"no sessions found in {searched}", hint="Run `steno demo` to write demo sessions.")


def _find_by_id(name: str, files: list[DiscoveredFile], session_filter: SessionFilter) -> DiscoveredFile | None:
    prefix = name.lower()
    exact = _filter_files((file for file in files if _file_id(file) == prefix), session_filter)
    if exact:
        return _single_match(name, exact)
    if len(name) < MIN_PREFIX_LENGTH:
        return None
    candidates = (file for file in files if _file_id(file).startswith(prefix))
    return _single_match(name, _filter_files(candidates, session_filter))


def _filter_files(files: Iterable[DiscoveredFile], session_filter: SessionFilter) -> list[DiscoveredFile]:
    if session_filter is _accept_all:
        return list(files)
    return [file for file, summary in summarize_files(files) if session_filter(summary)]


def _file_id(file: DiscoveredFile) -> str:
    return os.path.basename(file.path).removesuffix(JSONL_SUFFIX).lower()


def _find_by_agent(
    name: str, files: list[DiscoveredFile], folders: tuple[str, ...], session_filter: SessionFilter
) -> DiscoveredFile | None:
    prefix = name.removeprefix(_AGENT_PREFIX).lower()
    if len(prefix) < MIN_PREFIX_LENGTH or not (is_agent_id(prefix) or _is_hexadecimal(prefix)):
        return None
    # Keyed by path, because directories may be nested in each other.
    agents = {
        file.path: file
        for file in _agent_files(folders, files)
        if file.place.role == "agent" and file.place.agent_id.lower().startswith(prefix)
    }
    accepted = _filter_files(agents.values(), session_filter)
    exact = [file for file in accepted if file.place.agent_id.lower() == prefix]
    return _single_match(name, exact or accepted)


def _agent_files(folders: tuple[str, ...], files: list[DiscoveredFile]) -> Iterator[DiscoveredFile]:
    for folder in folders:
        yield from Discovery(folder).transcripts()
    discovery = Discovery("")
    for file in files:
        if isinstance(file, ArchivedFile):
            yield from discovery.agents(file)


def _is_hexadecimal(text: str) -> bool:
    return all(character in "0123456789abcdef" for character in text)


def _find_by_title(name: str, files: list[DiscoveredFile], session_filter: SessionFilter) -> DiscoveredFile | None:
    summaries = _with_foreign_titles(list(summarize_files(files)))
    id_matches = _find_by_recorded_id(name.lower(), summaries, session_filter)
    if id_matches:
        return _single_match(name, id_matches)
    titled = [(file, summary) for file, summary in summaries if summary.title and session_filter(summary)]
    exact = [file for file, summary in titled if summary.title == name]
    if exact:
        return _single_match(name, exact)
    folded_name = name.casefold()
    return _single_match(name, [file for file, summary in titled if folded_name in summary.title.casefold()])


def _find_by_recorded_id(
    prefix: str, summaries: Iterable[tuple[DiscoveredFile, SessionSummary]], session_filter: SessionFilter
) -> list[DiscoveredFile]:
    """Return the sessions with a matching ID in their records that differs from their file name."""
    if len(prefix) < MIN_PREFIX_LENGTH:
        return []
    matches = [
        candidate
        for candidate in summaries
        if candidate[1].id.lower().startswith(prefix) and session_filter(candidate[1])
    ]
    exact = [file for file, summary in matches if summary.id.lower() == prefix]
    return exact or [file for file, _ in matches]


def _single_match(name: str, matches: list[DiscoveredFile]) -> DiscoveredFile | None:
    if len(matches) <= 1:
        return matches[0] if matches else None
    has_equal_names = len({_file_id(file) for file in matches}) < len(matches)
    names = tuple(file.path if has_equal_names else _file_stem(file) for file in matches)
    omitted = f" and {len(names) - _MAX_CANDIDATES} more" if len(names) > _MAX_CANDIDATES else ""
    raise Ambiguous(
        f"{name!r} matches {len(matches)} sessions",
        candidates=names,
        paths=tuple(file.path for file in matches),
        hint=f"Use one of: {', '.join(names[:_MAX_CANDIDATES])}{omitted}",
    )


def _file_stem(file: DiscoveredFile) -> str:
    return os.path.basename(file.path).removesuffix(JSONL_SUFFIX)


def open_session(name: str | os.PathLike[str], root: Roots = None) -> "Session":
    """Return the session that a path or name matches, with its sub-agents.

    A file without records opens as an empty session.

    Raises:
        NotFound: no session matches the name.
        Ambiguous: several sessions match the name.
        Unreadable: the session cannot be read.
    """
    return open_file_session(find(os.fspath(name), root))


def open_file_session(file: DiscoveredFile, previous: "Session | None" = None) -> "Session":
    """Return the session in a discovered file; sub-agents are loaded on first access.

    `previous` is the same session, opened earlier: only appended bytes are read. Do not use it afterwards.

    Raises:
        Unreadable: the file cannot be read.
    """
    from steno.session.session import Session
    from steno.store.archive.file_access import lazy_source
    from steno.store.watch.incremental import agent_files, reload_transcript

    source = lazy_source(file)
    if previous is not None:
        transcript = reload_transcript(previous.transcript, source)
        agents = agent_files(file, previous.agent_files)
        return previous.grown(transcript, agents, custom_title=read_custom_title(file))
    return Session(
        reload_transcript(None, source),
        name=_file_stem(file),
        agents=agent_files(file),
        custom_title=read_custom_title(file),
        summaries=foreign_titles(file),
        folder=os.path.basename(os.path.dirname(file.path)),
    )


def foreign_titles(file: DiscoveredFile, version: str | None = None) -> list[tuple[str, str]]:
    """Return the titles that old versions of Claude Code wrote into other sessions of the project.

    `version` is the version of Claude Code that wrote this session, if already known.
    """
    if version is None:
        version = summarize(file, 0.0).version
    if not version.startswith(("0.", "1.", "2.0.")):
        return []
    siblings = discover(os.path.dirname(file.path) or os.curdir)
    return [pair for _, summary in summarize_files(siblings) for pair in summary.foreign_titles]
