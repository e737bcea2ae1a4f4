"""`steno usage`."""

import csv
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Steno
from tests.report.usage_cases import MODEL, SESSION, answer, path_of, usage, write

from steno.index.database import locate_index
from steno.store.file_lock import FileLock


@pytest.fixture
def root() -> Path:
    folder = Path(os.environ["CLAUDE_CONFIG_DIR"])
    more: dict[str, Any] = {"cache_read_input_tokens": 9000}
    write(
        path_of(folder, 1),
        answer("msg_1", usage(4, **more), number=1),
        answer("msg_1", usage(2000, **more), number=2),
        answer("msg_2", usage(1000), number=3, timestamp="2026-11-10T10:00:00.000Z"),
    )
    agent: dict[str, Any] = {"isSidechain": True, "agentId": "abcdef1", "number": 4}
    write(path_of(folder, 1, "subagents/agent-abcdef1.jsonl"), answer("msg_3", usage(500), **agent))
    return folder


@pytest.mark.usefixtures("root")
def test_json_has_rows_and_totals_by_the_names_of_the_api(steno: Steno) -> None:
    told = steno("usage", "--json").json
    assert [row["day"] for row in told["rows"]] == ["2026-11-10", "2026-11-14"]
    assert told["totals"] == {
        "responses": 3,
        "input_tokens": 3,
        "output_tokens": 3500,
        "cache_creation_input_tokens": 0,
        "cache_creation_5m_input_tokens": 0,
        "cache_creation_1h_input_tokens": 0,
        "cache_read_input_tokens": 9000,
        "web_search_requests": 0,
        "cost_usd": 0.092015,
        "cost_micro_usd": 92_015,
        "estimated_responses": 0,
        "fast_at_normal_price": 0,
        "unpriced_tokens": {},
    }
    assert sum(row["cost_micro_usd"] for row in told["rows"]) == 92_015


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize(
    "by", ["day", "week", "month", "session", "project", "model", "agent", "branch", "hour", "block5h"]
)
def test_files_and_index_tell_the_same(steno: Steno, by: str) -> None:
    one = steno("usage", "--by", by, "--json").json
    other = steno("usage", "--by", by, "--json", "--no-index").json
    assert one["totals"] == other["totals"]
    names = [name for name in one["rows"][0] if name not in ("title", "project")]
    for name in names:
        assert [row[name] for row in one["rows"]] == [row[name] for row in other["rows"]]


@pytest.mark.usefixtures("root")
def test_the_table_ends_with_the_total(steno: Steno) -> None:
    ran = steno("usage")
    assert ran.code == 0
    assert ran.lines[0].split()[:3] == ["DAY", "COST", "INPUT"]
    assert ran.lines[1].startswith(" Tue 2026-11-10")
    assert "█" in ran.lines[2]
    total = next(line for line in ran.lines if line.startswith(" total"))
    assert "$0.09" in total
    assert "3,500" in total


@pytest.mark.usefixtures("root")
@pytest.mark.parametrize("by", ["day", "session", "agent", "branch", "project", "model", "tool"])
@pytest.mark.parametrize("width", [40, 80, 120])
def test_no_line_is_wider_than_asked(steno: Steno, by: str, width: int) -> None:
    ran = steno("usage", "--by", by, "--width", width)
    assert max(map(len, ran.lines)) <= width
    assert ran.code == 0


@pytest.mark.parametrize(
    "more",
    [
        ("--heat",),
        ("--heat", "days"),
        ("--limit", 1),
        ("--by", "model", "--limit", 1),
        ("--explain", "--by", "branch"),
        ("--explain", "--by", "session", "--limit", 1),
        ("--explain", "--limit", 0),
    ],
)
def test_everything_fits_into_a_narrow_terminal(
    steno: Steno, root: Path, monkeypatch: pytest.MonkeyPatch, more: tuple[object, ...]
) -> None:
    other: dict[str, Any] = {"sessionId": SESSION.format(2), "gitBranch": "b" * 90}
    figures = usage(10**14, server_tool_use={"web_search_requests": 3})
    write(
        path_of(root, 2),
        answer("msg_" + "x" * 60, figures, number=1, version="2.1.30", stop_reason=None, **other),
        answer("msg_8", usage(4), number=2, model="fern-" + "9" * 50, **other),
        *(answer(f"m{n}", number=n, model="<synthetic>", **other) for n in range(10, 20)),
    )
    monkeypatch.setenv("COLUMNS", "40")
    ran = steno("usage", *more)
    assert ran.code == 0
    assert max(map(len, ran.lines)) <= 40


