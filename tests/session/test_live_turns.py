"""New bytes of a session → what to tell: the same events however the bytes are cut."""

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import session, text, thinking, tool
from tests.builders.stories import stories
from tests.session.open_sessions import opened_file

from steno.errors import Unreadable
from steno.format.encode import encode_line
from steno.format.lines import LineFeed, read_bytes
from steno.format.message import Text
from steno.format.records import Record
from steno.session import live_turns
from steno.session.live_turns import Event, Follower, RecentTurns
from steno.session.transcript import read_node
from steno.session.turns.prompts import TURN_ORIGINS, origin_of, read_prompt
from steno.session.turns.step_builder import TurnDraft
from steno.session.turns.steps import Step, StepDraft

DEMO = [made.bytes() for made in stories()]
PART = encode_line({"type": "user", "uuid": "x", "sessionId": "s", "message": {"content": "ü €"}})
DAMAGES = (
    b"",
    b"\xef\xbb\xbf",
    b"\0\0\0\0",
    b'{"type":"user","uuid":"half","sess',
    b"no json at all\n",
    b'"a text"\n',
    b"\r\n",
    b"\xff\xfe\xc3\n",
    PART.rstrip(b"\n"),
    PART.rstrip(b"\n") + b" \r\n",
)


def told(event: Event) -> tuple[Any, ...]:
    """Return all of an event that can be compared."""
    prompt = event.prompt and (event.prompt.text, event.prompt.origin, event.prompt.node.offset)
    seam = event.compaction and (event.compaction.trigger, event.compaction.pre_tokens)
    about = (event.kind, event.time, event.turn, event.agent, event.text, event.back, event.size)
    ends = (event.ending, event.steps, event.duration, event.usage)
    return (*about, *ends, prompt, seam, step_of(event.step))


def step_of(step: Step | None) -> tuple[Any, ...]:
    if step is None:
        return ()
    nodes = [node and node.offset for node in (step.call, step.result)]
    said = (step.kind, step.verb, step.subject, step.outcome, step.state, step.call_id)
    return (*said, step.started, step.duration, step.tokens, step.retries, *nodes)


def fed(data: bytes, cuts: list[int], *, agent: bool = False) -> list[tuple[Any, ...]]:
    follower = Follower(agent=agent)
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    portions = [data[a:b] for a, b in pairwise(places)]
    return [told(event) for portion in portions for event in follower.feed(portion)]


def at_once(data: bytes, *, agent: bool = False) -> list[Event]:
    return Follower(agent=agent).feed(data)


@given(st.sampled_from(DEMO), st.lists(st.integers(0, 1 << 20), max_size=40))
def test_however_the_bytes_are_cut_the_events_are_the_same(data: bytes, cuts: list[int]) -> None:
    assert fed(data, cuts) == fed(data, [])


@given(
    st.lists(st.sampled_from(DAMAGES), max_size=6), st.lists(st.integers(0, 1 << 20), max_size=30), st.integers(0, 40)
)
def test_cuts_change_nothing_in_a_damaged_file_either(damages: list[bytes], cuts: list[int], place: int) -> None:
    lines = DEMO[0].splitlines(keepends=True)[:12]
    for damage in damages:
        lines.insert(place % (len(lines) + 1), damage)
    data = b"".join(lines)
    # A hole behind a record is found alone or with what follows it; the bytes are the same.
    assert plain(fed(data, cuts)) == plain(fed(data, []))


def plain(events: list[tuple[Any, ...]]) -> tuple[list[tuple[Any, ...]], int]:
    return (
        [event for event in events if event[0] != "damage"],
        sum(event[6] for event in events if event[0] == "damage"),
    )


def test_one_byte_at_a_time_is_the_same_too() -> None:
    data = session().turn("Grüße, 世界", "Ja 🌊").bytes()
    assert fed(data, list(range(len(data)))) == fed(data, [])


def test_the_pieces_of_a_feed_tile_the_file() -> None:
    data = b"".join(DAMAGES) + DEMO[1]
    for width in (1, 7, 1000):
        feed = LineFeed()
        pieces = [piece for at in range(0, len(data), width) for piece in feed.feed(data[at : at + width])]
        at = 0
        for piece in pieces:
            assert piece.offset == at
            at += piece.length
        assert at == feed.offset
        assert at + feed.buffered == len(data)


def test_a_torn_line_waits_until_it_is_whole() -> None:
    data = session().user("Is it high tide?").bytes()
    follower = Follower()
    assert follower.feed(data[:-20]) == []
    (event,) = follower.feed(data[-20:])
    assert event.prompt is not None
    assert event.prompt.text == "Is it high tide?"


