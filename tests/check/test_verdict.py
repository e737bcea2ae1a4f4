"""What each generation of the client would resume."""

import json
from pathlib import Path

import pytest
from tests.builders import VERSIONS, Session, session, thinking, tool
from tests.check.repair_checks import late, talk
from tests.check.rule_findings import NAME, joined, look

from steno.check.client_readings import GENERATIONS, ClientReadings
from steno.check.verdict import LineRange, Verdict, verdicts
from steno.format.encode import encode_line
from steno.format.message import Text, ToolResult, ToolUse
from steno.format.source import BytesSource
from steno.session.resume.clients import CLIENTS
from steno.session.resume.replay import resumed_chain
from steno.session.transcript import Node, load

GHOST = "99999999-0000-4000-8000-000000000009"


def judged(made: Session | bytes, name: str = "") -> dict[str, Verdict]:
    return {verdict.client: verdict for verdict in verdicts(look(made, name))}


def words(made: Session | bytes, name: str = "") -> list[str]:
    return [verdict.words for verdict in judged(made, name).values()]


def plain(version: str = "2.1.325") -> Session:
    return session(version).user("Q1").assistant("A1").wait(60).user("Q2").assistant("A2")


def test_clients_of_the_same_habits_are_judged_together() -> None:
    assert GENERATIONS == (("1.0.128", "2.0.76"), ("2.1.29", "2.1.42"), ("2.1.200",), ("2.1.325",))


@pytest.mark.parametrize("version", VERSIONS)
def test_a_plain_session_is_resumed_fully_by_all(version: str) -> None:
    found = judged(plain(version))
    assert {(each.outcome, each.sent, each.there) for each in found.values()} == {("fully", 4, 4)}
    assert found["2.1.325"].words == "2.1.325 resumes all messages"


def test_what_a_lost_link_costs_is_told_by_lines() -> None:
    found = judged(plain().retarget(3, None))["2.1.325"]
    assert (found.outcome, found.sent, found.there) == ("partly", 1, 4)
    assert found.lost == (LineRange(1, 3),)
    assert found.words == "2.1.325 resumes 1 of 4 messages: lines 1 to 3 are lost"


def test_older_clients_do_not_bridge_a_missing_parent() -> None:
    made = session().user("Q1").assistant("A1").user("Q2").assistant("A2").retarget(2, GHOST)
    assert {client: each.outcome for client, each in judged(made).items()} == {
        "2.0.76": "partly",
        "2.1.42": "partly",
        "2.1.200": "fully",
        "2.1.325": "fully",
    }


def test_older_clients_lose_parallel_calls() -> None:
    made = session().user("Q").assistant(tool("Bash", command="a"), tool("Bash", command="b"))
    made.results("R1", "R2").assistant("A")
    found = judged(made)
    assert found["2.1.42"].words == "2.1.42 resumes 4 of 6 messages: line 2 and line 4 are lost"
    assert found["2.1.200"].outcome == "fully"


def test_many_stretches_are_summed_up() -> None:
    made = session()
    for number in range(4):
        made.user(f"Q{number}").assistant(tool("Bash", command="a"))
    assert words(made.user("Q").assistant("A"))[-1] == (
        "2.1.325 resumes 6 of 10 messages: line 2, line 4 and 2 more up to line 8 are lost"
    )


def test_a_branch_is_not_lost() -> None:
    made = plain().rewind(1).user("Q3").assistant("A3")
    found = judged(made)["2.1.325"]
    assert (found.outcome, found.there) == ("fully", 4)


def test_what_was_compacted_away_is_not_lost() -> None:
    made = plain().compact("All of it.", trigger="auto").user("Q3").assistant("A3")
    found = judged(made)["2.1.325"]
    assert (found.outcome, found.there) == ("fully", 3)


def test_an_interrupted_call_is_lost_on_older_clients() -> None:
    found = judged(session().user("Q").assistant(tool("Bash", command="a")))
    assert found["2.1.200"].words == "2.1.200 resumes 1 of 2 messages: line 2 is lost"
    assert found["2.1.325"].outcome == "fully"


def test_records_behind_damage_are_lost() -> None:
    made = session().user("Q1").assistant("A1").user("Q2").assistant("A2").splice(2, 40)
    found = judged(made)["2.1.325"]
    assert found.outcome == "partly"
    assert found.there - found.sent == 1


def test_a_file_without_a_message_is_resumed_by_nobody() -> None:
    found = judged(b"")
    assert {each.outcome for each in found.values()} == {"not at all"}
    assert found["2.1.42"].words == "No version of Claude Code resumes this file: the file has no message"


def test_a_session_of_sub_agents_alone_is_resumed_by_nobody() -> None:
    data = plain().bytes().replace(b'"isSidechain":false', b'"isSidechain":true')
    assert set(words(data)) == {"No version of Claude Code resumes this file: all messages are sub-agent messages"}


def test_a_file_with_a_bad_name_is_resumed_by_nobody() -> None:
    made = plain()
    data = made.bytes().replace(made.session_id.encode(), b"sess-001")
    assert set(words(data, "sess-001")) == {
        "No version of Claude Code resumes this file: the file name is a session ID that is not a UUID"
    }


def test_a_sub_agents_file_is_not_judged() -> None:
    assert verdicts(look(plain(), "agent-a1")) == ()


def test_a_circle_stops_the_oldest_clients_only() -> None:
    found = judged(session().user("Q1").assistant("A1").user("Q2").assistant("A2").cycle())
    assert found["2.0.76"].refused == "it hangs on a parent cycle"
    assert found["2.1.42"].outcome == found["2.1.325"].outcome == "fully"


