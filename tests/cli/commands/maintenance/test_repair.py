"""`steno repair`: what it writes and where, what it says, what it refuses."""

import hashlib
import json
import os
import stat
from pathlib import Path
from typing import Any

import pytest
from tests.builders import Session, session, text, tool
from tests.cli.conftest import Steno
from tests.conftest import WriteConfig

from steno.demo.recording import DemoReport
from steno.format.paths import is_uuid

TORN = b'{"type":"user","mess'


def broken(config: WriteConfig, seed: str = "repair") -> tuple[Path, Session]:
    """Write a session with a call that was never answered and a torn tail."""
    made = session(seed=seed).user("Where is it?").assistant(text("I look."))
    made.assistant(tool("Bash", command="ls")).result("a.py").assistant("There.")
    path = written(config, made)
    path.write_bytes(path.read_bytes() + TORN)
    return path, made


def written(config: WriteConfig, made: Session) -> Path:
    folder = config(made)
    return next(path for path in folder.rglob(f"{made.session_id}.jsonl"))


def tree(folder: Path) -> dict[str, str]:
    """Return the digest of every file below a folder."""
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


# Where it writes


def test_the_mended_session_gets_an_id_of_its_own(steno: Steno, config: WriteConfig) -> None:
    path, made = broken(config)
    before = path.read_bytes()
    ran = steno("repair", made.session_id)
    assert ran.code == 0
    assert path.read_bytes() == before
    (new,) = [each for each in path.parent.glob("*.jsonl") if each != path]
    assert new.read_bytes() == before.removesuffix(TORN)
    assert f"Wrote {new}" in ran.out
    assert f"claude --resume {new.stem}" in ran.out
    assert "line.torn" in ran.out
    assert "Where is it?" in ran.lines[0]


def test_a_dry_run_writes_nothing(steno: Steno, config: WriteConfig) -> None:
    path, made = broken(config)
    before = tree(path.parents[2])
    ran = steno("repair", made.session_id, "--dry-run")
    assert ran.code == 0
    assert "Nothing was written (--dry-run)." in ran.out
    assert tree(path.parents[2]) == before
    assert steno("repair", made.session_id, "-n", "--in-place").code == 0
    assert tree(path.parents[2]) == before


def test_another_place_may_be_named_but_never_one_that_is_taken(
    steno: Steno, config: WriteConfig, tmp_path: Path
) -> None:
    path, made = broken(config)
    there = tmp_path / "mended.jsonl"
    assert steno("repair", made.session_id, "-o", there).code == 0
    assert there.read_bytes() == path.read_bytes().removesuffix(TORN)
    there.write_bytes(b"mine")
    ran = steno("repair", made.session_id, "-o", there)
    assert ran.code == 3
    assert there.read_bytes() == b"mine"
    assert steno("repair", made.session_id, "-o", tmp_path).code == 2
    assert len(list(path.parent.glob("*.jsonl"))) == 1


def test_in_place_and_back(steno: Steno, config: WriteConfig) -> None:
    path, made = broken(config)
    before = path.read_bytes()
    ran = steno("repair", made.session_id, "--in-place")
    assert ran.code == 0
    assert path.read_bytes() == before.removesuffix(TORN)
    assert f"repair {made.session_id} --undo" in ran.out
    ran = steno("repair", made.session_id, "--undo")
    assert ran.code == 0
    assert path.read_bytes() == before
    assert steno("repair", made.session_id, "--undo").code == 1


def test_undo_for_programs(steno: Steno, config: WriteConfig) -> None:
    path, made = broken(config)
    steno("repair", made.session_id, "--in-place")
    told = steno("repair", made.session_id, "--undo", "--json").json
    assert told["path"] == str(path)
    assert Path(told["kept"]).exists()


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
def test_a_new_file_can_be_written_by_its_owner(steno: Steno, config: WriteConfig) -> None:
    path, made = broken(config)
    path.chmod(0o444)
    steno("repair", made.session_id)
    (new,) = [each for each in path.parent.glob("*.jsonl") if each != path]
    assert stat.S_IMODE(new.stat().st_mode) == 0o644


