"""Servers of the Model Context Protocol, and their tools as tools of ours.

    connections = Connections(find_servers(project, settings, trusted=True)[0], cwd=…, env=…)
    connections.start()                    # at once; nobody waits for a server
    connections.tools()                    # those of the servers that have answered by now
    await connections.close()

The library that speaks the protocol is slow to import, so that happens beside everything else, and
only when there is a server.
"""

import asyncio
import importlib
import os
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, Literal, TextIO, TypeAlias, cast

import msgspec

from steno.agent.mcp_results import letters, number_in, outcome_of
from steno.agent.mcp_servers import SECRET, Server
from steno.agent.programs import Capture
from steno.errors import BadRequest
from steno.extras import require
from steno.tools.base import Spec, ToolFailure, ToolResult
from steno.tools.context import ToolContext

if TYPE_CHECKING:
    from mcp import Client
    from mcp.client import Transport
    from mcp_types import Tool as TheirTool

__all__ = ["Connections", "McpTool", "State", "tool_name"]

Status: TypeAlias = Literal["pending", "connected", "failed", "closed"]

_START: Final = 30.0
_CALL: Final = 600.0
_MOST_NAME: Final = 128
_MOST_WORDS: Final = 2048
_MOST_PAGES: Final = 100
_MOST_SAID: Final = 500
_CLOSING: Final = 10.0
_GRACE: Final = 0.2


class State(msgspec.Struct, frozen=True):
    """How it stands with a server."""

    name: str
    status: Status
    error: str = ""
    tools: tuple[str, ...] = ()
    instructions: str = ""


class Connections:
    """The servers of a session: each in a task of its own, which opens and closes it.

    Args:
        servers: those to start.
        cwd: where the programs run.
        env: their environment, without the user's key; `MCP_TIMEOUT`, `MCP_TOOL_TIMEOUT` (both
            in milliseconds) and `MAX_MCP_OUTPUT_TOKENS` are read from it.
    """

    def __init__(self, servers: Iterable[Server], *, cwd: str, env: Mapping[str, str]) -> None:
        self._links = [_Link(server, cwd, env) for server in servers]

    def start(self) -> None:
        """Begin to connect to all of them; return at once."""
        for link in self._links:
            link.start()

    async def settle(self, seconds: float) -> None:
        """Wait until every server has answered or failed, but no longer than that."""
        if self._links and seconds:
            # What it takes to begin is not theirs to answer for.
            with suppress(BadRequest):  # which each of them fails with as well
                await _library()
        waits = [asyncio.ensure_future(link.settled.wait()) for link in self._links]
        if waits:
            _done, late = await asyncio.wait(waits, timeout=seconds)
            for wait in late:
                wait.cancel()

    def tools(self) -> "tuple[McpTool, ...]":
        """Return the tools that can be called now, always in the same order."""
        found = {tool.spec.name: tool for link in self._links for tool in link.tools}
        return tuple(found[name] for name in sorted(found))

    def states(self) -> tuple[State, ...]:
        """Return how it stands with each server."""
        return tuple(link.state() for link in self._links)

    async def close(self) -> None:
        """Take leave of all servers; a program that does not go is ended."""
        await asyncio.gather(*(link.close() for link in self._links))


async def _library() -> None:
    """Load the library, which takes a while.

    Raises:
        BadRequest: it is not installed.
    """
    require("mcp", "an MCP server")
    await asyncio.to_thread(importlib.import_module, "mcp")


