"""Commands of which it is known what they run are never allowed beyond what the rules allow."""

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Final

import pytest
from tests.campaign.size import sized
from tests.permissions.bash_truth import BASH_ENV, Ran, fits
from tests.permissions.commands import PROGRAMS, Dice, Maker
from tests.permissions.planted import HARM, LOOKS, Planter

from steno.permissions.permission_checker import PermissionChecker
from steno.permissions.permission_rules import RuleSource, parse_rules
from steno.permissions.shell.parser import parse_script

CASES: Final = int(os.environ.get("STENO_GUARD_CASES", "5000"))
MANY: Final = max(CASES, sized(100_000))
_ALSO: Final = ("sudo", "busybox", "find", "bash", "sh", "eval", "trap", "rg", "fd", "f")


def _guard(allowed: set[str], cwd: str) -> PermissionChecker:
    layer = RuleSource(tuple(f"Bash({name}:*)" for name in sorted(allowed)))
    return PermissionChecker(parse_rules([layer], root=cwd, cwd=cwd, home=cwd), "default", cwd, (cwd,))


def _count_allowed(tmp_path: Path, cases: int) -> int:
    """Judge commands whose programs are known under rules for some of them; return how many pass."""
    allowed_in_all = 0
    for seed in range(cases):
        dice = Dice(seed)
        allowed = {name for name in (*PROGRAMS, *_ALSO) if dice.random() < 0.7}
        made = Maker(seed, plain=seed % 3 > 0).make(1 + seed % 4)
        said = _guard(allowed, str(tmp_path)).decide("Bash", {"command": made.text}, str(tmp_path))
        if said.verdict == "allow":
            allowed_in_all += 1
            # These are let through for what they are given, or because they only read.
            left = made.runs - allowed - {"find", "rg", "trap"}
            assert not left, f"seed {seed}: {made.text!r} runs {left}"
    return allowed_in_all


@pytest.mark.timeout(0)
def test_no_command_is_allowed_that_runs_what_is_not(tmp_path: Path) -> None:
    assert _count_allowed(tmp_path, CASES) > CASES / 20


def _project(tmp_path: Path) -> str:
    project = tmp_path / "proj"
    (project / "src").mkdir(parents=True)
    (project / ".git").mkdir()
    for name in ("a.py", "b.py"):
        (project / "src" / name).write_text("x\n", encoding="utf-8")
    return str(project)


class Tally:
    """What was said of commands that only look, and of those with harm in them."""

    def __init__(self) -> None:
        self.looks = self.looks_allowed = self.harmful = 0

    @property
    def share(self) -> float:
        return self.looks_allowed / max(self.looks, 1)


def _planted(tmp_path: Path, cases: int) -> Tally:
    """Judge commands without any rule; harm was put into some, and what is in which is known."""
    cwd = _project(tmp_path)
    guard = _guard(set(), cwd)
    tally = Tally()
    for seed in range(cases):
        made = Planter(seed, harm=0 if seed % 2 else 0.3).make(1 + seed % 4)
        said = guard.decide("Bash", {"command": made.text}, cwd)
        if made.runs:
            tally.harmful += 1
            assert said.verdict != "allow", f"seed {seed}: {made.text!r}"
        else:
            tally.looks += 1
            tally.looks_allowed += said.verdict == "allow"
    return tally


@pytest.mark.timeout(0)
def test_no_harm_is_allowed_wherever_it_is_planted(tmp_path: Path) -> None:
    tally = _planted(tmp_path, CASES)
    assert tally.harmful > CASES / 10
    assert tally.share > 0.6


def test_what_only_looks_is_allowed_unasked(tmp_path: Path) -> None:
    cwd = _project(tmp_path)
    asking = [
        command for command in LOOKS if _guard(set(), cwd).decide("Bash", {"command": command}, cwd).verdict != "allow"
    ]
    assert asking == []


@pytest.mark.parametrize("command", HARM)
def test_each_harm_asks_by_itself(tmp_path: Path, command: str) -> None:
    cwd = _project(tmp_path)
    assert _guard(set(), cwd).decide("Bash", {"command": command}, cwd).verdict == "ask"


