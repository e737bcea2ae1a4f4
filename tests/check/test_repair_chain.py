"""The chain: what is hung where, and where a mended session begins and goes on."""

import json
from datetime import UTC, datetime
from functools import partial

import pytest
from tests.builders import session, tool
from tests.check.repair_checks import LOST, Records, at, broken, line_of, talk, told

from steno.check.checkup import check
from steno.check.record_graph import RecordGraph
from steno.check.repair.chain_repairs import repair_chain, repair_leaf
from steno.check.repair.edits import ASIDE_TYPE, EditPlan
from steno.check.repair.repair_job import repair, repair_bytes, stages_for
from steno.format.encode import encode_line
from steno.format.source import BytesSource
from steno.session.resume.clients import LATEST
from steno.session.resume.replay import as_resumed, resumed_chain
from steno.session.transcript import load

# The chain


@pytest.mark.parametrize("number", range(1, 8))
def test_a_lost_parent_is_bridged_to_what_the_client_takes(number: int) -> None:
    made = talk()
    damaged = made.records()
    at(damaged, number)["parentUuid"] = LOST
    data = b"".join(encode_line(record) for record in damaged)
    chain = resumed_chain(load(BytesSource(data)), LATEST) or []
    names = [node.uuid for node in chain]
    place = names.index(at(damaged, number)["uuid"])
    records, done = broken(made, lambda records: at(records, number).update(parentUuid=LOST))
    assert done.edits[0].finding == "chain.dangling"
    assert place > 0
    assert at(records, number)["parentUuid"] == names[place - 1]
    assert records == made.records()


def test_a_sub_agents_lost_parent_is_bridged_inside_the_sub_agent() -> None:
    records = talk().records()
    agent = session(seed="aside").user("Look.").assistant(tool("Bash", command="ls"))
    agent.result("b.py").assistant("Seen.").user("More?")
    aside = [{**each, "isSidechain": True, "agentId": "a1"} for each in agent.records()]
    names = {each["uuid"]: f"{n:08x}-0000-4000-8000-000000000000" for n, each in enumerate(aside)}
    for each in aside:
        each["uuid"], each["parentUuid"] = names[each["uuid"]], names.get(each["parentUuid"])
    aside[4]["parentUuid"] = LOST
    done = repair_bytes(b"".join(encode_line(each) for each in [*records, *aside]))
    (edit,) = done.edits
    assert edit.changes[0].after == aside[3]["uuid"]


def test_messages_below_a_record_that_begins_no_conversation_are_linked_to_what_is_before() -> None:
    """A state record that got an id is no beginning: what hangs on it is out of reach."""
    state = {"type": "last-prompt", "uuid": LOST, "parentUuid": None, "lastPrompt": "x"}

    def hang(records: Records) -> None:
        answer, prompt, later = (at(records, number) for number in (3, 4, 6))
        place = records.index(prompt)
        records.insert(place, {**state, "sessionId": records[0]["sessionId"]})
        prompt["parentUuid"], later["parentUuid"] = LOST, answer["uuid"]

    records, done = broken(talk(), hang)
    (linked,) = (record for record in records if record.get("uuid") == LOST)
    assert told(done) == [("chain.unreachable", "change", records.index(linked) + 1)]
    assert linked["parentUuid"] == at(records, 3)["uuid"]
    found = check(BytesSource(done.data)).findings
    assert [one.id for one in found if one.severity == "error"] == []


def test_a_compaction_that_hangs_on_what_comes_after_it_begins_anew() -> None:
    """Its parent, a result behind it, would count as summed up and leave its call without one."""
    made = session(seed="anew").user("One?").assistant("One.").done().compact("One was asked.")
    made.user("Two?").assistant(tool("Bash", command="ls"), tool("Grep", pattern="x"))
    made.results("a.py", "x").assistant("Two.").done()
    records = made.records()
    (boundary,) = (record for record in records if record.get("subtype") == "compact_boundary")
    result = next(record for record in records if "toolUseResult" in record)
    first = at(records, 1)
    whole = b"".join(encode_line(record) for record in records)
    boundary["parentUuid"], result["parentUuid"] = result["uuid"], first["uuid"]
    done = repair_bytes(b"".join(encode_line(record) for record in records))
    assert done.settled
    assert ("chain.forward", "change") in {(edit.finding, edit.action) for edit in done.edits}
    assert not any(edit.action == "insert" for edit in done.edits)
    assert repair_bytes(done.data).edits == []
    sent = as_resumed(load(BytesSource(done.data)), LATEST, prompt="Go on.")
    assert sent == as_resumed(load(BytesSource(whole)), LATEST, prompt="Go on.")


