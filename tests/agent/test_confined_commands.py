"""Commands that nobody approved run confined, through the whole agent; those that are run as before."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.agent.session_harness import KEY, Whole

from steno.agent.agent_session import AgentSession
from steno.agent.tool_executor import Approval
from steno.llm.messages_api import Block
from steno.llm.testserver.responders import tool
from steno.llm.testserver.scripted_responder import ScriptedResponder
from steno.permissions.permission_rules import Decision
from steno.permissions.sandbox.mechanisms import probe_sandbox
from steno.tools.protocol import Streams

needs_confinement = pytest.mark.usefixtures("_mechanism")


def _runs(*commands: str, **given: Any) -> ScriptedResponder:
    script = ScriptedResponder()
    script.on("go", tool("Bash", command=commands[0], **given))
    for command in commands[1:]:
        script.then(tool("Bash", command=command, **given))
    return script.then("Done.")


def _whole(folder: Path, *commands: str, **options: Any) -> Whole:
    (folder / "home").mkdir(exist_ok=True)
    env = {"STENO_CONFINEMENT": os.environ.get("STENO_CONFINEMENT", ""), **options.pop("env", {})}
    return Whole(folder, _runs(*commands), env=env, **options)


@pytest.fixture(params=["", "landlock", "namespaces"], ids=["all", "landlock", "namespaces"])
def _mechanism(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a test with everything that confines here, and with each mechanism alone."""
    monkeypatch.setenv("STENO_CONFINEMENT", request.param)
    if not probe_sandbox().usable:
        pytest.skip(f"this kernel has no {request.param}")


def _git(folder: Path, *words: str) -> None:
    name = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(["git", *name, *words], cwd=folder, check=True, capture_output=True)


def _said(whole: Whole) -> list[str]:
    return [str(each.content) for each in whole.results]


@needs_confinement
def test_ordinary_reading_works_confined(tmp_path: Path) -> None:
    whole = _whole(
        tmp_path,
        "git status --short && git log --oneline",
        "cat src/*.txt | sort | uniq -c",
        "cd src && pwd && ls -l && whoami",
        "find . -name '*.txt' -exec grep -l one {} +",
        'for f in *.txt; do wc -l "$f"; done',
        "git diff",
        "cat <(echo inner)",
    )
    src = whole.project / "src"
    src.mkdir()
    (src / "a.txt").write_text("one\n", encoding="utf-8")
    _git(whole.project, "init", "-q")
    _git(whole.project, "add", ".")
    _git(whole.project, "commit", "-q", "-m", "first")
    (src / "a.txt").write_text("one\ntwo\n", encoding="utf-8")
    whole.say("go")
    said = _said(whole)
    assert [each.is_error for each in whole.results] == [False] * 7, said
    assert "M src/a.txt" in said[0]
    assert "first" in said[0]
    assert said[1].split() == ["1", "one", "1", "two"]
    assert said[2].splitlines()[0] == str(src)
    # Where a command went, the next one begins.
    assert said[3] == "./a.txt"
    assert said[4].split() == ["2", "a.txt"]
    assert "+two" in said[5]
    assert said[6] == "inner"
    assert whole.refused == []
    whole.check()


