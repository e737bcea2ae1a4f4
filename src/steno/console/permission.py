"""Permission questions that explain: what would run, part by part, why it asks, what a yes keeps."""

import os
import shlex
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, cast

from steno.agent.calls import Permission
from steno.agent.rules_kept import Where, settings_file
from steno.console.dialog import Choice, Dialog, Reply
from steno.console.near import near, near_words
from steno.console.steps import diff_lines, verb_of
from steno.format.tool_catalogue import SHELL, TEXT_EDITING_TOOLS, facts_of
from steno.format.values import as_list, as_object
from steno.guard.decision import Decision
from steno.guard.words import HOLE
from steno.safe.terminal import Line, clean, one_line, width, wrap
from steno.tools.patch import structured_patch

if TYPE_CHECKING:
    from steno.agent.calls import Judge
    from steno.console.prompt import Prompt
    from steno.console.stream import Stream
    from steno.guard.words import Command, Word

__all__ = ["Consents", "parts_of", "patch_of"]

_LINES: Final = 13
_PARTS: Final = 8
_RULE: Final = 40
_LARGEST: Final = 1 << 20
_REFUSED: Final = "The user does not want this."
_PLACES: Final[tuple[tuple[str, Where, str], ...]] = (
    ("p", "local", "in this project, for you"),
    ("t", "project", "in this project, for everybody"),
    ("u", "user", "in all your projects"),
)


