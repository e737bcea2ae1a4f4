"""Sessions in the two published dialects are read, checked, sent and converted as they are meant."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.published.files import FILES, FLAT, Known
from tests.published.forms import Flat, Nested, call

from steno.check.checkup import check
from steno.check.repair.repair_job import repair_bytes
from steno.check.verdict import verdicts
from steno.format.dialects.converted_source import ConvertedSource
from steno.format.source import BytesSource
from steno.index.sync.extract import extract_rows
from steno.session.live_turns import Follower
from steno.session.resume.api_rules import find_breaches
from steno.session.resume.clients import CLIENTS, Client
from steno.session.resume.replay import as_resumed, valid_messages
from steno.session.session import Session
from steno.session.transcript import load
from steno.store.session_lookup import find
from steno.store.summary import summarize

OLDER = ("dropped_by_compaction", "compacted_after_a_compaction", "compacted_before_a_result", "interruption_is_kept")
"""2.1.42 and older do not know that a compaction may keep messages."""


@pytest.fixture(params=sorted(FILES))
def known(request: pytest.FixtureRequest) -> Known:
    return FILES[request.param]()


def sent_in_order(messages: list[dict[str, Any]], known: Known) -> bool:
    """Whether all that must be sent is, in its order, and nothing that must not be."""
    text = json.dumps(messages, ensure_ascii=False)
    place = 0
    for words in known.present:
        place = text.find(words, place)
        assert place >= 0, (words, text)
    assert not [words for words in known.absent if words in text]
    return True


def test_the_dialect_is_told(known: Known, request: pytest.FixtureRequest) -> None:
    flat = {each.__name__ for each in FLAT}
    wanted = "spec-000" if request.node.callspec.params["known"] in flat else "spec-004"
    assert load(BytesSource(known.data)).dialect == wanted


def test_a_correct_file_has_no_error_and_no_warning(known: Known) -> None:
    found = check(BytesSource(known.data)).findings
    assert [(each.id, each.message) for each in found if each.severity != "info"] == []
    assert [each.id for each in found] == ["fields.dialect"]


def test_every_prompt_begins_a_turn(known: Known) -> None:
    turns = Session(load(BytesSource(known.data))).turns()
    assert tuple(turn.prompt.text for turn in turns if turn.prompt) == known.prompts
    assert len(turns) == len(known.prompts)


def test_everything_but_what_is_hidden_is_sent(known: Known) -> None:
    messages = valid_messages(load(BytesSource(known.data)))
    assert list(find_breaches([*messages, {"role": "user", "content": "Go on."}])) == []
    assert sent_in_order(messages, known)


@pytest.mark.parametrize("client", CLIENTS, ids=lambda client: client.version)
def test_the_converted_file_is_resumed(known: Known, client: Client, request: pytest.FixtureRequest) -> None:
    if request.node.callspec.params["known"] in OLDER and not client.honours_preserved:
        pytest.skip("older clients send nothing from before a compaction")
    done = repair_bytes(known.data)
    assert done.settled
    assert sent_in_order(as_resumed(done.transcript, client) or [], known)


def test_the_converted_file_is_sound(known: Known, request: pytest.FixtureRequest) -> None:
    done = repair_bytes(known.data)
    evidence = check(done.transcript.source, name="0c9be80c-c704-4d9f-928e-22f500ed824f")
    assert [each.id for each in evidence.findings if each.severity != "info"] == []
    older = request.node.callspec.params["known"] in OLDER
    assert {each.outcome for each in verdicts(evidence)[-1 if older else 0 :]} == {"fully"}
    assert repair_bytes(done.data).edits == []


def test_every_line_leads_back_to_its_record(known: Known) -> None:
    """Places in the converted file are places in the file as it is."""
    transcript = load(BytesSource(known.data))
    source = transcript.source
    assert isinstance(source, ConvertedSource)
    for node in transcript.nodes:
        span = source.original_span(node.offset)
        original = json.loads(known.data[span.offset : span.offset + span.length])
        if not source.is_inserted(node.offset):
            assert original["uuid"] == node.uuid


def test_reading_by_parts_is_reading_at_once(known: Known, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = b"".join(load(BytesSource(known.data)).source.chunks())
    monkeypatch.setattr("steno.format.dialects.converted_source._MAX_CACHED_BYTES", 0)
    source = load(BytesSource(known.data)).source
    assert b"".join(source.chunks()) == whole
    for start in range(0, len(whole), 97):
        assert source.read(start, 301) == whole[start : start + 301]


def test_a_status_between_a_call_and_its_result_does_not_part_them() -> None:
    file = Flat()
    file.user("Question")
    file.calls("Read")
    file.add("system", "Reading")
    file.add("system", "Still reading", subtype="meta", isMeta=True)
    file.result("Content")
    file.says("Answer.")
    assert [each.id for each in check(BytesSource(file.data())).findings] == ["fields.dialect"]
    (turn,) = Session(load(BytesSource(file.data()))).turns()
    assert [step.state for step in turn.steps if step.verb == "Read"] == ["ok"]
    assert "Content" in json.dumps(valid_messages(load(BytesSource(file.data()))))


def test_a_late_result_that_names_its_call_begins_no_branch() -> None:
    file = Nested()
    file.human("Question")
    owner = file.says(call("toolu_1", "Bash", command="slow"))
    file.human("Second question")
    file.says("Second answer.")
    file.result("toolu_1", "late", parentUuid=owner)
    file.says("Third answer.")
    session = Session(load(BytesSource(file.data())))
    asked = [turn.prompt.text for turn in session.turns() if turn.prompt]
    assert (asked, session.branches) == (["Question", "Second question"], [])
    said = ("Question", "late", "Second question", "Second answer.", "Third answer.")
    assert sent_in_order(valid_messages(session.transcript), Known(b"", (), said))


def test_a_result_of_an_inactive_branch_takes_nothing_of_the_active_one_with_it() -> None:
    file = Nested()
    file.human("Question")
    owner = file.says(call("toolu_1", "Bash", command="slow"))
    file.human("Active question", is_active=True)
    file.says("Active answer.", is_active=True)
    file.result("toolu_1", "late", parentUuid=owner, is_active=False)
    file.says("Inactive answer.", is_active=False)
    sent = valid_messages(load(BytesSource(file.data())))
    known = Known(b"", (), ("Question", "Active question", "Active answer."), ("Inactive",))
    assert sent_in_order(sent, known)


def test_the_answer_that_repair_gives_a_kept_call_is_kept() -> None:
    file = Flat()
    file.user("Old question")
    file.says("Old answer.")
    file.user("Kept question")
    file.calls("Bash", arguments={"command": "cut off"})
    file.compacts("compacted", metadata={"preservedMessages": 2, "totalMessages": 4})
    file.user("New question")
    file.says("New answer.")
    done = repair_bytes(file.data())
    evidence = check(done.transcript.source, name="0c9be80c-c704-4d9f-928e-22f500ed824f")
    assert [each.id for each in evidence.findings if each.severity != "info"] == []
    assert verdicts(evidence)[-1].outcome == "fully"
    assert "cut off" in json.dumps(valid_messages(done.transcript))


def test_results_between_statuses_are_told_as_they_come() -> None:
    file = Flat()
    file.user("Question")
    file.calls("Read")
    file.calls("Write")
    file.add("system", "Reading")
    file.result("Content")
    file.add("system", "Writing")
    file.fails("Permission denied")
    file.says("Answer.")
    follower = Follower()
    events = [each for line in file.data().splitlines(True) for each in follower.feed(line)]
    outcomes = [each.step for each in events if each.kind == "outcome" and each.step]
    ended = [(step.verb, step.state) for step in outcomes]
    assert ended == [("Read", "ok"), ("Write", "failed")]


def test_what_is_not_active_is_not_the_end_of_a_session(tmp_path: Path) -> None:
    file = Nested()
    file.human("Question")
    file.says("Answer.", is_active=True)
    file.human("Left behind", is_active=False)
    file.says(call("toolu_1", "Bash", command="make"), is_active=False)
    path = tmp_path / "conversations" / "_home_ada" / "2025-01-29T14-15-30.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(file.data())
    assert str(Session(load(BytesSource(file.data()))).status()) == "finished"
    assert summarize(find(str(path)), 0.0).ending == "answered"
    source = load(BytesSource(file.data())).source
    assert extract_rows(source, 1).state.ending == "answered"


def test_an_error_behind_a_status_is_the_result_of_the_call() -> None:
    file = Flat()
    file.user("Question")
    file.calls("Write")
    file.add("system", "Writing")
    file.fails("Permission denied")
    file.says("Answer.")
    (turn,) = Session(load(BytesSource(file.data()))).turns()
    assert [step.state for step in turn.steps if step.verb == "Write"] == ["failed"]


def test_a_record_that_names_itself_as_its_parent_follows_the_one_before_it() -> None:
    file = Flat()
    file.user("Question")
    uuid = file.says("First.")
    file.says("Second.")
    file.records[1]["parentUuid"] = uuid
    (turn,) = Session(load(BytesSource(file.data()))).turns()
    assert turn.prompt is not None
    assert turn.prompt.text == "Question"
