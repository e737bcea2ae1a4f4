"""The judge: what is allowed, asked about and refused, and why."""

import os
from typing import cast

import pytest
from tests.permissions.judging import Judging

from steno.errors import BadRequest
from steno.permissions.permission_checker import PermissionChecker
from steno.permissions.permission_rules import PERMISSION_MODES, PermissionMode, RuleSet


@pytest.mark.parametrize(
    "command",
    [
        "ls -la src",
        "cat src/a.py | head -n 5",
        "grep -rn 'x y' src",
        "rg -n foo src -g '*.py'",
        "find . -name '*.py' -type f",
        "git status --short",
        "git diff HEAD~1 -- src/a.py",
        "git log --oneline -5",
        "git -C src log -n 3",
        "cd src && ls",
        "wc -l src/a.py && echo done",
        "pwd; date +%F",
        'for f in a b; do echo "$f"; done',
        "if [ -f src/a.py ]; then cat src/a.py; fi",
        "x=1; echo $x",
        "ls 2>/dev/null || true",
        'cat src/a.py | while read -r line; do echo "$line"; done',
        "timeout 5 cat src/a.py",
        "cat <<'EOF'\nrm $(x)\nEOF",
        "command -v git",
    ],
)
def test_reading_inside_the_folders_needs_no_rule_in_any_mode(here: Judging, command: str) -> None:
    for mode in PERMISSION_MODES:
        assert here.bash(command, here.guard(mode=mode)).verdict == "allow", mode


@pytest.mark.parametrize("command", ["cat /etc/passwd", "ls ..", "cat ~/x", "grep x -r /", "cd .. && ls"])
def test_reading_elsewhere_asks(here: Judging, command: str) -> None:
    assert here.bash(command, here.guard()).verdict == "ask"


def test_the_read_only_commands_can_be_chosen(here: Judging) -> None:
    cwd = str(here.project)
    guard = PermissionChecker(RuleSet(), "default", cwd, (cwd,), read_only_commands=("ls",))
    assert here.bash("ls", guard).verdict == "allow"
    assert here.bash("cat src/a.py", guard).verdict == "ask"


def test_plan_mode_only_reads(here: Judging) -> None:
    guard = here.guard("Bash", "Edit", "Bash(npm:*)", mode="plan")
    assert here.file("Write", "src/x", guard).verdict == "deny"
    assert here.bash("npm test", guard).verdict == "ask"
    assert here.bash("echo x > src/x", guard).verdict == "deny"
    assert here.file("Read", "src/a.py", guard).verdict == "allow"


def test_accepted_edits_stay_inside_the_folders(here: Judging) -> None:
    guard = here.guard(mode="acceptEdits")
    assert here.file("Write", "src/x", guard).verdict == "allow"
    assert here.file("Write", "../x", guard).verdict == "ask"
    for command in ("mkdir -p a/b", "touch src/x", "rm -f src/a.py", "mv src/a.py b.py", "echo x > y"):
        assert here.bash(command, guard).verdict == "allow", command
    for command in (
        "rm -rf .",
        "rm -rf ..",
        "rm -rf /",
        "rm -rf ~",
        "rm -rf $x",
        "rm *",
        "rm -rf .git",
        "mv src ../x",
        "mv src .git/hooks",
        "cp -r src x",
        "cp /etc/passwd x",
        "cp -t .git/hooks x",
        "mkdir /x",
        "chmod +x src/a.py",
        "ln -s /etc x",
        "npm test",
    ):
        assert here.bash(command, guard).verdict == "ask", command


def test_bypassing_allows_all_but_what_is_forbidden_or_protected(here: Judging) -> None:
    guard = here.guard(mode="bypassPermissions", deny=("Bash(rm:*)", "Read(.env)"))
    assert here.bash("npm test > out", guard).verdict == "allow"
    assert here.bash("rm x", guard).verdict == "deny"
    assert here.bash("cat .env", guard).verdict == "deny"
    assert here.bash("echo x > .git/config", guard).verdict == "ask"
    assert here.file("Write", "/somewhere/else", guard).verdict == "allow"
    assert here.file("Write", ".claude/settings.json", guard).verdict == "ask"
    assert guard.judge("mcp__s__t", {}, cwd=str(here.project)).verdict == "allow"
    assert here.bash("{ weird", here.guard(mode="bypassPermissions")).verdict == "allow"


def test_where_nobody_is_asked_the_answer_is_no(here: Judging) -> None:
    guard = here.guard("Bash(npm test)", mode="dontAsk")
    assert here.bash("npm test", guard).verdict == "allow"
    assert here.bash("npm run x", guard).verdict == "deny"
    assert here.file("Read", "/etc/passwd", guard).verdict == "deny"
    assert here.bash("npm run x", guard).offers == ()


def test_deny_beats_ask_and_ask_beats_allow(here: Judging) -> None:
    guard = here.guard("Bash(git:*)", ask=("Bash(git push:*)",), deny=("Bash(git push -f:*)",))
    assert here.bash("git add x", guard).verdict == "allow"
    assert here.bash("git push", guard).verdict == "ask"
    assert here.bash("git push -f", guard).verdict == "deny"
    assert here.bash("git push; git push -f", guard).verdict == "deny"


def test_an_edit_rule_does_not_open_a_redirection_elsewhere(here: Judging) -> None:
    guard = here.guard("Bash(echo:*)", "Edit(/src/**)")
    assert here.bash("echo x > src/y", guard).verdict == "allow"
    assert here.bash("echo x > y", guard).verdict == "ask"


