"""The agent side of the protocol: what a client can ask, and the sessions it has open."""

import asyncio
import os
import signal
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
from steno.acp.lines import Lines, own_streams
from steno.acp.prompts import Given
from steno.acp.setting import Setting
from steno.acp.thread import NO_KEY, Thread
from steno.agent.loop import Model
from steno.agent.options import Options
from steno.agent.sessions import Work, go_on, new
from steno.errors import BadRequest, NotFound, StenoError
from steno.format.paths import is_uuid
from steno.model.endpoint import NoKey

__all__ = ["Host", "serve"]

_WRONG: Final = -32602
_MISSING: Final = -32002
_FAILED: Final = -32603
_LISTED: Final = 100
_METHOD: Final = AuthMethodAgent(
    id="environment",
    name="A key in the environment",
    description=(
        "Set ANTHROPIC_API_KEY, or ANTHROPIC_AUTH_TOKEN for a gateway, where your editor starts "
        "steno, and start it again."
    ),
)
McpServer = HttpMcpServer | SseMcpServer | AcpMcpServer | McpServerStdio


@contextmanager
def _answered_for() -> Generator[None]:
    """Let what goes wrong be an answer, in the words it is told in everywhere."""
    try:
        yield
    except NoKey as error:
        raise _error(NO_KEY, error) from None
    except NotFound as error:
        raise _error(_MISSING, error) from None
    except BadRequest as error:
        raise _error(_WRONG, error) from None
    except StenoError as error:
        raise _error(_FAILED, error) from None
    except OSError as error:
        raise RequestError(_FAILED, error.strerror or str(error)) from None


def _error(code: int, error: StenoError) -> RequestError:
    words = f"{error}: {error.hint}" if error.hint else str(error)
    return RequestError(code, words)


class Host:
    """The engine, as a client sees it."""

    def __init__(self, setting: Setting) -> None:
        self._setting = setting
        self._stack = AsyncExitStack()
        self._model: Model | None = None
        self._threads: dict[str, Thread] = {}
        self._editor: Any = None

    def on_connect(self, conn: Any) -> None:
        """Take who is talked to."""
        self._editor = conn

    async def close(self) -> None:
        """Leave every session."""
        threads, self._threads = self._threads, {}
        for thread in threads.values():
            with suppress(StenoError, OSError):
                await thread.close()
        await self._stack.aclose()

    # Who one is

    async def initialize(
        self,
        protocol_version: int,
        client_capabilities: ClientCapabilities | None = None,
        client_info: Implementation | None = None,
        **_more: Any,
    ) -> InitializeResponse:
        """Say what there is."""
        del protocol_version, client_capabilities, client_info
        return InitializeResponse(
            protocol_version=PROTOCOL_VERSION,
            agent_info=Implementation(name="steno", title="steno", version=__version__),
            agent_capabilities=AgentCapabilities(
                load_session=True,
                prompt_capabilities=PromptCapabilities(
                    image=True, audio=False, embedded_context=True
                ),
                mcp_capabilities=_mcp_capabilities(),
                session_capabilities=SessionCapabilities(
                    list=SessionListCapabilities(),
                    additional_directories=SessionAdditionalDirectoriesCapabilities(),
                ),
            ),
            auth_methods=[_METHOD],
        )

    async def authenticate(self, method_id: str, **_more: Any) -> AuthenticateResponse:
        """Look whether there is a key: it is the environment's to have."""
        with _answered_for():
            if method_id != _METHOD.id:
                raise BadRequest(f"there is no method {method_id!r}", hint=f"there is {_METHOD.id}")
            await self._asked()
        return AuthenticateResponse()

    async def _asked(self) -> Model:
        if self._model is None:
            self._model = await self._stack.enter_async_context(self._setting.model())
        return self._model

    # Sessions

    async def new_session(
        self,
        cwd: str,
        additional_directories: list[str] | None = None,
        mcp_servers: list[McpServer] | None = None,
        **_more: Any,
    ) -> NewSessionResponse:
        """Begin a session."""
        with _answered_for():
            options = self._options(cwd, additional_directories, mcp_servers)
            thread = await self._entered(options, new(options.config, options.cwd))
        thread.introduce()
        return NewSessionResponse(session_id=thread.id, modes=thread.modes())

    async def load_session(
        self,
        cwd: str,
        session_id: str,
        mcp_servers: list[McpServer] | None = None,
        additional_directories: list[str] | None = None,
        **_more: Any,
    ) -> LoadSessionResponse:
        """Go on with a session; what was said and done is told again."""
        with _answered_for():
            options = self._options(cwd, additional_directories, mcp_servers)
            before = self._threads.pop(session_id, None)
            if before is not None:
                await before.close()
            path = await asyncio.to_thread(_found, session_id, options)
            work = await asyncio.to_thread(go_on, path, options.cwd)
            thread = await self._entered(options, work)
            await thread.retell()
        thread.introduce()
        return LoadSessionResponse(modes=thread.modes())

    async def list_sessions(
        self, cwd: str | None = None, cursor: str | None = None, **_more: Any
    ) -> ListSessionsResponse:
        """Say which sessions there are, the newest first."""
        with _answered_for():
            start = int(cursor) if cursor and cursor.isdecimal() else 0
            options = self._setting.options(cwd or os.getcwd())
            found = await asyncio.to_thread(_listed, options.config, cwd)
            page = found[start : start + _LISTED]
        following = str(start + _LISTED) if len(found) > start + _LISTED else None
        return ListSessionsResponse(sessions=page, next_cursor=following)

    def _options(
        self, cwd: str, folders: list[str] | None, servers: list[McpServer] | None
    ) -> Options:
        if not os.path.isabs(cwd) or not os.path.isdir(cwd):
            raise BadRequest(f"{cwd!r} is no folder", hint="the whole path of one is needed")
        options = self._setting.options(cwd)
        options.folders = (*options.folders, *(folders or ()))
        if servers:
            options.mcp_config = (*options.mcp_config, _configured(servers))
        return options

    async def _entered(self, options: Options, work: Work) -> Thread:
        try:
            thread = Thread(self._editor, self._setting, await self._asked(), options, work)
            self._threads[thread.id] = thread
            await thread.open()
        except BaseException:
            self._threads.pop(work.id, None)
            work.talk.recorder.close()
            raise
        return thread

    def _thread(self, session_id: str) -> Thread:
        thread = self._threads.get(session_id)
        if thread is None:
            raise NotFound(f"no session {session_id!r} is open", hint="load it, or begin a new one")
        return thread

    # Turns

    async def prompt(self, session_id: str, prompt: list[Given], **_more: Any) -> PromptResponse:
        """Take a prompt to its answer."""
        with _answered_for():
            reason = await self._thread(session_id).prompt(prompt)
        return PromptResponse(stop_reason=reason)

    async def cancel(self, session_id: str, **_more: Any) -> None:
        """Break in; what is not open needs no breaking into."""
        if session_id in self._threads:
            self._threads[session_id].cancel()

    async def set_session_mode(
        self, session_id: str, mode_id: str, **_more: Any
    ) -> SetSessionModeResponse:
        """Go on in another mode."""
        with _answered_for():
            self._thread(session_id).set_mode(mode_id)
        return SetSessionModeResponse()


