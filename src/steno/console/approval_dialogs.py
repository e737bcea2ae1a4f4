"""Dialogs for permissions, plans, questions from tools, and trust."""

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
    """Return a path relative to the working directory, or to home as `~`.

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
    """Shorten every path in a sentence.

    >>> shorten_paths("changes /home/ada/tide/a.py", "/home/ada/tide")
    'changes a.py'
    """
    shortened = (short_path(word, cwd) if word.startswith(os.sep) else word for word in text.split(" "))
    return " ".join(shortened)


def _base_folders(cwd: str) -> list[tuple[str, str]]:
    """Return pairs of a base directory and the prefix that replaces it, the working directory before home."""
    home = os.path.expanduser("~")
    candidates = [(cwd, ""), (os.path.realpath(cwd), ""), (home, "~"), (os.path.realpath(home), "~")]
    return [(folder, prefix) for folder, prefix in candidates if folder not in ("", os.sep, "~")]


_MAX_LINES: Final = 13
_MAX_PARTS: Final = 8
_MAX_RULE: Final = 40
_MAX_FILE_BYTES: Final = 1 << 20
_REJECTED_MESSAGE: Final = "The user rejected this tool call."
_SCOPES: Final[tuple[tuple[str, RuleScope, str], ...]] = (
    ("p", "local", "This project, only you"),
    ("t", "project", "This project, shared"),
    ("u", "user", "All your projects"),
)


class PermissionDialogs:
    """Asks the user to approve tool calls."""

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
        """Ask the user to approve a tool call."""
        self.is_open = True
        self.on_waiting(f"{call_label(call)} needs your approval")
        try:
            return await self._ask(call, decision)
        finally:
            self.is_open = False

    async def _ask(self, call: dict[str, Any], decision: Decision) -> Approval:
        # The body is drawn in every frame; permission checks and diffs are computed once per width.
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

    # Body

    def _dialog_body(self, call: dict[str, Any], decision: Decision, columns: int) -> Iterator[StyledLine]:
        tool_input = as_object(call.get("input")) or {}
        name = str(call.get("name"))
        yield [f"{one_line(call_label(call), columns - 20)}: {_action_question(name)}"]
        yield from _first_lines(self._call_lines(name, tool_input, columns), _MAX_LINES)
        for line in wrap(f"Needs approval: {shorten_paths(decision.reason, self._get_cwd())}", columns):
            yield [(line, "dim")]
        parts = command_parts(str(tool_input.get("command", ""))) if name == SHELL else []
        if len(parts) > 1:
            yield [("Commands:", "dim")]
            yield from _first_lines(self._part_lines(parts, columns), _MAX_PARTS)

    def _call_lines(self, name: str, tool_input: dict[str, Any], columns: int) -> Iterator[StyledLine]:
        """Yield the full effect of a call: its command, its diff or its input."""
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
            reason = shorten_paths(decision.reason, self._get_cwd()) if decision else "depends on a variable"
            mark = ("✓ ", "green") if is_allowed else ("! ", "yellow")
            yield [
                "  ",
                mark,
                displayed,
                (f"  {one_line(reason, max(columns - display_width(displayed) - 6, 8))}", "dim"),
            ]

    def _print_explanation(self, call: dict[str, Any], decision: Decision, *, explain: bool) -> None:
        """Print the reason for asking, or the whole call."""
        columns = self._prompt.screen.width - 4
        if not explain:
            tool_input = as_object(call.get("input")) or {}
            call_lines = self._call_lines(str(call.get("name")), tool_input, columns)
            self._renderer.print_block([["  ", *line] for line in call_lines], "all")
            return
        lines = [f"Reason: {shorten_paths(decision.reason, self._get_cwd())}"]
        if decision.rule:
            lines.append(f"Matching rule: {decision.rule}")
        else:
            lines.append("Neither a rule nor the permission mode allows this call")
        lines += [f"A rule that would allow it: {offer}" for offer in decision.offers]
        if decision.together:
            lines.append(f"Rules that together would allow it: {', '.join(decision.together)}")
        lines.append("Order of precedence: deny, ask, allow")
        self._renderer.print_block(
            [["    ", (part, "dim")] for line in lines for part in wrap(line, columns - 1)], "why"
        )

    # Answers

    async def _choose_rule(self, decision: Decision) -> Approval | None:
        """Ask which rule to save and in which settings file."""
        rules = decision.offers[:1] or decision.together
        if len(decision.offers) > 1:
            rows = [
                Choice(str(index), rule, rule, _rule_reach(rule)) for index, rule in enumerate(decision.offers[:5], 1)
            ]
            reply = await self._prompt.ask(Dialog("Choose a rule", (), rows))
            if reply is None:
                return None
            rules = (reply.value,)

        def body(columns: int) -> list[StyledLine]:
            return [["  ", (line, "bold")] for rule in rules for line in wrap(rule, columns - 2)]

        scope_choices = [Choice(key, label, scope, self._settings_file(scope)) for key, scope, label in _SCOPES]
        reply = await self._prompt.ask(Dialog("Save this rule in", body, scope_choices))
        if reply is None:
            return None
        scope = cast("RuleScope", reply.value)
        return Approval(granted=True, rules=rules, scope=scope)

    def _settings_file(self, scope: RuleScope) -> str:
        """Return the shortened path of the settings file of a scope."""
        return short_path(settings_path(scope, self._get_cwd(), self._env), self._get_cwd())

    def _absolute_path(self, path: str) -> str:
        return os.path.normpath(os.path.join(self._get_cwd(), os.path.expanduser(path)))

    async def _ask_rejection_reason(self) -> Approval | None:
        dialog = Dialog("What should be done instead?", (), (), text_hint="enter to reject · esc to skip")
        return self._reject(await self._prompt.ask(dialog))

    def _reject(self, reply: Reply | None) -> Approval:
        text = reply.text.strip() if reply is not None else ""
        if not text:
            return Approval(granted=False, message=_REJECTED_MESSAGE)
        self._renderer.print_user_text(text)
        return Approval(granted=False, message=f"{_REJECTED_MESSAGE} Feedback: {text}")

    async def _edit_command(self, call: dict[str, Any]) -> Approval | None:
        tool_input = as_object(call.get("input")) or {}
        dialog = Dialog("Edit command", (), (), text_hint="enter to run · esc to go back")
        dialog.initial = str(tool_input.get("command", ""))
        reply = await self._prompt.ask(dialog)
        if reply is None or not reply.text.strip():
            return None
        return Approval(granted=True, tool_input={**tool_input, "command": reply.text})


_TEXT_HINT: Final = "reject with feedback"


def _first_lines(lines: Iterable[StyledLine], max_lines: int) -> list[StyledLine]:
    """Return the first lines, and a last line that counts the hidden ones."""
    all_lines = list(lines)
    if len(all_lines) <= max_lines:
        return all_lines
    return [*all_lines[: max_lines - 1], [(f"  … {len(all_lines) - max_lines + 1} more lines · d to show all", "dim")]]


def _choices(call: dict[str, Any], decision: Decision) -> list[Choice]:
    choices = [Choice("y", "Yes", "once")]
    if decision.offers or decision.together:
        rule = ", ".join(decision.offers[:1] or decision.together)
        command = (as_object(call.get("input")) or {}).get("command")
        # Show a rule in full before the user accepts it; for a long command the rule equals the command.
        is_exact = len(rule) > _MAX_RULE and rule == f"{SHELL}({command})"
        choices.append(Choice("s", "Yes, for this session" if is_exact else f"Yes, this session: {rule}", "session"))
        choices.append(Choice("a", "Always…", "always"))
    choices.append(Choice("n", "No", "no"))
    if call.get("name") == SHELL:
        choices.append(Choice("e", "Edit command", "edit"))
    if call.get("name") in TEXT_EDITING_TOOLS:
        choices.append(Choice("d", "Show full diff", "all"))
    choices.append(Choice("?", "Explain", "why"))
    return choices


def _action_question(name: str) -> str:
    if name == SHELL:
        return "run this command?"
    return "change this file?" if name in TEXT_EDITING_TOOLS else "proceed?"


def _rule_reach(rule: str) -> str:
    return "prefix match" if rule.endswith((":*)", "**)")) else "exact match"


def command_parts(script: str) -> "list[Command]":
    """Return the commands in a script, as the permission checker parses them."""
    from steno.permissions.shell.parser import parse_script

    return list(parse_script(script).commands)


def _command_text(command: "Command") -> str:
    """Return the source text of a command, with its assignments and redirections."""
    assignments = [f"{item.name}={_quote_word(item.value)}" for item in command.assignments]
    files = [f"{'>' if each.writes else '<'} {_quote_word(each.target)}" for each in command.redirections]
    return " ".join([*assignments, *map(_quote_word, command.words), *files])


def _quote_word(word: "Word") -> str:
    if word.literal and word.tilde:
        # A quoted tilde would be a literal file name.
        tilde_prefix, slash, rest = word.text.partition("/")
        return tilde_prefix + slash + (shlex.quote(rest) if rest else "")
    return shlex.quote(word.text) if word.literal else word.text.replace(UNKNOWN_PART, "…")


def _all_words(command: "Command") -> "list[Word]":
    assigned = [item.value for item in command.assignments]
    return [*assigned, *command.words, *(each.target for each in command.redirections)]


def preview_patch(name: str, tool_input: dict[str, Any], cwd: str) -> list[Any]:
    """Return the patch that an editing call would apply to its file."""
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
    Choice("y", "Yes, accept edits", "acceptEdits"),
    Choice("m", "Yes, approve each edit", "default"),
    Choice("n", "No, keep planning", "no"),
)
_ENTER_PLAN_CHOICES: Final = (Choice("y", "Yes, enter plan mode", "yes"), Choice("n", "No, start now", "no"))
_TRUST_EXPLANATION: Final = (
    "This directory contains instructions for the model or settings that can run commands. "
    "They are ignored until you trust it."
)


class ToolDialogs:
    """Asks the user the questions of tools."""

    def __init__(self, prompt: "Prompt", renderer: "EventRenderer") -> None:
        self._prompt = prompt
        self._renderer = renderer
        self.on_waiting: Callable[[str], None] = lambda _words: None
        self.on_cancel: Callable[[], None] = lambda: None
        self.is_open = False

    async def __call__(self, kind: str, request: dict[str, Any]) -> dict[str, Any] | None:
        """Ask the user; return None if they dismiss the dialog."""
        self.is_open = True
        try:
            if kind == "plan":
                self.on_waiting("a plan needs your approval")
                return await self._ask_plan(request)
            if kind == "question":
                self.on_waiting("a question needs your answer")
                return await self._ask_questions(request)
            return None
        finally:
            self.is_open = False

    async def _ask_plan(self, request: dict[str, Any]) -> dict[str, Any]:
        if request.get("step") == "enter":
            reply = await self._prompt.ask(Dialog("Enter plan mode?", (), _ENTER_PLAN_CHOICES))
            return {"approved": reply is not None and reply.value == "yes"}
        plan = request.get("plan")
        # Plans can be long: print the plan, and keep only the question in the dialog.
        self._renderer.print_markdown(str(plan) if plan else "*The plan is empty.*")
        dialog = Dialog("Approve this plan?", (), _PLAN_CHOICES, text_hint="request changes")
        reply = await self._prompt.ask(dialog)
        if reply is None:
            self.on_cancel()
            return {"approved": False}
        if reply.value in ("no", "words"):
            text = reply.text
            if reply.value == "no":
                text = await self._ask_text("What should change?")
            if text.strip():
                self._renderer.print_user_text(text)
            return {"approved": False, "words": text}
        return {"approved": True, "mode": reply.value}

    async def _ask_text(self, title: str) -> str:
        reply = await self._prompt.ask(Dialog(title, (), (), text_hint="enter to send · esc to skip"))
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
            text_hint="type an answer",
        )
        dialog.is_multiple = is_multiple
        reply = await self._prompt.ask(dialog)
        if reply is None:
            return None
        if reply.value == "words":
            return reply.text
        return list(reply.values) if is_multiple else reply.value


async def ask_trust_once(prompt: "Prompt", renderer: "EventRenderer", options: "AgentOptions") -> None:
    """Ask once whether to trust a directory whose files can have an effect."""
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
    """Ask whether to trust a directory; list the files in question."""

    def body(columns: int) -> list[StyledLine]:
        folder_lines: list[StyledLine] = [["  ", (line, "bold")] for line in wrap(folder, columns - 2)]
        explanation: list[StyledLine] = [[line] for line in wrap(_TRUST_EXPLANATION, columns)]
        names: list[StyledLine] = [["  ", (line, "dim")] for line in wrap(", ".join(files), columns - 2)]
        return [*folder_lines, *explanation, *names]

    choices = (Choice("y", "Yes, trust it", "yes"), Choice("n", "Not now", "no"))
    reply = await prompt.ask(Dialog("Trust this directory?", body, choices, is_framed=True))
    return reply is not None and reply.value == "yes"
