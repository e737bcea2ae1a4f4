"""Rules in the form of Claude Code: what each is about."""

import os
from pathlib import Path

import pytest
from tests.permissions.judging import Judging

from steno.permissions.paths import ResolvedPath
from steno.permissions.permission_rules import RuleSet, RuleSource, parse_command_pattern, parse_rules
from steno.permissions.shell.command import UNKNOWN_PART


def _rules(*layers: RuleSource, cwd: str = "/p") -> RuleSet:
    return parse_rules(layers, root=cwd, cwd=cwd, home="/home/me")


@pytest.mark.parametrize(
    ("rule", "command", "fits"),
    [
        ("npm run build", "npm run build", True),
        ("npm run build", "npm run build --x", False),
        ("npm run build", "npm  run   build", True),
        ("npm run test:*", "npm run test", True),
        ("npm run test:*", "npm run test --watch", True),
        ("npm run test:*", "npm run test:unit", False),
        ("npm run test:*", "npm run tests", False),
        ("npm run test*", "npm run test:unit", True),
        ("ls *", "ls", True),
        ("ls *", "ls -l", True),
        ("ls *", "lsof", False),
        ("ls*", "lsof", True),
        ("git * main", "git checkout main", True),
        ("git * main", "git push origin main", True),
        ("git * main", "git push origin maint", False),
        ("* --version", "node --version", True),
        ("git commit -m 'a b'", "git commit -m 'a b'", True),
        ("git commit -m 'a b'", "git commit -m a b", False),
        ("git commit -m a b", "git commit -m 'a b'", False),
        ("echo", "'echo x'", False),
        ("echo x", "'echo x'", False),
    ],
)
def test_command_patterns_fit_as_they_are_written(here: Judging, rule: str, command: str, *, fits: bool) -> None:
    said = here.bash(command, here.guard(f"Bash({rule})"))
    builtin = here.bash(command, here.guard())
    assert (said.verdict == "allow") == (fits or builtin.verdict == "allow")


def test_a_hole_is_covered_only_by_a_star() -> None:
    assert parse_command_pattern("git log:*").matches(f"git log {UNKNOWN_PART}")
    assert not parse_command_pattern("git log").matches(f"git {UNKNOWN_PART}")
    assert not parse_command_pattern("git log:*").matches(f"git {UNKNOWN_PART} x")
    assert parse_command_pattern("git log:*").may_match(f"git {UNKNOWN_PART} x")
    assert parse_command_pattern("git log").may_match(UNKNOWN_PART)
    assert parse_command_pattern("git * main").may_match(f"git push {UNKNOWN_PART}")
    assert not parse_command_pattern("git push:*").may_match(f"npm {UNKNOWN_PART}")


@pytest.mark.parametrize(
    ("rule", "path", "fits"),
    [
        ("Read(./secrets/**)", "/p/secrets/a/b", True),
        ("Read(./secrets/**)", "/p/x/secrets/a", False),
        ("Read(secrets/**)", "/p/secrets/a", True),
        ("Read(.env)", "/p/a/b/.env", True),
        ("Read(*.key)", "/p/a/x.key", True),
        ("Read(*.key)", "/q/x.key", False),
        ("Read(/src/**)", "/p/src/a", True),
        ("Read(/src/**)", "/src/a", False),
        ("Read(//etc/**)", "/etc/passwd", True),
        ("Read(//etc/**)", "/p/etc/passwd", False),
        ("Read(~/.zshrc)", "/home/me/.zshrc", True),
        ("Read(~/.zshrc)", "/p/.zshrc", False),
        ("Read(/src/*.py)", "/p/src/a.py", True),
        ("Read(/src/*.py)", "/p/src/x/a.py", False),
        ("Read(/src/**/*.py)", "/p/src/x/y/a.py", True),
    ],
)
def test_path_patterns_are_anchored_as_they_are_written(rule: str, path: str, *, fits: bool) -> None:
    (made,) = _rules(RuleSource(allow=(rule,))).allow
    place = ResolvedPath(path, path)
    assert made.paths[0].matches_real_path(place) is fits
    assert made.paths[0].matches_any_name(place) is fits


def test_rules_of_all_layers_hold_together() -> None:
    rules = _rules(RuleSource(allow=("Bash(a)",)), RuleSource(allow=("Bash(b)",), deny=("Read",)))
    assert [rule.text for rule in rules.allow] == ["Bash(a)", "Bash(b)"]
    assert [rule.text for rule in rules.deny] == ["Read"]
    assert rules.problems == ()


