"""Permission modes, decisions, and rules as Claude Code writes them: `Bash(npm run test:*)`.

sources = [RuleSource(allow=("Bash(git status)",), deny=("Read(.env)",))]
rules = parse_rules(sources, root=…, cwd=…, home=…)
rules.problems          # rules that cannot be parsed; for deny and ask rules every call needs approval
"""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from steno.format.tool_catalogue import AGENT, SHELL, SKILL, rule_name, tools_where
from steno.permissions.paths import ResolvedPath, fold_name, relative_parts
from steno.permissions.shell.command import INNER_SPACE, UNKNOWN_PART

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


PermissionMode: TypeAlias = Literal["default", "plan", "acceptEdits", "bypassPermissions", "dontAsk"]
PERMISSION_MODES: tuple[PermissionMode, ...] = ("default", "plan", "acceptEdits", "bypassPermissions", "dontAsk")
ASKING_MODES: Final = frozenset({"default", "acceptEdits"})
"""The modes in which the user is asked for approval."""
Verdict: TypeAlias = Literal["allow", "ask", "deny"]
Isolation: TypeAlias = Literal["", "read", "edit", "fixed"]
"""How an allowed command runs.

`read`: sandboxed, without writes. `edit`: sandboxed, with writes in the working directories. `fixed`: a built-in
command with a fixed form, not sandboxed. Empty: not sandboxed, because a rule, the mode or the user allows it.
"""


class Decision(msgspec.Struct, frozen=True):
    """The decision about a call, and its reason."""

    verdict: Verdict
    reason: str
    """Reason as a phrase, shown to the user and the model."""
    rule: str = ""
    """The rule that decided, as written in the settings; empty if none did."""
    paths: tuple[str, ...] = ()
    """Real paths of the checked files; the call may open only these."""
    offers: tuple[str, ...] = ()
    """For `ask`: rules that would allow this call, narrowest first."""
    isolation: Isolation = ""
    """How an allowed command must be sandboxed."""
    exact: bool = False
    """Whether the whole command was allowed, not only a prefix of it."""
    together: tuple[str, ...] = ()
    """Rules that together allow the command, one per part, if no single rule does."""


_ALL_WORDS: Final = 4000


class CommandPattern(msgspec.Struct, frozen=True):
    """A pattern for the text of a command; `*` matches any text."""

    text: str
    named: int
    """Number of complete words before the first `*`; a very large number without `*`."""

    @property
    def has_wildcard(self) -> bool:
        """Whether the pattern contains a `*`."""
        return "*" in self.text

    def matches(self, command: str) -> bool:
        """Whether a command matches for every value of its unknown parts."""
        return self._wildcard_spans(command) is not None

    def wildcard_words(self, words: Sequence[str]) -> dict[int, int] | None:
        """Return the words that `*` matches at least in part; None if the command does not match.

        The value is the number of characters before the first `*` in the word.
        """
        spans = self._wildcard_spans(" ".join(words))
        if spans is None:
            return None
        named_lengths: dict[int, int] = {}
        begin = span_index = 0
        for index, word in enumerate(words):
            end = begin + len(word)
            while span_index < len(spans) and spans[span_index][1] <= begin:
                span_index += 1
            if span_index < len(spans) and spans[span_index][0] < end:
                named_lengths[index] = max(0, spans[span_index][0] - begin)
            begin = end + 1
        return named_lengths

    def _wildcard_spans(self, command: str) -> list[tuple[int, int]] | None:
        """Return the span that each `*` matches, as early as possible."""
        prefix, *middle = self.text.split("*")
        if not middle:
            return [] if command == prefix else None
        suffix = middle.pop()
        # `ls *` also matches a bare `ls`, but never `lsof`.
        if not middle and not suffix and prefix.endswith(" ") and command == prefix[:-1]:
            return []
        if not command.startswith(prefix):
            return None
        spans: list[tuple[int, int]] = []
        position = len(prefix)
        for literal_text in middle:
            next_position = command.find(literal_text, position)
            if next_position < 0:
                return None
            spans.append((position, next_position))
            position = next_position + len(literal_text)
        end = len(command) - len(suffix)
        if end < position or not command.endswith(suffix):
            return None
        return [span for span in (*spans, (position, end)) if span[0] < span[1]]

    def may_match(self, command: str) -> bool:
        """Whether a command matches for at least one value of its unknown parts."""
        if UNKNOWN_PART not in command:
            return self.matches(command)
        for pattern in (self.text, self.text.removesuffix(" *")):
            if _patterns_overlap(pattern, command.replace(UNKNOWN_PART, "*") if "*" not in command else command):
                return True
        return False


def parse_command_pattern(specifier: str) -> CommandPattern:
    """Parse the specifier of a `Bash(…)` rule: exact, `words:*`, or with `*` anywhere."""
    text = specifier.strip()
    if text.endswith(":*"):
        text = text[:-2] + " *"
    text = _unquote(text)
    prefix, star, _ = text.partition("*")
    if not star:
        return CommandPattern(text, _ALL_WORDS)
    literal_words = len(prefix.split()) - (0 if prefix.endswith(" ") or not prefix else 1)
    return CommandPattern(text, literal_words)