def test_a_record_that_is_its_own_parent_hangs_on_the_one_before() -> None:
    made = talk()
    records, done = broken(made, lambda records: at(records, 5).update(parentUuid=at(records, 5)["uuid"]))
    assert [edit.finding for edit in done.edits] == ["chain.self-parent"]
    assert records == made.records()


def test_a_ring_is_cut_at_its_first_record() -> None:
    made = talk()
    records, done = broken(made, lambda records: at(records, 4).update(parentUuid=at(records, 6)["uuid"]))
    assert done.edits[0].finding == "chain.cycle"
    assert done.edits[0].line == line_of(made.records(), 4)
    assert records == made.records()


def test_many_lost_parents_in_a_file_with_a_link_forward_are_bridged_in_order() -> None:
    made = session(seed="many")
    for number in range(60):
        made.user(f"{number}?").assistant(f"{number}.")

    def blow(records: Records) -> None:
        for number in range(2, 120, 2):
            at(records, number)["parentUuid"] = LOST
        records.append(records.pop(records.index(at(records, 1))))

    _, done = broken(made, blow)
    assert {edit.finding for edit in done.edits} >= {"chain.dangling"}
    sent = as_resumed(done.transcript, LATEST) or []
    assert len(sent) == 120


def test_a_parent_that_may_stand_on_a_line_too_long_to_read_is_left_alone() -> None:
    records = talk().records()
    lines = [encode_line(record) for record in records]
    hidden = line_of(records, 2) - 1
    lines[hidden] = lines[hidden].replace(b'"a.py"', b'"' + b"x" * 6000 + b'"', 1)
    graph = RecordGraph(load(BytesSource(b"".join(lines)), cap=5000))
    assert [note.id for gap in graph.transcript.gaps for note in gap.damage] == ["line.oversize"]
    stages = stages_for(None, LATEST, datetime.fromtimestamp(0, UTC))
    done = repair(graph, stages, lambda chunks: BytesSource(b"".join(chunks)))
    assert done.edits == []


def test_among_many_sub_agents_each_lost_parent_is_bridged_in_its_own() -> None:
    agents = 300
    records = talk().records()
    for agent in range(agents):
        names: dict[str | None, str] = {}
        for number, record in enumerate(talk().records()):
            names[record["uuid"]] = f"{agent:08x}-0000-4000-8000-{number:012x}"
            above = LOST if number == 2 else names.get(record["parentUuid"])
            own = {"uuid": names[record["uuid"]], "parentUuid": above}
            records.append({**record, **own, "isSidechain": True, "agentId": f"a{agent}"})
    graph = RecordGraph(load(BytesSource(b"".join(map(encode_line, records)))))
    drafts = EditPlan(graph, lambda _: 1)
    repair_chain(drafts, client=LATEST)
    assert len(drafts.edits) == agents
    given = {edit.uuid: edit.changes[0].after for edit in drafts.edits}
    assert all(uuid[:8] == str(parent)[:8] for uuid, parent in given.items())


def test_the_first_root_without_a_parents_field_gets_one() -> None:
    def blow(records: Records) -> None:
        first, later = at(records, 0), at(records, 4)
        first["parentUuid"] = at(records, 5)["uuid"]
        del later["parentUuid"]

    records, done = broken(talk(), blow)
    assert "fields.no-parent" in {edit.finding for edit in done.edits}
    assert "parentUuid" in at(records, 4)
    assert len(as_resumed(done.transcript, LATEST) or []) == len(
        as_resumed(load(BytesSource(talk().bytes())), LATEST) or []
    )


# Compaction


def test_a_summary_kept_as_a_title_is_sent_again() -> None:
    made = session(seed="compact").user("Old?").assistant("Old.").compact("All that was.")
    made.user("New?").assistant("New.")

    def as_title(records: Records) -> None:
        place = next(n for n, each in enumerate(records) if each.get("isCompactSummary"))
        summary = records[place]
        boundary = summary["parentUuid"]
        records[place] = {"type": "summary", "summary": "All that was.", "leafUuid": boundary}
        for each in records:
            if each.get("parentUuid") == summary["uuid"]:
                each["parentUuid"] = None

    records, done = broken(made, as_title)
    assert {edit.finding for edit in done.edits} == {"compaction.title-form"}
    (summary,) = [each for each in records if each.get("isCompactSummary")]
    assert summary["message"] == {"role": "user", "content": "All that was."}
    sent = json.dumps(as_resumed(done.transcript, LATEST))
    assert "All that was." in sent
    assert "Old?" not in sent
    assert done.lost == []


