"""Connections to MCP servers, their tools, and the conversion of results.

    connections = McpConnections(find_servers(project, settings, trusted=True)[0], cwd=…, env=…)
    connections.start()                    # returns at once
    connections.tools()                    # tools of the servers that are connected
    await connections.close()

The protocol library is slow to import, so it is imported in a thread, and only if a server is
configured.
"""

import asyncio
import importlib
import os
import re
import time
from base64 import b64decode
from binascii import Error as NotBase64
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any, Final, Literal, TextIO, TypeAlias, cast

import msgspec

from steno.agent.child_process import PipeCapture
from steno.agent.config.project_files import ConfigNote, parse_json, read_text, truncate
from steno.agent.config.settings import Settings
from steno.agent.context.token_usage import CHARACTERS_PER_TOKEN
from steno.errors import BadRequest
from steno.extras import require
from steno.format.client_settings import (
    PROJECT_LAYERS,
    PROJECT_SERVERS_FILE,
    STATE_FILE,
    ServerEntry,
    project_state,
    read_servers,
)
from steno.store.atomic import write_atomic
from steno.store.environment import config_dir, home_dir
from steno.tools.context import ToolContext
from steno.tools.output import make_results_folder
from steno.tools.protocol import ToolFailure, ToolResult, ToolSpec

