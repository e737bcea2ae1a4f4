"""Sessions over several runs: compacted, gone on with, forked, taken back, in every order."""

import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.builders import image, png
from tests.whole.house import KEY, House

from steno.agent import events
from steno.agent.agent_session import AgentSession
from steno.agent.context.token_usage import TurnLimits
from steno.agent.events import TurnEnded
from steno.agent.writable_session import list_prompts
from steno.llm.messages_api import ApiError
from steno.llm.testserver.responders import ErrorReply, Reply, cut_reply, refusal_reply, text, thinking, tool
from steno.llm.testserver.scripted_responder import ScriptedResponder
from steno.llm.testserver.server import Server

SUMMARY = "They spoke of apples."
PICTURE = image(png([[(0, 0, 0)]]))


def talkative() -> ScriptedResponder:
    """Return a mind that looks, thinks, and gives tasks to others."""
    return (
        ScriptedResponder()
        .on("Summarize", SUMMARY)
        .on("Write one summary", f"{SUMMARY} And of pears.")
        .on("count", "Three.")
        .on("look", [thinking("Where?"), text("I look."), tool("Read", file_path="picture.png")])
        .then([tool("Glob", pattern="*"), tool("Read", file_path="a.txt")])
        .then("I have seen it.")
        .on("task", [tool("Agent", description="d", prompt="count") for _ in range(2)])
        .then("They are three.")
        .otherwise("Yes.")
    )


def lived_in(tmp_path: Path, **options: Any) -> House:
    house = House(tmp_path, talkative(), **options)
    house.file("a.txt", "one\n")
    house.file("picture.png", png([[(0, 0, 0)]]))
    return house


def words(house: House) -> str:
    return str(house.live)


@pytest.mark.parametrize("last", ["look around", "a task", "hello"])
def test_by_hand(tmp_path: Path, last: str) -> None:
    house = lived_in(tmp_path)
    house.say("look", "a task", [{"type": "text", "text": "see"}, PICTURE], last)
    assert house.compact("Mind the apples.")
    assert SUMMARY in words(house)
    assert last in words(house)
    assert house.live[0]["role"] == "user"
    house.proves()
    house.resume()
    house.say("and on")
    house.proves()


def test_again_and_again(tmp_path: Path) -> None:
    house = lived_in(tmp_path)
    for number in range(3):
        house.say("look", f"number {number}", "a task")
        assert house.compact()
        house.proves()
        house.resume()
    assert words(house).count(SUMMARY) == 1
    assert house.say("hello")[0].reason == "done"
    house.proves()


def test_in_one_run_with_files_that_were_worked_on(tmp_path: Path) -> None:
    house = lived_in(tmp_path)

    async def act(started: AgentSession) -> None:
        for prompt in ("look", "hello"):
            await started.agent.run_turn(prompt)
        await started.compactor.compact(started.agent, "manual")
        await started.agent.run_turn("and on")
        await started.compactor.compact(started.agent, "manual")

    house.play(act)
    assert "a.txt:\\n\\none" in words(house)
    house.proves()


def test_by_itself_between_turns_and_in_the_middle_of_one(tmp_path: Path) -> None:
    script = ScriptedResponder().on("Summarize", SUMMARY).on("Write one", SUMMARY)
    script.on("work", [thinking("More."), tool("Grep", pattern="word", output_mode="content")])
    for _ in range(12):
        script.then([text("On."), tool("Grep", pattern="word", output_mode="content")])
    house = House(tmp_path, script.otherwise("Yes. " * 300), window=6_000, max_tokens=1_000)
    house.file("a.txt", "word " * 400)
    house.say(*(f"{number} {'word ' * 300}" for number in range(6)))
    before = len(house.happened(events.Compacted))
    assert before >= 1
    house.proves()
    house.resume()
    house.say("work", limits=TurnLimits(requests=12))
    assert len(house.happened(events.Compacted)) >= before + 2
    house.proves()


@pytest.mark.parametrize(
    "answer",
    [
        Reply(content=()),
        text(" "),
        refusal_reply(),
        refusal_reply("I will not."),
        ErrorReply(status=400, kind="invalid_request_error", message="no"),
        ErrorReply(status=529, kind="overloaded_error", message="busy"),
        cut_reply([text("They spoke "), text("of")], 500),
    ],
)
@pytest.mark.parametrize("how", ["auto", "manual"])
def test_without_a_summary_everything_stays(tmp_path: Path, answer: Any, how: str) -> None:
    script = ScriptedResponder().on("Summarize", answer).otherwise("Yes. " * 100)
    house = House(tmp_path, script)
    house.say("Remember the apples.", "And the pears.")
    house.resume()
    if how == "manual":
        with suppress(ApiError):
            assert not house.compact()
    else:
        house.say("And on.", window=200, max_tokens=10)
    assert "Remember the apples." in words(house)
    assert house.happened(events.Compacted) == []
    house.proves()


def test_taken_back_forked_compacted_and_gone_on_with(tmp_path: Path) -> None:
    house = lived_in(tmp_path)
    house.say("first", "look second", "third")
    house.proves()
    house.rewind(1)
    house.say("another second")
    assert "third" not in words(house)
    house.proves()
    old = Path(house.path).read_bytes()
    path = house.path
    house.fork()
    house.say("a task")
    assert Path(path).read_bytes() == old
    house.proves()
    assert house.compact()
    house.proves()
    house.resume()
    house.say("look again")
    house.proves()
    house.rewind(-1)
    house.say("at last")
    assert "look again" not in words(house)
    house.proves()


