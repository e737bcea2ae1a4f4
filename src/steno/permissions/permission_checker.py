"""Decides whether a tool call is allowed, denied or needs approval, and suggests rules for it.

checker = PermissionChecker(parse_rules(sources, root=…, cwd=cwd, home=home), "default", cwd, (cwd,))
checker.judge("Bash", {"command": "git status && rm -rf x"}, cwd=cwd)   # ask, with the reason

Deny rules take precedence over ask rules, and ask rules over allow rules. Commands that cannot be parsed need approval.
`Bash` commands are parsed as bash parses them, so bash must run them.
"""

import os
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final

import msgspec

from steno.errors import BadRequest
from steno.format.tool_catalogue import AGENT, PATH_FIELDS, SHELL, SKILL, tool_facts
from steno.permissions.command_permissions import CommandPermissions
from steno.permissions.file_permissions import FilePermissions, TooManyFiles
from steno.permissions.paths import ResolvedPath, relative_parts, resolve_glob, resolve_path
from steno.permissions.permission_rules import (
    EDIT_TOOLS,
    PERMISSION_MODES,
    READ_TOOLS,
    Decision,
    PermissionMode,
    PermissionRule,
    RuleSet,
    RuleSource,
    parse_rules,
    rule_tool_name,
)
from steno.permissions.shell.command import Command, word_set
from steno.permissions.shell.dangerous_options import DANGEROUS_OPTIONS
from steno.permissions.shell.nested_commands import runs_code
from steno.store.environment import home_dir

# Programs with subcommands.
_PROGRAMS_WITH_SUBCOMMANDS: Final = word_set(
    "git npm pnpm yarn cargo go docker podman kubectl gh pip uv poetry bundle mvn gradle dotnet brew"
    " apt apt-get systemctl terraform helm make just task"
)
_SCRIPT_RUNNERS: Final = frozenset({"npm", "pnpm", "yarn", "bun", "make", "just", "task"})
# Programs that are never suggested as a prefix rule, because any argument would be allowed.
_NEVER_SUGGESTED: Final = word_set(
    "rm rmdir mv cp dd chmod chown chgrp ln kill pkill killall curl wget mkfs mount umount shutdown"
    " reboot truncate shred install tee touch mkdir"
)
_SUBCOMMAND: Final = re.compile(r"[a-z][a-z0-9:_-]*")


def suggest_command_rules(command: Command) -> Iterator[str]:
    """Yield rules that may allow a command; the caller checks whether they do."""
    texts = [word.text for word in command.words]
    if not texts or command.assignments:
        return
    is_literal = all(word.literal and "\n" not in word.text for word in command.words)
    if is_literal and not command.sealed and not any("*" in text for text in texts):
        yield f"Bash({' '.join(map(_quote_word, texts))})"
    program = command.words[0]
    if not program.literal or "/" in program.text or program.text in _NEVER_SUGGESTED:
        return
    if program.text in _PROGRAMS_WITH_SUBCOMMANDS:
        subcommand = texts[1] if len(texts) > 1 else ""
        dangerous_options = DANGEROUS_OPTIONS.get(program.text)
        if not _SUBCOMMAND.fullmatch(subcommand) or (
            dangerous_options is not None and subcommand in dangerous_options.first.split()
        ):
            return
        script = texts[2] if len(texts) > len(("npm", "run")) else ""
        if program.text in _SCRIPT_RUNNERS and subcommand == "run" and _SUBCOMMAND.fullmatch(script):
            yield f"Bash({program.text} run {script}:*)"
        elif subcommand != "run":
            yield f"Bash({program.text} {subcommand}:*)"
    elif not runs_code(program.text):
        yield f"Bash({program.text}:*)"


def _quote_word(text: str) -> str:
    return text if re.fullmatch(r"[\w@%+=:,./~^-]+", text) else shlex.quote(text)


def suggest_path_rules(resolved_path: ResolvedPath, tool: str, root: str) -> Iterator[str]:
    """Yield rules for a file and for its directory."""
    name = "Edit" if tool in EDIT_TOOLS else "Read"
    parts_below_root = relative_parts(resolved_path.real_parts, ResolvedPath.of(root).real_parts)
    path = "/" + "/".join(parts_below_root) if parts_below_root is not None else "/" + resolved_path.real
    if re.search(r"[*?\[\]!()\\\n#]", path) or path.endswith(" "):
        return
    if not os.path.isdir(resolved_path.real):
        yield f"{name}({path})"
        path = os.path.dirname(path)
    if path.strip("/"):
        yield f"{name}({path}/**)"


