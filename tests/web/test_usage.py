"""Usage page and the detail pages of its figures."""

import re
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from html import unescape
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import urlencode

import msgspec
import pytest
from tests.report.usage_cases import MODEL, SESSION, answer, path_of, usage, write
from tests.web.explorer import Explorer, explorer

from steno.cli.main import run
from steno.report.humanize import money
from steno.report.usage.usage_from_index import count_indexed_usage
from steno.report.usage.usage_query import UsageQuery
from steno.report.usage.usage_report import UsageReport, build_report
from steno.web.http_server import preload
from steno.web.routes import usage_overview as usage_page
from steno.web.state.caches import IndexCache
from steno.web.urls import path_tag

_STRIP = re.compile(r"<dt>([^<]*)</dt><dd>(?:<a[^>]*>)?([^<]*)")
_MARK = re.compile(r'<a href="(/usage/[^"]*)"[^>]*><title>([^<]*)</title>')
_TOTAL = re.compile(r'<a class="total" href="(/usage/[^"]*)">([^<]*)</a>')
Command: TypeAlias = Callable[[str, str], dict[str, Any]]
_HOSTILE = "</title><img src=x onerror=alert(1)>"


def _when(number: int) -> str:
    return f"2026-{9 + number % 3:02}-{1 + number % 27:02}T{number % 24:02}:30:00.000Z"


def _line(number: int, **more: Any) -> dict[str, Any]:
    figures = usage(10 + number, cache_read_input_tokens=number * 977, cache_creation_input_tokens=number * 31)
    model = (MODEL, "claude-sonnet-4-5-20250929", "nobody-knows-1")[number % 3]
    given = {"model": model, "number": number % 60, "timestamp": _when(number), **more}
    return answer(f"msg_{number}", figures, **given)


def _lines(first: int, last: int, session: int, **more: Any) -> Iterator[dict[str, Any]]:
    for number in range(first, last):
        name = SESSION.format(session)
        cwd = f"/home/ada/{('tidegauge', 'gravel')[session % 2]}"
        yield _line(number, sessionId=name, cwd=cwd, gitBranch=f"b{number % 4}", **more)


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Generator[tuple[Explorer, Path]]:
    """Sessions with copies, sub-agents, placeholders, no time, no price and hostile names."""
    folder = tmp_path_factory.mktemp("usage")
    root = folder / "root"
    write(path_of(root, 1), *_lines(1, 60, 1))
    write(path_of(root, 2), *_lines(60, 90, 2), *_lines(1, 20, 1, forkedFrom={"sessionId": "x"}))
    write(path_of(root, 3), *_lines(90, 99, 3, version="2.1.20", stop_reason=None))
    write(path_of(root, 4), _line(99, timestamp=None, sessionId=SESSION.format(4)))
    odd = {"model": _HOSTILE, "gitBranch": _HOSTILE, "cwd": f"/home/{_HOSTILE}"}
    write(path_of(root, 5), _line(100, sessionId=SESSION.format(5), **odd))
    task = {"type": "tool_use", "id": "toolu_1", "name": "Task", "input": {"subagent_type": "Wise"}}
    call = _line(101, sessionId=SESSION.format(6))
    call["message"]["content"] = [task]
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "done"}
    told: dict[str, Any] = {"type": "user", "uuid": "u"}
    told |= {"timestamp": _when(101).replace(":30:00", ":30:07")}
    told |= {"sessionId": SESSION.format(6), "toolUseResult": {"agentId": "abcdef1"}}
    told["message"] = {"role": "user", "content": [result]}
    write(path_of(root, 6), call, told)
    aside: dict[str, Any] = {"isSidechain": True, "agentId": "abcdef1"}
    write(path_of(root, 6, "subagents/agent-abcdef1.jsonl"), *_lines(110, 115, 6, **aside))
    with explorer(str(folder / "index"), str(root)) as found:
        yield found, root


@pytest.fixture(params=["demo", "made"])
def shown(request: pytest.FixtureRequest, demo: Explorer) -> tuple[Explorer, str]:
    if request.param == "demo":
        return demo, demo.house.home.roots[0]
    found, root = request.getfixturevalue("corpus")
    return found, str(root)


