"""Sessions by name: a path, an id or the beginning of one, a sub-agent's id, a title, or `last`.

found = find("7c1f")
session = open_session("last", root="/home/ada/.claude")
"""

import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Final, TypeAlias

import msgspec

from steno.errors import Ambiguous, NotFound, Unreadable
from steno.format.paths import is_agent_id
from steno.store.archive.opened import Archived, has_archive
from steno.store.count import count_turns
from steno.store.discover import Discovery, Found, discover, found_at
from steno.store.glance import Glance, glance
from steno.store.listed import Roots, newest_first, roots_of, seen
from steno.store.titles import given_title

if TYPE_CHECKING:
    from steno.format.records import Piece
    from steno.session.session import Session
    from steno.store.archive.source import ArchiveSource
    from steno.store.read import PathSource

__all__ = [
    "SessionFile",
    "find",
    "lent_titles",
    "newest_first",
    "open_found",
    "open_session",
    "read",
    "roots_of",
    "seen",
    "sessions",
]

Among: TypeAlias = Callable[[Glance], bool]
"""Says of a session whether it counts."""
SHORTEST: Final = 4
_LISTED: Final = 6
_SUFFIX: Final = ".jsonl"
_AGENT: Final = "agent-"


def _with_lent_titles(looks: list[tuple[Found, Glance]]) -> list[tuple[Found, Glance]]:
    """Return the glances with titles that stand in the files of other sessions."""
    lent = {leaf: title for _, look in looks for leaf, title in look.lent}
    return [
        (found, look)
        if look.named or look.last_uuid not in lent
        else (found, msgspec.structs.replace(look, title=lent[look.last_uuid]))
        for found, look in looks
    ]


class SessionFile(msgspec.Struct, frozen=True):
    """A session that was found, as a listing shows it; `open` reads all of it."""

    found: Found
    look: Glance

    @property
    def id(self) -> str:
        """The session's id."""
        return self.look.id

    @property
    def path(self) -> str:
        """Where it lies."""
        return self.found.path

    @property
    def title(self) -> str:
        """What it is called."""
        return self.look.title

    @property
    def turns(self) -> int:
        """How many turns it has; the file is scanned for it."""
        return count_turns(self.found) or 0

    def open(self) -> "Session":
        """Read it."""
        return open_found(self.found)


def sessions(root: Roots = None, *, hidden: bool = False) -> Iterator[SessionFile]:
    """Yield every session, newest first; `hidden` adds those that a listing leaves out."""
    for found, look in seen(newest_first(root, archived=True)):
        if hidden or not look.hidden:
            yield SessionFile(found, look)


def read(path: str | os.PathLike[str]) -> "Iterator[Piece]":
    """Yield every record and gap of a file, in order; they tile it.

    Raises:
        Unreadable: it cannot be read.
    """
    from steno.store.archive.opened import source_of
    from steno.store.read import PathSource

    path = os.fspath(path)
    gone = _gone_at(path)
    # Looked at now, so that a wrong path is told to the caller and not to the first `next`.
    return _pieces(PathSource(path) if gone is None else source_of(gone))


def _pieces(source: "PathSource | ArchiveSource") -> "Iterator[Piece]":
    from steno.format.lines import read_pieces
    from steno.store.read import PathSource

    if not isinstance(source, PathSource):
        yield from read_pieces(source)
        return
    with source.opened() as file:
        yield from read_pieces(file)


def _gone_at(path: str) -> "Archived | None":
    """Return what was kept from a path where nothing is any more."""
    if os.path.lexists(path) or not has_archive():
        return None
    from steno.store.archive.gone import gone_at

    return gone_at(path)


