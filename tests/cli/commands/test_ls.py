"""`steno ls`: what there is, newest first, in any width."""

import errno
import os
import shutil
import sys
from pathlib import Path

import pytest
from tests.builders import Session, session, text, tool
from tests.cli.conftest import Steno
from tests.conftest import WriteConfig

from steno.demo.recording import DemoReport
from steno.sanitize.terminal import display_width


def asked(title: str, start: str, seed: str = "") -> Session:
    """Return a session with one answered prompt."""
    built = session(seed=seed or title, start=start, cwd="/home/ada/tide", branch="surge")
    return built.turn("What is the tide?", "High at noon.").title(title)


def test_sessions_are_listed_by_day_newest_first(steno: Steno, config: WriteConfig) -> None:
    config(
        asked("Oldest", "2025-03-01T08:00:00.000Z"),
        asked("This week", "2026-11-11T08:00:00.000Z"),
        asked("One day ago", "2026-11-14T08:00:00.000Z"),
        asked("This morning", "2026-11-15T08:00:00.000Z"),
    )
    ran = steno("ls")
    told = [line.strip() for line in ran.lines if line]
    titles = ("Oldest", "This week", "One day ago", "This morning")
    shown = [next((title for title in titles if title in line), line.split("  ")[0]) for line in told[1:]]
    assert shown == [
        *("Today", "This morning", "Yesterday", "One day ago"),
        *("Wednesday 11 November", "This week", "1 March 2025", "Oldest"),
    ]


def test_a_row_says_what_and_where_and_how_much(steno: Steno, config: WriteConfig) -> None:
    config(asked("Tide table", "2026-11-15T08:00:00.000Z"))
    head, _, _, row = steno("ls", "--width", 120).lines
    assert head.split() == ["ID", "SESSION", "PROJECT", "BRANCH", "MODEL", "TURNS", "SIZE", "LAST"]
    assert row.split()[1:7] == ["Tide", "table", "tide", "surge", "opus-5-5", "1"]
    assert row.endswith(" 08:00")


@pytest.mark.parametrize("columns", [40, 80, 100, 120, 200])
def test_rows_fit_the_width(steno: Steno, demo: DemoReport, columns: int) -> None:
    lines = steno("ls", "--demo", "--width", columns).lines
    assert len(lines) > demo.sessions
    assert max(map(display_width, lines)) <= columns


def test_branch_and_model_go_first_when_the_room_is_short(steno: Steno, demo: DemoReport) -> None:
    assert demo.sessions
    heads = [steno("ls", "--demo", "--width", n).lines[0].split() for n in (80, 100, 120)]
    assert heads[0] == ["ID", "SESSION", "PROJECT", "TURNS", "LAST"]
    assert "SIZE" in heads[1]
    assert "BRANCH" in heads[2]


def test_marks_and_words_say_how_a_session_ended(steno: Steno, config: WriteConfig) -> None:
    call = tool("Bash", command="make")
    config(
        session(seed="cut", start="2026-11-15T08:00:00.000Z").user("Build it.").assistant(call),
        session(seed="ask", start="2026-11-15T08:10:00.000Z")
        .user("Which?")
        .assistant(tool("AskUserQuestion", questions=[])),
        session(seed="bad", start="2026-11-15T08:20:00.000Z").user("Go.").fatal("too long"),
        session(seed="run", start="2026-11-15T11:59:30.000Z").user("Test it.").assistant(call),
        asked("Quiet", "2026-11-15T07:00:00.000Z"),
    )
    rows = [line for line in steno("ls").lines if "  " in line and "sessions" not in line]
    ends = {row[0]: row.split()[-1] for row in rows}
    assert ends["◻"] == "interrupted"
    assert ends["!"] == "waiting"
    assert ends["✗"] == "failed"
    assert ends["●"] == "running"
    assert rows[1].startswith("●")
    assert "now" in rows[1]
    assert next(row for row in rows if "Quiet" in row).startswith("  ")


@pytest.mark.parametrize(
    ("status", "titles"),
    [
        ("live", ["Test it.", "Which?"]),
        ("running", ["Test it."]),
        ("waiting", ["Which?", "Left."]),
        ("finished", ["Quiet"]),
        ("interrupted", ["Build it."]),
        ("failed", ["Go."]),
        ("archived", []),
    ],
)
def test_sessions_are_listed_by_how_they_stand(
    steno: Steno, config: WriteConfig, status: str, titles: list[str]
) -> None:
    call, question = tool("Bash", command="make"), tool("AskUserQuestion", questions=[])
    config(
        session(seed="cut", start="2026-11-15T08:00:00.000Z").user("Build it.").assistant(call),
        session(seed="ask", start="2026-11-15T08:10:00.000Z").user("Which?").assistant(question),
        session(seed="left", start="2026-11-10T08:10:00.000Z").user("Left.").assistant(question),
        session(seed="bad", start="2026-11-15T08:20:00.000Z").user("Go.").fatal("too long"),
        session(seed="run", start="2026-11-15T11:59:30.000Z").user("Test it.").assistant(call),
        asked("Quiet", "2026-11-15T07:00:00.000Z"),
    )
    ran = steno("ls", "--json", "--status", status)
    assert [each["title"] for each in ran.json] == titles
    assert ran.code == (0 if titles else 1)