def test_a_boundary_without_a_summary_is_set_aside_and_all_is_sent() -> None:
    made = session(seed="compact").user("Old?").assistant("Old.").compact("All that was.")
    made.user("New?").assistant("New.")

    def without(records: Records) -> None:
        summary = next(each for each in records if each.get("isCompactSummary"))
        for each in records:
            if each.get("parentUuid") == summary["uuid"]:
                each["parentUuid"] = summary["parentUuid"]
        behind = records.index(summary)
        records.remove(summary)
        answer = next(each for each in records[behind:] if each["type"] == "assistant")
        prompt = next(each for each in records if each.get("uuid") == answer["parentUuid"])
        answer["parentUuid"] = prompt["parentUuid"]
        records.remove(prompt)

    records, done = broken(made, without)
    assert {edit.finding for edit in done.edits} == {"compaction.no-summary"}
    (aside,) = [each for each in records if each["type"] == ASIDE_TYPE]
    assert aside["record"]["subtype"] == "compact_boundary"
    assert "Old?" in json.dumps(as_resumed(done.transcript, LATEST))
    assert done.lost == []


def test_many_boundaries_without_a_summary_are_all_set_aside() -> None:
    made = session(seed="many").user("First?").assistant("First.")
    for number in range(20):
        made.compact(f"Summary {number}").user(f"{number}?").assistant(f"{number}.")
    hidden: dict[str | None, str | None] = {}
    records: Records = []
    for record in made.records():
        above = record.get("parentUuid")
        if record.get("isCompactSummary") or (above in hidden and record["type"] == "user"):
            hidden[record["uuid"]] = hidden.get(above, above)
        else:
            records.append({**record, "parentUuid": hidden.get(above, above)})
    done = repair_bytes(b"".join(encode_line(record) for record in records))
    assert done.settled
    sent = json.dumps(as_resumed(done.transcript, LATEST))
    assert all(words in sent for words in ("First?", "First.", *(f"{n}." for n in range(20))))
    assert done.lost == []


# The beginning and the leaf


def test_a_conversation_that_begins_with_an_answer_gets_a_prompt() -> None:
    made = talk()

    def behead(records: Records) -> None:
        at(records, 3)["parentUuid"] = None
        del records[: records.index(at(records, 3))]

    records, done = broken(made, behead)
    assert {edit.finding for edit in done.edits} == {"chain.headless"}
    assert at(records, 0)["type"] == "user"
    assert at(records, 1)["parentUuid"] == at(records, 0)["uuid"]


def test_a_session_goes_on_where_it_stood() -> None:
    made = session(seed="leaf").user("One?").assistant("One.").user("Two?").assistant("Two.")
    stood = made.records()[-1]["uuid"]
    data = made.rewind(1).user("Other?").assistant("Other.").bytes()
    graph = RecordGraph(load(BytesSource(data)))
    stage = partial(repair_leaf, client=LATEST, target=stood)
    done = repair(graph, [stage], lambda chunks: BytesSource(b"".join(chunks)))
    assert told(done) == [("chain.leaf", "insert", data.count(b"\n"))]
    assert done.data.startswith(data)
    assert json.loads(done.data[len(data) :])["leafUuid"] == stood
    chain = resumed_chain(done.transcript, LATEST) or []
    assert chain[-1].uuid == stood


def test_a_leaf_that_the_client_does_not_take_is_named_once() -> None:
    made = session(seed="leaf").user("One?").assistant("One.")
    last = made.records()[-1]
    link = {"type": " ", "uuid": LOST, "parentUuid": last["uuid"], "timestamp": last["timestamp"]}
    note = {
        **{key: last[key] for key in ("sessionId", "timestamp", "cwd", "version")},
        "type": "system",
        "subtype": "local_command",
        "content": "",
        "uuid": f"{LOST[:-4]}beef",
        "parentUuid": LOST,
    }
    data = made.bytes() + encode_line(link) + encode_line(note)
    done = repair_bytes(data)
    assert done.settled
    assert len(done.edits) <= 1
    assert repair_bytes(done.data).edits == []
