"""Part of a session, one of several in a file, or all of it without what only fills it."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.builders import VERSIONS, Session, session, text, tool
from tests.builders.everything import everything

from steno.check.repair.repair_job import RepairJob, RepairOptions, run_repair, sessions_in
from steno.errors import NotFound
from steno.format.encode import encode_line
from steno.format.source import BytesSource
from steno.session.resume.clients import CLIENTS, Client, client_for
from steno.session.resume.replay import as_resumed
from steno.session.transcript import load
from steno.store.replace import StagingArea

NAME = "aaaaaaaa-0000-4000-8000-000000000001"


def mended(data: bytes, wish: RepairOptions, name: str = NAME) -> tuple[RepairJob, bytes]:
    with StagingArea() as bench:
        job = run_repair(BytesSource(data), name, wish, bench)
        return job, b"".join(job.chunks())


def talk() -> Session:
    made = session(seed="parts").user("One?").assistant("One.").user("Two?").assistant("Two.")
    return made.user("Three?").assistant("Three.")


# Until


def test_a_session_ends_with_the_record_that_was_named() -> None:
    made = talk()
    lines = made.bytes().splitlines(keepends=True)
    until = made.records()[3]["uuid"]
    job, data = mended(made.bytes(), RepairOptions(until=until))
    assert data == b"".join(lines[:4])
    assert job.lost == [f"{len(lines) - 4} later records"]
    assert job.is_verified


def test_the_beginning_of_an_id_will_do() -> None:
    made = talk()
    until = made.records()[3]["uuid"]
    assert (
        mended(made.bytes(), RepairOptions(until=until[:8]))[1] == mended(made.bytes(), RepairOptions(until=until))[1]
    )


def test_the_last_record_leaves_all_as_it_is() -> None:
    made = talk()
    job, data = mended(made.bytes(), RepairOptions(until=made.records()[-1]["uuid"]))
    assert (job.edits, data) == ([], made.bytes())


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.version)
def test_a_session_ends_with_the_record_even_if_another_branch_was_named_before(client: Client) -> None:
    made = session(seed="branch").user("One?").assistant("One.").user("Two?").assistant("Two.")
    first = made.records()
    marker: dict[str, Any] = {"type": "last-prompt", "leafUuid": first[-1]["uuid"]}
    marker |= {"explicit": True, "sessionId": made.session_id}
    made.rewind(1).user("Other?").assistant("Other.").user("More?").assistant("More.")
    records = [*first, marker, *made.records()[len(first) :]]
    until = next(
        each["uuid"]
        for each in records
        if each["type"] == "assistant" and each["message"]["content"] == [text("Other.")]
    )
    data = b"".join(map(encode_line, records))
    job, mended_data = mended(data, RepairOptions(until=until, client=client))
    sent = json.dumps(as_resumed(load(BytesSource(mended_data)), client))
    assert "Other." in sent
    assert "Two." not in sent
    assert "More?" not in sent
    assert job.is_verified


def test_a_repair_that_does_not_end_with_the_record_is_not_proven() -> None:
    made = session(seed="wayward").user("One?").assistant("One.").user("Two?").assistant("Two.")
    records = made.records()
    records[-1]["message"]["content"] = []
    data = b"".join(map(encode_line, records))
    job, _ = mended(data, RepairOptions(until=records[-1]["uuid"]))
    assert job.after.wayward
    assert not job.is_verified


def test_a_record_that_is_not_there_is_refused() -> None:
    with pytest.raises(NotFound, match="no record matches"):
        mended(talk().bytes(), RepairOptions(until="no-such-record"))


# One of several


def test_each_session_of_a_file_comes_out_alone() -> None:
    one, other = session(seed="a"), session(seed="b")
    one.user("Mine?").assistant("Mine.")
    other.user("Yours?").assistant("Yours.")
    both = one.bytes() + other.bytes()
    assert list(sessions_in(load(BytesSource(both)))) == [one.session_id, other.session_id]
    for each in (one, other):
        job, data = mended(both, RepairOptions(session=each.session_id), each.session_id)
        assert data == each.bytes()
        assert job.lost == []
        assert job.is_verified


def test_what_is_no_record_goes_with_the_session_before_it_and_is_named() -> None:
    one, other = session(seed="a"), session(seed="b")
    one.user("Mine?").assistant("Mine.")
    other.user("Yours?").assistant("Yours.")
    both = one.bytes() + b"torn {\n" + other.bytes()
    job, data = mended(both, RepairOptions(session=one.session_id), one.session_id)
    assert data == one.bytes()
    assert any("torn {" in each for each in job.lost)
    job, data = mended(both, RepairOptions(session=other.session_id), other.session_id)
    assert data == other.bytes()
    assert job.lost == []


# Slim


@pytest.mark.parametrize("version", VERSIONS)
def test_slimming_changes_nothing_of_what_any_client_sends(version: str) -> None:
    for made in everything(version):
        check_slim(made.bytes())


def check_slim(data: bytes) -> RepairJob:
    before = load(BytesSource(data))
    job, slimmer = mended(data, RepairOptions(slim=True))
    after = load(BytesSource(slimmer))
    for client in CLIENTS:
        assert as_resumed(after, client) == as_resumed(before, client), client.version
    assert len(slimmer) <= len(data)
    assert mended(slimmer, RepairOptions(slim=True))[0].edits == []
    return job


def test_slimming_leaves_what_real_clients_send_as_it_is(shared: Path) -> None:
    folder = shared / "corpus" / "real-client"
    slimmed = 0
    for path in sorted(folder.rglob("*.jsonl")):
        if path.name == "history.jsonl" or path.name.startswith("agent-"):
            continue
        # Older clients do not know the progress of newer ones, and stop at it.
        writer = CLIENTS.index(client_for(path.relative_to(folder).parts[0]))
        data = path.read_bytes()
        if mended(data, RepairOptions())[0].edits:
            continue
        job, slimmer = mended(data, RepairOptions(slim=True))
        before, after = load(BytesSource(data)), load(BytesSource(slimmer))
        for client in CLIENTS[writer:]:
            assert as_resumed(after, client) == as_resumed(before, client), (path, client.version)
        slimmed += bool(job.edits)
    assert slimmed


def test_slimming_says_what_it_saved() -> None:
    made = session(seed="slim").user("All?").assistant(tool("Bash", command="yes"))
    made.result("y\n" * 5000).assistant("All.")
    job = check_slim(made.bytes())
    (edit,) = job.edits
    assert edit.what == "remove copies of tool output (1; 14,972 bytes)"
    assert job.lost == ["copies of tool output (1)"]
    assert job.before.size - job.after.size > 9000
    assert "y\\ny\\n" in json.dumps(as_resumed(load(job.source), CLIENTS[-1]))


def test_slimming_keeps_text_that_stands_nowhere_else() -> None:
    long = "".join(f"only here {number}\n" for number in range(300))
    made = session(seed="slim").user("All?").assistant(tool("Bash", command="yes"))
    records = made.result("done").assistant("All.").records()
    (result,) = [each for each in records if "toolUseResult" in each]
    result["toolUseResult"] = {"stdout": long, "content": long[:1500], "file": {"content": long}}
    data = b"".join(map(encode_line, records))
    job = check_slim(data)
    kept = json.dumps([record_of(line) for line in b"".join(job.chunks()).splitlines()])
    assert json.dumps(long)[1:-1] in kept
    (edit,) = job.edits
    assert "copies" in edit.what
    after = next(r for r in map(record_of, b"".join(job.chunks()).splitlines()) if "toolUseResult" in r)
    assert after["toolUseResult"]["stdout"] == long
    assert after["toolUseResult"]["content"] == long[:1500]
    assert after["toolUseResult"]["file"]["content"] == "[4,090 characters left out]"


def test_slimming_cuts_a_file_that_the_message_shows_with_line_numbers() -> None:
    lines = [f"gauge_{number} = {number}" for number in range(200)]
    made = session(seed="slim").user("All?").assistant(tool("Read", file_path="/a.py"))
    records = made.result("\n".join(lines)).assistant("All.").records()
    (result,) = [each for each in records if "toolUseResult" in each]
    result["toolUseResult"] = {"type": "text", "file": {"content": "\n".join(lines) + "\n"}}
    job = check_slim(b"".join(map(encode_line, records)))
    assert "characters left out" in b"".join(job.chunks()).decode()
    assert "gauge_199" in json.dumps(as_resumed(load(job.source), CLIENTS[-1]))


def record_of(line: bytes) -> dict[str, Any]:
    return json.loads(line)


# A sub-agent's own file


def test_of_a_sub_agents_file_only_the_lines_are_mended() -> None:
    records = [{**each, "isSidechain": True, "agentId": "a1"} for each in talk().records()]
    sound = b"".join(json.dumps(each).encode() + b"\n" for each in records[1:])
    job, data = mended(sound + b'{"torn', RepairOptions(), "agent-a1")
    assert data == sound
    assert job.is_agent
    assert not job.is_hopeless
    assert job.is_verified
