"""Classifies shell commands: programs, tests, commits, reads, and changed files.

This is not a parser: quoted text and here-documents are removed, and the rest is split at the operators.
`permissions.shell.parser` is a parser, but it requires tree-sitter, which is not part of the base install, and it
rejects commands that it cannot parse with certainty. A report must name the programs of every recorded command. Of
373 commands in the corpus, the parser rejects 3 and splits 32 differently (`for`, `npx`), so figures would depend on
the installed extras. A command is assumed to have changed the files that it names, unless it is known only to read,
test or run them.
"""

import re
from itertools import pairwise
from typing import Final

import msgspec

from steno.report.humanize import relative_to_project
from steno.session.turns.steps import one_line

_COMMAND_SEPARATORS: Final = re.compile(r"&&|\|\||[;|\n]")
_COMMAND_PREFIX: Final = re.compile(r"\s*(?:(?:\w+=\S*|sudo|time|env|command|nohup|then|do|else|\(|!)\s+)*")
READING_PROGRAMS: Final = frozenset(
    (
        *("ack", "awk", "bat", "cat", "cd", "cksum", "cmp", "cut", "diff", "du", "echo", "egrep"),
        *("fgrep", "file", "find", "fold", "grep", "head", "hexdump", "jq", "less", "ls", "md5sum"),
        *("more", "mypy", "nl", "od", "printf", "pwd", "pytest", "pyright", "readlink", "rg"),
        *("sha1sum", "sha256sum", "sort", "stat", "strings", "tac", "tail", "test", "tree", "uniq"),
        *("vulture", "wc", "which", "xxd", "[", "[["),
    )
)
"""Programs that do not change the files in their arguments."""
_INTERPRETER_PROGRAMS: Final = frozenset(("bash", "deno", "node", "perl", "php", "python", "python3", "ruby", "sh"))
_READING_GIT_COMMANDS: Final = frozenset(
    ("add", "blame", "branch", "commit", "diff", "grep", "log", "ls-files", "show", "status")
)
_TEST_COMMANDS: Final = frozenset(("build", "check", "test", "vet"))
_BUILD_PROGRAMS: Final = frozenset(("cargo", "go", "make", "npm", "npx", "pnpm", "uv", "yarn"))
_WRITE_OPTIONS: Final = re.compile(r"\s(?:-o|--output|-delete|-exec)\b")
_SOMETIMES_WRITING: Final = frozenset(("find", "sort", "uniq"))
_MAX_COMMAND_LENGTH: Final = 100_000


def may_change_file(command: str, name: str) -> bool:
    """Return whether a command may have changed a file; `name` is the file name without directory.

    >>> may_change_file("sed -i s/a/b/ src/x.py", "x.py"), may_change_file("cat src/x.py | head", "x.py")
    (True, False)
    >>> may_change_file("grep a x.py > y.py", "x.py"), may_change_file("grep a y.py > x.py", "x.py")
    (False, True)
    """
    if not name or name not in command:
        return False
    if len(command) > _MAX_COMMAND_LENGTH:
        return True
    name_pattern = re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])")
    return any(
        _part_writes(part, name_pattern) for part in _COMMAND_SEPARATORS.split(command) if name_pattern.search(part)
    )


def _part_writes(part: str, name_pattern: re.Pattern[str]) -> bool:
    simple_command, *targets = re.split(r"\d?>>?&?", part)
    if any(name_pattern.search(target) for target in targets):
        return True
    arguments = _COMMAND_PREFIX.sub("", simple_command, count=1).split()
    if not arguments:
        return False
    program = arguments[0].rpartition("/")[2]
    options = simple_command[simple_command.find(arguments[0]) + len(arguments[0]) :]
    if program == "sed":
        return bool(re.search(r"\s(?:-[a-zA-Z]*i|--in-place)", options))
    if program == "git":
        return not _READING_GIT_COMMANDS.intersection(arguments[1:3])
    if program in _INTERPRETER_PROGRAMS:
        return bool(re.search(r"\s-[a-zA-Z]*[cei]\b|<<|\s-$", options))
    if program in _BUILD_PROGRAMS:
        return not _TEST_COMMANDS.intersection(arguments[1:3]) and "pytest" not in arguments
    return program not in READING_PROGRAMS or bool(_WRITE_OPTIONS.search(options) and program in _SOMETIMES_WRITING)