def find(
    name: str,
    root: Roots = None,
    cwd: str | None = None,
    *,
    archived: bool = True,
    among: Among | None = None,
) -> Found:
    """Return the session that goes by a name.

    `archived=False` is for those who need the file itself. With `among`, only the sessions that it
    takes count, and a name is never a path.

    Raises:
        NotFound: nothing does, or only something in the archive that was not wanted.
        Ambiguous: several do; the hint lists them.
        Unreadable: it is a path to something that is no session file.
    """
    found = _find(name, root, cwd) if among is None else _find_among(name, root, among)
    if isinstance(found, Archived) and not archived:
        from shlex import quote

        raise NotFound(
            f"{name!r} is only in the archive",
            hint=f"`steno archive --restore {quote(name)}` puts it back on the disk",
        )
    return found


def _find(name: str, root: Roots, cwd: str | None) -> Found:
    path = os.path.join(cwd, name) if cwd else name
    looks_like_a_path = _is_path(name, path)
    if looks_like_a_path and os.path.isdir(path):
        raise _folder(path)
    if looks_like_a_path and (os.path.lexists(path) or name.endswith(_SUFFIX)):
        return _gone_at(path) or found_at(path)
    found = _by_name(name, root, _any)
    if found is not None:
        return found
    if looks_like_a_path:
        # A command such as `/context` may be a title; this is neither a title nor a path.
        return found_at(path)
    if os.path.isdir(path):
        raise _folder(path)
    raise _unknown(name)


def _find_among(name: str, root: Roots, among: Among) -> Found:
    found = _by_name(name, root, among)
    if found is None:
        raise _unknown(name)
    return found


def _any(_: Glance) -> bool:
    return True


def _by_name(name: str, root: Roots, among: Among) -> Found | None:
    folders = roots_of(root)
    files = newest_first(folders, archived=True)
    if name == "last":
        return _last(files, folders, among)
    if not name.strip():
        return None
    found = _by_id(name, files, among) or _by_agent(name, files, folders, among)
    return found or _by_title(name, files, among)


def _unknown(name: str) -> NotFound:
    short = len(name) < SHORTEST and name.isalnum()
    hint = f"an id needs at least {SHORTEST} letters" if short else "`steno ls` lists the sessions"
    return NotFound(f"no session goes by {name!r}", hint=hint)


def _folder(path: str) -> Unreadable:
    from shlex import quote

    return Unreadable(
        f"{path} is a folder, not a session file",
        hint=f"`steno ls --root {quote(path)}` lists what is in it",
    )


def _is_path(name: str, path: str) -> bool:
    separators = (os.sep, os.altsep or os.sep)
    if name.endswith(_SUFFIX) or name.startswith((".", *separators)):
        return True
    # A title may hold a slash, a folder may be called like a session: only what is there counts.
    return os.path.lexists(path) and not os.path.isdir(path)


def _last(files: list[Found], folders: tuple[str, ...], among: Among) -> Found:
    for found, look in seen(files):
        if not look.hidden and among(look):
            return found
    where = ", ".join(folders)
    raise NotFound(f"there is no session in {where}", hint="`steno demo` makes some to look at")


def _by_id(name: str, files: list[Found], among: Among) -> Found | None:
    wanted = name.lower()
    exact = _taken((found for found in files if _id(found) == wanted), among)
    if exact:
        return _only(name, exact)
    if len(name) < SHORTEST:
        return None
    begun = (found for found in files if _id(found).startswith(wanted))
    return _only(name, _taken(begun, among))


def _taken(files: Iterable[Found], among: Among) -> list[Found]:
    if among is _any:
        return list(files)
    return [found for found, look in seen(files) if among(look)]


def _id(found: Found) -> str:
    return os.path.basename(found.path).removesuffix(_SUFFIX).lower()


def _by_agent(
    name: str, files: list[Found], folders: tuple[str, ...], among: Among
) -> Found | None:
    wanted = name.removeprefix(_AGENT).lower()
    if len(wanted) < SHORTEST or not (is_agent_id(wanted) or _hexadecimal(wanted)):
        return None
    # By path: folders may lie inside each other.
    agents = {
        found.path: found
        for found in _agents(folders, files)
        if found.place.role == "agent" and found.place.agent_id.lower().startswith(wanted)
    }
    taken = _taken(agents.values(), among)
    exact = [found for found in taken if found.place.agent_id.lower() == wanted]
    return _only(name, exact or taken)


