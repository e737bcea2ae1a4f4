"""A whole agent, put together by `start` as the command line does, on the strict server."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from steno.agent.events import Ended, Event, Noticed, Refused, ToolEnded
from steno.agent.sessions import Work, go_on, new
from steno.agent.start import Options, People, Started, start
from steno.check.checkup import check
from steno.format.source import BytesSource
from steno.model.client import Api
from steno.model.endpoint import Endpoint
from steno.model.server.app import Server
from steno.model.server.minds import Mind
from steno.session.resume.replay import valid_messages
from steno.session.transcript import load
from steno.tools.base import ToolResult

KEY = "canary-key"


class Whole:
    """One agent with everything around it, for one test."""

    def __init__(self, folder: Path, mind: Mind, **options: Any) -> None:
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
        self.options = Options(cwd=str(self.project), config=str(self.config), env=env, **options)
        self.server = Server(mind)
        self.events: list[Event] = []
        self.work: Work = new(str(self.config), str(self.project))
        self.started: Started | None = None
        self.price: Callable[[str, dict[str, Any]], int] = lambda _model, _usage: 1000

    def settings(self, layer: str = "user", **settings: Any) -> None:
        """Write settings of the user, or of the project (`project`, `local`)."""
        names = {"project": "settings.json", "local": "settings.local.json"}
        path = self.config / "settings.json"
        if layer in names:
            path = self.project / ".claude" / names[layer]
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(settings), encoding="utf-8")

    def play(self, act: Callable[[Started], Awaitable[Any]]) -> Any:
        """Start, let something happen, and end."""

        async def pause(_seconds: float) -> None:
            pass

        async def together() -> Any:
            async with (
                self.server,
                Api(Endpoint(self.server.url, api_key=KEY), sleep=pause) as api,
            ):
                people = People(emit=self.events.append)
                self.started = start(self.options, self.work, api, people, self.price)
                try:
                    return await act(self.started)
                finally:
                    await self.started.close()

        return asyncio.run(together())

    def say(self, *prompts: str) -> list[Ended]:
        """Say things in turn; return how each turn ended."""

        async def talk(started: Started) -> list[Ended]:
            return [await started.agent.turn(prompt) for prompt in prompts]

        return self.play(talk)

    def resume(self) -> None:
        """Go on with the session as a new process would."""
        self.work = go_on(self.path, str(self.project))

    @property
    def path(self) -> str:
        return self.work.talk.recorder.path

    @property
    def results(self) -> list[ToolResult]:
        return [each.outcome for each in self.events if isinstance(each, ToolEnded)]

    @property
    def refused(self) -> list[str]:
        return [each.decision.reason for each in self.events if isinstance(each, Refused)]

    @property
    def notices(self) -> list[str]:
        return [each.words for each in self.events if isinstance(each, Noticed)]

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
        assert valid_messages(load(BytesSource(data))) == self.work.talk.messages()
        assert KEY.encode() not in data
