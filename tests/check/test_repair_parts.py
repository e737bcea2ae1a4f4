"""Part of a session, one of several in a file, or all of it without what only fills it."""

import json
from pathlib import Path

import pytest
from tests.builders import VERSIONS, Session, session, tool
from tests.builders.everything import everything

from steno.check.repair.job import Job, Wish, mend
from steno.check.repair.parts import sessions_in
from steno.errors import NotFound
from steno.format.source import BytesSource
from steno.session.resume.clients import CLIENTS, client_for
from steno.session.resume.replay import as_resumed
from steno.session.transcript import load
from steno.store.workbench import Workbench

NAME = "aaaaaaaa-0000-4000-8000-000000000001"


def mended(data: bytes, wish: Wish, name: str = NAME) -> tuple[Job, bytes]:
    with Workbench() as bench:
        job = mend(BytesSource(data), name, wish, bench)
        return job, b"".join(job.chunks())


def talk() -> Session:
    made = session(seed="parts").user("One?").assistant("One.").user("Two?").assistant("Two.")
    return made.user("Three?").assistant("Three.")


# Until


def test_a_session_ends_with_the_record_that_was_named() -> None:
    made = talk()
    lines = made.bytes().splitlines(keepends=True)
    until = made.records()[3]["uuid"]
    job, data = mended(made.bytes(), Wish(until=until))
    assert data == b"".join(lines[:4])
    assert job.lost == [f"{len(lines) - 4} later records"]
    assert job.proven


def test_the_beginning_of_an_id_will_do() -> None:
    made = talk()
    until = made.records()[3]["uuid"]
    assert (
        mended(made.bytes(), Wish(until=until[:8]))[1] == mended(made.bytes(), Wish(until=until))[1]
    )


def test_the_last_record_leaves_all_as_it_is() -> None:
    made = talk()
    job, data = mended(made.bytes(), Wish(until=made.records()[-1]["uuid"]))
    assert (job.edits, data) == ([], made.bytes())


def test_a_record_that_is_not_there_is_refused() -> None:
    with pytest.raises(NotFound, match="no record is called"):
        mended(talk().bytes(), Wish(until="no-such-record"))


# One of several


def test_each_session_of_a_file_comes_out_alone() -> None:
    one, other = session(seed="a"), session(seed="b")
    one.user("Mine?").assistant("Mine.")
    other.user("Yours?").assistant("Yours.")
    both = one.bytes() + other.bytes()
    assert list(sessions_in(load(BytesSource(both)))) == [one.session_id, other.session_id]
    for each in (one, other):
        job, data = mended(both, Wish(session=each.session_id), each.session_id)
        assert data == each.bytes()
        assert job.lost == []
        assert job.proven


def test_what_is_no_record_goes_with_the_session_before_it_and_is_named() -> None:
    one, other = session(seed="a"), session(seed="b")
    one.user("Mine?").assistant("Mine.")
    other.user("Yours?").assistant("Yours.")
    both = one.bytes() + b"torn {\n" + other.bytes()
    job, data = mended(both, Wish(session=one.session_id), one.session_id)
    assert data == one.bytes()
    assert any("torn {" in each for each in job.lost)
    job, data = mended(both, Wish(session=other.session_id), other.session_id)
    assert data == other.bytes()
    assert job.lost == []


# Slim


@pytest.mark.parametrize("version", VERSIONS)
def test_slimming_changes_nothing_of_what_any_client_sends(version: str) -> None:
    for made in everything(version):
        check_slim(made.bytes())


def check_slim(data: bytes) -> Job:
    before = load(BytesSource(data))
    job, slimmer = mended(data, Wish(slim=True))
    after = load(BytesSource(slimmer))
    for client in CLIENTS:
        assert as_resumed(after, client) == as_resumed(before, client), client.version
    assert len(slimmer) <= len(data)
    assert mended(slimmer, Wish(slim=True))[0].edits == []
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
        if mended(data, Wish())[0].edits:
            continue
        job, slimmer = mended(data, Wish(slim=True))
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
    assert edit.what == "leave out the client's own copies of what tools gave back (1)"
    assert job.lost == ["the client's own copies of what tools gave back (1)"]
    assert job.before.size - job.after.size > 9000
    assert "y\\ny\\n" in json.dumps(as_resumed(load(job.source), CLIENTS[-1]))


# A sub-agent's own file


def test_of_a_sub_agents_file_only_the_lines_are_mended() -> None:
    records = [{**each, "isSidechain": True, "agentId": "a1"} for each in talk().records()]
    sound = b"".join(json.dumps(each).encode() + b"\n" for each in records[1:])
    job, data = mended(sound + b'{"torn', Wish(), "agent-a1")
    assert data == sound
    assert job.is_agent
    assert not job.hopeless
    assert job.proven