@pytest.mark.usefixtures("root")
def test_sub_agents_count_for_the_session_and_can_be_seen_apart(steno: Steno) -> None:
    (row,) = steno("usage", "--by", "session", "--json").json["rows"]
    assert (row["session"], row["output_tokens"]) == (SESSION.format(1), 3500)
    rows = steno("usage", "--by", "agent", "--json").json["rows"]
    assert {row["agent"]: row["output_tokens"] for row in rows} == {"": 3000, "abcdef1": 500}


@pytest.mark.usefixtures("root")
def test_days_are_whole_unless_hours_are_named(steno: Steno) -> None:
    # It is noon of 15 November.
    assert steno("usage", "--since", "1d", "--json").json["totals"]["responses"] == 2
    assert steno("usage", "--since", "26h", "--json").json["totals"]["responses"] == 2
    assert steno("usage", "--since", "25h", "--json").json["rows"] == []
    assert steno("usage", "--until", "2026-11-10", "--json").json["totals"]["responses"] == 1
    late = steno("usage", "--since", "2026-11-14T10:00:02Z", "--json").json
    assert late["totals"]["responses"] == 1


@pytest.mark.usefixtures("root")
def test_nothing_in_that_time_is_exit_code_1(steno: Steno) -> None:
    ran = steno("usage", "--since", "today")
    assert (ran.code, ran.out) == (1, "No usage matches these filters.\n")
    assert steno("usage", "--project", "elsewhere").code == 1
    assert steno("usage", "--project", "tidegauge").code == 0


def test_nothing_at_all_is_fine(steno: Steno) -> None:
    Path(os.environ["CLAUDE_CONFIG_DIR"]).mkdir()
    assert steno("usage").out == "No usage found.\n"


@pytest.mark.usefixtures("root")
def test_while_another_sync_is_at_work_the_figures_are_said_to_be_incomplete(steno: Steno) -> None:
    folder = Path(locate_index(None).folder)
    folder.mkdir(parents=True)
    with FileLock(str(folder / "sync.lock")):
        first = steno("usage")
        assert "another process is updating the index" in first.err
        assert "--no-index" in first.err
        assert "asked" not in first.out
        assert first.code == 1
        told = steno("usage", "--json")
        assert (told.json["complete"], told.json["rows"], told.code) == (False, [], 1)
        assert steno("usage", "--since", "1d").out == first.out
        assert "another process" in steno("usage", "--csv").err
        assert steno("usage", "--explain", "--json").json["complete"] is False
        whole = steno("usage", "--json", "--no-index")
        assert (whole.json["complete"], whole.err) == (True, "")
        assert steno("usage", "--no-sync").out == first.out
    done = steno("usage", "--json")
    assert (done.json["complete"], done.err) == (True, "")
    assert steno("usage", "--explain", "--json").json["complete"] is True
    with FileLock(str(folder / "sync.lock")):
        later = steno("usage", "--json")
    assert (later.json["complete"], later.json["totals"]["responses"]) == (False, 3)
    assert (later.code, "incomplete" in later.err) == (0, True)


@pytest.mark.usefixtures("root")
def test_heat_maps_are_drawn(steno: Steno) -> None:
    hours = steno("usage", "--heat")
    assert hours.lines[2].startswith(" Tue  ")
    assert hours.lines[2][6 + 20 : 6 + 22] in ("░░", "▒▒", "▓▓", "██")
    days = steno("usage", "--heat", "days")
    assert "Nov" in days.lines[0]
    assert sum(line.count("█") for line in days.lines[1:8]) == 2


def test_one_dear_hour_does_not_hide_the_others(steno: Steno, root: Path) -> None:
    hours = (9, 10, 11, 12, 13, 14, 15, 16)
    for number, hour in enumerate(hours, 2):
        figures = usage(10**8 if hour == 16 else 1000 * number)
        stamp = f"2026-11-11T{hour:02}:00:00.000Z"
        session = SESSION.format(number)
        line = answer(f"msg_h{hour}", figures, timestamp=stamp, sessionId=session)
        write(path_of(root, number), line)
    wednesday = steno("usage", "--heat", "--since", "2026-11-11", "--until", "2026-11-11").lines[3]
    shown = wednesday[6:54:2]
    assert shown[9:17] == "░░▒▒▓▓██"
    assert set(shown[:9] + shown[17:]) == {"·"}


@pytest.mark.usefixtures("root")
def test_a_heat_map_is_by_nothing_else(steno: Steno) -> None:
    refused = steno("usage", "--heat", "--by", "model")
    assert (refused.code, refused.out) == (2, "")
    assert steno("usage", "--heat", "days", "--by", "hour").code == 2
    assert steno("usage", "--heat", "--by", "hour").out == steno("usage", "--heat").out
    days = steno("usage", "--heat", "days")
    assert steno("usage", "--heat", "days", "--by", "day").out == days.out


