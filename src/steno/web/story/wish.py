"""What the address of a page about a session asks for. Whatever makes no sense is left out."""

from collections.abc import Mapping
from typing import Final

import msgspec

from steno.web.links import Links
from steno.web.numbers import number_in

__all__ = ["DETAILS", "Wish", "wish_of"]

DETAILS: Final = ("prompts", "answers", "steps", "everything")
"""How much of a session is told."""
_OPEN: Final = 60
_LONGEST: Final = 200
Query = dict[str, str | int | None]


class Wish(msgspec.Struct):
    """What a reader wants to see."""

    key: str
    agent: str = ""
    detail: str = "steps"
    turn: int = 0
    """The turn to begin at; 0 leaves it to the session."""
    branch: int = 0
    opened: frozenset[str] = frozenset()
    find: str = ""
    hit: int = 0
    abandoned: bool = True
    thinking: bool = True
    whole: bool = False
    """Read all of it, however long that takes."""
    panel: bool = False
    part: bool = False
    """Only a piece of the page."""
    full: bool = False
    first: int = 0
    last: int = 0
    side: bool = False
    """Changes side by side."""
    at: int | None = None
    """The record to begin at, by its offset."""

    def query(self, **other: str | int | None) -> Query:
        """Return the wish as a query, with something changed."""
        found: Query = {
            "turn": self.turn or None,
            "detail": "" if self.detail == "steps" else self.detail,
            "branch": self.branch or None,
            "find": self.find,
            "hit": self.hit or None,
            "abandoned": "" if self.abandoned else "off",
            "thinking": "" if self.thinking else "off",
        }
        return {**found, **other}

    def address(self, links: Links, anchor: str = "", **other: str | int | None) -> str:
        """Return where the same is found with something changed."""
        query = self.query(**other)
        if self.agent:
            return links.agent(self.key, self.agent, anchor, **query)
        return links.session(self.key, anchor, **query)


def wish_of(key: str, agent: str, query: Mapping[str, str]) -> Wish:
    """Return what an address asks for."""
    detail = query.get("detail", "")
    opened = (place for place in query.get("open", "").split(",")[:_OPEN] if place)
    return Wish(
        key,
        agent,
        detail if detail in DETAILS else "steps",
        number_in(query.get("turn")),
        number_in(query.get("branch")),
        frozenset(opened),
        query.get("find", "")[:_LONGEST].strip(),
        number_in(query.get("hit")),
        query.get("abandoned") != "off",
        query.get("thinking") != "off",
        "whole" in query,
        "panel" in query,
        "part" in query,
        "full" in query,
        number_in(query.get("from")),
        number_in(query.get("to")),
        query.get("diff") == "side",
        number_in(query["at"]) if query.get("at", "").isdecimal() else None,
    )
