"""`steno check`: what it looks at, what it says, how it ends."""

import os
import sys
from pathlib import Path

import pytest
from tests.builders import Session, session
from tests.cli.conftest import Steno
from tests.cli.test_error_messages import complains
from tests.conftest import WriteConfig

from steno.check.checkup import RULES
from steno.cli.output.screen import Screen
from steno.demo.recording import DemoReport
from steno.sanitize.terminal import display_width
from steno.store.environment import demo_dir, steno_home

EVIL = "\x1b]0;pwned\x07\x1b[2J\u202egnp.exe"


def talk(seed: str = "one") -> Session:
    return session(seed=seed).turn(f"Ask {seed}.", "First.").turn("Two.", "Second.")


def config_file(text: str) -> None:
    folder = Path(steno_home())
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.toml").write_text(text)


# What is looked at


def test_without_a_name_the_whole_config_folder_is_checked(steno: Steno, config: WriteConfig) -> None:
    config(talk("one"), talk("two"), talk("three").torn_tail())
    ran = steno("check")
    assert ran.code == 1
    assert ran.lines[-1].startswith("3 sessions, 2 without problems")
    assert "line.torn" in ran.out
    assert "Ask three." in ran.out
    assert "Ask one." not in ran.out


def test_a_sound_folder_is_one_line(steno: Steno, config: WriteConfig) -> None:
    config(talk("one"), talk("two"))
    ran = steno("check")
    assert (ran.code, ran.lines) == (0, ["2 sessions, no problems"])


def test_nothing_at_all_is_fine(steno: Steno) -> None:
    ran = steno("check")
    assert ran.code == 0
    assert "No sessions to check" in ran.out


def test_a_folder_a_file_and_a_name_can_be_checked(steno: Steno, config: WriteConfig) -> None:
    made = talk("one")
    folder = config(made, talk("two"))
    (path,) = folder.rglob(f"{made.session_id}.jsonl")
    for name in (path, made.session_id[:8], "last", "Ask one"):
        ran = steno("check", name)
        assert ran.code == 0, ran
        assert ran.lines[-1] == "1 session, no problems"
        assert "every version resumes all messages" in ran.out
    assert steno("check", folder).lines == ["2 sessions, no problems"]
    assert steno("check", "--root", folder).lines == ["2 sessions, no problems"]


def test_a_folder_in_the_current_one_needs_no_dot(
    steno: Steno, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "logs").mkdir()
    made = talk()
    (tmp_path / "logs" / f"{made.session_id}.jsonl").write_bytes(made.bytes())
    monkeypatch.chdir(tmp_path)
    assert steno("check", "logs").lines[-1] == "1 session, no problems"


def test_a_file_that_is_named_twice_is_checked_once(steno: Steno, config: WriteConfig) -> None:
    made = talk()
    (path,) = config(made).rglob("*.jsonl")
    assert steno("check", path, path).lines[-1] == "1 session, no problems"


def test_the_demo_has_one_damaged_session(steno: Steno, demo: DemoReport) -> None:
    ran = steno("check", "--demo")
    assert ran.code == 1
    assert ran.lines[-1].startswith(f"{demo.sessions} sessions, ")
    assert any(line.startswith("c6a6  ") for line in ran.lines)


# What is said


def test_findings_stand_by_rule_with_line_excerpt_and_one_hint(steno: Steno, config: WriteConfig) -> None:
    made = talk().retarget(2, "00000000-0000-4000-8000-000000000001")
    config(made)
    ran = steno("check", "last")
    at = next(n for n, line in enumerate(ran.lines) if "chain.dangling" in line)
    assert ran.lines[at].strip().startswith("! chain.dangling")
    assert ran.lines[at + 1].strip().startswith("line 3  ")
    assert "user/prompt Two." in ran.lines[at + 2]
    assert " ".join(ran.out.split()).count(" ".join(RULES["chain.dangling"].hint.split())) == 1


