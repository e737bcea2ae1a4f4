"""Parameters of a session page URL. Invalid values are ignored."""

from collections.abc import Mapping
from typing import Final

import msgspec

from steno.web.urls import Links, parse_number

DETAIL_LEVELS: Final = ("prompts", "answers", "steps", "everything")
"""Levels of detail of a session page."""
_MAX_OPEN_STEPS: Final = 60
_MAX_FIND_LENGTH: Final = 200
Query = dict[str, str | int | None]


class SessionPageParams(msgspec.Struct):
    """Parameters of a session page."""

    key: str
    agent: str = ""
    detail: str = "steps"
    turn: int = 0
    """The first turn to show; 0 for the default."""
    branch: int = 0
    open_steps: frozenset[str] = frozenset()
    find: str = ""
    hit: int = 0
    abandoned: bool = True
    thinking: bool = True
    read_all: bool = False
    """Whether to read the whole session, even if it is large."""
    panel: bool = False
    part: bool = False
    """Whether to return only a part of the page."""
    full: bool = False
    first_turn: int = 0
    last_turn: int = 0
    side_by_side: bool = False
    """Whether to show diffs side by side."""
    record_offset: int | None = None
    """Offset of the record to start at."""

    def query(self, **changes: str | int | None) -> Query:
        """Return the query parameters with changes applied."""
        query: Query = {
            "turn": self.turn or None,
            "detail": "" if self.detail == "steps" else self.detail,
            "branch": self.branch or None,
            "find": self.find,
            "hit": self.hit or None,
            "abandoned": "" if self.abandoned else "off",
            "thinking": "" if self.thinking else "off",
        }
        return {**query, **changes}

    def url(self, links: Links, anchor: str = "", **changes: str | int | None) -> str:
        """Return the URL of the session with changed parameters."""
        query = self.query(**changes)
        return links.thread(self.key, self.agent, anchor, **query)


def session_page_params(key: str, agent: str, query: Mapping[str, str]) -> SessionPageParams:
    """Return the parameters of a URL."""
    detail = query.get("detail", "")
    open_steps = (step_key for step_key in query.get("open", "").split(",")[:_MAX_OPEN_STEPS] if step_key)
    return SessionPageParams(
        key,
        agent,
        detail if detail in DETAIL_LEVELS else "steps",
        parse_number(query.get("turn")),
        parse_number(query.get("branch")),
        frozenset(open_steps),
        query.get("find", "")[:_MAX_FIND_LENGTH].strip(),
        parse_number(query.get("hit")),
        query.get("abandoned") != "off",
        query.get("thinking") != "off",
        "whole" in query,
        "panel" in query,
        "part" in query,
        "full" in query,
        parse_number(query.get("from")),
        parse_number(query.get("to")),
        query.get("diff") == "side",
        parse_number(query["at"]) if query.get("at", "").isdecimal() else None,
    )
