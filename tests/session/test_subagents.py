"""Sub-agents and the calls that started them."""

from pathlib import Path
from typing import Any

import pytest
from tests.builders import VERSIONS, Session, session, tool
from tests.session.open_sessions import opened, sessions_below

from steno.format.encode import encode_line
from steno.format.source import BytesSource
from steno.session.session import Session as Opened
from steno.session.transcript import load
from steno.session.turns import subagents
from steno.session.turns.subagents import SubagentFile, Thread


def work(agent: Session) -> object:
    return agent.assistant("Looking.", tool("Bash", command="ls")).result("a\nb").assistant("Seen.")


def call(prompt: str = "look around", kind: str = "Explore") -> dict[str, object]:
    return tool("Task", description=f"About {prompt}", prompt=prompt, subagent_type=kind)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_sub_agent_hangs_on_its_call_in_every_layout(version: str) -> None:
    made = session(version).user("go").assistant(call()).agent(work)
    found = opened(made.assistant("done"))
    (thread,) = found.agents
    assert (thread.kind, thread.description, thread.prompt) == ("Explore", "About look around", "look around")
    assert found.loose_agents == ()
    (step,) = (step for step in found.turns()[0].steps if step.kind == "agent")
    assert step.agent is thread
    assert (step.verb, step.subject, step.call_id) == ("Explore", thread.description, thread.call_id)
    assert [each.kind for each in thread.steps] == ["words", "tool"]
    assert (thread.report, thread.depth, thread.status) == ("Seen.", 1, "completed")
    assert not thread.asynchronous


@pytest.mark.parametrize("version", VERSIONS)
def test_parallel_sub_agents_are_told_apart(version: str) -> None:
    made = session(version).user("go").assistant(call("left"), call("right"))
    made.agent(work).agent(work)
    found = opened(made.assistant("done"), meta=False)
    steps = [step for step in found.turns()[0].steps if step.kind == "agent"]
    assert [step.agent.prompt for step in steps if step.agent] == ["left", "right"]


def test_without_a_result_the_meta_file_or_the_prompt_ties_a_sub_agent() -> None:
    made = session().user("go").assistant(call("a")).agent(work)
    lost = [place for place, line in enumerate(made.lines()) if b'"tool_result"' in line]
    made.drop(lost[-1])
    for meta in (True, False):
        (thread,) = opened(made, meta=meta).agents
        assert thread.call_id


def test_inline_sub_agents_with_changed_prompts_are_tied_by_their_order() -> None:
    made = session("1.0.128").user("go").assistant(call("a")).agent(work)
    made.assistant(call("b")).agent(work)
    data = made.bytes().replace(b'"content":"a"', b'"content":"x"')
    data = data.replace(b'"content":"b"', b'"content":"y"')
    found = Opened(load(BytesSource(data)), name="x")
    assert [thread.prompt for thread in found.agents] == ["x", "y"]
    assert found.agents[0].call_id != found.agents[1].call_id


@pytest.mark.parametrize("version", ["2.1.42", "2.1.200", "2.1.325"])
def test_a_sub_agent_in_the_background_has_its_notification(version: str) -> None:
    made = session(version).user("go").assistant(call()).agent(work, background=True)
    found = opened(made.assistant("started").notify().assistant("done"))
    (thread,) = found.agents
    assert thread.asynchronous
    assert thread.notification is not None
    assert thread.status == "completed"
    prompt = found.turns()[1].prompt
    assert prompt is not None
    assert thread.notification is prompt.node
    (step,) = (step for step in found.turns()[0].steps if step.kind == "agent")
    assert step.outcome == "in background"


def test_a_sub_agent_may_have_sub_agents() -> None:
    def outer(agent: Session) -> object:
        agent.assistant(call("inner", "Plan"))
        return agent.agent(work).assistant("Both seen.")

    made = session().user("go").assistant(call("outer")).agent(outer)
    found = opened(made.assistant("done"))
    (thread,) = found.agents
    (inner,) = thread.children
    assert (inner.kind, inner.depth, inner.parent) == ("Plan", 2, thread)
    assert [each.prompt for each in thread.family()] == ["outer", "inner"]


def test_the_idle_agents_of_old_clients_are_loose_and_marked() -> None:
    found = opened(session("2.0.76").warmup().turn("go", "done"))
    assert [thread.warmup for thread in found.loose_agents] == [True, True]
    assert found.agents == ()