def test_a_line_that_lacks_only_its_newline_is_told_once() -> None:
    data = session().user("Is it high tide?").bytes()
    follower = Follower()
    assert [event.kind for event in follower.feed(data.rstrip(b"\n"))] == ["turn"]
    assert follower.feed(b"\n") == []


def test_an_endless_line_is_not_kept_in_memory() -> None:
    feed = LineFeed(cap=1000)
    for _ in range(50):
        assert list(feed.feed(b"x" * 999)) == []
        assert sum(map(len, feed._parts)) <= 4096 + 999
    (gap, record) = feed.feed(b"\n" + PART)
    assert gap.length == 50 * 999 + 1
    assert isinstance(record, Record)
    assert record.offset == gap.length


def test_from_the_middle_of_a_file_the_broken_first_line_is_passed_over() -> None:
    made = session().turn("one", "first").turn("two", "second")
    data = made.bytes()
    start = data.index(b'"one"')
    events = Follower(start).feed(data[start:])
    assert [event.text for event in events if event.kind == "words"] == ["first", "second"]
    assert {event.turn for event in events} == {0}
    assert [event.kind for event in events if event.kind == "damage"] == []


# What is told


def test_a_call_is_told_when_it_is_written_and_its_outcome_when_it_comes() -> None:
    made = session().user("Test it").assistant(tool("Bash", command="make test"))
    before = len(made.bytes())
    data = made.result("Exit code 2\n1 failed", error=True).assistant("Hm.").bytes()
    follower = Follower()
    (_, step) = follower.feed(data[:before])[:2]
    assert step.step is not None
    assert (step.kind, step.step.verb, step.step.subject) == ("step", "Bash", "make test")
    assert step.step.state == "open"
    outcome = follower.feed(data[before:])[0]
    assert outcome.kind == "outcome"
    assert outcome.step is not None
    assert (outcome.step.state, outcome.step.call_id) == ("failed", step.step.call_id)
    assert outcome.step.outcome.startswith("exit 2")
    assert outcome.step.duration is not None


def test_the_records_of_a_call_can_be_had_when_its_outcome_is_told() -> None:
    made = session().user("Test it").assistant(tool("Bash", command="make test"))
    before = len(made.bytes())
    data = made.result("ok").bytes()
    follower = Follower()
    follower.feed(data[:before])
    outcome = follower.feed(data[before:])[0]
    assert outcome.step is not None
    assert outcome.step.call is not None
    assert outcome.step.result is not None
    assert follower.pages.record(outcome.step.call).tool_uses[0].name == "Bash"
    assert follower.pages.record(outcome.step.result).tool_results[0].text == "ok"


def test_thoughts_are_told_whole() -> None:
    data = session().user("Go").assistant(thinking("One.\nTwo."), text("Done.")).bytes()
    thought = next(event for event in at_once(data) if event.kind == "thought")
    assert thought.text == "One.\nTwo."


def test_the_end_of_a_turn_is_told_once() -> None:
    events = at_once(session(full=True).turn("Go", "Done.").bytes())
    ends = [event for event in events if event.kind == "end"]
    assert [event.ending for event in ends] == ["answered"]
    assert ends[0].usage.output > 0


def test_a_turn_that_failed_does_not_end_again() -> None:
    data = next(data for data in DEMO if b'"isApiErrorMessage":true' in data)
    assert b'"turn_duration"' in data
    ends = [event.ending for event in at_once(data) if event.kind == "end"]
    assert "failed" in ends
    assert [pair for pair in pairwise(ends) if pair == ("failed", "answered")] == []


def test_a_question_to_the_user_waits_for_an_answer() -> None:
    data = session().user("Go").assistant(tool("AskUserQuestion", questions=[])).bytes()
    assert [event.ending for event in at_once(data) if event.kind == "end"] == ["asks"]


def test_a_session_that_is_left_says_so() -> None:
    data = session(full=True).turn("Go", "Done.").exit().bytes()
    assert [event.ending for event in at_once(data) if event.kind == "end"] == ["answered", "left"]


def test_a_prompt_that_was_rewound_to_says_so() -> None:
    made = session().turn("one", "first").turn("two", "second").rewind(1).turn("three", "third")
    turns = [event for event in at_once(made.bytes()) if event.kind == "turn"]
    assert [event.back for event in turns] == [False, False, True]


def test_a_record_that_is_written_twice_is_told_once() -> None:
    data = session().turn("one", "first").bytes()
    assert [told(event) for event in at_once(data + data)] == [told(event) for event in at_once(data)]


def test_a_queued_prompt_is_told_when_it_is_typed_and_not_again() -> None:
    data = next(data for data in DEMO if b'"queued_command"' in data)
    queued = [event.text for event in at_once(data) if event.kind == "queued"]
    assert len(queued) == len(set(queued)) > 0


