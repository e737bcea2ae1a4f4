"""Made-up lines with figures, and both ways of counting them."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from steno.index.database import open_index
from steno.report.pricing import PriceTable
from steno.report.usage.usage_explanation import UsageExplanation, explain_files, explain_index
from steno.report.usage.usage_from_files import count_files_usage
from steno.report.usage.usage_from_index import count_indexed_usage
from steno.report.usage.usage_query import Grouping, UsageQuery, with_clock_names
from steno.report.usage.usage_report import UsageReport, build_report

if TYPE_CHECKING:
    from steno.store.discovery import Problem

MODEL = "claude-opus-4-5-20251101"
SESSION = "11111111-2222-4333-8444-{:012}"


def usage(output: int = 10, **more: Any) -> dict[str, Any]:
    """Return the figures of a line."""
    return {"input_tokens": 1, "output_tokens": output} | more


def answer(key: str | None = "msg_1", figures: Any = None, **more: Any) -> dict[str, Any]:
    """Return a line of a response."""
    message = {"model": more.pop("model", MODEL), "role": "assistant", "content": []}
    if key is not None:
        message["id"] = key
    message["stop_reason"] = more.pop("stop_reason", "end_turn")
    message["usage"] = usage() if figures is None else figures
    number = more.pop("number", 1)
    line: dict[str, Any] = {
        "parentUuid": None,
        "isSidechain": False,
        "cwd": "/home/ada/tidegauge",
        "sessionId": SESSION.format(1),
        "version": "2.1.200",
        "gitBranch": "main",
        "type": "assistant",
        "message": message,
        "requestId": f"req_{key}",
        "uuid": f"00000000-0000-4000-8000-{number:012}",
        "timestamp": f"2026-11-14T10:00:{number:02}.000Z",
    }
    line |= more
    return {name: value for name, value in line.items() if value is not None}


def path_of(root: Path, number: int = 1, below: str = "") -> Path:
    """Return where a session, or something that belongs to it, lies."""
    name = SESSION.format(number)
    folder = root / "projects" / "-home-ada-tidegauge"
    return folder / name / below if below else folder / f"{name}.jsonl"


def write(path: Path, *lines: dict[str, Any] | bytes) -> Path:
    """Write a transcript; bytes are lines as they are."""
    path.parent.mkdir(parents=True, exist_ok=True)
    raw = [line if isinstance(line, bytes) else json.dumps(line, separators=(",", ":")).encode() for line in lines]
    path.write_bytes(b"".join(line + b"\n" for line in raw))
    return path


def from_index(root: Path, by: Grouping = "day", **wanted: Any) -> UsageReport:
    """Return a report of the index, which is brought up to date."""
    prices = PriceTable()
    with open_index(str(root)) as index:
        asked = UsageQuery(by, **wanted)
        return build_report(with_clock_names(count_indexed_usage(index.connection, asked, prices), by), by, prices)


def from_files(root: Path, by: Grouping = "day", processes: int = 1, **wanted: Any) -> UsageReport:
    """Return a report straight from the files."""
    problems: list[Problem] = []
    cells = count_files_usage((str(root),), UsageQuery(by, **wanted), problems, processes=processes)
    assert problems == []
    return build_report(with_clock_names(cells, by), by, PriceTable())


def both(root: Path, by: Grouping = "day", **wanted: Any) -> UsageReport:
    """Return a report that all ways agree on."""
    report = from_index(root, by, **wanted)
    assert from_files(root, by, **wanted) == report
    assert from_files(root, by, processes=3, **wanted) == report
    return report


def explained(root: Path, by: Grouping = "day", what: str = "", *, keys: bool = True) -> UsageExplanation:
    """Return what is behind a total, on which both ways agree; in the keys too, unless told."""
    with open_index(str(root)) as index:
        one = explain_index(index.connection, UsageQuery(by), PriceTable(), what)
    other = explain_files((str(root),), UsageQuery(by), PriceTable(), [], what)
    if not keys:
        for response in (*one.responses, *other.responses):
            response.key = ""
    assert other == one
    return one


def figures(report: UsageReport) -> tuple[int, ...]:
    """Return input, output, both cache writes, cache reads and searches of a report."""
    totals = report.totals
    return (totals.input, totals.output, totals.cache_5m, totals.cache_1h, totals.cache_read, totals.searches)