def test_many_findings_of_one_kind_are_counted(steno: Steno, tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    path.write_bytes(talk().bytes() + b"nonsense\n" * 250)
    ran = steno("check", path)
    assert "250 times" in ran.out
    assert "… 247 more: lines " in ran.out
    assert len(ran.lines) < 40


def test_what_is_harmless_is_counted_and_told_on_demand(steno: Steno, config: WriteConfig) -> None:
    config(talk().no_final_newline())
    ran = steno("check", "last")
    assert ran.code == 0
    assert "line.no-newline" not in ran.out
    assert "1 info  (use --all to show)" in ran.lines[-1]
    assert "line.no-newline" in steno("check", "last", "--all").out


def test_clients_that_differ_have_a_line_each(steno: Steno, config: WriteConfig) -> None:
    config(talk().duplicate_key(1).retarget(2, "00000000-0000-4000-8000-000000000001"))
    ran = steno("check", "last")
    verdicts = steno("check", "last", "--json").json["files"][0]["verdicts"]
    assert len({each["sent"] for each in verdicts}) > 1
    told = [line for line in ran.lines[1:4] if " resumes " in line]
    assert len(told) > 1
    assert told[0].startswith("  1.0.128 to ")
    assert "2.1.325" in told[-1]


def test_clients_that_agree_have_one_line(steno: Steno, config: WriteConfig) -> None:
    config(talk())
    assert steno("check", "last").lines[1] == "  every version resumes all messages"


def test_no_line_is_wider_than_the_screen(steno: Steno, demo: DemoReport) -> None:
    assert demo.sessions
    ran = steno("check", "--demo", "--all", "--width", 60)
    assert max(map(len, ran.lines)) <= 60


def test_json_has_everything(steno: Steno, config: WriteConfig) -> None:
    made = talk().torn_tail()
    config(made)
    said = steno("check", "--json").json
    assert (said["sessions"], said["sound"], said["problems"]) == (1, 0, [])
    (file,) = said["files"]
    assert file["name"] == made.session_id
    torn = next(each for each in file["findings"] if each["id"] == "line.torn")
    assert torn["line"] == len(made.bytes().split(b"\n"))
    assert torn["offset"] + torn["length"] == file["size"]
    assert {"id": "line.torn", "severity": "error", "count": 1} in file["counts"]
    assert said["errors"] == sum(each["count"] for each in file["counts"] if each["severity"] == "error")
    newest = next(each for each in file["verdicts"] if "2.1.325" in each["clients"])
    assert newest["outcome"] in {"fully", "partly", "not at all"}


def test_sarif_names_files_below_here_relative(steno: Steno, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    made = talk().torn_tail()
    (tmp_path / "a b").mkdir()
    (tmp_path / "a b" / f"{made.session_id}.jsonl").write_bytes(made.bytes())
    ran = steno("check", "--sarif", "a b")
    assert ran.code == 1
    (run,) = ran.json["runs"]
    uris = {each["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for each in run["results"]}
    assert uris == {f"a%20b/{made.session_id}.jsonl"}


def test_every_rule_is_listed_and_explained(steno: Steno) -> None:
    ran = steno("check", "--rules", "--width", 200)
    assert ran.code == 0
    assert len(ran.lines) == len(RULES)
    assert [rule["id"] for rule in steno("check", "--rules", "--json").json] == list(RULES)
    for rule in list(RULES.values())[::7]:
        said = " ".join(steno("check", "--explain", rule.id).out.split())
        assert rule.title in said
        assert " ".join(rule.hint.split()) in said


# Policies


def test_rules_can_be_silenced_by_option_and_by_file(steno: Steno, config: WriteConfig) -> None:
    config(talk().duplicate_key(1))
    assert steno("check").code == 1
    assert steno("check", "--silence", "line.duplicate-key").code == 0
    assert steno("check", "--severity", "line.*=info").code == 0
    assert steno("check", "--fail-on", "error").code == 0
    config_file('[check]\nsilence = ["line.*"]\n')
    ran = steno("check")
    assert (ran.code, ran.lines) == (0, ["1 session, no problems (1 finding silenced)"])


def test_an_option_counts_more_than_the_file(steno: Steno, config: WriteConfig) -> None:
    config(talk().duplicate_key(1))
    config_file('[check.severity]\n"line.duplicate-key" = "info"\n')
    assert steno("check").code == 0
    assert steno("check", "--severity", "line.duplicate-key=error").code == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[check]\n\nsilence = ["line.tron"]\n', ["line 3", "line.tron"]),
        ('[check.severity]\n"line.torn" = "fatal"\n', ["line 2", "fatal"]),
        ("[check\n", ["line 1"]),
    ],
)
def test_a_bad_config_file_is_one_line(steno: Steno, text: str, words: list[str]) -> None:
    config_file(text)
    complains(steno("check"), 2, "config.toml", *words)
    complains(steno("doctor"), 2, "config.toml", *words)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--silence", "line.tron"], "line.tron"),
        (["--severity", "line.torn"], "ID=LEVEL"),
        (["--severity", "line.torn=fatal"], "fatal"),
        (["--fail-on", "fatal"], "fatal"),
        (["--explain", "line.tron"], "line.tron"),
        (["--explain", "line.*"], "line.*"),
        (["--json", "--sarif"], "--sarif"),
        (["--rules", "--explain", "line.torn"], "--explain"),
        (["--rules", "last"], "--rules"),
        (["--rules", "--sarif"], "--sarif"),
    ],
)
def test_wrong_usage_of_check(steno: Steno, arguments: list[str], words: str) -> None:
    complains(steno("check", *arguments), 2, words)


