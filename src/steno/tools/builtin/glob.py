"""Glob: finds files by name; ignore rules and path patterns, also used by Grep.

Files are listed by ripgrep, which respects git's ignore rules, or without it by `walk_unignored`. Patterns are
always matched in Python, so that they have the same meaning either way.
"""

import asyncio
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from steno.permissions.paths import resolve_glob
from steno.store.discovery import list_entries
from steno.tools.context import ToolContext
from steno.tools.file_content import approved_real_path, resolve_tool_path
from steno.tools.output import json_safe_name, quote_name
from steno.tools.programs import DEFAULT_TIMEOUT, RIPGREP_FLAGS, FindRipgrep, find_ripgrep, run_program
from steno.tools.protocol import ToolFailure, ToolResult, builtin_spec, parse_input

_MAX_RULES_SIZE: Final = 1 << 20


class _IgnoreRules(msgspec.Struct, frozen=True):
    """The rules of the `.gitignore` and `.ignore` files in a directory and its parents."""

    levels: tuple[tuple[str, Any], ...] = ()
    """Directories and the rules of their files, outermost first."""
    in_repository: bool = False

    def ignores(self, path: str, *, is_folder: bool) -> bool:
        for base, spec in reversed(self.levels):
            inside = path[len(base) :].lstrip("/") + "/" * is_folder
            is_ignored = spec.check_file(inside).include
            if is_ignored is not None:
                return is_ignored
        return False

    def rules_for_folder(self, folder: str) -> "_IgnoreRules":
        """Return the rules for the entries of a directory."""
        is_top = os.path.lexists(os.path.join(folder, ".git"))
        in_repository = self.in_repository or is_top
        names = [".git/info/exclude"] if is_top else []
        names += [".gitignore", ".ignore"] if in_repository else [".ignore"]
        specs = [_read_ignore_file(os.path.join(folder, name)) for name in names]
        # Rules above a repository do not apply inside it.
        levels = () if is_top else self.levels
        return _IgnoreRules(levels + tuple((folder, spec) for spec in specs if spec is not None), in_repository)


def _read_ignore_file(path: str) -> Any:
    from pathspec import GitIgnoreSpec

    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            return None
        with open(path, "rb") as file:
            lines = file.read(_MAX_RULES_SIZE).decode("utf-8", "replace").splitlines()
    except OSError:
        return None
    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError:
        return None


def walk_unignored(folder: str) -> Iterator[str]:
    """Yield the relative paths of all files in a directory that git does not ignore."""
    rules = _IgnoreRules()
    parents = [folder]
    while parents[-1] != os.path.dirname(parents[-1]):
        parents.append(os.path.dirname(parents[-1]))
    for parent in reversed(parents[1:]):
        rules = rules.rules_for_folder(parent)
    if rules.ignores(folder, is_folder=True):
        # The call names this directory explicitly, so the rules of its parents do not apply.
        rules = _IgnoreRules()
    stack = [(folder, rules)]
    while stack:
        path, rules = stack.pop()
        rules = rules.rules_for_folder(path)
        for entry in list_entries(path):
            is_folder = entry.is_dir(follow_symlinks=False)
            if entry.name == ".git" or rules.ignores(entry.path, is_folder=is_folder):
                continue
            if is_folder:
                stack.append((entry.path, rules))
            elif entry.is_file(follow_symlinks=False):
                yield entry.path[len(folder.rstrip(os.sep)) + 1 :]


def modification_time(path: str) -> int:
    """Return the modification time of a file in ns; 0 if it cannot be read."""
    try:
        return os.lstat(path).st_mtime_ns
    except OSError:
        return 0


def display_path(path: str, context: ToolContext) -> str:
    """Return the path relative to the working directory if it is inside, else the path unchanged."""
    folder = context.cwd.rstrip(os.sep) + os.sep
    return path.removeprefix(folder) or path


