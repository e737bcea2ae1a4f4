"""Grep: searches file contents with ripgrep, or with a Python fallback.

The fallback runs as a separate process, because a regular expression can take unlimited time in Python
and only a process can be killed. Its output has ripgrep's format.
"""

import asyncio
import os
import re
import sys
from collections.abc import Iterator
from operator import itemgetter
from typing import Any, Final, Literal, TypeAlias

import msgspec

from steno.tools.builtin.glob import compile_glob, display_path, modification_time, walk_unignored
from steno.tools.context import ToolContext
from steno.tools.file_content import MAX_FILE_SIZE, approved_real_path, decode_text, resolve_tool_path
from steno.tools.output import json_safe_name, quote_name
from steno.tools.programs import RIPGREP_FLAGS, CompletedProgram, FindRipgrep, find_ripgrep, run_module, run_program
from steno.tools.protocol import ToolFailure, ToolResult, builtin_spec, parse_input

OutputMode: TypeAlias = Literal["content", "files_with_matches", "count"]
MAX_LINE_LENGTH: Final = 1_000
"""Maximum number of characters shown of a line."""
INVALID_SEARCH_CODE: Final = 2
"""The exit code of an invalid search."""
_DEFAULT_LIMIT: Final = 250
_MAX_CONTEXT_LINES: Final = 1_000
_GLOB_SEPARATOR: Final = re.compile(r"[\s,]+(?![^{]*\})")


class GrepSearch(msgspec.Struct, forbid_unknown_fields=True):
    """The input of a Grep call."""

    pattern: str
    path: str | None = None
    glob: str | None = None
    output_mode: OutputMode = "files_with_matches"
    before: int = msgspec.field(default=0, name="-B")
    after: int = msgspec.field(default=0, name="-A")
    both: int = msgspec.field(default=0, name="-C")
    context: int = 0
    numbers: bool = msgspec.field(default=True, name="-n")
    ignore_case: bool = msgspec.field(default=False, name="-i")
    only: bool = msgspec.field(default=False, name="-o")
    type: str | None = None
    head_limit: int = _DEFAULT_LIMIT
    offset: int = 0
    multiline: bool = False

    @property
    def context_lines(self) -> tuple[int, int]:
        """Number of lines to show before and after a match."""
        both = self.both or self.context
        before, after = (min(max(n or both, 0), _MAX_CONTEXT_LINES) for n in (self.before, self.after))
        return before, after

    @property
    def globs(self) -> list[str]:
        """Path patterns to include, or with `!` to exclude."""
        return [pattern for pattern in _GLOB_SEPARATOR.split(self.glob or "") if pattern]


class GrepJob(msgspec.Struct, frozen=True):
    """A search and its location."""

    search: GrepSearch
    folder: str
    name: str
    """The only file to search; empty for all files in the directory."""
    real_folder: str
    """The directory with all links resolved."""


_MAX_RESULT_SIZE: Final = 512 << 10
# ripgrep prints this note between results when it detects a binary file.
_BINARY_NOTE: Final = re.compile(rb"[^\0]*?: (?:WARNING: stopped searching binary file|binary file matches)[^\n\0]*\n")
_GROUP_SEPARATOR: Final = re.compile(rb"--\r?\n")
_LINE_NUMBER: Final = re.compile(r"\d+([:-])")
_FileLines: TypeAlias = list[tuple[str, list[str]]]
"""Files, each with the lines to show."""


def format_lines(out: bytes, job: GrepJob, context: ToolContext) -> ToolResult:
    """Return the result of a search in `content` mode."""
    file_lines = sorted(_filter_visible(_parse_output(out), job, context), key=itemgetter(0))
    lines: list[str] = []
    has_groups = any(job.search.context_lines)
    for path, lines_of_file in file_lines:
        name = quote_name(display_path(os.path.join(job.folder, path), context))
        lines += ["--"] * (has_groups and bool(lines))
        lines += lines_of_file if job.name else [_prefix_path(name, text, job.search) for text in lines_of_file]
    selected, limits = _select_page(lines, job.search)
    content = "\n".join(selected)
    detail: dict[str, Any] = {
        "mode": "content",
        "numFiles": 0,
        "filenames": [],
        "content": content,
        "numLines": len(selected),
        "totalLines": len(lines),
        **limits,
    }
    return ToolResult((content or "No matches found") + _omission_note(lines, selected, job.search), detail)


