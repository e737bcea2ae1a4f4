"""Anything may happen, in any order; after each thing the promise holds.

What happens is drawn by chance: answers of every kind, calls that succeed and fail, sub-agents
that do the same, errors, cuts, breaking in at any event, limits, compaction, going on, forks, going
back. `STENO_ANYTHING=1000` tries so many stories instead of a few.
"""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.builders import image, png
from tests.whole.house import House

from steno.agent.agent_session import AgentSession
from steno.agent.context.token_usage import TurnLimits
from steno.agent.events import Event
from steno.agent.writable_session import list_prompts
from steno.llm.messages_api import ApiError
from steno.llm.testserver.responders import (
    Answer,
    ErrorReply,
    Reply,
    ReplyBlock,
    ResponderRequest,
    invalid_tool_call,
    redacted_thinking,
    refusal_reply,
    text,
    thinking,
    tool,
)

STORIES: Final = int(os.environ.get("STENO_ANYTHING", "60"))
LONGEST: Final = 8
PICTURE: Final = image(png([[(0, 0, 0)]]))


class Chance:
    """A mind that answers with what was drawn for it: by conversation, in turn."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.below: dict[str, list[Answer]] = {}
        self.summaries: list[Answer] = []

    def answer(self, request: ResponderRequest) -> Answer:
        system = str(request.body.get("system"))
        if "You are a coding agent" in system:
            return self._next(self.answers)
        if "You write down what happened" in system:
            return self._next(self.summaries)
        first = request.messages[0]["content"][0]["text"]
        return self._next(self.below.get(str(first), []))

    def _next(self, answers: list[Answer]) -> Answer:
        return answers.pop(0) if answers else Reply(content=(text("Done."),))

    def accepts_thinking(self, thinking: str, signature: str) -> bool:
        del thinking, signature
        return False


class Task:
    """A call of a sub-agent, and what the sub-agent will answer."""

    def __init__(self, answers: list[Any], **more: Any) -> None:
        self.answers = answers
        self.more = more


CALLS = st.sampled_from(
    [
        tool("Read", file_path="a.txt"),
        tool("Read", file_path="picture.png"),
        tool("Read", file_path="nowhere"),
        tool("Write", file_path="new.txt", content="x"),
        tool("Edit", file_path="a.txt", old_string="one", new_string="two"),
        tool("Glob", pattern="*"),
        tool("Grep", pattern="o", output_mode="content"),
        tool("Bash", command="echo so; cd sub"),
        tool("Bash", command="echo more >> a.txt; exit 3"),
        tool("Bash", command="sleep 0.01", run_in_background=True),
        tool("Bash", command="rm a.txt"),
        tool("TodoWrite", todos=[]),
        tool("Skill", skill="sewing"),
        tool("AskUserQuestion", questions=[]),
        tool("Zebra"),
        invalid_tool_call("Glob", '{"patt'),
        invalid_tool_call("Glob", ""),
    ]
)
WORDS = st.sampled_from([text("So."), text("Well", ", ", "then."), text(" \n"), text("ü" * 50)])
THOUGHTS = st.sampled_from([thinking("Hm."), thinking("Let ", "me."), redacted_thinking()])


def replies(tasks: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Return answers of the model, most of them plain."""
    calls = st.lists(CALLS | tasks, min_size=1, max_size=3)
    blocks = st.tuples(st.lists(THOUGHTS, max_size=1), st.lists(WORDS, max_size=2), calls).map(
        lambda parts: [block for part in parts for block in part]
    )
    none: dict[str, Any] = {}
    plain = blocks.map(lambda content: ("reply", content, none))
    words = st.tuples(st.lists(THOUGHTS, max_size=1), st.lists(WORDS, max_size=2)).map(
        lambda parts: ("reply", [block for part in parts for block in part], none)
    )
    stopped = st.tuples(blocks, st.sampled_from(["max_tokens", "refusal", "pause_turn"])).map(
        lambda both: ("reply", both[0], {"stop_reason": both[1]})
    )
    is_cut = st.tuples(blocks, st.integers(0, 1500)).map(lambda both: ("reply", both[0], {"cut_after": both[1]}))
    broken = st.tuples(blocks, st.sampled_from([429, 500, 529])).map(
        lambda both: ("reply", both[0], {"breaks": ErrorReply(status=both[1], message="busy")})
    )
    failed = st.sampled_from([0, 400, 401, 413, 429, 500, 529]).map(
        lambda status: ("failure", ErrorReply(status=status, message="no"), none)
    )
    return st.one_of(plain, plain, plain, words, stopped, is_cut, broken, failed)