# What it leaves alone


@pytest.mark.parametrize("how", [(), ("--in-place",), ("--json",)])
def test_a_sound_session_is_left_alone(steno: Steno, config: WriteConfig, how: tuple[str, ...]) -> None:
    path = written(config, session(seed="sound").user("Well?").assistant("Well."))
    before = tree(path.parents[2])
    ran = steno("repair", path.stem, *how)
    assert ran.code == 0
    assert tree(path.parents[2]) == before
    if not how:
        assert ran.lines[-1] == "Nothing to repair. The file is unchanged."


@pytest.mark.parametrize("output", [False, True])
def test_a_file_without_a_conversation_is_left_alone(
    steno: Steno, config: WriteConfig, tmp_path: Path, *, output: bool
) -> None:
    path = written(config, session(seed="nothing").user("Well?").assistant("Well."))
    path.write_bytes(TORN)
    before = tree(path.parents[2])
    ran = steno("repair", path, *(("-o", tmp_path / "new.jsonl") if output else ()))
    assert ran.code == 1
    assert "the file has no conversation to resume" in ran.out
    assert tree(path.parents[2]) == before
    assert not (tmp_path / "new.jsonl").exists()


@pytest.mark.parametrize("how", [(), ("--in-place",), ("--dry-run",)])
def test_what_is_not_proven_to_resume_is_not_written(steno: Steno, config: WriteConfig, how: tuple[str, ...]) -> None:
    path = unprovable(config)
    before = tree(path.parents[2])
    ran = steno("repair", path.stem, "--until", until_of(path), *how)
    assert ran.code == 1
    assert "Nothing was written" in ran.out
    assert "might not be able to resume" in ran.out
    assert "--until" in ran.out
    assert tree(path.parents[2]) == before


def test_what_is_not_proven_is_written_where_it_was_asked_for(
    steno: Steno, config: WriteConfig, tmp_path: Path
) -> None:
    path = unprovable(config)
    there = tmp_path / "half.jsonl"
    ran = steno("repair", path.stem, "--until", until_of(path), "-o", there)
    assert ran.code == 1
    assert f"Wrote {there}, but Claude Code might not be able to resume it" in ran.out
    assert there.exists()


def unprovable(config: WriteConfig) -> Path:
    """Write a session whose last record, where it is to end, says nothing and cannot stay."""
    made = session(seed="unproven").user("One?").assistant("One.").user("Two?").assistant("Two.")
    path = written(config, made)
    *lines, last = path.read_bytes().splitlines(keepends=True)
    record = json.loads(last)
    record["message"]["content"] = []
    path.write_bytes(b"".join([*lines, json.dumps(record).encode() + b"\n"]))
    return path


def until_of(path: Path) -> str:
    return str(json.loads(path.read_bytes().splitlines()[-1])["uuid"])


def test_a_session_under_a_name_that_no_client_takes_gets_another(steno: Steno, config: WriteConfig) -> None:
    path = written(config, session(seed="named").user("Well?").assistant("Well."))
    odd = path.with_name("my-session.jsonl")
    odd.write_bytes(path.read_bytes().replace(path.stem.encode(), b"my-session"))
    path.unlink()
    ran = steno("repair", odd)
    assert ran.code == 0
    (new,) = [each for each in odd.parent.glob("*.jsonl") if each != odd]
    assert new.read_bytes() == odd.read_bytes()
    assert f"claude --resume {new.stem}" in ran.out
    assert is_uuid(new.stem)
    ran = steno("repair", odd, "--in-place")
    assert ran.code == 1


def test_sub_agents_that_stay_with_the_original_are_told_of(steno: Steno, config: WriteConfig) -> None:
    path, made = broken(config)
    folder = path.with_suffix("") / "subagents"
    folder.mkdir(parents=True)
    for name in ("agent-a1", "agent-a2"):
        line = {"type": "user", "sessionId": made.session_id, "isSidechain": True, "agentId": "a1"}
        (folder / f"{name}.jsonl").write_text(json.dumps({**line, "parentUuid": None}) + "\n")
    ran = steno("repair", made.session_id)
    assert ran.code == 0
    assert "2 sub-agents stay with the original; --in-place keeps them with the session." in ran.out
    assert "sub-agents stay" not in steno("repair", made.session_id, "--in-place").out


