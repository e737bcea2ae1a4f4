"""Tables of recorded answers: command lines in text files, each with what the guard makes of it.

    python -m tests.permissions.recorded_answers      # write all answers anew and print what differs

A line that begins with `$ ` is a command (`> ` continues it), one that begins with `@ ` says under
which rules and in which mode the commands after it are judged, and one that begins with `#` is a
remark. The indented lines below a command are the answer. In a file named `reading-*` the answer is
how the command line is read: its commands, what hides in them, and what they read. In a file named
`functions-*` a line asks one of the questions of `recorded_functions`, in one named `calls-*` it is
a call of a tool other than Bash. In every other file the answer is the whole decision. `…` stands for a value that is not known before the command runs.
"""

import difflib
import os
import shlex
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from tests.permissions.recorded_functions import call, function_answer, search_answer

from steno.permissions.permission_checker import PermissionChecker, suggest_command_rules
from steno.permissions.permission_rules import PERMISSION_MODES, Decision, PermissionMode, RuleSource, parse_rules
from steno.permissions.shell.command import INNER_SPACE, UNKNOWN_PART, Command, Word
from steno.permissions.shell.command_paths import (
    exposed_content,
    path_candidates,
    path_parts,
    possible_rule_texts,
    rule_texts,
)
from steno.permissions.shell.fixed_commands import fixed_paths
from steno.permissions.shell.nested_commands import runs_code
from steno.permissions.shell.parser import parse_script
from steno.permissions.shell.read_only_commands import ReadAccess, read_access

FOLDER: Final = Path(__file__).with_name("recorded")
_FILES: Final = {
    "src/a.py": "a\n",
    "src/b.py": "b\n",
    "src/deep/c.py": "c\n",
    "docs/guide.md": "guide\n",
    ".env": "TOKEN=x\n",
    "config/.env.local": "x\n",
    "secrets/key.pem": "x\n",
    "README.md": "readme\n",
    "-dash": "x\n",
    "it's": "x\n",
    "sub/.git/HEAD": "x\n",
    "bare/HEAD": "x\n",
    "bare/objects/x": "x\n",
    "bare/refs/x": "x\n",
    "kept/.claude/settings.json": "{}\n",
}


def tables() -> list[str]:
    """Return the names of all tables."""
    return sorted(path.stem for path in FOLDER.glob("*.txt"))


def recorded(name: str) -> str:
    """Return a table as it was recorded."""
    return (FOLDER / f"{name}.txt").read_text(encoding="utf-8")


def make_project(folder: Path) -> Path:
    """Make the folder that commands are judged in, with a home folder and another one beside it."""
    project = folder / "proj"
    for name, text in _FILES.items():
        path = project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (project / ".git").mkdir()
    (project / "empty").mkdir()
    outside = folder / "outside"
    outside.mkdir()
    (outside / "note.txt").write_text("x\n", encoding="utf-8")
    (project / "out").symlink_to(outside)
    (project / "link.md").symlink_to("README.md")
    (project / "env-link").symlink_to(".env")
    (project / "broken").symlink_to("nowhere")
    os.link(project / ".env", project / "other-env")
    os.link(project / "src" / "b.py", project / "src" / "b2.py")
    os.mkfifo(project / "pipe")
    (folder / "home" / ".ssh").mkdir(parents=True)
    for name in ("bin", "lib", "lib64", "libexec", "Cellar", "opt", "share"):
        (folder / "more" / name).mkdir(parents=True)
    return project


