"""Rules that are granted: this once, for the session, for always in a settings file."""

import asyncio
import json
import os
import stat
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steno.agent.config.settings import load_settings
from steno.agent.permission_store import GrantedRules, TurnPermissions, insert_list_item, save_rule, settings_path
from steno.agent.tool_executor import Approval, ToolExecutor
from steno.errors import BadRequest, Unwritable
from steno.llm.messages_api import Block
from steno.permissions.permission_checker import PermissionChecker
from steno.permissions.permission_rules import Decision, parse_rules
from steno.tools.builtin.bash import Bash
from steno.tools.context import ToolContext
from steno.tools.protocol import ToolResult
from steno.tools.registry import ToolRegistry

_RULE = "Bash(npm test:*)"
_KEYS = ("permissions", "allow")


@pytest.fixture
def env(tmp_path: Path) -> dict[str, str]:
    return {
        "HOME": str(tmp_path / "home"),
        "CLAUDE_CONFIG_DIR": str(tmp_path / "home" / ".claude"),
        "STENO_HOME": str(tmp_path / "home" / "steno"),
    }


@pytest.fixture
def project(tmp_path: Path) -> str:
    (tmp_path / "proj").mkdir()
    return str((tmp_path / "proj").resolve())


def local(project: str) -> Path:
    return Path(project, ".claude", "settings.local.json")


# The file


def test_a_file_is_made_where_there_is_none(project: str, env: dict[str, str]) -> None:
    assert save_rule(_RULE, "local", project, env) == str(local(project))
    text = local(project).read_text(encoding="utf-8")
    assert text == ('{\n  "permissions": {\n    "allow": [\n      "Bash(npm test:*)"\n    ]\n  }\n}\n')
    settings = load_settings(project, trusted=True, env=env, managed="/nonexistent")
    assert [rule.text for rule in settings.permissions.allow] == [_RULE]


_FORMS = [
    '{"permissions": {"allow": ["Read"]}}',
    '{"permissions":{"allow":[]},"x":1.50e+2}',
    '{\n\t"permissions": {\n\t\t"deny": ["Bash(rm:*)"]\n\t},\n\t"x": 1.0E+99\n}',
    '{\r\n    "model": "x",\r\n    "permissions": {\r\n      "allow": [\r\n        "Read"\r\n      ]}\r\n}\r\n',
    '{ "unheard": {"of": [1, 2, {"a": "}]\\""}]}, "permissions": {} }',
    '\ufeff{\n  "a": "\\u00e9 é",\n  "permissions": {"allow": [\n    "Read"\n  ], "z": null}\n}\n',
    "{}",
    "  \n",
]


@pytest.mark.parametrize("text", _FORMS)
def test_every_other_byte_of_the_file_stays(project: str, env: dict[str, str], text: str) -> None:
    path = local(project)
    path.parent.mkdir()
    path.write_bytes(text.encode())
    save_rule(_RULE, "local", project, env)
    made = path.read_bytes().decode()
    before = json.loads(text.removeprefix("\ufeff").strip() or "{}")
    after = json.loads(made.removeprefix("\ufeff"))
    allow = before.setdefault("permissions", {}).setdefault("allow", [])
    allow.append(_RULE)
    assert after == before
    if text.strip():
        # It reads as before, with something put in at one place.
        start = _alike(text, made)
        end = _alike(text[::-1], made[::-1])
        assert start + end >= len(text)
    assert ("\r\n" in text) == ("\r\n" in made)


