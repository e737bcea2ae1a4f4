"""Sub-agents: what kinds there are, what each may use, and how it is told to work.

Those in `.claude/agents/*.md` of the project and the user, those that a command line gives as
JSON, and two of steno's own. Of two with one name the nearest counts: command line, project, user.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, Literal, TypeAlias

import msgspec

from steno.agent.around_files import (
    Note,
    markdown_files,
    parse_json,
    read_text,
    strings,
    text_in,
)
from steno.agent.frontmatter import split
from steno.format.tool_catalogue import AGENT_TOOLS
from steno.format.values import as_object
from steno.store.places import config_dir

__all__ = [
    "BUILT_IN",
    "Definition",
    "Origin",
    "agent_listing",
    "definitions_of_json",
    "discover_definitions",
    "read_definition",
]

Origin: TypeAlias = Literal["built-in", "flags", "project", "user"]


class Definition(msgspec.Struct, frozen=True, kw_only=True):
    """A kind of sub-agent."""

    name: str
    description: str
    prompt: str
    tools: tuple[str, ...] | None = None
    """The tools that it may use; None for all that there are."""
    without: tuple[str, ...] = ()
    """Tools that it may not use (`disallowedTools`)."""
    model: str = ""
    """A model's name; empty or `inherit` for that of its parent."""
    permission_mode: str = ""
    max_turns: int = 0
    """0 for no limit."""
    background: bool = False
    skills: tuple[str, ...] = ()
    color: str = ""
    origin: Origin = "user"
    path: str = ""

    def may_use(self, tool: str) -> bool:
        """Return whether a tool is among its own; `mcp__server` stands for all of a server."""
        if _named(tool, self.without):
            return False
        return self.tools is None or _named(tool, self.tools)


def _named(tool: str, names: tuple[str, ...]) -> bool:
    for name in names:
        bare = name.split("(", 1)[0].strip()
        if bare in {tool, "*"} or {bare, tool} <= AGENT_TOOLS:
            return True
        if bare.startswith("mcp__") and tool.startswith(f"{bare.removesuffix('__*')}__"):
            return True
    return False


_GENERAL: Final = """\
You work on one task that another agent gave you. Do all of it and nothing beyond it.

Look before you act: search widely when you do not know where something is, read the file when you
do. Try a second way when the first finds nothing. Change existing files rather than adding new
ones, and write no documents that nobody asked for.

Your last message is all that the other agent will read of your work. Say in it what you found or
did, with absolute paths and the few lines of code that matter, and what you could not do and why.
"""
_EXPLORE: Final = """\
You find things in a code base for another agent. You only look: never create, change, move or
delete anything, neither with a tool nor with a command, not even in a temporary folder.

Start broad with file names and patterns, then read what looks right. Make independent searches at
once, side by side. Use the shell only to look around (list, show, log, diff).

Be as thorough as the task asks for, and quick. Answer with what you found: absolute paths, line
numbers, the lines that matter, and where you looked in vain.
"""

BUILT_IN: Final = (
    Definition(
        name="general-purpose",
        description=(
            "Works on a task of several steps by itself: searching when the first look may not"
            " find it, research over many files, changes that can be described completely. It has"
            " all tools."
        ),
        prompt=_GENERAL,
        origin="built-in",
    ),
    Definition(
        name="Explore",
        description=(
            "Looks around in a code base and changes nothing: finds files, names and the way"
            " things hang together. Say how thorough it should be: quick, medium or very thorough."
        ),
        prompt=_EXPLORE,
        tools=("Read", "Glob", "Grep", "Bash", "WebFetch", "WebSearch"),
        origin="built-in",
    ),
)


def discover_definitions(
    project: str,
    *,
    trusted: bool,
    flags: str = "",
    env: Mapping[str, str] | None = None,
) -> tuple[tuple[Definition, ...], tuple[Note, ...]]:
    """Return every kind of sub-agent by name; `flags` is what `--agents` gave."""
    notes: list[Note] = []
    found: dict[str, Definition] = {}
    layers: list[Iterable[Definition]] = [definitions_of_json(flags, notes)]
    if trusted:
        layers.append(_of_folder(Path(project, ".claude", "agents"), "project", notes))
    layers.append(_of_folder(Path(config_dir(env), "agents"), "user", notes))
    layers.append(BUILT_IN)
    for layer in layers:
        for definition in layer:
            found.setdefault(definition.name, definition)
    return tuple(found[name] for name in sorted(found)), tuple(notes)


def _of_folder(folder: Path, origin: Origin, notes: list[Note]) -> list[Definition]:
    found: list[Definition] = []
    for path in markdown_files(folder):
        text = read_text(path, notes)
        definition = read_definition(text, str(path), origin, notes) if text else None
        if definition is not None:
            found.append(definition)
    return found


def read_definition(text: str, path: str, origin: Origin, notes: list[Note]) -> Definition | None:
    """Read a sub-agent's file; one without a name or a purpose is noted and left out."""
    head, body = split(text)
    notes.extend(Note(path, words) for words in head.notes)
    name, description = head.text("name").strip(), head.text("description").strip()
    if not name or not description:
        notes.append(Note(path, "left out: a sub-agent needs a `name` and a `description`"))
        return None
    turns = head.text("maxTurns").strip()
    mode = head.text("permissionMode")
    if mode == "bypassPermissions" and origin == "project":
        notes.append(Note(path, "`permissionMode` is left out: a project cannot lift all limits"))
        mode = ""
    return Definition(
        name=name,
        description=description,
        prompt=body.strip(),
        tools=head.words("tools"),
        without=head.words("disallowedTools") or (),
        model=head.text("model").strip(),
        permission_mode=mode,
        max_turns=int(turns) if turns.isdecimal() and turns.isascii() else 0,
        background=head.flag("background"),
        skills=head.words("skills") or (),
        color=head.text("color"),
        origin=origin,
        path=path,
    )


def definitions_of_json(text: str, notes: list[Note]) -> list[Definition]:
    """Read what `--agents` gives: an object of names, each with description, prompt, tools, model."""
    found: list[Definition] = []
    for name, value in parse_json(text, "--agents", notes).items():
        given = as_object(value) or {}
        description, prompt = text_in(given, "description"), text_in(given, "prompt")
        if not description or not prompt:
            words = f"`{name}` is left out: it needs a `description` and a `prompt`"
            notes.append(Note("--agents", words))
            continue
        turns = given.get("maxTurns")
        found.append(
            Definition(
                name=name,
                description=description,
                prompt=prompt,
                tools=strings(given["tools"]) if "tools" in given else None,
                without=strings(given.get("disallowedTools")),
                model=text_in(given, "model"),
                permission_mode=text_in(given, "permissionMode"),
                max_turns=turns if isinstance(turns, int) and turns > 0 else 0,
                background=given.get("background") is True,
                skills=strings(given.get("skills")),
                origin="flags",
            )
        )
    return found


def agent_listing(definitions: Iterable[Definition]) -> str:
    """Return a line for each kind, for the description of the tool that starts them."""
    lines: list[str] = []
    for definition in definitions:
        tools = "all tools" if definition.tools is None else ", ".join(definition.tools)
        if definition.without:
            tools = f"{tools}, but not {', '.join(definition.without)}"
        words = " ".join(definition.description.split())
        lines.append(f"- {definition.name}: {words} (Tools: {tools or 'none'})")
    return "\n".join(lines)