def _filter_visible(file_lines: _FileLines, job: GrepJob, context: ToolContext) -> _FileLines:
    """Drop files hidden by deny rules; a search in a single file was checked before."""
    if job.name:
        return file_lines
    is_visible = context.visibility_filter(job.folder)
    return [(path, lines) for path, lines in file_lines if is_visible(path)]


def _prefix_path(name: str, text: str, search: GrepSearch) -> str:
    """Prefix a line with its file name: a colon marks a match, a dash a context line."""
    if text == "--":
        return text
    number = _LINE_NUMBER.match(text) if search.numbers else None
    return f"{name}{number[1] if number else ':'}{text}"


def _parse_output(out: bytes) -> _FileLines:
    file_lines: _FileLines = []
    index = 0
    while index < len(out):
        separator = _GROUP_SEPARATOR.match(out, index)
        if separator is not None:
            if file_lines:
                file_lines[-1][1].append("--")
            index = separator.end()
            continue
        note = _BINARY_NOTE.match(out, index)
        path_end = out.find(b"\0", index)
        if note is not None or path_end < 0:
            index = note.end() if note is not None else len(out)
            continue
        end = out.find(b"\n", path_end)
        end = end if end >= 0 else len(out)
        path = os.fsdecode(out[index:path_end]).removeprefix("./")
        text = out[path_end + 1 : end].removesuffix(b"\r").decode("utf-8", "replace")
        if not file_lines or file_lines[-1][0] != path:
            _drop_trailing_separator(file_lines)
            file_lines.append((path, []))
        file_lines[-1][1].append(text)
        index = end + 1
    _drop_trailing_separator(file_lines)
    return file_lines


def _drop_trailing_separator(file_lines: _FileLines) -> None:
    """Remove the separator between two files; it is added again after sorting."""
    if file_lines and file_lines[-1][1][-1] == "--":
        file_lines[-1][1].pop()


def format_counts(out: bytes, job: GrepJob, context: ToolContext) -> ToolResult:
    """Return the result of a search in `count` mode."""
    file_lines = sorted(_filter_visible(_parse_output(out), job, context))
    counts = [(path, int(text)) for path, (text, *_) in file_lines if text.isdigit()]
    paths = [display_path(os.path.join(job.folder, path), context) for path, _ in counts]
    lines = [f"{quote_name(path)}:{count}" for path, (_, count) in zip(paths, counts, strict=True)]
    selected, limits = _select_page(lines, job.search)
    content = "\n".join(selected)
    first = max(job.search.offset, 0)
    matches = sum(count for _, count in counts[first : first + len(selected)])
    detail: dict[str, Any] = {
        "mode": "count",
        "numFiles": len(selected),
        "filenames": [],
        "content": content,
        "numMatches": matches,
        **limits,
    }
    if not selected:
        return ToolResult("No matches found" + _omission_note(lines, selected, job.search), detail)
    message = f"{content}\n\nFound {matches:,} match{'es' * (matches != 1)} in {_file_count(len(selected))}"
    return ToolResult(message + _omission_note(lines, selected, job.search), detail)


def format_files(out: bytes, job: GrepJob, context: ToolContext) -> ToolResult:
    """Return the result of a search in `files_with_matches` mode, newest files first."""
    all_names = [name.removeprefix("./") for name in os.fsdecode(out).split("\0")[:-1]]
    names = [name for name, _ in _filter_visible([(name, []) for name in all_names], job, context)]
    paths = sorted(os.path.join(job.folder, name) for name in names)
    paths.sort(key=modification_time, reverse=True)
    all_paths = [display_path(path, context) for path in paths]
    selected, detail = _select_page(all_paths, job.search)
    filenames = [json_safe_name(path) for path in selected]
    detail = {"mode": "files_with_matches", "filenames": filenames, "numFiles": len(selected), **detail}
    if not selected:
        return ToolResult("No files found" + _omission_note(all_paths, selected, job.search), detail)
    message = "\n".join([f"Found {_file_count(len(selected))}", *map(quote_name, selected)])
    return ToolResult(message + _omission_note(all_paths, selected, job.search), detail)