def test_less_than_half_a_cent_is_not_nothing(steno: Steno, root: Path) -> None:
    cheap = {"timestamp": "2026-11-11T10:00:00.000Z", "sessionId": SESSION.format(2)}
    write(path_of(root, 2), answer("msg_8", usage(1), **cheap))
    free = {"timestamp": "2026-11-12T10:00:00.000Z", "sessionId": SESSION.format(3)}
    write(path_of(root, 3), answer("msg_9", {}, **free))
    costs = {line.split()[1]: line.split()[2] for line in steno("usage").lines[1:5]}
    assert costs["2026-11-11"] == "<$0.01"
    assert costs["2026-11-12"] == "$0.00"
    assert "<$0.01" in steno("usage", "--heat").lines[3]


@pytest.mark.usefixtures("root")
def test_a_total_opens_to_its_lines(steno: Steno) -> None:
    ran = steno("usage", "--explain")
    assert "3 responses counted" in ran.out
    assert "1 record merged" in ran.out
    told = steno("usage", "--explain", "--json").json
    totals = steno("usage", "--json").json["totals"]
    assert told["totals"] == totals
    counted = [line for response in told["responses"] for line in response["lines"] if line["verdict"] == "counted"]
    assert sum(line["output_tokens"] for line in counted) == totals["output_tokens"]
    assert sum(each["cost_micro_usd"] for each in told["responses"]) == totals["cost_micro_usd"]
    assert steno("usage", "--explain", "--json", "--no-index").json == told


@pytest.mark.usefixtures("root")
def test_one_response_can_be_explained(steno: Steno) -> None:
    ran = steno("usage", "--explain", "msg_1")
    assert ".jsonl:2" in ran.out
    assert "msg_2" not in ran.out
    nonsense = steno("usage", "--explain", "nonsense")
    assert (nonsense.code, nonsense.out) == (1, "")
    assert "no row or response matches nonsense" in nonsense.err


def test_an_explanation_says_how_many_skipped_lines_it_shows(steno: Steno, root: Path) -> None:
    lines = [answer(f"msg_{n}", number=n, model="<synthetic>") for n in range(10, 25)]
    write(path_of(root, 2), *lines)
    some = steno("usage", "--explain").out
    assert "15 records skipped, 5 of 15 shown; use --limit 0 to show all" in some
    assert some.count("skipped: ") == 5
    everything = steno("usage", "--explain", "--limit", 0).out
    assert "15 records skipped\n" in everything
    assert everything.count("skipped: ") == 15


@pytest.mark.usefixtures("root")
def test_an_explanation_calls_rows_what_the_table_calls_them(steno: Steno) -> None:
    ran = steno("usage", "--by", "agent", "--explain")
    assert f"{SESSION.format(1)} · main session  2 responses" in ran.out
    assert f"{SESSION.format(1)} · abcdef1  1 response" in ran.out
    assert "(no tool)  3 responses" in steno("usage", "--by", "tool", "--explain").out
    assert steno("usage", "--by", "tool", "--explain", "--no-index").code == 2


def test_an_explanation_does_not_call_unknown_costs_nothing(steno: Steno, root: Path) -> None:
    other = {"sessionId": SESSION.format(2), "timestamp": "2026-11-09T10:00:00.000Z"}
    absurd = {"sessionId": SESSION.format(2), "number": 3}
    write(
        path_of(root, 2),
        answer("msg_8", model="fern-9", **other),
        answer("msg_9", usage(10**14), model="fern-9", **absurd),
    )
    ran = steno("usage", "--explain")
    assert "2026-11-09  1 response  cost unknown" in ran.out
    assert "2026-11-14  3 responses  $0.067010+?" in ran.out
    assert "$0.000000" not in ran.out
    (cut,) = (line for line in ran.lines if "capped" in line)
    assert "out 1,000,000,000,000" in cut


def test_hostile_names_do_no_harm(steno: Steno, root: Path) -> None:
    evil = {"cwd": "=cmd|'/c calc'!A0", "gitBranch": "\x1b[2J\u202emain", "number": 9}
    write(path_of(root, 9), answer("msg_9", usage(10**6), model="\x1b]0;x\x07=1", **evil))
    for by in ("project", "branch", "model", "session", "agent"):
        for kind in ((), ("--json",), ("--csv",), ("--explain",)):
            ran = steno("usage", "--by", by, *kind)
            assert b"\x1b" not in ran.data
            assert "\u202e" not in ran.out
    rows = list(csv.reader(steno("usage", "--by", "project", "--csv").lines))
    assert rows[0][0] == "project"
    assert "'=cmd|'/c calc'!A0" in {row[0] for row in rows}


@pytest.mark.usefixtures("root")
def test_csv_has_a_row_for_each(steno: Steno) -> None:
    rows = list(csv.DictReader(steno("usage", "--csv").lines))
    assert [row["output_tokens"] for row in rows] == ["1000", "2500"]