@pytest.mark.faults
@pytest.mark.timeout(0)
def test_a_hundred_thousand_commands_of_each_kind_are_judged_rightly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    allowed = _count_allowed(tmp_path, MANY)
    tally = _planted(tmp_path, MANY)
    with capsys.disabled():
        sys.stdout.write(
            f"\n{MANY:,} commands under random rules: {allowed:,} allowed, none wrongly"
            f"\n{tally.harmful:,} commands with harm planted: none allowed"
            f"\n{tally.looks:,} commands that only look: {tally.share:.1%} allowed unasked\n"
        )


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash to ask")
def test_what_is_made_is_bash(tmp_path: Path) -> None:
    made = [Planter(seed, harm=0.2).make(1 + seed % 4).text for seed in range(150)]
    path = tmp_path / "script"
    wrong = 0
    for text in made:
        path.write_text(text, encoding="utf-8")
        ran = subprocess.run(["bash", "-n", str(path)], capture_output=True, check=False)
        wrong += ran.returncode != 0
    assert wrong < len(made) / 20


def test_plain_commands_are_allowed_when_everything_they_run_is(tmp_path: Path) -> None:
    guard = _guard({*PROGRAMS, *_ALSO}, str(tmp_path))
    said = [
        guard.decide("Bash", {"command": Maker(seed, plain=True).make(2).text}, str(tmp_path)).verdict
        for seed in range(500)
    ]
    assert said.count("allow") > 350


def test_one_deny_rule_is_found_wherever_its_program_hides(tmp_path: Path) -> None:
    cwd = str(tmp_path)
    rules = parse_rules([RuleSource(("Bash",), deny=("Bash(alpha:*)",))], root=cwd, cwd=cwd, home=cwd)
    guard = PermissionChecker(rules, "default", cwd, (cwd,))
    for seed in range(1500):
        made = Maker(seed, plain=seed % 2 > 0).make(1 + seed % 4)
        verdict = guard.decide("Bash", {"command": made.text}, cwd).verdict
        assert "alpha" not in made.runs or verdict != "allow", made.text


_META: Final = (
    *("'", '"', "\\", "$", "(", ")", "{", "}", ";", "&", "|", "<", ">", "#", "`", "!", "=", "*"),
    *("?", "[", "]", "~", "a", " ", "\n", "\t", "$(", "${", "$'", "<(", "<<", "<<E", "&&", "||"),
)


def _changed(text: str, dice: Dice) -> str:
    for _ in range(dice.randrange(4)):
        at = dice.randrange(len(text) + 1)
        text = text[:at] + dice.choice(_META) + text[at:] if dice.random() < 0.6 else text[:at] + text[at + 1 :]
    return text


@pytest.mark.faults
@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash to compare with")
@pytest.mark.timeout(0)
def test_what_is_understood_is_what_bash_runs(tmp_path: Path) -> None:
    (tmp_path / "env").write_text(BASH_ENV, encoding="utf-8")
    (tmp_path / "cwd").mkdir()
    compared = 0
    for seed in range(max(600, CASES // 10)):
        dice = Dice(seed + 1_000_000)
        text = _changed(Maker(seed, plain=seed % 4 > 0).make(3).text, dice)
        reading = parse_script(text)
        if reading.trouble or not _is_tame(text):
            continue
        commands = list(reading.all_commands())
        if any(command.sealed for command in commands):
            continue
        log = tmp_path / f"log{seed}"
        _run(text, tmp_path, log)
        for ran in Ran.read(log):
            compared += 1
            assert fits(ran, commands), f"seed {seed}: bash runs {ran.argv} in {text!r}"
    assert compared > 100


def _is_tame(text: str) -> bool:
    """Whether nothing is run by its path, nothing calls itself, and nothing is left running."""
    if "/" in text.replace("/dev/null", "") or "()" in text or "function" in text:
        return False
    return not any(word in text for word in ("while", "until", "trap", "coproc", "&"))


def _run(text: str, folder: Path, log: Path) -> None:
    """Let bash run it, in a session of its own, of which nothing is left behind."""
    env = {"PATH": "/nonexistent", "BASH_ENV": str(folder / "env"), "LOG": str(log)}
    ran = subprocess.Popen(
        [shutil.which("bash") or "", "-c", text],
        env={**env, "LC_ALL": "C.UTF-8", "HOME": str(folder)},
        cwd=folder / "cwd",
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        ran.wait(timeout=30)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(ran.pid, signal.SIGKILL)
        ran.wait()
