"""Rules about compactions."""

import json

import pytest
from tests.builders import VERSIONS, Session, session, tool
from tests.check.rule_findings import ids, joined, look, messages

from steno.check.record_graph import RecordGraph
from steno.check.repair.repair_job import repair_bytes
from steno.check.rules.compaction import find_missing_summaries
from steno.check.verdict import verdicts
from steno.format.encode import encode
from steno.format.source import BytesSource
from steno.session.resume.clients import LATEST
from steno.session.resume.replay import as_resumed
from steno.session.session import Session as ReadSession
from steno.session.transcript import Node, load


def compacted(version: str = "2.1.42") -> Session:
    made = session(version).user("Q1").assistant("A1").compact("All of it.", trigger="auto")
    return made.user("Q2").assistant("A2")


def lines_of(made: Session) -> tuple[list[bytes], int]:
    """Return the lines, and the place of the boundary among them."""
    lines = made.lines()
    return lines, next(at for at, line in enumerate(lines) if b"compact_boundary" in line)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("keep", [0, 1])
def test_compactions_of_every_version_are_sound(version: str, keep: int) -> None:
    made = session(version, full=True).user("Q1").assistant("A1").user("Q2").assistant("A2")
    made.compact("All of it.", trigger="auto", keep=keep).user("Q3").assistant("A3").done()
    assert ids(look(made), "compaction") == []


def test_a_boundary_without_a_summary_is_an_error() -> None:
    lines, at = lines_of(compacted())
    del lines[at + 1]
    assert ("no-summary", "error", at + 1) in ids(look(joined(*lines)), "compaction")


def test_a_summary_needs_no_mark() -> None:
    data = compacted().bytes().replace(b',"isCompactSummary":true', b"")
    assert ids(look(data), "compaction") == []


def test_an_earlier_boundary_without_a_summary_is_mild() -> None:
    made = compacted().compact("More.", trigger="auto").user("Q3").assistant("A3")
    lines, at = lines_of(made)
    del lines[at + 1]
    assert ("no-summary", "info", at + 1) in ids(look(joined(*lines)), "compaction")


def test_a_boundary_at_the_very_end_is_mild() -> None:
    lines, at = lines_of(compacted())
    found = ids(look(joined(*lines[: at + 1])), "compaction")
    assert found == [("no-summary", "info", at + 1)]


def test_a_summary_in_the_form_of_a_title_is_an_error() -> None:
    made = session("2.1.42").user("Q1").assistant("A1").summary("All of it.")
    made.link({"type": "system", "subtype": "compact_boundary", "uuid": "", "timestamp": ""}, parent=None)
    made.tip = None
    found = look(made.user("Q2").assistant("A2"))
    assert ids(found, "compaction") == [("title-form", "error", 4)]
    assert messages(found, "compaction.title-form") == ["The summary is on line 3"]


@pytest.mark.parametrize("named", [True, False])
def test_a_prompt_behind_a_boundary_is_no_summary_where_a_title_is(*, named: bool) -> None:
    made = session("2.1.42").user("Q1").assistant("A1").summary("All of it.")
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "", "timestamp": ""}
    made.link(boundary, parent=None)
    lines = made.user("Q2").assistant("A2").lines()
    if not named:
        fields = json.loads(lines[3])
        lines[4] = lines[4].replace(encode(fields.pop("uuid")), b"null")
        lines[3] = encode(fields)
    data = joined(*lines)
    found = look(data)
    assert ids(found, "compaction") == [("title-form", "error", 4)]
    words = {each.words.partition("; ")[2] for each in verdicts(found)}
    assert words == {"the compaction summary is not sent"}
    done = repair_bytes(data)
    assert ids(look(done.data), "compaction") == []
    sent = [each["content"] for each in as_resumed(done.transcript, LATEST) or []]
    assert "All of it." in str(sent[0])
    assert "Q1" not in str(sent)
    turns = ReadSession(load(BytesSource(data))).turns()
    assert [turn.prompt.text for turn in turns if turn.prompt] == ["Q1", "Q2"]