def _alike(one: str, other: str) -> int:
    """Return how many letters two texts begin alike with."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((at for at, (a, b) in pairs if a != b), min(len(one), len(other)))


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(codec="utf-8")), inner),
    max_leaves=12,
)


@given(
    st.dictionaries(st.text(st.characters(codec="utf-8")), _JSON),
    st.none() | st.lists(st.text(st.characters(codec="utf-8"))),
    st.sampled_from([None, 1, 2, 4, "\t"]),
    st.sampled_from(["first", "last"]),
)
def test_any_settings_can_be_added_to(top: dict[str, Any], allow: list[str] | None, indent: Any, where: str) -> None:
    first = where == "first"
    permissions = {"deny": ["x"]} if allow is None else {"allow": allow, "ask": [{}]}
    value = {"permissions": permissions, **top} if first else {**top, "permissions": permissions}
    value["permissions"] = permissions
    text = json.dumps(value, indent=indent, ensure_ascii=first)
    made = json.loads(insert_list_item(text, _KEYS, _RULE))
    wanted = [*(allow or []), *([] if _RULE in (allow or []) else [_RULE])]
    assert made == {**value, "permissions": {**permissions, "allow": wanted}}


def test_a_rule_that_is_there_is_not_written_again(project: str, env: dict[str, str]) -> None:
    save_rule(_RULE, "local", project, env)
    before = local(project).stat()
    save_rule(_RULE, "local", project, env)
    after = local(project).stat()
    assert (before.st_ino, before.st_mtime_ns) == (after.st_ino, after.st_mtime_ns)


@pytest.mark.parametrize(
    "raw",
    [
        b"{",
        b"[]",
        b"{} {}",
        b'{"permissions": []}',
        b'{"permissions": {"allow": {}}}',
        b"// a comment\n{}",
        b"\xff",
        b'{"x": "' + b"a" * (1 << 20) + b'"}',
    ],
)
def test_what_cannot_be_read_as_settings_stays_as_it_was(project: str, env: dict[str, str], raw: bytes) -> None:
    path = local(project)
    path.parent.mkdir()
    path.write_bytes(raw)
    with pytest.raises(Unwritable, match="cannot add a rule"):
        save_rule(_RULE, "local", project, env)
    assert path.read_bytes() == raw
    assert [each.name for each in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("rule", ["", "Bash(", "Nonsense(x)", "Bash(a\nb)", "mcp__*", "*"])
def test_what_is_no_rule_is_not_kept(project: str, env: dict[str, str], rule: str) -> None:
    with pytest.raises(BadRequest, match="invalid permission rule"):
        save_rule(rule, "local", project, env)
    assert not local(project).exists()


def test_mode_and_name_of_the_file_stay(project: str, env: dict[str, str]) -> None:
    path = local(project)
    path.parent.mkdir()
    path.write_text("{}", encoding="utf-8")
    path.chmod(0o640)
    save_rule(_RULE, "local", project, env)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


def test_a_project_does_not_choose_by_a_link_what_is_written(project: str, env: dict[str, str], tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "settings.local.json").write_text("{}", encoding="utf-8")
    Path(project, ".claude").symlink_to(elsewhere)
    with pytest.raises(Unwritable, match="symbolic link"):
        save_rule(_RULE, "local", project, env)
    Path(project, ".claude").unlink()
    Path(project, ".claude").mkdir()
    local(project).symlink_to(elsewhere / "settings.local.json")
    with pytest.raises(Unwritable):
        save_rule(_RULE, "local", project, env)
    assert (elsewhere / "settings.local.json").read_text(encoding="utf-8") == "{}"


def test_the_users_own_file_may_be_a_link(project: str, env: dict[str, str], tmp_path: Path) -> None:
    kept = tmp_path / "dotfiles.json"
    kept.write_text('{"model": "opus"}', encoding="utf-8")
    config = Path(env["CLAUDE_CONFIG_DIR"])
    config.mkdir(parents=True)
    (config / "settings.json").symlink_to(kept)
    save_rule(_RULE, "user", project, env)
    assert json.loads(kept.read_bytes())["permissions"] == {"allow": [_RULE]}
    assert (config / "settings.json").is_symlink()
    assert settings_path("project", project, env).endswith("/.claude/settings.json")


def test_rules_granted_at_the_same_time_are_all_kept(project: str, env: dict[str, str]) -> None:
    rules = [f"Bash(run{number}:*)" for number in range(24)]
    threads = [threading.Thread(target=save_rule, args=(rule, "local", project, env)) for rule in rules]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    kept = json.loads(local(project).read_bytes())["permissions"]["allow"]
    assert sorted(kept) == sorted(rules)


def test_what_somebody_else_writes_meanwhile_is_not_lost(
    project: str, env: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    save_rule("Read", "local", project, env)
    real = os.fsync
    others = ['{"permissions": {"allow": ["WebSearch"]}, "other": 1}']

    def meddle(descriptor: int) -> None:
        if others:
            local(project).write_text(others.pop(), encoding="utf-8")
        real(descriptor)

    monkeypatch.setattr(os, "fsync", meddle)
    save_rule(_RULE, "local", project, env)
    made = json.loads(local(project).read_bytes())
    assert made == {"permissions": {"allow": ["WebSearch", _RULE]}, "other": 1}


# The flow


class Asked:
    """Somebody who is asked, with an answer ready."""

    def __init__(self, *answers: Approval) -> None:
        self.answers = list(answers)
        self.offers: list[tuple[str, ...]] = []

    async def __call__(self, _call: Block, decision: Decision) -> Approval:
        self.offers.append(decision.offers)
        await asyncio.sleep(0)
        return self.answers.pop(0) if self.answers else Approval(granted=False, message="no")


class Flow:
    """An agent's calls of Bash, with somebody to ask."""

    def __init__(self, project: str, env: dict[str, str], asked: Asked) -> None:
        rules = parse_rules([], root=project, cwd=project, home=env["HOME"])
        self.guard = PermissionChecker(rules, "default", project, (project,), home=env["HOME"])
        self.granted = GrantedRules(project, env)
        self.asked = asked
        self.callers = [self.caller(project), self.caller(project)]

    def caller(self, project: str) -> ToolExecutor:
        context = ToolContext(
            cwd=project, project=project, session_id="s", folder=project, env={"PATH": os.environ["PATH"]}
        )
        return ToolExecutor(
            tools=ToolRegistry([Bash()]),
            context=context,
            permission_checker=TurnPermissions(self.guard, context, granted=self.granted),
            emit=lambda _event: None,
            request_approval=self.asked,
            add_rules=self.granted.add,
        )

    async def run(self, command: str, which: int = 0) -> ToolResult:
        call = {"type": "tool_use", "id": command, "name": "Bash", "input": {"command": command}}
        return (await self.callers[which].execute(call))[0]


