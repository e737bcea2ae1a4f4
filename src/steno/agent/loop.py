"""The agent loop: sends requests to the model and executes tool calls until the turn is complete.

Everything that happens is emitted as an event, and every message is recorded by the conversation
before it is used. The loop does not depend on a terminal, settings files or the command line.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Final, Protocol

import msgspec

from steno.agent import events
from steno.agent.config.models import api_model_name, can_enable_thinking
from steno.agent.context.token_usage import UsageMeter, message_text
from steno.agent.conversation import Conversation, sanitize_response
from steno.agent.events import EndReason, Event
from steno.agent.hooks.dispatcher import HookOutcome
from steno.agent.hooks.hook_events import HookEvent, TurnEvents
from steno.agent.recorder import AttachmentRecord, save_error_message, session_slug
from steno.agent.stream_accumulator import StreamAccumulator, retry_record_fields
from steno.agent.tool_executor import ToolExecutor, group_calls
from steno.agent.user_input import PromptInput, UserInput, submit_companion, submit_prompt
from steno.agent.writable_session import git_branch, reload_conversation
from steno.errors import Busy, StenoError
from steno.llm import stream_decoder as streamed
from steno.llm.messages_api import ApiError, Block, Request, Response, StreamInterrupted
from steno.tools.protocol import ToolResult


class ModelClient(Protocol):
    """Sends requests to a model."""

    def stream(self, request: Request) -> AsyncGenerator[streamed.StreamEvent, None]:
        """Stream the response to a request."""
        ...


class RequestConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Parameters shared by all requests of a conversation."""

    model: str
    max_tokens: int = 32_000
    system: tuple[Block, ...] = ()
    thinking: dict[str, Any] | None = None
    effort: str = ""
    """The effort level; empty for the default of the model."""


class Compactor(Protocol):
    """Reduces the context size when the context window fills up."""

    async def __call__(self, agent: "Agent") -> None:
        """Compact the conversation if it is too large."""
        ...

    async def make_room(self, agent: "Agent") -> bool:
        """Compact the conversation regardless of its estimated size; return whether it was compacted."""
        ...


_MAX_CONTINUATIONS: Final = 3
_RESUME_AFTER_CUT: Final = "The response above was cut off by a connection error. Continue exactly where it ends."
_CONTINUE_PROMPTS: Final = {
    "max_tokens": "The response reached its length limit. Continue exactly where it ends.",
    "pause_turn": "",
}
"""Stop reasons after which the turn continues, and the prompts for it."""
_INTERRUPTED_RESULT: Final = "The user interrupted the call before it was complete."
_TIMED_OUT_RESULT: Final = "The time limit of the turn was reached before the call was complete."


class _ContinuationCounts:
    """Numbers of continuations of a turn, by cause."""

    def __init__(self) -> None:
        self.continuations = 0
        self.stop_blocks = 0


