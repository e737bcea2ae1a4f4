"""Effects of program options, and the options that void a prefix rule.

For example, `-C` after `Bash(npm run test:*)` changes the directory.

A rule allows the words it names. The words that its `*` matches are checked here: an option that runs a program, names
a configuration, script or output file, changes the directory, loads code or opens a connection voids the match. Known
programs are described in `rule_options.toml`; options of other programs, and options not listed there, are classified
by name.

option_table().tools["make"].void       # effects, and the options that have them
effect_by_name("--log-file=x")          # ("writes", "--log-file"), for an unknown program
"""

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, Literal, TypeAlias

import msgspec

from steno.permissions.shell.command import UNKNOWN_PART, Command, Word
from steno.permissions.shell.nested_commands import WRAPPERS, program_name

_OptionStyle: TypeAlias = Literal["gnu", "dash", "nopt"]
_RestKind: TypeAlias = Literal["operands", "generic", "options"]
UNKNOWN_EFFECT: Final = "unknown"
NUMBER: Final = re.compile(r"[-+]?[0-9]+(?:[.:,][0-9]+)*", re.ASCII)
PATH_VALUE: Final = re.compile(r"[./~@\\]|.*[/\\]|.*\.(?:[cm]?[jt]sx?|py|rb|so|dll|dylib)$")
_NAME_PART: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_LONGEST_NAME: Final = 100


class ToolOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The known options and operands of a program or of one of its subcommands."""

    source: str = ""
    """The manual page or help text that documents the options."""
    also: str = ""
    """Other names of the program."""
    style: _OptionStyle = "gnu"
    """`gnu`: `-abc` bundles, `--name` abbreviates; `dash`: `-name`; `nopt`: both, as npm parses them."""
    strict: bool = False
    """Whether every unlisted long option voids the match."""
    harmless: bool = False
    """Whether all options only change the output."""
    short: str | None = None
    """Letters of harmless options; if set, unlisted letters void the match."""
    values: str = ""
    """Harmless options whose value may be the next word."""
    ok: str = ""
    """Other harmless options; `-W*` covers all options with that prefix."""
    paths: str = ""
    """Options that load code if their value is a path."""
    void: dict[str, str] = {}
    """Options that void the match, by effect."""
    operands: dict[str, list[str]] = {}
    """Patterns of operands that void the match, by effect."""
    void_values: dict[str, list[str]] = {}
    """Patterns of option values that void the match, by effect."""
    settings: str = ""
    """Names of harmless settings, for programs with `NAME=value` operands; the value must be plain."""
    most: int = 0
    """Maximum number of operands that are read; further ones are written. Zero for no limit."""
    rest: _RestKind = "operands"
    """How the words after `--` are interpreted."""
    subs: str = ""
    """Harmless subcommands; if set, unlisted subcommands void the match."""
    void_subs: dict[str, str] = {}
    """Subcommands that void the match unless the rule names them, by effect."""
    sub: dict[str, "ToolOptions"] = {}
    """Subcommands with their own options."""
    each: "ToolOptions | None" = None
    """Options of all subcommands; without it, the options of the program apply."""
    script: int = 0
    """Number of the operand after which all words are arguments of the user's script."""
    inner: int = 0
    """Number of the operand that is a program; the following words are its arguments."""
    module: str = ""
    """The option whose value is a program; the following words are its arguments."""
    stdin: int = 0
    """With fewer operands than this, commands are read from standard input."""
    alone: str = ""
    """Options that need no operand."""
    bundled_first: bool = False
    """Whether the first operand may be options without a dash: `tar xzf`."""


