"""Runs an agent without a terminal (`steno chat -p`), with structured output if requested.

The common keywords of JSON Schema are checked; unknown ones are ignored, as the standard requires.
"""

import asyncio
import re
import signal
from collections.abc import AsyncIterator, Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from typing import Any, Final

import msgspec

from steno.agent.agent_session import AgentSession, build_session
from steno.agent.config.agent_options import AgentCallbacks, AgentOptions
from steno.agent.context.token_usage import PriceResponse
from steno.agent.events import Event, Notice, TurnEnded
from steno.agent.headless_output import HeadlessPrinter
from steno.agent.hooks.dispatcher import HookOutcome, Hooks
from steno.agent.hooks.hook_events import HookEvent
from steno.agent.loop import Agent, ModelClient
from steno.agent.slash_dispatch import CLEAR, parse_slash_prompt
from steno.agent.writable_session import WritableSession, new_session
from steno.errors import BadRequest, StenoError
from steno.format.lenient_json import as_list, as_object
from steno.llm.messages_api import Block
from steno.tools.context import ToolContext
from steno.tools.protocol import ToolFailure, ToolResult, ToolSpec

_MAX_DEPTH: Final = 64
_MAX_CHECKS: Final = 100_000


def schema_violation(schema: dict[str, Any], value: Any) -> str:
    """Return the first violation of the schema by the value; empty if there is none.

    >>> schema_violation({"properties": {"n": {"type": "integer"}}}, {"n": "1"})
    'n must be an integer'
    """
    return next(_SchemaCheck(schema).violations(schema, value, "", 0), "")


# Not jsonschema (infinite recursion on `{"$ref": "#"}`, 200 ms to import, five packages) nor jsonschema-rs
# (15 MB): both reject schemas that are accepted here, such as a pattern in another regex dialect, and
# their messages differ.
class _SchemaCheck:
    """The validation of one value, with a limit on the number of checks."""

    def __init__(self, root_schema: dict[str, Any]) -> None:
        self._root_schema = root_schema
        self._check_count = 0

    def violations(self, schema: object, value: Any, path: str, depth: int) -> Iterator[str]:
        """Yield the violations of a value, each with its path."""
        name = path or "the answer"
        if schema is False:
            yield f"{name} must not be present"
        schema_object = as_object(schema)
        self._check_count += 1
        # Schemas can be recursive and branch at every level.
        if schema_object is None or depth > _MAX_DEPTH or self._check_count > _MAX_CHECKS:
            return
        if isinstance(reference := schema_object.get("$ref"), str):
            yield from self.violations(self._resolve_reference(reference), value, path, depth + 1)
        yield from (f"{name} must {requirement}" for requirement in _value_violations(schema_object, value))
        if isinstance(value, dict):
            yield from self._object_violations(schema_object, as_object(value) or {}, path, depth)
        elif isinstance(value, list):
            yield from self._list_violations(schema_object, as_list(value) or [], path, depth)
        yield from self._combined_violations(schema_object, value, path, depth)

    def _object_violations(
        self, schema_object: dict[str, Any], value: dict[str, Any], path: str, depth: int
    ) -> Iterator[str]:
        properties = as_object(schema_object.get("properties")) or {}
        for name in as_list(schema_object.get("required")) or ():
            if name not in value:
                yield f"{_child_path(path, str(name))} is missing"
        additional: object = schema_object.get("additionalProperties", True)
        for name, item in value.items():
            schema: object = properties.get(name, additional)
            if schema is False and name not in properties:
                yield f"{_child_path(path, name)} is not allowed"
            else:
                yield from self.violations(schema, item, _child_path(path, name), depth + 1)

    def _list_violations(self, schema_object: dict[str, Any], value: list[Any], path: str, depth: int) -> Iterator[str]:
        prefix_items = as_list(schema_object.get("prefixItems")) or []
        for index, item in enumerate(value):
            schema: object = prefix_items[index] if index < len(prefix_items) else schema_object.get("items", True)
            yield from self.violations(schema, item, f"{path}[{index}]", depth + 1)

    def _combined_violations(self, schema_object: dict[str, Any], value: Any, path: str, depth: int) -> Iterator[str]:
        for schema in as_list(schema_object.get("allOf")) or ():
            yield from self.violations(schema, value, path, depth + 1)
        for keyword in ("anyOf", "oneOf"):
            alternatives = as_list(schema_object.get(keyword))
            if not alternatives:
                continue
            violations = [
                next(self.violations(alternative, value, path, depth + 1), "") for alternative in alternatives
            ]
            if all(violations):
                yield violations[0]
            elif keyword == "oneOf" and violations.count("") > 1:
                yield f"{path or 'the answer'} must match only one of the schemas in oneOf"

    def _resolve_reference(self, reference: str) -> object:
        target: Any = self._root_schema
        for part in reference.removeprefix("#").split("/")[1:]:
            target = (as_object(target) or {}).get(part.replace("~1", "/").replace("~0", "~"))
        return target