def test_a_yes_counts_once_and_a_rule_counts_on(project: str, env: dict[str, str]) -> None:
    rule = "Bash(./a.sh:*)"
    asked = Asked(Approval(granted=True), Approval(granted=True, rules=(rule,)))
    flow = Flow(project, env, asked)
    Path(project, "a.sh").write_text("#!/bin/sh\necho ran $1\n", encoding="utf-8")
    Path(project, "a.sh").chmod(0o700)

    async def play() -> None:
        assert (await flow.run("./a.sh 1")).content == "ran 1"
        assert len(asked.offers) == 1
        assert (await flow.run("./a.sh 2")).content == "ran 2"
        assert len(asked.offers) == 2
        assert (await flow.run("./a.sh 3")).content == "ran 3"
        assert (await flow.run("./a.sh 4", which=1)).content == "ran 4"
        assert len(asked.offers) == 2
        assert (await flow.run("rm a.sh")).is_error

    asyncio.run(play())
    assert not local(project).exists()


def test_always_is_kept_and_counts_in_the_next_session(project: str, env: dict[str, str]) -> None:
    asked = Asked(Approval(granted=True, rules=("Bash(mkdir x)",), scope="local"))
    flow = Flow(project, env, asked)
    assert not asyncio.run(flow.run("mkdir x")).is_error
    assert asked.offers == [("Bash(mkdir x)",)]
    settings = load_settings(project, trusted=True, env=env, managed="/nonexistent")
    assert [rule.text for rule in settings.permissions.allow] == ["Bash(mkdir x)"]


def test_what_is_lent_goes_back_and_what_was_granted_stays(project: str, env: dict[str, str]) -> None:
    flow = Flow(project, env, Asked())
    context = flow.callers[0].context
    guard = TurnPermissions(flow.guard, context, granted=flow.granted)

    def verdicts() -> list[str]:
        commands = ("mkdir x", "npm test", "touch x")
        return [guard.judge("Bash", {"command": each}, cwd=project).verdict for each in commands]

    guard.add_rules(("Bash(mkdir:*)",))
    flow.granted.add((_RULE,), "session")
    assert verdicts() == ["allow", "allow", "ask"]
    context.plan.permission_mode = "dontAsk"
    assert verdicts() == ["allow", "allow", "deny"]
    guard.clear_rules()
    assert verdicts() == ["deny", "allow", "deny"]
    context.plan.permission_mode = "default"
    assert verdicts() == ["ask", "allow", "ask"]


def test_calls_that_wait_to_be_asked_about_profit_from_a_rule(project: str, env: dict[str, str]) -> None:
    asked = Asked(Approval(granted=True, rules=("Bash(touch:*)",)))
    flow = Flow(project, env, asked)

    async def play() -> None:
        outcomes = await asyncio.gather(*(flow.run(f"touch {n}") for n in range(5)))
        assert not any(outcome.is_error for outcome in outcomes)

    asyncio.run(play())
    assert len(asked.offers) == 1


def test_a_rule_that_cannot_be_kept_still_holds_for_the_session(project: str, env: dict[str, str]) -> None:
    local(project).parent.mkdir()
    local(project).write_text("{", encoding="utf-8")
    granted = GrantedRules(project, env)
    with pytest.raises(Unwritable):
        granted.add((_RULE,), "local")
    assert granted.rules == (_RULE,)
    with pytest.raises(BadRequest):
        granted.add(("Bash(",), "session")
    assert granted.rules == (_RULE,)
