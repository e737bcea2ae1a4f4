"""Decides whether a file may be read or written: rules first, then its location.

The kernel supports no patterns, so files that rules such as `Read(.env)` or `Read(**/*.pem)` deny are looked up in the
working directories before a command runs in the sandbox.
"""

import os
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

import msgspec

from steno.errors import StenoError
from steno.permissions.paths import ResolvedPath, fold_name, is_inside, why_protected, why_secret
from steno.permissions.permission_rules import Decision, PathPattern, PermissionMode, PermissionRule, RuleSet

_MAX_ENTRIES: Final = 200_000
_GLOB_CHARACTERS: Final = frozenset("*?[!")


class TooManyFiles(StenoError):
    """The working directories contain too many files to look up patterns."""


def denied_paths(
    rules: RuleSet, folders: Iterable[str], *, tool: str = "Read", max_entries: int = _MAX_ENTRIES
) -> tuple[str, ...]:
    """Return the real paths in the directories that a tool must not use; a directory covers all files in it.

    Both deny and ask rules count, because a sandboxed command cannot ask before it opens a file. Other hard links to a
    file are not listed.

    Raises:
        TooManyFiles: a pattern would require checking more than `max_entries` files.
    """
    roots = tuple(dict.fromkeys(os.path.realpath(folder) for folder in folders))
    patterns = [
        pattern
        for kind in ("deny", "ask")
        for rule in rules.for_tool(kind, tool)
        for pattern in rule.paths or (PathPattern("/", "/**"),)
    ]
    paths: dict[str, None] = {}
    unanchored: list[PathPattern] = []
    for pattern in patterns:
        path = _literal_path(pattern)
        if not path:
            unanchored.append(pattern)
        elif os.path.lexists(path):
            paths[path] = None
    if unanchored:
        budget = _Budget(max_entries)
        for root in roots:
            for path in _walk_matches(root, _Matcher(unanchored), budget):
                paths[path] = None
    return tuple(_real_paths(paths))


def _literal_path(pattern: PathPattern) -> str:
    """Return the path of an anchored pattern without wildcards; empty for any other pattern."""
    text = pattern.pattern.removesuffix("/**").removesuffix("/")
    is_anchored = text.startswith("/") or "/" in text
    return os.path.join(pattern.base, text.lstrip("/")) if is_anchored and not _GLOB_CHARACTERS & set(text) else ""