class _GenericOptions(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Classification of options by name."""

    short: str
    ok: str
    parts: dict[str, str]
    endings: dict[str, str]
    paths: str


class _OptionTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    generic: _GenericOptions
    tools: dict[str, ToolOptions]


@lru_cache(maxsize=1)
def option_table() -> _OptionTable:
    """Return the option table, which is loaded on first use."""
    from importlib.resources import files

    text = files("steno.permissions").joinpath("rule_options.toml").read_text(encoding="utf-8")
    return msgspec.toml.decode(text, type=_OptionTable)


@lru_cache(maxsize=1)
def _tools_by_name() -> dict[str, ToolOptions]:
    tools: dict[str, ToolOptions] = {}
    for name, options in option_table().tools.items():
        tools.update(dict.fromkeys((name, *options.also.split()), options))
    return tools


def tool_options(program: str) -> ToolOptions:
    """Return the options of a program; empty options for an unknown one."""
    tools = _tools_by_name()
    name = program_name(program)
    options = tools.get(name) or tools.get(re.sub(r"(?<=[a-z+])-?[0-9.]+$", "", name))
    return options or UNKNOWN_TOOL


UNKNOWN_TOOL: Final = ToolOptions(rest="generic")


class OptionLookup(msgspec.Struct, frozen=True):
    """The options of a program or subcommand, prepared for lookup."""

    exact: dict[str, str]
    """Effect of each listed option; empty for harmless ones."""
    starts: tuple[tuple[str, str], ...]
    """Option prefixes and their effects, longest first."""
    valued: frozenset[str]
    letters: str | None
    paths: frozenset[str]
    patterns: tuple[tuple[re.Pattern[str], str], ...]
    value_patterns: tuple[tuple[re.Pattern[str], str], ...]
    settings: frozenset[str]


_lookups: Final[dict[int, tuple[ToolOptions, OptionLookup]]] = {}


def option_lookup(options: ToolOptions) -> OptionLookup:
    """Return the prepared options of a program or subcommand."""
    entry = _lookups.get(id(options))
    if entry is None:
        entry = _lookups[id(options)] = (options, _build_lookup(options))
    return entry[1]


def _build_lookup(options: ToolOptions) -> OptionLookup:
    effects = {f"-{letter}": "" for letter in options.short or ""}
    effects |= dict.fromkeys((*options.ok.split(), *options.values.split()), "")
    effects |= dict.fromkeys(options.paths.split(), "")
    for effect, voiding in options.void.items():
        effects |= dict.fromkeys(voiding.split(), effect)
    starts = sorted(
        ((name[:-1], effect) for name, effect in effects.items() if name.endswith("*")),
        key=lambda start: -len(start[0]),
    )
    return OptionLookup(
        exact={name: effect for name, effect in effects.items() if not name.endswith("*")},
        starts=tuple(starts),
        valued=frozenset(options.values.split()),
        letters=options.short,
        paths=frozenset(options.paths.split()),
        patterns=_compile_patterns(options.operands),
        value_patterns=_compile_patterns(options.void_values),
        settings=frozenset(options.settings.split()),
    )


def _compile_patterns(by_effect: Mapping[str, list[str]]) -> tuple[tuple[re.Pattern[str], str], ...]:
    return tuple(
        (re.compile(pattern, re.DOTALL | re.IGNORECASE), effect)
        for effect, patterns in by_effect.items()
        for pattern in patterns
    )


# Unlisted options


def effect_by_name(text: str) -> tuple[str, str]:
    """Classify an option of an unknown program by its name."""
    generic = option_table().generic
    name, separator, value = text.partition("=")
    bare_name = name.lstrip("-")
    if len(bare_name) > _LONGEST_NAME:
        return UNKNOWN_EFFECT, text
    if UNKNOWN_PART in name:
        return "variable", text
    if NUMBER.fullmatch(bare_name) or bare_name in generic.ok.split():
        return "", text
    if bare_name in generic.paths.split():
        return ("loads" if separator and PATH_VALUE.match(value) else ""), name
    if not text.startswith("--"):
        is_harmless = all(letter in generic.short or letter.isdigit() for letter in bare_name)
        if is_harmless and not separator:
            return "", text
        effect = _effect_of_name(bare_name) if len(bare_name) > 1 else ""
        return effect or UNKNOWN_EFFECT, name
    return _effect_of_name(bare_name.removeprefix("no-")), name


def _effect_of_name(name: str) -> str:
    """Return the effect that an option name suggests, or an empty string."""
    generic = option_table().generic
    parts = [part.lower() for part in _NAME_PART.findall(name)]
    for part in parts:
        for effect, words in generic.parts.items():
            if part in words.split() or part.removesuffix("s") in words.split():
                return effect
        for effect, words in generic.endings.items():
            if any(_is_compound_word(part, word) for word in words.split()):
                return effect
    # Many programs accept an abbreviated last part.
    return _effect_of_abbreviation(parts[-1]) if parts else UNKNOWN_EFFECT


def _is_compound_word(part: str, word: str) -> bool:
    """Whether a part is a compound such as `outfile`, `configdir`, `logfiles`."""
    return part.startswith(word) or part.endswith((word, f"{word}s"))


def _effect_of_abbreviation(part: str) -> str:
    for effect, words in option_table().generic.parts.items():
        if any(len(part) < len(word) and word.startswith(part) for word in words.split()):
            return effect
    return ""


_EFFECT_PHRASES: Final[Mapping[str, str]] = {
    "runs": "runs a program",
    "config": "names a configuration or script file",
    "writes": "writes a file",
    "reads": "reads a file",
    "directory": "changes the directory",
    "loads": "loads code",
    "connects": "opens a connection",
    "settings": "changes settings",
    "deletes": "removes data",
    "program": "is the program to run",
    "variable": "depends on a variable, which may contain an option",
    UNKNOWN_EFFECT: "has an unknown effect",
}
# Without `-v`: after it, Python and database clients still read their input.
_VERSION_OPTIONS: Final = frozenset({"--version", "--help", "-V", "-h"})


# Check


def why_void(command: Command, named_lengths: Mapping[int, int], literal_words: int) -> str:
    """Return which word matched by a rule's `*` voids the match; empty if none does.

    `named_lengths` maps the index of each such word to the number of its characters that the rule names;
    `literal_words` is the number of words before the first `*` of the rule.
    """
    voiding_word = _find_voiding_word(command, named_lengths, literal_words)
    if voiding_word is None:
        return ""
    index, text, effect = voiding_word
    preceding = " ".join(word.text for word in command.words[:index] if UNKNOWN_PART not in word.text)
    location = f" after `{_shorten(preceding)}`" if preceding else ""
    return f"`{_shorten(text)}`{location} {_EFFECT_PHRASES[effect]}; the rule does not cover it"


def _shorten(text: str, max_length: int = 60) -> str:
    plain = " ".join(text.replace(UNKNOWN_PART, "…").split())
    return plain if len(plain) <= max_length else plain[: max_length - 1] + "…"


_VoidingWord: TypeAlias = tuple[int, str, str]


def _find_voiding_word(command: Command, named_lengths: Mapping[int, int], literal_words: int) -> _VoidingWord | None:
    words = command.words
    end = len(words)
    inner: Command | None = None
    if command.inner and _runs_rest_as_command(command):
        # A wrapped command is checked separately unless the rule names it.
        end = command.reach
        inner = command.inner[0] if literal_words > command.reach else None
    voiding_word = _OptionCheck(words[:end], named_lengths).run()
    if voiding_word is not None or inner is None:
        return voiding_word
    inner_lengths = {index - end: length for index, length in named_lengths.items() if index >= end}
    # Arguments that xargs adds are unknown, and no rule can name them.
    inner_lengths |= dict.fromkeys(range(len(words) - end, len(inner.words)), 0)
    nested = _find_voiding_word(inner, inner_lengths, literal_words - end)
    return (nested[0] + end, *nested[1:]) if nested is not None else None


def _runs_rest_as_command(command: Command) -> bool:
    """Whether the words from `reach` on are another command."""
    name = program_name(command.program)
    rest = command.words[command.reach :]
    is_same = command.inner[0].words[: len(rest)] == rest
    is_wrapper = name in WRAPPERS or name in {"env", "xargs"}
    return is_same and is_wrapper and 0 < command.reach < len(command.words)


class _OptionCheck:
    """Checks the words of one command until one voids the match."""

    def __init__(self, words: Sequence[Word], named_lengths: Mapping[int, int]) -> None:
        self.words = words
        self.named_lengths = named_lengths
        self.tool = tool_options(words[0].text) if words else UNKNOWN_TOOL
        self.option_sets: tuple[ToolOptions, ...] = (self.tool,)
        self.operands = 0
        """Number of operands of the current program or subcommand."""
        self.total_operands = 0
        """Number of operands of the whole command."""
        self.options_ended = False
        """Whether only operands follow."""
        self.in_script = False
        """Whether the words are arguments of the user's script."""
        self.expects_value = ""
        """The previous option, if this word is its value."""
        self.needs_input = True
        """Whether the program may read commands from its input."""

    def run(self) -> _VoidingWord | None:
        """Return the first word that voids the match: its index, the text to show, and its effect."""
        if 0 in self.named_lengths and (voiding_word := self._check_program()):
            return voiding_word
        for index in range(1, len(self.words)):
            effect, text = self._check_word(index)
            if effect and index in self.named_lengths:
                return index, text, effect
        return self._check_standard_input()

    def _check_program(self) -> _VoidingWord | None:
        """Reject a program that the rule does not name, unless the rule names all other words."""
        text = self.words[0].text
        leaves_more_open = any(length == 0 for index, length in self.named_lengths.items() if index)
        if leaves_more_open or "/" in text or "\\" in text or not self.words[0].literal:
            return 0, text, "program"
        return None

    def _check_standard_input(self) -> _VoidingWord | None:
        min_operands = max(options.stdin for options in self.option_sets)
        if self.in_script or self.total_operands >= min_operands or not self.needs_input:
            return None
        return 0, f"{self.words[0].text} without arguments", "runs"

    def _check_word(self, index: int) -> tuple[str, str]:
        """Return the effect of a word, empty for a harmless one, and the text to show."""
        word = self.words[index]
        text = word.text
        option, self.expects_value = self.expects_value, ""
        if option and self._is_path_option(option) and PATH_VALUE.match(text):
            return "loads", option
        if option and self._names_module(option):
            self._switch_tool(text)
            return "runs", text
        if word.splits and not word.glob:
            return self._unknown_word(text)
        if text.startswith(UNKNOWN_PART):
            return ("", text) if option or self.options_ended else self._unknown_word(text)
        if text == "--" and not self.in_script:
            self._end_options(index, option)
            return "", text
        is_old_style = index == 1 and self.tool.bundled_first and text[:1].isalpha()
        if is_old_style:
            return self._check_letters(f"-{text}", whole_word=True)
        is_option = len(text) > 1 and text[0] == "-" and not text[1:2].isspace()
        if is_option and not self.options_ended:
            self._note_version_option(text, option)
            if self._is_named_by_rule(index, text):
                self._note_value(text)
                return "", text
            return self._check_option(text)
        if option:
            return self._effect_of_value(text), f"{option} {text}"
        return self._check_operand(text, index)

    def _note_version_option(self, text: str, option: str) -> None:
        """Note an option such as --version, after which the program exits."""
        version_options = _VERSION_OPTIONS.union(*(options.alone.split() for options in self.option_sets))
        if text in version_options and not option:
            self.needs_input = False

    def _unknown_word(self, text: str) -> tuple[str, str]:
        is_harmless = any(options.harmless for options in self.option_sets) and not self.in_script
        return ("" if is_harmless else "variable"), text

    def _is_named_by_rule(self, index: int, text: str) -> bool:
        """Whether the rule names an option in full and leaves only its value open."""
        length = self.named_lengths.get(index)
        return length is None or "=" in text[:length]

    def _end_options(self, index: int, option: str) -> None:
        # `--` may be the value of the previous option.
        previous = self.words[index - 1].text
        if option or (previous.startswith("-") and self._effect_of(previous) is None):
            return
        rest = next((options.rest for options in self.option_sets if options.rest != "operands"), "operands")
        if rest == "generic":
            self.in_script = True
        elif rest == "operands":
            self.options_ended = True

    # Options

    def _check_option(self, text: str) -> tuple[str, str]:
        if self.in_script:
            self._note_value(text)
            return effect_by_name(text)
        if any(options.harmless for options in self.option_sets):
            return "", text
        effect = self._check_dashed(text)
        self._note_value(text)
        return effect

    def _check_dashed(self, text: str) -> tuple[str, str]:
        if UNKNOWN_PART in text.partition("=")[0]:
            return "variable", text
        style = self.tool.style
        name, separator, value = text.partition("=")
        if style == "dash":
            return self._check_single_dash(text)
        exact = self._effect_of(text, name)
        if exact is not None:
            if not exact and separator and self._is_path_option(name) and PATH_VALUE.match(value):
                return "loads", name
            return exact or self._effect_of_value(value), name
        if text.startswith("--"):
            return self._long_option_effect(name), name
        if style == "nopt" and len(text) > len("-x"):
            effect = self._long_option_effect(f"-{name}")
            if effect:
                return effect, name
        return self._check_letters(text)

    def _check_single_dash(self, text: str) -> tuple[str, str]:
        """Classify `-name`, `--name`, `-name=value` and `-nameVALUE`."""
        bare = text[1:] if text.startswith("--") else text
        name = re.split(r"[=:]", bare, maxsplit=1)[0]
        effect = self._effect_of(bare, name)
        if effect is not None:
            return effect, text.partition("=")[0]
        if NUMBER.fullmatch(bare):
            return "", text
        if self._is_strict() or (len(name) == len("-x") and self._letters_listed()):
            return UNKNOWN_EFFECT, text
        return effect_by_name(text)

    def _long_option_effect(self, name: str) -> str:
        """Return the effect of a long option that is not listed in full."""
        for options in self.option_sets:
            for known_name, effect in option_lookup(options).exact.items():
                if effect and known_name.startswith("--") and known_name.startswith(name):
                    return effect
        if name.startswith("--no-"):
            exact = self._effect_of("--" + name[len("--no-") :])
            if exact is not None:
                return exact
        return UNKNOWN_EFFECT if self._is_strict() else effect_by_name(name)[0]

    def _check_letters(self, text: str, *, whole_word: bool = False) -> tuple[str, str]:
        """Classify bundled short options; `whole_word` if values do not end the bundle."""
        if NUMBER.fullmatch(text):
            return "", text
        for index, letter in enumerate(text[1:], 2):
            effect = self._effect_of(f"-{letter}")
            if effect:
                return effect, text
            if effect is None and not (letter.isdigit() and letter.isascii()):
                if self._letters_listed():
                    return UNKNOWN_EFFECT, text
                effect = "" if letter in option_table().generic.short else UNKNOWN_EFFECT
                if effect:
                    return effect, text
            if not whole_word and self._takes_value(f"-{letter}"):
                return self._effect_of_value(text[index:].removeprefix("=")), text
        return "", text

    def _effect_of(self, text: str, name: str = "") -> str | None:
        """Return the listed effect of an option, with and without its value; None if unlisted."""
        for options in self.option_sets:
            known_options = option_lookup(options)
            for spelling in (text, name):
                if spelling in known_options.exact:
                    return known_options.exact[spelling]
            for start, effect in known_options.starts:
                if text.startswith(start):
                    return effect
        return None

    def _effect_of_value(self, value: str) -> str:
        for options in self.option_sets:
            for pattern, effect in option_lookup(options).value_patterns:
                if pattern.match(value):
                    return effect
        return ""

    def _is_strict(self) -> bool:
        return any(options.strict for options in self.option_sets)

    def _letters_listed(self) -> bool:
        return any(options.short is not None for options in self.option_sets)

    def _takes_value(self, name: str) -> bool:
        for options in self.option_sets:
            known_options = option_lookup(options)
            if name in known_options.exact:
                return name in known_options.valued
        return False

    def _is_path_option(self, name: str) -> bool:
        if self.in_script:
            return name.lstrip("-") in option_table().generic.paths.split()
        return any(name in option_lookup(options).paths for options in self.option_sets)

    def _names_module(self, name: str) -> bool:
        return any(name == options.module for options in self.option_sets if options.module)

    def _note_value(self, text: str) -> None:
        """Note an option whose value is the next word."""
        name, separator, _ = text.partition("=")
        if separator:
            return
        last_letter = f"-{text[-1]}"
        bundled = not text.startswith("--") and self.tool.style != "dash"
        for candidate in (name, last_letter) if bundled else (name,):
            if self._takes_value(candidate) or self._is_path_option(candidate) or self._names_module(candidate):
                self.expects_value = candidate
                return

    # Operands

    def _check_operand(self, text: str, index: int) -> tuple[str, str]:
        if self.in_script:
            return ("config" if text[:1] == "@" and len(text) > 1 else ""), text
        for options in self.option_sets:
            effect = self._operand_effect(options, text)
            if effect:
                return effect, text
        if self.tool is UNKNOWN_TOOL:
            if text[:1] == "@" and len(text) > 1:
                return "config", text
            if text[:1] == "+" and not NUMBER.fullmatch(text):
                return UNKNOWN_EFFECT, text
            return "", text
        return self._count_operand(text, index)

    def _operand_effect(self, options: ToolOptions, text: str) -> str:
        known_options = option_lookup(options)
        if known_options.settings and "=" in text:
            name, _, value = text.partition("=")
            is_harmless = name in known_options.settings and _PLAIN_VALUE.fullmatch(value) is not None
            return "" if is_harmless else "settings"
        for pattern, effect in known_options.patterns:
            if pattern.match(text):
                return effect
        return ""

    def _count_operand(self, text: str, index: int) -> tuple[str, str]:
        """Follow subcommands, scripts and programs named by operands."""
        self.operands += 1
        self.total_operands += 1
        current = self.option_sets[0]
        if current.most and self.operands > current.most:
            return "writes", text
        if self.operands == current.inner:
            effect = "runs" if index in self.named_lengths else ""
            self._switch_tool(text)
            return effect, text
        if self.operands == current.script:
            self.in_script = True
        if self.operands == 1 and (current.subs or current.sub or current.void_subs):
            return self._check_subcommand(current, text)
        return "", text

    def _check_subcommand(self, current: ToolOptions, text: str) -> tuple[str, str]:
        for effect, names in current.void_subs.items():
            if text in names.split():
                self._enter_subcommand(current, text)
                return effect, text
        is_unknown = text not in current.sub and current.subs and text not in current.subs.split()
        self._enter_subcommand(current, text)
        return (UNKNOWN_EFFECT if is_unknown else ""), text

    def _enter_subcommand(self, current: ToolOptions, name: str) -> None:
        self.operands = 0
        options = current.sub.get(name)
        remaining = (current.each,) if current.each is not None else self.option_sets
        self.option_sets = (options or _NO_OPTIONS, *remaining)

    def _switch_tool(self, program: str) -> None:
        """Continue with the options of another program."""
        self.tool = tool_options(program)
        self.option_sets = (self.tool,)
        self.operands = 0
        self.options_ended = False


_NO_OPTIONS: Final = ToolOptions()
_PLAIN_VALUE: Final = re.compile(r"(?!-)[\w.,:/@%+-]*", re.ASCII)
