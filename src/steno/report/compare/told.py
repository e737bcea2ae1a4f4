"""What the index knows of a session for a comparison, and what a comparison says in words."""

import sqlite3
from collections.abc import Iterator
from typing import Final

from steno.report import words
from steno.report.compare.sides import Known
from steno.report.compare.weigh import Alike, Comparison
from steno.report.listing import Listed, costs_of
from steno.report.prices import Prices
from steno.report.usage.files import Share
from steno.report.usage.totals import report_of
from steno.report.usage.wanted import Wanted
from steno.session.session import Session
from steno.session.story.figures import Figures
from steno.store.count import count_turns
from steno.store.discover import agents_of
from steno.store.found import Found

__all__ = ["ALIKE", "asked_of", "known_alone", "known_of", "limits_of", "said_of", "shared_of"]

ALIKE: Final[dict[Alike, str]] = {
    "fork": "one was made from the other",
    "prompt": "same first prompt, two tries",
    "project": "same project",
    "": "two sessions",
}


def known_of(connection: sqlite3.Connection, listed: Listed, prices: Prices) -> Known:
    """Return what the index knows of a session."""
    models = connection.execute(
        "SELECT u.model FROM usage u JOIN sessions s ON s.file = u.file "
        "WHERE s.owner = ? AND u.model != '' GROUP BY 1 ORDER BY sum(u.output) DESC, 1 LIMIT 6",
        (listed.file,),
    )
    return Known(
        title=listed.title,
        project=listed.project,
        branch=listed.branch,
        models=tuple(model for (model,) in models),
        figures=costs_of(connection, [listed.file], prices).get(listed.file),
        counted=listed.figures,
    )


def known_alone(session: Session, found: Found, prices: Prices) -> Known:
    """Return what a session says of itself that stands in no index."""
    paths = (found.path, *(each.path for each in agents_of(found)))
    share = Share(list(enumerate(paths)))
    share.read()
    return Known(
        title=session.title.text,
        project=session.project,
        branch=session.branch,
        models=session.models,
        figures=report_of(share.sums(Wanted(by="model")), "model", prices).totals,
        counted=Figures(
            turns=count_turns(found) or 0,
            steps=sum(len(node.uses) for node in session.transcript.nodes),
        ),
    )


def asked_of(found: Comparison) -> Iterator[tuple[bool, bool, str]]:
    """Yield every prompt once: whether A has it, whether B has it, and its words."""
    mine, theirs = (
        [item.subject for item in side.path if item.is_prompt] for side in (found.a, found.b)
    )
    for part in found.prompts.parts:
        for place in part.a:
            yield True, part.common, mine[place]
        if not part.common:
            for place in part.b:
                yield False, True, theirs[place]


def said_of(found: Comparison) -> str:
    """Return in a sentence how the paths go."""
    mine, theirs = (any(not item.is_prompt for item in side.path) for side in (found.a, found.b))
    if not mine and not theirs:
        return "neither did anything"
    if found.parting is None:
        return "the same way to the end"
    if not found.parting.steps and not found.common:
        return "no step in common" if mine else "nothing was done in A"
    before = words.count(found.parting.steps, "step")
    later = found.common - found.parting.steps
    more = f", {words.count(later, 'more step')} in common later" if later else ""
    if not found.parting.steps:
        return f"they part at once{more}"
    return f"{before} in common, then they part{more}"


def shared_of(found: Comparison) -> str:
    """Return what both have record by record; nothing where they were made apart."""
    if found.shared is None:
        return ""
    made = {"a": "A was made from B: they", "b": "B was made from A: they", "": "They"}
    turns, steps = found.shared.turns, found.shared.steps
    return (
        f"{made[found.forked]} share {words.count(turns, 'turn')} and {words.count(steps, 'step')} "
        "record by record. Tokens of what they share are counted once, where they were spent."
    )


def limits_of(found: Comparison) -> Iterator[str]:
    """Yield what was too much to be compared."""
    for letter, side in (("A", found.a), ("B", found.b)):
        if side.cut:
            yield f"{letter} is too long to compare in full: {side.cut:,} records or steps are left out"
        if side.unheard:
            agents = words.count(side.unheard, "sub-agent")
            yield f"{agents} of {letter} did too much to be read; their files and commands are left out"
    if found.path.loose:
        yield f"{found.path.loose:,} steps are too many to look for what they have in common"
