"""Measures how many ordinary read-only commands the agent runs without approval.

    python bench/comfort.py [--all]           uses the corpus beside the repository, or STENO_SHARED

Selection: the distinct commands of the public sessions that are read-only according to the tables below, sorted by a
hash of their text, up to 200. They come from three sources, each used when the previous one is exhausted: whole Bash
calls; the read-only parts of other Bash calls; the Read, Grep and Glob calls of the sessions, written as the
equivalent command. A command is read-only if it has no here-document, no redirection except to /dev/null or between
descriptors, no substitution with a program that is not in the tables, and every program in it, after pipes, `&&`,
`||`, `;`, loops and `cd`, is in `PROGRAMS` (or a subcommand of git in `GIT`) without an argument that makes it write.

The working directory of each call, and every absolute path of its machine, is mapped into a generated project: a path
below the working directory keeps its rest, any other path is in `elsewhere/`. Missing files are created empty, so
that a decision does not depend on their absence.
"""

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple, cast

from steno.permissions.permission_checker import PermissionChecker
from steno.permissions.permission_rules import parse_rules

ROOT = Path(__file__).resolve().parent.parent
WANTED = 200


def names(text: str) -> list[str]:
    """Return the names in a text."""
    return text.split()


# Read-only programs, and the arguments with which they write.
PROGRAMS = {
    **dict.fromkeys(
        names(
            "ls cat head tail wc grep egrep fgrep rg stat file du df pwd echo printf which type"
            " whoami uname cut tr nl tac rev column comm cmp diff basename dirname realpath"
            " readlink jq cd true false test [ [[ id hostname ps md5sum sha256sum shasum zcat"
            " less more strings od xxd hexdump base64 tsort paste join fold expr seq read"
        ),
        "",
    ),
    "date": r"-s|--set.*",
    "find": r"-(delete|fprint0?|fprintf|fls|ok|okdir|execdir)",
    "tree": r"-o.*",
    "sort": r"-o.*|--output.*|--compress.*",
    "uniq": "",
    "sed": r"-i.*|--in-place.*|-[nEr]*i.*",
    "awk": r".*(system|\||>|getline).*",
}
# Programs that run the command after them.
WRAPPERS = {"xargs": r"-.*|\d+|\{\}", "time": r"-p", "timeout": r"\d+[smh]?", "command": ""}
VERSIONS = frozenset(names("node npm pnpm python python3 go cargo rustc git gh mise ruby java"))
# Read-only subcommands of git, and the arguments with which they write.
GIT = {
    **dict.fromkeys(
        names(
            "status log diff show rev-parse ls-files ls-tree blame describe grep shortlog"
            " cat-file merge-base rev-list for-each-ref check-ignore name-rev diff-tree show-ref"
            " whatchanged ls-remote count-objects"
        ),
        r"--output.*|--ext-diff|-O.*|--open-files.*",
    ),
    "branch": r"-[dDmMcCfu].*|--(delete|move|copy|force|set-upstream|unset-upstream|edit).*|[^-].*",
    "tag": r"-[dfasum].*|--(delete|force|annotate|sign).*",
    "remote": r"(?!-v|show|get-url)\S.*",
    "stash": r"(?!list|show).*",
    "config": r"(?!--get.*|-l|--list|--global|--local|--name-only|[a-z]+\.\S+$).*",
    "reflog": r"(delete|expire).*",
    "worktree": r"(?!list).*",
    "submodule": r"(?!status).*",
}
KEYWORDS = frozenset(names("if then elif else fi for while until do done in case esac ! { } ( )"))

_WORD = re.compile(r"""(?:[^\s'"\\;|&()<>]|\\.|'[^']*'|"(?:[^"\\]|\\.)*")+|\d?>&\d?|&>|\d?>>?|<<?<?|[;|&()]+|\n""")
_ABSOLUTE = re.compile(r"(?<![\w.~/:*?}\])-])~?(?:/[\w.@+-]+)+/?")
_SYSTEM = re.compile(r"/(dev/null|dev/std\w+|usr|bin|etc|proc)\b")


class Call(NamedTuple):
    """A tool call, and its working directory."""

    tool: str
    given: dict[str, Any]
    cwd: str


class Command(NamedTuple):
    """A command, its working directory, and its source."""

    text: str
    cwd: str
    source: str