class Context:
    """The rules and the mode that commands are judged under, as an `@` line gives them."""

    def __init__(self, line: str, project: Path) -> None:
        base = project.parent
        rules: dict[str, list[str]] = {"allow": [], "ask": [], "deny": []}
        self.mode: PermissionMode = "default"
        self.confinable = True
        folders = [str(project)]
        self.cwd = str(project)
        home = str(base / "home")
        only: tuple[str, ...] | None = None
        self._with_offers = True
        for word in shlex.split(line):
            key, _, value = word.partition(":")
            if key in rules:
                rules[key].append(value.replace("BASE", str(base)))
            elif key in PERMISSION_MODES:
                self.mode = key
            elif key == "unconfinable":
                self.confinable = False
            elif key == "also":
                folders.append(str(base / value))
            elif key == "cwd":
                self.cwd = os.path.normpath(project / value)
            elif key == "without-offers":
                self._with_offers = False
            elif key == "homeless":
                home = ""
            elif key == "only":
                only = tuple(value.split(","))
            else:
                raise ValueError(f"not a part of a context: {word}")
        layer = RuleSource(*(tuple(rules[kind]) for kind in ("allow", "ask", "deny")))
        gathered = parse_rules([layer], root=str(project), cwd=self.cwd, home=home)
        self.guard = PermissionChecker(
            gathered, self.mode, str(project), folders, only, home=home, can_sandbox=self.confinable
        )
        self._base = str(base)

    def answer(self, command: str) -> Iterator[str]:
        """Yield the lines of the decision about a command."""
        if self._with_offers:
            yield from self._lines(self.guard.judge("Bash", {"command": command}, cwd=self.cwd))
        else:
            yield from self._lines(self.guard.decide("Bash", {"command": command}, self.cwd))

    def answer_call(self, line: str) -> Iterator[str]:
        """Yield the lines of the decision about a call of another tool."""
        tool, given = call(line, self._base)
        if tool == "search":
            folder = Path(self.cwd, given["path"])
            yield from self._lines(search_answer(self.guard.visibility_filter(str(folder)), folder))
        elif tool == "named":
            named = self.guard.matches_rule(given["rule"], given["tool"], {"command": given["in"]})
            yield f"named: {named}"
        else:
            yield from self._lines(self.guard.judge(tool, given, cwd=self.cwd))

    def _lines(self, decision: Decision) -> Iterator[str]:
        for line in _decision_lines(decision):
            yield _visible(line).replace(self._base, "BASE")


def _decision_lines(decision: Decision) -> Iterator[str]:
    how = f" {decision.isolation}" if decision.isolation else ""
    exact = " exact" if decision.exact else ""
    yield f"{decision.verdict}{how}{exact}: {decision.reason}"
    for name in ("rule", "paths", "offers", "together"):
        value = getattr(decision, name)
        if value:
            yield f"  {name}: {value if isinstance(value, str) else ' '.join(value)}"


# How a command line is read


def reading_lines(script: str) -> Iterator[str]:
    """Yield the lines that say how a script is read."""
    reading = parse_script(script)
    if reading.trouble:
        yield f"trouble: {reading.trouble}"
    if reading.tests:
        yield "tests"
    for command in reading.commands:
        yield from _command_lines(command, "")


def _command_lines(command: Command, indent: str) -> Iterator[str]:
    yield indent + " ".join(
        filter(
            None,
            (
                *(f"{each.name}={_word(each.value)}" for each in command.assignments),
                *map(_word, command.words),
                *(f"{'>' if each.writes else '<'}{_word(each.target)}" for each in command.redirections),
                *("(transparent)" * command.transparent, "(repeated)" * command.repeated),
                f"(reach {command.reach})" if command.reach >= 0 else "",
                f"(sealed: {command.sealed})" if command.sealed else "",
            ),
        )
    )
    for name, value in _facts(command):
        yield f"{indent}  {name}: {value}"
    for inner in command.inner:
        yield from _command_lines(inner, indent + "    ")


