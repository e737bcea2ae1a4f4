"""What a shell command is: which programs it runs, whether it tests, commits, or only looks.

This is no parser: what stands in quotes and here-documents is left out, and the rest is cut at the
operators.
"""

import re
from itertools import pairwise
from typing import Final

import msgspec

from steno.report.files.commands import READERS
from steno.report.words import below
from steno.session.story.steps import one_line

__all__ = ["Shell", "named", "shell_of"]

_LONGEST: Final = 20_000
_NAMED: Final = 2_000
_HERE: Final = re.compile(
    r"<<-?\s*(['\"]?)([A-Za-z_]\w*)\1.*?(?:^\s*\2\b|\Z)", re.DOTALL | re.MULTILINE
)
_QUOTED: Final = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_OPERATORS: Final = re.compile(r"&&|\|\||[;|&\n()]")
_TARGET: Final = re.compile(r"\d?>>?\s*(&\d|\S+)|<\s*\S+")
_NOWHERE: Final = ("&", "/dev/null")
_ASSIGNED: Final = re.compile(r"[A-Za-z_]\w*=\S*")
_SKIPPED: Final = frozenset(
    ("sudo", "time", "env", "command", "nohup", "exec", "then", "do", "else", "if", "while", "!")
)
_WRAPPERS: Final = {
    **dict.fromkeys(("bunx", "doas", "nice", "npx", "stdbuf", "uvx", "xargs"), 0),
    "timeout": 1,
}
"""Programs that run another one, and how many words of their own stand before it."""
_RUN: Final = frozenset(("bundle", "hatch", "mise", "pdm", "pipenv", "pixi", "poetry", "rye", "uv"))
_TASKS: Final = frozenset(("hatch", "mise", "pixi"))
"""Of these, those whose `run` names a task of the project and no program."""
_WORDY: Final = frozenset(
    (
        *(
            "apt",
            "apt-get",
            "brew",
            "bun",
            "cargo",
            "composer",
            "conda",
            "deno",
            "docker",
            "dotnet",
        ),
        *("flutter", "gem", "gh", "git", "glab", "go", "gradle", "gradlew", "just", "kubectl"),
        *("make", "mise", "mix", "mvn", "npm", "nx", "pip", "pip3", "pnpm", "poetry", "rake"),
        *("rails", "swift", "task", "terraform", "turbo", "uv", "yarn", "zig"),
    )
)
"""Programs whose second word says what they do."""
_DEEPER: Final = frozenset(
    (*("compose", "exec", "issue", "pr", "release", "repo", "run", "run-script", "task", "x"),)
)
"""Second words that say nothing without the third."""
_INTERPRETERS: Final = re.compile(
    r"(?:python|ruby|perl|php|lua|node)[\d.]*|bash|sh|zsh|tsx|ts-node|Rscript|julia|java"
)
"""Programs that do what the file behind them says."""
_TASKED: Final = frozenset(("just", "make", "mise", "nox", "rake", "task", "tox"))
"""Programs that run what the project itself calls its tests."""
_WIDE: Final = frozenset((".", "./...", "./", "--", "run", "test", "tests", "tests/"))
"""Words behind a tester that leave nothing out."""
_TESTERS: Final = frozenset(
    (
        *("ava", "bats", "ctest", "jasmine", "jest", "karma", "mocha", "nosetests", "nox", "pest"),
        *("phpunit", "py.test", "pytest", "rspec", "tox", "unittest", "vitest", "gotestsum"),
    )
)
_CHECKERS: Final = frozenset(("mypy", "pyright", "pytest", "vulture"))
"""Programs that change nothing, and whose outcome is still worth telling."""
_LOOKING: Final = (READERS - _CHECKERS) | frozenset(
    (
        *(".", ":", "basename", "column", "comm", "date", "dirname", "done", "exit", "export"),
        *("false", "fi", "for", "history", "id", "identify", "in", "lsof", "man", "printenv", "ps"),
        *("read", "realpath", "seq", "set", "sleep", "source", "tee", "tr", "true", "type"),
        *("uname", "wait", "whoami", "xargs", "yes", "zcat"),
    )
)
_GIT_LOOKS: Final = frozenset(
    (
        *("add", "blame", "cat-file", "config", "describe", "diff", "fetch", "grep"),
        *("for-each-ref", "log", "ls-files", "ls-remote", "ls-tree", "merge-base", "name-rev"),
        *("reflog", "remote", "rev-list", "rev-parse", "shortlog", "show", "show-ref"),
        *("status",),
    )
)
_NAMING: Final = frozenset(("-a", "-d", "-D", "-m", "-M", "-f", "--delete"))
_GH_LOOKS: Final = frozenset(("view", "list", "diff", "checks", "status", "api", "search"))
_MOVES: Final = re.compile(r"cd\s+(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s;&|]+)\s*(?:&&|;)\s*")
_ASIDE: Final = re.compile(
    r"\s*(?:\d?>&\d|\d?>\s*/dev/null|\|\s*(?:tail|head|cat)(?:\s+-[\w-]+(?:\s+\d+)?)*)\s*\Z"
)
"""What only says how much of the output is wanted."""
_CONTINUED: Final = re.compile(r"\\\n\s*")
_TEST: Final = re.compile(r"(?:test|tests|spec|e2e|t)(?:$|[:_.-])|\w+[:_-]tests?\b")


