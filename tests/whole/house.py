"""A whole agent in a folder: the real wiring against the strict server, and what must hold after it.

    house = House(tmp_path, Script().on("go", tool("Read", file_path="a")).then("Done."))
    house.say("go")
    house.proves()

`proves` is the one promise of the engine, whatever happened before: every file checks clean, the
session goes on with exactly what was said, and the server never had to refuse anything.
"""

import asyncio
import copy
import json
import os
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from steno.agent import events
from steno.agent.agent_session import AgentSession, build_session
from steno.agent.config.agent_options import AgentCallbacks, AgentOptions
from steno.agent.context.token_usage import message_text
from steno.agent.events import Event, TurnEnded
from steno.agent.headless import run_headless
from steno.agent.headless_output import HeadlessPrinter
from steno.agent.writable_session import (
    WritableSession,
    fork_session,
    list_prompts,
    new_session,
    resume_session,
    rewind_session,
)
from steno.check.file_reports import check_files, find_all_files
from steno.format.source import BytesSource
from steno.llm.client import ApiClient
from steno.llm.endpoint import Endpoint
from steno.llm.messages_api import Block, Message
from steno.llm.retry_policy import RetryPolicy
from steno.llm.testserver.request_handler import ServerSettings
from steno.llm.testserver.responders import Answer as Said
from steno.llm.testserver.responders import Reply, Responder, ResponderRequest, text
from steno.llm.testserver.server import Server
from steno.session.resume.replay import valid_messages
from steno.session.transcript import load
from steno.store.file_source import FileSource

if TYPE_CHECKING:
    from steno.agent.tool_executor import Approval
    from steno.permissions.permission_rules import Decision
    from steno.store.discovery import Problem

KEY: Final = "canary-key-of-nobody"
PROOF: Final = "What was said so far?"
Act = Callable[[AgentSession], Awaitable[Any]]


class _Proving:
    """A mind that knows the prompt of the proof, and leaves all others to another."""

    def __init__(self, mind: Responder) -> None:
        self.mind = mind

    def answer(self, request: ResponderRequest) -> Said:
        if request.prompt_is_last and request.prompt.endswith(PROOF):
            return Reply(content=(text("All of it."),))
        return self.mind.answer(request)

    def accepts_thinking(self, thinking: str, signature: str) -> bool:
        return self.mind.accepts_thinking(thinking, signature)


