"""What is behind a figure, some responses at a time, and the reports of an overview."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.report.usage_cases import SESSION, answer, path_of, usage, write

from steno.index.database import open_index
from steno.report.pricing import PriceTable
from steno.report.usage.usage_explanation import ResponseFilter, explain_index, find_responses, total_of_responses
from steno.report.usage.usage_from_index import count_indexed_usage
from steno.report.usage.usage_overview import (
    cache_savings,
    cost_chart,
    daily_usage,
    month_forecast,
    reports_by_grouping,
    subagent_types,
    tool_usage,
    usage_breakdown,
    usage_in_range,
)
from steno.report.usage.usage_query import Grouping, UsageQuery
from steno.report.usage.usage_report import build_report

_DAY = 86_400_000
_NOON = 1_794_571_200_000  # 2026-11-13T12:00:00Z


def _far(number: int) -> dict[str, Any]:
    return {"type": "user", "uuid": f"far-{number}", "message": {"content": "x" * 300_000}}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Responses whose lines stand together, far apart, in copies, and in a sub-agent's file."""
    near = [answer("msg_1", usage(4), number=1), answer("msg_1", usage(40), number=2)]
    apart = [answer("msg_2", usage(7), number=3), *map(_far, range(3)), answer("msg_2", number=4)]
    late = [answer("msg_3", usage(9), number=5, timestamp="2026-11-15T09:00:00.000Z")]
    write(path_of(tmp_path, 1), *near, *apart, *late)
    write(path_of(tmp_path, 2), answer("msg_4", sessionId=SESSION.format(2)), *near)
    aside: dict[str, Any] = {"isSidechain": True, "agentId": "abcdef1", "number": 6}
    write(path_of(tmp_path, 1, "subagents/agent-abcdef1.jsonl"), answer("msg_5", **aside))
    return tmp_path


@pytest.mark.parametrize("size", [1, 2, 100])
def test_pages_hold_what_the_whole_explanation_holds(root: Path, size: int) -> None:
    with open_index(str(root)) as index:
        whole = explain_index(index.connection, UsageQuery("day"), PriceTable())
        some = []
        while part := find_responses(index.connection, ResponseFilter(), PriceTable(), limit=size, offset=len(some))[0]:
            some += part
        total = total_of_responses(index.connection, ResponseFilter(), PriceTable())
    assert {each.key: each.lines for each in some} == {each.key: each.lines for each in whole.responses}
    assert [each.time for each in some] == sorted((each.time for each in some), reverse=True)
    assert (total.totals, total.cost) == (whole.totals, whole.cost)


def test_a_file_that_is_gone_is_told_from_the_index(root: Path) -> None:
    with open_index(str(root)) as index:
        path_of(root, 1).unlink()
        behind = ResponseFilter(session=SESSION.format(1))
        found, _ = find_responses(index.connection, behind, PriceTable(), limit=9)
    gone = [each.lines[0] for each in found if each.key == "msg_1"]
    assert [(line.line, line.verdict) for line in gone] == [(0, "counted")]


@pytest.mark.parametrize(
    ("behind", "keys"),
    [
        (ResponseFilter(branch="main", since=_NOON, until=_NOON + _DAY), {"msg_1", "msg_2", "msg_4", "msg_5"}),
        (ResponseFilter(since=_NOON + _DAY), {"msg_3"}),
        (ResponseFilter(session=SESSION.format(2)), {"msg_4"}),
        (ResponseFilter(kind=("", "")), {"msg_1", "msg_2", "msg_3", "msg_4"}),
        (ResponseFilter(kind=("agent", "")), {"msg_5"}),
        (ResponseFilter(kind=("agent", "Wise")), set[str]()),
        (ResponseFilter(undated=True), set[str]()),
        (ResponseFilter(model="none"), set[str]()),
    ],
)
def test_only_what_is_asked_for_is_behind(root: Path, behind: ResponseFilter, keys: set[str]) -> None:
    with open_index(str(root)) as index:
        found, _ = find_responses(index.connection, behind, PriceTable(), limit=9)
        total = total_of_responses(index.connection, behind, PriceTable())
    assert {each.key for each in found} == keys
    assert total.totals.responses == len(keys)


@pytest.mark.parametrize("since", [None, _NOON - _NOON % _DAY + 2 * _DAY])
def test_the_reports_of_an_overview_are_those_that_are_made_one_by_one(root: Path, since: int | None) -> None:
    prices = PriceTable()
    with open_index(str(root)) as index:
        cells = usage_in_range(daily_usage(index.connection, prices), UsageQuery(since=since))
        made = reports_by_grouping(cells, prices)
        parts = usage_breakdown(index.connection, UsageQuery(since=since), prices)

        def single(by: Grouping) -> Any:
            return build_report(count_indexed_usage(index.connection, UsageQuery(by, since=since), prices), by, prices)

        assert made == {by: single(by) for by in ("day", "model", "project")}
        assert (parts.sessions, parts.branches) == (single("session"), single("branch"))
        assert parts.kinds.totals == single("agent").totals


