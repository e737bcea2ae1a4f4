"""What is known of the options of tools: `rule_options.toml`, and what their names say.

option_table().tools["make"].void   # effects, and the options that have them
effect_by_name("--log-file=x")      # ("writes", "--log-file"), for a tool that is not listed
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final, Literal, TypeAlias

import msgspec

from steno.guard.words import HOLE
from steno.guard.wrappers import base_name

__all__ = [
    "NUMBER",
    "PATH_VALUE",
    "UNKNOWN",
    "UNLISTED",
    "Lookup",
    "ToolOptions",
    "effect_by_name",
    "lookup",
    "option_table",
    "tool_options",
]

_Style: TypeAlias = Literal["gnu", "dash", "nopt"]
_Rest: TypeAlias = Literal["operands", "generic", "options"]
UNKNOWN: Final = "unknown"
NUMBER: Final = re.compile(r"[-+]?[0-9]+(?:[.:,][0-9]+)*", re.ASCII)
PATH_VALUE: Final = re.compile(r"[./~@\\]|.*[/\\]|.*\.(?:[cm]?[jt]sx?|py|rb|so|dll|dylib)$")
_NAME_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_LONGEST_NAME: Final = 100


class ToolOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What is known of the words of a tool, or of one of its subcommands."""

    source: str = ""
    """The manual page or help text that the facts were taken from."""
    also: str = ""
    """Other names of the tool."""
    style: _Style = "gnu"
    """`gnu`: `-abc` bundles, `--name` abbreviates; `dash`: `-name`; `nopt`: both, as npm reads."""
    strict: bool = False
    """Whether a long option that is not listed voids, whatever its name."""
    harmless: bool = False
    """Whether no option of it can do more than change what is printed."""
    short: str | None = None
    """Letters of harmless options; with it, letters that are not listed void."""
    values: str = ""
    """Harmless options that take a value, which may be the next word."""
    ok: str = ""
    """Other harmless options; `-W*` stands for all that begin so."""
    paths: str = ""
    """Options that load code when their value is a path."""
    void: dict[str, str] = {}
    """Options that void the match, by effect."""
    operands: dict[str, list[str]] = {}
    """Patterns of operands that void the match, by effect."""
    void_values: dict[str, list[str]] = {}
    """Patterns of option values that void the match, by effect."""
    settings: str = ""
    """For tools that take `NAME=value` operands: the names that are harmless with a plain value."""
    most: int = 0
    """How many operands are read; one more is written. Zero for any number."""
    rest: _Rest = "operands"
    """What the words after `--` are."""
    subs: str = ""
    """Harmless subcommands; with it, a subcommand that is not listed voids."""
    void_subs: dict[str, str] = {}
    """Subcommands that void the match unless the rule names them, by effect."""
    sub: dict[str, "ToolOptions"] = {}
    """Subcommands with options that are not those of the tool."""
    each: "ToolOptions | None" = None
    """The options after any subcommand; without it, those of the tool hold there too."""
    script: int = 0
    """The operand after which all words go to the user's own script."""
    inner: int = 0
    """The operand that is a program, which gets the words after it."""
    module: str = ""
    """The option whose value is a program, which gets the words after it."""
    stdin: int = 0
    """With fewer operands than this, commands are read from standard input."""
    alone: str = ""
    """Options with which no operand is needed."""
    bundled_first: bool = False
    """Whether the first operand may be options without a dash: `tar xzf`."""