def test_a_compaction_is_told() -> None:
    data = next(data for data in DEMO if b'"compact_boundary"' in data)
    (seam,) = [event for event in at_once(data) if event.kind == "seam"]
    assert seam.compaction is not None
    assert seam.compaction.pre_tokens


def test_sub_agents_inside_the_file_have_a_voice_of_their_own() -> None:
    old = next(made for made in stories() if b'"isSidechain":true' in made.bytes())
    follower = Follower()
    events = follower.feed(old.bytes())
    inside = {event.agent for event in events if event.agent}
    assert inside
    assert all(follower.task_of(name).description for name in inside)
    assert [event.turn for event in events if event.kind == "turn" and not event.agent]


# For days


class Watched(list[StepDraft]):
    """A list that counts how many of its items were looked at."""

    looks = 0

    def __iter__(self) -> Iterator[StepDraft]:
        Watched.looks += len(self)
        return super().__iter__()

    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        Watched.looks += len(found) if isinstance(at, slice) else 1
        return found


def test_a_step_costs_the_same_however_many_came_before(monkeypatch: pytest.MonkeyPatch) -> None:
    begin = TurnDraft.__init__

    def watched(self: TurnDraft, *arguments: Any) -> None:
        begin(self, *arguments)
        self.drafts = Watched()

    monkeypatch.setattr(TurnDraft, "__init__", watched)
    monkeypatch.setattr(Watched, "looks", 0)
    made = session().user("Go")
    for number in range(300):
        made.assistant(tool("Bash", command=f"step {number}")).result("ok")
    events = Follower().feed(made.bytes())
    assert sum(event.kind == "outcome" for event in events) == 300
    assert Watched.looks < 300 * 10


def test_a_record_that_was_told_long_ago_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = session().turn("one", "first").turn("two", "second").bytes().splitlines(keepends=True)
    monkeypatch.setattr(live_turns, "_MAX_RECORDS", len(lines))
    assert Follower().feed(b"".join(lines))
    again = Follower()
    again.feed(b"".join(lines))
    assert again.feed(lines[0]) == []
    monkeypatch.setattr(live_turns, "_MAX_RECORDS", 1)
    again = Follower()
    again.feed(b"".join(lines))
    assert [event.kind for event in again.feed(lines[0])] == ["turn"]


def test_what_sub_agents_were_started_as_is_kept_of_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_turns, "_MAX_AGENTS", 2)
    made = session().user("Go")
    for number in range(5):
        made.assistant(tool("Agent", prompt=f"p{number}", description=f"d{number}"))
    follower = Follower()
    follower.feed(made.bytes())
    assert [name for name in follower.tasks if name.startswith("p")] == ["p3", "p4"]
    assert len(follower.tasks) == 4


def test_the_record_of_a_call_that_nobody_answers_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_turns, "_MAX_CALLS", 1)
    made = session().user("Go")
    made.assistant(tool("Bash", command="one"), tool("Bash", command="two"))
    before = len(made.bytes())
    data = made.result("late").bytes()
    follower = Follower()
    follower.feed(data[:before])
    (outcome,) = follower.feed(data[before:])
    assert outcome.step is not None
    assert outcome.step.call is not None
    assert (outcome.step.verb, outcome.step.state) == ("Bash", "ok")
    with pytest.raises(Unreadable):
        follower.pages.record(outcome.step.call)


def test_prompts_that_were_typed_are_kept_of_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    data = next(data for data in DEMO if b'"queued_command"' in data)
    once = [event.text for event in at_once(data) if event.kind == "queued"]
    monkeypatch.setattr(live_turns, "_MAX_QUEUED", 0)
    assert len([event for event in at_once(data) if event.kind == "queued"]) > len(once)


def test_where_it_was_gone_on_from_is_kept_of_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    data = next(data for data in DEMO if any(event.back for event in at_once(data)))
    monkeypatch.setattr(live_turns, "_MAX_PARENTS", 1)
    assert not any(event.back for event in at_once(data))


@pytest.mark.parametrize(("most", "number"), [(2, 2), (1, 1)])
def test_sub_agents_inside_the_file_are_kept_of_the_newest(
    monkeypatch: pytest.MonkeyPatch, most: int, number: int
) -> None:
    monkeypatch.setattr(live_turns, "_MAX_AGENTS", most)
    follower = Follower()
    events: list[Event] = []
    for place, name in enumerate("aba"):
        said = {"role": "user", "content": f"Look {place}"}
        about = {"type": "user", "uuid": f"u{place}", "parentUuid": None, "agentId": name}
        events = follower.feed(encode_line({**about, "isSidechain": True, "message": said}))
    assert [(event.kind, event.agent, event.turn) for event in events] == [("turn", "a", number)]