def _facts(command: Command) -> Iterator[tuple[str, str]]:
    """Yield what is said of a command by itself; what is empty is left out."""
    free, held = read_access(command), read_access(command, sandboxed=True)
    if free == held:
        yield from _fact("reads", _reads(free))
    else:
        yield from _fact("reads free", _reads(free))
        yield from _fact("reads confined", _reads(held))
    fixed = fixed_paths(command)
    if fixed is not None:
        yield "fixed", _words(fixed[0]) + " folders" * fixed[1]
    shown = exposed_content(command)
    yield from _fact("shows", _words(shown.folders) + "everything" * shown.everything)
    yield from _fact("offers", " ".join(suggest_command_rules(command)))
    yield from _fact("runs code", "any rule with a prefix" * runs_code(command.program))
    plain = {command.text, command.text_with_assignments, command.text.replace(INNER_SPACE, " ")}
    spelled = [text for text in dict.fromkeys(rule_texts(command)) if text not in plain]
    yield from _fact("also", " | ".join(spelled))
    yield from _fact("perhaps", " | ".join(possible_rule_texts(command)))
    extra = [word for word in path_candidates(command) if word not in command.words]
    pieces = [piece for word in command.words for piece in path_parts(word)]
    yield from _fact("parts", f"{_words(extra)}; {_words(pieces)}" if extra or pieces else "")


def _fact(name: str, value: str) -> Iterator[tuple[str, str]]:
    if value:
        yield name, value


def _reads(reads: ReadAccess | None) -> str:
    if reads is None:
        return ""
    return ("deep " * reads.deep + _words(reads.paths)).strip() or "nothing"


def _words(words: Iterable[Word]) -> str:
    return " ".join(map(_word, words))


def _word(word: Word) -> str:
    marks = [name for name in ("splits", "tilde", "glob") if getattr(word, name)]
    text = word.text if word.text and " " not in word.text else f"[{word.text}]"
    return text + (f"{{{','.join(marks)}}}" if marks else "")


def _visible(text: str) -> str:
    text = text.replace(UNKNOWN_PART, "…").replace(INNER_SPACE, "␣")
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace("\t", "\\t")


# Files


def answered(name: str, text: str, project: Path) -> str:
    """Return a table with the answers that the guard gives now."""
    lines: list[str] = []
    context = Context("", project)
    for kind, block in _blocks(text):
        lines += _written(kind, block)
        if kind == "@":
            context = Context(block, project)
        elif kind == "$":
            if name.startswith("reading-"):
                found = map(_visible, reading_lines(block))
            elif name.startswith("functions-"):
                found = map(_visible, function_answer(block, project))
            elif name.startswith("calls-"):
                found = context.answer_call(block)
            else:
                found = context.answer(block)
            lines += [f"    {line}".rstrip() for line in found if line.strip()]
    return "\n".join(lines) + "\n"


def _blocks(text: str) -> Iterator[tuple[str, str]]:
    """Yield the parts of a table without its answers."""
    command: list[str] = []
    for line in text.removesuffix("\n").split("\n"):
        if command and not line.startswith(">"):
            yield "$", "\n".join(command)
            command = []
        if line.startswith("$ "):
            command = [line[2:]]
        elif line.startswith(">"):
            command.append(line[2:])
        elif line.startswith("@"):
            yield "@", line[2:]
        elif not line.startswith("    "):
            yield "#", line
    if command:
        yield "$", "\n".join(command)


def _written(kind: str, block: str) -> list[str]:
    if kind == "#":
        return [block]
    if kind == "@":
        return [f"@ {block}".rstrip()]
    first, *rest = block.split("\n")
    return [f"$ {first}", *(f"> {line}" for line in rest)]


def _record() -> int:
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"HOME": f"{folder}/home", "CLAUDE_CONFIG_DIR": f"{folder}/home/.claude"}
        os.environ["STENO_HOME"] = f"{folder}/home/.steno"
        project = make_project(Path(os.path.realpath(folder)))
        for name in tables():
            before = recorded(name)
            after = answered(name, before, project)
            sys.stdout.writelines(
                difflib.unified_diff(before.splitlines(keepends=True), after.splitlines(keepends=True), name, name)
            )
            (FOLDER / f"{name}.txt").write_text(after, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(_record())
