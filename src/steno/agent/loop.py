"""The loop: ask the model, make the calls it wants, give it the results, until it has answered.

Everything it does goes out as events, and everything that is said goes through the conversation,
which writes it down first. It knows no screen, no settings files and no command line.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

import msgspec

from steno.agent import events
from steno.agent.admission import accompany, admit
from steno.agent.branch import git_branch
from steno.agent.calls import Caller, grouped
from steno.agent.conversation import Conversation
from steno.agent.course import Course, Fitting, Model
from steno.agent.events import Event, Reason
from steno.agent.gates import Bounds, Gate, Kept, failure_name, is_too_long, told_of
from steno.agent.hearing import Hearing, retry_fields
from steno.agent.meter import Meter
from steno.agent.models import bare_model
from steno.agent.recorder import save_problem
from steno.agent.said import Prompt, Said
from steno.agent.sayable import sayable_response
from steno.agent.sessions import reload
from steno.agent.sizes import text_of
from steno.agent.slugs import session_slug
from steno.agent.thinking import may_think
from steno.errors import Busy, StenoError
from steno.model import events as streamed
from steno.model.wire import ApiError, Block, Request, Response, StreamCut
from steno.tools.base import ToolResult

__all__ = ["Agent", "Course", "Fitting", "Model"]

_NUDGES: Final = 3
_CUT: Final = "Your answer above was cut off on its way. Go on exactly where it ends."
_NUDGED: Final = {
    "max_tokens": "Your answer reached the limit of its length. Go on exactly where it ends.",
    "pause_turn": "",
}
"""The reasons to stop after which the model is to go on, and what it is told."""
_NOT_DONE: Final = "The user broke in before this was done."
_TOO_LATE: Final = "The time was up before this was done."


class _Held:
    """How often a turn was kept from ending."""

    def __init__(self) -> None:
        self.nudges = 0
        self.stops = 0


class Agent:
    """One conversation with a model that may use tools."""

    def __init__(
        self,
        model: Model,
        talk: Conversation,
        caller: Caller,
        course: Course,
        meter: Meter,
        *,
        fit: Fitting | None = None,
    ) -> None:
        self.model = model
        self.talk = talk
        self.caller = caller
        self.course = course
        self.meter = meter
        self.fit = fit
        self.bounds = Bounds()
        """The events at which its turns begin and end."""
        self.ahead: list[Kept] = []
        """What the session keeps before the next prompt."""
        self.waits: Callable[[float | None], Awaitable[None]] | None = None
        """Waits, so many seconds at most, until somebody in the background has something to say."""
        self.piped = ""
        """What stands behind the user's words in a prompt but is not theirs."""
        self.interactive = False
        """Whether somebody sits at a terminal; then the session records how long turns took."""
        self.pending_agents: Callable[[], int] = lambda: 0
        """Says how many sub-agents are at work in the background."""
        self.kinds: tuple[str, ...] = ()
        """The kinds of sub-agents that can be named."""
        self.inbox: list[tuple[str, bool]] = []
        """What is to be said at the next chance: (words, whether nobody said them)."""
        self._working: asyncio.Task[Any] | None = None
        self._answered = False
        """Whether all that the turn is still waiting for is somebody in the background."""
        self._late = False
        """Whether the time was up before the turn was over."""
        self._hearing: Hearing | None = None
        self._was_cut = False
        self._bad_inputs: dict[str, str] = {}
        self._forced = ""
        self._thought: set[str] = set()
        """The calls of this turn that were asked for with thinking on."""

    @property
    def emit(self) -> Callable[[Event], None]:
        """Where events go."""
        return self.caller.emit

    @property
    def is_working(self) -> bool:
        """Whether a turn is under way."""
        return self._working is not None

    def interrupt(self) -> None:
        """Break in: the turn ends at once, whatever it is at."""
        if self._working is not None:
            self._working.cancel()

    async def turn(self, prompt: Prompt) -> events.Ended:
        """Take a prompt to its answer. It always ends with an `Ended`, whatever happens."""
        return await self.work(self._turn(prompt))

    async def work(self, doing: Coroutine[Any, Any, tuple[Reason, str]]) -> events.Ended:
        """Do something that can be broken into, as a turn of its own."""
        self.meter.begin()
        self._thought.clear()
        if self.talk.recorder.problem is not None and not self._reloaded():
            doing.close()
            return self._end("not_saved", "")
        self._working = asyncio.ensure_future(doing)
        alarm = self._set_alarm()
        try:
            reason, text = await self._outcome(self._working)
        except StenoError:
            if self.talk.recorder.problem is None:
                raise
            reason, text = "not_saved", ""
        finally:
            self._working = None
            if alarm is not None:
                alarm.cancel()
        return self._end(reason, text)

    async def _outcome(self, working: "asyncio.Task[tuple[Reason, str]]") -> tuple[Reason, str]:
        """Wait for a turn; return why it ended and what was said last."""
        try:
            return await working
        except asyncio.CancelledError:
            outer = asyncio.current_task()
            is_ended = outer is not None and outer.cancelling() > 0
            reason: Reason = "max_time" if self._late and not is_ended else "interrupted"
            try:
                self._break_off()
            except StenoError:
                if not is_ended or self.talk.recorder.problem is None:
                    raise
            if is_ended:
                self._end(reason, "")
                raise
            return reason, ""
        except ApiError as error:
            text = f"API Error: {error}"
            kind = failure_name(error)
            uuid = self.talk.failure(text, kind=kind, status=error.status, error_type=error.kind)
            self.emit(events.Failed(text, error, uuid))
            facts = {"error": kind, "last_assistant_message": text}
            await self.caller.gates("StopFailure", facts)
            return "error", text

    def _reloaded(self) -> bool:
        """Load the conversation from its file after a failed write; False where that cannot be.

        A file that another program has changed is not loaded here: the user decides about that.
        """
        if isinstance(self.talk.recorder.problem, Busy) or self.bounds.agent:
            return False
        try:
            self.meter.context = reload(self.talk)
        except (StenoError, OSError):
            return False
        return True

    def _set_alarm(self) -> asyncio.TimerHandle | None:
        """Let the turn be broken off when its time is up, whatever it is at."""
        self._late = self._answered = False
        left = self.meter.left
        if left is None:
            return None
        return asyncio.get_running_loop().call_later(left, self._ring)

    def _ring(self) -> None:
        if not self._answered:
            self._late = True
            self.interrupt()

    def _end(self, reason: Reason, text: str) -> events.Ended:
        self.caller.over()
        recorder, problem = self.talk.recorder, ""
        if recorder.problem is None:
            try:
                self._time_turn(reason)
                self.talk.end_turn()
            except StenoError:
                if recorder.problem is None:
                    raise
        if recorder.problem is not None:
            reason, problem = "not_saved", save_problem(recorder.problem)
            self._hearing = None
            # What was saved before it is promised now, as far as the disk lets us.
            with suppress(StenoError):
                recorder.sync()
            self._reloaded()
        elif recorder.was_recreated():
            words = f"{recorder.path} was deleted; it was written again"
            self.emit(events.Noticed(words, "warning"))
        ended = self.account(reason, text, problem)
        self.emit(ended)
        return ended

    def _time_turn(self, reason: Reason) -> None:
        """Take down how long the turn took, where a terminal would.

        The client does not after an interruption, nor for commands that ask the model nothing.
        """
        if self.interactive and self.meter.requests and reason != "interrupted":
            self.talk.time_turn(self.meter.seconds, pending_agents=self.pending_agents())

    def account(self, reason: Reason, text: str, problem: str = "") -> events.Ended:
        """Return what a turn that ends now has come to."""
        meter = self.meter
        return events.Ended(
            reason=reason,
            text=text,
            problem=problem,
            requests=meter.requests,
            seconds=meter.seconds,
            usage=dict(meter.usage),
            cost=meter.cost,
            leaf=self.talk.recorder.leaf,
            asking=meter.asking,
            models={name: dict(each) for name, each in meter.models.items()},
        )

    async def _turn(self, prompt: Prompt) -> tuple[Reason, str]:
        if callable(prompt):
            prompt = await prompt()
        said = prompt if isinstance(prompt, Said) else Said(content=prompt)
        refusal = await admit(self, said)
        if refusal:
            return "refused", refusal
        held = _Held()
        while (reached := self.meter.reached()) is None:
            response = await self._answer()
            reason = await self._goes_on(response, held)
            if reason is not None:
                return reason, text_of(response.blocks)
        return reached, ""

    async def _goes_on(self, response: Response, held: "_Held") -> Reason | None:
        """Do what a response asks for; return why the turn is over, if it is."""
        calls = _calls(response)
        if calls:
            ends = await self._make(calls)
            await self._empty_inbox()
            return "refused" if ends else None
        if held.nudges < _NUDGES and (response.stop_reason in _NUDGED or self._was_cut):
            held.nudges += 1
            nudge = _CUT if self._was_cut else _NUDGED[response.stop_reason or ""]
            # After an answer of which nothing came the request is simply made again.
            if nudge and response.blocks:
                self.talk.prompt(nudge, meta=True)
            return None
        if self.waits is not None and not self.inbox:
            # The answer is there: that somebody else is late does not make it so.
            self._answered = True
            await self.waits(self.meter.left)
            self._answered = False
        if await self._empty_inbox():
            return None
        answer = text_of(response.blocks)
        gate = await self.caller.gates(*self.bounds.ending(answer, again=held.stops > 0))
        self.tell(gate)
        holds = gate.blocked and not gate.ends and held.stops < _NUDGES
        self.talk.keep(each for each in gate.kept if not each.subtype)
        if holds:
            held.stops += 1
            self.talk.prompt(gate.reason, meta=True)
        self.talk.keep(each for each in gate.kept if each.subtype)
        return None if holds else _reason_for(response)

    # What is said

    async def _empty_inbox(self) -> bool:
        """Say what has come in meanwhile; return whether there was anything."""
        count = len(self.inbox)
        for _ in range(count):
            words, meta = self.inbox[0]
            uuid = self.talk.prompt(words, meta=meta)
            # Only now: what could not be saved is still to be said.
            del self.inbox[0]
            if not meta:
                await self.caller.keeping.begin(uuid)
                self.emit(events.Prompted(words, uuid))
        return bool(count)

    def tell(self, gate: Gate) -> None:
        """Tell the user what those who stepped in have to say."""
        for words in gate.words:
            self.emit(events.Noticed(words))

    # The model

    def request(self) -> Request:
        """Return the next request: its beginning is the same every time, byte for byte."""
        course = self.course
        choice = {"type": "tool", "name": self._forced} if self._forced else None
        return Request(
            model=bare_model(course.model),
            max_tokens=course.max_tokens,
            messages=self.talk.wire(),
            system=list(course.system),
            tools=self.caller.tools.wire(),
            tool_choice=choice,
            thinking=self._thinking(),
            output_config={"effort": course.effort} if course.effort else None,
        )

    def _asked(self) -> dict[str, str]:
        """Return how answers are asked for, as their records tell it."""
        effort = self.course.effort
        told = {"effort": effort, "perTurnEffort": effort} if effort else {}
        return {"requestedModel": bare_model(self.course.model), **told}

    def force(self, tool: str) -> None:
        """Let the next answer be a call of that tool, whatever else the model would like."""
        self._forced = tool

    def _thinking(self) -> dict[str, Any] | None:
        thinking = self.course.thinking
        # The API refuses both at once: a call that is forced leaves nothing to think about.
        if thinking is None or self._forced:
            return None
        if thinking.get("type") != "enabled":
            return thinking
        return thinking if may_think(self.talk.messages(), self._thought) else None

    async def _answer(self) -> Response:
        """Return the next response, recorded; where it does not fit, after room was made for it."""
        if self.fit is None:
            return await self._heard()
        await self.fit(self)
        try:
            return await self._heard()
        except ApiError as error:
            # What the figures did not say the API does.
            if not is_too_long(error) or not await self.fit.make_room(self):
                raise
        return await self._heard()

    async def _heard(self) -> Response:
        """Return a response, recorded; one that was cut off counts as far as it came."""
        request = self.request()
        self.emit(events.Asked(request.model, len(request.messages)))
        self.meter.requests += 1
        self._hearing = Hearing(self.emit, self.note_retry)
        self._was_cut = False
        try:
            with self.meter.waiting():
                response = await self._hearing.listen(self.model.stream(request))
        except StreamCut as cut:
            response = msgspec.structs.replace(cut.partial, stop_reason=None)
            self._was_cut = True
        self._bad_inputs.update(self._hearing.bad_inputs)
        timings = self._hearing.timings
        self._hearing, self._forced = None, ""
        response = sayable_response(response)
        if request.thinking is not None:
            self._thought.update(str(each["id"]) for each in _calls(response))
        self.meter.add(response.model, response.usage)
        uuids = self.talk.response(response, timings, **self._asked())
        self.emit(events.Answered(response, uuids))
        return response

    def note_retry(self, event: streamed.Retrying) -> None:
        """Take down that a request is made again."""
        recorder = self.talk.recorder
        recorder.write(recorder.compose.note("api_error", level="error", **retry_fields(event)))

    # Tools

    async def _make(self, calls: list[Block]) -> bool:
        """Make the calls of a response and record their results; whether a hook ends the turn."""
        context: list[str] = []
        batch: list[dict[str, Any]] = []
        ends = False
        for group in grouped(calls, self.caller.tools):
            done = await self._side_by_side(group)
            for call, (outcome, gate) in zip(group, done, strict=True):
                context += gate.context
                if gate.blocked and gate.reason and not (gate.kept or outcome.is_error):
                    context.append(gate.reason)
                ends = ends or gate.ends
                batch.append(told_of(call, outcome))
        gate = await self.caller.gates("PostToolBatch", {"tool_calls": batch})
        self.tell(gate)
        self.talk.keep(gate.kept)
        ends = ends or gate.ends or gate.blocked
        for companion in self.caller.said():
            await accompany(self, companion)
        for words in context:
            self.talk.prompt(words, meta=True)
        return ends

    async def _side_by_side(self, calls: list[Block]) -> list[tuple[ToolResult, Gate]]:
        """Make calls at once and record their results; broken off, of those that were done."""
        began = time.monotonic()
        works = [
            asyncio.ensure_future(
                self.caller.make(call, self._bad_inputs.pop(str(call["id"]), None))
            )
            for call in calls
        ]
        try:
            await asyncio.gather(*works)
        finally:
            for work in works:
                work.cancel()
            await asyncio.wait(works)
            where = self.caller.context.cwd
            self.talk.recorder.move(where, git_branch(where))
            for call, work in zip(calls, works, strict=True):
                if not work.cancelled() and work.exception() is None:
                    self._take(call, *work.result(), time.monotonic() - began)
        return [work.result() for work in works]

    def _take(self, call: Block, outcome: ToolResult, gate: Gate, seconds: float) -> None:
        name = str(call["id"])
        if self.caller.guard.mode == "plan" and not self.bounds.agent:
            recorder = self.talk.recorder
            recorder.name(session_slug(recorder.session_id))
        self.talk.keep(each for each in gate.kept if each.beside)
        uuid = self.talk.result(name, outcome, **self.caller.beside(name))
        self.talk.keep(each for each in gate.kept if not each.beside)
        self.emit(events.ToolEnded(call, outcome, seconds, uuid))
        self.tell(gate)

    def _break_off(self) -> None:
        """Leave the conversation so that it can go on: what was said stays, calls get a result."""
        hearing, self._hearing = self._hearing, None
        if hearing is not None:
            self.talk.response(sayable_response(hearing.kept()), None, **self._asked())
        waiting = self.talk.open_calls
        words = _TOO_LATE if self._late else _NOT_DONE
        for call in waiting:
            self.talk.result(str(call["id"]), ToolResult(words, is_error=True))
        if self._late:
            return
        self.talk.break_off(calls=bool(waiting))
        self.emit(events.Interrupted("tools" if waiting else "answer"))


def _calls(response: Response) -> list[Block]:
    return [block for block in response.blocks if block.get("type") == "tool_use"]


def _reason_for(response: Response) -> Reason:
    if response.stop_reason == "refusal":
        return "refused"
    return "done" if response.blocks else "empty"
