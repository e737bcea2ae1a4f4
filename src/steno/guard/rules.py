"""Permission rules as Claude Code writes them: `Bash(npm run test:*)`, `Read(./secrets/**)`.

rules = gather(Layer(allow=("Bash(git status)",), deny=("Read(.env)",)), root=…, cwd=…)
rules.problems                  # what could not be read; such deny and ask rules ask for all
"""

import re
from collections.abc import Iterable
from typing import Final, Literal, TypeAlias

import msgspec

from steno.format.tool_catalogue import AGENT, SHELL, SKILL, rule_name, tools_where
from steno.guard.patterns import PathPattern, TextPattern, path_pattern, text_pattern

__all__ = ["EDITS", "READS", "Kind", "Layer", "Rule", "Rules", "gather", "tool_of"]

Kind: TypeAlias = Literal["allow", "ask", "deny"]
_FORM: Final = re.compile(
    r"(?P<tool>[A-Za-z_][\w.*-]*)(?:\((?P<inside>.*)\))?", re.DOTALL | re.ASCII
)
_START: Final = re.compile(r"\s*([A-Za-z_][\w-]*)", re.ASCII)
EDITS: Final = frozenset(tools_where(lambda facts: facts.permission == "edit"))
READS: Final = frozenset(tools_where(lambda facts: facts.permission == "read"))
_NAMED: Final = frozenset({AGENT, SKILL})


class Layer(msgspec.Struct, frozen=True):
    """The rules of one settings file or flag."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()


class Rule(msgspec.Struct, frozen=True):
    """One rule, read."""

    text: str
    """As it is written in the settings."""
    tool: str
    """The tool it is about; `*` for all."""
    name: str = ""
    """The domain, agent, skill or tool of a server it names, with `*` for anything."""
    command: TextPattern | None = None
    paths: tuple[PathPattern, ...] = ()
    broken: bool = False
    """Whether it could not be read: it then is about everything of its tool, and asks."""

    @property
    def is_bare(self) -> bool:
        """Whether it is about every call of its tool."""
        return not self.name and self.command is None and not self.paths

    def names(self, tool: str) -> bool:
        """Whether it is about a tool, whatever the call."""
        if self.tool in {"*", tool}:
            return True
        if self.tool.startswith("mcp__") and tool.startswith("mcp__"):
            return re.fullmatch(_glob(self.tool), tool) is not None or (
                "__" not in self.tool[5:] and tool.startswith(f"{self.tool}__")
            )
        if self.tool == "Edit":
            return tool in EDITS
        return self.tool == "Read" and tool in READS

    def fits_name(self, name: str, *, below: bool = False) -> bool:
        """Whether it is about a domain, agent or skill; `below` takes subdomains as well."""
        if not self.name:
            return True
        if re.fullmatch(_glob(self.name), name):
            return True
        return below and name.endswith("." + self.name.removeprefix("*."))


def _glob(text: str) -> str:
    return ".*".join(map(re.escape, text.split("*")))


class Rules(msgspec.Struct, frozen=True):
    """All rules that hold, of every layer."""

    allow: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()
    problems: tuple[str, ...] = ()
    """What could not be read, in plain words."""

    def about(self, kind: Kind, tool: str) -> tuple[Rule, ...]:
        """Return the rules of a kind that are about a tool."""
        rules: tuple[Rule, ...] = getattr(self, kind)
        return tuple(rule for rule in rules if rule.names(tool))


def gather(layers: Iterable[Layer], *, root: str, cwd: str, home: str) -> Rules:
    """Put the rules of all layers together; none takes one of another away."""
    found: dict[Kind, list[Rule]] = {"allow": [], "ask": [], "deny": []}
    problems: list[str] = []
    for layer in layers:
        for kind, kept in found.items():
            texts: tuple[str, ...] = getattr(layer, kind)
            for text in dict.fromkeys(texts):
                rule = _read(text, kind, (root, cwd, home))
                if rule is not None and not rule.broken:
                    kept.append(rule)
                    continue
                closed = "" if kind == "allow" else "; until it is mended, all of its tool asks"
                problems.append(f"the {kind} rule {text!r} cannot be read{closed}")
                if kind != "allow":
                    start = _START.match(text)
                    tool = tool_of(start[1]) if start else "*"
                    found["ask"].append(Rule(text, tool, broken=True))
    return Rules(
        allow=tuple(found["allow"]),
        ask=tuple(found["ask"]),
        deny=tuple(found["deny"]),
        problems=tuple(problems),
    )


def tool_of(name: str) -> str:
    """Return a tool's name as rules are kept under it."""
    return rule_name(name)


def _read(text: str, kind: Kind, places: tuple[str, str, str]) -> Rule | None:
    form = _FORM.fullmatch(text.strip())
    if form is None:
        return None
    tool, inside = tool_of(form["tool"]), form["inside"]
    if "*" in tool and not (tool.startswith("mcp__") or (tool == "*" and kind != "allow")):
        return None
    if tool.startswith("mcp__"):
        # Every tool of every server is more than anybody means to allow.
        broad = not tool.removeprefix("mcp__").strip("*_") and kind == "allow"
        return None if inside is not None or broad else Rule(text, tool)
    if inside is None or inside.strip() in {"*", "**"}:
        return Rule(text, tool)
    if not inside.strip():
        return None
    if tool == SHELL:
        return Rule(text, tool, command=text_pattern(inside))
    if tool in EDITS | READS:
        return _path_rule(text, tool, inside, kind, places)
    if tool == "WebFetch":
        _, domain, host = inside.strip().partition("domain:")
        return Rule(text, tool, name=host.strip().lower()) if domain and host.strip() else None
    if tool in _NAMED:
        return Rule(text, tool, name=re.sub(r":\*$", "*", inside.strip()))
    return None


def _path_rule(
    text: str, tool: str, inside: str, kind: Kind, places: tuple[str, str, str]
) -> Rule | None:
    root, cwd, home = places
    # What forbids holds in the project as well, wherever the session was started in it.
    folders = (cwd,) if kind == "allow" else dict.fromkeys((cwd, root))
    made = [path_pattern(inside, root, folder, home) for folder in folders]
    found = tuple(dict.fromkeys(pattern for pattern in made if pattern is not None))
    return Rule(text, tool, paths=found) if found else None
