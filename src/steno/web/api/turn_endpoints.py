"""`/api/v1/sessions/{key}/turns` and `/api/v1/sessions/{key}/steps`."""

from typing import Final
from weakref import WeakKeyDictionary

import msgspec

from steno.format.message import SYNTHETIC, Text
from steno.report.clock import iso_time
from steno.report.export.steps_format import session_steps
from steno.session import session as sessions
from steno.session.transcript import Transcript
from steno.session.turns.compactions import RepeatTracker
from steno.session.turns.steps import Step as StoryStep
from steno.session.turns.turn_builder import Turn as StoryTurn
from steno.web.api.parameters import Paged, TurnParameters, make_cursor, read_cursor, require_integers
from steno.web.api.schemas import Prompt, Step, StepList, Tokens, Turn, TurnList, TurnStep
from steno.web.api.session_endpoints import open_session_by_key, turn_compaction
from steno.web.state.app_state import AppState
from steno.web.views.session_view import SessionView, subagent_key

_steps_cache: Final[WeakKeyDictionary[sessions.Session, list[Step]]] = WeakKeyDictionary()
"""The steps of sessions that are open, as long as these stay as they are."""


def list_turns(app_state: AppState, path: dict[str, str], parameters: TurnParameters) -> TurnList:
    """Return a page of the turns of a session, or of a sub-agent."""
    with open_session_by_key(app_state, path["key"], parameters.agent) as opened_session:
        view, key = opened_session.view, opened_session.session_ref.key
        name = f"turns {key}"
        position = read_cursor(name, parameters, 1)
        start = 0 if position is None else require_integers(position)[0]
        later = [turn for turn in view.turns if turn.number > start]
        page = later[: parameters.limit]
        more = len(later) > len(page)
        return TurnList(
            session=key,
            agent=opened_session.params.agent or None,
            turns=[_turn_schema(view, turn) for turn in page],
            total=len(view.turns),
            next_cursor=make_cursor(name, parameters, page[-1].number) if more else None,
        )


def _turn_schema(view: SessionView, turn: StoryTurn) -> Turn:
    prompt, transcript = turn.prompt, view.transcript
    return Turn(
        number=turn.number,
        prompt=None
        if prompt is None
        else Prompt(text=prompt.text, origin=prompt.origin, images=prompt.images, uuid=prompt.node.uuid),
        texts=texts_of(transcript, turn),
        answer=turn.answer,
        steps=[_step_schema(transcript, step) for step in turn.steps],
        started=None if turn.started is None else iso_time(turn.started.timestamp()),
        ended=None if turn.ended is None else iso_time(turn.ended.timestamp()),
        duration_seconds=turn.duration,
        usage=msgspec.convert(turn.usage, Tokens, from_attributes=True),
        cost_micro_usd=view.turn_cost(turn).amount,
        commands=list(turn.commands),
        failed_steps=turn.errors,
        interrupted=turn.interrupted,
        compaction=turn_compaction(turn),
    )


def texts_of(transcript: Transcript, turn: StoryTurn) -> list[str]:
    """Return all texts of the model in a turn, in order."""
    texts: list[str] = []
    repeats = RepeatTracker()
    for node in turn.nodes:
        if node.type != "assistant" or node.model == SYNTHETIC:
            continue
        if repeats.is_repeated_answer(node.parent, node.message_id, node.uses):
            continue
        record = transcript.record(node)
        if not record.envelope.is_api_error_message:
            texts += [block.text for block in record.blocks if type(block) is Text and block.text.strip()]
    return texts


def _step_schema(transcript: Transcript, step: StoryStep) -> TurnStep:
    touch = step.touch
    return TurnStep(
        kind=step.kind,
        verb=step.verb,
        tool=_tool_name(transcript, step),
        subject=step.subject,
        outcome=step.outcome,
        state=step.state,
        started=None if step.started is None else iso_time(step.started.timestamp()),
        duration_seconds=step.duration,
        tokens=step.tokens,
        agent=None if step.agent is None else subagent_key(step.agent),
        path=None if touch is None else touch.path,
        added=0 if touch is None else touch.added,
        removed=0 if touch is None else touch.removed,
        call=None if step.call is None else step.call.uuid,
        result=None if step.result is None else step.result.uuid,
    )


def _tool_name(transcript: Transcript, step: StoryStep) -> str | None:
    """Return the tool that a step called; the verb of a sub-agent's is what kind it is."""
    if step.kind == "tool":
        return step.verb
    if step.kind != "agent" or step.call is None or step.call.type != "assistant":
        return None
    uses = transcript.record(step.call).tool_uses
    return next((use.name for use in uses if use.id == step.call_id), None)


# Steps of the published description


def list_steps(app_state: AppState, path: dict[str, str], parameters: Paged) -> StepList:
    """Return a page of the lines that `steps.jsonl` has for a session."""
    with open_session_by_key(app_state, path["key"]) as opened_session:
        key, steps = opened_session.session_ref.key, published_steps(opened_session.view.session)
        name = f"steps {key}"
        position = read_cursor(name, parameters, 1)
        start = 0 if position is None else require_integers(position)[0]
        page = [step for step in steps if step.step_id > start][: parameters.limit]
        more = bool(page) and page[-1].step_id < len(steps)
        return StepList(
            session=key,
            steps=page,
            total=len(steps),
            next_cursor=make_cursor(name, parameters, page[-1].step_id) if more else None,
        )


def published_steps(session: sessions.Session) -> list[Step]:
    """Return the steps of a session, kept while it is open and has not changed."""
    steps = _steps_cache.get(session)
    if steps is None:
        steps = _steps_cache[session] = msgspec.convert(session_steps(session), list[Step])
    return steps