class Agent:
    """A conversation with a model that can use tools."""

    def __init__(
        self,
        model: ModelClient,
        conversation: Conversation,
        executor: ToolExecutor,
        request_config: RequestConfig,
        meter: UsageMeter,
        *,
        compactor: Compactor | None = None,
    ) -> None:
        self.model = model
        self.conversation = conversation
        self.executor = executor
        self.request_config = request_config
        self.meter = meter
        self.compactor = compactor
        self.turn_events = TurnEvents()
        """The hook events at the start and end of a turn."""
        self.pending_attachments: list[AttachmentRecord] = []
        """Attachments to record before the next prompt."""
        self.wait_for_background: Callable[[float | None], Awaitable[None]] | None = None
        """Waits until a background sub-agent ends, at most the given number of seconds."""
        self.piped_input = ""
        """Piped input at the end of a prompt, which the user did not type."""
        self.interactive = False
        """Whether the agent runs in a terminal; the session then records the duration of turns."""
        self.count_pending_agents: Callable[[], int] = lambda: 0
        """Returns the number of sub-agents running in the background."""
        self.subagent_types: tuple[str, ...] = ()
        """The sub-agent types that can be mentioned."""
        self.inbox: list[tuple[str, bool]] = []
        """Texts to submit at the next step: (text, whether it is not from the user)."""
        self._turn_task: asyncio.Task[Any] | None = None
        self._waiting_for_background = False
        """Whether the turn is complete except for background sub-agents."""
        self._timed_out = False
        """Whether the time limit was reached before the end of the turn."""
        self._accumulator: StreamAccumulator | None = None
        self._was_cut_off = False
        self._invalid_inputs: dict[str, str] = {}
        self._forced_tool = ""
        self._thinking_calls: set[str] = set()
        """IDs of the calls of this turn that were requested with thinking enabled."""

    @property
    def emit(self) -> Callable[[Event], None]:
        """The receiver of events."""
        return self.executor.emit

    @property
    def is_running(self) -> bool:
        """Whether a turn is running."""
        return self._turn_task is not None

    def interrupt(self) -> None:
        """Interrupt the running turn."""
        if self._turn_task is not None:
            self._turn_task.cancel()

    async def run_turn(self, prompt: PromptInput) -> events.TurnEnded:
        """Run a turn for a prompt. Always ends with a `TurnEnded` event."""
        return await self.run_as_turn(self._run_prompt(prompt))

    async def run_as_turn(self, coroutine: Coroutine[Any, Any, tuple[EndReason, str]]) -> events.TurnEnded:
        """Run a coroutine as a turn that can be interrupted."""
        self.meter.begin_turn()
        self._thinking_calls.clear()
        if self.conversation.recorder.save_error is not None and not self._reload_conversation():
            coroutine.close()
            return self._end_turn("not_saved", "")
        self._turn_task = asyncio.ensure_future(coroutine)
        timer = self._start_timer()
        try:
            reason, text = await self._wait_for_turn(self._turn_task)
        except StenoError:
            if self.conversation.recorder.save_error is None:
                raise
            reason, text = "not_saved", ""
        finally:
            self._turn_task = None
            if timer is not None:
                timer.cancel()
        return self._end_turn(reason, text)

    async def _wait_for_turn(self, turn_task: "asyncio.Task[tuple[EndReason, str]]") -> tuple[EndReason, str]:
        try:
            return await turn_task
        except asyncio.CancelledError:
            current_task = asyncio.current_task()
            is_cancelled = current_task is not None and current_task.cancelling() > 0
            reason: EndReason = "max_time" if self._timed_out and not is_cancelled else "interrupted"
            try:
                self._record_interruption()
            except StenoError:
                if not is_cancelled or self.conversation.recorder.save_error is None:
                    raise
            if is_cancelled:
                self._end_turn(reason, "")
                raise
            return reason, ""
        except ApiError as error:
            text = f"API Error: {error}"
            uuid = self.conversation.add_failure(text, kind=error.category, status=error.status, error_type=error.kind)
            self.emit(events.RequestFailed(text, error, uuid))
            fields = {"error": error.category, "last_assistant_message": text}
            await self.executor.hooks.dispatch(HookEvent("StopFailure", fields))
            return "error", text

    def _reload_conversation(self) -> bool:
        """Reload the conversation from its file after a failed write; return False if that fails.

        A file changed by another program is not reloaded here: the user decides what to do.
        """
        if isinstance(self.conversation.recorder.save_error, Busy) or self.turn_events.agent_facts:
            return False
        try:
            self.meter.context_size = reload_conversation(self.conversation)
        except (StenoError, OSError):
            return False
        return True

    def _start_timer(self) -> asyncio.TimerHandle | None:
        """Start the timer that interrupts the turn at its time limit."""
        self._timed_out = self._waiting_for_background = False
        seconds_left = self.meter.seconds_left
        if seconds_left is None:
            return None
        return asyncio.get_running_loop().call_later(seconds_left, self._on_timeout)

    def _on_timeout(self) -> None:
        if not self._waiting_for_background:
            self._timed_out = True
            self.interrupt()

    def _end_turn(self, reason: EndReason, text: str) -> events.TurnEnded:
        self.executor.end_turn()
        recorder, problem = self.conversation.recorder, ""
        if recorder.save_error is None:
            try:
                self._record_turn_duration(reason)
                self.conversation.end_turn()
            except StenoError:
                if recorder.save_error is None:
                    raise
        if recorder.save_error is not None:
            reason, problem = "not_saved", save_error_message(recorder.save_error)
            self._accumulator = None
            # Flush what was saved before the failure, if the disk permits.
            with suppress(StenoError):
                recorder.sync()
            self._reload_conversation()
        elif recorder.take_recreated():
            message = f"{recorder.path} was deleted; its records were written again"
            self.emit(events.Notice(message, "warning"))
        ended = self.build_turn_ended(reason, text, problem)
        self.emit(ended)
        return ended

    def _record_turn_duration(self, reason: EndReason) -> None:
        """Record the duration of the turn.

        Like Claude Code, not after interruptions and not for commands that send no request.
        """
        if self.interactive and self.meter.requests and reason != "interrupted":
            self.conversation.add_turn_duration(self.meter.seconds, pending_agents=self.count_pending_agents())

    def build_turn_ended(self, reason: EndReason, text: str, problem: str = "") -> events.TurnEnded:
        """Return the result of a turn that ends now."""
        meter = self.meter
        return events.TurnEnded(
            reason=reason,
            text=text,
            problem=problem,
            requests=meter.requests,
            seconds=meter.seconds,
            usage=dict(meter.usage),
            cost=meter.cost,
            leaf=self.conversation.recorder.leaf,
            api_seconds=meter.api_seconds,
            models={name: dict(usage) for name, usage in meter.usage_by_model.items()},
        )

    async def _run_prompt(self, prompt: PromptInput) -> tuple[EndReason, str]:
        if callable(prompt):
            prompt = await prompt()
        user_input = prompt if isinstance(prompt, UserInput) else UserInput(content=prompt)
        refusal = await submit_prompt(self, user_input)
        if refusal:
            return "refused", refusal
        counts = _ContinuationCounts()
        while (limit := self.meter.reached_limit()) is None:
            response = await self._request_response()
            reason = await self._handle_response(response, counts)
            if reason is not None:
                return reason, message_text(response.blocks)
        return limit, ""

    async def _handle_response(self, response: Response, counts: "_ContinuationCounts") -> EndReason | None:
        """Execute the tool calls of a response; return why the turn ends, or None."""
        calls = _tool_calls(response)
        if calls:
            ends_turn = await self._execute_calls(calls)
            await self._submit_inbox()
            return "refused" if ends_turn else None
        if counts.continuations < _MAX_CONTINUATIONS and (
            response.stop_reason in _CONTINUE_PROMPTS or self._was_cut_off
        ):
            counts.continuations += 1
            continue_prompt = _RESUME_AFTER_CUT if self._was_cut_off else _CONTINUE_PROMPTS[response.stop_reason or ""]
            # After an empty response the request is repeated unchanged.
            if continue_prompt and response.blocks:
                self.conversation.add_prompt(continue_prompt, meta=True)
            return None
        if self.wait_for_background is not None and not self.inbox:
            # The answer is complete: waiting for sub-agents must not turn it into a timeout.
            self._waiting_for_background = True
            await self.wait_for_background(self.meter.seconds_left)
            self._waiting_for_background = False
        if await self._submit_inbox():
            return None
        answer = message_text(response.blocks)
        event = self.turn_events.end_event(answer, already_blocked=counts.stop_blocks > 0)
        outcome = await self.executor.hooks.dispatch(event)
        self.emit_notices(outcome)
        is_blocked = outcome.blocked and not outcome.ends_turn and counts.stop_blocks < _MAX_CONTINUATIONS
        self.conversation.add_attachments(record for record in outcome.records if not record.subtype)
        if is_blocked:
            counts.stop_blocks += 1
            self.conversation.add_prompt(outcome.reason, meta=True)
        self.conversation.add_attachments(each for each in outcome.records if each.subtype)
        return None if is_blocked else _end_reason(response)

    # Messages

    async def _submit_inbox(self) -> bool:
        """Submit the texts in the inbox; return whether there were any."""
        count = len(self.inbox)
        for _ in range(count):
            text, meta = self.inbox[0]
            uuid = self.conversation.add_prompt(text, meta=meta)
            # Removed only after it was saved.
            del self.inbox[0]
            if not meta:
                await self.executor.checkpointer.begin(uuid)
                self.emit(events.PromptSubmitted(text, uuid))
        return bool(count)

    def emit_notices(self, outcome: HookOutcome) -> None:
        """Show the messages of hooks to the user."""
        for notice in outcome.notices:
            self.emit(events.Notice(notice))

    # Requests

    def build_request(self) -> Request:
        """Return the next request; its beginning stays byte-identical, so that the prompt cache applies."""
        config = self.request_config
        tool_choice = {"type": "tool", "name": self._forced_tool} if self._forced_tool else None
        return Request(
            model=api_model_name(config.model),
            max_tokens=config.max_tokens,
            messages=self.conversation.wire(),
            system=list(config.system),
            tools=self.executor.tools.to_api(),
            tool_choice=tool_choice,
            thinking=self._thinking_parameter(),
            output_config={"effort": config.effort} if config.effort else None,
        )

    def _request_record_fields(self) -> dict[str, str]:
        effort = self.request_config.effort
        effort_fields = {"effort": effort, "perTurnEffort": effort} if effort else {}
        return {"requestedModel": api_model_name(self.request_config.model), **effort_fields}

    def force_tool(self, tool: str) -> None:
        """Force the next response to call a tool."""
        self._forced_tool = tool

    def _thinking_parameter(self) -> dict[str, Any] | None:
        thinking = self.request_config.thinking
        # The API rejects thinking with a forced tool call.
        if thinking is None or self._forced_tool:
            return None
        if thinking.get("type") != "enabled":
            return thinking
        return thinking if can_enable_thinking(self.conversation.messages(), self._thinking_calls) else None

    async def _request_response(self) -> Response:
        """Record and return the next response; if the context window overflows, compact and retry."""
        if self.compactor is None:
            return await self._stream_response()
        await self.compactor(self)
        try:
            return await self._stream_response()
        except ApiError as error:
            # The API reports an overflow that the estimate missed.
            if not error.is_context_overflow or not await self.compactor.make_room(self):
                raise
        return await self._stream_response()

    async def _stream_response(self) -> Response:
        """Record and return a response; after an interruption, only the part that was received."""
        request = self.build_request()
        self.emit(events.RequestSent(request.model, len(request.messages)))
        self.meter.requests += 1
        self._accumulator = StreamAccumulator(self.emit, self.record_retry)
        self._was_cut_off = False
        try:
            with self.meter.measure_api_time():
                response = await self._accumulator.read(self.model.stream(request))
        except StreamInterrupted as cut:
            response = msgspec.structs.replace(cut.partial, stop_reason=None)
            self._was_cut_off = True
        self._invalid_inputs.update(self._accumulator.invalid_inputs)
        timings = self._accumulator.timings
        self._accumulator, self._forced_tool = None, ""
        response = sanitize_response(response)
        if request.thinking is not None:
            self._thinking_calls.update(str(tool_call["id"]) for tool_call in _tool_calls(response))
        self.meter.add_response(response.model, response.usage)
        uuids = self.conversation.add_response(response, timings, **self._request_record_fields())
        self.emit(events.ResponseReceived(response, uuids))
        return response

    def record_retry(self, event: streamed.RetryScheduled) -> None:
        """Record that a request is repeated."""
        recorder = self.conversation.recorder
        recorder.write(recorder.composer.note("api_error", level="error", **retry_record_fields(event)))

    # Tools

    async def _execute_calls(self, calls: list[Block]) -> bool:
        """Execute the calls of a response and record their results; return whether a hook ends the turn."""
        context: list[str] = []
        batch: list[dict[str, Any]] = []
        ends_turn = False
        for group in group_calls(calls, self.executor.tools):
            results = await self._execute_group(group)
            for call, (result, hook_outcome) in zip(group, results, strict=True):
                context += hook_outcome.context
                if hook_outcome.blocked and hook_outcome.reason and not (hook_outcome.records or result.is_error):
                    context.append(hook_outcome.reason)
                ends_turn = ends_turn or hook_outcome.ends_turn
                batch.append(
                    {
                        "tool_name": call.get("name"),
                        "tool_input": call.get("input"),
                        "tool_use_id": call.get("id"),
                        "tool_response": result.content,
                    }
                )
        hook_outcome = await self.executor.hooks.dispatch(HookEvent("PostToolBatch", {"tool_calls": batch}))
        self.emit_notices(hook_outcome)
        self.conversation.add_attachments(hook_outcome.records)
        ends_turn = ends_turn or hook_outcome.ends_turn or hook_outcome.blocked
        for companion in self.executor.take_companions():
            await submit_companion(self, companion)
        for context_text in context:
            self.conversation.add_prompt(context_text, meta=True)
        return ends_turn

    async def _execute_group(self, calls: list[Block]) -> list[tuple[ToolResult, HookOutcome]]:
        """Execute calls in parallel and record their results; after an interruption, only those of completed calls."""
        started_at = time.monotonic()
        tasks = [
            asyncio.ensure_future(self.executor.execute(call, self._invalid_inputs.pop(str(call["id"]), None)))
            for call in calls
        ]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
            cwd = self.executor.context.cwd
            self.conversation.recorder.set_place(cwd, git_branch(cwd))
            for call, task in zip(calls, tasks, strict=True):
                if not task.cancelled() and task.exception() is None:
                    self._record_result(call, *task.result(), time.monotonic() - started_at)
        return [work.result() for work in tasks]

    def _record_result(self, call: Block, result: ToolResult, hook_outcome: HookOutcome, seconds: float) -> None:
        call_id = str(call["id"])
        if self.executor.permission_checker.mode == "plan" and not self.turn_events.agent_facts:
            recorder = self.conversation.recorder
            recorder.set_slug(session_slug(recorder.session_id))
        self.conversation.add_attachments(record for record in hook_outcome.records if record.call_id)
        uuid = self.conversation.add_result(call_id, result, **self.executor.result_fields(call_id))
        self.conversation.add_attachments(each for each in hook_outcome.records if not each.call_id)
        self.emit(events.ToolEnded(call, result, seconds, uuid))
        self.emit_notices(hook_outcome)

    def _record_interruption(self) -> None:
        """Record the partial response, and a result for every open call."""
        accumulator, self._accumulator = self._accumulator, None
        if accumulator is not None:
            self.conversation.add_response(
                sanitize_response(accumulator.partial_response()), None, **self._request_record_fields()
            )
        open_calls = self.conversation.open_calls
        result_text = _TIMED_OUT_RESULT if self._timed_out else _INTERRUPTED_RESULT
        for call in open_calls:
            self.conversation.add_result(str(call["id"]), ToolResult(result_text, is_error=True))
        if self._timed_out:
            return
        self.conversation.add_interruption(calls=bool(open_calls))
        self.emit(events.Interrupted("tools" if open_calls else "answer"))


def _tool_calls(response: Response) -> list[Block]:
    return [block for block in response.blocks if block.get("type") == "tool_use"]


def _end_reason(response: Response) -> EndReason:
    if response.stop_reason == "refusal":
        return "refused"
    return "done" if response.blocks else "empty"
