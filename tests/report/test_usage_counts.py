"""What counts, in the index and straight from the files alike."""

from pathlib import Path
from typing import Any

import pytest
from tests.report.usage_cases import (
    MODEL,
    SESSION,
    answer,
    both,
    explained,
    figures,
    from_files,
    from_index,
    path_of,
    usage,
    write,
)

from steno.report.usage import usage_from_files
from steno.report.usage import usage_from_files as counting


def test_streamed_lines_of_a_response_count_once_with_their_highest_figure(tmp_path: Path) -> None:
    lines = [answer(figures=usage(out), number=n) for n, out in enumerate((1, 4, 215), 1)]
    write(path_of(tmp_path), *lines)
    assert figures(both(tmp_path)) == (1, 215, 0, 0, 0, 0)


def test_a_first_line_that_is_higher_than_the_last_counts(tmp_path: Path) -> None:
    lines = [answer(figures=usage(out), number=n) for n, out in enumerate((90, 3, 8), 1)]
    write(path_of(tmp_path), *lines)
    report = both(tmp_path)
    assert (report.totals.output, report.totals.responses) == (90, 1)


def test_responses_that_alternate_are_not_mixed_up(tmp_path: Path) -> None:
    keys = ("msg_a", "msg_b", "msg_a", "msg_b", "msg_a")
    lines = [answer(key, usage(10 * n), number=n) for n, key in enumerate(keys, 1)]
    write(path_of(tmp_path), *lines)
    report = both(tmp_path)
    assert (report.totals.output, report.totals.responses) == (90, 2)


def test_a_response_without_request_is_told_by_its_message(tmp_path: Path) -> None:
    lines = [answer("msg_1", requestId=None, number=n) for n in (1, 2)]
    write(path_of(tmp_path), *lines)
    assert both(tmp_path).totals.responses == 1


def test_a_response_without_message_id_is_told_by_its_request_else_by_its_record(tmp_path: Path) -> None:
    write(
        path_of(tmp_path),
        answer(None, requestId="req_1", number=1),
        answer(None, requestId="req_1", number=2),
        answer(None, requestId=None, number=3),
        answer(None, requestId=None, number=4),
        answer(None, requestId=None, uuid=None, number=5),
        answer(None, requestId=None, uuid=None, number=6),
    )
    assert both(tmp_path).totals.responses == 5


def test_responses_without_any_id_at_the_same_place_of_two_files_are_two(tmp_path: Path) -> None:
    nameless: dict[str, Any] = {"requestId": None, "uuid": None}
    for number in (1, 2):
        line = answer(None, usage(number), sessionId=SESSION.format(number), **nameless)
        write(path_of(tmp_path, number), line)
    assert figures(both(tmp_path)) == (2, 3, 0, 0, 0, 0)
    assert len(explained(tmp_path, by="session", keys=False).responses) == 2


def test_copies_in_resumed_and_forked_files_count_once(tmp_path: Path) -> None:
    fork = {"sessionId": SESSION.format(1), "messageUuid": "x"}
    own = answer("msg_2", usage(7), number=3, sessionId=SESSION.format(2))
    write(path_of(tmp_path, 1), answer("msg_1", usage(5)))
    write(path_of(tmp_path, 2), answer("msg_1", usage(5), sessionId=SESSION.format(2)), own)
    write(path_of(tmp_path, 0), answer("msg_1", usage(5), forkedFrom=fork, sessionId=SESSION.format(0)))
    report = both(tmp_path, "session")
    assert {line.names[0]: line.figures.output for line in report.lines} == {SESSION.format(1): 5, SESSION.format(2): 7}


def test_a_copy_with_a_higher_figure_counts(tmp_path: Path) -> None:
    write(path_of(tmp_path, 1), answer("msg_1", usage(5)))
    write(path_of(tmp_path, 2), answer("msg_1", usage(50), sessionId=SESSION.format(2)))
    report = both(tmp_path, "session")
    assert [(line.names[0], line.figures.output) for line in report.lines] == [(SESSION.format(2), 50)]


