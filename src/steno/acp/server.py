"""The agent side of the protocol: client requests, open sessions, JSON-RPC over streams.

Each message is one JSON object on a line. An invalid line gets an error response, and the
connection continues.
"""

import asyncio
import os
import signal
import sys
from collections.abc import Generator
from contextlib import AsyncExitStack, contextmanager, suppress
from typing import Any, Final

import msgspec
from acp import PROTOCOL_VERSION
from acp.agent.connection import AgentSideConnection
from acp.exceptions import RequestError
from acp.schema import (
    AcpMcpServer,
    AgentCapabilities,
    AuthenticateResponse,
    AuthMethodAgent,
    ClientCapabilities,
    HttpMcpServer,
    Implementation,
    InitializeResponse,
    ListSessionsResponse,
    LoadSessionResponse,
    McpCapabilities,
    McpServerStdio,
    NewSessionResponse,
    PromptCapabilities,
    PromptResponse,
    SessionAdditionalDirectoriesCapabilities,
    SessionCapabilities,
    SessionInfo,
    SessionListCapabilities,
    SetSessionModeResponse,
    SseMcpServer,
)

from steno._version import __version__
from steno.acp.editor_session import AUTH_REQUIRED, INTERNAL_ERROR, EditorSession, ServerConfig
from steno.acp.message_conversion import PromptContent
from steno.agent.config.agent_options import AgentOptions
from steno.agent.loop import ModelClient
from steno.agent.writable_session import WritableSession, new_session, resume_session
from steno.errors import BadRequest, NotFound, StenoError
from steno.format.lenient_json import as_object
from steno.format.paths import is_uuid
from steno.llm.endpoint import MissingKey

_MAX_LINE_BYTES: Final = 64 << 20
"""Maximum line length; prompts can contain images."""
_PARSE_ERROR: Final = (-32700, "Parse error: a line must be one JSON object")
_INVALID_REQUEST: Final = (-32600, "Invalid request: not a JSON-RPC message")
_LINE_TOO_LONG: Final = (-32600, f"Invalid request: a line is longer than {_MAX_LINE_BYTES >> 20} MB")


class JsonRpcStream:
    """JSON-RPC messages over two streams."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, message: dict[str, Any]) -> None:
        """Send a message."""
        self._writer.write(msgspec.json.encode(message, enc_hook=str) + b"\n")
        await self._writer.drain()

    async def receive(self) -> dict[str, Any] | None:
        """Return the next message; None at the end of the stream."""
        while True:
            try:
                line = await self._reader.readuntil(b"\n")
            except asyncio.IncompleteReadError as end:
                line = end.partial
                if not line:
                    return None
            except asyncio.LimitOverrunError:
                await self._skip_line()
                await self._send_error(_LINE_TOO_LONG)
                continue
            message = await self._parse_message(line)
            if message is not None:
                return message

    async def close(self) -> None:
        """Stop sending."""
        self._writer.close()

    async def _parse_message(self, line: bytes) -> dict[str, Any] | None:
        """Return a line as a message; answer invalid lines with an error and skip empty ones."""
        if not line.strip():
            return None
        try:
            decoded = msgspec.json.decode(line)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
            await self._send_error(_PARSE_ERROR)
            return None
        message = as_object(decoded)
        if message is None or not _is_message(message):
            await self._send_error(_INVALID_REQUEST)
            return None
        return message

    async def _send_error(self, error: tuple[int, str]) -> None:
        code, message = error
        await self.send({"jsonrpc": "2.0", "id": None, "error": {"code": code, "message": message}})

    async def _skip_line(self) -> None:
        while True:
            try:
                await self._reader.readuntil(b"\n")
            except asyncio.LimitOverrunError as overrun:
                await self._reader.readexactly(overrun.consumed)
            except asyncio.IncompleteReadError:
                return
            else:
                return


def _is_message(message: dict[str, Any]) -> bool:
    # The library uses these as dictionary keys, so they must be hashable.
    message_id = message.get("id")
    is_valid_id = message_id is None or (isinstance(message_id, str | int | float) and not isinstance(message_id, bool))
    method = message.get("method")
    return is_valid_id and (isinstance(method, str) or (method is None and "id" in message))


async def take_standard_streams() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Return standard input and output, and disconnect the rest of the process from them.

    Other output goes to standard error, and child processes get an empty standard input.

    Raises:
        BadRequest: standard input or output is not a pipe.
    """
    from acp.stdio import stdio_streams

    duplicates = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    null_device = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null_device, 0)
    os.close(null_device)
    os.dup2(2, 1)
    sys.stdin, sys.stdout = duplicates
    try:
        streams = await stdio_streams(limit=_MAX_LINE_BYTES)
    except ValueError:
        raise BadRequest(
            "`steno acp` must be started by an editor, over pipes", hint="Run `steno acp --editor` for the settings."
        ) from None
    if sys.platform != "win32":
        # On Windows the library keeps reading and writing through these.
        sys.stdout = sys.stderr
    return streams


