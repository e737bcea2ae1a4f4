"""What is behind a figure, some responses at a time, and the reports of an overview."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.report.made import SESSION, answer, path_of, usage, write

from steno.index.opened import open_index
from steno.report.prices import Prices
from steno.report.usage.behind import Behind, responses_behind, total_behind
from steno.report.usage.cells import By
from steno.report.usage.explain import explain_index
from steno.report.usage.indexed import count_index
from steno.report.usage.overview import (
    daily_of,
    kinds_of,
    parts_of,
    projected,
    reports_of,
    saved_in,
    stack_of,
    within,
)
from steno.report.usage.tools import tools_in
from steno.report.usage.totals import report_of
from steno.report.usage.wanted import Wanted

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
        whole = explain_index(index.connection, Wanted("day"), Prices())
        some = []
        while part := responses_behind(
            index.connection, Behind(), Prices(), limit=size, start=len(some)
        )[0]:
            some += part
        total = total_behind(index.connection, Behind(), Prices())
    assert {each.key: each.lines for each in some} == {
        each.key: each.lines for each in whole.responses
    }
    assert [each.time for each in some] == sorted((each.time for each in some), reverse=True)
    assert (total.totals, total.cost) == (whole.totals, whole.cost)


def test_a_file_that_is_gone_is_told_from_the_index(root: Path) -> None:
    with open_index(str(root)) as index:
        path_of(root, 1).unlink()
        behind = Behind(session=SESSION.format(1))
        found, _ = responses_behind(index.connection, behind, Prices(), limit=9)
    gone = [each.lines[0] for each in found if each.key == "msg_1"]
    assert [(line.line, line.verdict) for line in gone] == [(0, "counted")]


@pytest.mark.parametrize(
    ("behind", "keys"),
    [
        (
            Behind(branch="main", since=_NOON, until=_NOON + _DAY),
            {"msg_1", "msg_2", "msg_4", "msg_5"},
        ),
        (Behind(since=_NOON + _DAY), {"msg_3"}),
        (Behind(session=SESSION.format(2)), {"msg_4"}),
        (Behind(kind=("", "")), {"msg_1", "msg_2", "msg_3", "msg_4"}),
        (Behind(kind=("agent", "")), {"msg_5"}),
        (Behind(kind=("agent", "Wise")), set[str]()),
        (Behind(undated=True), set[str]()),
        (Behind(model="none"), set[str]()),
    ],
)
def test_only_what_is_asked_for_is_behind(root: Path, behind: Behind, keys: set[str]) -> None:
    with open_index(str(root)) as index:
        found, _ = responses_behind(index.connection, behind, Prices(), limit=9)
        total = total_behind(index.connection, behind, Prices())
    assert {each.key for each in found} == keys
    assert total.totals.responses == len(keys)


@pytest.mark.parametrize("since", [None, _NOON - _NOON % _DAY + 2 * _DAY])
def test_the_reports_of_an_overview_are_those_that_are_made_one_by_one(
    root: Path, since: int | None
) -> None:
    prices = Prices()
    with open_index(str(root)) as index:
        cells = within(daily_of(index.connection, prices), Wanted(since=since))
        made = reports_of(cells, prices)
        parts = parts_of(index.connection, Wanted(since=since), prices)

        def single(by: By) -> Any:
            return report_of(
                count_index(index.connection, Wanted(by, since=since), prices), by, prices
            )

        assert made == {by: single(by) for by in ("day", "model", "project")}
        assert (parts.sessions, parts.branches) == (single("session"), single("branch"))
        assert parts.kinds.totals == single("agent").totals


def test_a_stack_adds_up_to_its_report_and_has_no_gaps(root: Path) -> None:
    prices = Prices()
    with open_index(str(root)) as index:
        cells = daily_of(index.connection, prices)
    days = [f"2026-11-{number}" for number in range(12, 17)]
    stack = stack_of(cells, prices, "model", days, "day")
    assert stack.names == days
    assert sum(sum(costs) for _, costs in stack.series) == reports_of(cells, prices)["day"].cost


def test_what_is_left_over_is_one_series(root: Path) -> None:
    many = [
        answer(f"msg_{k}", number=k, cwd=f"/p{k}", sessionId=SESSION.format(k)) for k in range(9)
    ]
    for number, line in enumerate(many, 10):
        write(path_of(root, number), line)
    prices = Prices()
    with open_index(str(root)) as index:
        cells = daily_of(index.connection, prices)
    stack = stack_of(cells, prices, "project", ["2026-11-14", "2026-11-15"], "day", most=3)
    assert [name is None for name, _ in stack.series] == [False, False, False, True]
    assert sum(sum(costs) for _, costs in stack.series) == reports_of(cells, prices)["day"].cost


def test_the_cache_saves_what_reading_it_costs_less_and_writing_it_costs_more(
    tmp_path: Path,
) -> None:
    figures = usage(
        0,
        cache_read_input_tokens=1_000_000,
        cache_creation={"ephemeral_5m_input_tokens": 1_000_000, "ephemeral_1h_input_tokens": 0},
    )
    write(path_of(tmp_path, 1), answer("msg_1", figures))
    prices = Prices()
    with open_index(str(tmp_path)) as index:
        cells = daily_of(index.connection, prices)
    # Opus 4.5: $5 fresh, $0.50 from the cache, $6.25 into it.
    assert saved_in(cells, prices) == 4_500_000 - 1_250_000


def test_a_month_goes_on_as_the_last_seven_whole_days_did() -> None:
    days = {"2026-10-31": 70, "2026-11-01": 7, "2026-11-09": 70, "2026-11-15": 1000}
    assert projected(days, "2026-11-15", 15) == (1077, 1077 + 15 * 10)
    assert projected({}, "2026-11-15", 15) == (0, 0)


def test_tools_have_their_middle_and_what_nearly_all_stay_below(tmp_path: Path) -> None:
    lines: list[dict[str, Any]] = []
    for number in range(20):
        call = answer(f"msg_{number}", number=number)
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": "Bash", "input": {}}
        call["message"]["content"] = [block]
        result = {"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": "x"}
        result |= {"is_error": number < 3}
        told: dict[str, Any] = {
            "type": "user",
            "uuid": f"u{number}",
            "sessionId": SESSION.format(1),
        }
        told["timestamp"] = f"2026-11-14T10:{number + 1:02}:{number:02}.000Z"
        told["message"] = {"role": "user", "content": [result]}
        lines += [call, told]
    write(path_of(tmp_path, 1), *lines)
    write(path_of(tmp_path, 2), *lines)
    with open_index(str(tmp_path)) as index:
        (tool,) = tools_in(index.connection, Wanted())
        assert tools_in(index.connection, Wanted(since=_NOON + 30 * _DAY)) == []
    assert (tool.name, tool.calls, tool.failed) == ("Bash", 20, 3)
    assert (tool.median, tool.high) == (630.0, 19 * 60.0)


def test_the_kind_of_a_sub_agent_is_known_however_late_its_result_is_read(tmp_path: Path) -> None:
    call = answer("msg_1")
    asked = {"subagent_type": "Wise"}
    call["message"]["content"] = [{"type": "tool_use", "id": "t1", "name": "Task", "input": asked}]
    path = write(path_of(tmp_path, 1), call)
    with open_index(str(tmp_path)) as index:
        assert kinds_of(index.connection) == {}
    result = {"type": "tool_result", "tool_use_id": "t1", "content": "done"}
    told: dict[str, Any] = {"type": "user", "uuid": "u", "sessionId": SESSION.format(1)}
    told |= {"toolUseResult": {"agentId": "abcdef1"}, "message": {"content": [result]}}
    with path.open("ab") as file:
        file.write(json.dumps(told).encode() + b"\n")
    with open_index(str(tmp_path)) as index:
        assert kinds_of(index.connection) == {"abcdef1": "Wise"}