def _report(of: Explorer, by: Any) -> UsageReport:
    with of.house.index() as index:
        cells = count_indexed_usage(index.connection, UsageQuery(by), of.house.prices)
    return build_report(cells, by, of.house.prices)


@pytest.fixture
def command(capsysbinary: pytest.CaptureFixture[bytes]) -> Command:
    """Ask `steno usage` for the same, by something."""

    def call(root: str, by: str) -> dict[str, Any]:
        capsysbinary.readouterr()
        with pytest.raises(SystemExit) as left:
            run(["usage", "--root", root, "--by", by, "--json"])
        assert not left.value.code
        return msgspec.json.decode(capsysbinary.readouterr().out)

    return call


def _strip(text: str) -> dict[str, str]:
    return {unescape(name): unescape(value) for name, value in _STRIP.findall(text)}


def _bare(amount: str) -> str:
    return unescape(amount).strip("≈+? ").removesuffix(" so far")


def _cost(line: dict[str, Any]) -> str:
    micro = line["cost_micro_usd"]
    if micro is None:
        return "?"
    about = "≈" if line["estimated_responses"] else ""
    return f"{about}{money(micro)}{'+?' if line['unpriced_tokens'] else ''}"


def test_the_totals_are_those_of_the_report_and_of_the_command(shown: tuple[Explorer, str], command: Command) -> None:
    of, root = shown
    strip = _strip(of.get("/usage?range=all").text)
    report, told = _report(of, "day"), command(root, "day")["totals"]
    assert told["cost_micro_usd"] == report.cost > 0
    assert strip["Cost"] == _cost(told)
    behind = of.get("/usage/lines").text
    strip = _strip(behind)
    assert strip["Cost"] == _cost(told)
    assert strip["Responses"] == f"{told['responses']:,}"
    numbers = re.findall(r"<dd>([\d,]+)</dd>", behind)
    for name in ("input_tokens", "cache_creation_input_tokens"):
        assert f"{told[name]:,}" in numbers


@pytest.mark.parametrize(("by", "title"), [("model", "By model"), ("project", "By project"), ("branch", "By branch")])
def test_each_table_has_the_rows_of_the_command(
    shown: tuple[Explorer, str], command: Command, by: str, title: str
) -> None:
    of, root = shown
    name = {"model": "models", "project": "projects", "branch": "branches"}[by]
    text = of.get(f"/usage?range=all&open={name}").text
    table = text.partition(f">{title}</h2>")[2].partition("</table>")[0]
    costs = [unescape(cost) for _, cost in _TOTAL.findall(table)]
    assert costs == [_cost(row) for row in command(root, by)["rows"]]


def test_sessions_are_those_of_the_command(shown: tuple[Explorer, str], command: Command) -> None:
    of, root = shown
    rows = command(root, "session")["rows"]
    assert _strip(of.get("/usage?range=all").text)["Sessions"] == str(len(rows))
    found = _TOTAL.findall(of.get("/usage/sessions").text)
    assert [unescape(cost) for _, cost in found] == [_cost(row) for row in rows]


def test_tools_are_those_of_the_command(demo: Explorer, command: Command) -> None:
    rows = command(demo.house.home.roots[0], "tool")["rows"]
    wanted = {row["tool"]: (row["calls"], row["failed"]) for row in rows if row["calls"]}
    text = demo.get("/usage?range=all&open=tools").text
    links = re.findall(r'href="(/usage/calls[^"]*)">([\d,]+)<', text)
    assert len(links) == len(wanted)
    for href, number in links:
        name = re.search(r"tool=([^&]*)", href)
        assert name is not None
        calls, failed = wanted[name[1]]
        assert int(number) == calls
        behind = demo.get(unescape(href)).text
        assert behind.count("<tr data-stop>") == min(calls, 50)
        only = demo.get(f"{unescape(href)}&failed=1").text
        assert only.count('<span class="bad">failed</span>') == failed


