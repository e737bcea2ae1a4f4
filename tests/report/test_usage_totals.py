"""Totals against what a generator knows, and both ways against each other on real files."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.corpus import transcripts
from tests.report.usage_cases import both, from_files

from steno.report.usage.usage_report import UsageFigures

_KEYS = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def _figures(each: UsageFigures) -> list[int]:
    return [each.input, each.output, each.cache_write, each.cache_read]


@pytest.mark.corpus
@pytest.mark.parametrize("seed", [1, 7])
def test_totals_are_those_of_the_generator(shared: Path, tmp_path: Path, seed: int) -> None:
    pytest.importorskip("numpy")
    pytest.importorskip("orjson")
    script = str(shared / "bench" / "gen.py")
    options = ["--mb", "4", "--out", str(tmp_path), "--seed", str(seed)]
    subprocess.run([sys.executable, script, *options], check=True, stdout=subprocess.DEVNULL)
    truth: dict[str, Any] = json.loads((tmp_path / "truth.json").read_bytes())
    root = tmp_path / ".claude"
    days, models = both(root, "day"), both(root, "model")
    for report in (days, models):
        assert report.totals.responses == truth["unique_messages"]
        assert _figures(report.totals) == [truth["totals_dedup_last"][key] for key in _KEYS]
        assert sum(line.cost for line in report.lines) == report.cost
    assert days.cost == models.cost
    assert {line.names[0]: _figures(line.figures) for line in days.lines} == truth["by_day_last"]
    assert {line.names[0]: _figures(line.figures) for line in models.lines} == (truth["by_model_last"])
    for by in ("session", "agent", "branch", "project", "week", "month", "hour", "block5h"):
        assert both(root, by).cost == days.cost


@pytest.mark.corpus
def test_index_and_files_agree_on_every_real_file(shared: Path, tmp_path: Path) -> None:
    root = tmp_path / "all"
    for number, path in enumerate(transcripts(shared)):
        # One folder each, so that all of them are found whatever they are called.
        place = root / f"{number:05}" / path.name
        place.parent.mkdir(parents=True)
        place.symlink_to(path)
    report = both(root, "model")
    assert report.totals.responses > 1000
    for by in ("day", "project", "branch", "agent", "session"):
        assert both(root, by).totals.responses == report.totals.responses


@pytest.mark.corpus
def test_every_real_file_alone_gives_the_same_both_ways(shared: Path, tmp_path: Path) -> None:
    from steno.errors import Unreadable
    from steno.report.usage import usage_from_files

    scanner = usage_from_files.FileScanner()
    for path in transcripts(shared):
        try:
            quick = scanner.scan(str(path), 1)
        except Unreadable:
            continue
        careful = usage_from_files._scan_by_record(str(path), 1)
        for found in (quick, careful):
            found.rows = {
                key: (*row[:5], usage_from_files.to_millis(row[5]) if isinstance(row[5], str) else row[5], *row[6:])
                for key, row in found.rows.items()
            }
        assert quick.rows == careful.rows, path
        assert (quick.project, quick.session, quick.started) == (careful.project, careful.session, careful.started), (
            path
        )
    assert from_files(tmp_path).lines == []