class _Generic(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How options are classified by their names alone."""

    short: str
    ok: str
    parts: dict[str, str]
    endings: dict[str, str]
    paths: str


class _Table(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    generic: _Generic
    tools: dict[str, ToolOptions]


@lru_cache(maxsize=1)
def option_table() -> _Table:
    """Return the facts about tools, read on first use."""
    from importlib.resources import files

    text = files("steno.guard").joinpath("rule_options.toml").read_text(encoding="utf-8")
    return msgspec.toml.decode(text, type=_Table)


@lru_cache(maxsize=1)
def _tools_by_name() -> dict[str, ToolOptions]:
    found: dict[str, ToolOptions] = {}
    for name, options in option_table().tools.items():
        found.update(dict.fromkeys((name, *options.also.split()), options))
    return found


def tool_options(program: str) -> ToolOptions:
    """Return what is known of a program; nothing for an unknown one."""
    tools = _tools_by_name()
    name = base_name(program)
    found = tools.get(name) or tools.get(re.sub(r"(?<=[a-z+])-?[0-9.]+$", "", name))
    return found or UNLISTED


UNLISTED: Final = ToolOptions(rest="generic")


class Lookup(msgspec.Struct, frozen=True):
    """The options of a tool or subcommand, ready to be looked up."""

    exact: dict[str, str]
    """The effect of each listed option; empty for harmless ones."""
    starts: tuple[tuple[str, str], ...]
    """Beginnings of options and their effects, the longest first."""
    valued: frozenset[str]
    letters: str | None
    paths: frozenset[str]
    patterns: tuple[tuple[re.Pattern[str], str], ...]
    value_patterns: tuple[tuple[re.Pattern[str], str], ...]
    settings: frozenset[str]


_lookups: Final[dict[int, tuple[ToolOptions, Lookup]]] = {}


def lookup(options: ToolOptions) -> Lookup:
    """Return the options of a tool or subcommand, ready to be looked up."""
    known = _lookups.get(id(options))
    if known is None:
        known = _lookups[id(options)] = (options, _made(options))
    return known[1]


def _made(options: ToolOptions) -> Lookup:
    listed = {f"-{letter}": "" for letter in options.short or ""}
    listed |= dict.fromkeys((*options.ok.split(), *options.values.split()), "")
    listed |= dict.fromkeys(options.paths.split(), "")
    for effect, voiding in options.void.items():
        listed |= dict.fromkeys(voiding.split(), effect)
    starts = sorted(
        ((name[:-1], effect) for name, effect in listed.items() if name.endswith("*")),
        key=lambda each: -len(each[0]),
    )
    return Lookup(
        exact={name: effect for name, effect in listed.items() if not name.endswith("*")},
        starts=tuple(starts),
        valued=frozenset(options.values.split()),
        letters=options.short,
        paths=frozenset(options.paths.split()),
        patterns=_compiled(options.operands),
        value_patterns=_compiled(options.void_values),
        settings=frozenset(options.settings.split()),
    )


def _compiled(by_effect: Mapping[str, list[str]]) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple(
        (re.compile(pattern, re.DOTALL | re.IGNORECASE), effect)
        for effect, patterns in by_effect.items()
        for pattern in patterns
    )


# Options that are not listed


def effect_by_name(text: str) -> tuple[str, str]:
    """Classify an option of an unknown tool by its name."""
    generic = option_table().generic
    name, given, value = text.partition("=")
    plain = name.lstrip("-")
    if len(plain) > _LONGEST_NAME:
        return UNKNOWN, text
    if HOLE in name:
        return "variable", text
    if NUMBER.fullmatch(plain) or plain in generic.ok.split():
        return "", text
    if plain in generic.paths.split():
        return ("loads" if given and PATH_VALUE.match(value) else ""), name
    if not text.startswith("--"):
        harmless = all(letter in generic.short or letter.isdigit() for letter in plain)
        if harmless and not given:
            return "", text
        effect = _named_effect(plain) if len(plain) > 1 else ""
        return effect or UNKNOWN, name
    return _named_effect(plain.removeprefix("no-")), name


def _named_effect(name: str) -> str:
    """Return the effect that an option's name speaks of; empty when it speaks of none."""
    generic = option_table().generic
    parts = [part.lower() for part in _NAME_PART.findall(name)]
    for part in parts:
        for effect, listed in generic.parts.items():
            if part in listed.split() or part.removesuffix("s") in listed.split():
                return effect
        for effect, listed in generic.endings.items():
            if any(_is_compound(part, each) for each in listed.split()):
                return effect
    # The last part may be cut short, as many programs allow.
    return _cut_short(parts[-1]) if parts else UNKNOWN


def _is_compound(part: str, word: str) -> bool:
    """`outfile`, `configdir`, `logfiles`: two words written as one."""
    return part.startswith(word) or part.endswith((word, f"{word}s"))


def _cut_short(part: str) -> str:
    for effect, listed in option_table().generic.parts.items():
        if any(len(part) < len(each) and each.startswith(part) for each in listed.split()):
            return effect
    return ""