def _child_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


_TYPE_CHECKS: Final[dict[str, tuple[str, Callable[[Any], bool]]]] = {
    "object": ("an object", lambda value: isinstance(value, dict)),
    "array": ("an array", lambda value: isinstance(value, list)),
    "string": ("a string", lambda value: isinstance(value, str)),
    "boolean": ("true or false", lambda value: isinstance(value, bool)),
    "null": ("null", lambda value: value is None),
    "number": ("a number", _is_number),
    "integer": ("an integer", lambda value: _is_number(value) and value == int(value)),
}


def _value_violations(schema: dict[str, Any], value: Any) -> Iterator[str]:
    """Yield the violated constraints of a value, without those of its children."""
    types = schema.get("type")
    type_names = [types] if isinstance(types, str) else as_list(types) or []
    checks = [_TYPE_CHECKS[kind] for kind in type_names if kind in _TYPE_CHECKS]
    if checks and len(checks) == len(type_names) and not any(is_type(value) for _, is_type in checks):
        yield f"be {' or '.join(description for description, _ in checks)}"
        return
    choices = as_list(schema.get("enum"))
    if choices is not None and not any(_json_equal(value, choice) for choice in choices):
        yield f"be one of {', '.join(map(repr, choices))}"
    if "const" in schema and not _json_equal(value, schema["const"]):
        yield f"be {schema['const']!r}"
    yield from _range_violations(schema, value)


def _range_violations(schema: dict[str, Any], value: Any) -> Iterator[str]:
    """Yield the violated bounds of a value."""
    if _is_number(value):
        yield from _bound_violations(schema, value, ("minimum", "maximum"), "")
    elif isinstance(value, str):
        yield from _bound_violations(schema, len(value), ("minLength", "maxLength"), " characters long")
        pattern = schema.get("pattern")
        if isinstance(pattern, str) and not _matches_pattern(pattern, value):
            yield f"match {pattern}"
    elif isinstance(value, list):
        size = len(as_list(value) or [])
        yield from _bound_violations(schema, size, ("minItems", "maxItems"), " items long")


def _bound_violations(schema: dict[str, Any], size: float, names: tuple[str, str], unit: str) -> Iterator[str]:
    minimum, maximum = (schema.get(name) for name in names)
    if isinstance(minimum, int | float) and size < minimum:
        yield f"be at least {minimum}{unit}"
    if isinstance(maximum, int | float) and size > maximum:
        yield f"be at most {maximum}{unit}"


def _matches_pattern(pattern: str, value: str) -> bool:
    try:
        return re.search(pattern, value) is not None
    except re.error:
        # The pattern is in another regex dialect and is ignored.
        return True


def _json_equal(left: object, right: object) -> bool:
    """Return whether two values are equal in JSON, where true does not equal 1."""
    return left == right and isinstance(left, bool) == isinstance(right, bool)


