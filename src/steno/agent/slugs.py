"""Names in words for sessions: what records carry as `slug`, and what plan files are named after.

A session has none at first. It gets one when it is compacted (adjective, participle, noun) or when
a prompt is given in plan mode (the prompt's first words, adjective or participle, noun), keeps it,
and a fork begins without one: that is when the real client writes it. The words are chosen by the
session's id, so that the same session always gets the same ones.
"""

import re
from hashlib import sha256
from typing import Final

__all__ = ["is_slug", "plan_slug", "session_slug"]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_ADJECTIVES: Final = _words(
    "amber ample autumn bold brisk bright calm candid clever coastal copper crisp curious dapper "
    "eager early earnest fair fleet frosty gentle gilded golden hardy hazel humble ivory jolly "
    "keen kind lively lofty lucid lunar mellow merry mild mossy nimble noble olive patient placid "
    "plucky polite prime quick quiet rapid rosy rustic sandy serene silver sleek snowy solar "
    "sunny tidy"
)
_PARTICIPLES: Final = _words(
    "baking bending blinking bouncing building carving chasing climbing coasting counting "
    "crafting dancing dashing drawing drifting floating flying gliding glowing growing hiking "
    "hopping humming jogging juggling jumping knitting leaping listening marching mending mixing "
    "painting pacing paddling planting playing polishing racing reading resting riding roaming "
    "rolling rowing sailing singing skating sketching sliding soaring sowing spinning strolling "
    "surfing swaying swimming tapping"
)
_NOUNS: Final = _words(
    "acorn anchor badger bamboo beacon birch bridge brook canyon cedar cello clover comet coral "
    "cricket daisy delta dolphin ember falcon fern ferry finch fjord forest garden geyser glacier "
    "harbor hazelnut heron hill island juniper kettle lagoon lantern lemur lily maple meadow "
    "meteor orchard otter owl panda pebble pepper pine pond prairie puffin raven reef river robin "
    "spruce summit thistle valley willow"
)
_WORDS: Final = 4
"""How many words of a prompt stand in the name of its plan."""
_LONGEST: Final = 40
_MOST: Final = 120
_SLUG: Final = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
_OTHER: Final = re.compile(r"[^a-z0-9]+")


def is_slug(text: str) -> bool:
    """Whether a text is such a name: files are named after it, so nothing else may be in it.

    >>> is_slug("eager-riding-garden"), is_slug("../garden")
    (True, False)
    """
    return len(text) <= _MOST and _SLUG.fullmatch(text) is not None


def session_slug(session_id: str) -> str:
    """Return the name of a session: adjective, participle, noun.

    >>> session_slug("aaaaaaaa-0000-4000-8000-000000000001")
    'eager-riding-garden'
    """
    first, second, third, _ = _numbers(session_id)
    return f"{_of(_ADJECTIVES, first)}-{_of(_PARTICIPLES, second)}-{_of(_NOUNS, third)}"


def plan_slug(session_id: str, prompt: str) -> str:
    """Return the name of a session that begins with a plan: some words of the prompt and two more.

    >>> plan_slug("aaaaaaaa-0000-4000-8000-000000000001", "Think: move the tests, then CI")
    'think-move-the-tests-noble-garden'
    """
    words = _OTHER.sub("-", " ".join(prompt.split()[:_WORDS]).lower())[:_LONGEST].strip("-")
    if not words:
        return session_slug(session_id)
    _, second, third, kind = _numbers(session_id)
    middle = _of((_PARTICIPLES, _ADJECTIVES)[kind % 2], second)
    return f"{words}-{middle}-{_of(_NOUNS, third)}"


def _numbers(session_id: str) -> tuple[int, int, int, int]:
    first, second, third, kind = sha256(session_id.encode()).digest()[:4]
    return first, second, third, kind


def _of(words: tuple[str, ...], number: int) -> str:
    return words[number % len(words)]