@pytest.mark.parametrize(
    "below",
    ["../agent-abcdef1.jsonl", "subagents/agent-abcdef1.jsonl", "subagents/workflows/run-1/agent-abcdef1.jsonl"],
)
def test_sub_agents_of_every_layout_count_for_their_session(tmp_path: Path, below: str) -> None:
    write(path_of(tmp_path), answer("msg_1", usage(5)))
    agent: dict[str, Any] = {"isSidechain": True, "agentId": "abcdef1"}
    write(path_of(tmp_path, 1, below).resolve(), answer("msg_2", usage(7), **agent))
    report = both(tmp_path, "session")
    assert [(line.names, line.figures.output) for line in report.lines] == [((SESSION.format(1),), 12)]
    apart = both(tmp_path, "agent")
    assert {line.names[1]: line.figures.output for line in apart.lines} == {"": 5, "abcdef1": 7}


def test_a_call_that_session_and_sub_agent_both_have_counts_once(tmp_path: Path) -> None:
    agent: dict[str, Any] = {"isSidechain": True, "agentId": "abcdef1"}
    write(path_of(tmp_path), answer("msg_1", usage(5)), answer("msg_2", usage(7), number=2))
    write(path_of(tmp_path, 1, "subagents/agent-abcdef1.jsonl"), answer("msg_2", usage(7), number=2, **agent))
    assert both(tmp_path, "session").totals.output == 12


def test_sidechains_inside_the_session_file_count(tmp_path: Path) -> None:
    write(path_of(tmp_path), answer("msg_1", usage(5)), answer("msg_2", usage(7), number=2, isSidechain=True))
    assert both(tmp_path, "agent").totals.output == 12


def test_what_the_client_wrote_itself_does_not_count(tmp_path: Path) -> None:
    write(path_of(tmp_path), answer("msg_1"), answer("msg_2", usage(999), model="<synthetic>"))
    assert figures(both(tmp_path)) == (1, 10, 0, 0, 0, 0)


@pytest.mark.parametrize("others", [(1, 3), (3, 1), (3, 3)])
def test_what_the_client_wrote_under_the_id_of_a_response_does_not_stand_for_it(
    tmp_path: Path, others: tuple[int, int]
) -> None:
    before, after = others
    write(
        path_of(tmp_path),
        answer("msg_1", usage(before), number=1),
        answer("msg_1", usage(9), number=2, model="<synthetic>"),
        answer("msg_1", usage(after), number=3),
        answer("msg_2", usage(7), number=4),
        answer("msg_2", usage(7), number=5, model="<synthetic>"),
    )
    assert figures(both(tmp_path)) == (2, 10, 0, 0, 0, 0)


def test_a_sub_agent_that_is_only_named_later_does_not_count_for_what_came_before(tmp_path: Path) -> None:
    aside: dict[str, Any] = {"isSidechain": True}
    write(
        path_of(tmp_path),
        # What the file is about stands in two records: the second one is among them.
        answer("msg_1", usage(1), number=1, cwd=None, **aside),
        answer("msg_2", usage(2), number=2, agentId="abcdef1", **aside),
        answer("msg_3", usage(4), number=3, **aside),
        answer("msg_4", usage(8), number=4, agentId="abcdef2", **aside),
        answer("msg_5", usage(16), number=5, **aside),
    )
    rows = both(tmp_path, "agent").lines
    assert {line.names[1]: line.figures.output for line in rows} == {"": 1, "abcdef1": 2 + 4 + 16, "abcdef2": 8}


def test_progress_and_results_that_repeat_figures_do_not_count(tmp_path: Path) -> None:
    inner = answer("msg_9", usage(999), number=9)
    result = {
        "type": "user",
        "uuid": "00000000-0000-4000-8000-000000000777",
        "sessionId": SESSION.format(1),
        "timestamp": "2026-11-14T10:00:30.000Z",
        "message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t"}]},
        "toolUseResult": {"status": "completed", "usage": usage(888)},
    }
    progress = {"type": "progress", "data": {"type": "agent_progress", "message": inner}}
    write(path_of(tmp_path), answer("msg_1"), progress, result)
    assert figures(both(tmp_path)) == (1, 10, 0, 0, 0, 0)


