r"""Commands of the user's and the project's own: Markdown files that become prompts.

    ~/.claude/commands/hello.md            /hello
    .claude/commands/web/page.md           /web:page

`$ARGUMENTS` is everything after the name as it was typed, `$ARGUMENTS[0]` or `$0` its first word
(quotes keep words together), `$name` a word that the head names in `arguments`. A word that was
not given stays as it is written. !`command` is replaced by its output, if whoever asks for it
lets it run; what a command prints and what the user typed is never looked through again.
"""

import re
import shlex
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias

import msgspec

from steno.agent.around_files import Note, markdown_files, read_text
from steno.agent.frontmatter import Head, split
from steno.agent.memory import mentions
from steno.store.places import config_dir

__all__ = [
    "Command",
    "Expanded",
    "Scope",
    "Shell",
    "called",
    "discover_commands",
    "expand",
    "find_command",
    "invocation",
    "read_command",
]

Scope: TypeAlias = Literal["user", "project"]
Shell: TypeAlias = Callable[[str], Awaitable[str]]
"""Runs a command if the guard lets it, and returns what to put in its place."""

_CALL: Final = re.compile(r"\s*/([\w:.-]+)(?:\s+(.*))?\s*$", re.DOTALL)
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_RUN: Final = re.compile(r"(?<!\S)!`([^`\n]+)`")


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt under a name."""

    name: str
    body: str
    path: str = ""
    scope: Scope = "user"
    description: str = ""
    argument_hint: str = ""
    argument_names: tuple[str, ...] = ()
    allowed_tools: tuple[str, ...] = ()
    model: str = ""
    model_may_call: bool = True
    user_may_call: bool = True


class Expanded(msgspec.Struct, frozen=True):
    """A command with everything filled in."""

    text: str
    mentions: tuple[str, ...] = ()
    """The files it names with `@`, to be read as those of a prompt are."""


def discover_commands(
    project: str, *, trusted: bool, env: Mapping[str, str] | None = None
) -> tuple[tuple[Command, ...], tuple[Note, ...]]:
    """Return all commands by name; the user's own stands before the project's of that name."""
    notes: list[Note] = []
    places: list[tuple[Path, Scope]] = [(Path(config_dir(env), "commands"), "user")]
    if trusted:
        places.append((Path(project, ".claude", "commands"), "project"))
    found: dict[str, Command] = {}
    for folder, scope in places:
        for path in markdown_files(folder):
            text = read_text(path, notes)
            if text is not None:
                names = path.relative_to(folder).with_suffix("").parts
                command = read_command(text, ":".join(names), str(path), scope, notes)
                found.setdefault(command.name, command)
    return tuple(found[name] for name in sorted(found)), tuple(notes)


def read_command(
    text: str, name: str, path: str = "", scope: Scope = "user", notes: list[Note] | None = None
) -> Command:
    """Read a command's file."""
    head, body = split(text)
    if notes is not None:
        notes.extend(Note(path, words) for words in head.notes)
    return Command(
        name=name,
        body=body,
        path=path,
        scope=scope,
        description=head.text("description").strip() or _first_line(body),
        argument_hint=_hint(head),
        argument_names=head.words("arguments") or (),
        allowed_tools=head.words("allowed-tools") or (),
        model=head.text("model"),
        model_may_call=not head.flag("disable-model-invocation"),
        user_may_call=head.flag("user-invocable", otherwise=True),
    )


def _hint(head: Head) -> str:
    # `[file]` is a list in YAML, but a hint to whoever wrote it.
    value = head.values.get("argument-hint", "")
    return f"[{', '.join(value)}]" if isinstance(value, tuple) else head.text("argument-hint")


def _first_line(body: str) -> str:
    line = next((line for line in body.split("\n") if line.strip()), "")
    return line.strip().lstrip("#").strip()[:200]


def called(text: str) -> tuple[str, str] | None:
    """Return the name and the arguments of a prompt that calls a command."""
    match = _CALL.match(text)
    return None if match is None else (match[1], (match[2] or "").strip())


def find_command(commands: Iterable[Command], name: str) -> Command | None:
    """Return the command of that name; its last part is enough where only one ends so."""
    commands = tuple(commands)
    for command in commands:
        if command.name == name:
            return command
    ending = [command for command in commands if command.name.rsplit(":", 1)[-1] == name]
    return ending[0] if len(ending) == 1 else None


def invocation(name: str, arguments: str = "") -> str:
    """Return the words that a session keeps in the place of what the user typed."""
    words = f"<command-message>{name}</command-message>\n<command-name>/{name}</command-name>"
    return f"{words}\n<command-args>{arguments}</command-args>" if arguments else words


async def expand(
    command: Command,
    arguments: str,
    *,
    shell: Shell | None = None,
    names: Mapping[str, str] | None = None,
) -> Expanded:
    """Fill a command in.

    Args:
        command: what to fill in.
        arguments: what was typed after its name.
        shell: runs the commands in it; without it they are left out, and said so.
        names: values for `${NAME}`, such as `CLAUDE_SESSION_ID`.
    """
    fill = _Filling(command, arguments, names or {})
    parts: list[str] = []
    at = 0
    for start, end, line in _runs(command.body):
        parts.append(fill(command.body[at:start]))
        parts.append("[not run]" if shell is None else (await shell(fill(line))).rstrip("\n"))
        at = end
    parts.append(fill(command.body[at:]))
    text = "".join(parts)
    if arguments and not fill.used:
        text = f"{text}\n\nARGUMENTS: {arguments}"
    # Not those in the output of commands: what a program prints names no files for us.
    return Expanded(text, mentions("\n".join([*parts[::2], arguments])))


def _runs(body: str) -> list[tuple[int, int, str]]:
    """Return where commands stand, and each command: after `!` or in a block that starts so."""
    runs: list[tuple[int, int, str]] = []
    opened: tuple[int, int] | None = None
    at = 0
    for line in body.split("\n"):
        end = at + len(line)
        if opened is not None:
            if line.rstrip() == "```":
                runs.append((opened[0], end, body[opened[1] : at].rstrip("\n")))
                opened = None
        elif line.rstrip() == "```!":
            opened = (at, end + 1)
        else:
            runs += [(at + one.start(), at + one.end(), one[1]) for one in _RUN.finditer(line)]
        at = end + 1
    return runs


class _Filling:
    """Puts the arguments in the place of their names."""

    def __init__(self, command: Command, arguments: str, names: Mapping[str, str]) -> None:
        self._all = arguments
        self._each = _words(arguments)
        self._named = {
            name: n for n, name in enumerate(command.argument_names) if _NAME.match(name)
        }
        self._names = names
        own = "".join(f"|{re.escape(name)}\\b" for name in sorted(self._named, reverse=True))
        self._pattern = re.compile(
            rf"\$ARGUMENTS\[(\d{{1,4}})\]|\$(ARGUMENTS)\b|\$(\d{{1,4}})\b|\$\{{(\w+)\}}|\$((?!){own})"
        )
        self.used = False

    def __call__(self, text: str) -> str:
        return self._pattern.sub(self._value, text)

    def _value(self, match: re.Match[str]) -> str:
        if match[4] is not None:
            return self._names.get(match[4], match[0])
        self.used = True
        if match[2]:
            return self._all
        number = self._named.get(match[5], 0) if match[5] else int(match[1] or match[3])
        return self._each[number] if number < len(self._each) else match[0]


def _words(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()