_NAME_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    AGENT: ("subagent_type", "agent_type"),
    SKILL: ("skill", "command", "name"),
}


class PermissionChecker:
    """Decides about tool calls by rules, permission mode and location."""

    def __init__(
        self,
        rules: RuleSet,
        mode: PermissionMode,
        cwd: str,
        folders: Iterable[str],
        read_only_commands: Iterable[str] | None = None,
        *,
        home: str | None = None,
        can_sandbox: bool = True,
    ) -> None:
        """Create a checker for the project directory `cwd` and all working directories `folders`.

        `home` is the directory that tools and bash expand `~` to. `can_sandbox` says whether commands can be sandboxed.

        Raises:
            BadRequest: the mode is unknown, or a directory is not absolute.
        """
        self.rules = rules
        self.mode: PermissionMode = mode
        self.cwd = cwd
        self.folders = tuple(dict.fromkeys(folders))
        self._read_only_commands = None if read_only_commands is None else frozenset(read_only_commands)
        self._home_dir = _home_dir_or_empty() if home is None else home
        if mode not in PERMISSION_MODES:
            modes = ", ".join(PERMISSION_MODES)
            raise BadRequest(f"unknown permission mode {mode!r}", hint=f"Modes: {modes}")
        if not all(map(os.path.isabs, (cwd, *self.folders))):
            raise BadRequest("working directories must be absolute paths")
        self._file_permissions = FilePermissions(rules, mode, self.folders)
        self.can_sandbox = can_sandbox
        self._command_permissions = CommandPermissions(
            rules, mode, self.folders, self._file_permissions, self._home_dir, self._read_only_commands, can_sandbox
        )

    def judge(self, tool_name: str, tool_input: dict[str, Any], *, cwd: str) -> Decision:
        """Decide whether a tool may be called with an input in a directory."""
        tool = rule_tool_name(tool_name)
        decision = self.decide(tool, tool_input, cwd)
        if decision.verdict != "ask":
            return decision
        if self.mode == "dontAsk":
            return Decision("deny", f"{decision.reason}; dontAsk mode denies it", decision.rule)
        if decision.rule:
            return decision
        suggestions = tuple(self._suggest_rules(tool, tool_input, cwd))
        combined = () if suggestions or tool != SHELL else tuple(self._combine_rules(tool_input, cwd))
        return msgspec.structs.replace(decision, offers=suggestions, together=combined)

    def visibility_filter(self, folder: str) -> Callable[[str], bool]:
        """Return a function that decides whether search results may show a name in a directory.

        The directory itself was already checked; the function hides files in it that may not be read.
        """
        real = os.path.realpath(folder)

        @lru_cache(maxsize=1)
        def denied_inodes() -> frozenset[tuple[int, int]] | None:
            try:
                return self._file_permissions.denied_inodes("Read")
            except TooManyFiles:
                return None

        def is_visible(name: str) -> bool:
            resolved_path = ResolvedPath(os.path.join(folder, name), os.path.join(real, name))
            if self._file_permissions.is_hidden(resolved_path):
                return False
            if not self.rules.for_tool("deny", "Read") or not resolved_path.is_shared:
                return True
            status, denied_files = os.lstat(resolved_path.real), denied_inodes()
            return denied_files is not None and (status.st_dev, status.st_ino) not in denied_files

        return is_visible

    def with_mode(self, mode: PermissionMode) -> "PermissionChecker":
        """Return a copy of this checker with another mode."""
        return self._copy(self.rules, mode)

    def with_sandbox(self, *, can_sandbox: bool) -> "PermissionChecker":
        """Return a copy of this checker with or without a sandbox."""
        return self._copy(self.rules, self.mode, can_sandbox=can_sandbox)

    def with_rules(self, *allow: str) -> "PermissionChecker":
        """Return a copy of this checker with more allow rules."""
        added = parse_rules([RuleSource(allow=allow)], root=self.cwd, cwd=self.cwd, home=self._home_dir)
        rules = RuleSet(
            (*self.rules.allow, *added.allow), self.rules.ask, self.rules.deny, (*self.rules.problems, *added.problems)
        )
        return self._copy(rules, self.mode)

    def _copy(self, rules: RuleSet, mode: PermissionMode, *, can_sandbox: bool | None = None) -> "PermissionChecker":
        return PermissionChecker(
            rules,
            mode,
            self.cwd,
            self.folders,
            self._read_only_commands,
            home=self._home_dir,
            can_sandbox=self.can_sandbox if can_sandbox is None else can_sandbox,
        )

    def matches_rule(self, rule: str, tool: str, tool_input: dict[str, Any]) -> bool:
        """Whether a rule matches a call, or a command that it runs."""
        source = RuleSource(deny=(rule,))
        rules = parse_rules([source], root=self.cwd, cwd=self.cwd, home=home_dir())
        checker = PermissionChecker(rules, "default", self.cwd, self.folders, self._read_only_commands)
        return checker.judge(tool, tool_input, cwd=self.cwd).verdict == "deny"

    # Tools

    def decide(self, tool: str, tool_input: dict[str, Any], cwd: str) -> Decision:
        """Decide without suggestions, before dontAsk mode turns approval into a denial."""
        if tool == SHELL:
            command = tool_input.get("command")
            if not isinstance(command, str):
                return Decision("ask", "the command is missing")
            return self._command_permissions.decide(command, cwd)
        if tool in EDIT_TOOLS:
            if not _first_path(tool_input):
                return Decision("ask", "the file path is missing")
            # Check every given path, because the tool decides which one it uses.
            resolved_paths = [self._resolve(path, cwd) for path in _input_paths(tool_input)]
            return _strictest(
                resolved_paths,
                [self._file_permissions.decide_write(resolved_path, tool) for resolved_path in resolved_paths],
            )
        if tool in READ_TOOLS:
            return self._decide_read(tool, tool_input, cwd)
        if tool == "WebFetch":
            host = _url_host(tool_input.get("url"))
            return self._decide_by_name(tool, host, f"fetches {host or 'a URL without a clear host'}")
        name = next(
            (str(tool_input[key]) for key in _NAME_FIELDS.get(tool, ()) if isinstance(tool_input.get(key), str)), ""
        )
        return self._decide_by_name(
            tool, name.removeprefix("/"), "" if tool_facts(tool).permission == "free" else f"calls {tool}"
        )

    def _decide_read(self, tool: str, tool_input: dict[str, Any], cwd: str) -> Decision:
        path = _first_path(tool_input)
        if not path and tool == "Read":
            return Decision("ask", "the file path is missing")
        resolved_paths = [self._resolve(each, cwd) for each in _input_paths(tool_input) or ["."]]
        pattern = tool_input.get("pattern")
        if tool == "Glob" and isinstance(pattern, str):
            resolved_paths = list(self._glob_targets(pattern, _input_paths(tool_input) or ["."], cwd))
        return _strictest(
            resolved_paths,
            [self._file_permissions.decide_read(resolved_path, tool) for resolved_path in resolved_paths],
        )

    def _glob_targets(self, pattern: str, paths: list[str], cwd: str) -> Iterator[ResolvedPath]:
        """Yield the directories that a pattern searches, and the literal paths in the pattern."""
        for path in paths:
            try:
                folder, rest_pattern = resolve_glob(pattern, path, cwd, self._home_dir)
            except (OSError, ValueError):
                folder, rest_pattern = pattern, os.pardir
            if os.pardir in rest_pattern.split("/"):
                yield ResolvedPath(pattern, pattern, broken=True)
                continue
            yield ResolvedPath.of(folder)
            literal_prefix = re.split(r"[*?\[{\\]", rest_pattern, maxsplit=1)[0].lstrip("/")
            literal_path = (
                literal_prefix
                if literal_prefix == rest_pattern.lstrip("/")
                else literal_prefix[: literal_prefix.rfind("/") + 1]
            )
            if literal_path:
                yield ResolvedPath.of(literal_path, folder)

    def _resolve(self, path: str, cwd: str) -> ResolvedPath:
        """Resolve a path as the tool does."""
        try:
            return ResolvedPath.of(resolve_path(path, cwd, self._home_dir))
        except (OSError, ValueError):
            return ResolvedPath(path, path, broken=True)

    def _decide_by_name(self, tool: str, name: str, ask_reason: str) -> Decision:
        """Decide by name only; allow the call if `ask_reason` is empty."""
        include_subdomains = tool == "WebFetch"
        for rule in self.rules.for_tool("deny", tool):
            if rule.matches_name(name, include_subdomains=include_subdomains):
                return Decision("deny", f"denied by rule {rule.text}", rule.text)
        for rule in self.rules.for_tool("ask", tool):
            if rule.matches_name(name, include_subdomains=include_subdomains):
                return Decision("ask", f"rule {rule.text} requires approval", rule.text)
        for rule in self.rules.for_tool("allow", tool):
            if self._rule_allows(rule, name):
                return Decision("allow", f"allowed by rule {rule.text}", rule.text)
        if self.mode == "bypassPermissions":
            return Decision("allow", "permissions are bypassed")
        return Decision("ask", ask_reason) if ask_reason else Decision("allow", "has no side effects")

    @staticmethod
    def _rule_allows(rule: PermissionRule, name: str) -> bool:
        return bool(name or not rule.name) and rule.matches_name(name)

    # Suggestions

    def _suggest_rules(self, tool: str, tool_input: dict[str, Any], cwd: str) -> Iterator[str]:
        """Yield the rules that would allow this call."""
        for rule in dict.fromkeys(self._candidate_rules(tool, tool_input, cwd)):
            if self.with_rules(rule).decide(tool, tool_input, cwd).verdict == "allow":
                yield rule

    def _combine_rules(self, tool_input: dict[str, Any], cwd: str) -> list[str]:
        """Return the narrowest rules that together allow all parts of a command."""
        narrowest = [next(offers, "") for offers in self._suggest_by_part(tool_input, cwd)]
        rules = list(dict.fromkeys(narrowest))
        if len(rules) < len(("one", "another")) or "" in rules:
            return []
        allowed = self.with_rules(*rules).decide(SHELL, tool_input, cwd).verdict == "allow"
        return rules if allowed else []

    def _suggest_by_part(self, tool_input: dict[str, Any], cwd: str) -> Iterator[Iterator[str]]:
        """Yield the suggested rules for each part of a command that is not allowed."""
        script = tool_input.get("command")
        for command in self._command_permissions.commands_without_rule(script, cwd) if isinstance(script, str) else []:
            inner = command
            while inner.transparent and inner.inner:
                inner = inner.inner[0]
            yield suggest_command_rules(inner)

    def _candidate_rules(self, tool: str, tool_input: dict[str, Any], cwd: str) -> Iterator[str]:
        if tool == SHELL:
            yield from next(self._suggest_by_part(tool_input, cwd), ())
        elif tool in EDIT_TOOLS | READ_TOOLS:
            yield from suggest_path_rules(self._resolve(_first_path(tool_input) or ".", cwd), tool, self.cwd)
        elif tool == "WebFetch":
            host = _url_host(tool_input.get("url"))
            if host:
                yield f"WebFetch(domain:{host})"
        elif tool.startswith("mcp__") and re.fullmatch(r"[\w-]+", tool):
            yield tool
            yield tool[: tool.index("__", len("mcp__"))] if "__" in tool[len("mcp__") :] else tool
        elif tool_facts(tool).permission != "free" and re.fullmatch(r"\w+", tool):
            yield tool


def _first_path(tool_input: dict[str, Any]) -> str:
    return next(iter(_input_paths(tool_input)), "")


def _input_paths(tool_input: dict[str, Any]) -> list[str]:
    values = (tool_input.get(key) for key in PATH_FIELDS)
    return [path for path in values if isinstance(path, str) and path]


def _strictest(resolved_paths: list[ResolvedPath], decisions: list[Decision]) -> Decision:
    """Return the strictest decision, with the real paths of all checked files."""
    order = {"deny": 0, "ask": 1, "allow": 2}
    strictest = min(decisions, key=lambda decision: order[decision.verdict])
    return msgspec.structs.replace(strictest, paths=tuple(resolved_path.real for resolved_path in resolved_paths))


def _home_dir_or_empty() -> str:
    with suppress(BadRequest):
        return home_dir()
    return ""


def _url_host(url: object) -> str:
    """Return the host of a URL; empty if URL parsers could disagree about it."""
    if not isinstance(url, str) or re.search(r"[\\\s\x00-\x1f\x7f@]", url):
        return ""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return ""
    if parts.scheme not in {"http", "https"} or not re.fullmatch(r"[a-z0-9.:-]+", host):
        return ""
    return host.rstrip(".")