@pytest.mark.parametrize("way", ["/usage?range=all", "/usage?range=all&by=project", "/usage"])
def test_every_mark_and_figure_is_what_it_opens_to(shown: tuple[Explorer, str], way: str) -> None:
    of, _ = shown
    # What was saved and what is to come is no sum of what it opens to.
    text = of.get(way).text.partition("</dl>")[2]
    doors = [(href, title.rpartition(": ")[2]) for href, title in _MARK.findall(text)]
    doors += _TOTAL.findall(text)
    opened: dict[str, dict[str, str]] = {}
    compared = 0
    for href, figure in doors:
        if not href.startswith("/usage/lines"):
            continue
        if href not in opened:
            answer = of.get(unescape(href))
            assert answer.status == 200
            opened[href] = _strip(answer.text)
        if "$" in figure:
            compared += 1
            assert _bare(opened[href]["Cost"]) == _bare(figure)
    assert compared > 20


def test_squares_of_the_year_hold_every_response_that_has_a_day(demo: Explorer) -> None:
    text = demo.get("/usage?range=all").text
    year = text.partition("chart heat")[2].partition("</svg>")[0]
    days = [unescape(href) for href, _ in _MARK.findall(year)]
    numbers = [int(_strip(demo.get(href).text)["Responses"]) for href in days]
    assert sum(numbers) == _report(demo, "day").totals.responses
    assert len(days) == len(_report(demo, "day").lines)


def test_blocks_are_those_of_the_command_and_each_holds_its_responses(demo: Explorer, command: Command) -> None:
    text = demo.get("/usage").text
    chart = text.partition("chart blocks")[2].partition("</svg>")[0]
    found = [(unescape(href), title) for href, title in _MARK.findall(chart)]
    rows = {row["block5h"]: row for row in command(demo.house.home.roots[0], "block5h")["rows"]}
    assert found
    for href, title in found:
        name = unescape(href).partition("block=")[2].replace("%3A", ":").replace("T", " ")
        assert unescape(title).rpartition(": ")[2].removesuffix(" so far") == _cost(rows[name])
        assert _strip(demo.get(href).text)["Responses"] == str(rows[name]["responses"])


def test_the_current_block_says_when_it_ends_and_how_fast_it_burns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "root"
    write(path_of(root, 1), answer("msg_1", usage(100_000), timestamp="2026-11-14T10:20:00.000Z"))
    with explorer(str(tmp_path / "index"), str(root)) as of:
        now = 1_794_657_600.0  # 2026-11-14T12:00:00Z
        monkeypatch.setattr(of.house, "now", lambda: now)
        text = of.get("/usage").text
        assert "current block: $2.50, $1.25/h, forecast $6.25, ends 15:00" in text
        monkeypatch.setattr(of.house, "now", lambda: now + 4 * 3600)
        assert "no active block" in of.get("/usage").text


def test_lines_go_on_page_by_page_and_hold_each_response_once(corpus: tuple[Explorer, Path]) -> None:
    of, _ = corpus
    keys: Counter[str] = Counter()
    way: str | None = "/usage/lines"
    while way:
        text = of.get(way).text
        keys.update(re.findall(r'aria-label="Records of (msg_\d+)"', text))
        onward = re.search(r'<a class="btn" href="([^"]*)" rel="next"', text)
        way = unescape(onward[1]) if onward else None
    assert len(keys) == _report(of, "day").totals.responses
    assert set(keys.values()) == {1}


def test_a_line_leads_to_its_place_in_the_session_and_to_the_record(corpus: tuple[Explorer, Path]) -> None:
    of, root = corpus
    text = of.get(f"/usage/lines?session={SESSION.format(6)}").text
    agent = re.search(rf'href="/s/{SESSION.format(6)}/a/abcdef1\?at=(\d+)"', text)
    assert agent is not None
    raw = path_of(root, 6, "subagents/agent-abcdef1.jsonl").read_bytes()
    assert raw[int(agent[1]) :].startswith(b"{")
    assert f"/s/{SESSION.format(6)}/record/0" in text


def test_every_line_that_is_listed_can_be_opened(demo: Explorer) -> None:
    text = demo.get("/usage/lines").text
    ways = {unescape(href) for href in re.findall(r'href="(/s/[^"]*)"', text)}
    assert len(ways) > 50
    assert {way: demo.get(way).status for way in sorted(ways)} == dict.fromkeys(sorted(ways), 200)


