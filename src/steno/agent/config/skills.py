"""Custom slash commands and skills: Markdown files that expand to prompts.

    ~/.claude/commands/hello.md            /hello
    .claude/commands/web/page.md           /web:page
    ~/.claude/skills/<name>/SKILL.md, .claude/skills/<name>/SKILL.md

`$ARGUMENTS` is all text after the name, `$ARGUMENTS[0]` or `$0` its first word (quotes group words),
`$name` a word named in `arguments` of the front matter. Placeholders of missing arguments stay unchanged.
!`command` is replaced by its output if the command is allowed; neither output nor arguments are expanded
again.

The system prompt lists one line per skill; the `Skill` tool returns the full text, read at that moment,
as a separate message. Commands can be opened in the same way; a skill overrides a command with the same
name.
"""

import re
import shlex
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import msgspec

from steno.agent.config.project_files import ConfigNote, FrontMatter, list_markdown_files, read_text, split_front_matter
from steno.agent.context.system_prompt import import_mentions
from steno.format.tool_catalogue import SKILL
from steno.store.environment import config_dir
from steno.tools.context import OpenedSkill, ToolContext
from steno.tools.protocol import ToolFailure, ToolResult, ToolSpec, builtin_spec

PromptScope: TypeAlias = Literal["user", "project"]
RunShell: TypeAlias = Callable[[str], Awaitable[str]]
"""Runs a shell line if it is allowed; returns the text that replaces it."""

_INVOCATION: Final = re.compile(r"\s*/([\w:.-]+)(?:\s+(.*))?\s*$", re.DOTALL)
_ARGUMENT_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_INLINE_COMMAND: Final = re.compile(r"(?<!\S)!`([^`\n]+)`")


class SlashCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A custom slash command."""

    name: str
    body: str
    path: str = ""
    scope: PromptScope = "user"
    description: str = ""
    argument_hint: str = ""
    argument_names: tuple[str, ...] = ()
    allowed_tools: tuple[str, ...] = ()
    model: str = ""
    model_may_call: bool = True
    user_may_call: bool = True


class ExpandedPrompt(msgspec.Struct, frozen=True):
    """The expanded text of a command or skill."""

    text: str
    mentions: tuple[str, ...] = ()
    """The files that the text mentions with `@`, attached like files mentioned in a prompt."""


def discover_commands(
    project: str, *, trusted: bool, env: Mapping[str, str] | None = None
) -> tuple[tuple[SlashCommand, ...], tuple[ConfigNote, ...]]:
    """Return all commands, sorted by name; user commands override project commands."""
    notes: list[ConfigNote] = []
    folders: list[tuple[Path, PromptScope]] = [(Path(config_dir(env), "commands"), "user")]
    if trusted:
        folders.append((Path(project, ".claude", "commands"), "project"))
    commands: dict[str, SlashCommand] = {}
    for folder, scope in folders:
        for path in list_markdown_files(folder):
            text = read_text(path, notes)
            if text is not None:
                names = path.relative_to(folder).with_suffix("").parts
                command = parse_command(text, ":".join(names), str(path), scope, notes)
                commands.setdefault(command.name, command)
    return tuple(commands[name] for name in sorted(commands)), tuple(notes)


def parse_command(
    text: str, name: str, path: str = "", scope: PromptScope = "user", notes: list[ConfigNote] | None = None
) -> SlashCommand:
    """Parse the file of a command."""
    head, body = split_front_matter(text)
    if notes is not None:
        notes.extend(ConfigNote(path, message) for message in head.notes)
    return SlashCommand(
        name=name,
        body=body,
        path=path,
        scope=scope,
        description=head.text("description").strip() or _first_line(body),
        argument_hint=_argument_hint(head),
        argument_names=head.items("arguments") or (),
        allowed_tools=head.items("allowed-tools") or (),
        model=head.text("model"),
        model_may_call=not head.boolean("disable-model-invocation"),
        user_may_call=head.boolean("user-invocable", default=True),
    )


def _argument_hint(head: FrontMatter) -> str:
    # `[file]` parses as a list, but is meant as text.
    value = head.values.get("argument-hint", "")
    return f"[{', '.join(value)}]" if isinstance(value, tuple) else head.text("argument-hint")


def _first_line(body: str) -> str:
    line = next((line for line in body.split("\n") if line.strip()), "")
    return line.strip().lstrip("#").strip()[:200]


def parse_invocation(text: str) -> tuple[str, str] | None:
    """Return name and arguments of a slash command; None for other prompts."""
    match = _INVOCATION.match(text)
    return None if match is None else (match[1], (match[2] or "").strip())


def find_command(commands: Iterable[SlashCommand], name: str) -> SlashCommand | None:
    """Return a command by name, or by the last part of its name if that is unique."""
    commands = tuple(commands)
    for command in commands:
        if command.name == name:
            return command
    matches = [command for command in commands if command.name.rsplit(":", 1)[-1] == name]
    return matches[0] if len(matches) == 1 else None


def invocation_text(name: str, arguments: str = "") -> str:
    """Return the recorded text of a slash command."""
    text = f"<command-message>{name}</command-message>\n<command-name>/{name}</command-name>"
    return f"{text}\n<command-args>{arguments}</command-args>" if arguments else text


async def expand_prompt(
    command: SlashCommand, arguments: str, *, shell: RunShell | None = None, variables: Mapping[str, str] | None = None
) -> ExpandedPrompt:
    """Expand the arguments and shell lines of a command.

    Args:
        command: The command to expand.
        arguments: The text after its name.
        shell: Runs its shell lines; without it they are replaced by a note.
        variables: Values for `${NAME}`, such as `CLAUDE_SESSION_ID`.
    """
    substitute = _ArgumentSubstitution(command, arguments, variables or {})
    parts: list[str] = []
    at = 0
    for start, end, command_line in _embedded_commands(command.body):
        parts.append(substitute(command.body[at:start]))
        parts.append("[not run]" if shell is None else (await shell(substitute(command_line))).rstrip("\n"))
        at = end
    parts.append(substitute(command.body[at:]))
    text = "".join(parts)
    if arguments and not substitute.used:
        text = f"{text}\n\nARGUMENTS: {arguments}"
    # Mentions in the output of shell lines are ignored.
    return ExpandedPrompt(text, import_mentions("\n".join([*parts[::2], arguments])))


def _embedded_commands(body: str) -> list[tuple[int, int, str]]:
    """Return start, end and text of all shell lines: after `!`, or in a block that starts with "```!"."""
    commands: list[tuple[int, int, str]] = []
    block_start: tuple[int, int] | None = None
    offset = 0
    for line in body.split("\n"):
        end = offset + len(line)
        if block_start is not None:
            if line.rstrip() == "```":
                commands.append((block_start[0], end, body[block_start[1] : offset].rstrip("\n")))
                block_start = None
        elif line.rstrip() == "```!":
            block_start = (offset, end + 1)
        else:
            commands += [
                (offset + match.start(), offset + match.end(), match[1]) for match in _INLINE_COMMAND.finditer(line)
            ]
        offset = end + 1
    return commands


class _ArgumentSubstitution:
    """Replaces the placeholders of arguments and variables in a text."""

    def __init__(self, command: SlashCommand, arguments: str, variables: Mapping[str, str]) -> None:
        self._arguments = arguments
        self._argument_list = _split_arguments(arguments)
        self._argument_indexes = {
            name: index for index, name in enumerate(command.argument_names) if _ARGUMENT_NAME.match(name)
        }
        self._variables = variables
        name_alternatives = "".join(f"|{re.escape(name)}\\b" for name in sorted(self._argument_indexes, reverse=True))
        self._pattern = re.compile(
            rf"\$ARGUMENTS\[(\d{{1,4}})\]|\$(ARGUMENTS)\b|\$(\d{{1,4}})\b|\$\{{(\w+)\}}|\$((?!){name_alternatives})"
        )
        self.used = False

    def __call__(self, text: str) -> str:
        return self._pattern.sub(self._value, text)

    def _value(self, match: re.Match[str]) -> str:
        if match[4] is not None:
            return self._variables.get(match[4], match[0])
        self.used = True
        if match[2]:
            return self._arguments
        index = self._argument_indexes.get(match[5], 0) if match[5] else int(match[1] or match[3])
        return self._argument_list[index] if index < len(self._argument_list) else match[0]


def _split_arguments(text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


_SKILL_FILE: Final = "SKILL.md"
_MAX_LINE: Final = 1536
_MAX_LISTING: Final = 16_000
_TOOL_DESCRIPTION: Final = """\
Opens a skill: instructions for one type of task. Available skills are listed with name and description.