def _file_count(count: int) -> str:
    return f"{count:,} file{'s' * (count != 1)}"


def _select_page(items: list[str], search: GrepSearch) -> tuple[list[str], dict[str, Any]]:
    """Return the items of the requested page, and the limits to record."""
    first = max(search.offset, 0)
    last = first + search.head_limit if search.head_limit > 0 else len(items)
    selected = items[first:last]
    size = 0
    for count, line in enumerate(selected):
        size += len(line) + 1
        if size > _MAX_RESULT_SIZE:
            selected = selected[:count]
            break
    detail: dict[str, Any] = {}
    if first + len(selected) < len(items):
        detail["appliedLimit"] = len(selected)
    if first:
        detail["appliedOffset"] = first
    return selected, detail


def _omission_note(items: list[str], selected: list[str], search: GrepSearch) -> str:
    first = max(search.offset, 0)
    after = first + len(selected)
    if len(selected) == len(items):
        return ""
    if not selected:
        return f"\n\n[The offset is past the last of {len(items):,} results]"
    hint = f"; use offset: {after} for more" if after < len(items) else ""
    return f"\n\n[Showing {first + 1:,} to {after:,} of {len(items):,} results{hint}]"


_GREP_DESCRIPTION: Final = """\
Searches file contents with a regular expression (ripgrep syntax).

- `output_mode`: "files_with_matches" (default) lists file names, newest first; "content" shows matching lines; \
"count" shows the number of matches per file.
- Filter files with `path`, `glob` ("*.ts", "src/**/*.{js,jsx}") or `type` ("py", "rust", …). Files that git \
ignores are skipped.
- Escape special characters to match them literally: `interface\\{\\}`.
- Set `multiline` for patterns that span lines.
"""
_NUMBER_SCHEMA: Final = {"type": "number"}
_SWITCH_SCHEMA: Final = {"type": "boolean"}


def _described(schema: dict[str, Any], description: str) -> dict[str, Any]:
    return {**schema, "description": description}


_GREP_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "pattern": _described({"type": "string"}, "The regular expression to search for"),
        "path": _described({"type": "string"}, "The file or directory to search; defaults to the working directory"),
        "glob": _described({"type": "string"}, "Search only files whose paths match this pattern"),
        "output_mode": {"type": "string", "enum": ["content", "files_with_matches", "count"]},
        "-B": _described(_NUMBER_SCHEMA, "Lines to show before each match (content mode)"),
        "-A": _described(_NUMBER_SCHEMA, "Lines to show after each match (content mode)"),
        "-C": _described(_NUMBER_SCHEMA, "Lines to show before and after each match (content mode)"),
        "context": _described(_NUMBER_SCHEMA, "Same as -C"),
        "-n": _described(_SWITCH_SCHEMA, "Show line numbers (content mode; default: true)"),
        "-i": _described(_SWITCH_SCHEMA, "Case-insensitive search"),
        "-o": _described(_SWITCH_SCHEMA, "Show only the matching part of each line (content mode)"),
        "type": _described({"type": "string"}, "Search only files of this ripgrep type"),
        "head_limit": _described(_NUMBER_SCHEMA, "Maximum number of lines or files (default: 250; 0 for all)"),
        "offset": _described(_NUMBER_SCHEMA, "Number of lines or files to skip"),
        "multiline": _described(_SWITCH_SCHEMA, "Let the pattern span lines; `.` also matches line breaks"),
    },
    "required": ["pattern"],
    "additionalProperties": False,
}