def test_a_session_that_a_client_is_at_work_on_is_refused(steno: Steno, config: WriteConfig) -> None:
    path, made = broken(config)
    live = path.parents[2] / "sessions"
    live.mkdir(exist_ok=True)
    (live / f"{os.getpid()}.json").write_text(
        f'{{"pid":{os.getpid()},"sessionId":"{made.session_id}","cwd":"/x","startedAt":1}}'
    )
    before = tree(path.parents[2])
    for how in ((), ("--in-place",)):
        ran = steno("repair", made.session_id, *how)
        assert ran.code == 3
        assert "--force" in ran.err
        assert tree(path.parents[2]) == before
    assert steno("repair", made.session_id, "--in-place", "--force").code == 0


def test_of_a_sub_agents_file_only_the_lines_are_mended(steno: Steno, demo: DemoReport) -> None:
    path = next(Path(demo.root).rglob("agent-*.jsonl"))
    sound = path.read_bytes()
    ran = steno("repair", path)
    assert ran.code == 0
    assert "This is a sub-agent file" in ran.out
    path.write_bytes(sound + TORN)
    ran = steno("repair", path)
    assert ran.code == 2
    assert "--in-place" in ran.err
    ran = steno("repair", path, "--in-place")
    assert ran.code == 0
    assert path.read_bytes() == sound


# What it can be told


def test_a_session_can_end_earlier(steno: Steno, config: WriteConfig, tmp_path: Path) -> None:
    path, made = broken(config)
    until = made.records()[1]["uuid"]
    there = tmp_path / "short.jsonl"
    ran = steno("repair", made.session_id, "--until", until[:10], "-o", there)
    assert ran.code == 0
    assert there.read_bytes() == b"".join(path.read_bytes().splitlines(keepends=True)[:2])
    assert "later records" in ran.out
    assert steno("repair", made.session_id, "--until", "zzzz").code == 1


def test_slimming_says_what_was_saved(steno: Steno, config: WriteConfig) -> None:
    made = session(seed="slim").user("All?").assistant(tool("Bash", command="yes"))
    path = written(config, made.result("y\n" * 9000).assistant("All."))
    ran = steno("repair", path.stem, "--slim", "--in-place")
    assert ran.code == 0
    assert "copies of tool output" in ran.out
    assert "size      " in ran.out
    assert path.stat().st_size < 40_000


def test_a_file_of_two_sessions_is_split(steno: Steno, config: WriteConfig) -> None:
    one = session(seed="one").user("Mine?").assistant("Mine.")
    other = session(seed="other").user("Yours?").assistant("Yours.")
    path = written(config, one)
    both = one.bytes() + other.bytes()
    path.write_bytes(both)
    before = tree(path.parents[2])
    assert steno("repair", path, "--split", "-n").code == 0
    assert tree(path.parents[2]) == before
    told = steno("repair", path, "--split", "--json").json
    assert [each["session"] for each in told] == [one.session_id, other.session_id]
    assert path.read_bytes() == both
    parts = [Path(each["output"]) for each in told]
    assert [part.read_bytes() for part in parts] == [one.bytes(), other.bytes()]
    assert parts[1].stem == other.session_id
    ran = steno("repair", parts[1], "--split")
    assert ran.code == 1
    assert "only one session" in ran.err


def test_an_older_client_can_be_meant(steno: Steno, config: WriteConfig) -> None:
    made = session(seed="older").user("Both?")
    made.assistant(tool("Bash", command="ls"), tool("Grep", pattern="x")).results("a", "b")
    path = written(config, made.assistant("Both."))
    assert steno("repair", path.stem, "-n").out.endswith("The file is unchanged.\n")
    ran = steno("repair", path.stem, "-n", "--for", "2.0.76", "--json")
    assert ran.json["client"] == "2.0.76"
    assert ran.code == 0
    assert steno("repair", path.stem, "--for", "0.1").code == 2
    assert steno("repair", path.stem, "--for", "new").code == 2


