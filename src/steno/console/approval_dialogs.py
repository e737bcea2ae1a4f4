"""Dialogs for permissions, plans, questions of tools, and trust."""

import os
import shlex
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, cast

from steno.agent.permission_store import settings_path
from steno.agent.tool_executor import Approval, RuleScope
from steno.console.dialog import Choice, Dialog, Reply
from steno.console.step_lines import call_label, diff_lines
from steno.errors import StenoError
from steno.format.lenient_json import as_list, as_object
from steno.format.tool_catalogue import SHELL, TEXT_EDITING_TOOLS, tool_facts
from steno.permissions.permission_rules import Decision
from steno.permissions.shell.command import UNKNOWN_PART
from steno.sanitize.terminal import StyledLine, clean, display_width, one_line, wrap
from steno.tools.patch import structured_patch

if TYPE_CHECKING:
    from steno.agent.config.agent_options import AgentOptions
    from steno.agent.tool_executor import CallPermissionChecker
    from steno.console.event_renderer import EventRenderer
    from steno.console.prompt import Prompt
    from steno.permissions.shell.command import Command, Word


def short_path(path: str, cwd: str) -> str:
    """Return a path as it is said in a folder.

    >>> short_path("/home/ada/tide/src/a.py", "/home/ada/tide")
    'src/a.py'
    """
    for folder, prefix in _base_folders(cwd):
        if path == folder:
            return prefix or "."
        if path.startswith(os.path.join(folder, "")):
            return os.path.join(prefix, path[len(os.path.join(folder, "")) :])
    return path


def shorten_paths(text: str, cwd: str) -> str:
    """Return a sentence with the paths in it said so.

    >>> shorten_paths("/home/ada/tide/a.py would be changed", "/home/ada/tide")
    'a.py would be changed'
    """
    shortened = (short_path(word, cwd) if word.startswith(os.sep) else word for word in text.split(" "))
    return " ".join(shortened)


def _base_folders(cwd: str) -> list[tuple[str, str]]:
    """Return what paths are said from, and what stands for it: the folder before home."""
    home = os.path.expanduser("~")
    candidates = [(cwd, ""), (os.path.realpath(cwd), ""), (home, "~"), (os.path.realpath(home), "~")]
    # What is not below anything is not said from there.
    return [(folder, prefix) for folder, prefix in candidates if folder not in ("", os.sep, "~")]


_MAX_LINES: Final = 13
_MAX_PARTS: Final = 8
_MAX_RULE: Final = 40
_MAX_FILE_BYTES: Final = 1 << 20
_REJECTED_MESSAGE: Final = "The user does not want this."
_SCOPES: Final[tuple[tuple[str, RuleScope, str], ...]] = (
    ("p", "local", "in this project, for you"),
    ("t", "project", "in this project, for everybody"),
    ("u", "user", "in all your projects"),
)


