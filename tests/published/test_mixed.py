"""Records of a dialect in any file: one converted view for every layer, the client's bytes kept."""

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.published.files import Known
from tests.published.forms import Client, Flat, Nested, call, lines
from tests.published.random_files import FORMS, Drawn, draw
from tests.published.test_dialects import sent_in_order

from steno.check.checkup import check
from steno.check.repair.repair_job import repair_bytes
from steno.check.verdict import verdicts
from steno.format.dialects import detection
from steno.format.source import BytesSource
from steno.index.database import locate_index, open_index
from steno.index.sync.updater import sync
from steno.session.live_turns import Follower
from steno.session.resume.api_rules import find_breaches
from steno.session.resume.clients import LATEST
from steno.session.resume.replay import as_resumed, valid_messages
from steno.session.session import Session
from steno.session.transcript import load, load_growth
from steno.session.turns.session_facts import count_session
from steno.store.session_counts import count_turns
from steno.store.session_lookup import find
from steno.store.summary import summarize

NAME = "0c9be80c-c704-4d9f-928e-22f500ed824f"
SEEDS = range(7)


@pytest.fixture(params=[(form, seed) for form in FORMS for seed in SEEDS], ids=str)
def drawn(request: pytest.FixtureRequest) -> Drawn:
    return draw(*request.param)


def written(folder: Path, data: bytes) -> str:
    path = folder / "projects" / "-home-ada-work" / f"{NAME}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return str(path)


def severe(data: bytes) -> list[tuple[str, int]]:
    found = check(BytesSource(data), name=NAME).findings
    return [(each.id, each.location.line) for each in found if each.severity != "info"]


def test_a_random_file_says_the_same_everywhere(drawn: Drawn, tmp_path: Path) -> None:
    session = Session(load(BytesSource(drawn.data)))
    turns = session.turns()
    assert [turn.prompt.text for turn in turns if turn.prompt] == drawn.prompts
    found = find(written(tmp_path, drawn.data))
    look = summarize(found, 0.0)
    assert (look.title, look.dialect) == (session.title.text, session.transcript.dialect)
    assert count_turns(found) == len(turns) == count_session(session).turns


def test_of_a_random_file_everything_but_what_is_hidden_is_sent(drawn: Drawn) -> None:
    messages = valid_messages(load(BytesSource(drawn.data)))
    assert list(find_breaches([*messages, {"role": "user", "content": "Go on."}])) == []
    known = Known(drawn.data, (), tuple(drawn.present), tuple(drawn.absent))
    assert sent_in_order(messages, known)


def test_a_random_file_is_sound_and_its_repair_is(drawn: Drawn) -> None:
    assert [each for each in severe(drawn.data) if each[0] != "fields.dialect"] == []
    done = repair_bytes(drawn.data)
    assert done.settled
    assert severe(done.data) == []
    assert repair_bytes(done.data).edits == []
    assert not [word for word in drawn.absent if word in json.dumps(valid_messages(done.transcript))]
    assert verdicts(check(BytesSource(done.data), name=NAME))[-1].outcome == "fully"


