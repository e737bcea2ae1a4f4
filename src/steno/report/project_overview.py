"""Project overview: usage, weeks, branches, pull requests, files, configuration.

Every section is limited in size and names its source.
"""

import os
import sqlite3
from datetime import date, timedelta
from typing import Final

import msgspec

from steno.format.client_settings import Hook
from steno.index.sync.scan import path_from_column
from steno.report.file_history import touched_files
from steno.report.file_history.touched_files import TouchedFile
from steno.report.pricing import PriceTable
from steno.report.project_config import (
    CustomDefinition,
    McpServer,
    ProjectFolderContent,
    ProjectNote,
    SessionTodos,
    SettingsFile,
    TypedPrompt,
    hooks_of_settings,
    is_config_folder,
    make_note,
    memory_notes,
    plan_notes,
    read_project_folder,
    session_slugs,
    session_todos,
    typed_prompts,
    user_definitions,
    user_servers,
    user_settings,
)
from steno.report.session_list import SessionFilter, SessionListPage, list_sessions
from steno.report.session_lookup import IS_SHARED_SQL, session_key
from steno.report.usage.usage_query import Buckets, add_counts, day_of_slot, week_of
from steno.report.usage.usage_report import UsageFigures, build_report
from steno.store.client_folders import ConfigFolder
from steno.store.discovery import config_folder_of

_WEEK_COUNT: Final = 26
_SUM_COLUMNS: Final = (
    "sum(responses), sum(input), sum(output), sum(cache_5m), sum(cache_1h), sum(cache_read), "
    "sum(searches), sum(estimated)"
)
_OF_PROJECT: Final = "s.project = ? AND s.agent = '' AND NOT s.hidden"
_SLOT_SECONDS: Final = 900


class ProjectTotals(msgspec.Struct, frozen=True):
    """Totals of a project. Times are in milliseconds."""

    sessions: int
    turns: int
    steps: int
    failed: int
    started: int | None
    ended: int | None
    figures: UsageFigures
    cost: int | None
    """Micro-dollars; None if no model has a price."""


class WeeklyUsage(msgspec.Struct, frozen=True):
    """Usage of one week."""

    name: str
    monday: str
    cost: int
    tokens: int


class ProjectBranch(msgspec.Struct, frozen=True):
    """Git branch at the end of sessions."""

    name: str
    sessions: int
    ended: int | None


class LinkedPullRequest(msgspec.Struct, frozen=True):
    """Pull request linked from a session."""

    address: str
    note: str
    key: str
    """URL key of the session."""
    title: str


def project_totals(connection: sqlite3.Connection, project: str, prices: PriceTable) -> ProjectTotals:
    """Return the totals of a project's sessions, and the cost including sub-agents."""
    row = connection.execute(
        "SELECT count(*), total(turns), total(steps), total(failed), min(started), max(ended) "
        f"FROM sessions s WHERE {_OF_PROJECT}",
        (project,),
    ).fetchone()
    report = build_report(_project_buckets(connection, project), "project", prices)
    figures = report.totals
    return ProjectTotals(
        *(int(number) for number in row[:4]),
        started=row[4],
        ended=row[5],
        figures=figures,
        cost=report.cost if figures.has_cost else None,
    )