def test_small_sessions_are_hidden_and_counted(steno: Steno, config: WriteConfig) -> None:
    config(
        asked("Real", "2026-11-15T08:00:00.000Z"),
        session(seed="alone", start="2026-11-15T09:00:00.000Z").command("exit"),
    )
    assert [each["title"] for each in steno("ls", "--json").json] == ["Real"]
    every = steno("ls", "--all", "--json").json
    assert [(each["title"], each["hidden"]) for each in every] == [("/exit", True), ("Real", False)]


def test_nothing_but_hidden_sessions_is_said(steno: Steno, config: WriteConfig) -> None:
    config(session(seed="alone").command("exit"))
    assert steno("ls").out == "No sessions to show; 1 session without a prompt hidden.\n"


def test_a_prompt_that_waits_for_its_answer_is_listed(steno: Steno, config: WriteConfig) -> None:
    config(
        session(seed="new", start="2026-11-15T11:59:30.000Z").user("Just asked"),
        session(seed="old", start="2026-11-15T08:00:00.000Z").user("Never answered"),
    )
    listed = {each["title"]: each["status"] for each in steno("ls", "--json").json}
    assert listed == {"Just asked": "running", "Never answered": "interrupted"}


@pytest.mark.parametrize("json", [[], ["--json"]])
def test_files_that_cannot_be_read_are_counted(
    steno: Steno, config: WriteConfig, monkeypatch: pytest.MonkeyPatch, json: list[str]
) -> None:
    config(asked("One", "2026-11-15T08:00:00.000Z"), asked("Two", "2026-11-15T09:00:00.000Z"))
    shut = next(e["path"] for e in steno("ls", "--json").json if e["title"] == "Two")
    plain = os.open

    def deny(path: str, flags: int) -> int:
        if path == shut:
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return plain(path, flags)

    monkeypatch.setattr(os, "open", deny)
    ran = steno("ls", *json)
    assert "One" in ran.out
    assert ran.err == f"steno: 1 path could not be read, such as {shut}\n"


def test_what_the_limit_left_out_is_said(steno: Steno, config: WriteConfig) -> None:
    config(*(asked(f"Talk {n}", f"2026-11-15T0{n}:00:00.000Z") for n in range(1, 6)))
    said = "showing 3 of 5 sessions; use --limit 0 to list all"
    piped = steno("ls", "--limit", 3)
    assert piped.lines[-1] == said
    assert "Today  3 shown" in piped.out
    assert steno("ls", "--limit", 3, "--json").err == f"steno: {said}\n"
    every = steno("ls", "--limit", 0)
    assert "--limit" not in every.out
    assert "Today  5 sessions" in every.out
    assert steno("ls", "--limit", 0, "--json").err == ""
    chosen = steno("ls", "--limit", 3, "--project", "tide").lines[-1]
    assert chosen.startswith("showing the newest 3 matching sessions")
    assert "[default: 30" in steno("ls", "--help").out


@pytest.mark.parametrize("wanted", [["--project", "nope"], ["--since", "1h"]])
def test_nothing_that_fits_is_an_exit_code(steno: Steno, config: WriteConfig, wanted: list[str]) -> None:
    config(asked("Tide table", "2026-11-15T08:00:00.000Z"))
    ran = steno("ls", *wanted)
    assert (ran.code, ran.out[:17]) == (1, "No sessions match")
    ran = steno("ls", "--json", *wanted)
    assert (ran.code, ran.json) == (1, [])