def test_figures_that_are_null_or_missing_are_nothing(tmp_path: Path) -> None:
    write(
        path_of(tmp_path),
        answer("msg_1", {"input_tokens": None, "output_tokens": 3, "cache_creation": None}),
        answer("msg_2", {}),
        answer("msg_3", {"output_tokens": 4, "server_tool_use": None}),
    )
    assert figures(both(tmp_path)) == (0, 7, 0, 0, 0, 0)


def test_negative_and_absurd_figures_are_bounded(tmp_path: Path) -> None:
    write(
        path_of(tmp_path),
        answer("msg_1", {"input_tokens": -5, "output_tokens": 10**18}),
        answer("msg_2", {"input_tokens": 10**15, "output_tokens": -1}),
        answer("msg_3", {"input_tokens": 10**400, "output_tokens": 2}),
        answer("msg_4", {"input_tokens": 2, "output_tokens": "many"}),
    )
    report = both(tmp_path)
    assert report.totals.output == 10**12 + 2
    assert report.totals.input <= 2 * 10**12 + 2


def test_both_caches_and_searches_are_told_apart(tmp_path: Path) -> None:
    written = {"ephemeral_5m_input_tokens": 100, "ephemeral_1h_input_tokens": 1000}
    more = {"cache_creation_input_tokens": 1100, "cache_creation": written}
    more |= {"cache_read_input_tokens": 5000, "server_tool_use": {"web_search_requests": 3}}
    write(path_of(tmp_path), answer("msg_1", usage(10, **more)))
    report = both(tmp_path)
    assert figures(report) == (1, 10, 100, 1000, 5000, 3)
    # In micro-dollars: 5 for a token of input, 25 of output, and so on; 10,000 for a search.
    assert report.cost == 5 + 250 + 625 + 10_000 + 2_500 + 30_000


def test_old_clients_have_one_cache(tmp_path: Path) -> None:
    write(path_of(tmp_path), answer("msg_1", usage(10, cache_creation_input_tokens=40)))
    assert figures(both(tmp_path)) == (1, 10, 40, 0, 0, 0)


def test_placeholders_are_marked(tmp_path: Path) -> None:
    write(
        path_of(tmp_path),
        answer("msg_1", usage(1), version="2.1.30", stop_reason=None),
        answer("msg_2", usage(99), version="2.1.30"),
        answer("msg_3", usage(99), version="2.1.60", stop_reason=None),
    )
    assert both(tmp_path).totals.estimated == 1


@pytest.mark.parametrize(
    "damage",
    [
        b'{"type":"assistant","message":{"usage":{"output_tokens":5',
        b'\0\0\0{"type":"assistant","message":{"id":"msg_z","usage":{"output_tokens":5}}}',
        b'{"type":"assistant","message":{"id":"msg_y","usage":{"output_tokens":5}}}{"type":"x"}',
        b'{"type":"assistant","message":{"id":"msg_x","usage": {"output_tokens":5}, "model":7}}',
        b'{"type":"assistant","message":{"id":"msg_w","content":"\xff","usage":{"output_tokens":5}}}',
        b' {"type":"assistant","message":{"id":"msg_v","usage":{"output_tokens":5}}} \r',
        b'{"type":"assistant","timestamp":1763114400,"message":{"id":"m","usage":{"output_tokens":5}}}',
        b'"usage"',
        b'["usage"]',
        b"",
    ],
)
def test_damaged_and_odd_lines_count_the_same_both_ways(tmp_path: Path, damage: bytes) -> None:
    write(path_of(tmp_path), answer("msg_1"), damage, answer("msg_2", number=2))
    write(path_of(tmp_path, 2), damage, answer("msg_3", sessionId=SESSION.format(2)))
    assert both(tmp_path).totals.responses >= 3
    both(tmp_path, "project")


def test_a_last_line_without_end_counts(tmp_path: Path) -> None:
    path = write(path_of(tmp_path), answer("msg_1"), answer("msg_2", number=2))
    path.write_bytes(path.read_bytes()[:-1])
    assert both(tmp_path).totals.responses == 2


def test_a_line_longer_than_the_buffer_counts(tmp_path: Path) -> None:
    long = answer("msg_2", number=2, padding="x" * (9 << 20))
    write(path_of(tmp_path), answer("msg_1"), long, answer("msg_3", number=3))
    assert from_files(tmp_path).totals.responses == 3