class Consents:
    """Asks for permission in a console."""

    def __init__(
        self,
        prompt: "Prompt",
        stream: "Stream",
        guard: "Callable[[], Judge | None]",
        cwd: Callable[[], str],
        env: dict[str, str],
    ) -> None:
        self._prompt = prompt
        self._stream = stream
        self._guard = guard
        self._cwd = cwd
        self._env = env
        self.notify: Callable[[str], None] = lambda _words: None
        self.stop: Callable[[], None] = lambda: None
        self.asking = False

    async def __call__(self, call: dict[str, Any], decision: Decision) -> Permission:
        """Ask whether a call may be made."""
        self.asking = True
        self.notify(f"{verb_of(call)} waits for your permission")
        try:
            return await self._ask(call, decision)
        finally:
            self.asking = False

    async def _ask(self, call: dict[str, Any], decision: Decision) -> Permission:
        # Judging and comparing is not done again for every frame.
        @lru_cache(2)
        def body(columns: int) -> list[Line]:
            return list(self._body(call, decision, columns))

        while True:
            dialog = Dialog("Permission", body, _choices(call, decision), words=_WORDS, framed=True)
            dialog.all = "all"
            reply = await self._prompt.ask(dialog)
            if reply is None:
                self.stop()
                return Permission(granted=False, words=_REFUSED)
            answers: dict[str, Callable[[], Awaitable[Permission | None]]] = {
                "always": lambda: self._keep(decision),
                "edit": lambda: self._edit(call),
                "no": self._refuse,
            }
            if reply.value == "once":
                return Permission(granted=True)
            if reply.value == "session":
                return Permission(granted=True, rules=decision.offers[:1] or decision.together)
            if reply.value == "words":
                return self._no(reply)
            if reply.value in ("why", "all"):
                self._tell(call, decision, why=reply.value == "why")
                continue
            given = await answers[reply.value]()
            if given is not None:
                return given

    # What is shown

    def _body(self, call: dict[str, Any], decision: Decision, columns: int) -> Iterator[Line]:
        given = as_object(call.get("input")) or {}
        name = str(call.get("name"))
        yield [f"{one_line(verb_of(call), columns - 20)} wants to {_what(name)}"]
        yield from _some(self._what_of(name, given, columns), _LINES)
        for line in wrap(f"asks because {near_words(decision.reason, self._cwd())}", columns):
            yield [(line, "dim")]
        parts = parts_of(str(given.get("command", ""))) if name == SHELL else []
        if len(parts) > 1:
            yield [("it runs, one after the other:", "dim")]
            yield from _some(self._parts(parts, columns), _PARTS)

    def _what_of(self, name: str, given: dict[str, Any], columns: int) -> Iterator[Line]:
        """Yield what a call would do, all of it."""
        if name == SHELL:
            for line in wrap(str(given.get("command", "")), columns - 2):
                yield ["  ", (line, "bold")]
        elif name in TEXT_EDITING_TOOLS:
            path = near(self._whole(str(given.get("file_path", ""))), self._cwd())
            yield ["  ", (one_line(path, columns - 2), "bold")]
            patch = patch_of(name, given, self._cwd())
            yield from diff_lines(patch, columns, most=None, wrapped=True)
        else:
            for key, value in given.items():
                first, *rest = wrap(f"{key}: {near(str(value), self._cwd())}", columns - 2)
                head = f"{clean(key)}: "
                yield ["  ", (head, "dim"), (first.removeprefix(head), "bold")]
                yield from (["  ", (line, "bold")] for line in rest)

    def _parts(self, parts: "list[Command]", columns: int) -> Iterator[Line]:
        """Yield what a command is made of, and what the guard says of each part."""
        for part in parts:
            text = _shown(part)
            literal = all(word.literal for word in _words(part))
            guard = self._guard() if literal else None
            said = guard.judge(SHELL, {"command": text}, cwd=self._cwd()) if guard else None
            fine = said is not None and said.verdict == "allow"
            shown = one_line(text, max(columns * 3 // 5, 12))
            why = near_words(said.reason, self._cwd()) if said else "its words are not known yet"
            mark = ("✓ ", "green") if fine else ("! ", "yellow")
            yield [
                "  ",
                mark,
                shown,
                (f"  {one_line(why, max(columns - width(shown) - 6, 8))}", "dim"),
            ]

    def _tell(self, call: dict[str, Any], decision: Decision, *, why: bool) -> None:
        """Print what does not fit into the question: why it asks, or what it is about."""
        columns = self._prompt.screen.width - 4
        if not why:
            given = as_object(call.get("input")) or {}
            told = self._what_of(str(call.get("name")), given, columns)
            self._stream.block([["  ", *line] for line in told], "all")
            return
        lines = [near_words(decision.reason, self._cwd())]
        if decision.rule:
            lines.append(f"the rule that decided: {decision.rule}")
        else:
            lines.append("no rule allows it, and the mode does not either")
        lines += [f"this rule would allow it: {offer}" for offer in decision.offers]
        if decision.together:
            lines.append(f"these would together: {', '.join(decision.together)}")
        lines.append("rules that deny come first, then those that ask, then those that allow")
        self._stream.block(
            [["    ", (part, "dim")] for line in lines for part in wrap(line, columns - 1)], "why"
        )

    # What is answered

    async def _keep(self, decision: Decision) -> Permission | None:
        """Ask which rule is kept and where; both are seen before anything is saved."""
        rules = decision.offers[:1] or decision.together
        if len(decision.offers) > 1:
            rows = [
                Choice(str(at), rule, rule, _reach(rule))
                for at, rule in enumerate(decision.offers[:5], 1)
            ]
            reply = await self._prompt.ask(Dialog("Which rule?", (), rows))
            if reply is None:
                return None
            rules = (reply.value,)

        def body(columns: int) -> list[Line]:
            return [["  ", (line, "bold")] for rule in rules for line in wrap(rule, columns - 2)]

        places = [Choice(key, label, place, self._file(place)) for key, place, label in _PLACES]
        reply = await self._prompt.ask(
            Dialog("Allow this from now on, and where is it kept?", body, places)
        )
        if reply is None:
            return None
        place = cast("Where", reply.value)
        return Permission(granted=True, rules=rules, place=place)

    def _file(self, place: Where) -> str:
        """Return where a rule is kept, as short as it can be said."""
        return near(settings_file(place, self._cwd(), self._env), self._cwd())

    def _whole(self, path: str) -> str:
        return os.path.normpath(os.path.join(self._cwd(), os.path.expanduser(path)))

    async def _refuse(self) -> Permission | None:
        dialog = Dialog("No. What should it do instead?", (), (), words="enter alone: just no")
        return self._no(await self._prompt.ask(dialog))

    def _no(self, reply: Reply | None) -> Permission:
        words = reply.words.strip() if reply is not None else ""
        if not words:
            return Permission(granted=False, words=_REFUSED)
        self._stream.said(words)
        return Permission(granted=False, words=f"{_REFUSED} They said: {words}")

    async def _edit(self, call: dict[str, Any]) -> Permission | None:
        given = as_object(call.get("input")) or {}
        dialog = Dialog("The command to run instead", (), (), words="enter runs it, esc goes back")
        dialog.initial = str(given.get("command", ""))
        reply = await self._prompt.ask(dialog)
        if reply is None or not reply.words.strip():
            return None
        return Permission(granted=True, given={**given, "command": reply.words})


_WORDS: Final = "say what it should do instead"


def _some(lines: Iterable[Line], most: int) -> list[Line]:
    """Return the first lines, and how many more there are."""
    every = list(lines)
    if len(every) <= most:
        return every
    return [*every[: most - 1], [(f"  … {len(every) - most + 1} more lines: d shows all", "dim")]]


def _choices(call: dict[str, Any], decision: Decision) -> list[Choice]:
    choices = [Choice("y", "yes, once", "once")]
    if decision.offers or decision.together:
        rule = ", ".join(decision.offers[:1] or decision.together)
        command = (as_object(call.get("input")) or {}).get("command")
        # A rule is seen in full before it holds; that of a long command is the command itself.
        same = len(rule) > _RULE and rule == f"{SHELL}({command})"
        choices.append(Choice("s", f"this session: {'exactly this' if same else rule}", "session"))
        choices.append(Choice("a", "always…", "always"))
    choices.append(Choice("n", "no", "no"))
    if call.get("name") == SHELL:
        choices.append(Choice("e", "edit the command", "edit"))
    if call.get("name") in TEXT_EDITING_TOOLS:
        choices.append(Choice("d", "the whole diff", "all"))
    choices.append(Choice("?", "why", "why"))
    return choices


def _what(name: str) -> str:
    if name == SHELL:
        return "run"
    return "change" if name in TEXT_EDITING_TOOLS else "do this"


def _reach(rule: str) -> str:
    return "and whatever begins so" if rule.endswith((":*)", "**)")) else "exactly this"


def parts_of(script: str) -> "list[Command]":
    """Return the commands that a script runs, as the guard reads it."""
    from steno.guard.shell import read_script

    return list(read_script(script).commands)


def _shown(command: "Command") -> str:
    """Return a command as it runs: what it sets before, and where it reads and writes, with it."""
    sets = [f"{each.name}={_quoted(each.value)}" for each in command.assignments]
    files = [
        f"{'>' if each.writes else '<'} {_quoted(each.target)}" for each in command.redirections
    ]
    return " ".join([*sets, *map(_quoted, command.words), *files])


def _quoted(word: "Word") -> str:
    if word.literal and word.tilde:
        # In quotes it would be a name like any other.
        home, slash, rest = word.text.partition("/")
        return home + slash + (shlex.quote(rest) if rest else "")
    return shlex.quote(word.text) if word.literal else word.text.replace(HOLE, "…")


def _words(command: "Command") -> "list[Word]":
    sets = [each.value for each in command.assignments]
    return [*sets, *command.words, *(each.target for each in command.redirections)]


def patch_of(name: str, given: dict[str, Any], cwd: str) -> list[Any]:
    """Return what a call would change in its file, as far as that can be said beforehand."""
    path = os.path.join(cwd, os.path.expanduser(str(given.get("file_path", ""))))
    before = _content(path)
    if facts_of(name).file_action == "write":
        return list(structured_patch(before, str(given.get("content", ""))))
    edits = as_list(given.get("edits")) or [given]
    after = before
    for each in edits:
        edit = as_object(each) or {}
        old, new = str(edit.get("old_string", "")), str(edit.get("new_string", ""))
        count = -1 if edit.get("replace_all") is True else 1
        after = after.replace(old, new, count) if old else new
    return list(structured_patch(before, after))


def _content(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_LARGEST)
    except (OSError, ValueError):
        return ""