PLAIN = replies(CALLS)
TASKS = st.builds(
    Task, st.lists(replies(st.builds(Task, st.lists(PLAIN, max_size=2))), max_size=3), run_in_background=st.booleans()
)
ANSWERS = st.lists(replies(TASKS), max_size=4)
SAID = st.sampled_from(
    [
        "Go on.",
        "Caveat: so it is.",
        "<command-name>/x</command-name>",
        [{"type": "text", "text": "See."}, PICTURE],
        "word " * 2000,
    ]
)
BREAKS = st.none() | st.integers(0, 40)
TURN = st.tuples(st.just("turn"), SAID, ANSWERS, BREAKS, st.sampled_from([None, None, None, 1, 2]))
STEPS = st.one_of(
    TURN,
    TURN,
    TURN,
    st.tuples(st.just("resume")),
    st.tuples(st.just("fork")),
    st.tuples(st.just("rewind"), st.integers(0, 5), TURN),
    st.tuples(st.just("compact"), st.lists(PLAIN, max_size=1)),
)


class Story:
    """One house in which things happen."""

    def __init__(self, folder: Path) -> None:
        self.mind = Chance()
        self.house = House(folder, self.mind, mode="acceptEdits", window=20_000, max_tokens=500)
        self.house.options["disallowed"] = ("Bash(rm:*)",)
        self.house.options["allowed"] = ("Bash",)
        self.house.file("a.txt", "one\n")
        self.house.file("sub/b.txt", "b\n")
        self.house.file("picture.png", png([[(0, 0, 0)]]))
        skill = self.house.config / "skills" / "sewing" / "SKILL.md"
        skill.parent.mkdir(parents=True)
        skill.write_text("---\ndescription: Sews.\n---\nUse a needle.")
        self.tasks = 0

    def happens(self, step: tuple[Any, ...]) -> None:
        match step:
            case ("turn", said, answers, breaks, limit):
                self.turn(said, answers, breaks, limit)
            case ("compact", answers) if self.house.live:
                self.mind.summaries = [self.made(each) for each in answers]
                with suppress(ApiError):
                    self.house.compact()
            case ("resume",) if self.house.live:
                self.house.resume()
            case ("fork",) if self.house.live:
                self.house.fork()
            case ("rewind", place, turn) if self.house.live:
                there = len(list_prompts(self.house.path))
                if there:
                    self.house.rewind(place % there)
                self.happens(turn)
            case _:
                pass

    def turn(self, said: Any, answers: list[Any], breaks: int | None, limit: int | None) -> None:
        self.mind.answers = [self.made(each) for each in answers]
        self.mind.summaries = []

        async def act(started: AgentSession) -> None:
            self.house.watch = breaking(started.agent.interrupt, breaks)
            await started.agent.run_turn(said)

        self.house.play(act, limits=TurnLimits(requests=limit))
        self.house.watch = None

    def made(self, drawn: tuple[str, Any, dict[str, Any]]) -> Answer:
        """Return an answer from what was drawn, with the tasks in it given out."""
        kind, what, how = drawn
        if kind == "failure":
            return what
        content = [self.task(each) if isinstance(each, Task) else each for each in what]
        if how.get("stop_reason") == "refusal":
            return refusal_reply("No.")
        return Reply(content=tuple(content), **how)

    def task(self, task: Task) -> ReplyBlock:
        self.tasks += 1
        prompt = f"task {self.tasks}."
        self.mind.below[prompt] = [self.made(each) for each in task.answers]
        return tool("Agent", description="a task", prompt=prompt, **task.more)


def breaking(interrupt: Callable[[], None], after: int | None) -> Callable[[Event], None] | None:
    """Return what breaks in after so many events."""
    if after is None:
        return None
    left = after

    def watch(_event: Event) -> None:
        nonlocal left
        if left == 0:
            asyncio.get_running_loop().call_soon(interrupt)
        left -= 1

    return watch


@pytest.mark.timeout(60 + 5 * STORIES)
@settings(
    max_examples=STORIES,
    phases=[Phase.generate, *([Phase.shrink] if "STENO_ANYTHING" in os.environ else [])],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.lists(STEPS, min_size=2, max_size=LONGEST))
def test_whatever_happens_the_promise_holds(steps: list[tuple[Any, ...]]) -> None:
    folder = Path(tempfile.mkdtemp())
    try:
        story = Story(folder)
        for step in steps:
            story.happens(step)
            if story.house.work is not None:
                story.house.proves()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