@pytest.mark.parametrize("text", ["Bash(npm", "Bash()", "Read(!x)", "WebFetch(example.com)", "mcp__s(x)", "Bash)x("])
def test_a_rule_that_cannot_be_read_is_told_and_fails_closed(text: str) -> None:
    assert _rules(RuleSource(allow=(text,))).allow == ()
    rules = _rules(RuleSource(deny=(text,)))
    (asked,) = rules.ask
    assert rules.problems
    assert text in rules.problems[0]
    assert asked.covers_all_calls
    assert asked.tool == text.split("(", maxsplit=1)[0].split(")", maxsplit=1)[0]


def test_a_broken_deny_rule_asks_for_everything_of_its_tool(here: Judging) -> None:
    guard = here.guard("Bash", deny=("Bash(rm",))
    assert here.bash("ls", guard).verdict == "ask"
    assert here.file("Read", "src/a.py", guard).verdict == "allow"
    everything = here.guard("Bash", "Read", deny=("(x)",))
    assert here.bash("ls", everything).verdict == "ask"
    assert here.file("Read", "src/a.py", everything).verdict == "ask"


def test_edit_rules_cover_all_that_writes_and_read_rules_all_that_reads(here: Judging) -> None:
    guard = here.guard("Edit(/src/**)", deny=("Read(/src/x/**)",))
    for tool in ("Edit", "Write", "MultiEdit", "NotebookEdit"):
        assert here.file(tool, "src/new.py", guard).verdict == "allow"
        assert here.file(tool, "other.py", guard).verdict == "ask"
        assert here.file(tool, "src/x/y", guard).verdict == "ask"
    for tool in ("Read", "Grep", "Glob"):
        said = guard.judge(tool, {"path": "src/x"}, cwd=str(here.project))
        assert said.verdict == "deny", tool


def test_deny_rules_see_other_spellings_of_a_name(here: Judging) -> None:
    guard = here.guard(deny=("Read(caf\u00e9.txt)",))
    for name in ("caf\u00e9.txt", "cafe\u0301.txt", "CAF\u00c9.TXT", "./x/../caf\u00e9.txt"):
        assert here.file("Read", name, guard).verdict == "deny", name


def test_servers_and_their_tools_are_named_by_rules(here: Judging) -> None:
    cwd = str(here.project)
    for rule, tool, verdict in (
        ("mcp__s", "mcp__s__t", "allow"),
        ("mcp__s__*", "mcp__s__t", "allow"),
        ("mcp__s__t", "mcp__s__t", "allow"),
        ("mcp__s__t", "mcp__s__u", "ask"),
        ("mcp__s", "mcp__s2__t", "ask"),
        ("mcp__*", "mcp__s__t", "ask"),
    ):
        assert here.guard(rule).judge(tool, {}, cwd=cwd).verdict == verdict, rule
    assert here.guard(deny=("mcp__*",)).judge("mcp__s__t", {}, cwd=cwd).verdict == "deny"


def test_domains_are_compared_whole(here: Judging) -> None:
    cwd = str(here.project)
    guard = here.guard("WebFetch(domain:example.com)", deny=("WebFetch(domain:bad.org)",))
    for url, verdict in (
        ("https://example.com/x", "allow"),
        ("https://EXAMPLE.com./x", "allow"),
        ("https://example.com.evil.org", "ask"),
        ("https://notexample.com", "ask"),
        ("https://example.com@evil.org", "ask"),
        ("https://evil.org\\@example.com", "ask"),
        ("https://sub.example.com", "ask"),
        ("file://example.com/etc", "ask"),
        ("https://bad.org", "deny"),
        ("https://a.bad.org", "deny"),
    ):
        assert guard.judge("WebFetch", {"url": url}, cwd=cwd).verdict == verdict, url


def test_agents_and_skills_are_free_but_for_rules(here: Judging) -> None:
    cwd = str(here.project)
    guard = here.guard(deny=("Task(risky)", "Skill(deploy:*)"), ask=("Agent(slow)",))
    for tool in ("Agent", "Task"):
        assert guard.judge(tool, {"subagent_type": "risky"}, cwd=cwd).verdict == "deny"
        assert guard.judge(tool, {"subagent_type": "slow"}, cwd=cwd).verdict == "ask"
        assert guard.judge(tool, {"subagent_type": "plain"}, cwd=cwd).verdict == "allow"
    assert guard.judge("Skill", {"skill": "deploy-all"}, cwd=cwd).verdict == "deny"
    assert guard.judge("Skill", {"skill": "pdf"}, cwd=cwd).verdict == "allow"
    assert guard.judge("TodoWrite", {}, cwd=cwd).verdict == "allow"


def test_rules_reach_the_home_folder(here: Judging, tmp_path: Path) -> None:
    home = Path(os.environ["HOME"])
    (home / "notes").mkdir()
    guard = here.guard("Read(~/notes/**)")
    assert here.file("Read", home / "notes" / "x", guard).verdict == "allow"
    assert here.file("Read", tmp_path / "notes" / "x", guard).verdict == "ask"