def _agents(folders: tuple[str, ...], files: list[Found]) -> Iterator[Found]:
    for folder in folders:
        yield from Discovery(folder).transcripts()
    discovery = Discovery("")
    for found in files:
        if isinstance(found, Archived):
            yield from discovery.agents(found)


def _hexadecimal(text: str) -> bool:
    return all(letter in "0123456789abcdef" for letter in text)


def _by_title(name: str, files: list[Found], among: Among) -> Found | None:
    looks = _with_lent_titles(list(seen(files)))
    recorded = _by_recorded_id(name.lower(), looks, among)
    if recorded:
        return _only(name, recorded)
    titled = [(found, look) for found, look in looks if look.title and among(look)]
    exact = [found for found, look in titled if look.title == name]
    if exact:
        return _only(name, exact)
    wanted = name.casefold()
    return _only(name, [found for found, look in titled if wanted in look.title.casefold()])


def _by_recorded_id(
    wanted: str, looks: Iterable[tuple[Found, Glance]], among: Among
) -> list[Found]:
    """Return the sessions whose records name an id that their file is not called by."""
    if len(wanted) < SHORTEST:
        return []
    fitting = [each for each in looks if each[1].id.lower().startswith(wanted) and among(each[1])]
    exact = [found for found, look in fitting if look.id.lower() == wanted]
    return exact or [found for found, _ in fitting]


def _only(name: str, found: list[Found]) -> Found | None:
    if len(found) <= 1:
        return found[0] if found else None
    same = len({_id(each) for each in found}) < len(found)
    names = tuple(each.path if same else _named(each) for each in found)
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    raise Ambiguous(
        f"{len(found)} sessions go by {name!r}",
        candidates=names,
        hint=f"one of: {', '.join(names[:_LISTED])}{more}",
    )


def _named(found: Found) -> str:
    return os.path.basename(found.path).removesuffix(_SUFFIX)


def open_session(name: str | os.PathLike[str], root: Roots = None) -> "Session":
    """Return the session at a path, or that goes by a name, with its sub-agents.

    A file without a single record opens as a session without records.

    Raises:
        NotFound: nothing goes by the name.
        Ambiguous: several sessions do.
        Unreadable: it cannot be read.
    """
    return open_found(find(os.fspath(name), root))


def open_found(found: Found, before: "Session | None" = None) -> "Session":
    """Return the session in a file that was found; sub-agents are read when they are asked for.

    `before` is the same session when it was opened earlier: of files that were only added to, what
    is new is read. It is not to be asked any more.

    Raises:
        Unreadable: it cannot be read.
    """
    from steno.session.session import Session
    from steno.store.agents import agent_files
    from steno.store.archive.opened import source_of
    from steno.store.grown import read_on

    source = source_of(found)
    if before is not None:
        transcript = read_on(before.transcript, source)
        agents = agent_files(found, before.agent_files)
        return before.grown(transcript, agents, custom_title=given_title(found))
    return Session(
        read_on(None, source),
        name=_named(found),
        agents=agent_files(found),
        custom_title=given_title(found),
        summaries=lent_titles(found),
        folder=os.path.basename(os.path.dirname(found.path)),
    )


def lent_titles(found: Found, version: str | None = None) -> list[tuple[str, str]]:
    """Return the titles that old clients wrote into other sessions of the project.

    `version` is that of the client that wrote this one, where it is known already.
    """
    if version is None:
        version = glance(found, 0.0).version
    if not version.startswith(("0.", "1.", "2.0.")):
        return []
    beside = discover(os.path.dirname(found.path) or os.curdir)
    return [pair for _, look in seen(beside) for pair in look.lent]
