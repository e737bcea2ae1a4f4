"""What goes wrong is said in one line, with the right exit code and without a traceback."""

import errno
import os
import sys
from pathlib import Path

import pytest
from tests.builders import session
from tests.cli.conftest import Ran, Steno
from tests.conftest import WriteConfig

from steno.demo.recording import DemoReport


def complains(ran: Ran, code: int, *words: str) -> None:
    first = ran.err.splitlines()[0]
    assert ran.code == code, ran
    assert first.startswith("steno: ")
    assert all(word in first for word in words), first
    assert "Traceback" not in ran.err


def test_a_file_nobody_may_read(steno: Steno, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    path = tmp_path / "shut.jsonl"
    path.write_bytes(b"{}\n")
    path.chmod(0)
    complains(steno("show", path), 3, "shut.jsonl")


def test_a_link_to_itself(steno: Steno, tmp_path: Path) -> None:
    (tmp_path / "loop.jsonl").symlink_to(tmp_path / "loop.jsonl")
    complains(steno("show", tmp_path / "loop.jsonl"), 3, "loop.jsonl")


def test_a_folder_is_no_session(steno: Steno, tmp_path: Path) -> None:
    complains(steno("show", tmp_path), 3, "is a directory")


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pipes in folders")
@pytest.mark.parametrize("view", [[], ["--records"], ["--as-resumed"]])
def test_a_pipe_does_not_make_it_wait(steno: Steno, tmp_path: Path, view: list[str]) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    complains(steno("show", tmp_path / "pipe.jsonl", *view), 3, "pipe.jsonl")


def test_a_path_to_nothing(steno: Steno, tmp_path: Path) -> None:
    complains(steno("show", tmp_path / "gone.jsonl"), 3, "gone.jsonl")


def test_a_name_nobody_has(steno: Steno) -> None:
    complains(steno("show", "deadbeef"), 1, "deadbeef")


def test_a_name_too_short_for_an_id(steno: Steno) -> None:
    ran = steno("show", "ab")
    complains(ran, 1, "'ab'")
    assert "at least 4" in ran.err


def test_a_name_that_fits_two(steno: Steno, config: WriteConfig) -> None:
    ids = ("abcd1111-0000-4000-8000-000000000000", "abcd1122-0000-4000-8000-000000000000")
    config(*(session(seed=i, session_id=i).turn("Hi", "Ho") for i in ids))
    ran = steno("show", "abcd")
    complains(ran, 2, "2 sessions", "abcd")
    assert all(f" {name[:8]}  Hi " in ran.err for name in ids)


@pytest.mark.parametrize("content", [b"", b"\x00\xff\xfe" * 400, b"\n\n\n"])
def test_a_file_without_a_record_is_said_to_be_so(steno: Steno, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "nothing.jsonl"
    path.write_bytes(content)
    for view in ([], ["--json"], ["--turns", "--json"], ["--graph"]):
        ran = steno("show", path, *view)
        complains(ran, 1, "no records in")
        assert ran.out == ""
    for view in ("--as-resumed", "--messages"):
        ran = steno("show", path, view, "--json")
        assert (ran.code, ran.json) == (0, [])
    pieces = steno("show", path, "--records", "--json").json_lines
    assert sum(piece["length"] for piece in pieces) == len(content)
    assert all(piece["gap"] for piece in pieces)


def test_a_client_that_is_none(steno: Steno, demo: DemoReport) -> None:
    assert demo.sessions
    complains(steno("show", "--demo", "last", "--as-resumed", "--client", "new"), 2, "'new'")
    ran = steno("show", "--demo", "last", "--as-resumed", "--client", "0.1.0")
    complains(ran, 2, "0.1.0")
    assert "2.1.325" in ran.err


@pytest.mark.parametrize("words", ["soon", "2026-13-40", "7 parsecs", ""])
def test_a_time_that_is_none(steno: Steno, words: str) -> None:
    if words:
        complains(steno("ls", "--since", words), 2, words)
        complains(steno("ls", "--until", words), 2, words)


def test_a_root_that_is_not_there(steno: Steno, tmp_path: Path) -> None:
    complains(steno("ls", "--root", tmp_path / "gone"), 3, "gone")


@pytest.mark.parametrize("command", [["ls"], ["ls", "--json"], ["show", "last"]])
def test_a_root_nobody_may_read(
    steno: Steno, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    def deny(path: str) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", path)

    monkeypatch.setattr(os, "scandir", deny)
    ran = steno(*command, "--root", tmp_path)
    complains(ran, 3, str(tmp_path), "permission denied")
    assert len(ran.err.splitlines()) == 1


def test_the_demo_before_it_is_written(steno: Steno) -> None:
    ran = steno("ls", "--demo")
    complains(ran, 1, "no demo")
    assert "steno demo" in ran.err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["lost"], "lost"),
        (["ls", "--nope"], "--nope"),
        (["ls", "--limit", "many"], "many"),
        (["show"], "SESSION"),
        (["show", "x", "--width", "3"], "3"),
        (["--color"], "color"),
        (["demo", "--reset"], "--reset"),
        (["show", "x", "--records", "--raw", "y"], "--raw"),
        (["show", "x", "--graph", "--records"], "--records"),
        (["show", "x", "--graph", "--turn", "1"], "--turn"),
        (["show", "x", "--records", "--branch", "1"], "--branch"),
        (["show", "x", "--messages", "--agent", "y"], "--agent"),
        (["show", "x", "--graph", "--thinking"], "--thinking"),
        (["show", "x", "--records", "--all"], "--all"),
        (["show", "x", "--client", "2.1.325"], "--client"),
        (["show", "x", "--messages", "--prompt", "Hi"], "--prompt"),
        (["show", "x", "--raw", "y", "--json"], "--json"),
        (["show", "x", "--branch", "1", "--agent", "y"], "--agent"),
    ],
)
def test_wrong_usage(steno: Steno, arguments: list[str], words: str) -> None:
    complains(steno(*arguments), 2, words)


@pytest.mark.parametrize(
    "part",
    [["--turn", "99"], ["--branch", "9"], ["--agent", "ffff"], ["--agent", ""], ["--raw", "nope"], ["--raw", ""]],
)
def test_a_part_that_is_not_there(steno: Steno, demo: DemoReport, part: list[str]) -> None:
    assert demo.sessions
    complains(steno("show", "--demo", "last", *part), 1, part[1])


def test_a_clock_that_is_none(steno: Steno, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STENO_NOW", "teatime")
    complains(steno("ls"), 2, "teatime")


def test_a_message_cannot_act_on_the_terminal(steno: Steno) -> None:
    ran = steno("show", "\x1b[2Jevil\nnext")
    complains(ran, 1, "evil")
    assert "\x1b" not in ran.err
    assert len(ran.err.splitlines()) == 2


def test_there_being_no_home_is_said(steno: Steno, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "USERPROFILE", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name)
    complains(steno("ls"), 2, "home")