class Grep:
    """The Grep tool: searches file contents."""

    spec = builtin_spec("Grep", description=_GREP_DESCRIPTION, schema=_GREP_SCHEMA)

    def __init__(self, ripgrep_finder: FindRipgrep | None = None) -> None:
        self._find_ripgrep = ripgrep_finder or find_ripgrep

    async def run(self, tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        """Run the search and return the result of the requested mode."""
        search = parse_input(tool_input, GrepSearch)
        job = await asyncio.to_thread(_make_job, search, context, call)
        program = self._find_ripgrep(context.project, context.cwd, *context.folders)
        if program is None:
            encoded_search = msgspec.json.encode(search)
            completed = await run_module("steno.tools.builtin.grep", job.real_folder, job.name, stdin=encoded_search)
        else:
            completed = await run_program(_ripgrep_command(program, job), job.real_folder, env=context.env)
        _raise_search_error(completed, search)
        formatters = {"content": format_lines, "count": format_counts, "files_with_matches": format_files}
        result = await asyncio.to_thread(formatters[search.output_mode], completed.stdout, job, context)
        note = ""
        if completed.timed_out or completed.was_truncated:
            reason = "it took too long" if completed.timed_out else "it had too many results"
            note = f"\n\n(The search was stopped because {reason}. Narrow it with `path`, `glob` or `type`.)"
        return ToolResult(f"{result.content}{note}", result.detail)


def _make_job(search: GrepSearch, context: ToolContext, call: str) -> GrepJob:
    for argument in (search.pattern, search.glob or "", search.type or ""):
        if "\0" in argument or argument.encode("utf-8", "replace").decode("utf-8") != argument:
            raise ToolFailure(f"Cannot search for {quote_name(argument)}: it contains invalid characters.")
    path = resolve_tool_path(search.path or ".", context)
    real_path = approved_real_path(path, context, call)
    if os.path.isdir(real_path):
        return GrepJob(search, path, "", real_path)
    if os.path.isfile(real_path):
        folder, name = os.path.split(real_path)
        return GrepJob(search, folder, name, folder)
    if os.path.lexists(path):
        raise ToolFailure(f"{quote_name(path)} is neither a file nor a directory.")
    raise ToolFailure(f"Path not found: {quote_name(path)}. The working directory is {quote_name(context.cwd)}.")


def _ripgrep_command(program: str, job: GrepJob) -> list[str]:
    search = job.search
    command = [program, *RIPGREP_FLAGS, "--null", "--with-filename", "--no-heading", "--crlf"]
    command += [f"--max-columns={MAX_LINE_LENGTH}", "--max-columns-preview"]
    if search.output_mode == "files_with_matches":
        command.append("--files-with-matches")
    elif search.output_mode == "count":
        command.append("--count")
    else:
        before, after = search.context_lines
        command.append("--line-number" if search.numbers else "--no-line-number")
        command += [f"--before-context={before}", f"--after-context={after}"]
        command += ["--only-matching"] * search.only
    command += ["--ignore-case"] * search.ignore_case
    command += ["--multiline", "--multiline-dotall"] * search.multiline
    command += [f"--type={search.type}"] * bool(search.type)
    command += [f"--glob={glob}" for glob in search.globs]
    # The last --glob wins: a pattern that matches everything must not include .git again.
    command.append("--glob=!.git")
    return [*command, f"--regexp={search.pattern}", "--", f"./{job.name}"]


def _raise_search_error(completed: CompletedProgram, search: GrepSearch) -> None:
    """Raise `ToolFailure` if the search failed without any results."""
    if completed.stdout:
        return
    if completed.timed_out:
        raise ToolFailure("The search timed out. Narrow it with `path`, `glob` or `type`.")
    if completed.exit_code == INVALID_SEARCH_CODE and completed.stderr:
        message = completed.stderr.strip().removeprefix("rg: ")
        hint = ""
        if not search.multiline and "multiline" in message:
            message, hint = message.split("\n")[0], " (set `multiline`)"
        raise ToolFailure(f"Invalid search: {message}{hint}")


_TYPE_GLOBS: Final = {
    "c": "*.{c,h}",
    "cpp": "*.{cpp,cc,cxx,hpp,hh,hxx,h}",
    "css": "*.{css,scss}",
    "go": "*.go",
    "html": "*.{html,htm}",
    "java": "*.java",
    "js": "*.{js,jsx,mjs,cjs}",
    "json": "*.json",
    "md": "*.{md,markdown}",
    "php": "*.php",
    "py": "*.{py,pyi}",
    "ruby": "*.rb",
    "rust": "*.rs",
    "sh": "*.{sh,bash,zsh}",
    "toml": "*.toml",
    "ts": "*.{ts,tsx,mts,cts}",
    "txt": "*.txt",
    "xml": "*.xml",
    "yaml": "*.{yaml,yml}",
}


def main() -> None:
    """Search like ripgrep and print the results in its format."""
    search = msgspec.json.decode(sys.stdin.buffer.read(), type=GrepSearch)
    folder, name = sys.argv[1:3]
    flags = re.IGNORECASE * search.ignore_case | (re.DOTALL | re.MULTILINE) * search.multiline
    if search.type and search.type not in _TYPE_GLOBS:
        sys.exit(_print_error(f"unrecognized file type: {search.type}"))
    if "\\n" in search.pattern and not search.multiline:
        sys.exit(_print_error('the literal "\\n" is not allowed without multiline'))
    try:
        pattern = re.compile(search.pattern, flags)
    except (re.error, RecursionError, OverflowError) as error:
        sys.exit(_print_error(f"regex parse error: {error}"))
    for path in [name] if name else sorted(walk_unignored(folder)):
        text = _read_text(os.path.join(folder, path)) if name or _is_searched(path, search) else None
        if text is not None:
            _print_matches(os.fsencode(f"./{path}") + b"\0", text, pattern, search)


def _print_error(message: str) -> int:
    sys.stderr.write(message)
    return INVALID_SEARCH_CODE


def _is_searched(path: str, search: GrepSearch) -> bool:
    if search.type and not compile_glob(_TYPE_GLOBS[search.type]).fullmatch(path):
        return False
    included = [glob for glob in search.globs if not glob.startswith("!")]
    excluded = [glob[1:] for glob in search.globs if glob.startswith("!")]
    if any(compile_glob(glob).fullmatch(path) for glob in excluded):
        return False
    return not included or any(compile_glob(glob).fullmatch(path) for glob in included)


def _read_text(path: str) -> str | None:
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_FILE_SIZE + 1)
    except OSError:
        return None
    text = decode_text(data) if len(data) <= MAX_FILE_SIZE else None
    return text.text if text is not None else None


