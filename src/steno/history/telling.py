"""`brief` and `show`: what happened in sessions."""

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Final

from steno.errors import NotFound
from steno.history.asked import Brief, Show
from steno.history.library import Library
from steno.history.quoted import passage, path, word
from steno.index.lines import line_of
from steno.index.words import parts_of
from steno.report import clock, words
from steno.session.story.figures import steps_in
from steno.session.story.steps import Step
from steno.session.story.turns import Turn

if TYPE_CHECKING:
    from steno.format.records import Record
    from steno.session.session import Session
    from steno.session.transcript import Transcript

__all__ = ["briefed", "shown"]

_QUIET: Final = frozenset(("note", "hook"))
"""Steps that say nothing of what was done."""
_PROMPT: Final = 240
_STEP: Final = 2_000
"""How many letters of what a step was given, or gave, stand in its turn."""


def briefed(asked: Brief, library: Library) -> Generator[str, None, None]:
    """Yield sessions in brief: one block, which keeps to its budget."""
    from steno.report.brief.choose import briefs_of, choose, place_of
    from steno.report.brief.markdown import as_markdown

    wanted = library.wanted(asked.project, asked.since, asked.until)
    further = 0
    if asked.session:
        places = [place_of(library.found(asked.session))]
    else:
        with library.index() as index:
            places = choose(index.connection, wanted)
        some = asked.last if asked.project or wanted.is_bounded else 1
        places, further = places[:some], max(0, len(places) - some)
    briefs = briefs_of(places, wanted if wanted.is_bounded else None, unread=[])
    if not briefs:
        raise NotFound(
            "no session has a turn like that", hint="`search` finds words in all of them"
        )
    yield as_markdown(briefs, asked.budget, further=further)
    yield "For more: a larger `budget`, one `session`, or `show` with a session and a turn."


def shown(asked: Show, library: Library) -> Generator[str, None, None]:
    """Yield the newest sessions, the turns of one, one turn, or one record."""
    if not asked.session:
        yield from _newest(asked, library)
        return
    with library.session(asked.session) as session:
        yield f"# Session {path(session.id)}: {word(session.title.text)}"
        if asked.record:
            yield from _record(session, asked.record)
            return
        turns = session.turns()
        if asked.turn:
            yield from _turn(session, turns, asked)
            return
        yield f"{words.count(len(turns), 'turn')}. `turn` = N shows one."
        for turn in turns:
            yield _line(turn)


def _newest(asked: Show, library: Library) -> Iterator[str]:
    yield "The newest sessions first. `session` = an id shows one."
    for look in library.newest(asked.project):
        when = clock.iso(look.ended) or "at an unknown time"
        about = f"last written {when}, {look.status}"
        yield f"- {path(look.id)} {word(look.title)} in {path(look.project)}, {about}"


def _line(turn: Turn) -> str:
    prompt = turn.prompt.text if turn.prompt else ""
    parts = [words.count(steps_in(turn.steps), "step")]
    changed = {touch.path for touch in turn.files if touch.changes}
    if changed:
        parts.append(f"{words.count(len(changed), 'file')} changed")
    if turn.errors:
        parts.append(f"{turn.errors:,} failed")
    if turn.interrupted:
        parts.append("interrupted")
    when = f", {turn.started:%Y-%m-%d %H:%M}" if turn.started else ""
    return f"- Turn {turn.number}{when}: {word(prompt, _PROMPT)} ({', '.join(parts)})"


def _turn(session: "Session", turns: list[Turn], asked: Show) -> Iterator[str]:
    turn = next((each for each in turns if each.number == asked.turn), None)
    if turn is None:
        there = words.count(len(turns), "turn")
        raise NotFound(f"there is no turn {asked.turn}", hint=f"the session has {there}")
    yield _line(turn)
    if turn.prompt is not None:
        yield f"Asked, by {turn.prompt.origin}:"
        yield from passage(turn.prompt.text)
    for step in turn.steps:
        if step.kind in _QUIET:
            continue
        yield _step(step)
        if asked.detail:
            yield from _details(session.transcript, step)
    if turn.answer:
        yield "Answered:"
        yield from passage(turn.answer)


def _step(step: Step) -> str:
    subject = f" {word(step.subject)}" if step.subject else ""
    outcome = f" → {word(step.outcome)}" if step.outcome else ""
    state = "" if step.state == "ok" else f" ({step.state})"
    record = f", record {path(step.call.uuid)}" if step.call and step.call.uuid else ""
    return f"- {word(step.verb)}{subject}{outcome}{state}{record}"


def _details(transcript: "Transcript", step: Step) -> Iterator[str]:
    for node in (step.call, step.result):
        if node is None:
            continue
        record = transcript.record(node)
        for part in parts_of(line_of(record), record.line):
            if part.call == step.call_id or not part.call:
                yield f"{part.kind}:"
                yield from passage(part.text, _STEP)


def _record(session: "Session", name: str) -> Iterator[str]:
    record = _found(session, name)
    yield f"Record {path(record.uuid or '')}, {path(record.kind)}, {path(str(record.timestamp or ''))}"
    parts = parts_of(line_of(record), record.line)
    if not parts:
        yield "There are no words in it."
    for part in parts:
        yield f"{part.kind}{f' of {word(part.tool)}' if part.tool else ''}:"
        yield from passage(part.text)


def _found(session: "Session", name: str) -> "Record":
    """Return a record of the session, or of one of its sub-agents."""
    try:
        return session.record(name)
    except NotFound:
        for thread in session.all_agents:
            node = thread.transcript.by_uuid.get(name)
            if node is not None:
                return thread.transcript.record(node)
        raise