def test_a_response_across_two_fillings_of_the_buffer_counts_once(tmp_path: Path) -> None:
    pad = "x" * (3 << 20)
    lines = [answer("msg_1", usage(n), number=n, padding=pad) for n in (1, 2, 3)]
    write(path_of(tmp_path), *lines)
    assert figures(from_files(tmp_path)) == (1, 3, 0, 0, 0, 0)


def test_time_and_project_choose_the_same_both_ways(tmp_path: Path) -> None:
    other = {"cwd": "/home/ada/ledger", "sessionId": SESSION.format(2)}
    write(
        path_of(tmp_path, 1),
        answer("msg_1", timestamp="2026-11-13T23:59:59.999Z"),
        answer("msg_2", timestamp="2026-11-14T00:00:00.000Z"),
        answer("msg_3", timestamp="2026-11-14T12:00:00.000Z"),
        answer("msg_4", timestamp=None),
        answer("msg_5", timestamp="yesterday"),
    )
    write(path_of(tmp_path, 2), answer("msg_6", **other))
    noon, midnight = 1_794_657_600_000, 1_794_614_400_000
    assert both(tmp_path).totals.responses == 6
    assert both(tmp_path, since=midnight).totals.responses == 3
    assert both(tmp_path, since=noon).totals.responses == 1
    assert both(tmp_path, until=midnight).totals.responses == 1
    assert both(tmp_path, project="LEDGER").totals.responses == 1
    assert both(tmp_path, "session", since=midnight, project="tide").totals.responses == 2


def test_blocks_of_five_hours_begin_with_the_hour_of_the_first_response(tmp_path: Path) -> None:
    times = ("10:20", "14:59", "15:00", "21:30")
    lines = [answer(f"msg_{n}", number=n, timestamp=f"2026-11-14T{time}:00.000Z") for n, time in enumerate(times)]
    write(path_of(tmp_path), *lines)
    report = both(tmp_path, "block5h")
    assert [(line.names[0], line.figures.responses) for line in report.lines] == [
        ("2026-11-14 10:00", 2),
        ("2026-11-14 15:00", 1),
        ("2026-11-14 21:00", 1),
    ]


def test_days_and_hours_are_those_of_the_local_clock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import time

    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    time.tzset()
    write(
        path_of(tmp_path),
        answer("msg_1", timestamp="2026-11-14T18:14:59.000Z"),
        answer("msg_2", timestamp="2026-11-14T18:15:00.000Z"),
    )
    from steno.report.usage.usage_query import day_of_slot, hour_of_slot

    for cached in (day_of_slot, hour_of_slot):
        cached.cache_clear()
    try:
        assert [line.names[0] for line in both(tmp_path).lines] == ["2026-11-14", "2026-11-15"]
        hours = [line.names[0] for line in both(tmp_path, "hour").lines]
        assert hours == ["2026-11-14 23:00", "2026-11-15 00:00"]
    finally:
        for cached in (day_of_slot, hour_of_slot):
            cached.cache_clear()


def test_files_that_are_gone_still_count_in_the_index(tmp_path: Path) -> None:
    path = write(path_of(tmp_path, 1), answer("msg_1"))
    write(path_of(tmp_path, 2), answer("msg_2", sessionId=SESSION.format(2)))
    assert both(tmp_path).totals.responses == 2
    path.unlink()
    assert from_index(tmp_path).totals.responses == 2
    assert from_files(tmp_path).totals.responses == 1


def test_tools_share_out_the_responses(tmp_path: Path) -> None:
    used = answer("msg_1", usage(5))
    used["message"]["content"] = [
        {"type": "tool_use", "id": "t1", "name": "Read", "input": {}},
        {"type": "tool_use", "id": "t2", "name": "Bash", "input": {}},
    ]
    write(path_of(tmp_path), used, answer("msg_2", usage(7), number=2))
    report = from_index(tmp_path, "tool")
    assert {line.names[0]: line.figures.output for line in report.lines} == {"Read": 5, "(no tool)": 7}