_MAX_PARSED_LENGTH: Final = 20_000
_MAX_SHOWN_LENGTH: Final = 2_000
_HERE_DOCUMENT: Final = re.compile(r"<<-?\s*(['\"]?)([A-Za-z_]\w*)\1.*?(?:^\s*\2\b|\Z)", re.DOTALL | re.MULTILINE)
_QUOTED_TEXT: Final = re.compile(r"'[^']*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_OPERATORS: Final = re.compile(r"&&|\|\||[;|&\n()]")
_REDIRECTION: Final = re.compile(r"\d?>>?\s*(&\d|\S+)|<\s*\S+")
_DISCARDED_TARGETS: Final = ("&", "/dev/null")
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=\S*")
_PREFIX_WORDS: Final = frozenset(
    ("sudo", "time", "env", "command", "nohup", "exec", "then", "do", "else", "if", "while", "!")
)
_WRAPPERS: Final = {**dict.fromkeys(("bunx", "doas", "nice", "npx", "stdbuf", "uvx", "xargs"), 0), "timeout": 1}
"""Programs that run another program, with the number of operands before that program's name."""
_RUNNERS_WITH_RUN: Final = frozenset(("bundle", "hatch", "mise", "pdm", "pipenv", "pixi", "poetry", "rye", "uv"))
_TASK_RUNNERS: Final = frozenset(("hatch", "mise", "pixi"))
"""Runners whose `run` subcommand takes the name of a project task instead of a program."""
_PROGRAMS_WITH_SUBCOMMAND: Final = frozenset(
    (
        *("apt", "apt-get", "brew", "bun", "cargo", "composer", "conda", "deno", "docker", "dotnet"),
        *("flutter", "gem", "gh", "git", "glab", "go", "gradle", "gradlew", "just", "kubectl"),
        *("make", "mise", "mix", "mvn", "npm", "nx", "pip", "pip3", "pnpm", "poetry", "rake"),
        *("rails", "swift", "task", "terraform", "turbo", "uv", "yarn", "zig"),
    )
)
"""Programs whose first operand is a subcommand."""
_NESTED_SUBCOMMANDS: Final = frozenset(
    (*("compose", "exec", "issue", "pr", "release", "repo", "run", "run-script", "task", "x"),)
)
"""Subcommands that take another subcommand."""
_INTERPRETER: Final = re.compile(r"(?:python|ruby|perl|php|lua|node)[\d.]*|bash|sh|zsh|tsx|ts-node|Rscript|julia|java")
"""Programs that run a script."""
_PROJECT_TASK_RUNNERS: Final = frozenset(("just", "make", "mise", "nox", "rake", "task", "tox"))
"""Programs that run the tasks of the project."""
_ALL_TESTS_ARGUMENTS: Final = frozenset((".", "./...", "./", "--", "run", "test", "tests", "tests/"))
"""Arguments of a test runner that do not select tests."""
_TEST_RUNNERS: Final = frozenset(
    (
        *("ava", "bats", "ctest", "jasmine", "jest", "karma", "mocha", "nosetests", "nox", "pest"),
        *("phpunit", "py.test", "pytest", "rspec", "tox", "unittest", "vitest", "gotestsum"),
    )
)
_CHECK_PROGRAMS: Final = frozenset(("mypy", "pyright", "pytest", "vulture"))
"""Programs that change nothing but whose result is worth reporting."""
_READ_ONLY_PROGRAMS: Final = (READING_PROGRAMS - _CHECK_PROGRAMS) | frozenset(
    (
        *(".", ":", "basename", "column", "comm", "date", "dirname", "done", "exit", "export"),
        *("false", "fi", "for", "history", "id", "identify", "in", "lsof", "man", "printenv", "ps"),
        *("read", "realpath", "seq", "set", "sleep", "source", "tee", "tr", "true", "type"),
        *("uname", "wait", "whoami", "xargs", "yes", "zcat"),
    )
)
_READ_ONLY_GIT: Final = frozenset(
    (
        *("add", "blame", "cat-file", "config", "describe", "diff", "fetch", "grep"),
        *("for-each-ref", "log", "ls-files", "ls-remote", "ls-tree", "merge-base", "name-rev"),
        *("reflog", "remote", "rev-list", "rev-parse", "shortlog", "show", "show-ref"),
        *("status",),
    )
)
_BRANCH_OPTIONS: Final = frozenset(("-a", "-d", "-D", "-m", "-M", "-f", "--delete"))
_READ_ONLY_GH: Final = frozenset(("view", "list", "diff", "checks", "status", "api", "search"))
_CHANGE_DIRECTORY: Final = re.compile(r"cd\s+(?:\"[^\"\n]*\"|'[^'\n]*'|[^\s;&|]+)\s*(?:&&|;)\s*")
_OUTPUT_LIMITS: Final = re.compile(
    r"\s*(?:\d?>&\d|\d?>\s*/dev/null|\|\s*(?:tail|head|cat)(?:\s+-[\w-]+(?:\s+\d+)?)*)\s*\Z"
)
"""Redirections and pipes that only limit the output."""
_LINE_CONTINUATION: Final = re.compile(r"\\\n\s*")
_TEST_TASK: Final = re.compile(r"(?:test|tests|spec|e2e|t)(?:$|[:_.-])|\w+[:_-]tests?\b")


class ShellCommand(msgspec.Struct, frozen=True):
    """The programs and arguments of a shell command."""

    parts: tuple[tuple[str, ...], ...]
    """Words of each simple command; the first is the program without its directory."""
    writes: bool = False
    """Whether output is redirected to a file."""

    def runs(self, *names: str) -> bool:
        """Return whether a simple command starts with these words; `git -C x commit` matches `git commit`."""
        return any(_without_options(part)[: len(names)] == names for part in self.parts)

    @property
    def runs_tests(self) -> bool:
        """Whether the command runs tests."""
        return any(_part_runs_tests(part) for part in self.parts)

    @property
    def only_reads(self) -> bool:
        """Whether the command changes nothing."""
        return not self.writes and all(_part_only_reads(part) for part in self.parts)

    @property
    def purposes(self) -> frozenset[str]:
        """Programs with their subcommands, such as `go test`; read-only programs only if no others were run."""
        parts = [part for part in self.parts if not _part_only_reads(part)] or self.parts[:1]
        return frozenset(" ".join(_without_options(each)[: _purpose_length(_without_options(each))]) for each in parts)

    @property
    def selected_tests(self) -> frozenset[str]:
        """Files, directories and names that the tests are restricted to; empty for all tests."""
        test_part = next((candidate for candidate in self.parts if _part_runs_tests(candidate)), ())
        arguments = _without_options(test_part)
        return frozenset(arguments[_purpose_length(arguments) :]) - _ALL_TESTS_ARGUMENTS

    @property
    def runs_all_tests(self) -> bool:
        """Whether the command runs the project's whole test suite."""
        return not self.selected_tests and any(
            _part_runs_tests(part) and part[0] in _PROJECT_TASK_RUNNERS for part in self.parts
        )


def _purpose_length(arguments: tuple[str, ...]) -> int:
    """Return the number of leading words that identify the command."""
    if not arguments:
        return 0
    if arguments[0] in _PROGRAMS_WITH_SUBCOMMAND:
        return 3 if arguments[1:2] and arguments[1] in _NESTED_SUBCOMMANDS else 2
    return 2 if _INTERPRETER.fullmatch(arguments[0]) else 1


def parse_shell_command(command: str) -> ShellCommand:
    """Parse a command into its programs and arguments.

    >>> parse_shell_command("cd web && CI=1 npx vitest run | tail -5").purposes
    frozenset({'vitest'})
    >>> parse_shell_command("git -C lib log --oneline 2>/dev/null | head").only_reads
    True
    """
    unquoted = _QUOTED_TEXT.sub("_", _HERE_DOCUMENT.sub(" ", command[:_MAX_PARSED_LENGTH]))
    targets = [redirection[1] for redirection in _REDIRECTION.finditer(unquoted) if redirection[1]]
    writes = any(not target.startswith(_DISCARDED_TARGETS) for target in targets)
    parts = (_program_words(part) for part in _OPERATORS.split(_REDIRECTION.sub(" ", unquoted)))
    return ShellCommand(tuple(part for part in parts if part), writes)


def _program_words(part: str) -> tuple[str, ...]:
    """Return the words of a simple command, starting at its actual program."""
    remaining = part.replace("\\", " ").split()
    while remaining:
        first = remaining[0].rpartition("/")[2]
        if _ASSIGNMENT.fullmatch(remaining[0]) or first in _PREFIX_WORDS:
            remaining = remaining[1:]
        elif first in _WRAPPERS and len(remaining) > 1:
            remaining = _after_options(remaining[1:], _WRAPPERS[first])
        elif first in _RUNNERS_WITH_RUN and remaining[2:] and remaining[1] in _run_subcommands(first):
            remaining = _after_options(remaining[2:], 0)
        elif first.startswith("python") and remaining[1:2] == ["-m"]:
            remaining = remaining[2:]
        else:
            return (first, *remaining[1:])
    return ()


def _run_subcommands(program: str) -> tuple[str, ...]:
    return ("exec", "x") if program in _TASK_RUNNERS else ("run", "exec", "x")


def _after_options(arguments: list[str], skip: int) -> list[str]:
    """Return the words after the leading options and `skip` operands."""
    index = 0
    while index < len(arguments) and arguments[index].startswith("-"):
        index += 1
    return arguments[index + skip :]


def _without_options(part: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words that are not options; git's global options precede its command and take a value."""
    kept_words: list[str] = []
    skip_next = False
    for word in part:
        if skip_next:
            skip_next = False
        elif word.startswith("-"):
            skip_next = part[0] == "git" and word in ("-C", "-c") and len(kept_words) == 1
        else:
            kept_words.append(word)
    return tuple(kept_words)


def _part_runs_tests(part: tuple[str, ...]) -> bool:
    arguments = _without_options(part)
    if arguments[0] in _TEST_RUNNERS:
        return True
    if arguments[0] in ("playwright", "cypress"):
        return arguments[1:2] in (("test",), ("run",))
    if arguments[0] == "node":
        return "--test" in part
    if arguments[0].startswith("python") and arguments[1:]:
        return arguments[1].endswith("manage.py") and arguments[2:3] == ("test",)
    subcommands = [word for word in arguments[1:4] if word != "run"]
    return (
        arguments[0] in _PROGRAMS_WITH_SUBCOMMAND
        and arguments[0] not in ("git", "gh")
        and any(_TEST_TASK.match(word) for word in subcommands[:1])
    )


def _part_only_reads(part: tuple[str, ...]) -> bool:
    arguments = _without_options(part)
    program = arguments[0] if arguments else ""
    if program == "git":
        return _git_only_reads(part, arguments)
    if program == "gh":
        return bool(_READ_ONLY_GH.intersection(arguments[1:3]))
    if program == "sed":
        return not any(word.startswith(("-i", "--in-place")) for word in part)
    if program == "find":
        return "-delete" not in part and _READ_ONLY_PROGRAMS.issuperset(_find_executes(part))
    if "--version" in part or "--help" in part:
        return True
    return program in _READ_ONLY_PROGRAMS


def _git_only_reads(part: tuple[str, ...], arguments: tuple[str, ...]) -> bool:
    verb, operands = arguments[1] if arguments[1:] else "", arguments[2:]
    if verb in ("tag", "branch"):
        return "-l" in part or "--list" in part or not (operands or _BRANCH_OPTIONS.intersection(part))
    if verb == "stash":
        return operands[:1] in (("list",), ("show",))
    return not verb or verb in _READ_ONLY_GIT


def _find_executes(part: tuple[str, ...]) -> list[str]:
    """Return the programs that `find` runs with `-exec`."""
    pairs = pairwise(part)
    return [word.rpartition("/")[2] for before, word in pairs if before in ("-exec", "-execdir")]


def short_command(command: str, project: str) -> str:
    """Return a command for a brief, without leading `cd` and without output limits.

    >>> short_command("cd /home/ada/web && npm test 2>&1 | tail -20", "/home/ada/web")
    'npm test'
    """
    shown_command = command[:_MAX_SHOWN_LENGTH].strip()
    while match := _CHANGE_DIRECTORY.match(shown_command):
        shown_command = shown_command[match.end() :]
    while match := _OUTPUT_LIMITS.search(shown_command):
        shown_command = shown_command[: match.start()]
    return relative_to_project(one_line(_LINE_CONTINUATION.sub(" ", shown_command or command)), project)
