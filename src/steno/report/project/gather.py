"""A project, from everywhere at once; every part is bounded and says where it comes from."""

import os
import sqlite3
from typing import Final

import msgspec

from steno.format.settings import Hook
from steno.index.scan import path_from
from steno.report.files import touched
from steno.report.files.touched import Touched
from steno.report.listing import Choice, Listing, list_sessions
from steno.report.prices import Prices
from steno.report.project.config import (
    Defined,
    Note,
    Server,
    Shown,
    Todo,
    Typed,
    hooks_in,
    is_config,
    lists_of,
    memory_of,
    note_of,
    plans_of,
    prompts_of,
    settings_of,
    slugs_of,
    user_defined,
    user_servers,
)
from steno.report.project.figures import (
    Branch,
    Pull,
    Sums,
    Week,
    branches_of,
    pulls_of,
    sums_of,
    weeks_of,
)
from steno.report.project.own import Own, own_of
from steno.store.discover import config_of
from steno.store.folder import ConfigFolder

__all__ = ["Project", "gather"]

_SESSIONS: Final = 12
_LOOKED: Final = 24
"""How many of the newest sessions are asked for their lists and plans."""
_FILES: Final = 15
_PROMPTS: Final = 30


class Kept(msgspec.Struct):
    """What config folders keep of a project."""

    memory: list[Note] = []
    instructions: list[Note] = []
    """The user's own, for all projects."""
    plans: list[Note] = []
    lists: list[Todo] = []
    prompts: list[Typed] = []
    typed: int = 0
    """How many prompts were typed in all."""
    defined: list[Defined] = []
    settings: list[Shown] = []
    servers: list[Server] = []
    problems: list[str] = []
    """What could not be read."""


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is known of a project."""

    path: str
    sums: Sums
    listing: Listing
    """Its newest sessions."""
    weeks: list[Week]
    branches: list[Branch]
    pulls: list[Pull]
    files: list[Touched]
    configs: list[str]
    """The config folders its sessions lie in."""
    looked: int
    """How many of the newest sessions were asked for their lists and plans."""
    kept: Kept
    own: Own

    @property
    def defined(self) -> list[Defined]:
        """Agents, skills and commands: the project's own, then the user's."""
        return [*self.own.defined, *self.kept.defined]

    @property
    def settings(self) -> list[Shown]:
        """Settings, the strongest first."""
        return [*reversed(self.own.settings), *reversed(self.kept.settings)]

    @property
    def hooks(self) -> list[tuple[Hook, str]]:
        """Every hook, with the file that names it."""
        return hooks_in(self.settings)

    @property
    def servers(self) -> list[Server]:
        """MCP servers."""
        return [*self.own.servers, *self.kept.servers]


def gather(connection: sqlite3.Connection, path: str, prices: Prices, now: float) -> Project:
    """Return all that is known of the project in a folder."""
    listing = list_sessions(connection, Choice(project=path), limit=_LOOKED)
    folders = _folders(connection, path)
    return Project(
        path=path,
        sums=sums_of(connection, path, prices),
        listing=Listing(listing.rows[:_SESSIONS], listing.total, listing.total > _SESSIONS),
        weeks=weeks_of(connection, path, prices, now),
        branches=branches_of(connection, path),
        pulls=pulls_of(connection, path),
        files=touched.touched(connection, touched.Choice(project=path, sort="edits"), limit=_FILES),
        configs=[folder.path for folder, _ in folders],
        looked=len(listing.rows),
        kept=_kept(folders, path, listing),
        own=own_of(path),
    )


def _folders(connection: sqlite3.Connection, path: str) -> list[tuple[ConfigFolder, list[str]]]:
    """Return the config folders that hold sessions of a project, with its names in each."""
    found: dict[str, dict[str, None]] = {}
    for (kept,) in connection.execute(
        "SELECT f.path FROM sessions s JOIN files f ON f.id = s.file "
        "WHERE s.project = ? AND s.agent = ''",
        (path,),
    ):
        place = path_from(kept)
        config = config_of(place)
        if config:
            found.setdefault(config, {})[os.path.basename(os.path.dirname(place))] = None
    return [(ConfigFolder(each), list(names)) for each, names in found.items() if is_config(each)]


def _kept(folders: list[tuple[ConfigFolder, list[str]]], path: str, listing: Listing) -> Kept:
    kept = Kept()
    for folder, names in folders:
        mine = [row for row in listing.rows if row.path.startswith(folder.path + os.sep)]
        kept.memory += memory_of(folder, names)
        if text := folder.instructions():
            source = os.path.join(folder.path, "CLAUDE.md")
            kept.instructions.append(note_of("CLAUDE.md, yours for all projects", source, text))
        kept.plans += plans_of(folder, slugs_of(mine))
        kept.lists += lists_of(folder, [row.id for row in mine])
        prompts, typed = prompts_of(folder, path, _PROMPTS)
        kept.prompts += prompts
        kept.typed += typed
        kept.defined += user_defined(folder)
        kept.settings += settings_of(folder)
        kept.servers += user_servers(folder, path)
        kept.problems += [
            f"{problem.path}: {problem.message or problem.kind}" for problem in folder.problems
        ][:_SESSIONS]
    return kept
