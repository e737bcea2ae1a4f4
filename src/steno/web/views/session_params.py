"""Parameters of a session page URL. Invalid values are ignored."""

from collections.abc import Mapping
from typing import Final

import msgspec

from steno.web.urls import Links, parse_number

DETAIL_LEVELS: Final = ("prompts", "answers", "steps", "everything")
"""How much of a session is told."""
_MAX_OPEN_STEPS: Final = 60
_MAX_FIND_LENGTH: Final = 200
Query = dict[str, str | int | None]


class SessionPageParams(msgspec.Struct):
    """What a reader wants to see."""

    key: str
    agent: str = ""
    detail: str = "steps"
    turn: int = 0
    """The turn to begin at; 0 leaves it to the session."""
    branch: int = 0
    open_steps: frozenset[str] = frozenset()
    find: str = ""
    hit: int = 0
    abandoned: bool = True
    thinking: bool = True
    read_all: bool = False
    """Read all of it, however long that takes."""
    panel: bool = False
    part: bool = False
    """Only a piece of the page."""
    full: bool = False
    first_turn: int = 0
    last_turn: int = 0
    side_by_side: bool = False
    """Changes side by side."""
    record_offset: int | None = None
    """The record to begin at, by its offset."""

    def query(self, **changes: str | int | None) -> Query:
        """Return the wish as a query, with something changed."""
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
        """Return where the same is found with something changed."""
        query = self.query(**changes)
        return links.thread(self.key, self.agent, anchor, **query)


def session_page_params(key: str, agent: str, query: Mapping[str, str]) -> SessionPageParams:
    """Return what an address asks for."""
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
