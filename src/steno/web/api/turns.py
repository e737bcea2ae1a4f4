"""`/api/v1/sessions/{key}/turns` and `/api/v1/sessions/{key}/steps`."""

from typing import Final
from weakref import WeakKeyDictionary

import msgspec

from steno.format.blocks import Text
from steno.report.clock import iso
from steno.report.export.steps import steps_of
from steno.session import session as sessions
from steno.session.story.repeats import Repeats
from steno.session.story.steps import Step as StoryStep
from steno.session.story.turns import Turn as StoryTurn
from steno.session.story.usage import SYNTHETIC
from steno.session.transcript import Transcript
from steno.web.api.cursors import integers, make_cursor, read_cursor
from steno.web.api.models.turns import Prompt, Step, StepList, Tokens, Turn, TurnList, TurnStep
from steno.web.api.opening import open_key
from steno.web.api.parameters import Paged, TurnParameters
from steno.web.api.sessions import compaction_of
from steno.web.house import House
from steno.web.story.tale import Tale, name_of

_steps: Final[WeakKeyDictionary[sessions.Session, list[Step]]] = WeakKeyDictionary()
"""The steps of sessions that are open, as long as these stay as they are."""


def turn_page(house: House, path: dict[str, str], parameters: TurnParameters) -> TurnList:
    """Return a page of the turns of a session, or of a sub-agent."""
    with open_key(house, path["key"], parameters.agent) as found:
        tale, key = found.tale, found.place.key
        name = f"turns {key}"
        place = read_cursor(name, parameters, 1)
        start = 0 if place is None else integers(place)[0]
        later = [turn for turn in tale.turns if turn.number > start]
        page = later[: parameters.limit]
        more = len(later) > len(page)
        return TurnList(
            session=key,
            agent=found.wish.agent or None,
            turns=[_turn(tale, turn) for turn in page],
            total=len(tale.turns),
            next_cursor=make_cursor(name, parameters, page[-1].number) if more else None,
        )


def _turn(tale: Tale, turn: StoryTurn) -> Turn:
    prompt, transcript = turn.prompt, tale.transcript
    return Turn(
        number=turn.number,
        prompt=None
        if prompt is None
        else Prompt(
            text=prompt.text, origin=prompt.origin, images=prompt.images, uuid=prompt.node.uuid
        ),
        texts=texts_of(transcript, turn),
        answer=turn.answer,
        steps=[_step(transcript, step) for step in turn.steps],
        started=None if turn.started is None else iso(turn.started.timestamp()),
        ended=None if turn.ended is None else iso(turn.ended.timestamp()),
        duration_seconds=turn.duration,
        usage=msgspec.convert(turn.usage, Tokens, from_attributes=True),
        cost_micro_usd=tale.cost(turn).known,
        commands=list(turn.commands),
        failed_steps=turn.errors,
        interrupted=turn.interrupted,
        compaction=compaction_of(turn),
    )


def texts_of(transcript: Transcript, turn: StoryTurn) -> list[str]:
    """Return all texts of the model in a turn, in order."""
    texts: list[str] = []
    repeats = Repeats()
    for node in turn.nodes:
        if node.type != "assistant" or node.model == SYNTHETIC:
            continue
        if repeats.answer(node.parent, node.message_id, node.uses):
            continue
        record = transcript.record(node)
        if not record.envelope.is_api_error_message:
            texts += [
                block.text for block in record.blocks if type(block) is Text and block.text.strip()
            ]
    return texts


def _step(transcript: Transcript, step: StoryStep) -> TurnStep:
    touch = step.touch
    return TurnStep(
        kind=step.kind,
        verb=step.verb,
        tool=_tool(transcript, step),
        subject=step.subject,
        outcome=step.outcome,
        state=step.state,
        started=None if step.started is None else iso(step.started.timestamp()),
        duration_seconds=step.duration,
        tokens=step.tokens,
        agent=None if step.agent is None else name_of(step.agent),
        path=None if touch is None else touch.path,
        added=0 if touch is None else touch.added,
        removed=0 if touch is None else touch.removed,
        call=None if step.call is None else step.call.uuid,
        result=None if step.result is None else step.result.uuid,
    )


def _tool(transcript: Transcript, step: StoryStep) -> str | None:
    """Return the tool that a step called; the verb of a sub-agent's is what kind it is."""
    if step.kind == "tool":
        return step.verb
    if step.kind != "agent" or step.call is None or step.call.type != "assistant":
        return None
    uses = transcript.record(step.call).tool_uses
    return next((use.name for use in uses if use.id == step.call_id), None)


# Steps of the published description


def step_page(house: House, path: dict[str, str], parameters: Paged) -> StepList:
    """Return a page of the lines that `steps.jsonl` has for a session."""
    with open_key(house, path["key"]) as found:
        key, steps = found.place.key, document_steps(found.tale.session)
        name = f"steps {key}"
        place = read_cursor(name, parameters, 1)
        start = 0 if place is None else integers(place)[0]
        page = [step for step in steps if step.step_id > start][: parameters.limit]
        more = bool(page) and page[-1].step_id < len(steps)
        return StepList(
            session=key,
            steps=page,
            total=len(steps),
            next_cursor=make_cursor(name, parameters, page[-1].step_id) if more else None,
        )


def document_steps(session: sessions.Session) -> list[Step]:
    """Return the steps of a session, kept while it is open and has not changed."""
    steps = _steps.get(session)
    if steps is None:
        steps = _steps[session] = msgspec.convert(steps_of(session), list[Step])
    return steps