ServerScope: TypeAlias = Literal["flags", "local", "project", "user", "settings", "managed"]
KEY_VARIABLE_PATTERN: Final = re.compile(r"ANTHROPIC_(API_KEY|AUTH_TOKEN|CUSTOM_HEADERS)|CLAUDE_CODE_OAUTH.*")
"""Environment variables that contain the user's API key."""
_MANAGED_FILE: Final = "/etc/claude-code/managed-mcp.json"
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}")


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The configuration of a server."""

    name: str
    kind: Literal["stdio", "http", "sse"]
    scope: ServerScope
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    url: str = ""
    headers: dict[str, str] = {}
    timeout: float = 0.0
    """Seconds before a call is cancelled; 0 for the default."""


def find_servers(
    project: str,
    settings: Settings,
    *,
    trusted: bool,
    flags: Iterable[str] = (),
    strict: bool = False,
    env: Mapping[str, str] | None = None,
    managed: str = _MANAGED_FILE,
) -> tuple[tuple[ServerConfig, ...], tuple[ConfigNote, ...]]:
    """Return the configured servers that may be started; of several servers with one name, only the nearest.

    Args:
        project: The directory of the session.
        settings: The settings of the session.
        trusted: Whether servers of the project may be started.
        flags: Values of `--mcp-config`: paths or JSON.
        strict: Whether to use only `flags`.
        env: The environment, for `${NAME}` and the config directory.
        managed: The managed file; if it exists, all other servers are ignored.
    """
    environment = os.environ if env is None else env
    notes: list[ConfigNote] = []
    managed_text = read_text(Path(managed), notes)
    layers: list[tuple[ServerScope, str, dict[str, Any]]] = []
    if managed_text is not None:
        layers.append(("managed", managed, parse_json(managed_text, managed, notes)))
    else:
        layers.extend(("flags", "--mcp-config", _read_flag(flag, notes)) for flag in flags)
        if not strict:
            layers += _file_layers(project, settings, environment, notes, trusted=trusted)
    servers: dict[str, ServerConfig] = {}
    for scope, path, config in layers:
        for entry in read_servers(config):
            if entry.name in servers or not _is_approved(entry.name, scope, settings, notes, path):
                continue
            server = _resolve_server(entry, scope, environment, path, notes)
            if server is not None:
                servers[entry.name] = server
    return tuple(servers.values()), tuple(notes)


def _file_layers(
    project: str, settings: Settings, env: Mapping[str, str], notes: list[ConfigNote], *, trusted: bool
) -> list[tuple[ServerScope, str, dict[str, Any]]]:
    layers: list[tuple[ServerScope, str, dict[str, Any]]] = []
    folder = config_dir(env) if env.get("CLAUDE_CONFIG_DIR") else home_dir(env)
    user_file = Path(folder, STATE_FILE)
    user_config = parse_json(read_text(user_file, notes, 64 << 20) or "", str(user_file), notes)
    layers.append(("local", str(user_file), project_state(user_config, str(Path(project).absolute()))))
    project_file = Path(project, PROJECT_SERVERS_FILE)
    text = read_text(project_file, notes)
    if text is not None and not trusted:
        notes.append(ConfigNote(str(project_file), "ignored: the directory is not trusted"))
    elif text is not None:
        layers.append(("project", str(project_file), parse_json(text, str(project_file), notes)))
    layers.append(("user", str(user_file), user_config))
    for name, value in settings.mcp_servers.items():
        layer = settings.origins.get(f"mcpServers.{name}", "user")
        # Servers of a project require approval by name, wherever they are configured.
        scope: ServerScope = "project" if layer in PROJECT_LAYERS else "settings"
        layers.append((scope, f"settings ({layer})", {"mcpServers": {name: value}}))
    return layers


def _read_flag(flag: str, notes: list[ConfigNote]) -> dict[str, Any]:
    if flag.lstrip().startswith("{"):
        return parse_json(flag, "--mcp-config", notes)
    text = read_text(Path(flag), notes)
    if text is None:
        notes.append(ConfigNote(flag, "file of --mcp-config not found"))
        return {}
    return parse_json(text, flag, notes)


def _is_approved(name: str, scope: ServerScope, settings: Settings, notes: list[ConfigNote], path: str) -> bool:
    if scope != "project":
        return True
    if name in settings.disabled_mcpjson:
        return False
    if settings.enable_all_project_mcp or name in settings.enabled_mcpjson:
        return True
    message = f"MCP server `{name}` not started: add it to `enabledMcpjsonServers` to approve it"
    notes.append(ConfigNote(path, message))
    return False


def _resolve_server(
    entry: ServerEntry, scope: ServerScope, env: Mapping[str, str], path: str, notes: list[ConfigNote]
) -> ServerConfig | None:
    """Return a server with its variables expanded; None if it has neither a command nor a URL."""

    def fill(text: object) -> str:
        filled_text, missing = expand_variables(str(text), env, hide_keys=scope == "project")
        notes.extend(
            ConfigNote(path, f"MCP server `{entry.name}` uses ${{{variable}}}, which is not set")
            for variable in missing
        )
        return filled_text

    kind = entry.declared_type or ("http" if entry.has_url else "stdio")
    if kind == "stdio" and entry.command:
        return ServerConfig(
            name=entry.name,
            kind="stdio",
            scope=scope,
            command=fill(entry.command),
            args=tuple(map(fill, entry.args)),
            env={key: fill(value) for key, value in entry.env.items()},
            timeout=entry.timeout,
        )
    if kind in ("http", "streamable-http", "sse") and entry.url:
        return ServerConfig(
            name=entry.name,
            kind="sse" if kind == "sse" else "http",
            scope=scope,
            url=fill(entry.url),
            headers={key: fill(value) for key, value in entry.headers.items()},
            timeout=entry.timeout,
        )
    notes.append(ConfigNote(path, f"MCP server `{entry.name}` ignored: no command and no URL"))
    return None


def expand_variables(text: str, env: Mapping[str, str], *, hide_keys: bool = False) -> tuple[str, tuple[str, ...]]:
    """Expand `${NAME}` and `${NAME:-default}`.

    Also returns the names without a value, which stay unexpanded. With `hide_keys`, variables with the
    user's API key count as missing, so that a project cannot send it anywhere.
    """
    missing: list[str] = []

    def value(match: re.Match[str]) -> str:
        variable = None if hide_keys and KEY_VARIABLE_PATTERN.fullmatch(match[1]) else env.get(match[1])
        if variable is not None and (variable or match[2] is None):
            return variable
        if match[2] is not None:
            return match[2]
        missing.append(match[1])
        return match[0]

    return _VARIABLE.sub(value, text), tuple(missing)


if TYPE_CHECKING:
    from mcp import Client
    from mcp.client import Transport
    from mcp_types import CallToolResult, ContentBlock
    from mcp_types import Tool as TheirTool


_MAX_OUTPUT_TOKENS: Final = 25_000
_IMAGE_EXTENSIONS: Final = {"image/png": "png", "image/jpeg": "jpg", "image/gif": "gif", "image/webp": "webp"}


def take_metadata(context: ToolContext, call: str) -> dict[str, Any] | None:
    """Return the metadata of a call (`mcpMeta` of the record), or None."""
    return context.mcp_metadata.pop(call, None)


def mcp_record_fields(context: ToolContext, call: str) -> dict[str, Any]:
    """Return the additional fields for the record of a result."""
    meta = take_metadata(context, call)
    return {} if meta is None else {"mcpMeta": meta}


def convert_result(
    result: "CallToolResult", server: str, context: ToolContext, call: str, env: Mapping[str, str]
) -> ToolResult:
    """Convert the result of an MCP call to a tool result."""
    meta: dict[str, Any] = {}
    if result.meta:
        meta["_meta"] = dict(result.meta)
    if result.structured_content is not None:
        meta["structuredContent"] = result.structured_content
    if meta:
        context.mcp_metadata[call] = meta
    max_characters = positive_int_from_env(env, "MAX_MCP_OUTPUT_TOKENS", _MAX_OUTPUT_TOKENS) * CHARACTERS_PER_TOKEN
    if result.is_error:
        error_text = truncate("\n".join(_block_text(block) for block in result.content), max_characters)
        return ToolResult(error_text or "The tool call failed.", f"Error: {error_text}", is_error=True)
    has_image = any(block.type == "image" for block in result.content)
    if result.structured_content is not None and not has_image:
        text = truncate(msgspec.json.encode(result.structured_content).decode(), max_characters)
        return ToolResult(text, text)
    blocks: list[dict[str, Any]] = []
    for block in result.content:
        blocks += _convert_block(block, server, context)
    for block in blocks:
        if block["type"] == "text":
            block["text"] = truncate(block["text"], max_characters)
            max_characters = max(max_characters - len(block["text"]), 0)
    blocks = [block for block in blocks if block["type"] != "text" or block["text"].strip()]
    return ToolResult(blocks or "The tool returned no output.", blocks)


def _convert_block(block: "ContentBlock", server: str, context: ToolContext) -> list[dict[str, Any]]:
    if block.type == "image":
        return _image_blocks(block.data, block.mime_type, server, context)
    if block.type == "resource":
        resource = block.resource
        data: object = getattr(resource, "blob", None)
        if isinstance(data, str) and resource.mime_type in _IMAGE_EXTENSIONS:
            return _image_blocks(data, resource.mime_type, server, context)
    return [{"type": "text", "text": _block_text(block)}]


def _block_text(block: "ContentBlock") -> str:
    if block.type == "text":
        return block.text
    if block.type == "resource":
        text: object = getattr(block.resource, "text", None)
        label = f"[Resource {block.resource.uri}]"
        return f"{label}\n{text}" if isinstance(text, str) else f"{label} (binary content omitted)"
    if block.type == "resource_link":
        description_text = f": {block.description}" if block.description else ""
        return f"[Resource {block.name} at {block.uri}{description_text}]"
    return f"[{block.type}, {block.mime_type}; omitted]"


def _image_blocks(data: str, media_type: str, server: str, context: ToolContext) -> list[dict[str, Any]]:
    """Return an image and the path of its file; invalid images become text."""
    try:
        image_bytes = b64decode(data, validate=True)
    except (NotBase64, ValueError):
        image_bytes = b""
    if media_type not in _IMAGE_EXTENSIONS or not image_bytes:
        return [{"type": "text", "text": f"[image, {media_type}; cannot be displayed]"}]
    source = {"type": "base64", "media_type": media_type, "data": data}
    blocks: list[dict[str, Any]] = [{"type": "image", "source": source}]
    path = _save_image(image_bytes, f"mcp-{safe_name(server)}-blob", _IMAGE_EXTENSIONS[media_type], context)
    if path:
        blocks.append({"type": "text", "text": f"[Image: source: {path}]"})
    return blocks


def _save_image(image_bytes: bytes, stem: str, extension: str, context: ToolContext) -> str:
    name = f"{stem}-{time.time_ns() // 1_000_000}-{token_hex(3)}.{extension}"
    try:
        path = os.path.join(make_results_folder(context), name)
        write_atomic(path, (image_bytes,), sync=False)
    except OSError:
        return ""
    return path


def safe_name(name: str) -> str:
    """Return a name with only characters that are valid in tool names and file names."""
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)


def positive_int_from_env(env: Mapping[str, str], name: str, default: int) -> int:
    """Return a positive integer from the environment, or the default."""
    value = env.get(name, "")
    return int(value) if value.isascii() and value.isdecimal() and int(value) else default


ServerStatus: TypeAlias = Literal["pending", "connected", "failed", "closed"]

_START_TIMEOUT: Final = 30.0
_CALL_TIMEOUT: Final = 600.0
_MAX_NAME_LENGTH: Final = 128
_MAX_DESCRIPTION: Final = 2048
_MAX_PAGES: Final = 100
_MAX_STDERR: Final = 500
_CLOSE_TIMEOUT: Final = 10.0
_STDERR_GRACE: Final = 0.2


class ServerState(msgspec.Struct, frozen=True):
    """The state of a server connection."""

    name: str
    status: ServerStatus
    error: str = ""
    tools: tuple[str, ...] = ()
    instructions: str = ""


class McpConnections:
    """The MCP servers of a session; a separate task opens and closes each connection.

    Args:
        servers: The servers to start.
        cwd: Working directory of server programs.
        env: Environment of server programs, without the API key; sets `MCP_TIMEOUT`, `MCP_TOOL_TIMEOUT`
            (both in milliseconds) and `MAX_MCP_OUTPUT_TOKENS`.
    """

    def __init__(self, servers: Iterable[ServerConfig], *, cwd: str, env: Mapping[str, str]) -> None:
        self._servers = [_ServerConnection(server, cwd, env) for server in servers]

    def start(self) -> None:
        """Start connecting to all servers; return at once."""
        for server in self._servers:
            server.start()

    async def wait_until_ready(self, seconds: float) -> None:
        """Wait until every server is connected or has failed, at most `seconds`."""
        if self._servers and seconds:
            # The time to import the library does not count.
            with suppress(BadRequest):  # each connection reports this error itself
                await _import_library()
        waiters = [asyncio.ensure_future(server.ready.wait()) for server in self._servers]
        if waiters:
            _done, unfinished = await asyncio.wait(waiters, timeout=seconds)
            for waiter in unfinished:
                waiter.cancel()

    def tools(self) -> "tuple[McpTool, ...]":
        """Return the tools of all connected servers, sorted by name."""
        tools_by_name = {tool.spec.name: tool for server in self._servers for tool in server.tools}
        return tuple(tools_by_name[name] for name in sorted(tools_by_name))

    def states(self) -> tuple[ServerState, ...]:
        """Return the state of each server."""
        return tuple(server.state() for server in self._servers)

    async def close(self) -> None:
        """Close all connections; server programs that do not end are killed."""
        await asyncio.gather(*(server.close() for server in self._servers))


async def _import_library() -> None:
    """Import the library, which is slow.

    Raises:
        BadRequest: The library is not installed.
    """
    require("mcp", "an MCP server")
    await asyncio.to_thread(importlib.import_module, "mcp")


class _ServerConnection:
    """The connection to one server."""

    def __init__(self, server: ServerConfig, cwd: str, env: Mapping[str, str]) -> None:
        self.server = server
        self.cwd = cwd
        self.env = env
        self.status: ServerStatus = "pending"
        self.error = ""
        self.instructions = ""
        self.tools: tuple[McpTool, ...] = ()
        self.client: Client | None = None
        self.ready = asyncio.Event()
        self._close_requested = asyncio.Event()
        self._stderr_text = ""
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        if self._task is None:
            self._task = asyncio.create_task(self._supervise())

    def state(self) -> ServerState:
        names = tuple(tool.spec.name for tool in self.tools)
        return ServerState(self.server.name, self.status, self.error, names, self.instructions)

    async def close(self) -> None:
        self._close_requested.set()
        if self._task is None:
            return
        if not self.ready.is_set():
            self._task.cancel()
        await asyncio.wait({self._task}, timeout=_CLOSE_TIMEOUT)
        self._task.cancel()

    def mark_lost(self, message: str) -> None:
        """Record the loss of a connection."""
        self.error = message
        self._close_requested.set()

    async def _supervise(self) -> None:
        """Run the connection and record its final state; all errors are recorded in `error`."""
        connection_task = asyncio.ensure_future(self._run())
        try:
            await asyncio.wait({connection_task})
        finally:
            # The library requires that the same task opens and closes a connection.
            connection_task.cancel()
            await asyncio.wait({connection_task}, timeout=_CLOSE_TIMEOUT)
            self.client, self.tools = None, ()
            error = None if not connection_task.done() or connection_task.cancelled() else connection_task.exception()
            if error is not None:
                self.error = f"{self._error_message(error)} {self._stderr_text}".strip()
            self.status = "failed" if self.error else "closed"
            self.ready.set()

    def _error_message(self, error: BaseException) -> str:
        error = _innermost_error(error)
        if isinstance(error, TimeoutError):
            return f"no response within {_timeout_from_env(self.env, 'MCP_TIMEOUT', _START_TIMEOUT):g} s"
        return str(error) or type(error).__name__

    async def _run(self) -> None:
        stderr, write_end = await PipeCapture.open(_MAX_STDERR, keep_last=True)
        try:
            with os.fdopen(write_end, "w") as log:
                await self._serve_connection(log)
            await asyncio.wait({stderr.closed}, timeout=_STDERR_GRACE)
        finally:
            self._stderr_text = stderr.text.strip()
            stderr.close()

    async def _serve_connection(self, log: TextIO) -> None:
        await _import_library()
        from mcp import Client

        seconds = _timeout_from_env(self.env, "MCP_TIMEOUT", _START_TIMEOUT)
        async with (
            asyncio.timeout(seconds) as limit,
            self._transport(log) as transport,
            # The legacy handshake, which every server supports.
            Client(transport, mode="legacy", cache=None) as client,
        ):
            self.tools = await self._list_tools(client)
            limit.reschedule(None)
            self.client, self.status = client, "connected"
            self.instructions = (client.instructions or "")[:_MAX_DESCRIPTION]
            self.ready.set()
            await self._close_requested.wait()

    @asynccontextmanager
    async def _transport(self, log: TextIO) -> "AsyncGenerator[Transport, None]":
        server = self.server
        if server.kind == "stdio":
            from mcp import StdioServerParameters, stdio_client

            env = {key: value for key, value in self.env.items() if not KEY_VARIABLE_PATTERN.fullmatch(key)}
            parameters = StdioServerParameters(
                command=server.command,
                args=list(server.args),
                env={**env, **server.env},
                cwd=self.cwd,
                encoding_error_handler="replace",
            )
            yield stdio_client(parameters, errlog=log)
        elif server.kind == "sse":
            from mcp.client.sse import sse_client

            yield sse_client(server.url, headers=dict(server.headers))
        else:
            import httpx2
            from mcp.client.streamable_http import streamable_http_client

            timeouts = httpx2.Timeout(30.0, read=300.0)
            async with httpx2.AsyncClient(headers=server.headers, timeout=timeouts) as http:
                yield streamable_http_client(server.url, http_client=http)

    async def _list_tools(self, client: "Client") -> "tuple[McpTool, ...]":
        tools_by_name: dict[str, McpTool] = {}
        if client.server_capabilities.tools is None:
            return ()
        cursor: str | None = None
        for _page in range(_MAX_PAGES):
            page = await client.list_tools(cursor=cursor)
            for server_tool in page.tools:
                tool = McpTool(self, server_tool)
                if len(tool.spec.name) <= _MAX_NAME_LENGTH:
                    tools_by_name.setdefault(tool.spec.name, tool)
            cursor = page.next_cursor
            if not cursor:
                break
        return tuple(tools_by_name.values())


# Tools


class McpTool:
    """A tool of an MCP server."""

    def __init__(self, connection: _ServerConnection, server_tool: "TheirTool") -> None:
        self._connection = connection
        self._server_tool_name = server_tool.name
        schema = dict(server_tool.input_schema)
        # The API rejects a schema that is not of type object.
        schema["type"] = "object"
        schema.setdefault("properties", {})
        self._spec = ToolSpec(
            name=mcp_tool_name(connection.server.name, server_tool.name),
            description=(server_tool.description or server_tool.title or server_tool.name)[:_MAX_DESCRIPTION],
            schema=schema,
        )

    @property
    def spec(self) -> ToolSpec:
        """The declaration of the tool. `reads_only` hints of servers are not trusted."""
        return self._spec

    @property
    def server(self) -> str:
        """The name of the server."""
        return self._connection.server.name

    async def run(self, tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        """Call the tool; metadata of the result is available from `take_metadata`."""
        client = self._connection.client
        if client is None:
            raise ToolFailure(f"MCP server {self.server} is not connected. {self._connection.error}")
        env = self._connection.env
        seconds = self._connection.server.timeout or _timeout_from_env(env, "MCP_TOOL_TIMEOUT", _CALL_TIMEOUT)
        task = asyncio.ensure_future(client.call_tool(self._server_tool_name, tool_input))
        try:
            await asyncio.wait({task}, timeout=seconds)
            if not task.done():
                raise ToolFailure(f"{self._spec.name} timed out after {seconds:g} s.")
            error = task.exception()
        finally:
            task.cancel()
        if error is not None:
            raise self._failure(_innermost_error(error))
        return convert_result(task.result(), self.server, context, call, env)

    def _failure(self, error: BaseException) -> ToolFailure:
        from mcp_types import CONNECTION_CLOSED

        message = str(error) or type(error).__name__
        if getattr(error, "code", None) == CONNECTION_CLOSED:
            self._connection.mark_lost(message)
        return ToolFailure(f"{self._spec.name} failed: {message}")


def mcp_tool_name(server: str, tool: str) -> str:
    """Return the tool name for a tool of a server."""
    return f"mcp__{safe_name(server)}__{safe_name(tool)}"


def _innermost_error(error: BaseException) -> BaseException:
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def _timeout_from_env(env: Mapping[str, str], name: str, default: float) -> float:
    return positive_int_from_env(env, name, int(default * 1000)) / 1000