If a task matches a skill, open the skill before you start. Its text follows as a message; follow it.
`skill` is a name from the list, `args` are details about the current task. Do not open skills that are not
listed, or whose text you already have.
"""


class Skill(msgspec.Struct, frozen=True, kw_only=True):
    """A skill without its text, which is read when the skill is opened."""

    name: str
    folder: str
    path: str
    scope: PromptScope = "user"
    description: str = ""
    when_to_use: str = ""
    argument_hint: str = ""
    allowed_tools: tuple[str, ...] = ()
    model: str = ""
    model_may_call: bool = True
    user_may_call: bool = True


def discover_skills(
    project: str, *, trusted: bool, env: Mapping[str, str] | None = None
) -> tuple[tuple[Skill, ...], tuple[ConfigNote, ...]]:
    """Return all skills, sorted by name; user skills override project skills."""
    notes: list[ConfigNote] = []
    folders: list[tuple[Path, PromptScope]] = [(Path(config_dir(env), "skills"), "user")]
    if trusted:
        folders.append((Path(project, ".claude", "skills"), "project"))
    skills: dict[str, Skill] = {}
    for folder, scope in folders:
        for path in _skill_files(folder):
            text = read_text(path, notes)
            if text is not None:
                skill = _parse_skill(text, path, scope, notes)
                skills.setdefault(skill.name, skill)
    return tuple(skills[name] for name in sorted(skills)), tuple(notes)


def _skill_files(folder: Path) -> list[Path]:
    try:
        return sorted(path for entry in folder.iterdir() if (path := entry / _SKILL_FILE).is_file())
    except (OSError, ValueError):
        return []


def _parse_skill(text: str, path: Path, scope: PromptScope, notes: list[ConfigNote]) -> Skill:
    command = parse_command(text, path.parent.name, str(path), scope, notes)
    return Skill(
        # The name of the directory, not of the front matter: it is what the user sees and types.
        name=command.name,
        folder=str(path.parent),
        path=str(path),
        scope=scope,
        description=command.description,
        when_to_use=split_front_matter(text)[0].text("when_to_use"),
        argument_hint=command.argument_hint,
        allowed_tools=command.allowed_tools,
        model=command.model,
        model_may_call=command.model_may_call,
        user_may_call=command.user_may_call,
    )


def list_skills(skills: Iterable[Skill], commands: Iterable[SlashCommand] = ()) -> str:
    """Return one line per skill and command that the model may open; empty if there are none.

    If the list is too long, the longest descriptions are truncated first; no name is omitted.
    """
    lines = _listing_lines(skills, commands)
    max_line = _MAX_LINE
    while sum(len(line) for line in lines) > _MAX_LISTING and max_line > 1:
        max_line //= 2
        lines = [line if len(line) <= max_line else _truncate_line(line, max_line) for line in lines]
    return "\n".join(lines)


def _listing_lines(skills: Iterable[Skill], commands: Iterable[SlashCommand]) -> list[str]:
    skills_by_name = {skill.name: skill for skill in skills}
    descriptions = {
        name: " ".join(f"{skill.description} {skill.when_to_use}".split())
        for name, skill in skills_by_name.items()
        if skill.model_may_call
    }
    for command in commands:
        if command.model_may_call and command.description and command.name not in skills_by_name:
            descriptions[command.name] = " ".join(command.description.split())
    return [f"- {name}: {_truncate_line(description, _MAX_LINE)}" for name, description in sorted(descriptions.items())]


def _truncate_line(text: str, max_characters: int) -> str:
    prefix_length = text.find(": ") + 2 if text.startswith("- ") else 0
    max_characters = max(max_characters, prefix_length + 1)
    return text if len(text) <= max_characters else f"{text[: max_characters - 1]}…"


async def expand_skill(
    skill: Skill, arguments: str = "", *, run_shell: RunShell | None = None, variables: Mapping[str, str] | None = None
) -> ExpandedPrompt | None:
    """Read and expand a skill; None if its file no longer exists."""
    text = read_text(Path(skill.path), [])
    if text is None:
        return None
    body = parse_command(text, skill.name, skill.path, skill.scope)
    skill_variables = {"CLAUDE_SKILL_DIR": skill.folder, **(variables or {})}
    expanded = await expand_prompt(body, arguments, shell=run_shell, variables=skill_variables)
    prompt_text = f"Base directory for this skill: {skill.folder}\n\n{expanded.text}"
    return ExpandedPrompt(prompt_text, expanded.mentions)


def read_skill_text(skill: Skill) -> str:
    """Return the unexpanded text of a skill; empty if its file no longer exists."""
    text = read_text(Path(skill.path), [])
    if text is None:
        return ""
    body = parse_command(text, skill.name, skill.path, skill.scope).body
    return f"Base directory for the skill {skill.name}: {skill.folder}\n\n{body}"


def take_opened_skills(context: ToolContext) -> tuple[OpenedSkill, ...]:
    """Return the skills opened since the last call."""
    opened = tuple(context.opened_skills)
    context.opened_skills.clear()
    return opened


class SkillTool:
    """The Skill tool: opens skills and custom commands."""

    def __init__(
        self, skills: Iterable[Skill], commands: Iterable[SlashCommand] = (), run_shell: RunShell | None = None
    ) -> None:
        self._skills = {skill.name: skill for skill in skills}
        self._commands = tuple(commands)
        self._run_shell = run_shell
        self._spec = builtin_spec(
            SKILL,
            description=_TOOL_DESCRIPTION,
            schema={
                "type": "object",
                "properties": {
                    "skill": {"type": "string", "description": "Name of the skill"},
                    "args": {"type": "string", "description": "Details about the current task"},
                },
                "required": ["skill"],
                "additionalProperties": False,
            },
        )

    @property
    def spec(self) -> ToolSpec:
        """The declaration of the tool."""
        return self._spec

    async def run(self, tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        """Open a skill; its text is returned by `take_opened_skills`."""
        name = str(tool_input.get("skill") or "").strip().removeprefix("/")
        arguments = str(tool_input.get("args") or "").strip()
        variables = {"CLAUDE_SESSION_ID": context.session_id}
        self._run_shell = context.run_shell_line or self._run_shell
        skill = self._skills.get(name)
        if skill is not None:
            opened = await self._open_skill(skill, arguments, variables, call)
        else:
            opened = await self._open_command(name, arguments, variables, call)
        context.opened_skills.append(opened)
        detail = {"success": True, "commandName": opened.name}
        return ToolResult(f"Launching skill: {opened.name}", detail)

    async def _open_skill(self, skill: Skill, arguments: str, variables: dict[str, str], call: str) -> OpenedSkill:
        if not skill.model_may_call:
            raise ToolFailure(f"The skill {skill.name} can only be opened by the user.")
        expanded = await expand_skill(skill, arguments, run_shell=self._run_shell, variables=variables)
        if expanded is None:
            raise ToolFailure(f"Cannot read the skill {skill.name}: {skill.path} does not exist.")
        return OpenedSkill(
            call=call,
            name=skill.name,
            text=expanded.text,
            allowed_tools=skill.allowed_tools,
            model=skill.model,
            mentions=expanded.mentions,
        )

    async def _open_command(self, name: str, arguments: str, variables: dict[str, str], call: str) -> OpenedSkill:
        command = find_command(self._commands, name)
        if command is None:
            known_names = sorted({*self._skills, *(command.name for command in self._commands)})
            known_text = f" Available: {', '.join(known_names)[:2000]}." if known_names else ""
            raise ToolFailure(f"Unknown skill: {name}.{known_text}")
        if not command.model_may_call:
            raise ToolFailure(f"/{command.name} can only be run by the user.")
        expanded = await expand_prompt(command, arguments, shell=self._run_shell, variables=variables)
        return OpenedSkill(
            call=call,
            name=command.name,
            text=expanded.text,
            allowed_tools=command.allowed_tools,
            model=command.model,
            mentions=expanded.mentions,
        )