def _mcp_capabilities() -> McpCapabilities:
    """Return which servers can be reached: none without the package for it."""
    from importlib.util import find_spec

    there = find_spec("mcp") is not None
    return McpCapabilities(http=there, sse=there)


def _configured(servers: list[McpServer]) -> str:
    """Return servers as `--mcp-config` takes them.

    Raises:
        BadRequest: one is reached in a way that there is none of.
    """
    found: dict[str, dict[str, Any]] = {}
    for server in servers:
        if isinstance(server, McpServerStdio):
            env = {each.name: each.value for each in server.env}
            found[server.name] = {"command": server.command, "args": server.args, "env": env}
        elif isinstance(server, AcpMcpServer):
            raise BadRequest(f"the server {server.name} cannot be reached through the client")
        else:
            headers = {each.name: each.value for each in server.headers}
            found[server.name] = {"type": server.type, "url": server.url, "headers": headers}
    return msgspec.json.encode({"mcpServers": found}).decode()


def _found(session_id: str, options: Options) -> str:
    """Return the file of a session."""
    from steno.store.library import find

    if not is_uuid(session_id):
        raise NotFound(f"there is no session {session_id!r}")
    return find(session_id, options.config, options.cwd, archived=False).path


def _listed(config: str, cwd: str | None) -> list[SessionInfo]:
    from datetime import UTC, datetime

    from steno.store.library import newest_first, seen

    wanted = os.path.realpath(cwd) if cwd else ""
    return [
        SessionInfo(
            session_id=look.id,
            cwd=look.project,
            title=look.title or None,
            updated_at=datetime.fromtimestamp(look.ended, UTC).isoformat() if look.ended else None,
        )
        for _, look in seen(newest_first(config))
        if not look.hidden
        and os.path.isabs(look.project)
        and (not wanted or os.path.realpath(look.project) == wanted)
    ]


async def serve(setting: Setting) -> None:
    """Serve a client on the standard input and output until it goes.

    Raises:
        BadRequest: nobody is there to talk to.
    """
    reader, writer = await own_streams()
    host = Host(setting)
    # It has what is offered, and no more: the library answers for the rest.
    agent: Any = host
    connection = AgentSideConnection(agent, Lines(reader, writer), listening=False)
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
