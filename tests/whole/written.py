"""Sessions with everything that the engine writes, made once for several tests.

    sessions = written(tmp_path)

They come from the whole agent on the strict server: prompts at a terminal and with `-p`, every
tool, sub-agents, hooks, images, queued prompts, compactions, going on, forks, rewinds, breaks and
errors.
"""

import asyncio
from pathlib import Path
from typing import Any, Final

import msgspec
from tests.whole.house import House
from tests.whole.test_tools import FINE, furnish

from steno.agent import events
from steno.agent.agent_session import AgentSession
from steno.agent.context.token_usage import TurnLimits
from steno.llm.testserver.responders import ErrorReply, text, thinking, tool
from steno.llm.testserver.scripted_responder import ScriptedResponder

__all__ = ["Written", "written"]

_BUSY: Final = ErrorReply(status=529, kind="overloaded_error", message="Overloaded")
_WRONG: Final = ErrorReply(status=401, kind="authentication_error", message="no")
_BIG: Final = tool("Bash", command="for each in $(seq 900); do echo apples $each; done")


class Written(msgspec.Struct, frozen=True):
    """The folders of the homes that the sessions are in, and what is special about some."""

    homes: list[Path]
    typed: dict[str, int]
    """How many prompts were typed in a session, by its path."""
    console: Path
    """A session of the terminal, with a compaction."""
    headless: Path
    """A session of `-p`."""
    planned: Path
    """A session that begins in plan mode."""
    forked: Path
    """A fork of `console`."""
    events: list[events.Event]
    """What happened in `console` and the session of every tool."""
    lines: list[dict[str, Any]]
    """What `-p` printed."""

    @property
    def files(self) -> list[Path]:
        """Every transcript, sub-agents' included."""
        found = (path for home in self.homes for path in home.rglob("projects/*/**/*.jsonl"))
        return sorted(found)


def written(folder: Path) -> Written:
    """Let the engine write its sessions into a folder."""
    tools, console, plan = _tools(folder / "tools"), _console(folder / "console"), folder / "plan"
    typed = {console.path: 5, tools.path: 1}
    main = Path(console.path)
    console.fork()
    console.say("on the fork")
    typed[console.path] = 6
    forked = Path(console.path)
    planned = House(plan, ScriptedResponder().otherwise("A plan."))
    planned.say("Think: move the tests, then the rest", mode="plan")
    headless, lines = _headless(folder / "headless")
    others = [_troubled(folder / "troubled"), _full(folder / "full"), _busy(folder / "busy")]
    return Written(
        homes=[each.config for each in (tools, console, planned, headless, *others)],
        typed=typed,
        console=main,
        headless=Path(headless.path),
        planned=Path(planned.path),
        forked=forked,
        events=[*console.events, *tools.events],
        lines=lines,
    )


def _tools(folder: Path) -> House:
    """One turn in which every tool is used."""
    script = ScriptedResponder().on("count the apples", "Three apples.")
    house = House(folder, script)
    furnish(house)
    calls = [call for calls, _ in FINE.values() for call in calls]
    script.on("go", [thinking("hm"), text("First."), calls[0], calls[0]])
    for call in calls[1:]:
        script.then(call)
    script.then(tool("Read", file_path="nowhere.txt")).then(tool("Bash", command="exit 3"))
    script.then("Done.")
    house.say("go")
    return house


def _console(folder: Path) -> House:
    """Prompts at a terminal, hooks, a sub-agent, a compaction, going on, a rewind."""
    script = (
        ScriptedResponder()
        .on("Summarize", "In short.")
        .on("work for me", [tool("Bash", command="echo in an agent")])
        .then("Worked.")
        .on("agent go", tool("Agent", description="d", prompt="work for me"))
        .then("It worked.")
        .on("look", [text("I look."), tool("Read", file_path="a.txt")])
        .then(tool("Edit", file_path="a.txt", old_string="two", new_string="2"))
        .then("Looked.")
        .otherwise("Yes.")
    )
    house = House(folder, script)
    furnish(house)
    said = "cat > /dev/null; echo heard"
    events_heard = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop")
    hooks = {event: [{"hooks": [{"type": "command", "command": said}]}] for event in events_heard}
    house.settings(hooks=hooks)
    house.say("look at @a.txt", "agent go")
    house.settings()

    async def hear(started: AgentSession) -> None:
        for said in ("/usage", "just so", "/compact keep the apples", "after it"):
            await started.submit(said)

    house.play(hear)
    house.resume()
    house.say("taken back later")
    house.rewind(-1)
    house.say("said instead")
    return house


def _headless(folder: Path) -> tuple[House, list[dict[str, Any]]]:
    script = ScriptedResponder().on("count the pears", "Two pears.")
    script.on("go", [tool("Bash", command="echo one; echo two")])
    call = tool("Agent", description="d", prompt="count the pears", run_in_background=True)
    script.then(call).then("Done.")
    house = House(folder, script.otherwise("Yes."))
    _, lines = house.headless("go", "and")
    return house, lines


def _troubled(folder: Path) -> House:
    """Errors that pass, one that stays, breaks into an answer and into calls, a refusal."""
    script = (
        ScriptedResponder()
        .on("busy", "At last.", first=[_BUSY, _BUSY])
        .on("wrong", _WRONG)
        .on("long", [tool("Bash", command="sleep 60")])
        .on("no", "I will not.", stop_reason="refusal")
        .otherwise("Yes.")
    )
    house = House(folder, script)
    house.say("busy", "no")
    house.broken_off("long", lambda event: isinstance(event, events.ToolStarted))
    program = "cat > /dev/null; echo not that >&2; exit 2"
    refused = [{"hooks": [{"type": "command", "command": program}]}]
    house.settings(hooks={"UserPromptSubmit": refused})
    house.say("kept out")
    house.settings()
    house.say("said at last", "wrong")
    return house


def _full(folder: Path) -> House:
    """A window that fills up in the middle of a turn."""
    script = ScriptedResponder().on("Summarize", "In short.").on("Write one", "In short.")
    script.on("fill it", _BIG)
    for _ in range(3):
        script.then(_BIG)
    house = House(folder, script.then("Full.").otherwise("Yes."), window=14_000, max_tokens=1_000)
    house.say("one", "fill it", limits=TurnLimits(requests=6))
    house.say("two", window=200_000)
    return house


def _busy(folder: Path) -> House:
    """A prompt that is typed while the agent is at work."""
    script = ScriptedResponder().on("go", tool("Bash", command="true")).then("Done.")
    house = House(folder, script.otherwise("Yes."))

    async def talk(started: AgentSession) -> None:
        turn = asyncio.create_task(started.agent.run_turn("go"))
        started.agent.inbox.append(("and this", False))
        await turn

    house.play(talk)
    return house