_MAX_ALTERNATIVES: Final = 256
_MAX_GLOBSTARS: Final = 4
_GLOB_TOKEN: Final = re.compile(r"\*+|\?|\[[!^]?\]?[^\]]*\]|\\.|.", re.DOTALL)
_CLASS_RANGE: Final = re.compile(r"(.)-(.)|(.)", re.DOTALL)


def split_search_folder(pattern: str, path: str | None, context: ToolContext) -> tuple[str, str]:
    """Return the directory to search, and the pattern relative to it.

    Raises:
        ToolFailure: The directory does not exist.
    """
    if not pattern:
        raise ToolFailure("The pattern is empty.")
    resolve_tool_path(pattern, context)
    folder = resolve_tool_path(path or ".", context)
    folder, pattern = resolve_glob(pattern, folder, context.cwd, context.env.get("HOME", ""))
    if not os.path.isdir(folder):
        raise ToolFailure(f"Directory not found: {quote_name(folder)}")
    return folder, pattern


def compile_glob(pattern: str) -> re.Pattern[str]:
    r"""Return a regular expression for paths relative to the directory of the pattern.

    Raises:
        ToolFailure: The pattern is too complex.

    >>> [bool(compile_glob("src/**/*.{py,pyi}").fullmatch(p)) for p in ("src/a.py", "b.py")]
    [True, False]
    """
    choices = _expand_braces(pattern, [])
    if any(choice.count("**") > _MAX_GLOBSTARS for choice in choices):
        raise ToolFailure(f"The pattern contains `**` more than {_MAX_GLOBSTARS} times.")
    return re.compile("|".join(f"(?:{_translate_pattern(choice)})" for choice in choices), re.DOTALL)


def _expand_braces(pattern: str, expanded: list[str]) -> list[str]:
    """Append all expansions of the braces in a pattern to `expanded`; return it."""
    braces = _innermost_braces(pattern)
    if braces is None:
        expanded.append(pattern)
        if len(expanded) > _MAX_ALTERNATIVES:
            raise ToolFailure(f"The braces of the pattern expand to more than {_MAX_ALTERNATIVES} alternatives.")
        return expanded
    start, end = braces
    for choice in pattern[start + 1 : end].split(","):
        _expand_braces(pattern[:start] + choice + pattern[end + 1 :], expanded)
    return expanded


def _innermost_braces(pattern: str) -> tuple[int, int] | None:
    start, index = -1, 0
    while index < len(pattern):
        if pattern[index] == "\\":
            index += 1
        elif pattern[index] == "{":
            start = index
        elif pattern[index] == "}" and start >= 0:
            return start, index
        index += 1
    return None


def _translate_pattern(pattern: str) -> str:
    anchored = pattern.removeprefix("/")
    parts = anchored.split("/")
    if len(parts) == 1 and anchored == pattern:
        parts.insert(0, "**")
    last = len(parts) - 1
    expression = ""
    for number, part in enumerate(parts):
        if part == "**":
            expression += "(?:[^/]+/)*" if number < last else ".+"
        else:
            expression += _translate_segment(part) + ("/" if number < last else "")
    return expression


def _translate_segment(part: str) -> str:
    """Return the regular expression for one path segment of a pattern.

    The text between two stars is matched from left to right without backtracking, which finds every
    match and keeps the running time linear.
    """
    literals = [""]
    for token in _GLOB_TOKEN.findall(part):
        if token.startswith("*"):
            literals.append("")
        else:
            literals[-1] += _translate_token(token)
    first, *rest = literals
    middle = "".join(f"(?>[^/]*?{piece})" for piece in rest[:-1])
    return first + middle + (f"[^/]*{rest[-1]}" if rest else "")


def _translate_token(symbol: str) -> str:
    if symbol == "?":
        return "[^/]"
    if symbol.startswith("[") and symbol.endswith("]") and len(symbol) > 1:
        return _translate_class(symbol[1:-1])
    return re.escape(symbol[1:] if len(symbol) > 1 else symbol)