def test_a_copy_says_that_it_does_not_count_and_why(corpus: tuple[Explorer, Path]) -> None:
    of, _ = corpus
    text = of.get("/usage/lines?" + urlencode({"session": SESSION.format(1), "page": 2})).text
    assert "copy; counted in" in text


def test_what_has_no_price_and_what_is_a_placeholder_is_said(corpus: tuple[Explorer, Path]) -> None:
    text = unescape(corpus[0].get("/usage?range=all").text)
    assert "No price known for nobody-knows-1" in text
    assert re.search(r"\d+ responses with under-reported output tokens", text)
    assert "1 response without a time" in text
    assert "Each response is counted once" in text


def test_hostile_names_stay_text(corpus: tuple[Explorer, Path]) -> None:
    of, _ = corpus
    for way in (
        "/usage?range=all",
        "/usage?range=all&by=project&open=branches",
        "/usage/lines",
        "/usage/lines?" + urlencode({"model": _HOSTILE}),
        "/usage/calls?" + urlencode({"tool": _HOSTILE}),
        "/usage/sessions",
    ):
        answer = of.get(way)
        assert answer.status == 200
        assert "<img" not in answer.text


def test_kinds_of_sub_agents_are_named(corpus: tuple[Explorer, Path]) -> None:
    of, _ = corpus
    text = of.get("/usage?range=all").text
    table = text.partition(">By sub-agent type</h2>")[2].partition("</table>")[0]
    assert "Wise" in table
    behind = of.get("/usage/lines?agent=kind%3AWise").text
    assert _strip(behind)["Responses"] == "5"


@pytest.mark.parametrize(
    "way",
    [
        "/usage?to=yesterday",
        "/usage?to=0001-01-01",
        "/usage/lines?from=2026-13-01",
        "/usage/lines?page=0",
        "/usage/lines?page=x",
        "/usage/lines?page=99999999999999999999",
        "/usage/lines?block=2026-11-14T25:00",
        "/usage/sessions?least=-1",
        "/usage/calls",
    ],
)
def test_what_means_nothing_is_refused(demo: Explorer, way: str) -> None:
    assert demo.get(way).status == 400


@pytest.mark.parametrize("way", ["/usage?range=nonsense&by=x&open=y", "/usage?to=9998-01-01", "/usage?to=1999-05-05"])
def test_what_is_merely_odd_is_answered(demo: Explorer, way: str) -> None:
    assert demo.get(way).status == 200


def test_a_project_that_is_not_there_is_said_so(demo: Explorer) -> None:
    assert demo.get(f"/usage/lines?project={path_tag('/nowhere')}").status == 404


def test_what_is_written_meanwhile_counts_at_the_next_look(tmp_path: Path) -> None:
    root = tmp_path / "root"
    write(path_of(root, 1), answer("msg_1"))
    with explorer(str(tmp_path / "index"), str(root)) as of:
        assert _strip(of.get("/usage/lines").text)["Responses"] == "1"
        assert _strip(of.get("/usage?range=all").text)["Sessions"] == "1"
        write(path_of(root, 2), answer("msg_2", sessionId=SESSION.format(2)))
        of.refresh()
        assert _strip(of.get("/usage?range=all").text)["Sessions"] == "2"


def test_the_table_for_spreadsheets_has_the_same_days(demo: Explorer) -> None:
    answer = demo.get("/usage/table.csv?range=all")
    assert answer.headers["content-type"].startswith("text/csv")
    days = [line.partition(",")[0] for line in answer.text.splitlines()[1:]]
    assert days == [line.names[0] for line in _report(demo, "day").lines]


def test_nothing_at_all_is_said_in_a_sentence(tmp_path: Path) -> None:
    with explorer(str(tmp_path / "index"), str(tmp_path / "none")) as of:
        answer = of.get("/usage")
    assert answer.status == 200
    assert "No usage yet." in answer.text


def test_what_is_opened_first_is_made_ahead(demo: Explorer, monkeypatch: pytest.MonkeyPatch) -> None:
    demo.house.index_cache = IndexCache()
    preload(demo.house)
    monkeypatch.setattr(usage_page, "_values", None)
    assert demo.get("/usage").status == 200
