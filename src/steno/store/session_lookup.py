"""Looks up sessions by path, id, id prefix, sub-agent id, title or `last`.

found = find("7c1f")
session = open_session("last", root="/home/ada/.claude")
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from steno.errors import Ambiguous, BadRequest, NotFound, Unreadable
from steno.format.paths import JSONL_SUFFIX, is_agent_id
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
    """Return the folders to look in: those named, else the client's and those of the config file.

    Raises BadRequest if the config file is broken, or Unreadable if it cannot be read.
    """
    if root is None:
        client_folder = config_dir()
        return (client_folder, *_configured_roots(client_folder)) if _config_exists() else (client_folder,)
    return (root,) if isinstance(root, str) else tuple(root)


def _config_exists() -> bool:
    """Say whether there is a config file: all that it costs to have none."""
    with suppress(BadRequest):
        return os.path.lexists(os.path.join(steno_home(), CONFIG_FILE))
    return False


def _configured_roots(client_folder: str) -> list[str]:
    """Return the folders of `index.roots`; one by two names is one."""
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
    """Return every session below the roots, by the time it was last written.

    `archived` adds those that are gone from there and only in the archive.
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
    """Yield each file with a glance at it; one that cannot be read goes to `problems`."""
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
"""Says of a session whether it counts."""
MIN_PREFIX_LENGTH: Final = 4
_MAX_CANDIDATES: Final = 6
_AGENT_PREFIX: Final = "agent-"


def _with_foreign_titles(
    summaries: list[tuple[DiscoveredFile, SessionSummary]],
) -> list[tuple[DiscoveredFile, SessionSummary]]:
    """Return the glances with titles that stand in the files of other sessions."""
    titles = {leaf: title for _, summary in summaries for leaf, title in summary.foreign_titles}
    return [
        (file, look)
        if look.has_title or look.last_uuid not in titles
        else (file, msgspec.structs.replace(look, title=titles[look.last_uuid]))
        for file, look in summaries
    ]


class SessionFile(msgspec.Struct, frozen=True):
    """A session that was found, as a listing shows it; `open` reads all of it."""

    file: DiscoveredFile
    summary: SessionSummary

    @property
    def id(self) -> str:
        """The session's id."""
        return self.summary.id

    @property
    def path(self) -> str:
        """Where it lies."""
        return self.file.path

    @property
    def title(self) -> str:
        """What it is called."""
        return self.summary.title

    @property
    def turns(self) -> int:
        """How many turns it has; the file is scanned for it."""
        return count_turns(self.file) or 0

    def open(self) -> "Session":
        """Read it."""
        return open_file_session(self.file)


def sessions(root: Roots = None, *, hidden: bool = False) -> Iterator[SessionFile]:
    """Yield every session, newest first; `hidden` adds those that a listing leaves out."""
    for file, summary in summarize_files(sessions_newest_first(root, archived=True)):
        if hidden or not summary.hidden:
            yield SessionFile(file, summary)