def main() -> None:
    """Print how many commands are allowed, and why the others are not."""
    parser = argparse.ArgumentParser(description="Measure how many read-only commands run without approval.")
    parser.add_argument("--all", action="store_true", help="also print the allowed commands")
    chosen = parser.parse_args()
    public = Path(os.environ.get("STENO_SHARED") or ROOT.parent / "shared") / "corpus" / "public"
    if not public.is_dir():
        sys.exit(f"no corpus in {public}: set STENO_SHARED to the directory that contains `corpus`")
    commands = selection(public)
    asked: list[tuple[str, str]] = []
    sources: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="steno-comfort-") as folder:
        project = Path(os.path.realpath(folder)) / "project"
        _make_project(project)
        for command in commands:
            text = anchored(command, project)
            _make_files(text, project)
            reason = why_asked(text, project)
            shown = text.replace(str(project), "PROJECT").replace("\n", "\\n")
            sources[command.source] += not reason
            if reason:
                asked.append((shown, reason.replace(str(project), "PROJECT")))
            elif chosen.all:
                print(f"allow  {shown[:150]}")
    for shown, reason in asked:
        print(f"ask    {shown[:150]}\n       {reason[:150]}")
    allowed = len(commands) - len(asked)
    share = 100 * allowed / len(commands) if commands else 0
    print(f"{allowed} of {len(commands)} read-only commands run without approval ({share:.1f} %)")
    for source, count in Counter(each.source for each in commands).items():
        print(f"  {sources[source]} of {count} from: {source}")
    for reason, count in Counter(_kind(reason) for _, reason in asked).most_common():
        print(f"  {count:3}  {reason}")


def why_asked(command: str, project: Path) -> str:
    """Return why a command needs approval in the default mode; empty if it does not."""
    place, home = str(project), str(project.parent / "home")
    rules = parse_rules([], root=place, cwd=place, home=home)
    guard = PermissionChecker(rules, "default", place, (place,), home=home)
    decision = guard.judge("Bash", {"command": command}, cwd=place)
    return "" if decision.verdict == "allow" else decision.reason


def selection(public: Path) -> list[Command]:
    """Return the selected commands, by the rule above."""
    calls = list(_calls(public))
    sources = {
        "whole call": [(str(call.given.get("command")), call) for call in calls if _is_bash(call)],
        "part of a call": [
            (part, call)
            for call in calls
            if _is_bash(call) and not only_reads(str(call.given.get("command")))
            for part in _reading_parts(str(call.given.get("command")))
        ],
        "Read, Grep or Glob": [(text, call) for call in calls if (text := _as_command(call))],
    }
    chosen: dict[str, Command] = {}
    for source, found in sources.items():
        for text, call in sorted(found, key=lambda each: (_rank(each[0]), each[1].cwd)):
            if len(chosen) < WANTED and only_reads(text):
                chosen.setdefault(text, Command(text, call.cwd, source))
    return list(chosen.values())


def _rank(text: str) -> bytes:
    """Return the sort key of a command, which prefers no kind of command."""
    return sha256(text.encode("utf-8", "surrogatepass")).digest()


def _is_bash(call: Call) -> bool:
    return call.tool == "Bash" and isinstance(call.given.get("command"), str)


def _reading_parts(command: str) -> Iterator[str]:
    """Yield the parts of a command, split at `&&`, `||`, `;` and newlines."""
    if not re.search(r"<<|`|\$\(|[\"'][^\"']*(?:&&|;|\n)", command):
        yield from (part.strip() for part in re.split(r"&&|\|\||;|\n", command))


def _as_command(call: Call) -> str:
    """Return the equivalent command of a Read, Grep or Glob call; empty for other calls."""
    given = {key: value for key, value in call.given.items() if isinstance(value, str | int)}
    path = shlex.quote(str(given.get("path", ".")))
    pattern = shlex.quote(str(given.get("pattern", "")))
    if call.tool == "Grep":
        kinds = f" --glob {shlex.quote(str(given['glob']))}" if "glob" in given else ""
        return f"rg -n {pattern}{kinds} {path}"
    if call.tool == "Glob":
        name = shlex.quote(str(given.get("pattern", "")).rsplit("/", 1)[-1])
        return f"find {path} -name {name}"
    if call.tool == "Read" and isinstance(given.get("file_path"), str):
        file, first, count = (shlex.quote(str(given["file_path"])), given.get("offset"), given.get("limit"))
        if isinstance(first, int) and isinstance(count, int):
            return f"sed -n '{first},{first + count}p' {file}"
        return f"cat {file}"
    return ""


def _calls(folder: Path) -> Iterator[Call]:
    for path in sorted(folder.rglob("*.jsonl")):
        for line in path.read_bytes().split(b"\n"):
            if b'"tool_use"' in line:
                with suppress(ValueError, RecursionError):
                    yield from _calls_in(json.loads(line), "/nowhere")