def test_an_answer_that_begins_anew_behind_a_documented_compaction_lost_no_parent() -> None:
    made = session("2.1.42").user("Q1").assistant(tool("Bash", command="a")).result("x")
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "", "timestamp": ""}
    made.summary("All of it.").link(boundary, parent=None)
    made.tip = None
    data = made.assistant("A1").bytes()
    found = look(data)
    assert ids(found, "compaction") == [("title-form", "error", 5)]
    assert not {"lost-parent", "unreachable"} & {each[0] for each in ids(found, "chain")}
    assert {each.outcome for each in verdicts(found)} == {"fully"}
    done = repair_bytes(data)
    assert {edit.finding for edit in done.edits} == {"compaction.title-form"}
    sent = as_resumed(done.transcript, LATEST) or []
    assert [each["role"] for each in sent] == ["user", "assistant"]
    assert "All of it." in str(sent[0])


def test_the_first_prompt_behind_a_documented_compaction_may_be_edited() -> None:
    made = session("2.1.42").user("Q1").assistant("A1").summary("All of it.")
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "", "timestamp": ""}
    made.link(boundary, parent=None)
    for asked in ("Q2", "Q2, edited"):
        made.tip = None
        made.user(asked).assistant("A2")
    data = made.bytes()
    assert ids(look(data), "compaction") == [("title-form", "error", 4)]
    sent = str(as_resumed(repair_bytes(data).transcript, LATEST))
    assert "All of it." in sent
    assert "Q2, edited" in sent


def test_the_title_of_another_session_is_not_sent_as_a_summary() -> None:
    made = session("2.1.42").user("Q1").assistant("A1").summary("Elsewhere", leaf="elsewhere")
    boundary = {"type": "system", "subtype": "compact_boundary", "uuid": "", "timestamp": ""}
    made.link(boundary, parent=None)
    made.tip = None
    data = made.user("Q2").assistant("A2").bytes()
    assert [each[0] for each in ids(look(data), "compaction")] == ["no-summary"]
    sent = str(as_resumed(repair_bytes(data).transcript, LATEST))
    assert "Elsewhere" not in sent
    assert "Q1" in sent


def test_a_title_beside_a_sound_compaction_is_just_a_title() -> None:
    made = session("2.1.42").user("Q1").assistant("A1").summary("A title")
    made.compact("All of it.", trigger="auto").user("Q2").assistant("A2")
    assert ids(look(made), "compaction") == []


def test_a_logical_parent_that_is_not_there_is_told() -> None:
    made = compacted()
    data = made.bytes().replace(
        b'"logicalParentUuid":"' + made.uuids()[1].encode(),
        b'"logicalParentUuid":"99999999-0000-4000-8000-000000000009',
    )
    assert [each[:2] for each in ids(look(data), "compaction")] == [("logical-parent", "info")]


def many(boundaries: int) -> RecordGraph:
    """Return a file of nothing but boundaries, each off the chain, and one title behind them."""
    lines = [
        encode(
            {"type": "system", "subtype": "compact_boundary", "uuid": f"b{at}"}
            | {"parentUuid": None, "logicalParentUuid": "gone"}
        )
        for at in range(boundaries)
    ]
    return RecordGraph(load(BytesSource(joined(*lines, *session().user("Q").assistant("A").lines()))))


def test_many_boundaries_are_looked_at_in_one_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is asked of each node does not grow with the number of boundaries."""

    def steps(boundaries: int) -> int:
        graph = many(boundaries)
        asked = 0

        def count(_node: Node) -> bool:
            nonlocal asked
            asked += 1
            return _node.type in ("user", "assistant")

        with monkeypatch.context() as patch:
            patch.setattr(Node, "is_message", property(count))
            assert len(list(find_missing_summaries(graph))) == boundaries
        return asked

    assert steps(400) < 2.5 * steps(200)
