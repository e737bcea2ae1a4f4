"""Runs an agent from beginning to end without a screen: the whole of `steno chat -p`."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final

import msgspec

from steno.agent.events import Ended, Event, Noticed
from steno.agent.gates import Gate, Gates
from steno.agent.headless import Printer
from steno.agent.loop import Agent, Model
from steno.agent.meter import Price
from steno.agent.sessions import Work, new
from steno.agent.shapes import shape_flaw
from steno.agent.slash import CLEAR, told
from steno.agent.start import Options, People, Started, start
from steno.errors import BadRequest, StenoError
from steno.format.values import as_list, as_object
from steno.model.wire import Block
from steno.tools.base import Spec, ToolFailure, ToolResult
from steno.tools.context import ToolContext

__all__ = ["Shape", "lines_of_prompts", "run"]

_NAME: Final = "StructuredOutput"
_CALL_IT: Final = f"Give your answer by calling {_NAME}; nothing else counts."
_ENTRYPOINT: Final = "sdk-cli"
"""How records name the way in where nobody sits at a terminal."""
_NOTHING_DONE: Final = 1
_PATIENCE: Final = 5.0
"""How many seconds are waited for servers that were asked for by name."""
_BY_SIGNAL: Final = 128
_INTERRUPTED: Final = _BY_SIGNAL + signal.SIGINT
_OPEN: Final = {"enabled": False, "kind": None}
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Shape:
    """The tool that takes the answer in the shape that was asked for."""

    def __init__(self, schema: dict[str, Any]) -> None:
        """Take the shape.

        Raises:
            BadRequest: it is not that of an object, which the input of a tool has to be.
        """
        kinds = as_list(schema.get("type", "object")) or [schema.get("type", "object")]
        if "object" not in kinds:
            raise BadRequest("the schema is not that of an object", hint="see --json-schema")
        # The API wants it said.
        schema = {**schema, "type": "object"}
        self.spec = Spec(
            name=_NAME,
            description="Takes your final answer, in the shape that the user asked for.",
            schema=schema,
        )
        self.value: Any = None

    async def run(self, tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        """Keep the answer, if it has the shape."""
        del context, call
        flaw = shape_flaw(self.spec.schema, tool_input)
        if flaw:
            raise ToolFailure(f"The answer was not taken: {flaw}.")
        self.value = tool_input
        return ToolResult("The answer was taken.", tool_input)

    def guarding(self, agent: Agent) -> Gates:
        """Return an agent's gates such that no turn ends without an answer."""
        gates = agent.caller.gates

        async def ask(event: str, facts: dict[str, Any]) -> Gate:
            gate = await gates(event, facts)
            if event == "Stop" and self.value is None and not gate.blocked:
                agent.force(_NAME)
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
    blocks = as_list(content)
    if not content or not (isinstance(content, str) or (blocks and all(map(as_object, blocks)))):
        raise BadRequest("a message of the input has no content")
    return content