class _Link:
    """One server."""

    def __init__(self, server: Server, cwd: str, env: Mapping[str, str]) -> None:
        self.server = server
        self.cwd = cwd
        self.env = env
        self.status: Status = "pending"
        self.error = ""
        self.instructions = ""
        self.tools: tuple[McpTool, ...] = ()
        self.client: Client | None = None
        self.settled = asyncio.Event()
        self._leave = asyncio.Event()
        self._said = ""
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._watch())

    def state(self) -> State:
        names = tuple(tool.spec.name for tool in self.tools)
        return State(self.server.name, self.status, self.error, names, self.instructions)

    async def close(self) -> None:
        self._leave.set()
        if self._task is None:
            return
        if not self.settled.is_set():
            self._task.cancel()
        await asyncio.wait({self._task}, timeout=_CLOSING)
        self._task.cancel()

    def lost(self, words: str) -> None:
        """Give up on a server that has gone."""
        self.error = words
        self._leave.set()

    async def _watch(self) -> None:
        """Live, and say what became of it; whatever goes wrong is the server's own affair."""
        life = asyncio.ensure_future(self._live())
        try:
            await asyncio.wait({life})
        finally:
            # The library must take its leave in the task that it came in.
            life.cancel()
            await asyncio.wait({life}, timeout=_CLOSING)
            self.client, self.tools = None, ()
            error = None if not life.done() or life.cancelled() else life.exception()
            if error is not None:
                self.error = f"{self._why(error)} {self._said}".strip()
            self.status = "failed" if self.error else "closed"
            self.settled.set()

    def _why(self, error: BaseException) -> str:
        error = _innermost(error)
        if isinstance(error, TimeoutError):
            return f"no answer within {_seconds(self.env, 'MCP_TIMEOUT', _START):g} s"
        return str(error) or type(error).__name__

    async def _live(self) -> None:
        errors, end = await Capture.open(_MOST_SAID, last=True)
        try:
            with os.fdopen(end, "w") as log:
                await self._connected(log)
            await asyncio.wait({errors.ended}, timeout=_GRACE)
        finally:
            self._said = errors.text.strip()
            errors.close()

    async def _connected(self, log: TextIO) -> None:
        await _library()
        from mcp import Client

        seconds = _seconds(self.env, "MCP_TIMEOUT", _START)
        async with (
            asyncio.timeout(seconds) as limit,
            self._transport(log) as transport,
            # With the older greeting, which every server knows.
            Client(transport, mode="legacy", cache=None) as client,
        ):
            self.tools = await self._listed(client)
            limit.reschedule(None)
            self.client, self.status = client, "connected"
            self.instructions = (client.instructions or "")[:_MOST_WORDS]
            self.settled.set()
            await self._leave.wait()

    @asynccontextmanager
    async def _transport(self, log: TextIO) -> "AsyncGenerator[Transport, None]":
        server = self.server
        if server.kind == "stdio":
            from mcp import StdioServerParameters, stdio_client

            env = {key: value for key, value in self.env.items() if not SECRET.fullmatch(key)}
            given = StdioServerParameters(
                command=server.command,
                args=list(server.args),
                env={**env, **server.env},
                cwd=self.cwd,
                encoding_error_handler="replace",
            )
            yield stdio_client(given, errlog=log)
        elif server.kind == "sse":
            from mcp.client.sse import sse_client

            yield sse_client(server.url, headers=dict(server.headers))
        else:
            import httpx2
            from mcp.client.streamable_http import streamable_http_client

            times = httpx2.Timeout(30.0, read=300.0)
            async with httpx2.AsyncClient(headers=server.headers, timeout=times) as http:
                yield streamable_http_client(server.url, http_client=http)

    async def _listed(self, client: "Client") -> "tuple[McpTool, ...]":
        found: dict[str, McpTool] = {}
        if client.server_capabilities.tools is None:
            return ()
        cursor: str | None = None
        for _page in range(_MOST_PAGES):
            page = await client.list_tools(cursor=cursor)
            for theirs in page.tools:
                tool = McpTool(self, theirs)
                if len(tool.spec.name) <= _MOST_NAME:
                    found.setdefault(tool.spec.name, tool)
            cursor = page.next_cursor
            if not cursor:
                break
        return tuple(found.values())


# Calling


class McpTool:
    """A tool of a server."""

    def __init__(self, link: _Link, theirs: "TheirTool") -> None:
        self._link = link
        self._name = theirs.name
        schema = dict(theirs.input_schema)
        # The API refuses a schema that is not one of an object.
        schema["type"] = "object"
        schema.setdefault("properties", {})
        self._spec = Spec(
            name=tool_name(link.server.name, theirs.name),
            description=(theirs.description or theirs.title or theirs.name)[:_MOST_WORDS],
            schema=schema,
        )

    @property
    def spec(self) -> Spec:
        """What it says of itself. A server's word that it only reads is not taken."""
        return self._spec

    @property
    def server(self) -> str:
        """The server's name."""
        return self._link.server.name

    async def run(self, tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        """Call it; what it gives besides words and pictures waits for `take_meta`."""
        client = self._link.client
        if client is None:
            raise ToolFailure(f"The server {self.server} is not connected. {self._link.error}")
        env = self._link.env
        seconds = self._link.server.timeout or _seconds(env, "MCP_TOOL_TIMEOUT", _CALL)
        task = asyncio.ensure_future(client.call_tool(self._name, tool_input))
        try:
            await asyncio.wait({task}, timeout=seconds)
            if not task.done():
                raise ToolFailure(f"{self._spec.name} gave no answer within {seconds:g} s.")
            error = task.exception()
        finally:
            task.cancel()
        if error is not None:
            raise self._failure(_innermost(error))
        return outcome_of(task.result(), self.server, context, call, env)

    def _failure(self, error: BaseException) -> ToolFailure:
        from mcp_types import CONNECTION_CLOSED

        words = str(error) or type(error).__name__
        if getattr(error, "code", None) == CONNECTION_CLOSED:
            self._link.lost(words)
        return ToolFailure(f"{self._spec.name} failed: {words}")


def tool_name(server: str, tool: str) -> str:
    """Return the name that a server's tool has here."""
    return f"mcp__{letters(server)}__{letters(tool)}"


def _innermost(error: BaseException) -> BaseException:
    """Return the error that the library has wrapped in groups."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def _seconds(env: Mapping[str, str], name: str, otherwise: float) -> float:
    return number_in(env, name, int(otherwise * 1000)) / 1000
