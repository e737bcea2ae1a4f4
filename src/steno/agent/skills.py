"""Skills: folders of know-how that the model opens when it needs them.

    ~/.claude/skills/<name>/SKILL.md, .claude/skills/<name>/SKILL.md

The model always sees a line for each (`listing`); with the tool `Skill` it gets the whole text,
read at that moment, as a message of its own: the loop takes it with `take_loaded`. A command of
the user's can be called the same way; where both have one name the skill counts.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from steno.agent.around_files import Note, read_text
from steno.agent.commands import Command, Expanded, Scope, Shell, expand, find_command, read_command
from steno.agent.frontmatter import split
from steno.format.tool_catalogue import SKILL
from steno.store.places import config_dir
from steno.tools.base import Spec, ToolFailure, ToolResult
from steno.tools.catalogue import own_spec
from steno.tools.context import OpenedSkill, ToolContext

__all__ = [
    "Skill",
    "SkillTool",
    "discover_skills",
    "listing",
    "open_skill",
    "skill_text",
    "take_loaded",
]

_FILE: Final = "SKILL.md"
_MOST_LINE: Final = 1536
_MOST_LISTING: Final = 16_000
_WORDS: Final = """\
Open a skill: a set of instructions for one kind of task, listed with its name and what it is for.

When a task fits a skill, open it before you start on the task; its text then follows as a message,
and you work by it. `skill` is a name from the list, `args` what the skill should know about the
task at hand. Do not open one that is not on the list, nor one whose text you already have.
"""


class Skill(msgspec.Struct, frozen=True, kw_only=True):
    """A skill, as far as it is known before it is opened."""

    name: str
    folder: str
    path: str
    scope: Scope = "user"
    description: str = ""
    when_to_use: str = ""
    argument_hint: str = ""
    allowed_tools: tuple[str, ...] = ()
    model: str = ""
    model_may_call: bool = True
    user_may_call: bool = True


def discover_skills(
    project: str, *, trusted: bool, env: Mapping[str, str] | None = None
) -> tuple[tuple[Skill, ...], tuple[Note, ...]]:
    """Return all skills by name; the user's own stands before the project's of that name."""
    notes: list[Note] = []
    places: list[tuple[Path, Scope]] = [(Path(config_dir(env), "skills"), "user")]
    if trusted:
        places.append((Path(project, ".claude", "skills"), "project"))
    found: dict[str, Skill] = {}
    for folder, scope in places:
        for path in _files(folder):
            text = read_text(path, notes)
            if text is not None:
                skill = _skill(text, path, scope, notes)
                found.setdefault(skill.name, skill)
    return tuple(found[name] for name in sorted(found)), tuple(notes)


def _files(folder: Path) -> list[Path]:
    try:
        return sorted(path for entry in folder.iterdir() if (path := entry / _FILE).is_file())
    except (OSError, ValueError):
        return []


def _skill(text: str, path: Path, scope: Scope, notes: list[Note]) -> Skill:
    command = read_command(text, path.parent.name, str(path), scope, notes)
    return Skill(
        # The folder's name, not the head's: it is what a person sees and types.
        name=command.name,
        folder=str(path.parent),
        path=str(path),
        scope=scope,
        description=command.description,
        when_to_use=split(text)[0].text("when_to_use"),
        argument_hint=command.argument_hint,
        allowed_tools=command.allowed_tools,
        model=command.model,
        model_may_call=command.model_may_call,
        user_may_call=command.user_may_call,
    )


def listing(skills: Iterable[Skill], commands: Iterable[Command] = ()) -> str:
    """Return a line for everything that the model may open; nothing when there is nothing.

    When there are too many, the longest descriptions give way first; no name is ever left out.
    """
    lines = _lines(skills, commands)
    most = _MOST_LINE
    while sum(len(line) for line in lines) > _MOST_LISTING and most > 1:
        most //= 2
        lines = [line if len(line) <= most else _cut(line, most) for line in lines]
    return "\n".join(lines)


def _lines(skills: Iterable[Skill], commands: Iterable[Command]) -> list[str]:
    known = {skill.name: skill for skill in skills}
    told = {
        name: " ".join(f"{skill.description} {skill.when_to_use}".split())
        for name, skill in known.items()
        if skill.model_may_call
    }
    for command in commands:
        if command.model_may_call and command.description and command.name not in known:
            told[command.name] = " ".join(command.description.split())
    return [f"- {name}: {_cut(words, _MOST_LINE)}" for name, words in sorted(told.items())]


def _cut(text: str, most: int) -> str:
    name = text.find(": ") + 2 if text.startswith("- ") else 0
    most = max(most, name + 1)
    return text if len(text) <= most else f"{text[: most - 1]}…"


async def open_skill(
    skill: Skill,
    arguments: str = "",
    *,
    shell: Shell | None = None,
    names: Mapping[str, str] | None = None,
) -> Expanded | None:
    """Read a skill and fill it in; None when its file is gone."""
    text = read_text(Path(skill.path), [])
    if text is None:
        return None
    body = read_command(text, skill.name, skill.path, skill.scope)
    known = {"CLAUDE_SKILL_DIR": skill.folder, **(names or {})}
    filled = await expand(body, arguments, shell=shell, names=known)
    words = f"Base directory for this skill: {skill.folder}\n\n{filled.text}"
    return Expanded(words, filled.mentions)


def skill_text(skill: Skill) -> str:
    """Return what a skill says as it is written; nothing when its file is gone."""
    text = read_text(Path(skill.path), [])
    if text is None:
        return ""
    body = read_command(text, skill.name, skill.path, skill.scope).body
    return f"Base directory for the skill {skill.name}: {skill.folder}\n\n{body}"


def take_loaded(context: ToolContext) -> tuple[OpenedSkill, ...]:
    """Return what calls have opened since the last time."""
    opened = tuple(context.opened_skills)
    context.opened_skills.clear()
    return opened


class SkillTool:
    """The tool that opens skills, and the commands that the model may call."""

    def __init__(
        self,
        skills: Iterable[Skill],
        commands: Iterable[Command] = (),
        shell: Shell | None = None,
    ) -> None:
        self._skills = {skill.name: skill for skill in skills}
        self._commands = tuple(commands)
        self._shell = shell
        self._spec = own_spec(
            SKILL,
            description=_WORDS,
            schema={
                "type": "object",
                "properties": {
                    "skill": {"type": "string", "description": "The name of the skill"},
                    "args": {"type": "string", "description": "What it should know"},
                },
                "required": ["skill"],
                "additionalProperties": False,
            },
        )

    @property
    def spec(self) -> Spec:
        """What it says of itself."""
        return self._spec

    async def run(self, tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        """Open a skill; its text waits for `take_loaded`."""
        name = str(tool_input.get("skill") or "").strip().removeprefix("/")
        arguments = str(tool_input.get("args") or "").strip()
        names = {"CLAUDE_SESSION_ID": context.session_id}
        self._shell = context.run_shell_line or self._shell
        skill = self._skills.get(name)
        if skill is not None:
            loaded = await self._of_skill(skill, arguments, names, call)
        else:
            loaded = await self._of_command(name, arguments, names, call)
        context.opened_skills.append(loaded)
        detail = {"success": True, "commandName": loaded.name}
        return ToolResult(f"Launching skill: {loaded.name}", detail)

    async def _of_skill(
        self, skill: Skill, arguments: str, names: dict[str, str], call: str
    ) -> OpenedSkill:
        if not skill.model_may_call:
            raise ToolFailure(f"Only the user may open the skill {skill.name}.")
        filled = await open_skill(skill, arguments, shell=self._shell, names=names)
        if filled is None:
            raise ToolFailure(f"The skill {skill.name} cannot be read: {skill.path} is gone.")
        return OpenedSkill(
            call=call,
            name=skill.name,
            text=filled.text,
            allowed_tools=skill.allowed_tools,
            model=skill.model,
            mentions=filled.mentions,
        )

    async def _of_command(
        self, name: str, arguments: str, names: dict[str, str], call: str
    ) -> OpenedSkill:
        command = find_command(self._commands, name)
        if command is None:
            known = sorted({*self._skills, *(command.name for command in self._commands)})
            told = f" There are: {', '.join(known)[:2000]}." if known else ""
            raise ToolFailure(f"There is no skill {name}.{told}")
        if not command.model_may_call:
            raise ToolFailure(f"Only the user may call /{command.name}.")
        filled = await expand(command, arguments, shell=self._shell, names=names)
        return OpenedSkill(
            call=call,
            name=command.name,
            text=filled.text,
            allowed_tools=command.allowed_tools,
            model=command.model,
            mentions=filled.mentions,
        )
