"""Which version of a file somebody means: by its number, a turn, a session or a time."""

import re
from typing import Final

from steno.errors import BadRequest, NotFound
from steno.report.clock import meant
from steno.report.files.values import History, Version

__all__ = ["HINT", "number_of", "version_at"]

HINT: Final = "a version (3, v3, first, last), SESSION:TURN, SESSION, :TURN, or @ and a time"
_NUMBER: Final = re.compile(r"v?(\d{1,9})")
_NAME: Final = re.compile(r"\d+\.\d+\.\d+b?")
_TURN: Final = re.compile(r"([^:]*):(\d{1,9})")
_SHORTEST: Final = 4
_SECOND: Final = 1000


def number_of(history: History, version: Version) -> int:
    """Return which version it is, from 1; 0 for one that is not of this history."""
    # The very same: to compare texts would take long.
    places = enumerate(history.versions, 1)
    return next((number for number, each in places if each is version), 0)


def version_at(history: History, text: str, now: float) -> Version:
    """Return the version that some words mean.

    `7c1f:4` is the file after turn 4 of that session, `:4` that of the last session that touched
    it, `@yesterday` the last version before then.

    Raises:
        BadRequest: the words mean nothing.
        NotFound: there is no such version.
    """
    word = text.strip()
    if not history.versions:
        raise NotFound("nothing is left of this file's versions")
    if word in ("first", "last"):
        return history.versions[0 if word == "first" else -1]
    if number := _NUMBER.fullmatch(word):
        return _numbered(history, int(number[1]))
    if _NAME.fullmatch(word) and (named := history.named(word)) is not None:
        return named
    if word.startswith("@"):
        return _before(history, word[1:], now)
    if turn := _TURN.fullmatch(word):
        return _after_turn(history, turn[1], int(turn[2]))
    if len(word) >= _SHORTEST:
        return _after_turn(history, word, None)
    raise BadRequest(f"{text!r} names no version", hint=HINT)


def _numbered(history: History, number: int) -> Version:
    if not 1 <= number <= len(history.versions):
        raise NotFound(
            f"there is no version {number}", hint=f"they go from 1 to {len(history.versions)}"
        )
    return history.versions[number - 1]


def _before(history: History, text: str, now: float) -> Version:
    end = meant(text, now)[1] * _SECOND
    found = [each for each in history.versions if each.time is not None and each.time < end]
    if not found:
        raise NotFound(f"no session had touched it by {text!r}")
    return found[-1]


def _after_turn(history: History, session: str, turn: int | None) -> Version:
    wanted = session.lower() or history.versions[-1].session
    mine = [each for each in history.versions if each.session.lower().startswith(wanted)]
    names = {each.session for each in mine}
    if not mine:
        raise NotFound(f"no session that goes by {session!r} touched this file", hint=HINT)
    if len(names) > 1:
        raise BadRequest(f"several sessions begin with {session!r}", hint=", ".join(sorted(names)))
    # What was found changed in a turn was changed before it.
    found = [each for each in mine if turn is None or each.turn <= turn]
    if not found:
        raise NotFound(f"the session had not touched it by turn {turn}")
    return found[-1]