class Shell(msgspec.Struct, frozen=True):
    """A command, by the programs it runs."""

    parts: tuple[tuple[str, ...], ...]
    """The words of each simple command; the first is the program without its folder."""
    writes: bool = False
    """Whether some output goes to a file."""

    def runs(self, *names: str) -> bool:
        """Whether one of its parts begins with these words; `git -C x commit` is `git commit`."""
        return any(_plain(part)[: len(names)] == names for part in self.parts)

    @property
    def tests(self) -> bool:
        """Whether it runs tests."""
        return any(_is_test(part) for part in self.parts)

    @property
    def only_looks(self) -> bool:
        """Whether nothing is different behind it."""
        return not self.writes and all(_looks(part) for part in self.parts)

    @property
    def gists(self) -> frozenset[str]:
        """The programs and what they do, of the parts that matter: `go test`, `npm run build`."""
        parts = [each for each in self.parts if not _looks(each)] or self.parts[:1]
        return frozenset(" ".join(_plain(each)[: _telling(_plain(each))]) for each in parts)

    @property
    def picks(self) -> frozenset[str]:
        """What its tests are narrowed down to: files, folders, names; nothing where all are run."""
        part = next((each for each in self.parts if _is_test(each)), ())
        words = _plain(part)
        return frozenset(words[_telling(words) :]) - _WIDE

    @property
    def tests_all(self) -> bool:
        """Whether it runs every test that the project has, by whatever it calls them."""
        return not self.picks and any(_is_test(each) and each[0] in _TASKED for each in self.parts)


def _telling(words: tuple[str, ...]) -> int:
    """Return how many of the first words say what is done."""
    if not words:
        return 0
    if words[0] in _WORDY:
        return 3 if words[1:2] and words[1] in _DEEPER else 2
    return 2 if _INTERPRETERS.fullmatch(words[0]) else 1


def shell_of(command: str) -> Shell:
    """Return what a command runs.

    >>> shell_of("cd web && CI=1 npx vitest run | tail -5").gists
    frozenset({'vitest'})
    >>> shell_of("git -C lib log --oneline 2>/dev/null | head").only_looks
    True
    """
    bare = _QUOTED.sub("_", _HERE.sub(" ", command[:_LONGEST]))
    targets = [found[1] for found in _TARGET.finditer(bare) if found[1]]
    writes = any(not target.startswith(_NOWHERE) for target in targets)
    parts = (_words(part) for part in _OPERATORS.split(_TARGET.sub(" ", bare)))
    return Shell(tuple(part for part in parts if part), writes)


def _words(part: str) -> tuple[str, ...]:
    """Return the words of a simple command, from the program on that does the work."""
    words = part.replace("\\", " ").split()
    while words:
        first = words[0].rpartition("/")[2]
        if _ASSIGNED.fullmatch(words[0]) or first in _SKIPPED:
            words = words[1:]
        elif first in _WRAPPERS and len(words) > 1:
            words = _behind(words[1:], _WRAPPERS[first])
        elif first in _RUN and words[2:] and words[1] in _runs(first):
            words = _behind(words[2:], 0)
        elif first.startswith("python") and words[1:2] == ["-m"]:
            words = words[2:]
        else:
            return (first, *words[1:])
    return ()


def _runs(program: str) -> tuple[str, ...]:
    return ("exec", "x") if program in _TASKS else ("run", "exec", "x")


def _behind(words: list[str], skip: int) -> list[str]:
    """Return the words behind options, and behind so many others."""
    at = 0
    while at < len(words) and words[at].startswith("-"):
        at += 1
    return words[at + skip :]


def _plain(part: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words without options; git's own come before its command, with a value."""
    words: list[str] = []
    skip = False
    for word in part:
        if skip:
            skip = False
        elif word.startswith("-"):
            skip = part[0] == "git" and word in ("-C", "-c") and len(words) == 1
        else:
            words.append(word)
    return tuple(words)


def _is_test(part: tuple[str, ...]) -> bool:
    words = _plain(part)
    if words[0] in _TESTERS:
        return True
    if words[0] in ("playwright", "cypress"):
        return words[1:2] in (("test",), ("run",))
    if words[0] == "node":
        return "--test" in part
    if words[0].startswith("python") and words[1:]:
        return words[1].endswith("manage.py") and words[2:3] == ("test",)
    rest = [word for word in words[1:4] if word != "run"]
    return (
        words[0] in _WORDY
        and words[0] not in ("git", "gh")
        and any(_TEST.match(word) for word in rest[:1])
    )


def _looks(part: tuple[str, ...]) -> bool:
    words = _plain(part)
    program = words[0] if words else ""
    if program == "git":
        return _git_looks(part, words)
    if program == "gh":
        return bool(_GH_LOOKS.intersection(words[1:3]))
    if program == "sed":
        return not any(word.startswith(("-i", "--in-place")) for word in part)
    if program == "find":
        return "-delete" not in part and _LOOKING.issuperset(_executed(part))
    if "--version" in part or "--help" in part:
        return True
    return program in _LOOKING


def _git_looks(part: tuple[str, ...], words: tuple[str, ...]) -> bool:
    verb, rest = words[1] if words[1:] else "", words[2:]
    if verb in ("tag", "branch"):
        return "-l" in part or "--list" in part or not (rest or _NAMING.intersection(part))
    if verb == "stash":
        return rest[:1] in (("list",), ("show",))
    return not verb or verb in _GIT_LOOKS


def _executed(part: tuple[str, ...]) -> list[str]:
    """Return the programs that `find` runs on what it finds."""
    pairs = pairwise(part)
    return [word.rpartition("/")[2] for before, word in pairs if before in ("-exec", "-execdir")]


def named(command: str, project: str) -> str:
    """Return a command as a brief calls it: without where it is run and how much of it is shown.

    >>> named("cd /home/ada/web && npm test 2>&1 | tail -20", "/home/ada/web")
    'npm test'
    """
    said = command[:_NAMED].strip()
    while found := _MOVES.match(said):
        said = said[found.end() :]
    while found := _ASIDE.search(said):
        said = said[: found.start()]
    return below(one_line(_CONTINUED.sub(" ", said or command)), project)