@pytest.mark.parametrize(
    "how",
    [
        ("--in-place", "-o", "x"),
        ("--in-place", "--undo"),
        ("--undo", "-o", "x"),
        ("--split", "-o", "x"),
        ("--split", "--in-place"),
        ("--split", "--until", "x"),
        ("--undo", "--dry-run"),
        ("--undo", "--slim"),
        ("--undo", "--split"),
        ("--undo", "--until", "x"),
    ],
)
def test_contradictions_are_refused(steno: Steno, config: WriteConfig, how: tuple[str, ...]) -> None:
    path, made = broken(config)
    before = tree(path.parents[2])
    ran = steno("repair", made.session_id, *how)
    assert ran.code == 2
    assert "cannot be combined" in ran.err
    assert tree(path.parents[2]) == before


def test_what_is_not_there_is_not_found(steno: Steno) -> None:
    assert steno("repair", "ffffffff").code == 1


# What it says


def test_a_repair_for_programs(steno: Steno, config: WriteConfig) -> None:
    path, made = broken(config)
    ran = steno("repair", made.session_id, "--json")
    told: dict[str, Any] = ran.json
    assert list(told) == [
        "path",
        "title",
        "output",
        "client",
        "changed",
        "resumes",
        "edits",
        "lost",
        "left",
        "before",
        "after",
    ]
    assert told["path"] == str(path)
    assert told["title"] == "Where is it?"
    assert Path(told["output"]).exists()
    assert (told["client"], told["changed"], told["resumes"]) == ("2.1.325", True, True)
    (edit,) = told["edits"]
    assert list(edit) == ["finding", "action", "line", "uuid", "what", "lost", "changes"]
    assert (edit["finding"], edit["action"]) == ("line.torn", "remove")
    assert edit["line"] == len(made.records()) + 1
    assert told["lost"] == [edit["lost"]]
    for state in ("before", "after"):
        assert list(told[state]) == ["size", "counts", "verdicts", "breaches"]
    assert told["before"]["counts"]["error"] == 1
    assert told["after"]["counts"]["error"] == 0


def test_one_error_is_one_error(steno: Steno, config: WriteConfig) -> None:
    path, made = broken(config)
    assert "before    1 error" in steno("repair", made.session_id, "-n").out
    path.write_bytes(path.read_bytes().replace(b"\n", b"\n" + TORN + b"\n", 1))
    assert "before    2 errors" in steno("repair", made.session_id, "-n").out


def test_hostile_text_does_nothing(steno: Steno, config: WriteConfig) -> None:
    path = written(config, session(seed="evil").user("\x1b[2J\x1b]0;evil\x07").assistant("No."))
    path.write_bytes(path.read_bytes() + b'\x1b[31m{"torn \xe2\x80\xae')
    ran = steno("repair", path.stem, "-n")
    assert ran.code == 0
    assert not any(each in ran.out for each in ("\x1b", "\x07", "\u202e"))


def test_many_edits_are_cut_and_all_shows_them(steno: Steno, config: WriteConfig) -> None:
    made = session(seed="many").user("0?")
    for number in range(40):
        made.assistant(f"{number}.").user(f"{number + 1}?")
    path = written(config, made)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(line + b"torn {\n" for line in lines))
    ran = steno("repair", path.stem, "-n")
    assert "more edits; use --all to show all" in ran.out
    assert ran.out.count("line.") == 30
    whole = steno("repair", path.stem, "-n", "--all")
    assert "more edits" not in whole.out
    assert whole.out.count("remove 7 bytes") == len(lines)


def test_the_demos_broken_session_is_mended(steno: Steno, demo: DemoReport) -> None:
    assert demo
    ran = steno("repair", "--demo", "c6a6", "--in-place")
    assert ran.code == 0
    assert "repair --demo c6a6" in ran.out
    assert steno("check", "--demo", "c6a6").code == 0