def test_the_demo_is_offered_by_a_name_the_shell_finds(
    steno: Steno, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", [".venv/bin/steno"])
    monkeypatch.setenv("PATH", "")
    assert "`.venv/bin/steno demo` to write" in steno("ls").out
    (tmp_path / "steno").touch(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert "`steno demo` to write" in steno("ls").out


def test_json_holds_nothing_that_acts_on_a_terminal(steno: Steno, config: WriteConfig) -> None:
    title = "a\x7f\x85\x9b\u2028\u202e\u200b\ufeff\u2066\U000e0041é日b"
    config(asked(title, "2026-11-15T08:00:00.000Z"))
    ran = steno("ls", "--json")
    assert ran.json[0]["title"] == " ".join(title.split())
    shown = r"a\u007f \u009b \u202e\u200b\ufeff\u2066\udb40\udc41é日b"
    assert shown in ran.out
    path = ran.json[0]["path"]
    for view in ("--records", "--messages", "--turns"):
        assert "\x9b" not in steno("show", path, view, "--json").out


@pytest.mark.parametrize(
    ("wanted", "titles"),
    [
        (["--since", "yesterday"], ["B", "A"]),
        (["--since", "2h"], []),
        (["--since", "5h"], ["B"]),
        (["--until", "2026-11-14"], ["A", "Z"]),
        (["--until", "2026-11-13"], ["Z"]),
        (["--since", "2026-11-14", "--until", "yesterday"], ["A"]),
        (["--limit", "1"], ["B"]),
        (["--limit", "0"], ["B", "A", "Z"]),
        (["--project", "TIDE"], ["B", "A", "Z"]),
        (["--project", "moss"], []),
    ],
)
def test_sessions_can_be_chosen(steno: Steno, config: WriteConfig, wanted: list[str], titles: list[str]) -> None:
    config(
        asked("Z", "2026-11-01T08:00:00.000Z"),
        asked("A", "2026-11-14T08:00:00.000Z"),
        asked("B", "2026-11-15T08:00:00.000Z"),
    )
    assert [each["title"] for each in steno("ls", "--json", *wanted).json] == titles


def test_json_has_everything_about_a_session(steno: Steno, demo: DemoReport) -> None:
    listed = steno("ls", "--demo", "--json").json
    assert len(listed) == demo.sessions
    one = next(each for each in listed if each["title"] == "Three languages")
    assert Path(one["path"]).stem == one["id"]
    assert one | {"id": "", "path": "", "size": 0} == {
        "id": "",
        "path": "",
        "size": 0,
        "title": "Three languages",
        "hidden": False,
        "project": "/home/ada/invoice-render",
        "branch": "locales",
        "model": "claude-opus-5-5",
        "version": "2.1.325",
        "dialect": "claude",
        "entrypoint": "cli",
        "turns": 2,
        "step_records": 17,
        "answered": True,
        "agents": 3,
        "archived_only": False,
        "status": "finished",
        "started": one["started"],
        "ended": one["ended"],
        "modified": one["modified"],
    }
    assert one["started"] < one["ended"] <= one["modified"]


def test_titles_cannot_act_on_the_terminal(steno: Steno, config: WriteConfig) -> None:
    config(asked("\x1b[2J\u202eevil\r\nline", "2026-11-15T08:00:00.000Z"))
    out = steno("ls").out
    assert "␛[2J\\u{202e}evil line" in out
    assert "\x1b" not in out


def test_ids_are_as_long_as_it_takes_to_tell_them_apart(steno: Steno, config: WriteConfig) -> None:
    ids = ("abcd1111-0000-4000-8000-000000000000", "abcd1122-0000-4000-8000-000000000000")
    start = "2026-11-15T08:00:00.000Z"
    config(*(session(seed=i, session_id=i, start=start).turn("Hi", "Ho") for i in ids))
    rows = [line.split()[0] for line in steno("ls").lines if line.startswith("  abcd")]
    assert sorted(rows) == ["abcd111", "abcd112"]
    assert steno("show", "abcd112").code == 0


def test_without_sessions_it_says_so_and_offers_the_demo(steno: Steno) -> None:
    ran = steno("ls")
    assert ran.code == 0
    assert ran.out.startswith(f"No sessions in {os.environ['CLAUDE_CONFIG_DIR']}.")
    assert "steno demo" in ran.out
    assert steno("ls", "--json").json == []


def test_a_title_that_an_old_client_left_elsewhere_is_found(steno: Steno, demo: DemoReport) -> None:
    assert demo.sessions
    assert "Tide chart drawn upside down" in steno("ls", "--demo").out


def test_several_roots_are_listed_together(steno: Steno, tmp_path: Path) -> None:
    for name in ("one", "two"):
        folder = tmp_path / name
        folder.mkdir()
        data = session(seed=name).turn(f"From {name}", text("Yes.")).bytes()
        (folder / "talk.jsonl").write_bytes(data)
    listed = steno("ls", "--json", "--root", tmp_path / "one", "--root", tmp_path / "two").json
    assert {each["title"] for each in listed} == {"From one", "From two"}


def test_the_folders_of_the_config_file_are_listed_shown_and_followed(
    steno: Steno, config: WriteConfig, tmp_path: Path
) -> None:
    made = session(seed="laptop").turn("Hi", "Ho").title("On the laptop")
    shutil.move(config(made), tmp_path / "laptop")
    home = Path(os.environ["STENO_HOME"])
    home.mkdir(parents=True)
    (home / "config.toml").write_text('[index]\nroots = ["laptop", "nowhere"]\n')
    ran = steno("ls", "--json")
    assert (ran.code, ran.err) == (0, "")
    assert [each["id"] for each in ran.json] == [made.session_id]
    assert "On the laptop" in steno("show", made.session_id[:6]).out
    assert "Ho" in steno("tail", "-n").out
    assert "Ho" in steno("tail", "-n", "--all", "--since", "2020-01-01").out
    (home / "config.toml").write_text('[index]\nroots = ["empty"]\n')
    assert str(tmp_path / "empty") in steno("ls").out


@pytest.mark.parametrize("call", [("ls",), ("show", "last"), ("tail", "-n"), ("archive",)])
def test_a_broken_config_file_is_an_error_in_one_line(steno: Steno, config: WriteConfig, call: tuple[str, ...]) -> None:
    config(session().turn("Hi", "Ho"))
    home = Path(os.environ["STENO_HOME"])
    home.mkdir(parents=True)
    (home / "config.toml").write_text("[index]\nroots = 7\n")
    ran = steno(*call)
    assert ran.code == 2
    assert "config.toml, line 2" in ran.err
    assert len(ran.err.splitlines()) == 1
