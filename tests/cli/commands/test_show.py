"""`steno show`: the story, the tree, the records and the messages of one session."""

import json
import re
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.builders import session, thinking, tool
from tests.cli.conftest import Steno
from tests.conftest import WriteConfig

from steno.cli.output.record_views import _tree_positions
from steno.demo.recording import DemoReport
from steno.format.encode import encode_line
from steno.format.source import BytesSource
from steno.sanitize.terminal import display_width
from steno.session.session import Session as Opened
from steno.session.transcript import load

SMOOTH = "Smooth the curve, keep the surge"


@pytest.fixture(autouse=True)
def demo_is_there(demo: DemoReport) -> None:
    assert demo.sessions


def test_the_head_says_what_it_is(steno: Steno) -> None:
    assert steno("show", "--demo", SMOOTH).lines[:2] == [SMOOTH, "6429f00f  tidegauge  surge  opus-5-5  2 turns  2m30"]


def test_a_turn_is_told_from_prompt_to_figures(steno: Steno) -> None:
    told = steno("show", "--demo", SMOOTH, "--turn", 2, "--width", 80).lines[2:]
    assert told == [
        "",
        "2   09:05  │ Use a median filter, it keeps edges.",
        "",
        "  ▸ Thought     A median keeps steps and drops spikes; a surge…   137",
        "    A median of five readings drops single spikes and keeps a surge whole.",
        "  ▾ Edit        src/tidegauge/smooth.py  +1 \N{MINUS SIGN}1                          3.7 s",
        "      3",
        "      4 \N{MINUS SIGN} def moving_average(levels: list[float], window: int = 9) -> list[f…",
        "      4 + def moving_average(levels: list[float], window: int = 5) -> list[f…",
        '      5       """Return the mean of each level and its neighbours."""',
        "  ▾ Edit        src/tidegauge/smooth.py  +1 \N{MINUS SIGN}1                     83   3.7 s",
        "      9           near = levels[max(i - half, 0) : i + half + 1]",
        "     10 \N{MINUS SIGN}         out.append(sum(near) / len(near))",
        "     10 +         out.append(sorted(near)[len(near) // 2])",
        "     11       return out",
        "  ▸ TaskUpdate  1 completed  Task #1 is completed.                 85   4.1 s",
        "  ▸ Bash        python scripts/compare.py --day 2026-…  3 lines         7.4 s ✓",
        "",
        "     filter  peak    error",
        "     ──────────────────────",
        "     mean    3.61 m  0.59 m",
        "     median  4.20 m  0.00 m",
        "",
        "    The surge stays at its full 4.20 m, and the chop of the calm days is gone.",
        "    The second task, a layer for the surge, is still open.",
        "",
        "    5 steps  58 s  77.0k in (97% cached)  384 out  context 20.0k",
    ]


def test_a_failed_command_shows_its_last_lines(steno: Steno) -> None:
    told = steno("show", "--demo", SMOOTH, "--turn", 1).lines
    at = next(place for place, line in enumerate(told) if "python -m pytest" in line)
    assert told[at].endswith("✗")
    assert "exit 1, 1 failed, 6 passed" in told[at]
    assert told[at + 8].strip() == "1 failed, 6 passed in 0.31s"
    assert told[at + 9].strip() == "last 8 of 11 lines"
    assert told[at + 10] == ("  ┊ queued  Use the 28th of October as the reference, it had the surge.")


def test_a_failed_step_of_any_tool_shows_its_last_lines(steno: Steno, config: WriteConfig) -> None:
    lines = "\n".join(f"line {n}" for n in range(1, 13))
    built = session().user("Go").assistant(tool("Read", file_path="/home/ada/x.md"))
    config(built.result(f"<tool_use_error>{lines}</tool_use_error>", error=True).assistant("Hm."))
    out = steno("show", built.session_id).out
    assert "▾ Read" in out
    assert "       line 5\n" in out
    assert "       line 12\n" in out
    assert "last 8 of 12 lines" in out
    assert "line 4\n" not in out


def test_an_abandoned_branch_is_drawn_where_it_leaves_and_can_be_opened(steno: Steno) -> None:
    told = steno("show", "--demo", SMOOTH).out
    first, second = told.split("├╌╌ abandoned by a rewind  1 turn  201 out  --branch 1\n")
    assert "1   09:02" in first
    assert second.lstrip().startswith("┊  Then weight the neighbours with a Gaussian.")
    assert "2   09:05" in second
    branch = steno("show", "--demo", SMOOTH, "--branch", 1).out
    assert "abandoned branch 1 of 1" in branch
    assert "src/tidegauge/gauss.py  +9" in branch
    assert "median filter" not in branch