def read(path: str | os.PathLike[str]) -> "Iterator[Piece]":
    """Yield every record and gap of a file, in order; they tile it.

    Raises:
        Unreadable: it cannot be read.
    """
    from steno.store.archive.file_access import lazy_source
    from steno.store.file_source import PathSource

    path = os.fspath(path)
    archived = _archived_at(path)
    # Looked at now, so that a wrong path is told to the caller and not to the first `next`.
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
    """Return what was kept from a path where nothing is any more."""
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

    `archived=False` is for callers that need the file itself. With `session_filter`, only the sessions that it accepts
    count, and a name is never a path.

    Raises:
        NotFound: nothing does, or only something in the archive that was not wanted.
        Ambiguous: several do; the hint lists them.
        Unreadable: it is a path to something that is no session file.
    """
    file = _find_any(name, root, cwd) if session_filter is None else _find_filtered(name, root, session_filter)
    if isinstance(file, ArchivedFile) and not archived:
        from shlex import quote

        raise NotFound(
            f"{name!r} is only in the archive", hint=f"`steno archive --restore {quote(name)}` puts it back on the disk"
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
        # A command such as `/context` may be a title; this is neither a title nor a path.
        return discover_file(path)
    if os.path.isdir(path):
        raise _folder_error(path)
    raise _not_found_error(name)


def _find_filtered(name: str, root: Roots, session_filter: SessionFilter) -> DiscoveredFile:
    file = _find_by_name(name, root, session_filter)
    if file is None:
        raise _not_found_error(name)
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


def _not_found_error(name: str) -> NotFound:
    is_too_short = len(name) < MIN_PREFIX_LENGTH and name.isalnum()
    hint = f"an id needs at least {MIN_PREFIX_LENGTH} letters" if is_too_short else "`steno ls` lists the sessions"
    return NotFound(f"no session goes by {name!r}", hint=hint)


def _folder_error(path: str) -> Unreadable:
    from shlex import quote

    return Unreadable(
        f"{path} is a folder, not a session file", hint=f"`steno ls --root {quote(path)}` lists what is in it"
    )


def _is_path(name: str, path: str) -> bool:
    separators = (os.sep, os.altsep or os.sep)
    if name.endswith(JSONL_SUFFIX) or name.startswith((".", *separators)):
        return True
    # A title may hold a slash, a folder may be called like a session: only what is there counts.
    return os.path.lexists(path) and not os.path.isdir(path)


def _find_last(files: list[DiscoveredFile], folders: tuple[str, ...], session_filter: SessionFilter) -> DiscoveredFile:
    for file, summary in summarize_files(files):
        if not summary.hidden and session_filter(summary):
            return file
    searched = ", ".join(folders)
    raise NotFound(f"there is no session in {searched}", hint="`steno demo` makes some to look at")


def _find_by_id(name: str, files: list[DiscoveredFile], session_filter: SessionFilter) -> DiscoveredFile | None:
    prefix = name.lower()
    exact = _filter_files((file for file in files if _file_id(file) == prefix), session_filter)
    if exact:
        return _single_match(name, exact)
    if len(name) < MIN_PREFIX_LENGTH:
        return None
    candidates = (found for found in files if _file_id(found).startswith(prefix))
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
    # By path: folders may lie inside each other.
    agents = {
        file.path: file
        for file in _agent_files(folders, files)
        if file.place.role == "agent" and file.place.agent_id.lower().startswith(prefix)
    }
    accepted = _filter_files(agents.values(), session_filter)
    exact = [found for found in accepted if found.place.agent_id.lower() == prefix]
    return _single_match(name, exact or accepted)


def _agent_files(folders: tuple[str, ...], files: list[DiscoveredFile]) -> Iterator[DiscoveredFile]:
    for folder in folders:
        yield from Discovery(folder).transcripts()
    discovery = Discovery("")
    for file in files:
        if isinstance(file, ArchivedFile):
            yield from discovery.agents(file)


def _is_hexadecimal(text: str) -> bool:
    return all(letter in "0123456789abcdef" for letter in text)


def _find_by_title(name: str, files: list[DiscoveredFile], session_filter: SessionFilter) -> DiscoveredFile | None:
    summaries = _with_foreign_titles(list(summarize_files(files)))
    id_matches = _find_by_recorded_id(name.lower(), summaries, session_filter)
    if id_matches:
        return _single_match(name, id_matches)
    titled = [(file, summary) for file, summary in summaries if summary.title and session_filter(summary)]
    exact = [found for found, look in titled if look.title == name]
    if exact:
        return _single_match(name, exact)
    folded_name = name.casefold()
    return _single_match(name, [found for found, look in titled if folded_name in look.title.casefold()])


def _find_by_recorded_id(
    prefix: str, summaries: Iterable[tuple[DiscoveredFile, SessionSummary]], session_filter: SessionFilter
) -> list[DiscoveredFile]:
    """Return the sessions whose records name an id that their file is not called by."""
    if len(prefix) < MIN_PREFIX_LENGTH:
        return []
    matches = [
        candidate
        for candidate in summaries
        if candidate[1].id.lower().startswith(prefix) and session_filter(candidate[1])
    ]
    exact = [file for file, summary in matches if summary.id.lower() == prefix]
    return exact or [found for found, _ in matches]


def _single_match(name: str, matches: list[DiscoveredFile]) -> DiscoveredFile | None:
    if len(matches) <= 1:
        return matches[0] if matches else None
    has_equal_names = len({_file_id(file) for file in matches}) < len(matches)
    names = tuple(each.path if has_equal_names else _file_stem(each) for each in matches)
    omitted = f" and {len(names) - _MAX_CANDIDATES} more" if len(names) > _MAX_CANDIDATES else ""
    raise Ambiguous(
        f"{len(matches)} sessions go by {name!r}",
        candidates=names,
        hint=f"one of: {', '.join(names[:_MAX_CANDIDATES])}{omitted}",
    )


def _file_stem(file: DiscoveredFile) -> str:
    return os.path.basename(file.path).removesuffix(JSONL_SUFFIX)


def open_session(name: str | os.PathLike[str], root: Roots = None) -> "Session":
    """Return the session at a path, or that goes by a name, with its sub-agents.

    A file without a single record opens as a session without records.

    Raises:
        NotFound: nothing goes by the name.
        Ambiguous: several sessions do.
        Unreadable: it cannot be read.
    """
    return open_file_session(find(os.fspath(name), root))


def open_file_session(file: DiscoveredFile, previous: "Session | None" = None) -> "Session":
    """Return the session in a file that was found; sub-agents are read when they are asked for.

    `previous` is the same session when it was opened earlier: of files that were only added to, what is new is read. It
    is not to be asked any more.

    Raises:
        Unreadable: it cannot be read.
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
    """Return the titles that old clients wrote into other sessions of the project.

    `version` is that of the client that wrote this one, where it is known already.
    """
    if version is None:
        version = summarize(file, 0.0).version
    if not version.startswith(("0.", "1.", "2.0.")):
        return []
    siblings = discover(os.path.dirname(file.path) or os.curdir)
    return [pair for _, summary in summarize_files(siblings) for pair in summary.foreign_titles]