def _calls_in(value: Any, cwd: str) -> Iterator[Call]:
    """Yield the tool calls in a record, including nested sub-agents."""
    if isinstance(value, list):
        for each in cast("list[Any]", value):
            yield from _calls_in(each, cwd)
    elif isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        cwd = str(fields.get("cwd") or cwd)
        given = fields.get("input")
        if fields.get("type") == "tool_use" and isinstance(given, dict):
            yield Call(str(fields.get("name")), cast("dict[str, Any]", given), cwd)
        for each in fields.values():
            yield from _calls_in(each, cwd)


# Read-only commands


def only_reads(command: str) -> bool:
    """Return whether every part of a command is read-only according to the tables."""
    if "<<" in command or "`" in command:
        return False
    command = re.sub(r"\d?>&\d|&>/dev/null|\d?>\s*/dev/null|\d?>&-", " ", command)
    inner = re.findall(r"\$\(([^()]*)\)", command)
    plain = re.sub(r"\$\([^()]*\)", "X", command)
    if "$(" in plain or not all(map(only_reads, inner)):
        return False
    words = _WORD.findall(plain)
    if any(re.fullmatch(r"\d?>>?|&>|<", word) for word in words):
        return False
    parts = [part for part in _parts(words) if part]
    return bool(parts) and all(map(_part_reads, parts))


def _parts(words: list[str]) -> Iterator[list[str]]:
    part: list[str] = []
    for word in words:
        if re.fullmatch(r"[;|&()\n]+", word):
            yield part
            part = []
        else:
            part.append(word)
    yield part


def _part_reads(words: list[str]) -> bool:
    while words and words[0] in KEYWORDS - {"for", "case", "in"}:
        words = words[1:]
    if not words or words[0] == "for":
        return True
    program, *rest = (word.strip("'\"") for word in words)
    if program in VERSIONS and rest in (["--version"], ["version"], ["-v"], ["-V"]):
        return True
    if program == "git":
        return _git_reads(rest)
    if program in WRAPPERS:
        return _wrapped_reads(program, rest)
    if program == "find" and "-exec" in rest:
        at = rest.index("-exec")
        return _part_reads(rest[at + 1 :]) and _no_word(PROGRAMS["find"], rest[:at])
    return program in PROGRAMS and _no_word(PROGRAMS[program], rest)


def _wrapped_reads(program: str, rest: list[str]) -> bool:
    if program == "command":
        return bool(rest) and rest[0] in {"-v", "-V"}
    while rest and re.fullmatch(WRAPPERS[program], rest[0]):
        rest = rest[1:]
    return not rest or _part_reads(rest)


def _git_reads(rest: list[str]) -> bool:
    while rest and rest[0].startswith("-"):
        if rest[0] == "-C":
            rest = rest[1:]
        elif rest[0] not in {"--no-pager", "-P", "--no-optional-locks"}:
            return False
        rest = rest[1:]
    return bool(rest) and rest[0] in GIT and _no_word(GIT[rest[0]], rest[1:])


def _no_word(pattern: str, words: list[str]) -> bool:
    return not pattern or not any(re.fullmatch(pattern, word) for word in words)


# The generated project


def anchored(command: Command, project: Path) -> str:
    """Return the command with every absolute path of its machine mapped into the project."""

    def inside(match: re.Match[str]) -> str:
        path = match[0]
        if _SYSTEM.match(path):
            return path
        root = command.cwd.rstrip("/")
        if path == root or path.startswith(f"{root}/"):
            return f"{project}{path.removeprefix(root)}"
        if root.startswith(path.rstrip("/") + "/"):
            return str(project)
        return f"{project}/elsewhere/{path.lstrip('~/').replace('/', '-')}"

    return _ABSOLUTE.sub(inside, command.text)


def _make_project(project: Path) -> None:
    project.mkdir()
    script = "git init -q . && git -c user.name=x -c user.email=x commit -q --allow-empty -m one"
    subprocess.run(["sh", "-c", script], cwd=project, check=True)


def _make_files(command: str, project: Path) -> None:
    """Create the directories and files in the project that a command names."""
    folders = re.findall(r"\bcd\s+([\w./-]+)", command)
    paths = re.findall(rf"{re.escape(str(project))}/([\w./@+-]+)", command)
    for name in (*folders, *paths):
        path = Path(os.path.normpath(project / name))
        # A name without a suffix is a directory; existing paths are kept.
        with suppress(FileExistsError, NotADirectoryError):
            if path.is_relative_to(project) and (name in folders or not path.suffix):
                path.mkdir(parents=True, exist_ok=True)
            elif path.is_relative_to(project):
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()


def _kind(reason: str) -> str:
    """Return a reason without the parts specific to one command."""
    program = re.search(r"`([^` ]+)", reason)
    plain = re.sub(r"`[^`]*`", "…", reason)
    return f"{plain} ({program[1]})" if program else plain


if __name__ == "__main__":
    main()
