"""A house for agents: a user's folder and a project's on disk, everything put together by `run`."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steno.agent.agent_session import AgentSession, build_session
from steno.agent.config.agent_options import AgentCallbacks, AgentOptions
from steno.agent.events import Event, TurnEnded
from steno.agent.headless import run_headless
from steno.agent.headless_output import HeadlessPrinter
from steno.agent.writable_session import WritableSession, new_session, resume_session
from steno.check.checkup import check
from steno.format.source import BytesSource
from steno.llm.client import ApiClient
from steno.llm.endpoint import Endpoint
from steno.llm.messages_api import Block
from steno.llm.testserver.scripted_responder import ScriptedResponder
from steno.llm.testserver.server import Server
from steno.session.resume.replay import valid_messages
from steno.session.transcript import load

if TYPE_CHECKING:
    from steno.agent.tool_executor import RequestApproval

__all__ = ["House"]

MODEL = "claude-opus-4-5-20251101"


class House:
    """A machine with a user, a project, hooks that are scripts on disk, and a scripted model."""

    def __init__(
        self, folder: Path, script: ScriptedResponder | None = None, *, trusted: bool = True, **settings: Any
    ) -> None:
        self.project = folder / "project"
        self.config = folder / "config"
        self.scripts = folder / "scripts"
        for each in (self.project, self.config, self.scripts):
            each.mkdir()
        self.script = script if script is not None else ScriptedResponder()
        self.server = Server(self.script, **settings)
        self.settings: dict[str, Any] = {}
        self.lines: list[dict[str, Any]] = []
        self.events: list[Event] = []
        self.consent: RequestApproval | None = None
        self.partial = False
        self.options = AgentOptions(
            cwd=str(self.project),
            config=str(self.config),
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(folder),
                "CLAUDE_CONFIG_DIR": str(self.config),
                "STENO_HOME": str(folder / "steno"),
            },
            trusted=trusted,
            model=MODEL,
            max_tokens=1000,
        )
        self.work: WritableSession = new_session(self.options.config, self.options.cwd)

    # What is on disk

    def write(self, name: str, text: str) -> Path:
        """Write a file of the project, or with `~/` one of the user's."""
        path = self.config / name[2:] if name.startswith("~/") else self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    def hook(self, event: str, body: str = "", *, matcher: str = "", **more: Any) -> None:
        """Put a script on the disk that writes down what it is told, and let it hear an event."""
        events: dict[str, list[Any]] = self.settings.setdefault("hooks", {})
        script = self.scripts / f"{event}-{len(events.get(event, ()))}.sh"
        log = self.scripts / f"{event}.log"
        script.write_text(f"#!/bin/sh\ncat >> '{log}'\n{body}\n", "utf-8")
        script.chmod(0o700)
        entry = {"type": "command", "command": str(script), **more}
        events.setdefault(event, []).append({"matcher": matcher, "hooks": [entry]})
        self.write("~/settings.json", json.dumps(self.settings))

    def told(self, event: str) -> list[dict[str, Any]]:
        """Return what the hooks of an event were told, each time."""
        log = self.scripts / f"{event}.log"
        return [json.loads(line) for line in log.read_text("utf-8").splitlines()] if log.exists() else []

    # What happens

    def say(self, *prompts: str | list[Block]) -> int:
        """Let `steno chat -p` take these prompts; return its exit code."""

        async def given() -> AsyncIterator[str | list[Block]]:
            for prompt in prompts:
                yield prompt

        def take(line: str | dict[str, Any]) -> None:
            assert isinstance(line, dict)
            self.lines.append(line)

        async def together() -> int:
            async with self.server, self._api() as api:
                printer = HeadlessPrinter("stream-json", self.work.id, take, partial=self.partial)
                return await run_headless(self.options, self.work, api, given(), printer, price=lambda _m, _u: 1000)

        return asyncio.run(together())

    def talk(self, *prompts: str) -> list[TurnEnded]:
        """Let prompts be heard where somebody is there to be asked."""

        async def together() -> list[TurnEnded]:
            async with self.server, self._api() as api:
                started = self._started(api)
                await started.open()
                ended = [await started.submit(prompt) for prompt in prompts]
                await started.close()
                return ended

        return asyncio.run(together())

    def _started(self, api: ApiClient) -> AgentSession:
        people = AgentCallbacks(emit=self.events.append, request_approval=self.consent)
        return build_session(self.options, self.work, api, people, lambda _model, _usage: 1000)

    def _api(self) -> ApiClient:
        async def pause(_seconds: float) -> None:
            pass

        endpoint = Endpoint(self.server.url, api_key="canary-key")
        return ApiClient(endpoint, sleep=pause, random=lambda: 0.5, api_events=self.partial)

    def resume(self) -> None:
        """Go on with the session as a new process would."""
        self.work.conversation.recorder.close()
        self.work = resume_session(str(self.path), self.options.cwd)

    # What is there then

    @property
    def path(self) -> Path:
        return Path(self.work.conversation.recorder.path)

    def files(self) -> list[Path]:
        """Return the session files of the project, oldest first."""
        found = (self.config / "projects").glob("*/*.jsonl")
        return sorted(found, key=lambda path: path.stat().st_mtime_ns)

    def records(self, path: Path | None = None) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (path or self.path).read_bytes().splitlines()]

    def attached(self, kind: str, path: Path | None = None) -> list[dict[str, Any]]:
        """Return the records of attachments of a kind."""
        return [each for each in self.records(path) if each.get("attachment", {}).get("type") == kind]

    def results(self) -> list[str]:
        return [line["result"] for line in self.lines if line["type"] == "result"]

    def printed(self, kind: str, subtype: str | None = None) -> list[dict[str, Any]]:
        """Return the lines of a kind."""
        found = [each for each in self.lines if each["type"] == kind]
        return [each for each in found if subtype is None or each.get("subtype") == subtype]

    def sent(self, request: int = -1) -> list[dict[str, Any]]:
        return self.server.requests[request].body["messages"]

    def check(self) -> None:
        """Everything an agent promises about its file, whatever happened."""
        assert list(self.server.refused) == []
        data = self.path.read_bytes()
        evidence = check(BytesSource(data), name=self.path.stem)
        bad = [each for each in evidence.findings if each.severity != "info"]
        assert [(each.id, each.message) for each in bad] == []
        assert valid_messages(load(BytesSource(data))) == self.work.conversation.messages()
        for file in self.config.rglob("*.jsonl"):
            assert b"canary-key" not in file.read_bytes()
