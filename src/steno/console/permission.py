"""Permission questions that explain: what would run, part by part, why it asks, what a yes keeps."""

import os
import shlex
from collections.abc import Awaitable, Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, cast

from steno.agent.calls import Permission
from steno.agent.rules_kept import Where, settings_file
from steno.console.dialog import Choice, Dialog, Reply
from steno.console.steps import diff_lines, verb_of
from steno.format.values import as_list, as_object
from steno.guard.decision import Decision
from steno.guard.words import HOLE
from steno.safe.terminal import Line, one_line, width, wrap
from steno.tools.patch import structured_patch

if TYPE_CHECKING:
    from steno.agent.calls import Judge
    from steno.console.prompt import Prompt
    from steno.console.stream import Stream
    from steno.guard.words import Command

__all__ = ["Consents", "parts_of", "patch_of"]

_LINES: Final = 12
_LARGEST: Final = 1 << 20
_EDITS: Final = frozenset(("Edit", "MultiEdit", "Write"))
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
        while True:
            body = list(self._body(call, decision))
            reply = await self._prompt.ask(
                Dialog("Permission", body, _choices(call, decision), words=_WORDS, framed=True),
            )
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
                return Permission(granted=True, rules=decision.offers[:1])
            if reply.value == "words":
                return _no(reply)
            if reply.value in ("why", "diff"):
                self._explain(call, decision, whole_diff=reply.value == "diff")
                continue
            given = await answers[reply.value]()
            if given is not None:
                return given

    # What is shown

    def _body(self, call: dict[str, Any], decision: Decision) -> Iterator[Line]:
        columns = min(self._prompt.screen.width - 6, 105)
        given = as_object(call.get("input")) or {}
        name = str(call.get("name"))
        yield [f"{one_line(verb_of(call), columns - 20)} wants to {_what(name)}"]
        if name == "Bash":
            for line in wrap(str(given.get("command", "")), columns - 2)[:_LINES]:
                yield ["  ", (line, "bold")]
            parts = parts_of(str(given.get("command", "")))
            if len(parts) > 1:
                yield from self._parts(parts, columns)
        elif name in _EDITS:
            yield ["  ", (one_line(str(given.get("file_path", "")), columns - 2), "bold")]
            patch = patch_of(name, given, self._cwd())
            yield from diff_lines(patch, columns, most=_LINES)
        else:
            for key, value in list(given.items())[:4]:
                yield ["  ", (f"{key}: ", "dim"), (one_line(str(value), columns - 14), "bold")]
        for line in wrap(f"asks because {decision.reason}", columns):
            yield [(line, "dim")]

    def _parts(self, parts: "list[Command]", columns: int) -> Iterator[Line]:
        """Yield what a command is made of, and what the guard says of each part."""
        yield [("it runs, one after the other:", "dim")]
        for part in parts[:8]:
            text = _shown(part)
            literal = all(word.literal for word in part.words)
            guard = self._guard() if literal else None
            said = guard.judge("Bash", {"command": text}, cwd=self._cwd()) if guard else None
            fine = said is not None and said.verdict == "allow"
            shown = one_line(text, max(columns * 3 // 5, 12))
            why = said.reason if said is not None else "its words are not known yet"
            mark = ("✓ ", "green") if fine else ("! ", "yellow")
            yield [
                "  ",
                mark,
                shown,
                (f"  {one_line(why, max(columns - width(shown) - 6, 8))}", "dim"),
            ]

    def _explain(self, call: dict[str, Any], decision: Decision, *, whole_diff: bool) -> None:
        """Print what does not fit into the question."""
        columns = self._prompt.screen.width - 4
        if whole_diff:
            given = as_object(call.get("input")) or {}
            patch = patch_of(str(call.get("name")), given, self._cwd())
            self._stream.block(list(diff_lines(patch, columns, most=None)), "diff")
            return
        lines = [decision.reason]
        if decision.rule:
            lines.append(f"the rule that decided: {decision.rule}")
        else:
            lines.append("no rule allows it, and the mode does not either")
        lines += [f"this rule would allow it: {offer}" for offer in decision.offers]
        lines.append("rules that deny come first, then those that ask, then those that allow")
        self._stream.block([["    ", (one_line(line, columns), "dim")] for line in lines], "why")

    # What is answered

    async def _keep(self, decision: Decision) -> Permission | None:
        """Ask which rule is kept and where; both are seen before anything is saved."""
        offers = decision.offers
        choices = [Choice(str(at), rule, rule) for at, rule in enumerate(offers[:5], 1)]
        rule = offers[0]
        if len(choices) > 1:
            rows = [
                Choice(each.key, each.label, each.value, _reach(each.value)) for each in choices
            ]
            reply = await self._prompt.ask(Dialog("Which rule?", (), rows))
            if reply is None:
                return None
            rule = reply.value
        body: list[Line] = [["  ", (rule, "bold")]]
        places = [Choice(key, label, place, self._file(place)) for key, place, label in _PLACES]
        reply = await self._prompt.ask(
            Dialog("Allow this from now on, and where is it kept?", body, places)
        )
        if reply is None:
            return None
        place = cast("Where", reply.value)
        return Permission(granted=True, rules=(rule,), place=place)

    def _file(self, place: Where) -> str:
        """Return where a rule is kept, as short as it can be said."""
        path = settings_file(place, self._cwd(), self._env)
        inside = os.path.relpath(path, os.path.realpath(self._cwd()))
        return path if inside.startswith(os.pardir) else inside

    async def _refuse(self) -> Permission | None:
        dialog = Dialog("No. What should it do instead?", (), (), words="enter alone: just no")
        reply = await self._prompt.ask(dialog)
        return _no(reply)

    async def _edit(self, call: dict[str, Any]) -> Permission | None:
        given = as_object(call.get("input")) or {}
        dialog = Dialog("The command to run instead", (), (), words="enter runs it, esc goes back")
        dialog.initial = str(given.get("command", ""))
        reply = await self._prompt.ask(dialog)
        if reply is None or not reply.words.strip():
            return None
        return Permission(granted=True, given={**given, "command": reply.words})


_WORDS: Final = "say what it should do instead"


def _choices(call: dict[str, Any], decision: Decision) -> list[Choice]:
    choices = [Choice("y", "yes, once", "once")]
    if decision.offers:
        rule = one_line(decision.offers[0], 40)
        choices.append(Choice("s", f"this session: {rule}", "session"))
        choices.append(Choice("a", "always…", "always"))
    choices.append(Choice("n", "no", "no"))
    if call.get("name") == "Bash":
        choices.append(Choice("e", "edit the command", "edit"))
    if call.get("name") in _EDITS:
        choices.append(Choice("d", "the whole diff", "diff"))
    choices.append(Choice("?", "why", "why"))
    return choices


def _no(reply: Reply | None) -> Permission:
    words = reply.words.strip() if reply is not None else ""
    return Permission(granted=False, words=f"{_REFUSED} They said: {words}" if words else _REFUSED)


def _what(name: str) -> str:
    if name == "Bash":
        return "run"
    return "change" if name in _EDITS else "do this"


def _reach(rule: str) -> str:
    return "and whatever begins so" if rule.endswith((":*)", "**)")) else "exactly this"


def parts_of(script: str) -> "list[Command]":
    """Return the commands that a script runs, as the guard reads it."""
    from steno.guard.shell import read_script

    return list(read_script(script).commands)


def _shown(command: "Command") -> str:
    words = [
        shlex.quote(word.text) if word.literal else word.text.replace(HOLE, "…")
        for word in command.words
    ]
    return " ".join(words)


def patch_of(name: str, given: dict[str, Any], cwd: str) -> list[Any]:
    """Return what a call would change in its file, as far as that can be said beforehand."""
    path = os.path.join(cwd, os.path.expanduser(str(given.get("file_path", ""))))
    before = _content(path)
    if name == "Write":
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