class PermissionDialogs:
    """Asks for permission in a console."""

    def __init__(
        self,
        prompt: "Prompt",
        renderer: "EventRenderer",
        get_permissions: "Callable[[], CallPermissionChecker | None]",
        get_cwd: Callable[[], str],
        env: dict[str, str],
    ) -> None:
        self._prompt = prompt
        self._renderer = renderer
        self._get_permissions = get_permissions
        self._get_cwd = get_cwd
        self._env = env
        self.on_waiting: Callable[[str], None] = lambda _words: None
        self.on_cancel: Callable[[], None] = lambda: None
        self.is_open = False

    async def __call__(self, call: dict[str, Any], decision: Decision) -> Approval:
        """Ask whether a call may be made."""
        self.is_open = True
        self.on_waiting(f"{call_label(call)} waits for your permission")
        try:
            return await self._ask(call, decision)
        finally:
            self.is_open = False

    async def _ask(self, call: dict[str, Any], decision: Decision) -> Approval:
        # Judging and comparing is not done again for every frame.
        @lru_cache(2)
        def body(columns: int) -> list[StyledLine]:
            return list(self._dialog_body(call, decision, columns))

        while True:
            dialog = Dialog("Permission", body, _choices(call, decision), text_hint=_TEXT_HINT, is_framed=True)
            dialog.show_all_value = "all"
            reply = await self._prompt.ask(dialog)
            if reply is None:
                self.on_cancel()
                return Approval(granted=False, message=_REJECTED_MESSAGE)
            answers: dict[str, Callable[[], Awaitable[Approval | None]]] = {
                "always": lambda: self._choose_rule(decision),
                "edit": lambda: self._edit_command(call),
                "no": self._ask_rejection_reason,
            }
            if reply.value == "once":
                return Approval(granted=True)
            if reply.value == "session":
                return Approval(granted=True, rules=decision.offers[:1] or decision.together)
            if reply.value == "words":
                return self._reject(reply)
            if reply.value in ("why", "all"):
                self._print_explanation(call, decision, explain=reply.value == "why")
                continue
            approval = await answers[reply.value]()
            if approval is not None:
                return approval

    # What is shown

    def _dialog_body(self, call: dict[str, Any], decision: Decision, columns: int) -> Iterator[StyledLine]:
        tool_input = as_object(call.get("input")) or {}
        name = str(call.get("name"))
        yield [f"{one_line(call_label(call), columns - 20)} wants to {_action_verb(name)}"]
        yield from _first_lines(self._call_lines(name, tool_input, columns), _MAX_LINES)
        for line in wrap(f"asks because {shorten_paths(decision.reason, self._get_cwd())}", columns):
            yield [(line, "dim")]
        parts = command_parts(str(tool_input.get("command", ""))) if name == SHELL else []
        if len(parts) > 1:
            yield [("it runs, one after the other:", "dim")]
            yield from _first_lines(self._part_lines(parts, columns), _MAX_PARTS)

    def _call_lines(self, name: str, tool_input: dict[str, Any], columns: int) -> Iterator[StyledLine]:
        """Yield what a call would do, all of it."""
        if name == SHELL:
            for line in wrap(str(tool_input.get("command", "")), columns - 2):
                yield ["  ", (line, "bold")]
        elif name in TEXT_EDITING_TOOLS:
            path = short_path(self._absolute_path(str(tool_input.get("file_path", ""))), self._get_cwd())
            yield ["  ", (one_line(path, columns - 2), "bold")]
            patch = preview_patch(name, tool_input, self._get_cwd())
            yield from diff_lines(patch, columns, max_lines=None, wrapped=True)
        else:
            for key, value in tool_input.items():
                first, *rest = wrap(f"{key}: {short_path(str(value), self._get_cwd())}", columns - 2)
                label = f"{clean(key)}: "
                yield ["  ", (label, "dim"), (first.removeprefix(label), "bold")]
                yield from (["  ", (line, "bold")] for line in rest)

    def _part_lines(self, parts: "list[Command]", columns: int) -> Iterator[StyledLine]:
        for part in parts:
            text = _command_text(part)
            literal = all(word.literal for word in _all_words(part))
            permissions = self._get_permissions() if literal else None
            decision = permissions.judge(SHELL, {"command": text}, cwd=self._get_cwd()) if permissions else None
            is_allowed = decision is not None and decision.verdict == "allow"
            displayed = one_line(text, max(columns * 3 // 5, 12))
            reason = shorten_paths(decision.reason, self._get_cwd()) if decision else "its words are not known yet"
            mark = ("✓ ", "green") if is_allowed else ("! ", "yellow")
            yield [
                "  ",
                mark,
                displayed,
                (f"  {one_line(reason, max(columns - display_width(displayed) - 6, 8))}", "dim"),
            ]

    def _print_explanation(self, call: dict[str, Any], decision: Decision, *, explain: bool) -> None:
        """Print what does not fit into the question: why it asks, or what it is about."""
        columns = self._prompt.screen.width - 4
        if not explain:
            tool_input = as_object(call.get("input")) or {}
            call_lines = self._call_lines(str(call.get("name")), tool_input, columns)
            self._renderer.print_block([["  ", *line] for line in call_lines], "all")
            return
        lines = [shorten_paths(decision.reason, self._get_cwd())]
        if decision.rule:
            lines.append(f"the rule that decided: {decision.rule}")
        else:
            lines.append("no rule allows it, and the mode does not either")
        lines += [f"this rule would allow it: {offer}" for offer in decision.offers]
        if decision.together:
            lines.append(f"these would together: {', '.join(decision.together)}")
        lines.append("rules that deny come first, then those that ask, then those that allow")
        self._renderer.print_block(
            [["    ", (part, "dim")] for line in lines for part in wrap(line, columns - 1)], "why"
        )

    # What is answered

    async def _choose_rule(self, decision: Decision) -> Approval | None:
        """Ask which rule is kept and where; both are seen before anything is saved."""
        rules = decision.offers[:1] or decision.together
        if len(decision.offers) > 1:
            rows = [
                Choice(str(index), rule, rule, _rule_reach(rule)) for index, rule in enumerate(decision.offers[:5], 1)
            ]
            reply = await self._prompt.ask(Dialog("Which rule?", (), rows))
            if reply is None:
                return None
            rules = (reply.value,)

        def body(columns: int) -> list[StyledLine]:
            return [["  ", (line, "bold")] for rule in rules for line in wrap(rule, columns - 2)]

        scope_choices = [Choice(key, label, scope, self._settings_file(scope)) for key, scope, label in _SCOPES]
        reply = await self._prompt.ask(Dialog("Allow this from now on, and where is it kept?", body, scope_choices))
        if reply is None:
            return None
        place = cast("RuleScope", reply.value)
        return Approval(granted=True, rules=rules, scope=place)

    def _settings_file(self, scope: RuleScope) -> str:
        """Return where a rule is kept, as short as it can be said."""
        return short_path(settings_path(scope, self._get_cwd(), self._env), self._get_cwd())

    def _absolute_path(self, path: str) -> str:
        return os.path.normpath(os.path.join(self._get_cwd(), os.path.expanduser(path)))

    async def _ask_rejection_reason(self) -> Approval | None:
        dialog = Dialog("No. What should it do instead?", (), (), text_hint="enter alone: just no")
        return self._reject(await self._prompt.ask(dialog))

    def _reject(self, reply: Reply | None) -> Approval:
        text = reply.text.strip() if reply is not None else ""
        if not text:
            return Approval(granted=False, message=_REJECTED_MESSAGE)
        self._renderer.print_user_text(text)
        return Approval(granted=False, message=f"{_REJECTED_MESSAGE} They said: {text}")

    async def _edit_command(self, call: dict[str, Any]) -> Approval | None:
        tool_input = as_object(call.get("input")) or {}
        dialog = Dialog("The command to run instead", (), (), text_hint="enter runs it, esc goes back")
        dialog.initial = str(tool_input.get("command", ""))
        reply = await self._prompt.ask(dialog)
        if reply is None or not reply.text.strip():
            return None
        return Approval(granted=True, tool_input={**tool_input, "command": reply.text})


_TEXT_HINT: Final = "say what it should do instead"


def _first_lines(lines: Iterable[StyledLine], max_lines: int) -> list[StyledLine]:
    """Return the first lines, and how many more there are."""
    all_lines = list(lines)
    if len(all_lines) <= max_lines:
        return all_lines
    return [*all_lines[: max_lines - 1], [(f"  … {len(all_lines) - max_lines + 1} more lines: d shows all", "dim")]]


def _choices(call: dict[str, Any], decision: Decision) -> list[Choice]:
    choices = [Choice("y", "yes, once", "once")]
    if decision.offers or decision.together:
        rule = ", ".join(decision.offers[:1] or decision.together)
        command = (as_object(call.get("input")) or {}).get("command")
        # A rule is seen in full before it holds; that of a long command is the command itself.
        is_exact = len(rule) > _MAX_RULE and rule == f"{SHELL}({command})"
        choices.append(Choice("s", f"this session: {'exactly this' if is_exact else rule}", "session"))
        choices.append(Choice("a", "always…", "always"))
    choices.append(Choice("n", "no", "no"))
    if call.get("name") == SHELL:
        choices.append(Choice("e", "edit the command", "edit"))
    if call.get("name") in TEXT_EDITING_TOOLS:
        choices.append(Choice("d", "the whole diff", "all"))
    choices.append(Choice("?", "why", "why"))
    return choices


def _action_verb(name: str) -> str:
    if name == SHELL:
        return "run"
    return "change" if name in TEXT_EDITING_TOOLS else "do this"


def _rule_reach(rule: str) -> str:
    return "and whatever begins so" if rule.endswith((":*)", "**)")) else "exactly this"


def command_parts(script: str) -> "list[Command]":
    """Return the commands that a script runs, as the guard reads it."""
    from steno.permissions.shell.parser import parse_script

    return list(parse_script(script).commands)


def _command_text(command: "Command") -> str:
    """Return a command as it runs: what it sets before, and where it reads and writes, with it."""
    assignments = [f"{item.name}={_quote_word(item.value)}" for item in command.assignments]
    files = [f"{'>' if each.writes else '<'} {_quote_word(each.target)}" for each in command.redirections]
    return " ".join([*assignments, *map(_quote_word, command.words), *files])


def _quote_word(word: "Word") -> str:
    if word.literal and word.tilde:
        # In quotes it would be a name like any other.
        tilde_prefix, slash, rest = word.text.partition("/")
        return tilde_prefix + slash + (shlex.quote(rest) if rest else "")
    return shlex.quote(word.text) if word.literal else word.text.replace(UNKNOWN_PART, "…")


def _all_words(command: "Command") -> "list[Word]":
    assigned = [item.value for item in command.assignments]
    return [*assigned, *command.words, *(each.target for each in command.redirections)]


def preview_patch(name: str, tool_input: dict[str, Any], cwd: str) -> list[Any]:
    """Return what a call would change in its file, as far as that can be said beforehand."""
    path = os.path.join(cwd, os.path.expanduser(str(tool_input.get("file_path", ""))))
    before = _read_text(path)
    if tool_facts(name).file_action == "write":
        return list(structured_patch(before, str(tool_input.get("content", ""))))
    edits = as_list(tool_input.get("edits")) or [tool_input]
    after = before
    for item in edits:
        edit = as_object(item) or {}
        old, new = str(edit.get("old_string", "")), str(edit.get("new_string", ""))
        count = -1 if edit.get("replace_all") is True else 1
        after = after.replace(old, new, count) if old else new
    return list(structured_patch(before, after))


def _read_text(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(_MAX_FILE_BYTES)
    except (OSError, ValueError):
        return ""


_PLAN_CHOICES: Final = (
    Choice("y", "yes, and edit freely", "acceptEdits"),
    Choice("m", "yes, but ask before each edit", "default"),
    Choice("n", "no, keep planning", "no"),
)
_ENTER_PLAN_CHOICES: Final = (Choice("y", "yes, plan first", "yes"), Choice("n", "no, go ahead", "no"))
_TRUST_EXPLANATION: Final = (
    "It brings files of its own: instructions for the model, settings, perhaps commands that run by "
    "themselves. Without trust they have no effect."
)


class ToolDialogs:
    """Answers what tools ask, with the user."""

    def __init__(self, prompt: "Prompt", renderer: "EventRenderer") -> None:
        self._prompt = prompt
        self._renderer = renderer
        self.on_waiting: Callable[[str], None] = lambda _words: None
        self.on_cancel: Callable[[], None] = lambda: None
        self.is_open = False

    async def __call__(self, kind: str, request: dict[str, Any]) -> dict[str, Any] | None:
        """Ask the user something; None when they leave it."""
        self.is_open = True
        try:
            if kind == "plan":
                self.on_waiting("a plan waits for you")
                return await self._ask_plan(request)
            if kind == "question":
                self.on_waiting("a question waits for you")
                return await self._ask_questions(request)
            return None
        finally:
            self.is_open = False

    async def _ask_plan(self, request: dict[str, Any]) -> dict[str, Any]:
        if request.get("step") == "enter":
            reply = await self._prompt.ask(Dialog("Plan first, before anything is changed?", (), _ENTER_PLAN_CHOICES))
            return {"approved": reply is not None and reply.value == "yes"}
        plan = request.get("plan")
        # A plan is as long as it is: it is printed, and only the question stays below.
        self._renderer.print_markdown(str(plan) if plan else "*The plan is empty.*")
        dialog = Dialog("Go on with this plan?", (), _PLAN_CHOICES, text_hint="say what should be different")
        reply = await self._prompt.ask(dialog)
        if reply is None:
            self.on_cancel()
            return {"approved": False}
        if reply.value in ("no", "words"):
            text = reply.text
            if reply.value == "no":
                text = await self._ask_text("What should be different?")
            if text.strip():
                self._renderer.print_user_text(text)
            return {"approved": False, "words": text}
        return {"approved": True, "mode": reply.value}

    async def _ask_text(self, title: str) -> str:
        reply = await self._prompt.ask(Dialog(title, (), (), text_hint="enter sends, esc leaves it"))
        return reply.text if reply is not None else ""

    async def _ask_questions(self, request: dict[str, Any]) -> dict[str, Any] | None:
        answers: dict[str, str | list[str]] = {}
        for item in as_list(request.get("questions")) or []:
            question = as_object(item) or {}
            reply = await self._ask_question(question)
            if reply is None:
                self.on_cancel()
                return {"answers": {}}
            answers[str(question.get("question"))] = reply
        self._renderer.print_block(
            [["    ", (f"{question} ", "dim"), _answer_text(answer)] for question, answer in answers.items()], "answers"
        )
        return {"answers": answers}

    async def _ask_question(self, question: dict[str, Any]) -> str | list[str] | None:
        options = [as_object(option) or {} for option in as_list(question.get("options")) or []]
        choices = [
            Choice(str(index), str(each.get("label")), str(each.get("label")), str(each.get("description")))
            for index, each in enumerate(options, 1)
        ]
        is_multiple = question.get("multiSelect") is True
        question_text = str(question.get("question"))
        dialog = Dialog(
            str(question.get("header") or "Question"),
            lambda columns: [[line] for line in wrap(question_text, columns)],
            choices,
            text_hint="an answer in your own words",
        )
        dialog.is_multiple = is_multiple
        reply = await self._prompt.ask(dialog)
        if reply is None:
            return None
        if reply.value == "words":
            return reply.text
        return list(reply.values) if is_multiple else reply.value


async def ask_trust_once(prompt: "Prompt", renderer: "EventRenderer", options: "AgentOptions") -> None:
    """Ask once about a folder that brings files which would have an effect."""
    from steno.permissions.project_trust import effective_files, trust_folder

    files = effective_files(options.cwd)
    if options.trusted or not files:
        return
    try:
        if await _ask_trust(prompt, options.cwd, files):
            trust_folder(options.cwd)
            options.trusted = True
    except StenoError as error:
        renderer.print_note(str(error))


def _answer_text(answer: str | list[str]) -> str:
    return answer if isinstance(answer, str) else ", ".join(answer)


async def _ask_trust(prompt: "Prompt", folder: str, files: list[str]) -> bool:
    """Ask whether a folder's own files may have an effect; what there is is named."""

    def body(columns: int) -> list[StyledLine]:
        folder_lines: list[StyledLine] = [["  ", (line, "bold")] for line in wrap(folder, columns - 2)]
        explanation: list[StyledLine] = [[line] for line in wrap(_TRUST_EXPLANATION, columns)]
        names: list[StyledLine] = [["  ", (line, "dim")] for line in wrap(", ".join(files), columns - 2)]
        return [*folder_lines, *explanation, *names]

    choices = (Choice("y", "yes, I trust it", "yes"), Choice("n", "not now", "no"))
    reply = await prompt.ask(Dialog("Do you trust this folder?", body, choices, is_framed=True))
    return reply is not None and reply.value == "yes"