def _translate_class(inside: str) -> str:
    negation = "^" if inside.startswith(("!", "^")) else ""
    members = ""
    for first, last, single in _CLASS_RANGE.findall(inside[len(negation) :]):
        if single:
            members += re.escape(single)
        elif first <= last:
            members += f"{re.escape(first)}-{re.escape(last)}"
    return f"(?!/)[{negation}{members}]" if members else "(?!)"


_DESCRIPTION: Final = """\
Finds files by name.

- Patterns support `*`, `?`, `[abc]`, `{a,b}` and `**` for any number of directories, for example \
`src/**/*.ts`. A pattern without a slash matches names in all directories.
- Files that git ignores are skipped. Results are sorted by modification time, newest first, and limited to 100.
"""
_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "pattern": {"type": "string", "description": "The glob pattern to match paths against"},
        "path": {"type": "string", "description": "The directory to search; defaults to the working directory"},
    },
    "required": ["pattern"],
    "additionalProperties": False,
}
_MAX_FILES: Final = 100


class _GlobInput(msgspec.Struct, forbid_unknown_fields=True):
    pattern: str
    path: str | None = None


class Glob:
    """The Glob tool: finds files by name."""

    spec = builtin_spec("Glob", description=_DESCRIPTION, schema=_SCHEMA)

    def __init__(self, ripgrep_finder: FindRipgrep | None = None) -> None:
        self._find_ripgrep = ripgrep_finder or find_ripgrep

    async def run(self, tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        """Return the matching files, newest first."""
        glob_input = parse_input(tool_input, _GlobInput)
        start_time = time.monotonic()
        folder, pattern = split_search_folder(glob_input.pattern, glob_input.path, context)
        path_pattern = compile_glob(pattern)
        real_folder = await asyncio.to_thread(approved_real_path, folder, context, call)
        names, is_complete = await self._list_files(real_folder, context)
        matches = await asyncio.to_thread(_newest_first, folder, names, path_pattern, context.visibility_filter(folder))
        paths = [display_path(path, context) for path in matches[:_MAX_FILES]]
        detail = {
            "filenames": [json_safe_name(path) for path in paths],
            "durationMs": int((time.monotonic() - start_time) * 1000),
            "numFiles": len(paths),
            "truncated": len(matches) > _MAX_FILES or not is_complete,
            "totalMatches": len(matches),
            "countIsComplete": is_complete,
        }
        lines = [quote_name(path) for path in paths] or ["No files found"]
        if len(matches) > _MAX_FILES:
            lines.append(
                f"(Showing the newest {_MAX_FILES} of {len(matches):,} files. Narrow the path or the pattern.)"
            )
        if not is_complete:
            lines.append("(Too many files to search all of them. Narrow the path.)")
        return ToolResult("\n".join(lines), detail)

    async def _list_files(self, folder: str, context: ToolContext) -> tuple[list[str], bool]:
        """Return the paths of all files in a directory, and whether the list is complete."""
        program = self._find_ripgrep(context.project, context.cwd, *context.folders)
        if program is None:
            return await asyncio.to_thread(_walk_with_deadline, folder)
        command = [program, *RIPGREP_FLAGS, "--files", "--null", "./"]
        completed = await run_program(command, folder, env=context.env)
        names = os.fsdecode(completed.stdout).split("\0")[:-1]
        return [name.removeprefix("./") for name in names], not (completed.was_truncated or completed.timed_out)


def _walk_with_deadline(folder: str) -> tuple[list[str], bool]:
    deadline = time.monotonic() + DEFAULT_TIMEOUT
    names: list[str] = []
    for name in walk_unignored(folder):
        names.append(name)
        if time.monotonic() > deadline:
            return names, False
    return names, True


def _newest_first(
    folder: str, names: list[str], path_pattern: re.Pattern[str], is_visible: Callable[[str], bool]
) -> list[str]:
    matching = [name for name in names if path_pattern.fullmatch(name) and is_visible(name)]
    paths = [os.path.join(folder, name) for name in matching]
    return sorted(sorted(paths), key=modification_time, reverse=True)