@needs_confinement
def test_a_repository_that_names_programs_runs_none(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    whole = _whole(tmp_path, "git status", "git -C t/fx status", "git diff", "cd t/fx && git status")
    _git(whole.project, "init", "-q")
    (whole.project / "a.txt").write_text("one\n", encoding="utf-8")
    _git(whole.project, "add", ".")
    _git(whole.project, "commit", "-q", "-m", "first")
    bare = whole.project / "t" / "fx"
    bare.mkdir(parents=True)
    _git(bare, "init", "-q", "--bare")
    for folder in (whole.project, bare):
        _git(folder, "config", "core.fsmonitor", f"touch {marks}/ran; touch ran; false")
    _git(bare, "config", "core.bare", "false")
    _git(bare, "config", "core.worktree", str(bare))
    before = set(whole.project.rglob("*"))
    whole.say("go")
    assert list(marks.iterdir()) == []
    assert set(whole.project.rglob("*")) == before


@needs_confinement
def test_what_is_denied_or_outside_is_not_read(tmp_path: Path) -> None:
    whole = _whole(
        tmp_path,
        "grep -r 'canary\\|plain' .",
        "find . -type f -exec cat {} +",
        "cat *",
        "cat .e??",
        "x=$(echo .e)nv; cat $x",
        "cat /proc/[0-9]*/environ",
        "env",
        "cat ../home/*",
        "cat link/secret",
    )
    (whole.project / ".env").write_text("canary in env", encoding="utf-8")
    (whole.project / "same").hardlink_to(whole.project / ".env")
    (whole.project / "plain.txt").write_text("plain words", encoding="utf-8")
    (tmp_path / "home" / "secret").write_text("canary at home", encoding="utf-8")
    (whole.project / "link").symlink_to(tmp_path / "home")
    whole.settings(permissions={"deny": ["Read(.env)"]})
    whole.say("go")
    said = "\n".join(_said(whole))
    assert "canary in env" not in said
    assert "canary at home" not in said
    assert KEY not in said
    assert "plain words" in said


class _Asked:
    """Answers permission questions, and keeps what was asked."""

    def __init__(self, *, granted: bool) -> None:
        self.granted = granted
        self.reasons: list[str] = []

    async def __call__(self, _call: Block, decision: Decision) -> Approval:
        self.reasons.append(decision.reason)
        return Approval(granted=self.granted, message="" if self.granted else "not now")


def _with(whole: Whole, asked: _Asked) -> None:
    async def talk(started: AgentSession) -> None:
        started.agent.executor.request_approval = asked
        await started.agent.run_turn("go")

    whole.play(talk)


@needs_confinement
@pytest.mark.parametrize("granted", [True, False])
def test_a_command_that_fails_for_being_confined_is_asked_about_once(tmp_path: Path, *, granted: bool) -> None:
    tool_folder = tmp_path / "bin"
    tool_folder.mkdir()
    program = tool_folder / "node"
    program.write_text("#!/bin/sh\ntouch made || exit 1\necho v1\n", encoding="utf-8")
    program.chmod(0o755)
    whole = _whole(tmp_path, "node --version", env={"PATH": f"{tool_folder}:{os.environ['PATH']}"})
    asked = _Asked(granted=granted)
    _with(whole, asked)
    assert len(asked.reasons) == 1
    assert "needs to write files" in asked.reasons[0]
    assert (whole.project / "made").exists() is granted
    (result,) = whole.results
    assert result.is_error is not granted
    assert ("v1" in str(result.content)) is granted
    if not granted:
        assert "sandboxed" in str(result.content)
        assert whole.refused != []
    whole.check()


@needs_confinement
def test_where_nobody_can_be_asked_it_is_denied_with_the_reason(tmp_path: Path) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "node"
    program.write_text("#!/bin/sh\ntouch made || exit 1\n", encoding="utf-8")
    program.chmod(0o755)
    env = {"PATH": f"{folder}:{os.environ['PATH']}"}
    for mode in ("default", "plan", "dontAsk"):
        (tmp_path / mode).mkdir()
        whole = _whole(tmp_path / mode, "node --version", env=env, mode=mode)
        whole.say("go")
        assert whole.results[0].is_error
        assert "needs to write files" in whole.refused[0] or "write files" in _said(whole)[0]
        assert not (whole.project / "made").exists()


@needs_confinement
def test_accepted_edits_are_confined_to_the_working_folder(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    whole = _whole(
        tmp_path,
        "mkdir -p build && touch build/x && cp a.txt build/a.txt && echo more > build/b.txt",
        "cp a.txt evil.txt sub",
        "mv b.txt sub/evil.txt",
        mode="acceptEdits",
    )
    for name in ("a.txt", "b.txt", "evil.txt"):
        (whole.project / name).write_text("x", encoding="utf-8")
    (whole.project / "sub").mkdir()
    (whole.project / "sub" / "evil.txt").symlink_to(outside / "written")
    whole.say("go")
    assert not whole.results[0].is_error, _said(whole)
    assert sorted(path.name for path in (whole.project / "build").iterdir()) == ["a.txt", "b.txt", "x"]
    assert list(outside.iterdir()) == []


def test_approved_commands_get_no_secrets_but_the_rest(tmp_path: Path) -> None:
    whole = _whole(
        tmp_path,
        "env",
        env={"GH_TOKEN": "gho_canary", "PLAIN": "plain words", "DB": "pg://ada:canary@h/d"},
        allowed=("Bash(env)",),
    )
    whole.say("go")
    said = _said(whole)[0]
    assert "plain words" in said
    assert "canary" not in said


def test_without_confinement_reading_asks_but_for_fixed_commands(tmp_path: Path) -> None:
    whole = _whole(tmp_path, "cat a.txt", "git status", "cat *", env={"STENO_CONFINEMENT": "off"})
    (whole.project / "a.txt").write_text("plain words", encoding="utf-8")
    whole.say("go")
    assert [each.is_error for each in whole.results] == [False, True, True]
    assert _said(whole)[0] == "plain words"
    assert any("sandbox" in words for words in whole.notices)


@needs_confinement
def test_nothing_confined_outlives_its_command(tmp_path: Path) -> None:
    whole = _whole(tmp_path, "sleep 1000 & echo started", "nohup sleep 1001 & echo also")
    whole.say("go")
    assert [each.split()[0] for each in _said(whole)] == ["started", "also"]
    left = subprocess.run(["pgrep", "-f", "sleep 100[01]"], capture_output=True, text=True, check=False)
    assert left.stdout == ""


def test_a_rule_for_git_runs_no_program_of_a_repository_that_the_command_goes_to(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    whole = _whole(
        tmp_path,
        "cd inner && git diff",
        "git diff",
        "cd inner && git st",
        allowed=("Bash(git diff:*)", "Bash(git st:*)"),
    )
    for folder in (whole.project, whole.project / "inner"):
        folder.mkdir(exist_ok=True)
        _git(folder, "init", "-q")
        (folder / "a.txt").write_text("one\n", encoding="utf-8")
        _git(folder, "add", "a.txt")
        _git(folder, "commit", "-q", "-m", "first")
        (folder / "a.txt").write_text("two\n", encoding="utf-8")
        for name in ("diff.external", "core.fsmonitor"):
            _git(folder, "config", name, f"touch {marks}/ran; false")
        _git(folder, "config", "alias.st", f"!touch {marks}/ran")
    whole.say("go")
    assert list(marks.iterdir()) == []
    assert "+two" in _said(whole)[0]


def test_this_very_command_runs_git_with_its_own_settings(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    whole = _whole(tmp_path, "git status", allowed=("Bash(git status)",))
    _git(whole.project, "init", "-q")
    _git(whole.project, "config", "core.fsmonitor", f"touch {marks}/ran; false")
    whole.say("go")
    assert [path.name for path in marks.iterdir()] == ["ran"]


@needs_confinement
def test_what_git_has_committed_is_hidden_where_a_file_is_denied(tmp_path: Path) -> None:
    for rules, shown in ({"deny": ["Read(.env)"]}, False), ({}, True):
        folder = tmp_path / str(shown)
        folder.mkdir()
        whole = _whole(folder, "find .git/objects -type f")
        _git(whole.project, "init", "-q")
        (whole.project / ".env").write_text("canary", encoding="utf-8")
        _git(whole.project, "add", ".")
        whole.settings(permissions=rules)
        whole.say("go")
        assert (".git/objects/" in _said(whole)[0].partition("\n")[0]) is shown


@needs_confinement
def test_a_confined_command_gets_what_settings_give_but_for_secrets(tmp_path: Path) -> None:
    whole = _whole(tmp_path, "echo [$FRUIT] [$GH_TOKEN]")
    whole.settings(env={"FRUIT": "pear", "GH_TOKEN": "gho_canary"})
    whole.say("go")
    assert _said(whole) == ["[pear] []"]


@needs_confinement
def test_a_command_with_accepted_edits_cannot_change_protected_files(tmp_path: Path) -> None:
    # The judge asks before such a command; the kernel holds it back as well.
    whole = _whole(tmp_path, "true")
    (whole.project / ".git").mkdir()
    out = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)

    async def run(started: AgentSession) -> None:
        script = "echo x > .git/config; echo y > plain; exit 0"
        process = await started.command_runner.start(
            ["/bin/bash", "-c", script],
            command=script,
            cwd=str(whole.project),
            edits=True,
            env={"PATH": "/usr/bin:/bin"},
            streams=Streams(out, out),
        )
        await process.wait()

    (whole.project / "plain").touch()
    whole.play(run)
    os.close(out)
    assert not (whole.project / ".git" / "config").exists()
    assert (whole.project / "plain").read_text(encoding="utf-8") == "y\n"


def _writing_program(folder: Path) -> dict[str, str]:
    """Make a `node` that writes a file, and return a PATH with it."""
    folder.mkdir()
    (folder / "node").write_text("#!/bin/sh\ntouch made || exit 1\n", encoding="utf-8")
    (folder / "node").chmod(0o755)
    return {"PATH": f"{folder}:{os.environ['PATH']}"}


@needs_confinement
@pytest.mark.parametrize("mode", ["plan", "dontAsk"])
def test_in_these_modes_nobody_is_asked_to_run_it_unconfined(tmp_path: Path, mode: str) -> None:
    env = _writing_program(tmp_path / "bin")
    whole = _whole(tmp_path, "node --version", env=env, mode=mode)
    asked = _Asked(granted=True)
    _with(whole, asked)
    assert asked.reasons == []
    assert not (whole.project / "made").exists()


@needs_confinement
def test_a_command_edited_into_a_denied_one_does_not_run(tmp_path: Path) -> None:
    env = _writing_program(tmp_path / "bin")
    whole = _whole(tmp_path, "node --version", env=env)
    whole.settings(permissions={"deny": ["Bash(touch:*)"]})

    async def edit(_call: Block, _decision: Decision) -> Approval:
        return Approval(granted=True, tool_input={"command": "touch made"})

    async def talk(started: AgentSession) -> None:
        started.agent.executor.request_approval = edit
        await started.agent.run_turn("go")

    whole.play(talk)
    assert not (whole.project / "made").exists()
    assert "Bash(touch:*)" in _said(whole)[0]