def test_taken_back_to_before_it_was_compacted(tmp_path: Path) -> None:
    house = lived_in(tmp_path)
    house.say("first", "second", "third")
    house.compact()
    house.say("fourth")
    (uuid, said), *_ = list_prompts(house.path)
    assert uuid
    house.rewind(-1)
    house.say("otherwise")
    assert "fourth" not in words(house)
    assert SUMMARY in words(house)
    assert said
    house.proves()


def test_what_can_be_gone_back_to_is_what_the_user_said(tmp_path: Path) -> None:
    house = lived_in(tmp_path)
    run = [{"hooks": [{"type": "command", "command": "echo Be kind."}]}]
    house.settings(hooks={"UserPromptSubmit": run})
    house.say("first", "look second")
    house.settings()
    house.compact()
    house.say("third")
    said = [words for _, words in list_prompts(house.path)]
    assert len(said) == 2
    assert "look second" in said[0]
    assert said[1] == "third"
    house.rewind(0)
    house.say("instead")
    assert "look second" not in words(house)
    assert SUMMARY in words(house)
    house.proves()


def test_taken_back_to_the_beginning_again_and_again(tmp_path: Path) -> None:
    house = lived_in(tmp_path)
    for number in range(4):
        house.say(f"look {number}", "a task")
        house.proves()
        house.rewind(0)
    house.say("at last")
    assert len(house.live) == 2
    house.proves()


def test_forks_of_forks_with_sub_agents(tmp_path: Path) -> None:
    house = lived_in(tmp_path)
    for number in range(3):
        house.say("a task", f"look {number}")
        house.proves()
        house.fork()
    house.say("at last")
    assert len(list(house.config.glob("projects/*/*.jsonl"))) == 4
    house.proves()


def test_a_session_that_changes_its_model_goes_on(tmp_path: Path) -> None:
    house = lived_in(tmp_path)
    house.say("look")
    house.resume()
    house.say("look again", model="haiku")
    house.proves()
    house.resume()
    house.say("and on")
    assert house.sent[-1]["model"] == "claude-haiku-4-5-20251001"
    house.proves()


def test_broken_off_everywhere_and_then_compacted(tmp_path: Path) -> None:
    script = ScriptedResponder().on("Summarize", SUMMARY).on("Write one", SUMMARY).otherwise("Yes.")
    house = House(tmp_path, script)
    script.on(re.compile(r"sleep$"), [text("I sleep."), tool("Bash", command="sleep 600")])
    house.say("hello")
    house.broken_off("sleep", lambda event: isinstance(event, events.ToolStarted))
    house.proves()
    assert house.compact()
    house.proves()
    house.resume()
    house.broken_off("sleep", lambda event: isinstance(event, events.ToolStarted))
    assert [each["lastPrompt"] for each in house.records if "lastPrompt" in each][-1] == "sleep"
    assert [words for _, words in list_prompts(house.path)][-1] == "sleep"
    house.resume()
    assert house.compact()
    house.say("hello")
    house.proves()


def test_a_change_by_another_program_between_two_turns_stops_the_next_one(tmp_path: Path) -> None:
    house = lived_in(tmp_path)
    house.say("first")
    foreign = Path(house.path).read_bytes().splitlines(keepends=True)[0]

    def another_writes() -> None:
        with Path(house.path).open("ab") as file:
            file.write(foreign)

    async def act(started: AgentSession) -> list[TurnEnded]:
        ended = [await started.agent.run_turn("second")]
        another_writes()
        return [*ended, *[await started.agent.run_turn("third") for _ in range(2)]]

    second, third, again = house.play(act)
    assert (second.reason, third.reason, again.reason) == ("done", "not_saved", "not_saved")
    assert third.problem == again.problem
    assert house.path in third.problem
    assert "--fork-session" in third.problem
    data = Path(house.path).read_bytes()
    assert data.endswith(foreign)
    assert b"third" not in data


def test_a_window_never_overflows_not_even_after_a_break_or_with_large_results(tmp_path: Path) -> None:
    window = 16_000
    script = ScriptedResponder().on("Summarize", SUMMARY).on("Write one", SUMMARY)
    script.on(re.compile(r"^word.*read all$"), [tool("Read", file_path=f"{number}.txt") for number in range(5)])
    script.then("Read.")
    house = House(tmp_path, script.otherwise("Yes."), window=window, max_tokens=500)
    house.server = Server(house.server.responder, key=KEY, keep=5000, window=window)
    for number in range(5):
        house.file(f"{number}.txt", f"{'word ' * 40}\n" * 40)
    ended = house.say("hello", f"{'word ' * 800} read all", "hello")
    assert [each.reason for each in ended] == ["done"] * 3, ended
    house.proves()
    for number in range(4):
        house.resume()
        assert house.say(f"{number} {'word ' * 3_000}")[0].reason == "done"
        house.proves()
    assert len(house.happened(events.Compacted)) >= 2
