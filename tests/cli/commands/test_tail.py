"""`steno tail`: sessions as they are written. The live tests run the real program on real files."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.builders import Session, session, thinking, tool
from tests.cli.conftest import Steno
from tests.conftest import WriteConfig

from steno.demo.recording import DemoReport
from steno.sanitize.terminal import display_width
from steno.store.environment import parse_time

AGENT = "a1b2c3d4e5f60718a"


class Tail:
    """A `steno tail` that runs; every wait is bounded by the timeout of the test alone."""

    def __init__(self, *arguments: object) -> None:
        # Files are written now; and what is not flushed must be noticed.
        unwanted = {"STENO_NOW", "PYTHONUNBUFFERED"}
        env = {name: value for name, value in os.environ.items() if name not in unwanted}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "steno", "tail", *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**env, "PYTHONPATH": os.pathsep.join(sys.path)},
        )

    def line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline().decode()
        assert line, self.process.communicate()[1].decode()
        return line.rstrip("\n")

    def until(self, words: str) -> list[str]:
        """Return the lines up to the first with these words in it."""
        lines = [self.line()]
        while words not in lines[-1]:
            lines.append(self.line())
        return lines

    def event(self, kind: str, **fields: object) -> dict[str, Any]:
        """Return the first event of a kind with these fields."""
        while True:
            event = json.loads(self.line())
            if event["event"] == kind and all(event.get(k) == v for k, v in fields.items()):
                return event

    def interrupt(self) -> tuple[int, str, str]:
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate()
        return self.process.returncode, out.decode(), err.decode()


@pytest.fixture
def tail() -> Iterator[Callable[..., Tail]]:
    running: list[Tail] = []

    def start(*arguments: object) -> Tail:
        running.append(Tail(*arguments))
        return running[-1]

    yield start
    for each in running:
        each.process.kill()
        each.process.communicate()


def lines_of(made: Session) -> list[bytes]:
    return made.bytes().splitlines(keepends=True)


def path_of(made: Session) -> Path:
    name = next(name for name in made.files() if name.endswith(f"{made.session_id}.jsonl"))
    return Path(os.environ["CLAUDE_CONFIG_DIR"]) / name


def append(path: Path, *lines: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.write(b"".join(lines))


def asked() -> Session:
    made = session().user("Why is the chart flat?")
    made.assistant("Let me look.", tool("Bash", command="make test"))
    return made.result("Exit code 2\nE  assert 41 == 0", error=True).assistant("It was the axis.")


# What there is


def test_the_last_turn_is_told_in_the_words_of_show(steno: Steno, demo: DemoReport) -> None:
    assert demo.sessions
    told = steno("tail", "--demo", 6429, "-n", "--width", 80).lines
    shown = steno("show", "--demo", 6429, "--turn", 2, "--width", 80).lines
    steps = [line for line in shown[4:] if re.match(r"  [▸▾]|      ", line)]
    assert len(steps) == 10
    assert [line for line in told if line in steps] == steps
    assert told[0] == "● 6429  Smooth the curve, keep the surge  tidegauge"


def test_so_many_turns_as_wanted_are_told(steno: Steno, config: WriteConfig) -> None:
    made = session().turn("one", "first").turn("two", "second").turn("three", "third")
    config(made)
    out = steno("tail", made.session_id, "-n", "--last", 2).out
    assert "│ one" not in out
    assert "│ two" in out
    assert "    third" in out
    assert steno("tail", made.session_id, "-n", "--last", 0).out == ""


def test_turns_since_a_time_are_told(steno: Steno, config: WriteConfig) -> None:
    made = session().turn("one", "first").wait(7200).turn("two", "second")
    config(made)
    at = made.records()[-2]["timestamp"]
    out = steno("tail", made.session_id, "-n", "--since", at).out
    assert "│ one" not in out
    assert "│ two" in out


def test_without_a_name_the_session_of_this_folder_is_taken(
    steno: Steno, config: WriteConfig, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = session(seed="here", cwd=str(tmp_path)).turn("Here?", "Here.")
    config(here, session(seed="there").wait(9000).turn("There?", "There."))
    (tmp_path / "src").mkdir()
    monkeypatch.chdir(tmp_path / "src")
    assert "Here." in steno("tail", "-n").out
    monkeypatch.chdir(tmp_path.parent)
    assert "There." in steno("tail", "-n").out


def test_nobody_waits_in_a_session_of_last_week(steno: Steno, config: WriteConfig) -> None:
    made = session().turn("one", "first")
    config(made)
    path = path_of(made)
    now = parse_time(os.environ["STENO_NOW"])
    assert now is not None
    os.utime(path, (now - 60, now - 60))
    assert "waiting for input" in steno("tail", made.session_id, "-n").out
    os.utime(path, (now - 7 * 86_400, now - 7 * 86_400))
    assert "waiting for input" not in steno("tail", made.session_id, "-n").out


def test_sub_agents_are_nested_under_their_description(steno: Steno, demo: DemoReport) -> None:
    assert demo.agents
    told = steno("tail", "--demo", 2423, "-n", "--last", 2, "--width", 80).lines
    at = told.index("    ┌ general-purpose  Check inside links")
    assert told[at + 1].startswith("    │   ▸ Bash")
    assert "gravel check --inside" in told[at + 1]


def test_json_is_one_object_an_event(steno: Steno, demo: DemoReport) -> None:
    assert demo.sessions
    events = steno("tail", "--demo", 6429, "-n", "--json").json_lines
    kinds = [event["event"] for event in events]
    assert kinds[0] == "turn"
    assert kinds.count("step") == kinds.count("outcome") == 4
    assert events[0]["prompt"]["text"] == "Use a median filter, it keeps edges."
    assert {event["session"][:4] for event in events} == {"6429"}


@pytest.mark.parametrize("columns", [40, 80, 100])
def test_no_line_of_any_session_is_wider_than_the_screen(steno: Steno, demo: DemoReport, columns: int) -> None:
    told = steno("tail", "--all", "--root", demo.root, "-n", "--since", "90d", "--width", columns)
    assert len(told.lines) > 300
    assert [line for line in told.lines if display_width(line) > columns] == []


def test_nothing_of_a_session_acts_on_the_terminal(steno: Steno, config: WriteConfig) -> None:
    evil = "\x1b]0;owned\x07\x1b[2J\u202e"
    made = session().user(evil).assistant(thinking(evil), evil, tool("Bash", command=evil))
    config(made.result(evil, error=True).assistant("x"))
    told = steno("tail", made.session_id, "-n", "--thinking", "--color", "always").out
    assert re.sub(r"\x1b\[[0-9;]*m", "", told).isprintable() is False
    assert set(re.findall(r"[\x00-\x09\x0b-\x1f\u202e](?!\[[0-9;]*m)", told)) == set()


@pytest.mark.parametrize("arguments", [("--all", "6429"), ("--last", "1", "--since", "1h"), ("--last", "-1")])
def test_what_excludes_each_other_is_refused(steno: Steno, arguments: tuple[str, ...]) -> None:
    assert steno("tail", *arguments).code == 2


def test_no_session_is_no_match(steno: Steno) -> None:
    assert steno("tail").code == 1


# Live


def test_what_is_appended_is_told_step_by_step(tail: Callable[..., Tail], config: WriteConfig) -> None:
    made = asked()
    lines = lines_of(made)
    path = path_of(made)
    append(path, lines[0])
    running = tail(made.session_id, "--width", 80)
    assert running.until("Why is the chart flat?")[0].startswith("● ")
    append(path, lines[1])
    running.until("    Let me look.")
    append(path, lines[2])
    assert running.until("make test")[-1] == "  ● Bash    make test"
    append(path, lines[3])
    came = running.until("assert 41 == 0")
    assert came[0].startswith("    └ exit 2")
    assert came[0].endswith("✗")
    append(path, lines[4])
    assert running.until("waiting for input")[1] == "    It was the axis."
    assert running.interrupt() == (0, "", "")
    assert config is not None


def test_a_torn_line_is_told_when_it_is_whole(tail: Callable[..., Tail]) -> None:
    made = asked()
    first, second = lines_of(made)[:2]
    path = path_of(made)
    append(path, first)
    running = tail(made.session_id, "--json")
    running.event("watching")
    append(path, second[:40])
    append(path, second[40:])
    assert running.event("words")["text"] == "Let me look."
    append(path, b"no json at all\n")
    assert running.event("damage")["size"] == 15


def test_sessions_that_begin_later_are_told_under_all(tail: Callable[..., Tail]) -> None:
    running = tail("--all", "--json")
    running.event("watching")
    one, other = asked(), session(seed="other", cwd="/home/ada/gravel").turn("Links?", "Fine.")
    append(path_of(one), *lines_of(one)[:1])
    assert running.event("turn")["session"] == one.session_id
    append(path_of(other), *lines_of(other))
    assert running.event("turn")["session"] == other.session_id
    assert running.event("words")["text"] == "Fine."
    append(path_of(one), *lines_of(one)[1:])
    assert running.event("outcome")["session"] == one.session_id


def test_the_speaker_is_named_when_it_changes(tail: Callable[..., Tail]) -> None:
    one, other = asked(), session(seed="other", cwd="/home/ada/gravel").turn("Links?", "Fine.")
    append(path_of(one), *lines_of(one)[:1])
    running = tail("--all", "--width", 80)
    running.until("Why is the chart flat?")
    running.until("│ Why is the chart flat?")
    append(path_of(other), *lines_of(other))
    assert running.until("Links?  gravel")[-1].startswith("● ")
    running.until("waiting for input")
    append(path_of(one), lines_of(one)[1])
    assert "  tidegauge" in running.until("Why is the chart flat?")[-1]
    running.until("Let me look.")


def test_a_file_that_is_cut_short_is_told_from_its_beginning(tail: Callable[..., Tail]) -> None:
    made = asked()
    path = path_of(made)
    append(path, *lines_of(made))
    running = tail(made.session_id, "--json")
    running.event("watching")
    path.write_bytes(lines_of(made)[0])
    running.event("anew")
    assert running.event("turn")["prompt"]["text"] == "Why is the chart flat?"


def test_a_file_that_is_replaced_by_a_rename_is_told_from_its_beginning(tail: Callable[..., Tail]) -> None:
    made = asked()
    path = path_of(made)
    append(path, *lines_of(made)[:2])
    running = tail(made.session_id, "--json")
    running.event("watching")
    path.with_name("fresh.new").write_bytes(made.bytes())
    path.with_name("fresh.new").replace(path)
    running.event("anew")
    running.event("turn")
    assert running.event("end")["ending"] == "answered"
    append(path, b'{"type":"cost-state"}\n')
    assert running.event("end")["ending"] == "left"


def test_a_sub_agent_that_appears_is_told(tail: Callable[..., Tail]) -> None:
    made = (
        session()
        .user("Check the links")
        .assistant(tool("Agent", subagent_type="reader", description="Read them", prompt="Read all links"))
    )
    path = path_of(made)
    append(path, made.bytes())
    running = tail(made.session_id, "--json")
    running.event("watching")
    agent = path.with_suffix("") / "subagents" / f"agent-{AGENT}.jsonl"
    work = session(seed="agent").user("Read all links").assistant("All are fine.").records()
    data = [{**record, "isSidechain": True, "agentId": AGENT, "sessionId": made.session_id} for record in work]
    append(agent, *(json.dumps(record).encode() + b"\n" for record in data))
    said = running.event("words")
    assert (said["agent"], said["text"]) == (AGENT, "All are fine.")
    assert (said["agent_type"], said["agent_description"]) == ("reader", "Read them")


def test_a_root_that_is_made_later_is_followed(tail: Callable[..., Tail]) -> None:
    assert not Path(os.environ["CLAUDE_CONFIG_DIR"]).exists()
    running = tail("--all", "--json")
    running.event("watching")
    made = asked()
    append(path_of(made), *lines_of(made))
    assert running.event("end")["ending"] == "answered"


def test_a_closed_pipe_ends_it_quietly(tail: Callable[..., Tail]) -> None:
    made = asked()
    path = path_of(made)
    append(path, lines_of(made)[0])
    running = tail(made.session_id, "--json")
    running.event("watching")
    assert running.process.stdout is not None
    running.process.stdout.close()
    append(path, lines_of(made)[1])
    assert running.process.stderr is not None
    assert running.process.stderr.read() == b""
    assert running.process.wait() == 0


@pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal of its own")
def test_at_a_terminal_it_says_that_it_waits_and_ctrl_c_ends_it() -> None:
    import pexpect

    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "TERM": "xterm"}
    del env["STENO_NOW"]
    made = asked()
    append(path_of(made), *lines_of(made)[:1])
    child = pexpect.spawn(sys.executable, ["-m", "steno", "tail", "--all"], env=env, timeout=120, encoding="utf-8")
    child.expect_exact("Watching 1 file. Press Ctrl-C to stop.")
    assert "\x1b" not in (child.before or "")
    append(path_of(made), lines_of(made)[1])
    child.expect_exact("Let me look.")
    child.sendintr()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0


def test_following_writes_nothing_below_the_roots(tail: Callable[..., Tail]) -> None:
    made = asked()
    append(path_of(made), made.bytes())
    root = Path(os.environ["CLAUDE_CONFIG_DIR"])
    before = {path: path.stat().st_mtime_ns for path in root.rglob("*")}
    running = tail("--all")
    running.until("waiting for input")
    assert running.interrupt()[0] == 0
    assert {path: path.stat().st_mtime_ns for path in root.rglob("*")} == before