def test_sub_agents_are_nested_and_can_be_opened(steno: Steno) -> None:
    told = steno("show", "--demo", "Three languages").lines
    at = next(place for place, line in enumerate(told) if "Survey templates" in line)
    assert told[at].lstrip().startswith("▾ Explore")
    assert [line[:8] for line in told[at + 1 : at + 7]] == [
        *("    │   ", "    │   ", "    │   ", "    │   ", "    │   ", "    └   ")
    ]
    assert "    │     │   ▸ Read    templates/letter.html" in told[at + 4]
    agent = steno("show", "--demo", "Three languages", "--agent", "aa17882ee784e8c80")
    assert "sub-agent aa17882ee784e8c80  Explore Survey dates and numbers" in agent.lines
    assert steno("show", "--demo", "aa17882ee784e8c80").out == agent.out


def test_a_compaction_is_a_seam(steno: Steno) -> None:
    told = steno("show", "--demo", "Three languages", "--width", 80).lines
    seam = next(line for line in told if line.startswith("╌"))
    assert seam.startswith("╌╌╌╌  compacted (auto)  39.8k to 17.0k tokens  3 records kept  ╌╌")
    assert display_width(seam) == 80


def test_thoughts_are_shown_in_full_when_asked_for(steno: Steno, config: WriteConfig) -> None:
    long = "First this. " * 30
    config(session(seed="t").user("Why?").assistant(thinking(long), "So."))
    assert "│ First this." not in steno("show", "last").out
    assert steno("show", "last", "--thinking").out.count("First this.") >= 30


def test_notes_and_hooks_are_shown_with_all(steno: Steno) -> None:
    assert "branch.sh" not in steno("show", "--demo", SMOOTH).out
    assert "branch.sh" in steno("show", "--demo", SMOOTH, "--all").out


def test_errors_and_interruptions_are_told(steno: Steno) -> None:
    assert re.search(r"▸ API error +API Error: 400", steno("show", "--demo", "9a10").out)
    assert "  ◻ interrupted" in steno("show", "--demo", "eb8d").out


def test_what_is_not_told_is_counted(steno: Steno) -> None:
    last = steno("show", "--demo", "Export last week").lines[-1]
    assert last == "! 3 gaps in the file, 3.1 kB without a valid record  use --records to show"


@pytest.mark.parametrize("columns", [50, 60, 80, 120])
def test_every_view_fits_the_width(steno: Steno, columns: int) -> None:
    for each in steno("ls", "--demo", "--json").json:
        for view in ("--turns", "--graph", "--as-resumed"):
            lines = steno("show", each["path"], view, "--width", columns).lines
            assert max(map(display_width, lines)) <= columns, (each["title"], view)


def test_hostile_text_is_shown_and_does_nothing(steno: Steno) -> None:
    for view in ("--turns", "--graph", "--records", "--as-resumed", "--all"):
        out = steno("show", "--demo", "Guest book", view).out
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u200b]", out), view
        assert "␛[" in out or view == "--turns"
    told = steno("show", "--demo", "Guest book").out
    assert "<details open ontoggle=alert(4)>" in told
    assert "[bold]" in told.splitlines()[0]


def test_colours_are_the_sixteen(steno: Steno) -> None:
    out = steno("show", "--demo", "Three languages", "--color", "always").out
    codes = set(";".join(re.findall(r"\x1b\[([0-9;]*)m", out)).split(";"))
    assert codes <= {"0", "1", "2", "3", "4", "9", *map(str, range(31, 37))}
    assert {"35", "36"} <= codes, "sub-agents have colours of their own"
    assert re.sub(r"\x1b\[[0-9;]*m", "", out) == steno("show", "--demo", "Three languages").out


def test_the_graph_marks_the_leaf_and_draws_side_branches(steno: Steno) -> None:
    lines = steno("show", "--demo", SMOOTH, "--graph", "--width", 100).lines
    assert sum(line.startswith(("├─", "│ ")) for line in lines) == 9
    assert [line for line in lines if "◆" in line] == [lines[-1]]
    assert lines[-1].endswith("leaf")
    damaged = steno("show", "--demo", "Export last week", "--graph").out
    assert "parent missing" in damaged


def test_a_graph_that_goes_round_in_circles_is_drawn_once(steno: Steno, tmp_path: Path) -> None:
    built = session().turn("One", "Two").turn("Three", "Four").cycle()
    (tmp_path / "ring.jsonl").write_bytes(built.bytes())
    lines = steno("show", tmp_path / "ring.jsonl", "--graph").lines
    assert len(lines) == len(built.uuids())


def test_records_in_json_tile_the_file(steno: Steno) -> None:
    for each in steno("ls", "--demo", "--json").json:
        end = 0
        for piece in steno("show", each["path"], "--records", "--json").json_lines:
            assert piece["offset"] == end
            end += piece["length"]
        assert end == each["size"]


