"""A whole agent, put together by `start` as the command line does, on the strict server."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from steno.agent.agent_session import AgentSession, build_session
from steno.agent.config.agent_options import AgentCallbacks, AgentOptions
from steno.agent.events import CallDenied, Event, Notice, ToolEnded, TurnEnded
from steno.agent.writable_session import WritableSession, new_session, resume_session
from steno.check.checkup import check
from steno.format.source import BytesSource
from steno.llm.client import ApiClient
from steno.llm.endpoint import Endpoint
from steno.llm.testserver.responders import Responder
from steno.llm.testserver.server import Server
from steno.session.resume.replay import valid_messages
from steno.session.transcript import load
from steno.tools.protocol import ToolResult

KEY = "canary-key"


class Whole:
    """One agent with everything around it, for one test."""

    def __init__(self, folder: Path, mind: Responder, **options: Any) -> None:
        self.project = folder / "project"
        self.config = folder / "config"
        self.project.mkdir(exist_ok=True)
        self.config.mkdir(exist_ok=True)
        env = {
            "HOME": str(folder / "home"),
            "CLAUDE_CONFIG_DIR": str(self.config),
            "STENO_HOME": str(folder / "steno"),
            "PATH": os.environ["PATH"],
            "ANTHROPIC_API_KEY": KEY,
        }
        env |= options.pop("env", {})
        self.options = AgentOptions(cwd=str(self.project), config=str(self.config), env=env, **options)
        self.server = Server(mind)
        self.events: list[Event] = []
        self.work: WritableSession = new_session(str(self.config), str(self.project))
        self.started: AgentSession | None = None
        self.price: Callable[[str, dict[str, Any]], int] = lambda _model, _usage: 1000

    def settings(self, layer: str = "user", **settings: Any) -> None:
        """Write settings of the user, or of the project (`project`, `local`)."""
        names = {"project": "settings.json", "local": "settings.local.json"}
        path = self.config / "settings.json"
        if layer in names:
            path = self.project / ".claude" / names[layer]
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(settings), encoding="utf-8")

    def play(self, act: Callable[[AgentSession], Awaitable[Any]]) -> Any:
        """Start, let something happen, and end."""

        async def pause(_seconds: float) -> None:
            pass

        async def together() -> Any:
            async with self.server, ApiClient(Endpoint(self.server.url, api_key=KEY), sleep=pause) as api:
                people = AgentCallbacks(emit=self.events.append)
                self.started = build_session(self.options, self.work, api, people, self.price)
                try:
                    return await act(self.started)
                finally:
                    await self.started.close()

        return asyncio.run(together())

    def say(self, *prompts: str) -> list[TurnEnded]:
        """Say things in turn; return how each turn ended."""

        async def talk(started: AgentSession) -> list[TurnEnded]:
            return [await started.agent.run_turn(prompt) for prompt in prompts]

        return self.play(talk)

    def resume(self) -> None:
        """Go on with the session as a new process would."""
        self.work = resume_session(self.path, str(self.project))

    @property
    def path(self) -> str:
        return self.work.conversation.recorder.path

    @property
    def results(self) -> list[ToolResult]:
        return [each.result for each in self.events if isinstance(each, ToolEnded)]

    @property
    def refused(self) -> list[str]:
        return [each.decision.reason for each in self.events if isinstance(each, CallDenied)]

    @property
    def notices(self) -> list[str]:
        return [each.text for each in self.events if isinstance(each, Notice)]

    @property
    def bodies(self) -> list[dict[str, Any]]:
        """The requests for answers that the server got."""
        return [each.body for each in self.server.requests if each.path == "/v1/messages"]

    def check(self) -> None:
        """Everything an agent promises about its file, whatever happened."""
        assert [each.refusal for each in self.server.refused] == []
        data = Path(self.path).read_bytes()
        evidence = check(BytesSource(data), name=Path(self.path).stem)
        bad = [each for each in evidence.findings if each.severity != "info"]
        assert [(each.id, each.message) for each in bad] == []
        assert valid_messages(load(BytesSource(data))) == self.work.conversation.messages()
        assert KEY.encode() not in data