def test_a_stack_adds_up_to_its_report_and_has_no_gaps(root: Path) -> None:
    prices = PriceTable()
    with open_index(str(root)) as index:
        cells = daily_usage(index.connection, prices)
    days = [f"2026-11-{number}" for number in range(12, 17)]
    stack = cost_chart(cells, prices, "model", days, "day")
    assert stack.names == days
    assert sum(sum(costs) for _, costs in stack.series) == reports_by_grouping(cells, prices)["day"].cost


def test_what_is_left_over_is_one_series(root: Path) -> None:
    many = [answer(f"msg_{k}", number=k, cwd=f"/p{k}", sessionId=SESSION.format(k)) for k in range(9)]
    for number, line in enumerate(many, 10):
        write(path_of(root, number), line)
    prices = PriceTable()
    with open_index(str(root)) as index:
        cells = daily_usage(index.connection, prices)
    stack = cost_chart(cells, prices, "project", ["2026-11-14", "2026-11-15"], "day", max_series=3)
    assert [name is None for name, _ in stack.series] == [False, False, False, True]
    assert sum(sum(costs) for _, costs in stack.series) == reports_by_grouping(cells, prices)["day"].cost


def test_the_cache_saves_what_reading_it_costs_less_and_writing_it_costs_more(tmp_path: Path) -> None:
    figures = usage(
        0,
        cache_read_input_tokens=1_000_000,
        cache_creation={"ephemeral_5m_input_tokens": 1_000_000, "ephemeral_1h_input_tokens": 0},
    )
    write(path_of(tmp_path, 1), answer("msg_1", figures))
    prices = PriceTable()
    with open_index(str(tmp_path)) as index:
        cells = daily_usage(index.connection, prices)
    # Opus 4.5: $5 fresh, $0.50 from the cache, $6.25 into it.
    assert cache_savings(cells, prices) == 4_500_000 - 1_250_000


def test_a_month_goes_on_as_the_last_seven_whole_days_did() -> None:
    days = {"2026-10-31": 70, "2026-11-01": 7, "2026-11-09": 70, "2026-11-15": 1000}
    assert month_forecast(days, "2026-11-15", 15) == (1077, 1077 + 15 * 10)
    assert month_forecast({}, "2026-11-15", 15) == (0, 0)


def test_tools_have_their_middle_and_what_nearly_all_stay_below(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = []
    for number in range(20):
        call = answer(f"msg_{number}", number=number)
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": {}}
        call["message"]["content"] = [block]
        result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": "x"}
        result |= {"is_error": number < 3}
        told: dict[str, Any] = {"type": "user", "uuid": f"u{number}", "sessionId": SESSION.format(1)}
        told["timestamp"] = f"2026-11-14T10:{number + 1:02}:{number:02}.000Z"
        told["message"] = {"role": "user", "content": [result]}
        lines += [call, told]
    write(path_of(tmp_path, 1), *lines)
    write(path_of(tmp_path, 2), *lines)
    with open_index(str(tmp_path)) as index:
        (tool,) = tool_usage(index.connection, UsageQuery())
        assert tool_usage(index.connection, UsageQuery(since=_NOON + 30 * _DAY)) == []
    assert (tool.name, tool.calls, tool.failed) == ("Bash", 20, 3)
    assert (tool.median, tool.high) == (630.0, 19 * 60.0)


def test_the_kind_of_a_sub_agent_is_known_however_late_its_result_is_read(tmp_path: Path) -> None:
    call = answer("msg_1")
    asked = {"subagent_type": "Wise"}
    call["message"]["content"] = [{"type": "tool_use", "id": "t1", "name": "Task", "input": asked}]
    path = write(path_of(tmp_path, 1), call)
    with open_index(str(tmp_path)) as index:
        assert subagent_types(index.connection) == {}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "done"}
    told: dict[str, Any] = {"type": "user", "uuid": "u", "sessionId": SESSION.format(1)}
    told |= {"toolUseResult": {"agentId": "abcdef1"}, "message": {"content": [result]}}
    with path.open("ab") as file:
        file.write(json.dumps(told).encode() + b"\n")
    with open_index(str(tmp_path)) as index:
        assert subagent_types(index.connection) == {"abcdef1": "Wise"}