def _unquote(text: str) -> str:
    """Remove quotes as the shell does, so that rules and commands can be compared."""
    if not re.search(r"['\"\\]", text):
        return " ".join(text.split())
    import shlex

    try:
        words = shlex.split(text)
    except ValueError:
        return text
    return " ".join(re.sub(r"[ \t\n]", INNER_SPACE, word) or "''" for word in words)


def _patterns_overlap(pattern: str, other_pattern: str) -> bool:
    """Whether a text exists that matches both patterns."""
    positions = {0}
    positions = _skip_wildcards(pattern, positions)
    for char in other_pattern:
        if char == "*":
            positions = set(range(min(positions), len(pattern) + 1)) if positions else positions
            continue
        next_positions: set[int] = set()
        for position in positions:
            if position < len(pattern) and pattern[position] == "*":
                next_positions.add(position)
            elif position < len(pattern) and pattern[position] == char:
                next_positions.add(position + 1)
        positions = _skip_wildcards(pattern, next_positions)
        if not positions:
            return False
    return len(pattern) in positions


def _skip_wildcards(pattern: str, positions: set[int]) -> set[int]:
    """Add the positions reached when a `*` matches nothing."""
    result = set(positions)
    for position in sorted(positions):
        next_position = position
        while next_position < len(pattern) and pattern[next_position] == "*":
            next_position += 1
            result.add(next_position)
    return result


class PathPattern(msgspec.Struct, frozen=True):
    """A gitignore pattern relative to a directory."""

    base: str
    """The absolute directory that the pattern is relative to."""
    pattern: str

    def matches_real_path(self, resolved_path: ResolvedPath) -> bool:
        """Whether an allow rule matches: only the real path, exactly."""
        rest = relative_parts(resolved_path.real_parts, ResolvedPath.of(self.base).real_parts)
        return rest is not None and _matches_gitignore(self.pattern, "/".join(rest))

    def matches_any_name(self, resolved_path: ResolvedPath) -> bool:
        """Whether a deny or ask rule matches: any name of the path, regardless of spelling."""
        base = ResolvedPath.of(self.base)
        pattern = fold_name(self.pattern)
        for parts in resolved_path.all_parts:
            for base_parts in (base.parts, base.real_parts):
                rest = relative_parts(tuple(map(fold_name, parts)), tuple(map(fold_name, base_parts)))
                if rest is None:
                    continue
                path = "/".join(rest)
                if _matches_gitignore(pattern, path) or _matches_gitignore(pattern.removesuffix("/**"), path):
                    return True
        return False


def parse_path_pattern(specifier: str, root: str, cwd: str, home: str) -> PathPattern | None:
    """Parse the specifier of a `Read(…)` or `Edit(…)` rule; None if it is invalid."""
    text = specifier.strip()
    if not text or text.startswith("!") or "\n" in text or "\0" in text:
        return None
    if text.startswith("//"):
        return PathPattern("/", "/" + text[2:].lstrip("/"))
    if text == "~" or text.startswith("~/"):
        return PathPattern(home, "/" + text[2:]) if home else None
    if text.startswith("/"):
        return PathPattern(root, text)
    if text.startswith("./"):
        return PathPattern(cwd, "/" + text[2:])
    if text.startswith("../") or text == "..":
        return None
    return PathPattern(cwd, text)


def _matches_gitignore(pattern: str, path: str) -> bool:
    if pattern in {"/", "/**", "**"}:
        return True
    return bool(path) and _gitignore_spec(pattern).match_file(path)


@lru_cache(maxsize=1024)
def _gitignore_spec(pattern: str) -> "GitIgnoreSpec":
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines([pattern])


RuleKind: TypeAlias = Literal["allow", "ask", "deny"]
_RULE_SYNTAX: Final = re.compile(r"(?P<tool>[A-Za-z_][\w.*-]*)(?:\((?P<inside>.*)\))?", re.DOTALL | re.ASCII)
_TOOL_NAME: Final = re.compile(r"\s*([A-Za-z_][\w-]*)", re.ASCII)
EDIT_TOOLS: Final = frozenset(tools_where(lambda facts: facts.permission == "edit"))
READ_TOOLS: Final = frozenset(tools_where(lambda facts: facts.permission == "read"))
_TOOLS_WITH_NAMES: Final = frozenset({AGENT, SKILL})