_INVALID_PARAMS: Final = -32602
_RESOURCE_NOT_FOUND: Final = -32002
_PAGE_SIZE: Final = 100
_AUTH_METHOD: Final = AuthMethodAgent(
    id="environment",
    name="API key in the environment",
    description=(
        "Set ANTHROPIC_API_KEY, or ANTHROPIC_AUTH_TOKEN for a gateway, in the environment of your editor, "
        "then restart the editor."
    ),
)
McpServer = HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio


@contextmanager
def _request_errors() -> Generator[None]:
    """Convert steno errors to JSON-RPC errors."""
    try:
        yield
    except MissingKey as error:
        raise _request_error(AUTH_REQUIRED, error) from None
    except NotFound as error:
        raise _request_error(_RESOURCE_NOT_FOUND, error) from None
    except BadRequest as error:
        raise _request_error(_INVALID_PARAMS, error) from None
    except StenoError as error:
        raise _request_error(INTERNAL_ERROR, error) from None
    except OSError as error:
        raise RequestError(INTERNAL_ERROR, error.strerror or str(error)) from None


def _request_error(code: int, error: StenoError) -> RequestError:
    message = f"{error}. {error.hint}" if error.hint else str(error)
    return RequestError(code, message)


class AgentServer:
    """The agent as an ACP server."""

    def __init__(self, server_config: ServerConfig) -> None:
        self._server_config = server_config
        self._stack = AsyncExitStack()
        self._model: ModelClient | None = None
        self._sessions: dict[str, EditorSession] = {}
        self._client: Any = None

    def on_connect(self, conn: Any) -> None:
        """Store the client connection."""
        self._client = conn

    async def close(self) -> None:
        """Close all sessions."""
        sessions, self._sessions = self._sessions, {}
        for session in sessions.values():
            with suppress(StenoError, OSError):
                await session.close()
        await self._stack.aclose()

    # Who one is

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: ClientCapabilities | None = None,
        client_info: Implementation | None = None,
        **_more: Any,
    ) -> InitializeResponse:
        """Return the agent info and capabilities."""
        del protocol_version, client_capabilities, client_info
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_info=Implementation(name="steno", title="steno", version=__version__),
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(image=True, audio=False, embedded_context=True),
                mcp_capabilities=_mcp_support(),
                session_capabilities=SessionCapabilities(
                    list=SessionListCapabilities(), additional_directories=SessionAdditionalDirectoriesCapabilities()
                ),
            ),
            auth_methods=[_AUTH_METHOD],
        )

    async def authenticate(self, method_id: str, **_more: Any) -> AuthenticateResponse:
        """Check that the environment has an API key."""
        with _request_errors():
            if method_id != _AUTH_METHOD.id:
                raise BadRequest(f"unknown auth method {method_id!r}", hint=f"Use {_AUTH_METHOD.id}.")
            await self._get_model()
        return AuthenticateResponse()

    async def _get_model(self) -> ModelClient:
        if self._model is None:
            self._model = await self._stack.enter_async_context(self._server_config.open_model())
        return self._model

    # Sessions

    async def new_session(
        self,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[McpServer] | None = None,
        **_more: Any,
    ) -> NewSessionResponse:
        """Start a session."""
        with _request_errors():
            options = self._options(cwd, additional_directories, mcp_servers)
            session = await self._open_session(options, new_session(options.config, options.cwd))
        session.send_commands()
        return NewSessionResponse(session_id=session.id, modes=session.modes())

    async def load_session(
        self,
        cwd: str,
        session_id: str,
        mcp_servers: list[McpServer] | None = None,
        additional_directories: list[str] | None = None,
        **_more: Any,
    ) -> LoadSessionResponse:
        """Resume a session and send its history."""
        with _request_errors():
            options = self._options(cwd, additional_directories, mcp_servers)
            previous = self._sessions.pop(session_id, None)
            if previous is not None:
                await previous.close()
            path = await asyncio.to_thread(_find_session_file, session_id, options)
            writable_session = await asyncio.to_thread(resume_session, path, options.cwd)
            session = await self._open_session(options, writable_session)
            await session.replay()
        session.send_commands()
        return LoadSessionResponse(modes=session.modes())

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **_more: Any
    ) -> ListSessionsResponse:
        """Return a page of sessions, newest first."""
        with _request_errors():
            start = int(cursor) if cursor and cursor.isdecimal() else 0
            options = self._server_config.make_options(cwd or os.getcwd())
            sessions = await asyncio.to_thread(_list_sessions, options.config, cwd)
            page = sessions[start : start + _PAGE_SIZE]
        next_cursor = str(start + _PAGE_SIZE) if len(sessions) > start + _PAGE_SIZE else None
        return ListSessionsResponse(sessions=page, next_cursor=next_cursor)

    def _options(self, cwd: str, extra_folders: list[str] | None, servers: list[McpServer] | None) -> AgentOptions:
        if not os.path.isabs(cwd) or not os.path.isdir(cwd):
            raise BadRequest(f"{cwd!r} is not a directory", hint="Use the absolute path of a directory.")
        options = self._server_config.make_options(cwd)
        options.folders = (*options.folders, *(extra_folders or ()))
        if servers:
            options.mcp_config = (*options.mcp_config, _mcp_config(servers))
        return options

    async def _open_session(self, options: AgentOptions, writable_session: WritableSession) -> EditorSession:
        try:
            session = EditorSession(
                self._client, self._server_config, await self._get_model(), options, writable_session
            )
            self._sessions[session.id] = session
            await session.open()
        except BaseException:
            self._sessions.pop(writable_session.id, None)
            writable_session.conversation.recorder.close()
            raise
        return session

    def _get_session(self, session_id: str) -> EditorSession:
        session = self._sessions.get(session_id)
        if session is None:
            raise NotFound(f"session {session_id!r} is not open", hint="Load it, or start a new session.")
        return session

    # Turns

    async def prompt(self, session_id: str, prompt: list[PromptContent], **_more: Any) -> PromptResponse:
        """Run a prompt to its end."""
        with _request_errors():
            reason = await self._get_session(session_id).run_prompt(prompt)
        return PromptResponse(stop_reason=reason)

    async def cancel(self, session_id: str, **_more: Any) -> None:
        """Interrupt the running turn of a session, if it is open."""
        if session_id in self._sessions:
            self._sessions[session_id].cancel()

    async def set_session_mode(self, session_id: str, mode_id: str, **_more: Any) -> SetSessionModeResponse:
        """Set the permission mode of a session."""
        with _request_errors():
            self._get_session(session_id).set_mode(mode_id)
        return SetSessionModeResponse()