def test_messages_without_an_id_count() -> None:
    lines = plain().lines()
    bare = joined(*(line.replace(b'"uuid"', b'"formerly"') for line in lines))
    found = judged(bare)["2.1.325"]
    assert (found.outcome, found.sent, found.there) == ("partly", 1, 4)


def test_a_client_on_another_branch_resumes_nothing_of_this_one() -> None:
    other = session(seed="other").user("B1").assistant("B1A")
    lines = [*other.lines(), *plain().lines()]
    later = [line.replace(b"2026-", b"2027-") for line in lines[:2]]
    found = judged(joined(*later, *lines[2:]), NAME)
    assert (found["2.1.42"].outcome, found["2.1.42"].sent) == ("partly", 0)
    assert found["2.1.325"].outcome == "fully"


def test_what_the_api_would_refuse_is_told() -> None:
    made = session().user("Q").assistant(thinking("T"), "A").user("Q2").assistant("A2")
    data = made.bytes().replace(b'"signature":', b'"formerly":')
    found = judged(data)["2.1.325"]
    assert found.outcome == "fully"
    assert found.words == "2.1.325 resumes all messages, but the API would reject the request"
    assert found.rejected.startswith("block.thinking")


def test_readings_are_those_of_the_clients(shared: Path) -> None:
    cases = sorted((shared / "corpus" / "resume-cases").glob("*/before.jsonl"))
    for path in cases:
        transcript = load(BytesSource(path.read_bytes()), as_written=True)
        readings = ClientReadings(transcript)
        for client in CLIENTS:
            chain, reading = resumed_chain(transcript, client), readings.of(client)
            assert (chain is None) == (reading.chain is None) == bool(reading.refused), path
            assert said_by(chain) == said_by(reading.chain), (path, client.version)


def said_by(chain: list[Node] | None) -> set[int]:
    return {node.index for node in chain or () if node.is_message}


_ELSEWHERE = {"other_project_dir", "ai_title", "custom_title"}


def test_verdicts_agree_with_the_real_clients(shared: Path) -> None:
    """Every version: refused or not, and whether any word of the conversation was missing."""
    compared = 0
    for folder in sorted((shared / "corpus" / "resume-cases").iterdir()):
        # These were asked for by title, or from another folder, which not all clients can do.
        if not folder.is_dir() or folder.name in _ELSEWHERE:
            continue
        name = "sess-001" if folder.name == "seed001_s11" else NAME
        data = (folder / "before.jsonl").read_bytes()
        found = judged(data, name)
        for version, expected in json.loads((folder / "expected.json").read_bytes()).items():
            if version not in found:
                continue
            compared += 1
            sent = expected["msgs"]
            where = (folder.name, version)
            assert (found[version].outcome == "not at all") == (sent is None), where
            if sent is not None:
                missing = any(word not in "\n".join(sent) for word in said(data, name))
                assert (found[version].outcome == "partly") == missing, where
    assert compared > 200


def said(data: bytes, name: str) -> list[str]:
    """Return the words of the conversation, as the cases write them."""
    evidence = look(data, name)
    nameless = [node for node in evidence.transcript.nodes if node.is_message and not node.uuid]
    nodes = [*evidence.graph.messages, *evidence.graph.unreachable, *nameless]
    found: list[str] = []
    for node in nodes:
        for block in evidence.transcript.record(node).blocks:
            match block:
                case Text():
                    found.append(block.text[:60].strip())
                case ToolUse():
                    found.append(f"USE({block.id})")
                case ToolResult():
                    found.append(f"RES({block.tool_use_id}:{block.text[:20]}")
                case _:
                    continue
    return found


def test_without_a_replay_the_findings_say_what_the_api_would_refuse() -> None:
    made = session().user("Q").assistant(thinking("T"), "A").user("Q2").assistant("A2")
    data = made.bytes().replace(b'"signature":"', b'"formerly":"')
    found = verdicts(look(data), replayed=0)
    assert {each.rejected.partition(":")[0] for each in found} == {"message.unsigned-thinking"}


BLOCK = b'{"type":"text","text":"A"}'


@pytest.mark.parametrize(
    ("before", "behind", "rule"),
    [
        (BLOCK, b'{"type":"hologram"}', "message.unknown-block"),
        (b'"content":"Q"', b'"content":"  "', "message.empty-text"),
        (b'"input":{"command":"a"}', b'"input":"a"', "tools.input"),
    ],
)
def test_findings_and_a_replay_come_to_the_same(before: bytes, behind: bytes, rule: str) -> None:
    made = session().user("Q").assistant("A").user("Q2").assistant(tool("Bash", command="a"))
    data = made.result("R").assistant("A2").bytes()
    assert before in data
    evidence = look(data.replace(before, behind, 1))
    short, long = verdicts(evidence, replayed=0), verdicts(evidence)
    assert {each.rejected.partition(":")[0] for each in short} == {rule}
    assert [each.words for each in short] == [each.words for each in long]


def test_empty_answers_are_left_out_not_refused() -> None:
    data = session().user("Q").assistant("A").user("Q2").assistant("A2").bytes()
    evidence = look(data.replace(BLOCK, b'{"type":"text","text":""}', 1))
    assert evidence.findings.counts["message.empty-text", "error"] == 1
    assert not verdicts(evidence, replayed=0)[-1].rejected
    assert not verdicts(evidence)[-1].rejected


def test_a_late_result_is_lost_where_the_client_puts_an_error_in_its_place() -> None:
    records = talk().records()
    late(records)
    data = b"".join(map(encode_line, records))
    found = judged(data)
    line = 1 + next(n for n, each in enumerate(records) if "toolUseResult" in each)
    for client in ("2.1.200", "2.1.325"):
        assert LineRange(line, line) in found[client].lost
        assert "resumes all messages" not in found[client].words