def _print_matches(path_prefix: bytes, text: str, pattern: re.Pattern[str], search: GrepSearch) -> None:
    lines = text.removesuffix("\n").split("\n")
    matches = list(_find_matches(text, lines, pattern, search))
    if not matches:
        return
    out = sys.stdout.buffer
    if search.output_mode == "files_with_matches":
        out.write(path_prefix)
    elif search.output_mode == "count":
        out.write(path_prefix + b"%d\n" % len({line for line, _ in matches}))
    elif search.only:
        for line, match_text in matches:
            out.write(_format_row(path_prefix, line, ":", match_text, search))
    else:
        matched = {line for line, _ in matches}
        before, after = search.context_lines
        shown_lines = {n for line in matched for n in range(line - before, line + after + 1)}
        previous_line = -1
        for line in sorted(shown_lines & set(range(len(lines)))):
            if (before or after) and line != previous_line + 1:
                out.write(b"--\n")
            out.write(_format_row(path_prefix, line, ":" if line in matched else "-", lines[line], search))
            previous_line = line
        out.write(b"--\n" if before or after else b"")


def _format_row(path_prefix: bytes, line: int, separator: str, text: str, search: GrepSearch) -> bytes:
    number = f"{line + 1}{separator}" if search.numbers else ""
    shortened = text if len(text) <= MAX_LINE_LENGTH else f"{text[:MAX_LINE_LENGTH]} [... truncated]"
    return path_prefix + f"{number}{shortened}\n".encode("utf-8", "replace")


def _find_matches(
    text: str, lines: list[str], pattern: re.Pattern[str], search: GrepSearch
) -> Iterator[tuple[int, str]]:
    """Yield the zero-based line number and text of each match."""
    if not search.multiline:
        for number, line in enumerate(lines):
            yield from ((number, match[0]) for match in pattern.finditer(line))
        return
    for match in pattern.finditer(text):
        first = text.count("\n", 0, match.start())
        for number, match_line in enumerate(match[0].removesuffix("\n").split("\n"), first):
            yield number, match_line


if __name__ == "__main__":
    main()