def _mcp_support() -> McpCapabilities:
    """Return the supported MCP transports: none without the `mcp` package."""
    from importlib.util import find_spec

    is_installed = find_spec("mcp") is not None
    return McpCapabilities(http=is_installed, sse=is_installed)


def _mcp_config(servers: list[McpServer]) -> str:
    """Return servers in the format of `--mcp-config`.

    Raises:
        BadRequest: unsupported transport.
    """
    config: dict[str, dict[str, Any]] = {}
    for server in servers:
        if isinstance(server, McpServerStdio):
            env = {variable.name: variable.value for variable in server.env}
            config[server.name] = {"command": server.command, "args": server.args, "env": env}
        elif isinstance(server, AcpMcpServer):
            raise BadRequest(f"MCP server {server.name} uses an unsupported transport (acp)")
        else:
            headers = {each.name: each.value for each in server.headers}
            config[server.name] = {"type": server.type, "url": server.url, "headers": headers}
    return msgspec.json.encode({"mcpServers": config}).decode()


def _find_session_file(session_id: str, options: AgentOptions) -> str:
    from steno.store.session_lookup import find

    if not is_uuid(session_id):
        raise NotFound(f"no session matches {session_id!r}")
    return find(session_id, options.config, options.cwd, archived=False).path


def _list_sessions(config: str, cwd: str | None) -> list[SessionInfo]:
    from datetime import UTC, datetime

    from steno.store.session_lookup import sessions_newest_first, summarize_files

    requested_cwd = os.path.realpath(cwd) if cwd else ""
    return [
        SessionInfo(
            session_id=summary.id,
            cwd=summary.project,
            title=summary.title or None,
            updated_at=datetime.fromtimestamp(summary.ended, UTC).isoformat() if summary.ended else None,
        )
        for _, summary in summarize_files(sessions_newest_first(config))
        if not summary.hidden
        and os.path.isabs(summary.project)
        and (not requested_cwd or os.path.realpath(summary.project) == requested_cwd)
    ]


async def serve(server_config: ServerConfig) -> None:
    """Serve a client on standard input and output until it disconnects.

    Raises:
        BadRequest: standard input or output is not a pipe.
    """
    reader, writer = await take_standard_streams()
    host = AgentServer(server_config)
    # `AgentServer` implements only the offered methods; the library answers the others.
    agent: Any = host
    connection = AgentSideConnection(agent, JsonRpcStream(reader, writer), listening=False)
    listening = asyncio.ensure_future(connection.listen())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        with suppress(NotImplementedError):
            loop.add_signal_handler(number, listening.cancel)
    try:
        await asyncio.gather(listening, return_exceptions=True)
    finally:
        await host.close()
        await connection.close()