def test_near_rules_are_offered(steno: Steno) -> None:
    assert "line.torn" in steno("check", "--silence", "line.tron").err.splitlines()[1]


def test_info_can_fail_too(steno: Steno, config: WriteConfig) -> None:
    config(talk().no_final_newline())
    assert steno("check").code == 0
    ran = steno("check", "--fail-on", "info")
    assert ran.code == 1
    assert "line.no-newline" in ran.out


# Trouble


def test_a_name_nobody_has_is_not_found(steno: Steno) -> None:
    complains(steno("check", "deadbeef"), 1, "deadbeef")


def test_what_cannot_be_read_ends_in_3_and_the_rest_is_told(steno: Steno, config: WriteConfig, tmp_path: Path) -> None:
    made = talk().torn_tail()
    (path,) = config(made).rglob("*.jsonl")
    ran = steno("check", tmp_path / "gone.jsonl", path)
    complains(ran, 3, "gone.jsonl")
    assert "line.torn" in ran.out
    ran = steno("check", tmp_path / "gone.jsonl", path, "--json")
    assert [problem["path"] for problem in ran.json["problems"]] == [str(tmp_path / "gone.jsonl")]
    (run,) = steno("check", tmp_path / "gone.jsonl", path, "--sarif").json["runs"]
    assert run["invocations"][0]["executionSuccessful"] is False


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pipes in folders")
def test_a_pipe_among_the_files_is_passed_by(steno: Steno, config: WriteConfig) -> None:
    folder = config(talk())
    os.mkfifo(folder / "projects" / "00000000-0000-4000-8000-00000000000f.jsonl")
    ran = steno("check")
    complains(ran, 3, "0000000f.jsonl")
    assert ran.lines == ["1 session, no problems"]


def test_an_empty_file_has_nothing_to_resume(steno: Steno, tmp_path: Path) -> None:
    path = tmp_path / "empty.jsonl"
    path.write_bytes(b"")
    ran = steno("check", path)
    assert ran.code == 1
    assert "chain.empty" in ran.out