def test_records_say_what_is_known_and_what_is_damaged(steno: Steno) -> None:
    pieces = steno("show", "--demo", "Export last week", "--records", "--json").json_lines
    assert set(pieces[0]) == {
        *("offset", "length", "line", "kind", "type", "uuid", "parentUuid", "timestamp"),
        *("dialect", "damage", "gap"),
    }
    first = {key: pieces[0][key] for key in ("offset", "line", "kind", "type", "dialect", "gap")}
    assert first == {"offset": 0, "line": 1, "kind": "user/prompt", "type": "user", "dialect": "claude", "gap": False}
    gaps = [piece for piece in pieces if piece["gap"]]
    assert [gap["damage"][0]["id"] for gap in gaps] == ["line.torn", "line.nul-run", "line.torn"]
    assert set(gaps[0]["damage"][0]) == {"id", "offset", "length", "message", "hint"}
    assert gaps[0]["uuid"] is None
    # The torn record and the one behind it stand on one line.
    after = pieces[pieces.index(gaps[0]) + 1]
    assert after["line"] == gaps[0]["line"]


def test_line_numbers_are_those_of_an_editor(steno: Steno, tmp_path: Path) -> None:
    data = b'{"type":"mode"}{"type":"tag"}\n\n\x00\x00\n[1]\n{"type":"mode"}'
    (tmp_path / "odd.jsonl").write_bytes(data)
    pieces = steno("show", tmp_path / "odd.jsonl", "--records", "--json").json_lines
    for piece in pieces:
        assert piece["line"] == data[: piece["offset"]].count(b"\n") + 1
    assert pieces[-1]["line"] == 5


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=200))
def test_any_bytes_can_be_listed(steno: Steno, tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "any.jsonl"
    path.write_bytes(b'{"type":"mode"}\n' + data)
    pieces = steno("show", path, "--records", "--json").json_lines
    assert sum(piece["length"] for piece in pieces) == len(data) + 16
    assert steno("show", path, "--records").code == 0


def test_raw_gives_the_very_bytes(steno: Steno, tmp_path: Path) -> None:
    built = session().turn("Schön?", "Ja.")
    path = tmp_path / "talk.jsonl"
    path.write_bytes(built.bytes())
    whole = path.read_bytes().splitlines(keepends=True)
    for uuid, line in zip(built.uuids(), whole, strict=True):
        assert steno("show", path, "--raw", uuid).data == line


def test_as_resumed_is_a_list_of_messages(steno: Steno, config: WriteConfig) -> None:
    config(session(seed="r").turn("Hello", "Hi there."))
    messages = steno("show", "last", "--as-resumed", "--json").json
    assert messages == [
        {"role": "user", "content": [{"type": "text", "text": "Hello"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "Hi there."}]},
    ]
    more = steno("show", "last", "--as-resumed", "--prompt", "More", "--json").json
    assert more[2:] == [{"role": "user", "content": [{"type": "text", "text": "More"}]}]
    assert steno("show", "last", "--as-resumed", "--client", "2.0.76", "--json").json == messages
    assert steno("show", "last", "--as-resumed").lines == [
        *("  1  user", "     Hello", "", "  2  assistant", "     Hi there.")
    ]


def test_a_file_the_client_would_refuse_gives_no_messages(steno: Steno, tmp_path: Path) -> None:
    (tmp_path / "s.jsonl").write_bytes(b'{"type":"summary","summary":"x","leafUuid":"y"}\n')
    ran = steno("show", tmp_path / "s.jsonl", "--as-resumed", "--json")
    assert (ran.code, ran.json) == (0, [])
    assert "would reject" in ran.err


def test_all_messages_are_valid_json(steno: Steno) -> None:
    messages = steno("show", "--demo", SMOOTH, "--messages", "--json").json
    assert {message["role"] for message in messages} == {"user", "assistant"}


def test_the_story_in_json(steno: Steno) -> None:
    told = steno("show", "--demo", SMOOTH, "--json").json
    assert told["title"] == SMOOTH
    assert [turn["number"] for turn in told["turns"]] == [1, 2]
    assert told["turns"][1]["prompt"]["text"] == "Use a median filter, it keeps edges."
    verbs = [step["verb"] for step in told["turns"][1]["steps"] if step["kind"] == "tool"]
    assert verbs == ["Edit", "Edit", "TaskUpdate", "Bash"]
    assert told["abandoned"][0]["why"] == "rewind"
    assert json.dumps(told)


def test_edits_without_a_patch_show_their_words(steno: Steno, tmp_path: Path) -> None:
    call = tool("Edit", file_path="/home/ada/a.py", old_string="one\n", new_string="two\nthree\n")
    built = session().user("Change it.").assistant(call).result("ok", detail={"filePath": "a"})
    (tmp_path / "e.jsonl").write_bytes(built.assistant("Done.").bytes())
    out = steno("show", tmp_path / "e.jsonl").out
    assert "\N{MINUS SIGN} one\n" in out
    assert "+ two\n" in out
    assert "+ three\n" in out


def test_long_prompts_are_cut_and_say_so(steno: Steno, config: WriteConfig) -> None:
    config(session(seed="long").turn("\n".join(f"line {n}" for n in range(99)), "Fine."))
    assert "│ … 29 of 99 lines" in steno("show", "last").out
    assert "│ line 98" in steno("show", "last", "--all").out


def test_numbers_of_any_size_survive(steno: Steno, tmp_path: Path) -> None:
    call = tool("Bash", command="x", timeout=2**90)
    built = session().user("Go").assistant(call).result("ok").assistant("Done.")
    path = tmp_path / "big.jsonl"
    first, *rest = built.lines()
    first = re.sub(rb'"timestamp":"[^"]*"', b'"timestamp":%d' % 2**80, first)
    path.write_bytes(b"\n".join([first, *rest]))
    assert steno("show", path, "--records", "--json").json_lines[0]["timestamp"] == 2**80
    told = steno("show", path, "--messages", "--json").json
    assert told[1]["content"][0]["input"]["timeout"] == 2**90
    assert steno("show", path, "--json").code == 0
    assert steno("show", path).code == 0


def test_the_graph_in_json(steno: Steno, tmp_path: Path) -> None:
    built = session().turn("One", "Two").turn("Three", "Four")
    (tmp_path / "talk.jsonl").write_bytes(built.bytes())
    nodes = steno("show", tmp_path / "talk.jsonl", "--graph", "--json").json
    assert [node["uuid"] for node in nodes] == built.uuids()
    assert [node["leaf"] for node in nodes][-1:] == [True]
    assert all(node["taken"] and node["depth"] == 0 for node in nodes)
    known = {node["uuid"] for node in nodes} | {None}
    assert {node["parent"] for node in nodes} <= known
    rewound = steno("show", "--demo", SMOOTH, "--graph", "--json").json
    assert [node["depth"] for node in rewound if node["leaf"]] == [0]
    assert any(node["depth"] for node in rewound if not node["taken"])


def _told(lines: Iterable[dict[str, object]]) -> Opened:
    return Opened(load(BytesSource(b"".join(encode_line(line) for line in lines))))


@pytest.mark.timeout(15)
@pytest.mark.parametrize("shape", ["rings", "twins"])
def test_a_graph_of_many_odd_records_is_drawn_in_one_walk(shape: str) -> None:
    many = 20_000
    if shape == "rings":
        pairs = [(f"a{n}", f"b{n}") for n in range(many)]
        pairs += [(b, a) for a, b in pairs]
    else:
        pairs = [("twin", "")] * many + [(f"c{n}", "twin") for n in range(many)]
    found = _told({"type": "system", "uuid": own, "parentUuid": above} for own, above in pairs)
    assert sum(1 for _ in _tree_positions(found)) == 2 * many


def test_each_compaction_inside_a_turn_is_a_line_where_it_was(steno: Steno, tmp_path: Path) -> None:
    made = session("2.1.42").user("go")
    for number in range(3):
        made.assistant(tool("Bash", command=f"make step{number}")).result("x")
        made.compact(f"So far {number}.", trigger="auto")
    path = tmp_path / f"{made.session_id}.jsonl"
    path.write_bytes(made.assistant("All done.").bytes())
    ran = steno("show", path)
    told = " ".join(re.findall(r"│ go|step\d|compacted|All done", ran.out))
    assert told == "│ go step0 compacted step1 compacted step2 compacted All done"


def test_all_prints_the_summary_of_every_compaction(steno: Steno, tmp_path: Path) -> None:
    made = session("2.1.42").turn("first", "yes").compact("All that *was*.\n\n- one\n- two")
    made.user("go").assistant(tool("Bash", command="make")).result("x")
    made.compact("Made it.", trigger="auto").assistant("Done.").compact("The end.")
    path = tmp_path / "talk.jsonl"
    path.write_bytes(made.bytes())
    told = steno("show", path, "--all").out
    marks = ("(manual)", "All that was.", "two", "go", "(auto)", "Made it.", "Done.", "(manual)")
    at = 0
    for mark in (*marks, "The end."):
        at = told.index(mark, at)
    short = steno("show", path).out
    assert short.count("compacted (") == 3
    assert not any(mark in short for mark in ("All that was.", "Made it.", "The end."))
