"""Git under a rule with a `*`: confined where it only reads, asked about where it reaches outside."""

import asyncio
import subprocess
from pathlib import Path

import pytest
from tests.permissions.judging import Judging

from steno.agent.command_sandbox import ConfinedCommandRunner
from steno.errors import StenoError
from steno.permissions.permission_rules import RuleSet
from steno.permissions.program_environment import approved_environment, git_settings
from steno.tools.protocol import Execution


def _git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, capture_output=True, check=True)


@pytest.fixture
def repository(here: Judging) -> Path:
    _git(here.project, "init", "-q")
    return here.project


def test_what_git_reads_without_a_rule_stays_confined_with_one(here: Judging, repository: Path) -> None:
    assert repository
    guard = here.guard("Bash(git log:*)", "Bash(make:*)", "Bash(git fetch:*)")
    assert here.bash("git log --oneline | head -3", guard).isolation == "read"
    for command in ("git log && make all", "git fetch origin"):
        said = here.bash(command, guard)
        assert (said.verdict, said.isolation) == ("allow", "")


@pytest.mark.parametrize("command", ["git commit -m x", "git fetch origin", "git log -3"])
def test_a_work_tree_outside_asks(here: Judging, repository: Path, command: str) -> None:
    guard = here.guard("Bash(git:*)")
    assert here.bash(command, guard).verdict == "allow"
    outside = repository.parent / "elsewhere"
    outside.mkdir()
    _git(repository, "config", "core.worktree", str(outside))
    assert here.bash("git commit -m x", guard).verdict == "ask"


def test_a_repository_above_and_a_linked_work_tree_stay_allowed(here: Judging, repository: Path) -> None:
    _git(repository, "-c", "user.name=A", "-c", "user.email=a@b", "commit", "-q", "--allow-empty", "-m", "x")
    _git(repository, "worktree", "add", "-q", "tree")
    guard = here.guard("Bash(git commit:*)")
    for folder in (repository / "tree", repository / "src"):
        folder.mkdir(exist_ok=True)
        said = guard.judge("Bash", {"command": "git commit -m x"}, cwd=str(folder))
        assert said.verdict == "allow", said.reason


def test_more_settings_than_can_be_replaced_are_an_error(repository: Path) -> None:
    lines = "".join(f"\ta{number} = log\n" for number in range(2100))
    with (repository / ".git" / "config").open("a", encoding="utf-8") as file:
        file.write(f"[alias]\n{lines}")
    with pytest.raises(StenoError, match="2000"):
        git_settings([str(repository)], strict=True)
    assert git_settings([str(repository)])


@pytest.mark.parametrize(
    ("command", "kept"),
    [
        ("gh pr view 3", True),
        ("go build ./...", True),
        ("g''it log", True),
        ("timeout 9 gh pr view", True),
        ("go test ./...", False),
        ("npm test", False),
        ("make all | tail -n 3", False),
    ],
)
def test_programs_that_may_call_git_get_its_settings(repository: Path, command: str, *, kept: bool) -> None:
    runner = ConfinedCommandRunner(RuleSet(), (str(repository),), {})
    execution = Execution("", approved=False)
    given = {"PATH": "/usr/bin"}
    found = asyncio.run(runner.environment(command, str(repository), execution, given))
    assert ("GIT_CONFIG_COUNT" in found) is kept


@pytest.mark.parametrize(("command", "allowed"), [("git push origin main", False), ("git fetch origin", True)])
def test_a_push_reaches_no_repository_of_this_machine(repository: Path, command: str, *, allowed: bool) -> None:
    runner = ConfinedCommandRunner(RuleSet(), (str(repository),), {})
    execution = Execution("", approved=False)
    given = {"PATH": "/usr/bin"}
    found = asyncio.run(runner.environment(command, str(repository), execution, given))
    assert ("protocol.file.allow" not in found.values()) is allowed


@pytest.mark.parametrize("name", ["DBPASS", "API_KEY2", "GH_TOKEN3", "SLACK_WEBHOOK_URL", "PASSWORD1"])
def test_more_names_of_secrets_are_kept_back(name: str) -> None:
    assert approved_environment({name: "s3cr3t-value", "EDITOR": "vi"}) == {"EDITOR": "vi"}


@pytest.mark.parametrize("command", ["cat " + "a " * 1500, "cat " + "< a " * 1500])
def test_a_command_with_too_many_words_asks(here: Judging, command: str) -> None:
    assert "1000 words" in here.bash(command, here.guard("Bash(cat:*)")).reason


@pytest.mark.parametrize("command", ["node --version > out", "uniq * > out", "xxd a b > out", "git log $x > out"])
def test_next_to_a_redirection_only_known_writers_run(here: Judging, command: str) -> None:
    assert here.bash(command, here.guard(mode="acceptEdits")).verdict == "ask"


@pytest.mark.parametrize(
    "command",
    [
        *("sed s/a/b/ src/a.py > out", "cat *.py > out", "ls | xargs wc -l > out", "git diff > out"),
        *("awk '{print $1}' src/a.py > out", "sort src/a.py > out"),
    ],
)
def test_ordinary_redirections_stay_accepted(here: Judging, repository: Path, command: str) -> None:
    assert repository
    assert here.bash(command, here.guard(mode="acceptEdits")).isolation == "edit"


def test_files_named_behind_a_command_with_a_rule_ask(here: Judging) -> None:
    guard = here.guard("Bash(make:*)")
    for command in ("make all; cat src/a.py", "make all && cd src", "make all; wc -l < src/a.py"):
        assert here.bash(command, guard).verdict == "ask"
    for command in ("cat src/a.py; make all", "make all; ls", "cd src && make all | sort", "make a; make b; pwd"):
        assert here.bash(command, guard).verdict == "allow"