def test_an_agent_nobody_started_is_listed() -> None:
    made = session().user("go").assistant(call()).agent(work)
    other = opened(session().turn("hello", "hi"))
    stray = Opened(other.transcript, name=other.name, agents=opened(made).agent_files)
    (thread,) = stray.loose_agents
    assert (thread.prompt, thread.call_id) == ("look around", "")
    assert stray.usage.messages == 3


def test_an_agent_that_claims_itself_does_not_hang() -> None:
    made = session().user("go").assistant(call()).agent(work)
    file = opened(made).agent_files[0]
    odd = SubagentFile(file.agent_id, opened(made).transcript, file.meta, "odd")
    found = Opened(file.transcript, name="x", agents=[odd, odd])
    assert len(found.all_agents) == 2


@pytest.mark.corpus
@pytest.mark.parametrize(
    "place",
    [
        "1.0.128/subagent",
        "2.0.76/subagent",
        "2.0.76/subpar",
        "2.1.29/subagent",
        "2.1.29/subpar",
        "2.1.29/subbg",
        "2.1.42/subagent",
        "2.1.42/subpar",
        "2.1.42/subbg",
        "2.1.42/subfork",
        "2.1.325/tui_agent",
    ],
)
def test_real_sub_agents_are_tied_to_their_calls(shared: Path, place: str) -> None:
    (found,) = (each for each in sessions_below(shared / "corpus" / "real-client" / place) if each.turns())
    expected = 2 if "subpar" in place else 1
    assert len(found.agents) == expected
    assert all(thread.warmup for thread in found.loose_agents)
    assert all(thread.report for thread in found.agents)
    steps = [step for turn in found.turns() for step in turn.steps if step.kind == "agent"]
    assert [step.agent for step in steps] == list(found.agents)
    asynchronous = "subbg" in place or "tui_agent" in place
    assert found.agents[0].asynchronous is asynchronous
    assert (found.agents[0].notification is not None) is asynchronous


def test_a_thousand_agents_are_tied_without_asking_each_about_each(monkeypatch: pytest.MonkeyPatch) -> None:
    made = session().user("go").assistant(call()).agent(work)
    first = opened(made)
    (file,) = first.agent_files
    files = [SubagentFile(f"a{n:04}", file.transcript, path=f"agent-a{n:04}.jsonl") for n in range(1000)]
    asked = 0
    plain = subagents._match_by_id

    def counted(*arguments: Any) -> None:
        nonlocal asked
        asked += 1
        plain(*arguments)

    monkeypatch.setattr(subagents, "_match_by_id", counted)
    found = Opened(first.transcript, name=first.name, agents=[*files, file])
    assert [thread.agent_id for thread in found.agents] == [file.agent_id]
    assert asked <= 1001


@pytest.mark.timeout(15)
@pytest.mark.parametrize("same", [True, False])
def test_thousands_of_agents_inside_the_main_file_are_tied_in_order(*, same: bool) -> None:
    many = 15_000
    lines: list[dict[str, Any]] = [{"type": "user", "uuid": "u", "message": _says("go")}]
    for n in range(many):
        block = {"type": "tool_use", "id": f"t{n}", "name": "Task", "input": {"prompt": f"do {n}"}}
        message = {"role": "assistant", "content": [block]}
        lines.append({"type": "assistant", "uuid": f"c{n}", "parentUuid": "u", "message": message})
    for n in range(many):
        words = _says(f"do {n}" if same else f"changed {n}")
        lines.append({"type": "user", "uuid": f"s{n}", "isSidechain": True, "message": words})
    data = b"".join(encode_line(line) for line in lines)
    found = Opened(load(BytesSource(data)), name="x")
    assert [thread.call_id for thread in found.agents] == [f"t{n}" for n in range(many)]
    assert [thread.nodes[0].uuid for thread in found.agents] == [f"s{n}" for n in range(many)]


def _says(words: str) -> dict[str, str]:
    return {"role": "user", "content": words}


def test_agents_in_a_ring_are_let_go_and_those_below_stay() -> None:
    made = opened(session().user("go").assistant(call()).agent(work))
    one, two, below = (Thread(made.transcript, made.transcript.nodes[:1]) for _ in range(3))
    one.parent, two.parent, below.parent = two, one, one
    subagents._set_hierarchy([below, one, two])
    assert one.parent is None
    assert (two.parent, below.parent) == (one, one)
    assert {thread.depth for thread in one.children} == {2}