def test_where_no_rule_is_enough_a_rule_for_each_part_is_offered(here: Judging) -> None:
    said = here.bash("make a && git status && make b", here.guard())
    assert said.offers == ()
    assert said.together == ("Bash(make a)", "Bash(git status)", "Bash(make b)")
    again = here.bash("make a && git status && make b", here.guard().with_rules(*said.together))
    assert again.verdict == "allow"
    for open_end in ("make a && $WHATEVER", "make a && make b > /etc/passwd", "make a"):
        assert here.bash(open_end, here.guard()).together == ()


def test_offers_would_allow_the_very_call(here: Judging) -> None:
    cwd = str(here.project)
    for tool, given in (
        ("Bash", {"command": "npm run build && ls"}),
        ("Bash", {"command": "cargo test --all"}),
        ("Bash", {"command": "git commit -m 'a b'"}),
        ("Bash", {"command": "timeout 5 pytest -x"}),
        ("Read", {"file_path": "/opt/x/y"}),
        ("Write", {"file_path": "src/new.py"}),
        ("WebFetch", {"url": "https://example.com/x"}),
        ("mcp__s__t", {}),
    ):
        said = here.guard().judge(tool, given, cwd=cwd)
        assert said.verdict == "ask"
        assert said.offers, given
        for offer in said.offers:
            assert here.guard(offer).judge(tool, given, cwd=cwd).verdict == "allow", offer


def test_the_narrowest_offer_comes_first(here: Judging) -> None:
    assert here.bash("npm run build", here.guard()).offers == ("Bash(npm run build)", "Bash(npm run build:*)")
    said = here.file("Edit", "src/a.py", here.guard())
    assert said.offers == ("Edit(/src/a.py)", "Edit(/src/**)")


@pytest.mark.parametrize(
    "command",
    [
        *("python x.py", "python3 -m http.server", "node x.js", "bash x.sh", "sh -c 'ls x'"),
        *(
            "sudo ls",
            "env python x",
            "xargs sh",
            "timeout 5 node x",
            "find / -name x",
            "perl x",
            "ssh host ls",
            "eval ls",
        ),
        *("rm -rf x", "curl x", "npx thing", "docker run x", "git -c a=b log", "uv run x", "awk 1 x"),
    ],
)
def test_no_offer_opens_an_interpreter_or_all_of_a_dangerous_program(here: Judging, command: str) -> None:
    for offer in here.bash(command, here.guard()).offers:
        assert not offer.endswith(":*)"), offer
        assert "*" not in offer


def test_searches_stay_inside_and_their_patterns_too(here: Judging) -> None:
    cwd = str(here.project)
    guard = here.guard()
    for given, verdict in (
        ({"pattern": "**/*.py"}, "allow"),
        ({"pattern": "*.py", "path": "src"}, "allow"),
        ({"pattern": "*", "path": "/etc"}, "ask"),
        ({"pattern": "/etc/*"}, "ask"),
        ({"pattern": "../*"}, "ask"),
        ({"pattern": "src/*/../../../*"}, "ask"),
        ({"pattern": "~/x*"}, "ask"),
    ):
        assert guard.judge("Glob", given, cwd=cwd).verdict == verdict, given
    assert guard.judge("Grep", {"pattern": "/etc/x"}, cwd=cwd).verdict == "allow"
    assert guard.judge("Grep", {"pattern": "x", "path": ".."}, cwd=cwd).verdict == "ask"


@pytest.mark.parametrize("given", [{}, {"command": 1}, {"command": None}, {"command": ""}])
def test_calls_without_sense_ask(here: Judging, given: dict[str, object]) -> None:
    cwd = str(here.project)
    for tool in ("Bash", "Read", "Write", "WebFetch", "Unheard"):
        assert here.guard().judge(tool, given, cwd=cwd).verdict == "ask"


def test_a_guard_is_not_made_of_nonsense(here: Judging) -> None:
    with pytest.raises(BadRequest, match="unknown permission mode"):
        PermissionChecker(RuleSet(), cast("PermissionMode", "yolo"), "/p", ("/p",))
    with pytest.raises(BadRequest, match="absolute"):
        PermissionChecker(RuleSet(), "default", "/p", ("p",))
    assert here.guard().with_mode("plan").mode == "plan"


def test_without_a_home_a_tilde_stands_for_nothing(here: Judging, monkeypatch: pytest.MonkeyPatch) -> None:
    guard = here.guard()
    monkeypatch.delenv("HOME")
    monkeypatch.setattr("steno.permissions.permission_checker.home_dir", _homeless)
    cwd = str(here.project)
    homeless = PermissionChecker(guard.rules, "default", cwd, (cwd,))
    assert homeless.judge("Bash", {"command": "cat ~/x"}, cwd=cwd).verdict == "ask"
    decision = homeless.judge("Read", {"file_path": "~/x"}, cwd=cwd)
    assert (decision.verdict, decision.paths) == ("allow", (os.path.realpath(f"{cwd}/~/x"),))


def _homeless() -> str:
    raise BadRequest("home directory not set")


def test_modes_and_folders_that_make_no_sense_are_refused(here: Judging) -> None:
    rules, cwd = here.guard().rules, str(here.project)
    with pytest.raises(BadRequest, match="unknown permission mode 'other'") as caught:
        PermissionChecker(rules, cast("PermissionMode", "other"), cwd, (cwd,))
    modes = "default, plan, acceptEdits, bypassPermissions, dontAsk"
    assert caught.value.hint == f"Modes: {modes}"
    for folders in (("relative",), (cwd, "relative")):
        with pytest.raises(BadRequest, match="must be absolute"):
            PermissionChecker(rules, "default", cwd, folders)
    with pytest.raises(BadRequest, match="must be absolute"):
        PermissionChecker(rules, "default", "relative", (cwd,))