@pytest.mark.parametrize("mode", [[], ["--all"], ["--json"], ["--sarif"]])
def test_hostile_text_is_inert(steno: Steno, tmp_path: Path, mode: list[str]) -> None:
    folder = tmp_path / f"dir{EVIL}"
    folder.mkdir()
    made = session(seed=EVIL, session_id="00000000-0000-4000-8000-000000000001")
    made.turn(f"Ask {EVIL}", f"Say {EVIL}").turn("Two.", "Second.").retarget(2, f"id{EVIL}")
    path = folder / "00000000-0000-4000-8000-000000000001.jsonl"
    path.write_bytes(made.bytes() + f'{{"type":"{EVIL}'.encode() + b"\n\x1b[2J\x9b\n")
    ran = steno("check", folder, *mode)
    assert ran.code == 1
    for letter in ("\x1b", "\x07", "\u202e", "\x9b"):
        assert letter not in ran.out
        assert letter not in ran.err


def test_checking_changes_nothing(steno: Steno, demo: DemoReport) -> None:
    assert demo.sessions
    before = {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in files_of(demo_dir())}
    steno("check", "--demo", "--all")
    steno("doctor", "--demo")
    assert before == {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in files_of(demo_dir())}


def files_of(folder: str) -> list[Path]:
    return [path for path in Path(folder).rglob("*") if path.is_file()]


def test_a_session_is_called_next_what_the_user_called_it(
    steno: Steno, config: WriteConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered: list[str] = []

    def offer(_: Screen, steps: list[str]) -> None:
        offered.extend(steps)

    monkeypatch.setattr(Screen, "print_next_steps", offer)
    made = talk().torn_tail()
    config(made)
    steno("check", made.session_id[:8])
    assert offered[0].endswith(f" repair {made.session_id[:8]}")


def test_what_to_do_next_is_called_as_steno_was(
    steno: Steno, config: WriteConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The shell may not find it by its name."""
    offered: list[str] = []

    def offer(_: Screen, steps: list[str]) -> None:
        offered.extend(steps)

    monkeypatch.setattr(Screen, "print_next_steps", offer)
    monkeypatch.setattr(sys, "argv", [".venv/bin/steno"])
    monkeypatch.setenv("PATH", "")
    made = session(seed="odd").turn("One.", "First.").side({"type": "zzz"})
    made = made.turn("Two.", "Second.").torn_tail()
    config(made)
    assert ".venv/bin/steno repair" in steno("doctor").out
    ran = steno("check", "--no-pager")
    assert "Run `.venv/bin/steno repair SESSION` to remove the fragment" in ran.out
    assert "`.venv/bin/steno repair SESSION`" in steno("check", "--explain", "line.glued").out
    assert "`.venv/bin/steno check --rules`" in steno("check", "--explain", "line.*").err
    assert steno("drift").code == 1
    assert len(offered) == 4
    assert all(step.startswith(".venv/bin/steno ") for step in offered)


@pytest.mark.skipif(sys.platform != "linux", reason="names are text there")
def test_a_name_that_is_not_utf_8_can_be_told_to_programs(steno: Steno, tmp_path: Path) -> None:
    path = tmp_path / os.fsdecode(b"bad\xff.jsonl")
    path.write_bytes(talk().torn_tail().bytes())
    assert steno("check", path, "--json").json["files"][0]["name"] == "bad\ufffd"
    assert steno("check", path, "--sarif").json["version"] == "2.1.0"


@pytest.mark.parametrize("arguments", [("check", "--all"), ("repair", "--dry-run")])
def test_a_narrow_screen_holds_every_line(steno: Steno, demo: DemoReport, arguments: tuple[str, ...]) -> None:
    assert demo
    ran = steno(*arguments, "--demo", "c6a6", "--width", 40)
    assert ran.lines
    assert max(display_width(line) for line in ran.lines) <= 40
    assert "lines 1 to 13 are" in " ".join(ran.out.split())


def test_nothing_to_resume_is_nothing_to_repair(steno: Steno, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []

    def tell(_: Screen, steps: list[str]) -> None:
        told.extend(steps)

    monkeypatch.setattr(Screen, "print_next_steps", tell)
    path = tmp_path / "00000000-0000-4000-8000-000000000001.jsonl"
    path.write_bytes(b"")
    assert steno("check", path).code == 1
    assert told == []
