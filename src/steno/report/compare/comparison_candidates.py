"""Suggests sessions to compare with a session: forks, same first prompt, same project."""

import sqlite3
from collections.abc import Iterable
from typing import Final, Literal, TypeAlias

import msgspec

from steno.index.search.hit_text import HitReader
from steno.report.session_list import SessionFilter, SessionRow, list_sessions

CandidateReason: TypeAlias = Literal[
    "fork of this session", "original of this fork", "same first prompt", "same project"
]
_MAX_NEIGHBOURS: Final = 60
"""Maximum number of sessions of a project to consider, nearest in time first."""
_REASON_ORDER: Final[dict[CandidateReason, int]] = {
    "fork of this session": 0,
    "original of this fork": 0,
    "same first prompt": 1,
    "same project": 2,
}
_MAX_SEARCH_WORDS: Final = 6
_FORK_LINK_KINDS: Final = "('fork', 'resume')"


class ComparisonCandidate(msgspec.Struct, frozen=True):
    """A suggested session, and the reason."""

    session: SessionRow
    reason: CandidateReason


def session_row_of(connection: sqlite3.Connection, session: str, file: int) -> SessionRow | None:
    """Return the list row of a session."""
    rows = list_sessions(connection, SessionFilter(sessions=(session,))).rows
    return next((row for row in rows if row.file == file), None)


def comparison_candidates(
    connection: sqlite3.Connection, session: SessionRow, limit: int = 8
) -> list[ComparisonCandidate]:
    """Return the suggested sessions, ordered by reason and then by distance in time."""
    reasons: dict[str, CandidateReason] = {}
    for (session_id,) in connection.execute(
        "SELECT DISTINCT s.id FROM links l JOIN sessions s ON s.file = l.file "
        f"WHERE l.kind IN {_FORK_LINK_KINDS} AND l.target = ? AND s.agent = ''",
        (session.id,),
    ):
        reasons[session_id] = "fork of this session"
    for (session_id,) in connection.execute(
        f"SELECT DISTINCT target FROM links WHERE file = ? AND kind IN {_FORK_LINK_KINDS}", (session.file,)
    ):
        reasons.setdefault(session_id, "original of this fork")
    project_sessions = connection.execute(
        "SELECT id FROM sessions WHERE agent = '' AND NOT hidden AND project = ? AND project != '' "
        "ORDER BY abs(coalesce(started, 0) - ?) LIMIT ?",
        (session.project, session.started or 0, _MAX_NEIGHBOURS),
    ).fetchall()
    same_title_sessions = connection.execute(
        "SELECT id FROM sessions WHERE agent = '' AND NOT hidden AND title = ? AND title != '' "
        "ORDER BY abs(coalesce(started, 0) - ?) LIMIT ?",
        (session.title, session.started or 0, _MAX_NEIGHBOURS),
    ).fetchall()
    session_ids = tuple(dict.fromkeys([*reasons, *(name for (name,) in (*same_title_sessions, *project_sessions))]))
    rows = list_sessions(connection, SessionFilter(sessions=session_ids), limit=3 * _MAX_NEIGHBOURS).rows
    rows = [row for row in rows if row.file != session.file]
    first_prompts = _first_prompts(connection, [session, *rows])
    own_prompt = first_prompts.get(session.file, "")
    candidates = [
        ComparisonCandidate(row, reason)
        for row in rows
        if (reason := reasons.get(row.id) or _reason_for(row, session, own_prompt, first_prompts.get(row.file, "")))
    ]
    candidates.sort(
        key=lambda candidate: (
            _REASON_ORDER[candidate.reason],
            abs((candidate.session.started or 0) - (session.started or 0)),
            candidate.session.file,
        )
    )
    return candidates[:limit]


def _reason_for(row: SessionRow, session: SessionRow, own_prompt: str, prompt: str) -> CandidateReason | None:
    if own_prompt and own_prompt == prompt:
        return "same first prompt"
    return "same project" if session.project and row.project == session.project else None


def _first_prompts(connection: sqlite3.Connection, rows: Iterable[SessionRow]) -> dict[int, str]:
    """Return the first prompt of each session by file number; sessions that cannot be read are omitted."""
    prompts: dict[int, str] = {}
    with HitReader(connection) as reader:
        for row in rows:
            message = connection.execute(
                "SELECT message FROM turns WHERE file = ? AND number = 1", (row.file,)
            ).fetchone()
            for text in reader.read_texts(message or ()):
                prompt_parts = (part.text for part in text.parts if part.kind == "prompt")
                prompts[row.file] = " ".join("\n".join(prompt_parts).split()).casefold()
    return prompts


def search_sessions(connection: sqlite3.Connection, text: str, limit: int = 30) -> list[SessionRow]:
    """Return the newest sessions whose title, project, branch or ID contains all words."""
    search_words = text.split()[:_MAX_SEARCH_WORDS]
    where = "".join(
        " AND instr(lower(title || ' ' || project || ' ' || branch || ' ' || id), ?) > 0" for _ in search_words
    )
    matching_ids = connection.execute(
        f"SELECT id FROM sessions WHERE agent = '' AND NOT hidden{where} "
        "ORDER BY coalesce(ended, 0) DESC, file DESC LIMIT ?",
        [*(word.lower() for word in search_words), limit],
    ).fetchall()
    return list_sessions(
        connection, SessionFilter(sessions=tuple(session_id for (session_id,) in matching_ids)), limit=limit
    ).rows
