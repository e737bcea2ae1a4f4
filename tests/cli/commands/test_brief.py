"""`steno brief`."""

import os
from pathlib import Path

import pytest
from tests.builders import Json, Session, session, tool
from tests.cli.conftest import Steno
from tests.conftest import WriteConfig

_KEY = "ghp_" + "a1B2" * 9
_ROOM = "/home/ada/tidegauge"


def _write(path: str) -> Json:
    return tool("Write", file_path=path, content="a\nb\n")


def _made(number: int, start: str, **options: str) -> Session:
    cwd = options.pop("cwd", _ROOM)
    one = session(seed=number, start=start, cwd=cwd).user(f"Ask {number}. {options.get('more', '')}")
    one.assistant(_write(f"{cwd}/file{number}.py")).result()
    return one.assistant(f"Answer {number}. Shall I push it?").done()


@pytest.fixture
def three(config: WriteConfig) -> list[Session]:
    made = [
        _made(1, "2026-11-02T09:00:00.000Z"),
        _made(2, "2026-11-10T09:00:00.000Z", cwd="/home/ada/gravel"),
        _made(3, "2026-11-14T09:00:00.000Z", more=f"The key is {_KEY}."),
    ]
    folder = config(*made)
    for number, path in enumerate(_in_order(folder, made)):
        os.utime(path, (1_790_000_000 + number, 1_790_000_000 + number))
    return made


def _in_order(folder: Path, made: list[Session]) -> list[Path]:
    return [next(folder.rglob(f"{one.session_id}.jsonl")) for one in made]


@pytest.mark.usefixtures("three")
def test_without_a_name_the_newest_session_is_told(steno: Steno) -> None:
    ran = steno("brief")
    assert (ran.code, ran.lines[0]) == (0, f"Ask 3. The key is {_KEY}.")
    words = " ".join(ran.out.split())
    assert "Open items ? Shall I push it? ± 1 file changed, not committed in the session" in words
    assert "file3.py +2 \N{MINUS SIGN}0" in words
    assert "Ask 2" not in ran.out


def test_sessions_are_told_by_name_and_last_tells_so_many(steno: Steno, three: list[Session]) -> None:
    both = steno("brief", three[0].session_id, three[1].session_id, "--json").json
    assert [each["id"] for each in both["briefs"]] == [one.session_id for one in three[:2]]
    last = steno("brief", "--last", 2, "--json").json
    assert [each["id"] for each in last["briefs"]] == [one.session_id for one in three[:0:-1]]
    every = steno("brief", "--last", 0, "--json").json
    assert len(every["briefs"]) == 3


@pytest.mark.parametrize(
    ("options", "asked"),
    [
        (["--project", "gravel"], ["Ask 2."]),
        (["--project", "TIDE", "--until", "2026-11-05"], ["Ask 1."]),
        (["--since", "2026-11-10"], ["Ask 3.", "Ask 2."]),
        (["--since", "2026-11-10", "--until", "2026-11-10"], ["Ask 2."]),
        (["--since", "2026-11-02", "--last", "1"], ["Ask 3."]),
    ],
)
@pytest.mark.usefixtures("three")
def test_projects_and_times_choose_by_the_index(steno: Steno, options: list[str], asked: list[str]) -> None:
    told = steno("brief", *options, "--json").json
    found = [turn["text"] for each in told["briefs"] for turn in each["turns"]]
    assert [text[:6] for text in found] == asked


@pytest.mark.usefixtures("three")
def test_how_many_more_sessions_fit_is_said(steno: Steno) -> None:
    within = ["--since", "2026-11-10", "--last", "1"]
    assert steno("brief", *within, "--json").json["sessions_left_out"] == 1
    options = ["--since", "2026-11-02", "--last", "1"]
    assert steno("brief", *options, "--json").json["sessions_left_out"] == 2
    assert "2 more sessions" in steno("brief", *options).out
    assert "2 more sessions omitted." in steno("brief", *options, "--format", "markdown").out


@pytest.mark.usefixtures("three")
def test_a_time_without_a_turn_finds_nothing(steno: Steno) -> None:
    for form in ("text", "markdown"):
        ran = steno("brief", "--since", "2026-11-15", "--format", form)
        assert (ran.code, ran.out) == (1, "")
        assert "no turns match" in ran.err
    ran = steno("brief", "--since", "2026-11-15", "--json")
    assert (ran.code, ran.json["briefs"]) == (1, [])


@pytest.mark.usefixtures("three")
def test_secrets_are_masked_in_markdown_and_json_unless_told_otherwise(steno: Steno) -> None:
    for form in ("markdown", "json"):
        assert _KEY not in steno("brief", "--format", form).out
        assert _KEY in steno("brief", "--format", form, "--no-redact").out


@pytest.mark.usefixtures("three")
def test_a_budget_makes_markdown_of_at_most_so_many_tokens(steno: Steno) -> None:
    ran = steno("brief", "--last", 0, "--budget", 250)
    assert ran.code == 0
    assert ran.out.startswith("# Brief of 3 sessions\n")
    assert len(ran.out) * 2 <= 250 * 7
    assert "Omitted from this session" in ran.out
    ran = steno("brief", "--last", 0, "--budget", 250, "--json")
    assert len(ran.out) * 2 <= 250 * 7


