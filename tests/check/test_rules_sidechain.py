"""Rules about sub-agents."""

import pytest
from tests.builders import VERSIONS, Session, session, tool
from tests.builders.everything import everything
from tests.check.rule_findings import bad, ids, joined, look, messages

from steno.check.evidence import SubagentFileInfo
from steno.format.encode import encode

MAIN, SIDE = b'"isSidechain":false', b'"isSidechain":true'


def plain() -> Session:
    return session("2.1.200").user("Q1").assistant("A1").user("Q2").assistant("A2")


def delegated() -> Session:
    made = session("2.1.200").user("Q")
    made.assistant(tool("Agent", description="d", prompt="p", subagent_type="Explore"))
    return made.agent(lambda agent: agent.assistant("Seen.")).assistant("A")


def note(agent_id: str, records: int = 2, flagged: int = 2) -> SubagentFileInfo:
    return SubagentFileInfo(agent_id, f"agent-{agent_id}.jsonl", records, flagged)


@pytest.mark.parametrize("version", VERSIONS)
def test_sessions_of_every_version_are_marked_well(version: str) -> None:
    for made in everything(version):
        assert ids(look(made), "sidechain") == []


@pytest.mark.parametrize("version", VERSIONS)
def test_the_files_of_sub_agents_are_marked_well(version: str) -> None:
    for made in everything(version):
        for agent in made.transcripts:
            data = joined(*(encode(record) for record in agent.records))
            assert bad(look(data, f"agent-{agent.agent_id}")) == set()


def test_a_mark_that_changes_along_the_chain_is_a_warning() -> None:
    lines = plain().lines()
    lines[2] = lines[2].replace(MAIN, SIDE)
    assert ids(look(joined(*lines)), "sidechain") == [("flag", "warning", 3), ("flag", "warning", 4)]


def test_a_sub_agents_file_without_marks_is_a_warning() -> None:
    lines = [line.replace(MAIN, SIDE) for line in plain().lines()]
    lines[1] = lines[1].replace(SIDE, MAIN)
    found = look(joined(*lines), "agent-a1")
    assert ids(found, "sidechain") == [("flag", "warning", 2)]
    assert messages(found, "sidechain.flag") == ["1 of 4 records of a sub-agent file are not flagged"]


def test_a_session_of_sub_agents_alone_is_an_error() -> None:
    data = plain().bytes().replace(MAIN, SIDE)
    assert ids(look(data), "sidechain") == [("all", "error", 1)]
    assert ids(look(data, "agent-a1"), "sidechain") == []


def test_a_missing_file_is_a_warning_once_somebody_looked() -> None:
    made = delegated()
    assert ids(look(made), "sidechain") == []
    assert ids(look(made, agents=()), "sidechain") == [("missing-file", "warning", 3)]


def test_a_file_that_is_there_is_not_missing() -> None:
    made = delegated()
    agent_id = made.transcripts[0].agent_id
    assert ids(look(made, agents=[note(agent_id)]), "sidechain") == []


def test_a_file_that_nothing_names_is_told() -> None:
    assert ids(look(plain(), agents=[note("a1")]), "sidechain") == [("orphan-file", "info", 1)]


def test_a_file_without_a_mark_is_a_warning() -> None:
    made = delegated()
    agents = [note(made.transcripts[0].agent_id, flagged=0)]
    assert ids(look(made, agents=agents), "sidechain") == [("flag", "warning", 1)]