def test_unknown_prices_and_placeholders_are_said(steno: Steno, root: Path) -> None:
    write(
        path_of(root, 2),
        answer("msg_8", model="fern-9", number=1, sessionId=SESSION.format(2)),
        answer("msg_9", number=2, version="2.1.30", stop_reason=None),
    )
    ran = steno("usage", "--by", "model")
    assert "? no price for fern-9" in ran.out
    assert "under-reported" in ran.out
    row = next(line for line in ran.lines if line.startswith(" fern-9"))
    assert row.split()[1] == "?"
    total = next(line for line in ran.lines if line.startswith(" total"))
    assert "≈$0.09+?" in total
    rows = steno("usage", "--by", "model", "--json").json["rows"]
    assert {row["model"]: row["cost_usd"] for row in rows}["fern-9"] is None


@pytest.mark.usefixtures("root")
def test_a_price_file_is_used_by_option_and_by_config(steno: Steno, tmp_path: Path) -> None:
    text = f'[models."{MODEL}"]\ninput = 0\noutput = 1000\n'
    (tmp_path / "own.toml").write_text(text)
    told = steno("usage", "--json", "--prices", tmp_path / "own.toml").json
    assert told["totals"]["cost_usd"] == 3.5
    home = Path(os.environ["STENO_HOME"])
    (home / "prices.toml").write_text(text)
    (home / "config.toml").write_text('[usage]\nprices = "prices.toml"\n')
    assert steno("usage", "--json").json["totals"]["cost_usd"] == 3.5
    assert steno("usage", "--prices", tmp_path / "none.toml").code == 3
    for wrong in ("prices = 3", 'price = "x"'):
        (home / "config.toml").write_text(f"[usage]\n{wrong}\n")
        assert steno("usage").code == 2


@pytest.mark.usefixtures("root")
def test_abandoned_branches_are_told(steno: Steno) -> None:
    told = steno("usage", "--json").json["abandoned"]
    assert (told["responses"], told["sessions_not_seen"]) == (0, 0)


@pytest.mark.usefixtures("root")
def test_options_that_make_no_sense_together_are_refused(steno: Steno) -> None:
    assert steno("usage", "--json", "--csv").code == 2
    assert steno("usage", "--explain", "--csv").code == 2
    assert steno("usage", "--by", "tool", "--no-index").code == 2
    assert steno("usage", "--by", "colour").code == 2
    assert steno("usage", "--since", "whenever").code == 2


def test_without_an_index_nothing_is_made_up(steno: Steno, root: Path) -> None:
    assert steno("usage", "--no-sync").code == 1
    assert steno("usage").code == 0
    write(path_of(root, 3), answer("msg_7", number=7, sessionId=SESSION.format(3)))
    assert steno("usage", "--no-sync", "--json").json["totals"]["responses"] == 3
    assert steno("usage", "--json").json["totals"]["responses"] == 4


@pytest.mark.usefixtures("root")
def test_a_limit_shows_fewer_rows_and_the_whole_total(steno: Steno) -> None:
    ran = steno("usage", "--limit", 1)
    assert "newest 1 of 2 rows" in ran.out
    assert "3,500" in ran.out


@pytest.mark.usefixtures("root")
def test_a_report_of_the_index_imports_nothing_heavy(steno: Steno) -> None:
    assert steno("usage").code == 0
    heavy = ["genai_prices", "rich", "stringzilla", "tantivy", "zstandard", "multiprocessing", "asyncio"]
    code = (
        "import sys\nfrom steno.cli.main import run\n"
        "try:\n    run(['usage', '--json', '--no-sync'])\n"
        f"finally:\n    sys.stderr.write(' '.join(sys.modules.keys() & set({heavy})))"
    )
    ran = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ran.stderr == ""
    assert '"totals"' in ran.stdout


def test_a_terminal_without_unicode_gets_plain_letters(root: Path) -> None:
    write(path_of(root, 2), answer("msg_9", number=2, version="2.1.30", stop_reason=None))
    for more in ((), ("--heat",), ("--heat", "days"), ("--by", "model"), ("--explain",)):
        ran = subprocess.run(
            [sys.executable, "-m", "steno", "usage", *more],
            check=True,
            capture_output=True,
            env=os.environ | {"PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"},
        )
        assert ran.stdout.isascii()
        assert b"\\u" not in ran.stdout
        assert b"\\x" not in ran.stdout


@pytest.mark.usefixtures("root")
def test_colour_is_asked_for_and_not_taken(steno: Steno) -> None:
    assert b"\x1b[" not in steno("usage").data
    assert b"\x1b[34m" in steno("usage", "--color", "always").data