def test_a_random_file_that_grows_is_read_as_at_once(drawn: Drawn) -> None:
    whole = Session(load(BytesSource(drawn.data))).turns()
    ends = [at + 1 for at, byte in enumerate(drawn.data) if byte == ord("\n")]
    transcript = load(BytesSource(drawn.data[: ends[0]]))
    for end in ends[1 :: max(1, len(ends) // 5)]:
        transcript = load_growth(transcript, BytesSource(drawn.data[:end]))
    transcript = load_growth(transcript, BytesSource(drawn.data))
    assert [str(turn.prompt) for turn in Session(transcript).turns()] == [str(turn.prompt) for turn in whole]


def test_a_random_file_that_is_followed_tells_the_same_however_it_is_cut(drawn: Drawn) -> None:
    def told(portion: int) -> list[tuple[object, ...]]:
        follower = Follower()
        parts = range(0, len(drawn.data), portion)
        events = [each for at in parts for each in follower.feed(drawn.data[at : at + portion])]
        return [(each.kind, each.text, str(each.prompt), each.step and each.step.state) for each in events]

    assert told(600) == told(len(drawn.data))
    prompts = [each[2] for each in told(len(drawn.data)) if each[0] == "turn"]
    assert len(prompts) == len(drawn.prompts)


def answered_by_004() -> Client:
    file = Client()
    file.user("Look")
    file.says("I look.", call("toolu_1", "Read", file_path="a"))
    block = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "found"}
    file.raw(type="tool_result", timestamp=1767261600000, message={"content": [block]})
    file.says("Done.")
    return file


def answered_by_000() -> Client:
    file = Client()
    file.user("Look")
    file.says("I look.", call("toolu_1", "Read", file_path="a"))
    file.raw(type="system", subtype="tool_result", message="found")
    file.says("Done.")
    return file


@pytest.mark.parametrize("made", [answered_by_000, answered_by_004])
def test_a_result_in_a_dialect_pairs_with_the_clients_call(made: Callable[[], Client]) -> None:
    data = made().data()
    (turn,) = Session(load(BytesSource(data))).turns()
    assert [(step.verb, step.state) for step in turn.steps] == [("Text", "ok"), ("Read", "ok")]
    assert severe(data) == [("fields.dialect", 3)]


@pytest.mark.parametrize("made", [answered_by_000, answered_by_004])
def test_what_the_client_sends_is_predicted_from_the_file_as_it_is(made: Callable[[], Client]) -> None:
    evidence = check(BytesSource(made().data()), name=NAME)
    newest = verdicts(evidence)[-1]
    assert (newest.outcome, newest.sent, newest.there) == ("partly", 2, 4)
    assert [(each.first, each.last) for each in newest.lost] == [(2, 3)]
    assert "found" not in json.dumps(as_resumed(evidence.transcript.as_written, LATEST))


@pytest.mark.parametrize("made", [answered_by_000, answered_by_004])
def test_records_of_the_client_keep_their_bytes(made: Callable[[], Client]) -> None:
    data = made().data()
    before, after = data.splitlines(), repair_bytes(data).data.splitlines()
    assert [number for number, line in enumerate(before, 1) if line not in after] == [3]


def test_flags_of_a_dialect_mean_nothing_on_the_clients_own_records() -> None:
    """2.1.325 and 2.1.42 send them all the same."""
    file = Client()
    file.user("First")
    file.says("One.")
    file.user("Second", isDeleted=True, is_active=False)
    file.says("Two.", isAborted=True)
    file.raw(type="user", message="Third")
    file.says("Three.")
    data = file.data()
    turns = Session(load(BytesSource(data))).turns()
    assert [turn.prompt.text for turn in turns if turn.prompt] == ["First", "Second", "Third"]
    sent = json.dumps(valid_messages(load(BytesSource(data))))
    assert "Second" in sent
    assert "interrupted" not in sent


def test_what_hangs_on_a_deleted_record_hangs_on_the_one_before() -> None:
    file = Client()
    first = file.user("First")
    file.raw(type="assistant", message="Deleted", isDeleted=True)
    file.user("Second")
    source = load(BytesSource(file.data())).source
    records = [json.loads(line) for line in b"".join(source.chunks()).splitlines()]
    assert [each["type"] for each in records] == ["user", "deleted", "user"]
    assert records[2]["parentUuid"] == first


def test_an_active_branch_in_a_dialect_leaves_the_clients_branch() -> None:
    file = Client()
    file.user("Question")
    fork = file.says("Answer.")
    file.user("Left behind")
    file.says("Left too.")
    message = {"content": "Active"}
    file.raw(type="human", timestamp=1767261600000, parentUuid=fork, is_active=True, message=message)
    file.says("Active answer.")
    sent = json.dumps(valid_messages(load(BytesSource(file.data()))))
    assert "Active answer." in sent
    assert "Left" not in sent


def test_a_file_that_turns_into_a_dialect_is_converted() -> None:
    file = Client()
    for number in range(50):
        file.user(f"Prompt {number}")
        file.says(f"Answer {number}")
    parent = file.records[-1]["uuid"]
    flat = Flat()
    flat.user("Flat prompt", parentUuid=parent)
    flat.calls("Bash", arguments={"command": "make"})
    flat.fails("no rule")
    flat.says("It failed.")
    transcript = load(BytesSource(lines(file.records + flat.records)))
    assert (transcript.dialect, transcript.is_converted) == ("claude", True)
    last = Session(transcript).turns()[-1]
    assert last.number == 51
    assert [(step.verb, step.state) for step in last.steps] == [("Bash", "failed")]


def test_both_dialects_in_one_file_are_read() -> None:
    flat, nested = Flat(), Nested()
    flat.user("One")
    flat.says("Two")
    nested.human("Three", parentUuid=flat.records[-1]["uuid"])
    nested.says("Four", call("toolu_1", "Read", file_path="a"))
    nested.result("toolu_1", "Five")
    nested.says("Six")
    data = lines(flat.records + nested.records)
    sent = valid_messages(load(BytesSource(data)))
    known = Known(data, (), ("One", "Two", "Three", "Four", "Five", "Six"))
    assert sent_in_order(sent, known)
    assert {each[0] for each in severe(data)} == {"dialect.mixed"}


def test_a_file_of_the_client_is_never_converted(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("converted")

    monkeypatch.setattr(detection, "convert_source", refuse)
    monkeypatch.setattr("steno.session.transcript.convert_source", refuse)
    monkeypatch.setattr("steno.check.checkup.convert_source", refuse)
    file = Client()
    file.user("Question", isDeleted=True)
    file.says("Answer.")
    assert not load(BytesSource(file.data())).is_converted
    assert severe(file.data()) == []


def test_the_index_reads_a_file_again_when_a_dialect_appears_in_it(tmp_path: Path) -> None:
    file = Client()
    for number in range(5):
        file.user(f"Prompt {number}")
        file.says(f"Answer {number}")
    path = Path(written(tmp_path / "claude", file.data()))
    home = locate_index(str(tmp_path / "claude"))
    sync(home)
    file.raw(type="user", message="hidden words", isDeleted=True)
    file.raw(type="user", message="flat words")
    file.says("Done.")
    path.write_bytes(file.data())
    sync(home)
    with open_index(str(tmp_path / "claude")) as index:
        rows = index.connection.execute("SELECT max(number) FROM turns").fetchall()
        assert rows == [(6,)]


def test_a_broken_file_of_a_dialect_is_read_and_repaired() -> None:
    """What is missing, doubled, of another type or torn leaves the rest as it is."""
    for form in FORMS:
        for seed in range(8):
            made = draw(form, seed)
            rng = random.Random(seed)
            records = [json.loads(line) for line in made.data.splitlines()]
            _break(rng, rng.choice(records))
            data = lines(records)[: -rng.choice((0, 0, 20)) or None]
            messages = valid_messages(load(BytesSource(data)))
            assert list(find_breaches([*messages, {"role": "user", "content": "Go on."}])) == []
            done = repair_bytes(data)
            assert done.settled
            assert repair_bytes(done.data).edits == []


def _break(rng: random.Random, record: dict[str, object]) -> None:
    match rng.randrange(8):
        case 0:
            record.pop("parentUuid", None)
        case 1:
            record["message"] = rng.choice((None, 7, "", {"content": []}))
        case 2:
            record["timestamp"] = rng.choice((1738160130, "1738160130", "yesterday", None))
        case 3:
            record["parentUuid"] = record["uuid"]
        case 4:
            record.pop("uuid")
        case 5:
            record["isSidechain"] = True
        case 6:
            record["isDeleted"] = True
        case _:
            record["type"] = "unknown"