@pytest.mark.usefixtures("three")
def test_for_a_budget_no_more_sessions_are_read_than_could_fit(steno: Steno, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steno.report.brief.brief_builder._MIN_SESSION_TOKENS", 100)
    ran = steno("brief", "--last", 0, "--budget", 199)
    assert ran.out.startswith("# Brief of 2 sessions\n")
    assert ran.out.endswith(" more sessions omitted.\n")


@pytest.mark.parametrize(
    "options",
    [
        ["--budget", "5"],
        ["--budget", "500", "--format", "text"],
        ["--json", "--format", "markdown"],
        ["last", "--project", "x"],
        ["last", "--last", "2"],
        ["--since", "soon"],
    ],
)
@pytest.mark.usefixtures("three")
def test_what_makes_no_sense_is_refused(steno: Steno, options: list[str]) -> None:
    ran = steno("brief", *options)
    assert (ran.code, ran.out) == (2, "")


def test_a_turn_that_two_sessions_hold_is_told_once(steno: Steno, config: WriteConfig) -> None:
    one = _made(1, "2026-11-02T09:00:00.000Z")
    fork = one.fork().user("Ask again.").assistant("Fine.").done()
    config(one, fork)
    told = steno("brief", "--since", "2026-11-01", "--json").json["briefs"]
    found = {each["id"]: [turn["text"].strip() for turn in each["turns"]] for each in told}
    assert found == {one.session_id: ["Ask 1."], fork.session_id: ["Ask again."]}


def test_a_session_that_holds_nothing_is_told_without_an_error(steno: Steno, tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_bytes(b"")
    for form in ("text", "markdown", "json"):
        assert steno("brief", path, "--format", form).code == 0


def test_what_was_said_meanwhile_and_what_is_damaged_is_told(steno: Steno, tmp_path: Path) -> None:
    made = session(seed="between").user("Go.").assistant(tool("Bash", command="ls"))
    made.enqueue("and the legend").result("a").absorb().assistant("Done.").done()
    path = tmp_path / f"{made.session_id}.jsonl"
    path.write_bytes(made.bytes() + b"torn {\n")
    told = steno("brief", path, "--width", "120").out
    assert "│ and the legend" in told
    assert "1 damaged range" in told


def test_nothing_of_a_session_acts_on_the_terminal(steno: Steno, config: WriteConfig) -> None:
    one = session(seed=1).user("\x1b]0;pwned\x07 \u202e evil").assistant("\x1b[2J done?").done()
    config(one)
    for form in ("text", "markdown", "json"):
        for more in ((), ("--full",)):
            out = steno("brief", "--format", form, *more).out
            assert not {"\x1b", "\x07", "\u202e"} & set(out)


def test_no_session_at_all_is_said(steno: Steno) -> None:
    ran = steno("brief")
    assert (ran.code, ran.out) == (1, "")
    assert "no sessions found" in ran.err


@pytest.mark.usefixtures("demo")
@pytest.mark.parametrize("width", [40, 79, 140])
def test_lines_fit_the_screen(steno: Steno, width: int) -> None:
    from steno.sanitize.terminal import display_width as width_of

    for full in ((), ("--full",)):
        ran = steno("brief", "--demo", "--last", 0, "--width", width, *full)
        assert ran.code == 0
        assert [line for line in ran.lines if width_of(line) > width] == []


def test_full_tells_every_text_call_and_sub_agent_and_whole_parameters(steno: Steno, config: WriteConfig) -> None:
    long = "line\n" * 800
    one = session(seed=1).user("Go.\nAll of it.").assistant("First I look.", tool("Read", file_path="a"))
    one.result("x").assistant("Then I write.", tool("Write", file_path="/b.py", content=long))
    one.result().assistant(tool("Agent", description="Find", prompt="Find\nit."))
    one.agent(lambda child: child.assistant("Searching.", tool("Grep", pattern="q")).result("1"))
    one.microcompact(45_000).assistant("Done.").done()
    config(one)
    short, full = steno("brief"), steno("brief", "--full")
    assert "4 texts" not in full.out
    for words in ("All of it.", "First I look.", "Then I write.", "Searching.", "pattern: q", "Find"):
        assert words in full.out
    assert full.out.count("line") >= 800
    assert "First I look." not in short.out
    assert "45.0k saved" in short.out
    assert "[4,000 characters]" in steno("brief", "--format", "markdown").out
    whole = steno("brief", "--json", "--full").json["briefs"][0]["turns"][0]["calls"][1]
    assert (whole["input"]["content"], whole["cut"]) == (long, {})
    refused = steno("brief", "--full", "--budget", 500)
    assert refused.code == 2
    assert "--full cannot be combined with --budget" in refused.err


def test_full_tells_the_work_of_a_sub_agent_from_its_prompt_and_report(steno: Steno) -> None:
    steno("demo")
    lines = [line.strip() for line in steno("brief", "--demo", "59712d2a", "--full").lines]
    first = lines.index("▪ Explore Survey templates  completed")
    labels = ("prompt:", "work:", "report:")
    after = [line for line in lines[first:] if line in labels][:3]
    assert after == list(labels)
    assert lines[lines.index("work:", first) + 1] == "I count the words in the templates."