class House:
    """A project, a home, a server, and one session at a time."""

    def __init__(self, folder: Path, mind: Responder, **options: Any) -> None:
        self.project = folder / "project"
        self.home = folder / "home"
        self.project.mkdir(parents=True)
        self.config = self.home / ".claude"
        self.config.mkdir(parents=True)
        self.options: dict[str, Any] = {"mode": "bypassPermissions", **options}
        self.server = Server(_Proving(mind), key=KEY, keep=5000)
        self.events: list[Event] = []
        self.consent: Callable[[Block, Decision], Awaitable[Approval]] | None = None
        self.ask: Any = None
        self.patience = RetryPolicy(retries=3)
        self.work: WritableSession | None = None
        self.live: list[Message] = []
        self.price = 1000
        self._outdated = 0
        """How many requests there were when it was last taken back or compacted."""
        self.watch: Callable[[Event], None] | None = None
        """Hears every event at the moment it happens, sub-agents' too."""

    # What is there

    def file(self, name: str, content: str | bytes = "") -> str:
        """Put a file into the project; return its path."""
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    def settings(self, **values: Any) -> None:
        """Write the user's settings."""
        (self.config / "settings.json").write_text(json.dumps(values))

    @property
    def env(self) -> dict[str, str]:
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "CLAUDE_CONFIG_DIR": str(self.config),
            "STENO_HOME": str(self.home / "steno"),
        }

    # What happens

    def play(self, act: Act, **options: Any) -> Any:
        """Start an agent for the session, let something happen, and close it."""

        async def together() -> Any:
            async with self.server, self._api() as api:
                work = self._work()
                made = self._options(options)
                people = AgentCallbacks(emit=self._hear, request_approval=self.consent, ask_user=self.ask)
                started = build_session(made, work, api, people, self._price)
                try:
                    return await act(started)
                finally:
                    await started.close()
                    self.live = copy.deepcopy(started.agent.conversation.messages())

        return asyncio.run(together())

    def _hear(self, event: Event) -> None:
        self.events.append(event)
        if isinstance(event, events.Compacted):
            self._outdated = len(self.sent)
        if self.watch is not None:
            self.watch(_bare(event))

    def say(self, *said: str | list[Block], **options: Any) -> list[TurnEnded]:
        """Say things in turn; return how each turn ended."""

        async def talk(started: AgentSession) -> list[TurnEnded]:
            return [await started.agent.run_turn(prompt) for prompt in said]

        return self.play(talk, **options)

    def broken_off(self, prompt: str, when: Callable[[Event], bool]) -> TurnEnded:
        """Say something, and break in as soon as an event is the one that is waited for."""

        async def talk(started: AgentSession) -> TurnEnded:
            seen = asyncio.Event()
            self.watch = lambda event: seen.set() if when(event) else None
            turn = asyncio.create_task(started.agent.run_turn(prompt))
            waiting = asyncio.create_task(seen.wait())
            await asyncio.wait([turn, waiting], return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            assert not turn.done(), "it was over before anybody broke in"
            started.agent.interrupt()
            return await turn

        ended = self.play(talk)
        self.watch = None
        return ended

    def headless(self, *said: str, **options: Any) -> tuple[int, list[dict[str, Any]]]:
        """Run prompts as `steno chat -p` does; return the exit code and the lines it prints."""
        lines: list[dict[str, Any]] = []

        async def given() -> AsyncIterator[str | list[Block]]:
            for prompt in said:
                yield prompt

        async def together() -> int:
            async with self.server, self._api() as api:
                work = self._work()
                printer = HeadlessPrinter("stream-json", work.id, lambda line: lines.append(_object(line)))
                made = self._options(options)
                try:
                    return await run_headless(made, work, api, given(), printer, price=self._price)
                finally:
                    self.live = copy.deepcopy(work.conversation.messages())

        return asyncio.run(together()), lines

    def _price(self, _model: str, _usage: dict[str, Any]) -> int:
        return self.price

    def compact(self, wishes: str = "") -> bool:
        """Compact the session by hand."""
        return self.play(lambda started: started.compactor.compact(started.agent, "manual", wishes))

    def resume(self) -> None:
        """Go on with the session as a new process does."""
        self._leave()
        self.work = resume_session(self.path, str(self.project))

    def fork(self) -> None:
        """Go on in a copy of the session."""
        self._leave()
        self.work = fork_session(str(self.config), self.path, str(self.project))

    def rewind(self, number: int) -> None:
        """Go back to before a prompt, the first being 0."""
        uuid, _ = list_prompts(self.path)[number]
        self._leave()
        self.work = rewind_session(self.path, str(self.project), uuid)
        self._outdated = len(self.sent)

    def _leave(self) -> None:
        """Let the session go, as a process does that ends."""
        if self.work is not None:
            self.work.conversation.recorder.close()

    def _work(self) -> WritableSession:
        if self.work is None:
            self.work = new_session(str(self.config), str(self.project))
        return self.work

    def _options(self, more: dict[str, Any]) -> AgentOptions:
        mine: dict[str, Any] = {"cwd": str(self.project), "config": str(self.config), "env": self.env}
        return AgentOptions(**{**mine, **self.options, **more})

    def _api(self) -> ApiClient:
        async def at_once(_seconds: float) -> None:
            await asyncio.sleep(0)

        endpoint = Endpoint(self.server.url, api_key=KEY)
        return ApiClient(endpoint, sleep=at_once, random=lambda: 0.5, retry_policy=self.patience)

    # What is left of it

    @property
    def path(self) -> str:
        assert self.work is not None
        return self.work.conversation.recorder.path

    @property
    def records(self) -> list[dict[str, Any]]:
        """The lines of the session."""
        return [json.loads(line) for line in Path(self.path).read_bytes().splitlines()]

    @property
    def details(self) -> list[Any]:
        """What the session keeps beside its results."""
        return [each["toolUseResult"] for each in self.records if "toolUseResult" in each]

    @property
    def results(self) -> list[dict[str, Any]]:
        """The results in the conversation."""
        blocks = [block for message in self.live for block in message["content"]]
        return [block for block in blocks if block["type"] == "tool_result"]

    @property
    def result(self) -> str:
        """The words of the last result."""
        content = self.results[-1]["content"]
        return content if isinstance(content, str) else json.dumps(content)

    @property
    def agents(self) -> list[Path]:
        """The files of the sub-agents."""
        return sorted(Path(self.path).with_suffix("").glob("subagents/agent-*.jsonl"))

    def happened(self, kind: type[Event]) -> list[Any]:
        """The events of a kind, sub-agents' included."""
        return [bare for each in self.events if isinstance(bare := _bare(each), kind)]

    @property
    def sent(self) -> list[dict[str, Any]]:
        """The requests of the conversation itself, not those of sub-agents or for summaries."""
        bodies = [each.body for each in self.server.requests]
        return [each for each in bodies if "You are a coding agent" in str(each.get("system"))]

    # The promise

    def proves(self) -> None:
        """Assert the three things that hold whatever happened."""
        self._checks_clean()
        self._sent_is_kept()
        self._goes_on()
        refused = [each.refusal for each in self.server.refused]
        assert refused == []

    def _checks_clean(self) -> None:
        problems: list[Problem] = []
        found = find_all_files(str(self.config), problems)
        bad = [
            (each.id, each.message, Path(file.path).name)
            for report in check_files(found, problems=problems)
            for file in report.files
            for each in file.findings
            # Records have every field that they should; other remarks are on what was asked for.
            if each.severity != "info" or each.id.startswith("fields.")
        ]
        assert (bad, problems) == ([], []), (bad, problems)
        for path in self.home.rglob("*"):
            assert not path.is_file() or KEY.encode() not in path.read_bytes()

    def _sent_is_kept(self) -> None:
        """What was sent last is what is in memory and in the file, and so is every sub-agent's."""
        if not Path(self.path).exists():
            assert self.live == []
            return
        assert _in_file(self.path) == self.live
        if len(self.sent) > self._outdated:
            _assert_begins(self.live, self.sent[-1]["messages"])
        # One that was broken off on its way has no body.
        bodies = [each.body for each in self.server.requests if each.body]
        for path in self.agents:
            said = _in_agents_file(path)
            begins = [each["messages"] for each in bodies if _is_beginning(each["messages"], said)]
            if begins:
                _assert_begins(said, begins[-1])

    def _goes_on(self) -> None:
        """A new process sends what was said, and the new prompt; in a copy, which is then gone."""
        if not self.live:
            return
        other = self.home.parent / "again"
        shutil.rmtree(other, ignore_errors=True)
        shutil.copytree(self.config, other, symlinks=True)
        path = other / Path(self.path).relative_to(self.config)
        mine, before = self.work, self.sent[-1:]
        saved = self.live, list(self.events), self.consent, self.ask
        self.work = resume_session(str(path), str(self.project))
        # Without a window: what is looked for is what was said, not a summary of it.
        desk, self.server._handler.settings = self.server._handler.settings, ServerSettings(key=KEY)
        (ended,) = self.say(PROOF, config=str(other), window=10_000_000)
        self.server._handler.settings = desk
        again = self.sent[-1]
        assert ended.text == "All of it."
        assert [_bare_message(each) for each in again["messages"]] == _joined(saved[0], PROOF)
        for body in before:
            assert (again["system"], again["tools"]) == (body["system"], body["tools"])
        config, self.config = self.config, other
        try:
            self._checks_clean()
        finally:
            self.config = config
        self.work = mine
        self.live, self.events, self.consent, self.ask = saved
        self.server.requests.pop()
        shutil.rmtree(other)


def _object(line: str | dict[str, Any]) -> dict[str, Any]:
    assert isinstance(line, dict)
    return line


def _in_file(path: str) -> list[Message]:
    with FileSource(path) as source:
        return valid_messages(load(source))


def _in_agents_file(path: Path) -> list[Message]:
    """Return the conversation of a sub-agent, which no client resumes by itself."""
    data = path.read_bytes().replace(b'"isSidechain":true', b'"isSidechain":false')
    return valid_messages(load(BytesSource(data)))


def _is_beginning(sent: list[Message], said: list[Message]) -> bool:
    """Whether a request is one of that conversation, by its first words."""
    return message_text(_bare_message(sent[0])["content"][:1]) == message_text(said[0]["content"][:1])


def _bare(event: Event) -> Event:
    while isinstance(event, events.SubagentEvent):
        event = event.event
    return event


def _bare_message(message: Message) -> Message:
    """Return a message without the mark of what may be cached."""
    bare = [{key: value for key, value in block.items() if key != "cache_control"} for block in message["content"]]
    return {**message, "content": bare}


def _joined(messages: list[Message], prompt: str) -> list[Message]:
    """Return what is sent when a prompt comes behind messages."""
    said = {"type": "text", "text": prompt}
    if messages[-1]["role"] != "user":
        return [*messages, {"role": "user", "content": [said]}]
    *blocks, last = messages[-1]["content"]
    if last["type"] == "text":
        last = {**last, "text": f"{last['text']}\n"}
    return [*messages[:-1], {"role": "user", "content": [*blocks, last, said]}]


def _assert_begins(whole: list[Message], sent: list[Message]) -> None:
    """Assert that what was sent stands at the beginning, byte for byte.

    The last block alone may have got a newline, where more of the user's words came behind it.
    """
    flat = [(each["role"], json.dumps(block)) for each in whole for block in each["content"]]
    bare = [(each["role"], block) for each in map(_bare_message, sent) for block in each["content"]]
    last = len(bare) - 1
    begins = [(role, json.dumps(block)) for role, block in bare[:last]]
    differing = [pair for pair in zip(flat, begins, strict=False) if pair[0] != pair[1]]
    assert (differing[:1], len(flat) > last) == ([], True)
    role, block = bare[last]
    ends = [block, {**block, "text": f"{block['text']}\n"}] if "text" in block else [block]
    assert flat[last] in [(role, json.dumps(each)) for each in ends]
