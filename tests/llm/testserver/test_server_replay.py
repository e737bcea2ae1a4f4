"""The replay mind: recorded sessions say again what they said, and drift is told."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.builders import VERSIONS, Session, session, text, thinking, tool
from tests.conftest import WriteConfig
from tests.llm.testserver.asking import Json, assistant, body, result, send, user

from steno.llm.testserver.replay_responder import NO_REPLY, ReplayDifference, ReplayResponder
from steno.llm.testserver.responders import Reply, ReplyBlock, ResponderRequest
from steno.llm.testserver.server import run_server_in_thread
from steno.session.session import Session as Opened
from steno.store.session_lookup import open_session

_TOOLS = [{"name": name} for name in ("Read", "Bash", "Agent", "Task", "Edit", "Grep")]


def _opened(config: WriteConfig, made: Session) -> Opened:
    folder = config(made)
    return open_session(next(folder.glob(f"projects/*/{made.session_id}.jsonl")))


def _answered(mind: ReplayResponder, *messages: Json, number: int = 1) -> Reply:
    answer = mind.answer(ResponderRequest(body(*messages, tools=_TOOLS), number))
    assert isinstance(answer, Reply)
    return answer


def _blocks(reply: Reply) -> list[Json]:
    return [item.block for item in reply.content if isinstance(item, ReplyBlock)]


def _work(version: str = VERSIONS[-1]) -> Session:
    made = session(version).user("Look at the gauge.")
    made.assistant(thinking("Where?"), "I look.", tool("Grep", pattern="x"), tool("Bash", command="ls"))
    made.results("x = 1", "a.py")
    return made.assistant("It is 1.").user("And now?").assistant("Still 1.").done()


@pytest.mark.parametrize("version", VERSIONS)
def test_each_answer_comes_again_with_its_blocks_together(config: WriteConfig, version: str) -> None:
    mind = ReplayResponder([_opened(config, _work(version))])
    first = _blocks(_answered(mind, user("Look at the gauge.")))
    assert [block["type"] for block in first] == ["thinking", "text", "tool_use", "tool_use"]
    calls = [block["id"] for block in first[2:]]
    talk = [
        user("Look at the gauge."),
        assistant(*first),
        user(result(calls[0], content="x = 1"), result(calls[1], content=[text("a.py")])),
    ]
    second = _blocks(_answered(mind, *talk))
    assert second == [{"type": "text", "text": "It is 1."}]
    third = _answered(mind, *talk, assistant(*second), user("And now?"))
    assert _blocks(third)[0]["text"] == "Still 1."
    assert third.id
    assert third.usage["output_tokens"] > 0
    assert mind.differences == []
    assert mind.unused_replies == []


def test_a_retry_gets_the_same_answer_and_reminders_do_not_matter(config: WriteConfig) -> None:
    mind = ReplayResponder([_opened(config, _work())])
    reminder = "<system-reminder>\nmind the tide\n</system-reminder>"
    first = _answered(mind, user(reminder, "Look at the gauge."))
    assert _answered(mind, user("Look at the gauge."), number=2) == first
    calls = [block["id"] for block in _blocks(first)[2:]]
    said = result(calls[0], content=f"x = 1\n\n{reminder}")
    talk = (
        user("Look at the gauge."),
        assistant(*_blocks(first)),
        user(said, result(calls[1], content="a.py")),
        {"role": "system", "content": "mind the tide"},
    )
    assert _blocks(_answered(mind, *talk))[0]["text"] == "It is 1."
    assert mind.differences == []


def test_what_differs_is_told(config: WriteConfig) -> None:
    told: list[ReplayDifference] = []
    mind = ReplayResponder([_opened(config, _work())], told.append)
    first = _blocks(_answered(mind, user("Look at the gauge.")))
    calls = [block["id"] for block in first[2:]]
    talk = [
        user("Look at the gauge."),
        assistant(*first),
        user(result(calls[0], content="x = 2"), result(calls[1], content="a.py")),
    ]
    second = _blocks(_answered(mind, *talk, number=2))
    drift = told[-1]
    assert (drift.what, drift.expected, drift.came, drift.call) == ("result", "x = 1", "x = 2", calls[0])
    assert (drift.request, drift.take) == (2, 2)
    _answered(mind, *talk, assistant(*second), user("Something else?"), number=3)
    assert (told[-1].what, told[-1].expected, told[-1].came) == ("prompt", "And now?", "Something else?")
    assert mind.differences == told


def test_answers_out_of_turn_missing_tools_and_strange_requests_are_told(config: WriteConfig) -> None:
    mind = ReplayResponder([_opened(config, _work())])
    assert _blocks(_answered(mind, user("And now?")))[0]["text"] == "Still 1."
    assert [drift.what for drift in mind.differences] == ["order"]
    assert len(mind.unused_replies) == 2
    mind.answer(ResponderRequest(body(user("Look at the gauge."))))
    assert [drift.expected for drift in mind.differences[1:]] == ["Grep", "Bash"]
    strange = _answered(mind, user("Give this talk a title."))
    assert _blocks(strange) == [{"type": "text", "text": NO_REPLY}]
    assert mind.differences[-1].what == "unknown"


def test_the_same_prompt_twice_is_answered_by_its_place(config: WriteConfig) -> None:
    made = session().user("Go on.").assistant("One.").user("Go on.").assistant("Two.").done()
    mind = ReplayResponder([_opened(config, made)])
    talk = [user("Go on."), assistant("One."), user("Go on.")]
    assert _blocks(_answered(mind, *talk))[0]["text"] == "Two."
    assert _blocks(_answered(mind, *talk[:1]))[0]["text"] == "One."


def test_sub_agents_answer_too(config: WriteConfig) -> None:
    made = session().user("Delegate.")
    name = made.gen.agent_tool

    def look(agent: Session) -> None:
        agent.assistant("I look.", tool("Grep", pattern="x")).result("x = 1")
        agent.assistant("There is x.")

    made.assistant(tool(name, description="Look", prompt="Look around", subagent_type="Explore"))
    made.agent(look).assistant("Thank you.").done()
    mind = ReplayResponder([_opened(config, made)])
    first = _blocks(_answered(mind, user("Look around")))
    assert first[0]["text"] == "I look."
    talk = (user("Look around"), assistant(*first), user(result(first[1]["id"], content="x = 1")))
    assert _blocks(_answered(mind, *talk))[0]["text"] == "There is x."
    assert mind.differences == []


def test_a_compaction_is_answered_with_its_summary(config: WriteConfig) -> None:
    made = session().user("Begin.").assistant("Begun.").done()
    made.compact("All that was.").user("Where were we?").assistant("Here.").done()
    mind = ReplayResponder([_opened(config, made)])
    _answered(mind, user("Begin."))
    summary = _answered(mind, user("Begin."), assistant("Begun."), user("Sum up, in your words."))
    assert "All that was." in _blocks(summary)[0]["text"]
    after = _answered(mind, user("This is the summary."), user("Where were we?"))
    assert _blocks(after)[0]["text"] == "Here."
    assert mind.differences == []


def test_recorded_thinking_is_vouched_for_and_no_other(config: WriteConfig) -> None:
    mind = ReplayResponder([_opened(config, _work())])
    with run_server_in_thread(mind) as server:
        first = send(server, body(user("Look at the gauge."), tools=[])).json["content"]
        calls = [block["id"] for block in first if block["type"] == "tool_use"]
        talk = [user("Look at the gauge."), assistant(*first), user(*(result(call) for call in calls))]
        assert send(server, body(*talk)).status == 200
        first[0]["thinking"] = "Changed."
        got = send(server, body(*talk))
        assert (got.status, "Invalid `signature`" in got.error["message"]) == (400, True)


def _recorded(shared: Path) -> Iterator[Path]:
    yield from sorted((shared / "corpus/real-client/2.1.325").glob("*/projects/*/*.jsonl"))


@pytest.mark.corpus
def test_real_sessions_are_served_whole(shared: Path) -> None:
    """Ask for each answer with the conversation before it, as the client would send it."""
    asked = 0
    for path in _recorded(shared):
        opened = open_session(path)
        if opened.compactions:
            continue
        mind = ReplayResponder([opened])
        talk = opened.messages()
        for place, message in enumerate(talk):
            if message["role"] != "assistant":
                continue
            reply = _answered(mind, *talk[:place], number=place)
            assert _calls(_blocks(reply)) == _calls(message["content"]), path
            asked += 1
        assert {drift.what for drift in mind.differences} <= {"result", "tool"}, path
        agents = {take.thread for take in mind.unused_replies}
        assert opened.id not in agents, path
    assert asked > 100


def _calls(blocks: list[Any]) -> list[Any]:
    return [(block["id"], block["input"]) for block in blocks if block["type"] == "tool_use"]


@pytest.mark.corpus
def test_no_request_made_of_a_real_session_is_refused(shared: Path) -> None:
    for path in _recorded(shared):
        opened = open_session(path)
        talk = opened.messages()
        ends = [place for place, each in enumerate(talk) if each["role"] == "assistant"]
        if not ends:
            continue
        betas = {"anthropic-beta": "mid-conversation-tool-changes-2026-07-01"}
        with run_server_in_thread(ReplayResponder([opened])) as server:
            headers = {"anthropic-version": "2023-06-01", **betas}
            got = send(server, body(*talk[: ends[-1]]), headers=headers)
            assert got.status == 200, (path, got.data[:300])
