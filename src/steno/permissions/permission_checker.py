"""Decides whether a tool call is allowed, denied or needs approval, and suggests rules for it.

checker = PermissionChecker(parse_rules(sources, root=…, cwd=cwd, home=…), "default", cwd, (cwd,))
checker.judge("Bash", {"command": "git status && rm -rf x"}, cwd=cwd)   # ask, with the reason

Deny rules come before ask rules, and those before allow rules. What cannot be parsed asks. Calls
of `Bash` are parsed as bash parses them, so they must be run by bash.
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

# Programs whose first word says what they do.
_PROGRAMS_WITH_SUBCOMMANDS: Final = word_set(
    "git npm pnpm yarn cargo go docker podman kubectl gh pip uv poetry bundle mvn gradle dotnet brew"
    " apt apt-get systemctl terraform helm make just task"
)
_SCRIPT_RUNNERS: Final = frozenset({"npm", "pnpm", "yarn", "bun", "make", "just", "task"})
# Nobody should allow these with any words whatever.
_NEVER_SUGGESTED: Final = word_set(
    "rm rmdir mv cp dd chmod chown chgrp ln kill pkill killall curl wget mkfs mount umount shutdown"
    " reboot truncate shred install tee touch mkdir"
)
_SUBCOMMAND: Final = re.compile(r"[a-z][a-z0-9:_-]*")


def suggest_command_rules(command: Command) -> Iterator[str]:
    """Yield rules that would allow a command; whoever asks for them sees whether they do."""
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
    """Yield rules for a file and for its folder."""
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
    """Judges tool calls by rules, mode and place."""

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
        """Take the rules, the mode, the project's folder and all working folders.

        `home` is what the tools and bash will take `~` for: that of their environment.
        `can_sandbox` says whether whoever runs commands can confine them.

        Raises:
            BadRequest: there is no such mode, or a folder is not absolute.
        """
        self.rules = rules
        self.mode: PermissionMode = mode
        self.cwd = cwd
        self.folders = tuple(dict.fromkeys(folders))
        self._read_only_commands = None if read_only_commands is None else frozenset(read_only_commands)
        self._home_dir = _home_dir_or_empty() if home is None else home
        if mode not in PERMISSION_MODES:
            modes = ", ".join(PERMISSION_MODES)
            raise BadRequest(f"there is no permission mode {mode!r}", hint=f"one of {modes}")
        if not all(map(os.path.isabs, (cwd, *self.folders))):
            raise BadRequest("working folders must be absolute")
        self._file_permissions = FilePermissions(rules, mode, self.folders)
        self.can_sandbox = can_sandbox
        self._command_permissions = CommandPermissions(
            rules, mode, self.folders, self._file_permissions, self._home_dir, self._read_only_commands, can_sandbox
        )

    def judge(self, tool_name: str, tool_input: dict[str, Any], *, cwd: str) -> Decision:
        """Say whether a tool may be called with what it is given, in a folder."""
        tool = rule_tool_name(tool_name)
        decision = self.decide(tool, tool_input, cwd)
        if decision.verdict != "ask":
            return decision
        if self.mode == "dontAsk":
            return Decision("deny", f"{decision.reason}; in this mode nobody is asked", decision.rule)
        if decision.rule:
            return decision
        suggestions = tuple(self._suggest_rules(tool, tool_input, cwd))
        combined = () if suggestions or tool != SHELL else tuple(self._combine_rules(tool_input, cwd))
        return msgspec.structs.replace(decision, offers=suggestions, together=combined)

    def visibility_filter(self, folder: str) -> Callable[[str], bool]:
        """Return what says whether a search of a folder may show a name that it came upon there.

        Where the folder is, and whether it may be searched, was judged before; what counts here is
        whether some of what is in it is kept from being read.
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
        """Return the same guard in another mode."""
        return self._copy(self.rules, mode)

    def with_sandbox(self, *, can_sandbox: bool) -> "PermissionChecker":
        """Return the same guard for commands that can, or cannot, be confined."""
        return self._copy(self.rules, self.mode, can_sandbox=can_sandbox)

    def with_rules(self, *allow: str) -> "PermissionChecker":
        """Return the same guard with more rules that allow."""
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
        """Whether a rule names a call, or something that it runs."""
        source = RuleSource(deny=(rule,))
        rules = parse_rules([source], root=self.cwd, cwd=self.cwd, home=home_dir())
        checker = PermissionChecker(rules, "default", self.cwd, self.folders, self._read_only_commands)
        return checker.judge(tool, tool_input, cwd=self.cwd).verdict == "deny"

    # Tools

    def decide(self, tool: str, tool_input: dict[str, Any], cwd: str) -> Decision:
        """Judge without offers, and before the mode has made a refusal of a question."""
        if tool == SHELL:
            command = tool_input.get("command")
            if not isinstance(command, str):
                return Decision("ask", "there is no command in it")
            return self._command_permissions.decide(command, cwd)
        if tool in EDIT_TOOLS:
            if not _first_path(tool_input):
                return Decision("ask", "it does not say which file it changes")
            # All that are given are judged: which one counts is for the tool to say.
            resolved_paths = [self._resolve(path, cwd) for path in _input_paths(tool_input)]
            return _strictest(
                resolved_paths,
                [self._file_permissions.decide_write(resolved_path, tool) for resolved_path in resolved_paths],
            )
        if tool in READ_TOOLS:
            return self._decide_read(tool, tool_input, cwd)
        if tool == "WebFetch":
            host = _url_host(tool_input.get("url"))
            return self._decide_by_name(tool, host, f"it fetches {host or 'an address that is unclear'}")
        name = next(
            (str(tool_input[key]) for key in _NAME_FIELDS.get(tool, ()) if isinstance(tool_input.get(key), str)), ""
        )
        return self._decide_by_name(
            tool, name.removeprefix("/"), "" if tool_facts(tool).permission == "free" else f"it calls {tool}"
        )

    def _decide_read(self, tool: str, tool_input: dict[str, Any], cwd: str) -> Decision:
        path = _first_path(tool_input)
        if not path and tool == "Read":
            return Decision("ask", "it does not say which file it reads")
        resolved_paths = [self._resolve(each, cwd) for each in _input_paths(tool_input) or ["."]]
        pattern = tool_input.get("pattern")
        if tool == "Glob" and isinstance(pattern, str):
            resolved_paths = list(self._glob_targets(pattern, _input_paths(tool_input) or ["."], cwd))
        return _strictest(
            resolved_paths,
            [self._file_permissions.decide_read(resolved_path, tool) for resolved_path in resolved_paths],
        )

    def _glob_targets(self, pattern: str, paths: list[str], cwd: str) -> Iterator[ResolvedPath]:
        """Yield the folders that a pattern is looked for in, and what it names in them."""
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
        """Return the place that a tool will take a path for."""
        try:
            return ResolvedPath.of(resolve_path(path, cwd, self._home_dir))
        except (OSError, ValueError):
            return ResolvedPath(path, path, broken=True)

    def _decide_by_name(self, tool: str, name: str, ask_reason: str) -> Decision:
        """Judge by name alone; without words to ask with, it is allowed."""
        include_subdomains = tool == "WebFetch"
        for rule in self.rules.for_tool("deny", tool):
            if rule.matches_name(name, include_subdomains=include_subdomains):
                return Decision("deny", f"the rule {rule.text} forbids it", rule.text)
        for rule in self.rules.for_tool("ask", tool):
            if rule.matches_name(name, include_subdomains=include_subdomains):
                return Decision("ask", f"the rule {rule.text} asks", rule.text)
        for rule in self.rules.for_tool("allow", tool):
            if self._rule_allows(rule, name):
                return Decision("allow", f"the rule {rule.text} allows it", rule.text)
        if self.mode == "bypassPermissions":
            return Decision("allow", "permissions are bypassed")
        return Decision("ask", ask_reason) if ask_reason else Decision("allow", "it changes nothing by itself")

    @staticmethod
    def _rule_allows(rule: PermissionRule, name: str) -> bool:
        return bool(name or not rule.name) and rule.matches_name(name)

    # Offers

    def _suggest_rules(self, tool: str, tool_input: dict[str, Any], cwd: str) -> Iterator[str]:
        """Yield the rules under which this very call would be allowed."""
        for rule in dict.fromkeys(self._candidate_rules(tool, tool_input, cwd)):
            if self.with_rules(rule).decide(tool, tool_input, cwd).verdict == "allow":
                yield rule

    def _combine_rules(self, tool_input: dict[str, Any], cwd: str) -> list[str]:
        """Return the narrowest rules under which all parts of a command would be allowed."""
        narrowest = [next(offers, "") for offers in self._suggest_by_part(tool_input, cwd)]
        rules = list(dict.fromkeys(narrowest))
        if len(rules) < len(("one", "another")) or "" in rules:
            return []
        allowed = self.with_rules(*rules).decide(SHELL, tool_input, cwd).verdict == "allow"
        return rules if allowed else []

    def _suggest_by_part(self, tool_input: dict[str, Any], cwd: str) -> Iterator[Iterator[str]]:
        """Yield the rules for each part of a command that nothing allows."""
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
    """Return the strictest of decisions, with all the places that were judged."""
    order = {"deny": 0, "ask": 1, "allow": 2}
    strictest = min(decisions, key=lambda decision: order[decision.verdict])
    return msgspec.structs.replace(strictest, paths=tuple(resolved_path.real for resolved_path in resolved_paths))


def _home_dir_or_empty() -> str:
    with suppress(BadRequest):
        return home_dir()
    return ""


def _url_host(url: object) -> str:
    """Return the host that an address leads to; nothing where readers of it could disagree."""
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
