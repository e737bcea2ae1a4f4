"""Finds sessions, their sub-agents and their sidecar files.

    for session in discover("/home/ada/.claude"): …

    discovery = Discovery(folder)
    for session in discovery.sessions():
        discovery.agents(session), discovery.sidecars(session)
    discovery.problems

A root may be a config folder, its `projects`, one project, any folder with transcripts, or a single file. Nothing is
changed on disk, and a session file whose name is conclusive is not opened.
"""

import os
from collections.abc import Iterator
from typing import Final

import msgspec

from steno.errors import Unreadable
from steno.format.paths import JSONL_SUFFIX, classify_path, classify_transcript
from steno.store.archive.file_access import ArchivedFile
from steno.store.discovered import (
    HEAD_SIZE,
    MAX_DEPTH,
    DiscoveredFile,
    Problem,
    TranscriptWalk,
    discover_entry,
    is_folder,
    list_folder,
    path_context,
    peek,
    session_id_in,
)

_FIRST_READ_SIZE: Final = 4096


def discover(root: str, problems: list[Problem] | None = None) -> Iterator[DiscoveredFile]:
    """Yield every session below `root`, by folder and name; what was skipped goes to `problems`."""
    return TranscriptWalk(root, [] if problems is None else problems, agents=False).run()


def discover_file(path: str) -> DiscoveredFile:
    """Return the transcript at exactly that path. Raises Unreadable if it is not there, or not a regular file."""
    problems: list[Problem] = []
    for file in TranscriptWalk(path, problems, agents=True).run():
        if file.path == path:
            return file
        break
    reason = problems[0].message if problems else "not a file"
    raise Unreadable(f"{path}: {reason}")


def discover_agents(session: DiscoveredFile | str, problems: list[Problem] | None = None) -> list[DiscoveredFile]:
    """Return the transcripts of a session's sub-agents, from its own folder and from beside it."""
    discovery = Discovery("", problems)
    return discovery.agents(discover_file(session) if isinstance(session, str) else session)


def config_folder_of(path: str) -> str:
    """Return the config folder a transcript lies in, or nothing if it lies elsewhere."""
    names = os.path.abspath(path).split(os.sep)
    for index in range(len(names) - 3, -1, -1):
        if names[index] in {"projects", "conversations"}:
            return os.sep.join(names[:index]) or os.sep
    return ""


class Discovery:
    """One look at one root. `problems` fills up as the answers are drawn."""

    def __init__(self, root: str, problems: list[Problem] | None = None) -> None:
        self.root = root
        self.problems: list[Problem] = [] if problems is None else problems
        self._adjacent_agents: dict[str, dict[str, list[DiscoveredFile]]] = {}
        self._files_by_session: dict[str, dict[str, list[DiscoveredFile]]] = {}

    def sessions(self) -> Iterator[DiscoveredFile]:
        """Yield every session below the root."""
        return TranscriptWalk(self.root, self.problems, agents=False).run()

    def transcripts(self) -> Iterator[DiscoveredFile]:
        """Yield every session and every sub-agent below the root, orphans too."""
        return TranscriptWalk(self.root, self.problems, agents=True).run()

    def agents(self, session: DiscoveredFile) -> list[DiscoveredFile]:
        """Return the transcripts of a session's sub-agents, in every layout."""
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
        """Return the session with its sub-agents filled in."""
        return msgspec.structs.replace(session, agents=tuple(self.agents(session)))

    def sidecars(self, session: DiscoveredFile) -> list[DiscoveredFile]:
        """Return the small files that belong to a session, wherever in the config folder."""
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
        """Sort the files of a folder by the session that each is named after; read once."""
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
        # Classified as if below `projects/`, wherever the session lies.
        prefix = "/".join(("projects", session.place.slug or "-", os.path.basename(base)))
        if not folder:
            return files_below(base, self.problems, prefix=prefix)
        return files_below(os.path.join(base, folder), self.problems, prefix=f"{prefix}/{folder}")

    def _find_adjacent_agents(self, folder: str, root: str) -> dict[str, list[DiscoveredFile]]:
        """Sort the agent files of one folder (2.0.x) by the session that each says it is of."""
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
    """Yield the regular files below a folder, each with its place.

    `prefix` is the folder's path relative to the config folder. A folder that is not there is no problem; links to
    folders are not followed.
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
