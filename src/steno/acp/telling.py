"""What the engine does, as the updates that a client is sent."""

from collections.abc import Iterator
from typing import Any, Final

from acp import helpers
from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    AvailableCommandsUpdate,
    CurrentModeUpdate,
    ToolCallProgress,
    ToolCallStart,
    UserMessageChunk,
)

from steno.acp import calls
from steno.acp.todos import Todos
from steno.agent import events
from steno.agent.events import Event
from steno.model.wire import Response

__all__ = ["Telling", "Update", "begun", "ended", "note"]

Update = (
    AgentMessageChunk
    | AgentPlanUpdate
    | AgentThoughtChunk
    | AvailableCommandsUpdate
    | CurrentModeUpdate
    | ToolCallProgress
    | ToolCallStart
    | UserMessageChunk
)
_PRINTED: Final = 8_000
"""How much of what a command prints is shown while it runs: its end."""
_BROKEN_OFF: Final = "This was broken off."


def note(words: str) -> AgentThoughtChunk:
    """Return a word on how things go, which is nobody's answer."""
    return helpers.update_agent_thought_text(f"{words}\n\n")


def begun(call: dict[str, Any], cwd: str, *, on_disk: bool = True) -> ToolCallStart:
    """Return a call that the model has asked for."""
    return helpers.start_tool_call(
        str(call.get("id")),
        calls.title(call, cwd),
        kind=calls.kind_of(str(call.get("name"))),
        status="pending",
        content=calls.changes(call, cwd, on_disk=on_disk),
        locations=calls.places(call, cwd),
        raw_input=call.get("input"),
    )


def ended(
    call: dict[str, Any], content: str | list[dict[str, Any]], *, failed: bool
) -> ToolCallProgress:
    """Return what came of a call; a change that was made stays as it was shown."""
    name = str(call.get("name"))
    keeps = calls.kind_of(name) == "edit" and not failed
    return helpers.update_tool_call(
        str(call.get("id")),
        status="failed" if failed else "completed",
        content=None if keeps else calls.shown(name, content),
    )


class Telling:
    """Tells what happens in one session."""

    def __init__(self, cwd: str) -> None:
        self.cwd = cwd
        self._open: dict[str, dict[str, Any]] = {}
        """The calls that were told and are not over, by their ids."""
        self._printed: dict[str, str] = {}
        self._todos = Todos()
        self._answered = False
        self.response: Response | None = None
        """The last answer of the turn."""
        self.failed: events.Failed | None = None
        self.kept_out = False
        """Whether a hook kept the prompt from being heard."""

    def begin(self) -> None:
        """Begin a turn."""
        self._answered = self.kept_out = False
        self.response = self.failed = None

    def take(self, event: Event) -> Iterator[Update]:
        """Take one event; yield what the client is told of it."""
        match event:
            case events.Grew("text", text, _):
                self._answered = True
                yield helpers.update_agent_message_text(text)
            case events.Grew("thinking", text, _):
                yield helpers.update_agent_thought_text(text)
            case events.Answered(response, _):
                self.response = response
                yield from self._asked_for(response)
            case events.Within(_, inner):
                yield from self._within(inner)
            case events.Failed():
                self.failed = event
            case events.KeptOut():
                self.kept_out = True
            case events.Ended():
                yield from self._over(event)
            case _:
                yield from self._worked(event)
                yield from self._noted(event)

    def _asked_for(self, response: Response) -> Iterator[Update]:
        for block in response.blocks:
            if block.get("type") == "tool_use":
                self._open[str(block.get("id"))] = block
                yield begun(block, self.cwd)

    def _within(self, event: Event) -> Iterator[Update]:
        """Yield what a sub-agent does; what it says it says to who asked it."""
        match event:
            case events.Answered(response, _):
                yield from self._asked_for(response)
            case events.Within(_, inner):
                yield from self._within(inner)
            case _:
                yield from self._worked(event)

    def _worked(self, event: Event) -> Iterator[Update]:
        match event:
            case events.ToolStarted(call):
                yield from self._started(call)
            case events.ToolGrew(call, text):
                yield from self._grew(call, text)
            case events.ToolEnded(call, outcome, _, _):
                self._drop(str(call.get("id")))
                yield ended(call, outcome.content, failed=outcome.is_error)
                plan = None if outcome.is_error else self._todos.take(call, outcome.detail)
                if plan is not None:
                    yield plan
            case _:
                pass

    def _started(self, call: dict[str, Any]) -> Iterator[Update]:
        name = str(call.get("id"))
        told = self._open.get(name)
        self._open[name] = call
        if told is None:
            yield begun(call, self.cwd)
        elif told.get("input") != call.get("input"):
            yield ToolCallProgress(
                session_update="tool_call_update",
                **calls.wanted(call, self.cwd).model_dump(exclude_none=True),
            )
        yield helpers.update_tool_call(name, status="in_progress")

    def _grew(self, name: str, text: str) -> Iterator[Update]:
        call = self._open.get(name)
        if call is None:
            return
        self._printed[name] = (self._printed.get(name, "") + text)[-_PRINTED:]
        content = calls.shown(str(call.get("name")), self._printed[name])
        yield helpers.update_tool_call(name, status="in_progress", content=content)

    def _noted(self, event: Event) -> Iterator[Update]:
        match event:
            case events.Noticed(words, _):
                yield note(words)
            case events.Retrying(attempt, of, delay, error):
                yield note(f"{error}; try {attempt} of {of} in {delay:.1f} s")
            case events.Compacted(_, before, after, _):
                yield note(f"The conversation was compacted: {before} tokens became {after}.")
            case _:
                pass

    def _over(self, event: events.Ended) -> Iterator[Update]:
        """Yield what is left to say at the end of a turn."""
        for call in list(self._open.values()):
            yield ended(call, _BROKEN_OFF, failed=True)
        self._open.clear()
        self._printed.clear()
        # What no model said has not been told yet: the figures of a command, the words of a hook.
        if event.text and not self._answered and event.reason != "error":
            yield helpers.update_agent_message_text(event.text)

    def _drop(self, name: str) -> None:
        self._open.pop(name, None)
        self._printed.pop(name, None)
