"""An editor for tests: the official client side, with the agent beside it or as a program."""

import asyncio
import os
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from acp import spawn_agent_process
from acp._transport import memory_transport_pair
from acp.agent.connection import AgentSideConnection
from acp.client.connection import ClientSideConnection
from acp.schema import AllowedOutcome, DeniedOutcome, PermissionOption, RequestPermissionResponse, ToolCallUpdate

from steno.acp.editor_session import ServerConfig
from steno.acp.server import AgentServer
from steno.agent.config.agent_options import AgentOptions
from steno.check.checkup import check
from steno.format.source import BytesSource
from steno.llm.client import ApiClient
from steno.llm.endpoint import Endpoint
from steno.llm.testserver.responders import Responder
from steno.llm.testserver.server import Server
from steno.permissions.project_trust import is_trusted

KEY: Final = "canary-key-of-nobody"
_SECONDS: Final = 50.0


class Editor:
    """A client that keeps what it is told, and answers as it is to."""

    def __init__(self) -> None:
        self.updates: list[tuple[str, Any]] = []
        self.asked: list[tuple[Any, list[PermissionOption]]] = []
        self.answers: list[str] = []
        """What is chosen, one question after the other; nothing for a question left open."""
        self.conn: Any = None
        self._changed = asyncio.Event()
        self._left_open: list[asyncio.Future[None]] = []

    def on_connect(self, conn: Any) -> None:
        self.conn = conn

    async def session_update(self, session_id: str, update: Any, **_more: Any) -> None:
        self.updates.append((session_id, update))
        self._changed.set()

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_more: Any
    ) -> RequestPermissionResponse:
        assert session_id
        self.asked.append((tool_call, options))
        # Whoever is asked about a call has been told of it.
        assert tool_call.tool_call_id == "trust" or self.call(tool_call.tool_call_id)["states"]
        self._changed.set()
        answer = self.answers.pop(0)
        if not answer:
            left: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._left_open.append(left)
            await left
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        assert answer in [each.option_id for each in options]
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=answer))

    def leave(self) -> None:
        """Answer what was left open, as a client does that has broken in."""
        for each in self._left_open:
            each.set_result(None)
        self._left_open.clear()

    # What it was told

    def of(self, kind: str, session_id: str = "") -> list[Any]:
        return [update for name, update in self.updates if update.session_update == kind and session_id in ("", name)]

    def text(self, kind: str = "agent_message_chunk", session_id: str = "") -> str:
        return "".join(each.content.text for each in self.of(kind, session_id))

    def call(self, name: str) -> dict[str, Any]:
        """Return what is known of a call by now, and the states it went through."""
        known: dict[str, Any] = {"states": []}
        for _, update in self.updates:
            if getattr(update, "tool_call_id", "") != name:
                continue
            told = update.model_dump(exclude_none=True)
            if "status" in told and told["status"] not in known["states"]:
                known["states"].append(told["status"])
            known |= told
        return known

    async def until(self, holds: Callable[[], bool]) -> None:
        """Wait until something holds of what it was told."""
        while not holds():
            self._changed.clear()
            await asyncio.wait_for(self._changed.wait(), _SECONDS)


class Desk:
    """An editor, the program it started, and what lies around them."""

    def __init__(self, folder: Path, server: Server) -> None:
        self.project = folder / "project"
        self.config = folder / "home" / ".claude"
        self.home = folder / "home"
        self.server = server
        self.editor = Editor()
        self.process: Any = None
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "CLAUDE_CONFIG_DIR": str(self.config),
            "STENO_HOME": str(self.home / "steno"),
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": KEY,
            "PYTHONUTF8": "1",
        }

    @property
    def conn(self) -> Any:
        return self.editor.conn

    async def begin(self, **more: Any) -> str:
        """Begin a session; return its id."""
        made = await self.conn.new_session(cwd=str(self.project), mcp_servers=[], **more)
        return made.session_id

    async def say(self, session: str, *blocks: Any) -> str:
        """Say something; return why it stopped."""
        from acp import text_block

        prompt = [text_block(each) if isinstance(each, str) else each for each in blocks]
        answer = await asyncio.wait_for(self.conn.prompt(session_id=session, prompt=prompt), _SECONDS)
        return answer.stop_reason

    @property
    def files(self) -> list[Path]:
        return sorted((self.config / "projects").glob("*/*.jsonl"))

    def proves(self) -> None:
        """Whatever happened: nothing was refused, every session is sound, no key was written."""
        assert list(self.server.refused) == []
        for path in self.files:
            found = check(BytesSource(path.read_bytes()), name=path.stem).findings
            assert [each.id for each in found if each.severity != "info"] == []
        for path in self.home.rglob("*"):
            assert not path.is_file() or KEY.encode() not in path.read_bytes()


@asynccontextmanager
async def desk(folder: Path, mind: Responder, *, key: str = KEY, **given: Any) -> AsyncGenerator[Desk]:
    """Open an editor whose agent is in this process, with that key and these options."""
    async with _at_a_server(folder, mind) as made:
        env = dict(made.env)

        def options(cwd: str) -> AgentOptions:
            trusted = is_trusted(cwd)
            return AgentOptions(cwd=cwd, config=str(made.config), env=env, trusted=trusted, **given)

        endpoint = Endpoint(made.server.url, api_key=key)
        host = AgentServer(
            ServerConfig(
                make_options=options, open_model=lambda: ApiClient(endpoint), price_response=lambda _model, _usage: 0
            )
        )
        theirs, ours = memory_transport_pair()
        offered: Any = host
        agent = AgentSideConnection(offered, ours)
        editor: Any = made.editor
        async with ClientSideConnection(editor, theirs) as conn:
            made.editor.conn = conn
            await conn.initialize(protocol_version=1)
            yield made
        await host.close()
        await agent.close()


@asynccontextmanager
async def program(folder: Path, mind: Responder, *arguments: str, **env: str) -> AsyncGenerator[Desk]:
    """Open an editor that has started `steno acp`."""
    async with _at_a_server(folder, mind) as made:
        made.env |= env
        with (folder / "stderr").open("ab") as said:
            editor: Any = made.editor
            async with spawn_agent_process(
                editor,
                sys.executable,
                "-m",
                "steno",
                "acp",
                *arguments,
                env=made.env,
                cwd=folder,
                transport_kwargs={"stderr": said.fileno(), "limit": 1 << 26, "shutdown_timeout": _SECONDS},
            ) as (conn, process):
                made.editor.conn, made.process = conn, process
                await conn.initialize(protocol_version=1)
                yield made
        assert (folder / "stderr").read_bytes() == b""
        assert process.returncode == 0


@asynccontextmanager
async def _at_a_server(folder: Path, mind: Responder) -> AsyncGenerator[Desk]:
    (folder / "project").mkdir(exist_ok=True)
    (folder / "home").mkdir(exist_ok=True)
    async with Server(mind, key=KEY) as server:
        yield Desk(folder, server)