class _Budget(msgspec.Struct):
    left: int

    def spend(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise TooManyFiles("the working directories contain too many files to look up deny rules")


class _Matcher:
    """Matches names against patterns; most patterns only depend on the file name."""

    def __init__(self, patterns: Iterable[PathPattern]) -> None:
        names: list[str] = []
        self._path_patterns: list[PathPattern] = []
        for pattern in patterns:
            text = pattern.pattern.removeprefix("**/").removesuffix("/**").removesuffix("/")
            if "/" in text or "[" in text or "\\" in text or not text:
                self._path_patterns.append(pattern)
            else:
                names.append(_pattern_to_regex(text))
        self._name_regex = re.compile("|".join(names) or r"(?!)", re.IGNORECASE | re.DOTALL)

    def matches(self, path: str, name: str) -> bool:
        if self._name_regex.fullmatch(name):
            return True
        # Compare names as the most permissive file system does.
        if not name.isascii() and self._name_regex.fullmatch(fold_name(name)):
            return True
        return any(pattern.matches_any_name(ResolvedPath(path, path)) for pattern in self._path_patterns)


def _pattern_to_regex(text: str) -> str:
    return "".join("[^/]*" if char == "*" else "[^/]" if char == "?" else re.escape(char) for char in fold_name(text))


def _walk_matches(root: str, matcher: _Matcher, budget: _Budget) -> Iterator[str]:
    pending = [root]
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(folder) as entries:
                entry_list = list(entries)
        except OSError:
            continue
        for entry in entry_list:
            budget.spend()
            if matcher.matches(entry.path, entry.name):
                yield entry.path
            elif entry.is_dir(follow_symlinks=False) and not entry.path.endswith("/.git/objects"):
                pending.append(entry.path)


def _real_paths(paths: Iterable[str]) -> Iterator[str]:
    """Yield the targets of paths; a symbolic link itself has no content."""
    real_paths: dict[str, None] = {}
    for path in paths:
        real_paths[os.path.realpath(path)] = None
    yield from filter(os.path.lexists, real_paths)


_MAX_FILES: Final = 1_000_000


class FilePermissions(msgspec.Struct, frozen=True):
    """Decides about file access."""

    rules: RuleSet
    mode: PermissionMode
    folders: tuple[str, ...]

    def decide_read(self, resolved_path: ResolvedPath, tool: str = "Read") -> Decision:
        """Decide whether a path may be read."""
        decision = self._deny_or_ask(resolved_path, tool) or self._deny_hard_link(resolved_path, tool)
        if decision is not None:
            return decision
        secret_reason = why_secret(resolved_path)
        if secret_reason:
            return Decision("ask", f"{resolved_path.path} is secret: {secret_reason}")
        rule = self._allowing_rule(resolved_path, tool)
        if rule is not None:
            return Decision("allow", f"allowed by rule {rule.text}", rule.text)
        if self.mode == "bypassPermissions":
            return Decision("allow", "permissions are bypassed")
        if is_inside(resolved_path, self.folders):
            return Decision("allow", "reads inside the working directories")
        return Decision("ask", f"{resolved_path.path} is outside the working directories{_link_note(resolved_path)}")

    def decide_write(self, resolved_path: ResolvedPath, tool: str = "Edit") -> Decision:
        """Decide whether a path may be written."""
        decision = self._deny_or_ask(resolved_path, tool)
        if decision is not None and decision.verdict == "deny":
            return decision
        if self.mode == "plan":
            return Decision("deny", "plan mode does not write files")
        if decision is not None:
            return decision
        read_rule = self._first_match(self.rules.for_tool("deny", "Read"), resolved_path)
        if read_rule is not None:
            return Decision("ask", f"rule {read_rule.text} denies reading it")
        protected_reason = why_protected(resolved_path)
        if protected_reason:
            return Decision("ask", f"{resolved_path.path} is protected: {protected_reason}")
        rule = self._allowing_rule(resolved_path, tool)
        if self.mode == "bypassPermissions":
            return Decision("allow", "permissions are bypassed")
        if resolved_path.is_shared:
            return Decision("ask", f"{resolved_path.path} has more than one hard link")
        if rule is not None:
            return Decision("allow", f"allowed by rule {rule.text}", rule.text)
        inside = is_inside(resolved_path, self.folders)
        if inside and self.mode == "acceptEdits":
            return Decision("allow", "acceptEdits mode allows edits inside the working directories")
        location = "" if inside else f", outside the working directories{_link_note(resolved_path)}"
        return Decision("ask", f"changes {resolved_path.path}{location}")

    def denying_rule(self, resolved_path: ResolvedPath, tool: str) -> PermissionRule | None:
        """Return the rule that denies a path to a tool, if any."""
        return self._first_match(self.rules.for_tool("deny", tool), resolved_path)

    def denying_path_rule(self, resolved_path: ResolvedPath, *tools: str) -> PermissionRule | None:
        """Return the rule that denies a path by its pattern to one of the tools.

        Rules that deny every call of a tool do not apply to paths in commands.
        """
        rules = (rule for tool in tools for rule in self.rules.for_tool("deny", tool))
        return self._first_match(tuple(rule for rule in rules if rule.paths), resolved_path)

    def denied_inodes(self, tool: str) -> frozenset[tuple[int, int]]:
        """Return the files that rules deny to a tool, as pairs of device and inode.

        Raises:
            TooManyFiles: the working directories contain too many files to look them up.
        """
        inodes: set[tuple[int, int]] = set()
        for path in denied_paths(self.rules, self.folders, tool=tool, max_entries=_MAX_FILES):
            for name in (path, *_files_below(path)):
                with suppress(OSError):
                    status = os.lstat(name)
                    inodes.add((status.st_dev, status.st_ino))
        return frozenset(inodes)

    def has_denied_hard_link(self, resolved_path: ResolvedPath, tool: str) -> bool:
        """Whether a file has another hard link that rules deny to a tool."""
        if not resolved_path.is_shared or not self.rules.for_tool("deny", tool):
            return False
        try:
            status = os.lstat(resolved_path.real)
            return (status.st_dev, status.st_ino) in self.denied_inodes(tool)
        except (OSError, TooManyFiles):
            return True

    def has_read_rules(self) -> bool:
        """Whether rules deny reading some paths, or ask first."""
        rules = (*self.rules.for_tool("deny", "Read"), *self.rules.for_tool("ask", "Read"))
        return bool(rules)

    def is_hidden(self, resolved_path: ResolvedPath) -> bool:
        """Whether reading a path is denied or needs approval, regardless of its location."""
        return self._deny_or_ask(resolved_path, "Read") is not None or bool(why_secret(resolved_path))

    def has_deny_rules(self) -> bool:
        """Whether rules deny any files."""
        return bool(self.rules.for_tool("deny", "Read") or self.rules.for_tool("deny", "Edit"))

    def _deny_or_ask(self, resolved_path: ResolvedPath, tool: str) -> Decision | None:
        rule = self.denying_rule(resolved_path, tool)
        if rule is not None:
            return Decision("deny", f"denied by rule {rule.text}", rule.text)
        if resolved_path.broken:
            return Decision("ask", "not a valid path")
        rule = self._first_match(self.rules.for_tool("ask", tool), resolved_path)
        if rule is not None:
            return Decision("ask", f"rule {rule.text} requires approval", rule.text)
        return None

    def _deny_hard_link(self, resolved_path: ResolvedPath, tool: str) -> Decision | None:
        if not self.has_denied_hard_link(resolved_path, tool):
            return None
        return Decision("deny", f"{resolved_path.path} is a hard link to a file that a rule denies")

    def _first_match(self, rules: tuple[PermissionRule, ...], resolved_path: ResolvedPath) -> PermissionRule | None:
        for rule in rules:
            if not rule.paths or any(pattern.matches_any_name(resolved_path) for pattern in rule.paths):
                return rule
        return None

    def _allowing_rule(self, resolved_path: ResolvedPath, tool: str) -> PermissionRule | None:
        for rule in self.rules.for_tool("allow", tool):
            if not rule.paths or any(pattern.matches_real_path(resolved_path) for pattern in rule.paths):
                return rule
        return None


def _files_below(path: str) -> Iterator[str]:
    for folder, _, names in os.walk(path):
        yield from (os.path.join(folder, name) for name in names)


def _link_note(resolved_path: ResolvedPath) -> str:
    return f" (a link to {resolved_path.real})" if resolved_path.real != resolved_path.path else ""