def test_a_title_that_was_given_counts_more_than_one_that_was_made() -> None:
    follower = Follower()
    for kind, field, title in (
        ("ai-title", "aiTitle", "Tides"),
        ("custom-title", "customTitle", "My tides"),
        ("ai-title", "aiTitle", "Tides again"),
    ):
        follower.feed(encode_line({"type": kind, field: title, "sessionId": "s"}))
    assert follower.title == "My tides"


# Recall


@pytest.mark.parametrize("last", [0, 1, 2, 9])
def test_the_last_turns_are_kept(last: int) -> None:
    made = session().turn("one", "first").turn("two", "second").turn("three", "third")
    recall = RecentTurns(last)
    recall.feed(at_once(made.bytes()))
    said = [event.text for event in recall.events if event.kind == "words"]
    assert said == ["first", "second", "third"][max(3 - last, 0) :]


def test_a_command_that_leads_to_nothing_belongs_to_the_turn_before() -> None:
    made = session().turn("one", "first").turn("two", "second").command("exit")
    recall = RecentTurns(1)
    recall.feed(at_once(made.bytes()))
    prompts = [event.prompt.text for event in recall.events if event.prompt]
    assert prompts == ["two", "/exit"]


def test_turns_since_a_time_are_kept() -> None:
    made = session().turn("one", "first").wait(3600).turn("two", "second")
    events = at_once(made.bytes())
    later = next(event.time for event in events if event.text == "second")
    assert later is not None
    recall = RecentTurns(since=later.timestamp())
    recall.feed(events)
    assert [event.prompt.text for event in recall.events if event.prompt] == ["two"]
    nothing = RecentTurns(since=later.timestamp() + 1000)
    nothing.feed(events)
    assert nothing.events == []


# The corpus


@pytest.mark.corpus
def test_nothing_that_was_said_in_the_corpus_is_lost(shared: Path) -> None:
    files = sorted((shared / "corpus").rglob("*.jsonl"))
    assert len(files) > 100
    for path in files:
        data = path.read_bytes()
        agent = path.name.startswith("agent-")
        events = at_once(data, agent=agent)
        records = [piece for piece in read_bytes(data) if isinstance(piece, Record)]
        check_calls(records, events, path)
        check_words(records, events, path, agent=agent)
        if len(data) < 200_000:
            cut = fed(data, list(range(0, len(data), 997)), agent=agent)
            assert plain(cut) == plain([told(event) for event in events]), path


def check_calls(records: list[Record], events: list[Event], path: Path) -> None:
    """Every call that has a result has one outcome, and no more."""
    kept = [record for record in records if record.role]
    calls = {use.id for record in kept for use in record.tool_uses if use.id}
    results = {result.tool_use_id for record in kept for result in record.tool_results}
    steps = [event.step for event in events if event.kind == "outcome"]
    outcomes = Counter(step.call_id for step in steps if step is not None)
    assert set(outcomes) >= calls & results, path
    assert not outcomes or max(outcomes.values()) == 1, path


def check_words(records: list[Record], events: list[Event], path: Path, *, agent: bool) -> None:
    """Every prompt and every word of an answer is told."""
    said = {event.text for event in events if event.kind == "words"}
    asked = {event.prompt.text for event in events if event.prompt}
    for place, record in enumerate(records):
        if record.role == "assistant" and not record.envelope.is_api_error_message:
            texts = [block.text for block in record.blocks if isinstance(block, Text)]
            model = record.message.model if record.message else ""
            lost = [text for text in texts if text.strip() and text not in said]
            assert not lost or model == "<synthetic>", path
        elif record.role == "user":
            origin = origin_of(record, agent=agent or record.is_sidechain)
            if origin in TURN_ORIGINS:
                assert read_prompt(record, read_node(record, place), origin).text in asked, path


@pytest.mark.corpus
def test_every_prompt_and_answer_of_the_real_sessions_is_told(shared: Path) -> None:
    counted = 0
    for path in sorted((shared / "corpus" / "real-client").rglob("projects/*/*.jsonl")):
        opened = opened_file(path)
        turns = opened.turns()
        events = at_once(path.read_bytes(), agent=path.name.startswith("agent-"))
        prompts = {event.prompt.text for event in events if event.prompt}
        said = "\n\n".join(event.text for event in events if event.kind == "words")
        for turn in turns:
            counted += 1
            assert turn.prompt is None or turn.prompt.text in prompts, path
            assert turn.answer in said, path
    assert counted > 50
