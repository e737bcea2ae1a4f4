"""Finds sessions, the sub-agents that worked for them and the small files around them.

    for session in discover("/home/ada/.claude"): …

    discovery = Discovery(folder)
    for session in discovery.sessions():
        discovery.agents(session), discovery.sidecars(session)
    discovery.problems

A folder may be a config folder, its `projects`, one project, or any folder with transcripts in it;
a single file will do too. Nothing is ever changed on disk, and session files whose name says what
they are are not opened.
"""

import os
from collections.abc import Iterator
from typing import Final

import msgspec

from steno.errors import Unreadable
from steno.format.paths import classify, transcript_place
from steno.store.archive.opened import Archived
from steno.store.found import (
    HEAD,
    Found,
    Problem,
    found_entry,
    is_folder,
    listed,
    peek,
    session_id_in,
)
from steno.store.walk import MAX_DEPTH, Walk, folder_names

__all__ = [
    "Discovery",
    "Found",
    "Problem",
    "agents_of",
    "config_of",
    "discover",
    "files_below",
    "found_at",
    "sidecars_of",
]

_FIRST_LOOK: Final = 4096
_SUFFIX: Final = ".jsonl"


def discover(root: str, problems: list[Problem] | None = None) -> Iterator[Found]:
    """Yield every session below `root`, by folder and name; what was skipped goes to `problems`."""
    return Walk(root, [] if problems is None else problems, agents=False).run()


def found_at(path: str) -> Found:
    """Return the transcript at exactly that path.

    Raises:
        Unreadable: it is not there, or not a regular file.
    """
    problems: list[Problem] = []
    for found in Walk(path, problems, agents=True).run():
        if found.path == path:
            return found
        break
    said = problems[0].message if problems else "not a file"
    raise Unreadable(f"{path}: {said}")


def agents_of(session: Found | str, problems: list[Problem] | None = None) -> list[Found]:
    """Return the transcripts of a session's sub-agents, from its own folder and from beside it."""
    discovery = Discovery("", problems)
    return discovery.agents(found_at(session) if isinstance(session, str) else session)


def sidecars_of(session: Found | str, problems: list[Problem] | None = None) -> list[Found]:
    """Return the small files of a session: titles, tool results, backups, to-dos, tasks, logs."""
    discovery = Discovery("", problems)
    return discovery.sidecars(found_at(session) if isinstance(session, str) else session)


def config_of(path: str) -> str:
    """Return the config folder a transcript lies in, or nothing if it lies elsewhere."""
    names = os.path.abspath(path).split(os.sep)
    for at in range(len(names) - 3, -1, -1):
        if names[at] in {"projects", "conversations"}:
            return os.sep.join(names[:at]) or os.sep
    return ""


class Discovery:
    """One look at one root. `problems` fills up as the answers are drawn."""

    def __init__(self, root: str, problems: list[Problem] | None = None) -> None:
        self.root = root
        self.problems: list[Problem] = [] if problems is None else problems
        self._beside: dict[str, dict[str, list[Found]]] = {}
        self._named: dict[str, dict[str, list[Found]]] = {}

    def sessions(self) -> Iterator[Found]:
        """Yield every session below the root."""
        return Walk(self.root, self.problems, agents=False).run()

    def transcripts(self) -> Iterator[Found]:
        """Yield every session and every sub-agent below the root, orphans too."""
        return Walk(self.root, self.problems, agents=True).run()

    def agents(self, session: Found) -> list[Found]:
        """Return the transcripts of a session's sub-agents, in every layout."""
        if isinstance(session, Archived):
            from steno.store.archive.gone import agents_in

            return [*agents_in(session)]
        own = [
            found for found in self._side_files(session, "subagents") if found.place.role == "agent"
        ]
        beside = self._agents_beside(os.path.dirname(session.path), session.root)
        session_id = session.place.session_id
        if beside and not session_id:
            session_id = self._session_id(session.path)
        return [*beside.get(session_id, ()), *own]

    def with_agents(self, session: Found) -> Found:
        """Return the session with its sub-agents filled in."""
        return msgspec.structs.replace(session, agents=tuple(self.agents(session)))

    def sidecars(self, session: Found) -> list[Found]:
        """Return the small files that belong to a session, wherever in the config folder."""
        found = [f for f in self._side_files(session) if f.place.role != "agent"]
        config, session_id = config_of(session.path), session.place.session_id
        if not config or not session_id:
            return found
        for folder in ("file-history", "tasks", "session-env"):
            inside = os.path.join(config, folder, session_id)
            found += files_below(inside, self.problems, prefix=f"{folder}/{session_id}")
        for folder in ("todos", "debug"):
            found += self._by_session(os.path.join(config, folder), folder).get(session_id, ())
        return found

    def _by_session(self, folder: str, prefix: str) -> dict[str, list[Found]]:
        """Sort the files of a folder by the session that each is named after; read once."""
        if folder not in self._named:
            sorted_out: dict[str, list[Found]] = {}
            for found in files_below(folder, self.problems, prefix=prefix):
                sorted_out.setdefault(found.place.session_id, []).append(found)
            self._named[folder] = sorted_out
        return self._named[folder]

    def _side_files(self, session: Found, folder: str = "") -> Iterator[Found]:
        base = session.path.removesuffix(_SUFFIX)
        if base == session.path:
            return iter(())
        # Classified as if below `projects/`, wherever the session lies.
        prefix = "/".join(("projects", session.place.slug or "-", os.path.basename(base)))
        if not folder:
            return files_below(base, self.problems, prefix=prefix)
        return files_below(os.path.join(base, folder), self.problems, prefix=f"{prefix}/{folder}")

    def _agents_beside(self, folder: str, root: str) -> dict[str, list[Found]]:
        """Sort the agent files of one folder (2.0.x) by the session that each says it is of."""
        if folder not in self._beside:
            names = folder_names(folder)
            sorted_out: dict[str, list[Found]] = {}
            for entry in listed(folder or os.curdir, self.problems):
                if not (entry.name.startswith("agent-") and entry.name.endswith(_SUFFIX)):
                    continue
                place = transcript_place((*names, entry.name))
                found = found_entry(entry, place, root, self.problems)
                if found is not None and place.role == "agent":
                    session_id = self._session_id(found.path)
                    place = msgspec.structs.replace(place, session_id=session_id)
                    found = msgspec.structs.replace(found, place=place)
                    sorted_out.setdefault(session_id, []).append(found)
            self._beside[folder] = sorted_out
        return self._beside[folder]

    def _session_id(self, path: str) -> str:
        for limit in (_FIRST_LOOK, HEAD):
            head = peek(path, limit, self.problems)
            if head is None:
                return ""
            if said := session_id_in(head):
                return said
        return ""


def files_below(
    folder: str, problems: list[Problem], *, prefix: str, starting: str = "", depth: int = 0
) -> Iterator[Found]:
    """Yield the regular files below a folder, each with its place.

    `prefix` is the folder's path relative to the config folder. A folder that is not there is no
    problem; links to folders are not followed.
    """
    if not os.path.isdir(folder):
        return
    for entry in listed(folder, problems):
        if not entry.name.startswith(starting):
            continue
        path = f"{prefix}/{entry.name}"
        if is_folder(entry, links=False):
            if depth < MAX_DEPTH:
                yield from files_below(entry.path, problems, prefix=path, depth=depth + 1)
            continue
        found = found_entry(entry, classify(path), folder, problems)
        if found is not None:
            yield found
