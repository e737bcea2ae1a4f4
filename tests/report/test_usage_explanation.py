"""Every total opens to the lines that made it."""

import json
from pathlib import Path

from tests.report.usage_cases import SESSION, answer, both, explained, from_index, path_of, usage, write

from steno.index.database import open_index
from steno.report.pricing import PriceTable
from steno.report.usage.usage_explanation import explain_index
from steno.report.usage.usage_query import UsageQuery
from steno.store.archive.archive import archive_all


def _write_all(root: Path) -> None:
    write(
        path_of(root, 1),
        answer("msg_1", usage(1), number=1),
        answer("msg_1", usage(40), number=2),
        answer("msg_2", usage(3), number=3, model="<synthetic>"),
        answer("msg_3", usage(8), number=4, timestamp="2026-11-13T10:00:00.000Z"),
    )
    write(path_of(root, 2), answer("msg_1", usage(40), number=2, sessionId=SESSION.format(2)))


def test_the_lines_that_count_add_up_to_the_total(tmp_path: Path) -> None:
    _write_all(tmp_path)
    told = explained(tmp_path)
    report = both(tmp_path)
    counted = [line.figures for response in told.responses for line in response.lines if line.verdict == "counted"]
    assert sum(line[1] for line in counted) == report.totals.output == 48
    assert sum(response.cost or 0 for response in told.responses) == report.cost == told.cost
    assert told.totals == report.totals


def test_every_line_is_accounted_for(tmp_path: Path) -> None:
    _write_all(tmp_path)
    told = explained(tmp_path)
    first = next(each for each in told.responses if each.key == "msg_1")
    assert [(line.verdict, line.line, line.figures[1]) for line in first.lines] == [
        ("counted", 2, 40),
        ("merged", 1, 1),
        ("copy", 1, 40),
    ]
    assert first.lines[2].path == str(path_of(tmp_path, 2))
    assert first.lines[2].counts_in == str(path_of(tmp_path, 1))
    assert "started earlier" in first.lines[2].why
    assert [(line.line, line.verdict) for line in told.skipped] == [(3, "skipped")]


def test_what_was_skipped_in_sessions_without_responses_is_told_too(tmp_path: Path) -> None:
    _write_all(tmp_path)
    made_up = answer("msg_9", number=1, model="<synthetic>", sessionId=SESSION.format(3))
    elsewhere = {"timestamp": "2026-10-01T10:00:00.000Z", "uuid": None}
    write(path_of(tmp_path, 3), made_up, b"{}", made_up | elsewhere)
    own, other = str(path_of(tmp_path, 1)), str(path_of(tmp_path, 3))
    told = [(line.path, line.line) for line in explained(tmp_path).skipped]
    assert told == [(own, 3), (other, 1), (other, 3)]
    (line,) = explained(tmp_path, what="2026-11-14").skipped
    assert line.path == own
    with open_index(str(tmp_path)) as index:
        late = explain_index(index.connection, UsageQuery(since=1_794_614_400_000), PriceTable())
        nowhere = explain_index(index.connection, UsageQuery(project="elsewhere"), PriceTable())
    assert [(line.path, line.line) for line in late.skipped] == told[:2]
    assert nowhere.skipped == []


def test_figures_that_were_cut_are_marked(tmp_path: Path) -> None:
    write(
        path_of(tmp_path),
        answer("msg_1", {"input_tokens": 1, "output_tokens": 10**13}, number=1),
        answer("msg_2", {"input_tokens": -1, "output_tokens": 1}, number=2),
        answer("msg_3", {"input_tokens": 10**400, "output_tokens": 1}, number=3),
        answer("msg_4", {"input_tokens": 1, "output_tokens": 10**9}, number=4),
    )
    cut = {each.key: each.lines[0].cut for each in explained(tmp_path).responses}
    assert cut["msg_1"]
    assert cut["msg_2"]
    assert not cut["msg_4"]
    path_of(tmp_path).unlink()
    with open_index(str(tmp_path)) as index:
        told = explain_index(index.connection, UsageQuery(), PriceTable())
    assert next(each for each in told.responses if each.key == "msg_1").lines[0].cut


def test_tools_can_be_explained(tmp_path: Path) -> None:
    used = answer("msg_1", usage(5))
    used["message"]["content"] = [{"type": "tool_use", "id": "t1", "name": "Read", "input": {}}]
    write(path_of(tmp_path), used, answer("msg_2", usage(7), number=2))
    with open_index(str(tmp_path)) as index:
        told = explain_index(index.connection, UsageQuery("tool"), PriceTable())
        one = explain_index(index.connection, UsageQuery("tool"), PriceTable(), "Read")
    assert [(each.key, each.names) for each in told.responses] == [("msg_2", ("(no tool)",)), ("msg_1", ("Read",))]
    assert [each.key for each in one.responses] == ["msg_1"]


def test_an_offset_leads_to_the_line(tmp_path: Path) -> None:
    _write_all(tmp_path)
    for response in explained(tmp_path).responses:
        for line in response.lines:
            raw = Path(line.path).read_bytes()[line.offset :].split(b"\n")[0]
            assert json.loads(raw)["message"]["usage"]["output_tokens"] == line.figures[1]


def test_one_row_or_one_response_can_be_asked_for(tmp_path: Path) -> None:
    _write_all(tmp_path)
    assert [each.key for each in explained(tmp_path, what="2026-11-13").responses] == ["msg_3"]
    assert [each.key for each in explained(tmp_path, what="msg_1").responses] == ["msg_1"]
    assert explained(tmp_path, what="2026-11-1").totals.responses == 2
    assert explained(tmp_path, what="nothing").responses == []
    for by in ("session", "agent", "hour", "block5h", "branch"):
        assert explained(tmp_path, by).totals.output == 48


def test_what_is_gone_is_explained_from_the_index(tmp_path: Path) -> None:
    _write_all(tmp_path)
    report = from_index(tmp_path)
    for number in (1, 2):
        path_of(tmp_path, number).unlink()
    with open_index(str(tmp_path)) as index:
        told = explain_index(index.connection, UsageQuery(), PriceTable())
    assert told.totals == report.totals
    assert {line.line for each in told.responses for line in each.lines} == {0}
    assert "file deleted" in told.responses[0].lines[0].why


def test_it_is_said_why_a_copy_does_not_count(tmp_path: Path) -> None:
    fork = {"sessionId": SESSION.format(1), "messageUuid": "x"}
    write(path_of(tmp_path, 2), answer("msg_1", usage(40), sessionId=SESSION.format(2)))
    write(path_of(tmp_path, 1), answer("msg_1", usage(40), forkedFrom=fork))
    write(path_of(tmp_path, 3), answer("msg_1", usage(4), sessionId=SESSION.format(3)))
    (response,) = explained(tmp_path).responses
    assert response.lines[0].path == str(path_of(tmp_path, 2))
    why = {line.path: line.why for line in response.lines[1:]}
    assert "copy; counted in" in why[str(path_of(tmp_path, 1))]
    assert "higher" in why[str(path_of(tmp_path, 3))]


def test_what_is_only_in_the_archive_is_read_from_there(tmp_path: Path) -> None:
    _write_all(tmp_path)
    from_index(tmp_path)
    before = explained(tmp_path)
    archive_all((str(tmp_path),))
    for number in (1, 2):
        path_of(tmp_path, number).unlink()
    with open_index(str(tmp_path)) as index:
        assert explain_index(index.connection, UsageQuery(), PriceTable()) == before