def test_a_process_that_dies_has_its_share_read_by_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    for number in range(6):
        session = SESSION.format(number)
        lines = [answer(f"msg_{number}", sessionId=session), answer("msg_all", sessionId=session)]
        write(path_of(tmp_path, number), *lines)

    def die(*_: object) -> None:
        os._exit(1)

    before = from_files(tmp_path)
    monkeypatch.setattr(counting, "_run_worker", die)
    assert from_files(tmp_path, processes=3) == before
    assert before.totals.responses == 7


def test_models_without_a_price_are_said_and_not_free(tmp_path: Path) -> None:
    write(path_of(tmp_path), answer("msg_1", model="fern-9"), answer("msg_2", model=MODEL))
    report = both(tmp_path, "model")
    by_model = {line.names[0]: line.figures for line in report.lines}
    assert not by_model["fern-9"].has_cost
    assert report.totals.unpriced == {"fern-9": 11}
    assert report.cost == 255


def test_a_model_with_a_price_of_its_own_for_long_prompts_has_it(tmp_path: Path) -> None:
    short, long = usage(0, cache_read_input_tokens=1000), usage(0, cache_read_input_tokens=150_000)
    model = "claude-haiku-5-5"
    write(path_of(tmp_path), answer("msg_1", short, model=model), answer("msg_2", long, model=model))
    # A cent for a million of the short one, five for one of the long one; and two tokens of input.
    exact = 1000 * 10_000 + 150_000 * 50_000 + 100_000 + 500_000
    assert both(tmp_path).totals.exact == exact
    assert both(tmp_path, "session").totals.exact == exact


def test_a_fast_answer_without_a_price_of_its_own_is_said(tmp_path: Path) -> None:
    write(path_of(tmp_path), answer("msg_1", usage(10, speed="fast")), answer("msg_2", usage(10)))
    assert both(tmp_path).totals.slow_price == 1


def test_prices_by_session_are_those_of_the_day(tmp_path: Path) -> None:
    long = usage(0, cache_read_input_tokens=300_000)
    days = ("2026-03-12T23:59:59.000Z", "2026-03-13T00:00:00.000Z")
    lines = [answer(f"msg_{n}", long, number=n, model="claude-opus-4-6", timestamp=day) for n, day in enumerate(days)]
    write(path_of(tmp_path), *lines)
    assert both(tmp_path, "session").cost == both(tmp_path).cost == 300_000 + 150_000 + 10 + 5


def test_of_equal_lines_the_later_counts(tmp_path: Path) -> None:
    old: dict[str, Any] = {"version": "2.1.30"}
    write(
        path_of(tmp_path),
        answer("msg_1", usage(5), number=1, stop_reason=None, **old),
        answer("msg_2", usage(5), number=2, stop_reason=None, **old),
        answer("msg_1", usage(5), number=3, **old),
        answer("msg_2", usage(5), number=4, stop_reason=None, **old),
    )
    assert both(tmp_path).totals.estimated == 1


def test_of_equal_copies_that_of_the_session_which_began_first_counts(tmp_path: Path) -> None:
    early, late = "2026-11-12T10:00:00.000Z", "2026-11-13T10:00:00.000Z"
    for number, began in ((1, late), (2, early)):
        session = SESSION.format(number)
        own = answer(f"msg_own{number}", number=number, sessionId=session, timestamp=began)
        write(path_of(tmp_path, number), own, answer("msg_1", usage(70), sessionId=session))
    report = both(tmp_path, "session")
    assert {line.names[0]: line.figures.output for line in report.lines} == {
        SESSION.format(1): 10,
        SESSION.format(2): 80,
    }


def test_the_lines_of_a_response_are_counted_too(tmp_path: Path) -> None:
    keys = ("msg_1", "msg_1", "msg_2", "msg_1", "msg_2")
    lines = [answer(key, usage(n), number=n) for n, key in enumerate(keys, 1)]
    path = str(write(path_of(tmp_path), *lines))
    for found in (usage_from_files.FileScanner().scan(path, 1), usage_from_files._scan_by_record(path, 1)):
        assert {key: (row[3], row[10]) for key, row in found.rows.items()} == {"msg_1": (3, 4), "msg_2": (2, 5)}
