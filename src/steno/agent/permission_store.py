"""Permissions that change during a session: rules that the user adds, and grants for one turn.

granted = GrantedRules(project, env)
granted.add(("Bash(npm test:*)",), "local")       # now, and in .claude/settings.local.json

A granted rule applies to the session or is saved in a settings file; saving inserts one string and keeps
all other bytes. A slash command or skill grants rules and a model until the turn ends.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import msgspec

from steno.agent.command_sandbox import CommandSandbox
from steno.agent.config.skills import take_opened_skills
from steno.agent.loop import Agent
from steno.agent.tool_executor import RuleScope
from steno.agent.user_input import CompanionMessage, permissions_record
from steno.errors import BadRequest, Busy, Unwritable
from steno.format.lenient_json import as_list, as_object
from steno.format.tool_catalogue import SHELL
from steno.permissions.permission_checker import PermissionChecker
from steno.permissions.permission_rules import PERMISSION_MODES, Decision, PermissionMode, RuleSource, parse_rules
from steno.store.atomic import make_private_folder
from steno.store.dirfd import Directory
from steno.store.environment import config_dir, steno_home
from steno.store.file_lock import FileLock
from steno.tools.context import ToolContext

_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*"')
_PLAIN_VALUE: Final = re.compile(r"[^\s,\]}\[{:\"]+")
_BLANK: Final = re.compile(r"\s*")
_STRUCTURAL: Final = re.compile(r'[\[\]{}"]')
_INDENT_UNIT: Final = re.compile(r"\{[ \t]*\r?\n([ \t]+)\"")


class _Value(msgspec.Struct, frozen=True):
    """Position of a value in a container: `begin` includes its key."""

    key: str
    begin: int
    start: int
    end: int


def insert_list_item(text: str, keys: tuple[str, ...], item: str) -> str:
    """Return the text of a JSON object with a string added to the list under `keys`, created if missing.

    A list that contains the string already stays unchanged.

    Raises:
        ValueError: The text is not a JSON object, or a value under the keys has another type.
    """
    text = text if text.strip() else "{}\n"
    current = _object(text)
    expected = _with_list_item(current, keys, item)
    if expected == current:
        return text
    spliced = _splice(text, keys, item)
    # The result is verified, because a mistake would damage the user's settings.
    if _object(spliced) != expected:
        raise ValueError("its format does not allow adding a rule")
    return spliced


def _object(text: str) -> dict[str, Any]:
    try:
        value = as_object(msgspec.json.decode(text))
    except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
        raise ValueError("it is not valid JSON") from error
    if value is None:
        raise ValueError("it is not a JSON object")
    return value


def _with_list_item(value: dict[str, Any], keys: tuple[str, ...], item: str) -> dict[str, Any]:
    first, *rest = keys
    if not rest:
        items = as_list(value.get(first, []))
        if items is None:
            raise ValueError(f"`{first}` is not a list")
        return value if item in items else {**value, first: [*items, item]}
    nested = as_object(value.get(first, {}))
    if nested is None:
        raise ValueError(f"`{first}` is not an object")
    return {**value, first: _with_list_item(nested, tuple(rest), item)}


def _splice(text: str, keys: tuple[str, ...], item: str) -> str:
    position = _skip_blank(text, 0)
    for depth, key in enumerate(keys):
        # The last of duplicate keys applies, as in JSON parsers.
        matching = [child for child in _children(text, position) if child.key == key]
        if not matching:
            value: Any = [item]
            for name in reversed(keys[depth + 1 :]):
                value = {name: value}
            return _insert(text, position, key, value)
        position = matching[-1].start
    return _insert(text, position, None, item)


def _skip_blank(text: str, position: int) -> int:
    blank = _BLANK.match(text, position)
    return blank.end() if blank else position


def _children(text: str, position: int) -> Iterator[_Value]:
    is_object = text[position] == "{"
    position = _skip_blank(text, position + 1)
    while text[position] not in "]}":
        begin, key = position, ""
        if is_object:
            end = _value_end(text, position)
            key = msgspec.json.decode(text[position:end], type=str)
            position = _skip_blank(text, _skip_blank(text, end) + 1)
        end = _value_end(text, position)
        yield _Value(key, begin, position, end)
        position = _skip_blank(text, end)
        position = _skip_blank(text, position + 1) if text[position] == "," else position


def _value_end(text: str, position: int) -> int:
    if text[position] not in "[{":
        match = (_STRING if text[position] == '"' else _PLAIN_VALUE).match(text, position)
        return match.end() if match else position + 1
    depth = 0
    while True:
        mark = _STRUCTURAL.search(text, position)
        if mark is None:
            return len(text)
        position = _value_end(text, mark.start()) if mark[0] == '"' else mark.end()
        depth += (mark[0] in "[{") - (mark[0] in "]}")
        if not depth:
            return position


def _insert(text: str, position: int, key: str | None, value: Any) -> str:
    line_end = "\r\n" if "\r\n" in text else "\n"
    unit_match = _INDENT_UNIT.search(text)
    unit = unit_match[1] if unit_match else "  "
    outer_indent = _indent(text, position)
    children = list(_children(text, position))
    if not children:
        inner_indent = outer_indent + unit
        body = (
            line_end + inner_indent + _format_value(key, value, unit, line_end + inner_indent) + line_end + outer_indent
        )
        return text[: position + 1] + body + text[_value_end(text, position) - 1 :]
    last_child = children[-1]
    opening = text[position + 1 : children[0].begin]
    if "\n" not in opening:
        return f"{text[: last_child.end]}, {_format_value(key, value, '', '')}{text[last_child.end :]}"
    inner_indent = _indent(text, last_child.begin)
    new_item = _format_value(key, value, unit, line_end + inner_indent)
    return f"{text[: last_child.end]},{line_end}{inner_indent}{new_item}{text[last_child.end :]}"


def _indent(text: str, position: int) -> str:
    line = text[text.rfind("\n", 0, position) + 1 : position]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _format_value(key: str | None, value: Any, unit: str, line_break: str) -> str:
    import json

    encoded = json.dumps(value, ensure_ascii=False, indent=unit or None)
    encoded = encoded.replace("\n", line_break) if unit else encoded
    return encoded if key is None else f"{json.dumps(key, ensure_ascii=False)}: {encoded}"


_FILE_NAMES: Final[Mapping[RuleScope, str]] = {"local": "settings.local.json", "project": "settings.json"}
_BOM: Final = b"\xef\xbb\xbf"
_MAX_BYTES: Final = 1 << 20
_MAX_ATTEMPTS: Final = 5


class GrantedRules:
    """The rules that the user added in a session, shared with its sub-agents."""

    def __init__(self, project: str, env: Mapping[str, str]) -> None:
        self.rules: tuple[str, ...] = ()
        self._project = project
        self._env = env

    def add(self, rules: tuple[str, ...], scope: RuleScope) -> None:
        """Add rules to the session, and save them unless the scope is the session.

        Raises:
            BadRequest: One of the rules is invalid; none was added.
            Unwritable: The rules were added to the session but could not be saved.
        """
        for rule in rules:
            _check_rule(rule, self._project)
        self.rules = tuple(dict.fromkeys((*self.rules, *rules)))
        if scope != "session":
            for rule in rules:
                save_rule(rule, scope, self._project, self._env)


def settings_path(scope: RuleScope, project: str, env: Mapping[str, str]) -> str:
    """Return the settings file of a scope, with links in its directory resolved.

    Links inside a project are not resolved: a project must not redirect the write to another file.
    """
    if scope == "user":
        return os.path.realpath(os.path.join(config_dir(env), "settings.json"))
    return os.path.join(os.path.realpath(project), ".claude", _FILE_NAMES[scope])


def save_rule(rule: str, scope: RuleScope, project: str, env: Mapping[str, str]) -> str:
    """Add an allow rule to a settings file, created if missing; return its path.

    Raises:
        BadRequest: The rule is invalid.
        Unwritable: The file cannot be written or is not a valid settings file; it was left unchanged.
    """
    _check_rule(rule, project)
    path = settings_path(scope, project, env)
    try:
        make_private_folder(steno_home(env))
        with (
            FileLock(os.path.join(steno_home(env), "rules.lock")),
            Directory(os.path.dirname(path), make=True) as folder,
        ):
            for _ in range(_MAX_ATTEMPTS):
                if _add_rule_to_file(folder, os.path.basename(path), rule):
                    return path
    except (NotADirectoryError, FileExistsError) as error:
        raise Unwritable(f"rule not saved: {path} is behind a symbolic link") from error
    except ValueError as error:
        raise Unwritable(f"cannot add a rule to {path}: {error}") from error
    except OSError as error:
        if isinstance(error, Unwritable):
            raise
        reason = (error.strerror or str(error)).lower()
        raise Unwritable(f"cannot write {path}: {reason}") from error
    raise Unwritable(f"{path} is being changed by another program")


def _add_rule_to_file(folder: Directory, name: str, rule: str) -> bool:
    """Add a rule to a file; return False if another program changed the file meanwhile."""
    old_bytes, status = _read_content(folder, name)
    bom = _BOM if old_bytes.startswith(_BOM) else b""
    text = old_bytes[len(bom) :].decode("utf-8")
    new_bytes = bom + insert_list_item(text, ("permissions", "allow"), rule).encode("utf-8")
    if new_bytes == old_bytes and status is not None:
        return True

    def unchanged() -> None:
        if _read_content(folder, name)[0] != old_bytes:
            raise Busy(f"{name} changed during the update")

    try:
        folder.replace_file(name, new_bytes, status, before_replace=unchanged)
    except Busy:
        return False
    return True


def _read_content(folder: Directory, name: str) -> tuple[bytes, os.stat_result | None]:
    try:
        descriptor = folder.open(name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        return b"", None
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise ValueError("it is too large")
        return content, os.fstat(file.fileno())


def _check_rule(rule: str, project: str) -> None:
    problems = parse_rules([RuleSource(allow=(rule,))], root=project, cwd=project, home=project).problems
    if problems or not rule.isprintable():
        raise BadRequest(f"invalid permission rule: {rule!r}")


_OVERRIDABLE_MODES: Final = ("default", "acceptEdits")
"""Session modes that a sub-agent may override with its own mode."""


class TurnPermissions:
    """A permission checker that applies mode changes, rules granted for the session or turn, and the sandbox."""

    def __init__(
        self,
        guard: PermissionChecker,
        context: ToolContext,
        sandbox: CommandSandbox | None = None,
        granted: GrantedRules | None = None,
        *,
        own_mode: str = "",
        can_confine: Callable[[], bool] | None = None,
    ) -> None:
        """Store the base checker and the sources of changes; `own_mode` is the mode of a sub-agent, if any.

        `can_confine` returns whether commands can be sandboxed; it is called at the first command.
        """
        self._can_confine = can_confine
        self._own_mode = own_mode
        self._sandbox = sandbox
        self._granted = granted
        self._session_mode: PermissionMode = guard.mode
        self._base_guard: PermissionChecker = guard
        self._guard: PermissionChecker = guard
        self._context = context
        self._turn_rules: tuple[str, ...] = ()
        self._applied_rules: tuple[str, ...] = ()
        """The additional rules in the current checker."""

    @property
    def mode(self) -> PermissionMode:
        """The current permission mode."""
        mode = _parse_mode(self._context.plan.permission_mode) or self._session_mode
        # A sub-agent cannot leave plan mode, or a mode that never asks.
        return (_parse_mode(self._own_mode) or mode) if mode in _OVERRIDABLE_MODES else mode

    def add_rules(self, rules: tuple[str, ...]) -> None:
        """Allow more calls until the end of the turn; deny and ask rules still apply."""
        self._turn_rules = (*self._turn_rules, *rules)

    def clear_rules(self) -> None:
        """Remove the rules added for the turn."""
        self._turn_rules = ()

    def judge(self, tool: str, tool_input: dict[str, Any], /, *, cwd: str) -> Decision:
        """Decide whether a call is allowed."""
        if tool == SHELL and self._can_confine is not None:
            self._base_guard = self._base_guard.with_sandbox(can_sandbox=self._can_confine())
            self._guard = self._base_guard.with_rules(*self._applied_rules) if self._applied_rules else self._base_guard
            self._can_confine = None
        user_rules = self._granted.rules if self._granted is not None else ()
        extra_rules = (*user_rules, *self._turn_rules)
        if self.mode != self._base_guard.mode or extra_rules != self._applied_rules:
            self._base_guard = self._base_guard.with_mode(self.mode)
            self._guard = self._base_guard.with_rules(*extra_rules) if extra_rules else self._base_guard
            self._applied_rules = extra_rules
        decision = self._guard.judge(tool, tool_input, cwd=cwd)
        if self._sandbox is None:
            return decision
        return self._sandbox.allows(tool, tool_input, decision, self.mode)


def _parse_mode(name: str) -> PermissionMode | None:
    return next((mode for mode in PERMISSION_MODES if mode == name), None)


class TurnGrants:
    """Grants rules and a model to an agent until the end of the turn."""

    def __init__(self, agent: Agent, permissions: TurnPermissions, resolve_model: Callable[[str], str]) -> None:
        self._agent = agent
        self.permissions = permissions
        self._resolve_model = resolve_model
        self._original_model = ""
        agent.executor.end_turn = self.revoke

    def grant(self, allowed_tools: tuple[str, ...], model: str = "") -> None:
        """Add allow rules and switch to another model."""
        self.permissions.add_rules(allowed_tools)
        agent, resolved_model = self._agent, self._resolve_model(model)
        if resolved_model:
            self._original_model = self._original_model or agent.request_config.model
            agent.request_config = msgspec.structs.replace(agent.request_config, model=resolved_model)

    def revoke(self) -> None:
        """Undo all grants."""
        self.permissions.clear_rules()
        if self._original_model:
            agent, model = self._agent, self._original_model
            agent.request_config = msgspec.structs.replace(agent.request_config, model=model)
            self._original_model = ""


def take_skill_messages(context: ToolContext, grants: TurnGrants) -> list[CompanionMessage]:
    """Return the messages of skills opened by calls, and grant the tools that each skill allows."""
    opened = take_opened_skills(context)
    for skill in opened:
        grants.grant(skill.allowed_tools, skill.model)
    return [
        CompanionMessage(
            text=each.text,
            fields={"sourceToolUseID": each.call},
            mentions=each.mentions,
            records=(permissions_record(each.allowed_tools),),
        )
        for each in opened
    ]