_TOOL_NAME: Final = "StructuredOutput"
_CALL_TOOL_PROMPT: Final = f"Return your answer by calling {_TOOL_NAME}. No other form of answer is accepted."
_ENTRYPOINT: Final = "sdk-cli"
"""The entry point in the records of a headless session."""
_NO_PROMPT_EXIT_CODE: Final = 1
_SERVER_TIMEOUT: Final = 5.0
"""Seconds to wait for MCP servers from the command line."""
_SIGNAL_EXIT_BASE: Final = 128
_INTERRUPTED_EXIT_CODE: Final = _SIGNAL_EXIT_BASE + signal.SIGINT
_NO_SANDBOX: Final = {"enabled": False, "kind": None}
_SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class StructuredOutputTool:
    """The tool that receives the final answer as structured output."""

    def __init__(self, schema: dict[str, Any]) -> None:
        """Store the schema of the answer.

        Raises:
            BadRequest: The schema is not of type object, which tool input requires.
        """
        types = as_list(schema.get("type", "object")) or [schema.get("type", "object")]
        if "object" not in types:
            raise BadRequest("the JSON schema must be of type object", hint="See --json-schema.")
        # The API requires an explicit type.
        schema = {**schema, "type": "object"}
        self.spec = ToolSpec(
            name=_TOOL_NAME,
            description="Returns your final answer in the format that the user requested.",
            schema=schema,
        )
        self.value: Any = None

    async def run(self, tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        """Store the answer if it matches the schema."""
        del context, call
        violation = schema_violation(self.spec.schema, tool_input)
        if violation:
            raise ToolFailure(f"Answer rejected: {violation}.")
        self.value = tool_input
        return ToolResult("Answer accepted.", tool_input)


class _AnswerRequired:
    """Wraps the hooks of an agent and blocks the end of a turn without a structured answer."""

    def __init__(self, agent: Agent, output_tool: StructuredOutputTool) -> None:
        self._agent = agent
        self._hooks: Hooks = agent.executor.hooks
        self._output_tool = output_tool

    async def dispatch(self, event: HookEvent, /) -> HookOutcome:
        outcome = await self._hooks.dispatch(event)
        if event.name == "Stop" and self._output_tool.value is None and not outcome.blocked:
            self._agent.force_tool(_TOOL_NAME)
            return HookOutcome(blocked=True, reason=_CALL_TOOL_PROMPT)
        return outcome


def parse_prompt_line(line: str) -> str | list[Block] | None:
    """Parse a line of `--input-format stream-json`; return its prompt, or None for other messages.

    Raises:
        BadRequest: The line is not valid JSON, or a user message without content.
    """
    if not line.strip():
        return None
    try:
        decoded: Any = msgspec.json.decode(line)
    except msgspec.DecodeError:
        raise BadRequest(f"invalid JSON in the input: {line.strip()[:80]}") from None
    message = as_object(decoded) or {}
    if message.get("type") != "user":
        return None
    content: Any = (as_object(message.get("message")) or {}).get("content")
    blocks = as_list(content)
    if not content or not (isinstance(content, str) or (blocks and all(map(as_object, blocks)))):
        raise BadRequest("a user message in the input has no content")
    return content


class _HeadlessRun:
    """One headless run; `/clear` starts a new session in it."""

    def __init__(
        self,
        options: AgentOptions,
        model: ModelClient,
        printer: HeadlessPrinter,
        price: PriceResponse,
        output_tool: StructuredOutputTool | None,
    ) -> None:
        options = msgspec.structs.replace(options, entrypoint=_ENTRYPOINT)
        self._options = options
        if output_tool is not None:
            extra_tools = (*options.extra_tools, output_tool)
            self._options = msgspec.structs.replace(options, extra_tools=extra_tools)
        self._model = model
        self._price = price
        self.printer = printer
        self.output_tool = output_tool
        self.session: AgentSession | None = None
        self.exit_codes: list[int] = []
        """Exit codes of the turns."""
        self._signal = signal.SIGINT

    def emit(self, event: Event) -> None:
        """Print an event."""
        if isinstance(event, TurnEnded):
            return
        try:
            self.printer.handle(event)
        except BrokenPipeError:
            # The reader has closed the pipe: end the turn properly; the final write fails again.
            if self.session is not None:
                self.session.agent.interrupt()

    async def start_session(self, writable_session: WritableSession, source: str = "") -> AgentSession:
        """Start a session: wait for MCP servers, run hooks, print the `init` event."""
        options = self._options
        session = build_session(options, writable_session, self._model, AgentCallbacks(emit=self.emit), self._price)
        self.session = session
        session.start_source = source or session.start_source
        if self.output_tool is not None:
            session.agent.executor.hooks = _AnswerRequired(session.agent, self.output_tool)
        # The run must wait for background sub-agents, since it ends with the turn.
        session.agent.wait_for_background = session.agent_tool.wait
        await session.mcp_connections.wait_until_ready(0 if not options.mcp_config else _SERVER_TIMEOUT)
        for server in session.mcp_connections.states():
            if server.status == "failed":
                self.emit(Notice(f"MCP server {server.name} is not available: {server.error}", "warning"))
            elif server.status == "pending" and options.mcp_config:
                self.emit(Notice(f"MCP server {server.name} is still connecting", "warning"))
        await session.open()
        self.printer.begin(_init_facts(session, options), writable_session.id)
        return session

    async def run_prompts(self, writable_session: WritableSession, prompts: AsyncIterator[str | list[Block]]) -> None:
        """Run all prompts in order."""
        session = await self.start_session(writable_session)
        async for prompt in prompts:
            invocation = parse_slash_prompt(prompt)
            if invocation is None or invocation[0] != CLEAR:
                await self.run_prompt(session, prompt)
                continue
            await session.close(CLEAR)
            session = await self.start_session(new_session(self._options.config, self._options.cwd), CLEAR)
            self.exit_codes.append(self.printer.end(await session.slash_dispatcher.record_clear()))

    def interrupt(self, run_task: "asyncio.Future[None]", received_signal: signal.Signals) -> None:
        """Interrupt the running turn, which still prints its result; if no turn is running, end the run."""
        self._signal = received_signal
        agent = self.session.agent if self.session is not None else None
        if agent is not None and agent.is_running:
            agent.interrupt()
        else:
            run_task.cancel()

    async def close(self) -> None:
        """Close the session."""
        if self.session is not None:
            await self.session.close()

    @property
    def exit_code(self) -> int:
        """The exit code of the last turn that failed, else 0."""
        if not self.exit_codes:
            return _NO_PROMPT_EXIT_CODE
        code = next(filter(None, reversed(self.exit_codes)), 0)
        # The exit code reports the signal that was received.
        return _SIGNAL_EXIT_BASE + self._signal if code == _INTERRUPTED_EXIT_CODE else code

    async def run_prompt(self, session: AgentSession, prompt: str | list[Block]) -> None:
        """Run one prompt to the end of its turn."""
        if self.output_tool is not None:
            self.output_tool.value = None
        try:
            ended = await session.submit(prompt)
        except StenoError as error:
            # Typically a full disk: the session cannot be written, but the result can be printed.
            self.printer.fail(session.agent.build_turn_ended("error", str(error)))
            raise
        if self.output_tool is not None:
            self.printer.set_structured_output(self.output_tool.value)
        self.exit_codes.append(self.printer.end(ended))


def _init_facts(session: AgentSession, options: AgentOptions) -> dict[str, Any]:
    """Return the fields of the `init` event."""
    agent, sandbox = session.agent, session.sandbox
    return {
        "cwd": agent.executor.context.cwd,
        "original_cwd": options.cwd,
        "additional_directories": list(options.folders),
        "apiKeySource": options.key_source,
        "tools": [tool.spec.name for tool in agent.executor.tools],
        "mcp_servers": [{"name": server.name, "status": server.status} for server in session.mcp_connections.states()],
        "model": agent.request_config.model,
        "permissionMode": session.permission_mode(),
        "agents": session.agent_tool.type_names,
        "skills": session.slash_dispatcher.skill_names,
        "output_style": session.settings.output_style or "default",
        "slash_commands": session.slash_dispatcher.command_names,
        "sandbox": _NO_SANDBOX if sandbox is None else sandbox.facts(),
    }


async def run_headless(
    options: AgentOptions,
    writable_session: WritableSession,
    model: ModelClient,
    prompts: AsyncIterator[str | list[Block]],
    printer: HeadlessPrinter,
    *,
    price: PriceResponse,
    output_tool: StructuredOutputTool | None = None,
) -> int:
    """Run prompts in order; return the exit code of the last turn that failed, else 0."""
    headless_run = _HeadlessRun(options, model, printer, price, output_tool)
    run_task = asyncio.ensure_future(headless_run.run_prompts(writable_session, prompts))
    with _handle_signals(partial(headless_run.interrupt, run_task)):
        try:
            await run_task
        except asyncio.CancelledError:
            if (current_task := asyncio.current_task()) is not None and current_task.cancelling():
                raise
            headless_run.exit_codes.append(_INTERRUPTED_EXIT_CODE)
        finally:
            await headless_run.close()
    return headless_run.exit_code


@contextmanager
def _handle_signals(interrupt: Callable[[signal.Signals], None]) -> Generator[None]:
    """Interrupt the turn on SIGINT, SIGTERM and SIGHUP, so that it ends properly."""
    loop = asyncio.get_running_loop()
    # Signals that are ignored, as under `nohup`, stay ignored.
    handled_signals = [candidate for candidate in _SIGNALS if signal.getsignal(candidate) is not signal.SIG_IGN]
    for number in handled_signals:
        # Signal handlers are not available in threads and on some platforms.
        with suppress(NotImplementedError, ValueError, RuntimeError):
            loop.add_signal_handler(number, interrupt, number)
    try:
        yield
    finally:
        for number in handled_signals:
            with suppress(NotImplementedError, ValueError, RuntimeError):
                loop.remove_signal_handler(number)