class _Run:
    """One run: a session, or, where the user leaves one for another, several."""

    def __init__(
        self,
        options: Options,
        model: Model,
        printer: Printer,
        price: Price,
        shape: Shape | None,
    ) -> None:
        options = msgspec.structs.replace(options, entrypoint=_ENTRYPOINT)
        self._options = options
        if shape is not None:
            more = (*options.extra_tools, shape)
            self._options = msgspec.structs.replace(options, extra_tools=more)
        self._model = model
        self._price = price
        self.printer = printer
        self.shape = shape
        self.started: Started | None = None
        self.codes: list[int] = []
        """The exit code of each turn."""
        self._signal = signal.SIGINT

    def emit(self, event: Event) -> None:
        """Print what happens."""
        if isinstance(event, Ended):
            return
        try:
            self.printer.take(event)
        except BrokenPipeError:
            # Nobody listens any more. The turn ends as it should, and its end finds that out again.
            if self.started is not None:
                self.started.agent.interrupt()

    async def begin(self, work: Work, source: str = "") -> Started:
        """Begin a session: let servers come up, tell hooks, say what there is."""
        options = self._options
        started = start(options, work, self._model, People(emit=self.emit), self._price)
        self.started = started
        started.source = source or started.source
        if self.shape is not None:
            started.agent.caller.gates = self.shape.guarding(started.agent)
        # Nobody is there later to whom they could say what they found.
        started.agent.waits = started.agents.wait
        await started.servers.settle(0 if not options.mcp_config else _PATIENCE)
        for each in started.servers.states():
            if each.status == "failed":
                self.emit(Noticed(f"the server {each.name} is not there: {each.error}", "warning"))
            elif each.status == "pending" and options.mcp_config:
                self.emit(Noticed(f"the server {each.name} has not answered yet", "warning"))
        await started.open()
        self.printer.begin(_facts(started, options), work.id)
        return started

    async def work_through(self, work: Work, prompts: AsyncIterator[str | list[Block]]) -> None:
        """Take all prompts to their ends."""
        started = await self.begin(work)
        async for prompt in prompts:
            call = told(prompt)
            if call is None or call[0] != CLEAR:
                await self.turn(started, prompt)
                continue
            await started.close(CLEAR)
            started = await self.begin(new(self._options.config, self._options.cwd), CLEAR)
            self.codes.append(self.printer.end(await started.slash.cleared()))

    def break_in(self, working: "asyncio.Future[None]", number: signal.Signals) -> None:
        """End the turn that is at work, which then tells its end; where none is, end everything."""
        self._signal = number
        agent = self.started.agent if self.started is not None else None
        if agent is not None and agent.is_working:
            agent.interrupt()
        else:
            working.cancel()

    async def close(self) -> None:
        """Leave nothing behind that runs."""
        if self.started is not None:
            await self.started.close()

    @property
    def code(self) -> int:
        """The exit code of all: of the last that ended badly, if one did."""
        if not self.codes:
            return _NOTHING_DONE
        code = next(filter(None, reversed(self.codes)), 0)
        # Whoever sent a signal is told which one ended it.
        return _BY_SIGNAL + self._signal if code == _INTERRUPTED else code

    async def turn(self, started: Started, prompt: str | list[Block]) -> None:
        """Take one prompt to its end."""
        if self.shape is not None:
            self.shape.value = None
        try:
            ended = await started.hear(prompt)
        except StenoError as error:
            # A full disk, mostly: the session cannot be written, but the result can be told.
            self.printer.fail(started.agent.account("error", str(error)))
            raise
        if self.shape is not None:
            self.printer.structured(self.shape.value)
        self.codes.append(self.printer.end(ended))


def _facts(started: Started, options: Options) -> dict[str, Any]:
    """Return what a session begins with."""
    agent, confined = started.agent, started.confined
    return {
        "cwd": agent.caller.context.cwd,
        "original_cwd": options.cwd,
        "additional_directories": list(options.folders),
        "apiKeySource": options.key_source,
        "tools": [tool.spec.name for tool in agent.caller.tools],
        "mcp_servers": [
            {"name": each.name, "status": each.status} for each in started.servers.states()
        ],
        "model": agent.course.model,
        "permissionMode": started.mode(),
        "agents": started.agents.kinds,
        "skills": started.slash.skills,
        "output_style": started.settings.output_style or "default",
        "slash_commands": started.slash.names,
        "sandbox": _OPEN if confined is None else confined.facts(),
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
    one = _Run(options, model, printer, price, shape)
    working = asyncio.ensure_future(one.work_through(work, prompts))
    with _interruptible(partial(one.break_in, working)):
        try:
            await working
        except asyncio.CancelledError:
            if (outer := asyncio.current_task()) is not None and outer.cancelling():
                raise
            one.codes.append(_INTERRUPTED)
        finally:
            await one.close()
    return one.code


@contextmanager
def _interruptible(interrupt: Callable[[signal.Signals], None]) -> Generator[None]:
    """Let Ctrl-C, TERM and a terminal that closes break into the turn, which ends as it should."""
    loop = asyncio.get_running_loop()
    # What `nohup` had ignored stays so.
    heard = [each for each in _SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]
    for number in heard:
        # Not in a thread, and not everywhere.
        with suppress(NotImplementedError, ValueError, RuntimeError):
            loop.add_signal_handler(number, interrupt, number)
    try:
        yield
    finally:
        for number in heard:
            with suppress(NotImplementedError, ValueError, RuntimeError):
                loop.remove_signal_handler(number)
