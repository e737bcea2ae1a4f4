"""The entry point: help, versions, completion, pipes, terminals, and what gets imported."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest
from tests.builders import session
from tests.cli.conftest import Steno

import steno as package
from steno.cli.main import COMMANDS
from steno.demo.recording import DemoReport, read_recording

SOURCE = str(Path(package.__file__).parent.parent)


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": SOURCE, "PYTHONUTF8": "1", **more}


def outside(*arguments: str, **more: str) -> subprocess.CompletedProcess[bytes]:
    """Run `steno` in a process of its own."""
    command = [sys.executable, "-m", "steno", *arguments]
    return subprocess.run(command, env=environment(**more), capture_output=True, check=False)


def at_terminal(*arguments: str, **more: str) -> str:
    """Return what somebody at a terminal of 80 columns sees."""
    env = environment(TERM="xterm", **more)
    for name in ("NO_COLOR", "COLUMNS", "LINES"):
        if name not in more:
            env.pop(name, None)
    child = pexpect.spawn(sys.executable, ["-m", "steno", *arguments], env=env, dimensions=(24, 80), timeout=120)
    seen: bytes = child.read()
    child.close()
    return seen.decode()


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_tells_every_command_and_how_to_name_a_session(steno: Steno, flag: str) -> None:
    ran = steno(flag)
    assert ran.code == 0
    assert all(f"  {name} " in ran.out for name in COMMANDS)
    assert "SESSION is a path, an ID" in ran.out
    assert "\n    steno show last " in ran.out
    assert "\n  Exit codes:\n    0  success\n" in ran.out


@pytest.mark.parametrize("name", list(COMMANDS))
def test_every_command_has_help(steno: Steno, name: str) -> None:
    ran = steno(name, "-h")
    assert ran.code == 0
    assert ran.out.startswith(f"Usage: steno {name}")
    assert "--json" in ran.out
    options = re.findall(r"^  (?:-\w, )?(--[a-z-]+).*$", ran.out, re.MULTILINE)
    assert {"--help", "--json", "--color"} <= set(options)


@pytest.mark.parametrize("flag", ["-V", "--version"])
def test_the_version(steno: Steno, flag: str) -> None:
    assert steno(flag).out == f"steno {package.__version__}\n"
    assert outside(flag).stdout.decode() == f"steno {package.__version__}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_are_printed(steno: Steno, shell: str) -> None:
    ran = steno("--completion", shell)
    assert ran.code == 0
    assert "_STENO_COMPLETE" in ran.out


def test_sessions_are_completed_by_id_with_their_titles(demo: DemoReport) -> None:
    assert demo.sessions
    ran = outside(_STENO_COMPLETE="zsh_complete", COMP_WORDS="steno show --demo 642", COMP_CWORD="3")
    words = ran.stdout.decode()
    assert "6429f00f-fc3c-4f28-a384-ea05996b9683\nSmooth the curve, keep the surge" in words


def test_listing_imports_nothing_it_does_not_need(demo: DemoReport) -> None:
    assert demo.sessions
    code = (
        "import sys\nfrom steno.cli.main import run\n"
        "try:\n    run(['ls', '--demo'])\nexcept SystemExit:\n    pass\n"
        "sys.stderr.write(' '.join(sys.modules))"
    )
    ran = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, check=True)
    modules = set(ran.stderr.decode().split())
    heavy = {"rich", "markdown_it", "pygments", "subprocess", "pathlib", "dataclasses", "asyncio"}
    assert not heavy & modules
    assert not {name for name in modules if name.startswith(("steno.demo", "steno.session.turns.turn_builder"))}


def test_help_imports_no_command() -> None:
    code = "import sys\nfrom steno.cli.main import run\ntry:\n    run(['-h'])\nexcept SystemExit:\n    pass\nsys.stderr.write(' '.join(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], env=environment(), capture_output=True, check=True)
    assert not {"msgspec", "steno.cli.commands.ls", "rich"} & set(ran.stderr.decode().split())


def test_a_reader_that_goes_away_is_no_error(demo: DemoReport) -> None:
    assert demo.sessions
    child = subprocess.Popen(
        [sys.executable, "-m", "steno", "show", "--demo", "6429", "--records", "--json"],
        env=environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.close()
    error = child.stderr.read()
    child.stderr.close()
    assert child.wait() == 0
    assert error == b""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a full disk")
def test_a_full_disk_is_said(demo: DemoReport) -> None:
    assert demo.sessions
    with Path("/dev/full").open("wb") as full:
        ran = subprocess.run(
            [sys.executable, "-m", "steno", "ls", "--demo"],
            env=environment(),
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert ran.returncode == 3
    assert ran.stderr.decode().startswith("steno: cannot read or write: No space left")
    assert b"Traceback" not in ran.stderr


def test_an_interrupt_ends_quietly(steno: Steno, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt() -> float:
        raise KeyboardInterrupt

    monkeypatch.setattr("steno.store.environment.now", interrupt)
    ran = steno("ls")
    assert (ran.code, ran.out, ran.err) == (130, "", "")


def test_a_terminal_gets_colours_and_the_next_commands(demo: DemoReport) -> None:
    seen = at_terminal("ls", "--demo", "--limit", "3")
    assert "\x1b[1m" in seen
    assert f"3 of {demo.sessions}." in seen
    assert "steno show --demo 7859" in seen
    plain = at_terminal("ls", "--demo", "--limit", "3", NO_COLOR="1")
    assert "\x1b" not in plain
    assert "steno show --demo 7859" in plain


def test_next_commands_can_be_pasted(tmp_path: Path) -> None:
    folder = tmp_path / "my talks"
    folder.mkdir()
    (folder / "talk.jsonl").write_bytes(session().turn("Hi", "Ho").bytes())
    where = f"--root '{folder}'"
    listed = at_terminal("ls", "--root", str(folder), "--width", "200", NO_COLOR="1")
    assert f"steno show {where} talk" in listed
    shown = at_terminal("show", "--root", str(folder), "last", "--width", "200", NO_COLOR="1")
    assert f"steno show {where} talk --turn N" in shown
    path = str(folder / "talk.jsonl")
    shown = at_terminal("show", path, "--width", "200", NO_COLOR="1")
    assert f"steno show '{path}' --turn N" in shown


def test_a_session_without_a_name_of_its_own_is_offered_by_its_path(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "full.jsonl").write_bytes(session(seed=folder).turn("Hi", "Ho").bytes())
        os.utime(tmp_path / folder / "full.jsonl", (1e9, 1e9))
    seen = at_terminal("ls", "--root", str(tmp_path), "--width", "300", NO_COLOR="1")
    assert f"steno show --root {tmp_path} {tmp_path}/one/full.jsonl" in seen


def test_next_commands_stay_within_the_width(demo: DemoReport) -> None:
    assert demo.sessions
    for columns in ("40", "60", "80"):
        for command in (["ls", "--limit", "3"], ["show", "7859"]):
            seen = at_terminal(*command, "--demo", "--width", columns, NO_COLOR="1")
            assert max(len(line) for line in seen.splitlines()) <= int(columns), seen
            assert "steno show --demo 7859" in seen


def test_a_closed_output_is_said_in_one_line(demo: DemoReport) -> None:
    assert demo.sessions
    ran = subprocess.run(
        ["/bin/sh", "-c", '"$0" -m steno ls --demo >&-', sys.executable],
        env=environment(),
        capture_output=True,
        check=False,
    )
    assert ran.returncode == 3
    assert ran.stderr == b"steno: cannot write: standard output is closed\n"


def test_no_next_commands_when_piped(demo: DemoReport) -> None:
    assert demo.sessions
    assert b"steno show" not in outside("ls", "--demo").stdout


def test_marks_are_plain_letters_where_there_is_no_unicode(demo: DemoReport) -> None:
    assert demo.sessions
    ran = outside("show", "--demo", "6429", PYTHONUTF8="0", PYTHONIOENCODING="ascii")
    assert ran.returncode == 0
    assert b"  v Edit        src/tidegauge/smooth.py  +1 -1" in ran.stdout
    assert ran.stdout.isascii()


def test_long_stories_go_through_the_pager_and_short_ones_do_not(demo: DemoReport, tmp_path: Path) -> None:
    assert demo.sessions
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\necho PAGED\ncat\n")
    pager.chmod(0o700)
    long = at_terminal("show", "--demo", "6429", PAGER=str(pager))
    assert long.startswith("PAGED")
    assert "Use a median filter" in long
    assert "\x1b[1m" in long
    short = at_terminal("show", "--demo", "7859", PAGER=str(pager))
    assert "PAGED" not in short
    unpaged = at_terminal("show", "--demo", "6429", "--no-pager", PAGER=str(pager))
    assert "PAGED" not in unpaged


def test_raw_bytes_are_cleaned_for_a_terminal(demo: DemoReport) -> None:
    assert demo.sessions
    seen = at_terminal("show", "--demo", "4764", "--raw", "07db15fc", NO_COLOR="1")
    assert '"type":"tool_result"' in seen
    assert not re.search("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202e\u200b]", seen)


def test_a_terminal_cannot_be_written_to_by_a_session(demo: DemoReport) -> None:
    assert demo.sessions
    ours = re.compile(r"\x1b\[[0-9;]*m")
    for view in ("--turns", "--graph", "--records"):
        seen = ours.sub("", at_terminal("show", "--demo", "4764", view, "--no-pager"))
        assert "\x1b" not in seen, view
        assert "\x9b" not in seen, view


def test_the_demo_is_written_listed_and_written_again(steno: Steno) -> None:
    ran = steno("demo")
    assert ran.code == 0
    demo = read_recording()
    size = sum(len(data) for data, _ in demo.files.values())
    counts = f"{demo.sessions} sessions in {demo.projects} projects, {demo.agents} sub-agents"
    assert ran.lines[0] == f"Wrote {counts}, {size / 1e6:.1f} MB"
    assert ran.lines[1] == f"to {os.environ['STENO_HOME']}/demo"
    assert "Smooth the curve, keep the surge" in ran.out
    assert steno("demo").lines[0] == ran.lines[0]
    report = steno("demo", "--json").json
    assert (report["sessions"], report["root"]) == (demo.sessions, f"{os.environ['STENO_HOME']}/demo")


def test_a_demo_that_cannot_be_written_is_said(steno: Steno) -> None:
    Path(os.environ["STENO_HOME"]).write_text("in the way")
    ran = steno("demo")
    assert ran.code == 3
    assert ran.err.startswith("steno: cannot write ")


def test_a_fault_of_our_own_is_one_line(steno: Steno, monkeypatch: pytest.MonkeyPatch) -> None:
    def fault() -> float:
        raise RuntimeError("the \x1b[31mtide\n is out")

    monkeypatch.setattr("steno.store.environment.now", fault)
    monkeypatch.delenv("STENO_DEBUG", raising=False)
    ran = steno("ls")
    assert (ran.code, ran.out) == (3, "")
    first, hint = ran.err.splitlines()
    assert first.startswith("steno: internal error: RuntimeError: the ")
    assert "\x1b" not in ran.err
    assert "STENO_DEBUG" in hint
    monkeypatch.setenv("STENO_DEBUG", "1")
    told = steno("ls")
    assert told.code == 3
    assert told.err.startswith("Traceback")
    assert "\x1b" not in told.err
