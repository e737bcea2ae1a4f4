"""Runs an agent from beginning to end without a screen: the whole of `steno chat -p`."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager, suppress
from typing import Any, Final

import msgspec

from steno.agent.events import Ended, Event
from steno.agent.gates import Gate, Gates
from steno.agent.headless import EXIT_CODES, Printer
from steno.agent.loop import Model
from steno.agent.meter import Price
from steno.agent.sessions import Work
from steno.agent.start import Options, People, Started, start
from steno.errors import BadRequest
from steno.format.values import as_list, as_object
from steno.model.wire import Block
from steno.tools.base import Around, Outcome, Spec

__all__ = ["Shape", "lines_of_prompts", "run"]

_NAME: Final = "StructuredOutput"
_CALL_IT: Final = f"Give your answer by calling {_NAME}; nothing else counts."
_NOTHING_DONE: Final = 1
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


class Shape:
    """The tool that takes the answer in the shape that was asked for."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self.spec = Spec(
            name=_NAME,
            description="Takes your final answer, in the shape that the user asked for.",
            schema=schema,
        )
        self.value: Any = None

    async def run(self, given: dict[str, Any], around: Around, call: str) -> Outcome:
        """Keep the answer."""
        del around, call
        self.value = given
        return Outcome("The answer was taken.", given)

    def guarding(self, gates: Gates) -> Gates:
        """Return gates that let no turn end without an answer."""

        async def ask(event: str, facts: dict[str, Any]) -> Gate:
            gate = await gates(event, facts)
            if event == "Stop" and self.value is None and not gate.blocked:
                return Gate(blocked=True, reason=_CALL_IT)
            return gate

        return ask


def lines_of_prompts(line: str) -> str | list[Block] | None:
    """Return the prompt on a line of `--input-format stream-json`; None for other kinds of lines.

    Raises:
        BadRequest: it is no JSON, or no message of the user's.
    """
    if not line.strip():
        return None
    try:
        value: Any = msgspec.json.decode(line)
    except msgspec.DecodeError:
        raise BadRequest(f"a line of the input is no JSON: {line.strip()[:80]}") from None
    told = as_object(value) or {}
    if told.get("type") != "user":
        return None
    content: Any = (as_object(told.get("message")) or {}).get("content")
    if not content or not (isinstance(content, str) or as_list(content)):
        raise BadRequest("a message of the input has no content")
    return content


class _Run:
    """One run."""

    def __init__(self, started: Started, printer: Printer, shape: Shape | None) -> None:
        self.started = started
        self.printer = printer
        self.shape = shape

    async def turn(self, prompt: str | list[Block]) -> int:
        """Take one prompt to its end; return the exit code."""
        if self.shape is not None:
            self.shape.value = None
        ended = await self.started.agent.turn(prompt)
        if self.shape is not None:
            self.printer.structured(self.shape.value)
        self.printer.end(ended)
        return EXIT_CODES[ended.reason]

    def facts(self) -> dict[str, Any]:
        """Return what a session begins with."""
        agent = self.started.agent
        return {
            "cwd": agent.caller.around.cwd,
            "tools": [tool.spec.name for tool in agent.caller.tools],
            "mcp_servers": [
                {"name": each.name, "status": each.status} for each in self.started.servers.states()
            ],
            "model": agent.course.model,
        }


async def run(
    options: Options,
    work: Work,
    model: Model,
    prompts: AsyncIterator[str | list[Block]],
    printer: Printer,
    *,
    price: Price,
    shape: Shape | None = None,
) -> int:
    """Run prompts one after the other; return the exit code of the last that ended badly, else 0."""

    def emit(event: Event) -> None:
        if not isinstance(event, Ended):
            printer.take(event)

    if shape is not None:
        options = msgspec.structs.replace(options, extra_tools=(*options.extra_tools, shape))
    started = start(options, work, model, People(emit=emit), price)
    if shape is not None:
        started.agent.caller.gates = shape.guarding(started.agent.caller.gates)
    one = _Run(started, printer, shape)
    code = _NOTHING_DONE
    with _interruptible(started.agent.interrupt):
        try:
            await started.servers.settle(0 if not options.mcp_config else 5.0)
            printer.begin(one.facts())
            async for prompt in prompts:
                code = await one.turn(prompt)
        finally:
            await started.close()
    return code


@contextmanager
def _interruptible(interrupt: Callable[[], None]) -> Generator[None]:
    """Let Ctrl-C and TERM break into the turn, which then ends as it should."""
    loop = asyncio.get_running_loop()
    for number in _SIGNALS:
        # Not in a thread, and not everywhere.
        with suppress(NotImplementedError, ValueError, RuntimeError):
            loop.add_signal_handler(number, interrupt)
    try:
        yield
    finally:
        for number in _SIGNALS:
            with suppress(NotImplementedError, ValueError, RuntimeError):
                loop.remove_signal_handler(number)