def weekly_usage(connection: sqlite3.Connection, project: str, prices: PriceTable, now: float) -> list[WeeklyUsage]:
    """Return the usage of recent weeks, including idle ones, starting with the first active week."""
    lines = build_report(_project_buckets(connection, project, weekly=True), "week", prices).lines
    rows_by_week = {report_row.names[0]: report_row for report_row in lines}
    monday = _monday_of(day_of_slot(int(now) // _SLOT_SECONDS))
    weeks: list[WeeklyUsage] = []
    for weeks_ago in range(_WEEK_COUNT - 1, -1, -1):
        day = (monday - timedelta(weeks=weeks_ago)).isoformat()
        line = rows_by_week.get(week_of(day))
        if line is not None:
            figures = line.figures
            weeks.append(WeeklyUsage(line.names[0], day, line.cost, figures.context + figures.output))
        elif weeks:
            weeks.append(WeeklyUsage(week_of(day), day, 0, 0))
    return weeks


def _monday_of(day: str) -> date:
    parsed = date.fromisoformat(day)
    return parsed - timedelta(days=parsed.weekday())


def _project_buckets(connection: sqlite3.Connection, project: str, *, weekly: bool = False) -> Buckets:
    buckets: Buckets = {}
    for day, model, fast, tier, *counts in connection.execute(
        f"SELECT day, model, fast, band, {_SUM_COLUMNS} FROM days WHERE project = ? GROUP BY 1, 2, 3, 4", (project,)
    ):
        week = week_of(day) if weekly else ""
        add_counts(buckets, ((week,), day, model, fast, tier), counts)
    return buckets


def project_branches(connection: sqlite3.Connection, project: str, limit: int = 12) -> list[ProjectBranch]:
    """Return the branches of a project, most recently active first."""
    rows = connection.execute(
        f"SELECT branch, count(*), max(ended) FROM sessions s WHERE {_OF_PROJECT} AND branch != '' "
        "GROUP BY branch ORDER BY max(ended) DESC, branch LIMIT ?",
        (project, limit),
    )
    return [ProjectBranch(*row) for row in rows]


def project_pull_requests(connection: sqlite3.Connection, project: str, limit: int = 12) -> list[LinkedPullRequest]:
    """Return the pull requests of a project, newest first."""
    rows = connection.execute(
        f"SELECT l.target, l.note, s.id, s.file, {IS_SHARED_SQL}, s.title FROM links l "
        "JOIN sessions s ON s.file = l.file "
        f"WHERE l.kind = 'pr' AND {_OF_PROJECT} GROUP BY l.target ORDER BY max(l.message) DESC LIMIT ?",
        (project, limit),
    )
    return [
        LinkedPullRequest(target, note, session_key(session_id, file, shared=bool(shared)), title)
        for target, note, session_id, file, shared, title in rows
    ]


_SHOWN_SESSIONS: Final = 12
_INSPECTED_SESSIONS: Final = 24
"""Number of newest sessions searched for to-dos and plans."""
_SHOWN_FILES: Final = 15
_SHOWN_PROMPTS: Final = 30


class ConfigFolderContent(msgspec.Struct):
    """Content of config directories that concerns a project."""

    memory: list[ProjectNote] = []
    instructions: list[ProjectNote] = []
    """Instructions of the user for all projects."""
    plans: list[ProjectNote] = []
    lists: list[SessionTodos] = []
    prompts: list[TypedPrompt] = []
    typed: int = 0
    """Total number of typed prompts."""
    defined: list[CustomDefinition] = []
    settings: list[SettingsFile] = []
    servers: list[McpServer] = []
    problems: list[str] = []
    """Errors from reading files."""


class ProjectOverview(msgspec.Struct, frozen=True, kw_only=True):
    """Overview of a project."""

    path: str
    sums: ProjectTotals
    listing: SessionListPage
    """Newest sessions."""
    weeks: list[WeeklyUsage]
    branches: list[ProjectBranch]
    pulls: list[LinkedPullRequest]
    files: list[TouchedFile]
    configs: list[str]
    """Config directories that contain sessions of the project."""
    looked: int
    """Number of newest sessions searched for to-dos and plans."""
    kept: ConfigFolderContent
    own: ProjectFolderContent

    @property
    def defined(self) -> list[CustomDefinition]:
        """Agents, skills and commands: of the project, then of the user."""
        return [*self.own.defined, *self.kept.defined]

    @property
    def settings(self) -> list[SettingsFile]:
        """Settings files, highest precedence first."""
        return [*reversed(self.own.settings), *reversed(self.kept.settings)]

    @property
    def hooks(self) -> list[tuple[Hook, str]]:
        """Hooks, each with the path of its settings file."""
        return hooks_of_settings(self.settings)

    @property
    def servers(self) -> list[McpServer]:
        """MCP servers: of the project, then of the user."""
        return [*self.own.servers, *self.kept.servers]


def load_project_overview(connection: sqlite3.Connection, path: str, prices: PriceTable, now: float) -> ProjectOverview:
    """Return the overview of the project in a directory."""
    listing = list_sessions(connection, SessionFilter(project=path), limit=_INSPECTED_SESSIONS)
    folders = _config_folders(connection, path)
    return ProjectOverview(
        path=path,
        sums=project_totals(connection, path, prices),
        listing=SessionListPage(listing.rows[:_SHOWN_SESSIONS], listing.total, listing.total > _SHOWN_SESSIONS),
        weeks=weekly_usage(connection, path, prices, now),
        branches=project_branches(connection, path),
        pulls=project_pull_requests(connection, path),
        files=touched_files.list_touched_files(
            connection, touched_files.TouchedFilter(project=path, sort="edits"), limit=_SHOWN_FILES
        ),
        configs=[folder.path for folder, _ in folders],
        looked=len(listing.rows),
        kept=_read_config_folders(folders, path, listing),
        own=read_project_folder(path),
    )


def _config_folders(connection: sqlite3.Connection, path: str) -> list[tuple[ConfigFolder, list[str]]]:
    """Return the config directories that contain sessions of a project, with its directory names in each."""
    slugs_by_folder: dict[str, dict[str, None]] = {}
    for (stored_path,) in connection.execute(
        "SELECT f.path FROM sessions s JOIN files f ON f.id = s.file WHERE s.project = ? AND s.agent = ''", (path,)
    ):
        session_path = path_from_column(stored_path)
        config = config_folder_of(session_path)
        if config:
            slugs_by_folder.setdefault(config, {})[os.path.basename(os.path.dirname(session_path))] = None
    return [
        (ConfigFolder(folder_path), list(names))
        for folder_path, names in slugs_by_folder.items()
        if is_config_folder(folder_path)
    ]


def _read_config_folders(
    folders: list[tuple[ConfigFolder, list[str]]], path: str, listing: SessionListPage
) -> ConfigFolderContent:
    content = ConfigFolderContent()
    for folder, names in folders:
        folder_sessions = [row for row in listing.rows if row.path.startswith(folder.path + os.sep)]
        content.memory += memory_notes(folder, names)
        if text := folder.instructions():
            source = os.path.join(folder.path, "CLAUDE.md")
            content.instructions.append(make_note("CLAUDE.md (user)", source, text))
        content.plans += plan_notes(folder, session_slugs(folder_sessions))
        content.lists += session_todos(folder, [row.id for row in folder_sessions])
        prompts, typed = typed_prompts(folder, path, _SHOWN_PROMPTS)
        content.prompts += prompts
        content.typed += typed
        content.defined += user_definitions(folder)
        content.settings += user_settings(folder)
        content.servers += user_servers(folder, path)
        content.problems += [f"{problem.path}: {problem.message or problem.kind}" for problem in folder.problems][
            :_SHOWN_SESSIONS
        ]
    return content