class RuleSource(msgspec.Struct, frozen=True):
    """The rules of one settings file or command-line option."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class PermissionRule(msgspec.Struct, frozen=True):
    """One parsed rule."""

    text: str
    """The rule as written in the settings."""
    tool: str
    """The tool that the rule applies to; `*` for all."""
    name: str = ""
    """The domain, agent, skill or server tool, with `*` as a wildcard."""
    command: CommandPattern | None = None
    paths: tuple[PathPattern, ...] = ()
    broken: bool = False
    """Whether the rule cannot be parsed; it then requires approval for every call of its tool."""

    @property
    def covers_all_calls(self) -> bool:
        """Whether the rule applies to every call of its tool."""
        return not self.name and self.command is None and not self.paths

    def applies_to(self, tool: str) -> bool:
        """Whether the rule applies to a tool."""
        if self.tool in {"*", tool}:
            return True
        if self.tool.startswith("mcp__") and tool.startswith("mcp__"):
            return re.fullmatch(_glob_regex(self.tool), tool) is not None or (
                "__" not in self.tool[5:] and tool.startswith(f"{self.tool}__")
            )
        if self.tool == "Edit":
            return tool in EDIT_TOOLS
        return self.tool == "Read" and tool in READ_TOOLS

    def matches_name(self, name: str, *, include_subdomains: bool = False) -> bool:
        """Whether the rule matches a domain, agent or skill; `include_subdomains` also matches subdomains."""
        if not self.name:
            return True
        if re.fullmatch(_glob_regex(self.name), name):
            return True
        return include_subdomains and name.endswith("." + self.name.removeprefix("*."))


def _glob_regex(text: str) -> str:
    return ".*".join(map(re.escape, text.split("*")))


class RuleSet(msgspec.Struct, frozen=True):
    """All rules in effect, from all settings layers."""

    allow: tuple[PermissionRule, ...] = ()
    ask: tuple[PermissionRule, ...] = ()
    deny: tuple[PermissionRule, ...] = ()
    problems: tuple[str, ...] = ()
    """Messages about rules that cannot be parsed."""

    def for_tool(self, kind: RuleKind, tool: str) -> tuple[PermissionRule, ...]:
        """Return the rules of a kind that apply to a tool."""
        rules: tuple[PermissionRule, ...] = getattr(self, kind)
        return tuple(rule for rule in rules if rule.applies_to(tool))


def parse_rules(sources: Iterable[RuleSource], *, root: str, cwd: str, home: str) -> RuleSet:
    """Parse the rules of all layers; no layer overrides another."""
    rules_by_kind: dict[RuleKind, list[PermissionRule]] = {"allow": [], "ask": [], "deny": []}
    problems: list[str] = []
    for source in sources:
        for kind, rules in rules_by_kind.items():
            texts: tuple[str, ...] = getattr(source, kind)
            for text in dict.fromkeys(texts):
                rule = _parse_rule(text, kind, (root, cwd, home))
                if rule is not None and not rule.broken:
                    rules.append(rule)
                    continue
                consequence = "" if kind == "allow" else "; until it is fixed, every call of its tool needs approval"
                problems.append(f"cannot parse the {kind} rule {text!r}{consequence}")
                if kind != "allow":
                    tool_name = _TOOL_NAME.match(text)
                    tool = rule_tool_name(tool_name[1]) if tool_name else "*"
                    rules_by_kind["ask"].append(PermissionRule(text, tool, broken=True))
    return RuleSet(
        allow=tuple(rules_by_kind["allow"]),
        ask=tuple(rules_by_kind["ask"]),
        deny=tuple(rules_by_kind["deny"]),
        problems=tuple(problems),
    )


def rule_tool_name(name: str) -> str:
    """Return the tool name that rules use."""
    return rule_name(name)


def _parse_rule(text: str, kind: RuleKind, base_folders: tuple[str, str, str]) -> PermissionRule | None:
    match = _RULE_SYNTAX.fullmatch(text.strip())
    if match is None:
        return None
    tool, specifier = rule_tool_name(match["tool"]), match["inside"]
    if "*" in tool and not (tool.startswith("mcp__") or (tool == "*" and kind != "allow")):
        return None
    if tool.startswith("mcp__"):
        # Allowing every tool of every server is too broad.
        allows_every_server = not tool.removeprefix("mcp__").strip("*_") and kind == "allow"
        return None if specifier is not None or allows_every_server else PermissionRule(text, tool)
    if specifier is None or specifier.strip() in {"*", "**"}:
        return PermissionRule(text, tool)
    if not specifier.strip():
        return None
    if tool == SHELL:
        return PermissionRule(text, tool, command=parse_command_pattern(specifier))
    if tool in EDIT_TOOLS | READ_TOOLS:
        return _parse_path_rule(text, tool, specifier, kind, base_folders)
    if tool == "WebFetch":
        _, domain, host = specifier.strip().partition("domain:")
        return PermissionRule(text, tool, name=host.strip().lower()) if domain and host.strip() else None
    if tool in _TOOLS_WITH_NAMES:
        return PermissionRule(text, tool, name=re.sub(r":\*$", "*", specifier.strip()))
    return None


def _parse_path_rule(
    text: str, tool: str, specifier: str, kind: RuleKind, base_folders: tuple[str, str, str]
) -> PermissionRule | None:
    root, cwd, home = base_folders
    # Deny and ask rules apply in the whole project, wherever the session was started in it.
    folders = (cwd,) if kind == "allow" else dict.fromkeys((cwd, root))
    candidates = [parse_path_pattern(specifier, root, folder, home) for folder in folders]
    patterns = tuple(dict.fromkeys(pattern for pattern in candidates if pattern is not None))
    return PermissionRule(text, tool, paths=patterns) if patterns else None
