"""Options that void a prefix rule: `-C` after `Bash(npm run test:*)` changes the directory.

A rule allows the words it names. The words that its `*` covers are examined here: an option that
runs a program, names a configuration, script or output file, changes the directory, loads code or
connects elsewhere voids the match. The facts about tools are in `rule_options.toml`; options of
unknown tools, and options that the file does not list, are classified by their names.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

from steno.guard.option_table import (
    NUMBER,
    PATH_VALUE,
    UNKNOWN,
    UNLISTED,
    ToolOptions,
    effect_by_name,
    lookup,
    option_table,
    tool_options,
)
from steno.guard.words import HOLE, Command, Word
from steno.guard.wrappers import WRAPPERS, base_name

__all__ = ["why_void"]

_EFFECTS: Final[Mapping[str, str]] = {
    "runs": "runs a program",
    "config": "names a configuration or script",
    "writes": "names a file to write",
    "reads": "names a file to read",
    "directory": "changes the directory",
    "loads": "loads code",
    "connects": "connects elsewhere",
    "settings": "changes settings",
    "deletes": "removes data",
    "program": "is the program to run",
    "variable": "depends on a variable, which may be an option",
    UNKNOWN: "is not known to be harmless",
}
# `-v` is none of them: Python and the clients of databases go on to read their input after it.
_ASKS_VERSION: Final = frozenset({"--version", "--help", "-V", "-h"})


# The examination


def why_void(command: Command, covered: Mapping[int, int], named: int) -> str:
    """Say which word that a rule's `*` covers voids the match; empty when none does.

    `covered` has the places of those words, and how much of each the rule names; `named` is how
    many words the rule names before its first `*`.
    """
    found = _examine(command, covered, named)
    if found is None:
        return ""
    at, shown, effect = found
    before = " ".join(word.text for word in command.words[:at] if HOLE not in word.text)
    where = f" after `{_clipped(before)}`" if before else ""
    return f"`{_clipped(shown)}`{where} {_EFFECTS[effect]}; the rule does not name it"


def _clipped(text: str, most: int = 60) -> str:
    plain = " ".join(text.replace(HOLE, "…").split())
    return plain if len(plain) <= most else plain[: most - 1] + "…"


_Void: TypeAlias = tuple[int, str, str]


def _examine(command: Command, covered: Mapping[int, int], named: int) -> _Void | None:
    words = command.words
    end = len(words)
    inner: Command | None = None
    if command.inner and _hands_over(command):
        # What is wrapped is judged on its own unless the rule goes so far as to name it.
        end = command.reach
        inner = command.inner[0] if named > command.reach else None
    found = _Examination(words[:end], covered).run()
    if found is not None or inner is None:
        return found
    shifted = {place - end: fixed for place, fixed in covered.items() if place >= end}
    # The words that xargs adds come from elsewhere, and no rule names them.
    shifted |= dict.fromkeys(range(len(words) - end, len(inner.words)), 0)
    nested = _examine(inner, shifted, named - end)
    return (nested[0] + end, *nested[1:]) if nested is not None else None


def _hands_over(command: Command) -> bool:
    """Whether the words from `reach` on are those of another command."""
    name = base_name(command.program)
    rest = command.words[command.reach :]
    same = command.inner[0].words[: len(rest)] == rest
    known = name in WRAPPERS or name in {"env", "xargs"}
    return same and known and 0 < command.reach < len(command.words)


class _Examination:
    """Goes over the words of one command and stops at the first that voids."""

    def __init__(self, words: Sequence[Word], covered: Mapping[int, int]) -> None:
        self.words = words
        self.covered = covered
        self.tool = tool_options(words[0].text) if words else UNLISTED
        self.chain: tuple[ToolOptions, ...] = (self.tool,)
        self.operands = 0
        """How many operands the current tool or subcommand was given."""
        self.given = 0
        """How many operands the whole command has."""
        self.ended = False
        """Whether options have ended, so that only operands follow."""
        self.in_script = False
        """Whether the words go to a script of the user's own."""
        self.expects_value = ""
        """The option before, when it takes this word as its value."""
        self.needs_input = True
        """Whether no option was given with which the tool reads no commands from its input."""

    def run(self) -> _Void | None:
        """Return the first word that voids: its place, what to show, and its effect."""
        if 0 in self.covered and (why := self._program()):
            return why
        for at in range(1, len(self.words)):
            effect, shown = self._word(at)
            if effect and at in self.covered:
                return at, shown, effect
        return self._standard_input()

    def _program(self) -> _Void | None:
        """Refuse a program that the rule leaves open, unless it gives all the other words."""
        text = self.words[0].text
        others = any(fixed == 0 for at, fixed in self.covered.items() if at)
        if others or "/" in text or "\\" in text or not self.words[0].literal:
            return 0, text, "program"
        return None

    def _standard_input(self) -> _Void | None:
        least = max(options.stdin for options in self.chain)
        if self.in_script or self.given >= least or not self.needs_input:
            return None
        return 0, f"{self.words[0].text} without more words", "runs"

    def _word(self, at: int) -> tuple[str, str]:
        """Return the effect of a word, empty for a harmless one, and the part to show."""
        word = self.words[at]
        text = word.text
        option, self.expects_value = self.expects_value, ""
        if option and self._is_path_option(option) and PATH_VALUE.match(text):
            return "loads", option
        if option and self._names_module(option):
            self._hand_over(text)
            return "runs", text
        if word.splits and not word.glob:
            return self._unknown_word(text)
        if text.startswith(HOLE):
            return ("", text) if option or self.ended else self._unknown_word(text)
        if text == "--" and not self.in_script:
            self._end_options(at, option)
            return "", text
        old = at == 1 and self.tool.bundled_first and text[:1].isalpha()
        if old:
            return self._letters(f"-{text}", every=True)
        is_option = len(text) > 1 and text[0] == "-" and not text[1:2].isspace()
        if is_option and not self.ended:
            self._note_question(text, option)
            if self._is_named(at, text):
                self._note_value(text)
                return "", text
            return self._option(text)
        if option:
            return self._effect_of_value(text), f"{option} {text}"
        return self._operand(text, at)

    def _note_question(self, text: str, option: str) -> None:
        """Remember an option after which the tool says something of itself and ends."""
        alone = _ASKS_VERSION.union(*(options.alone.split() for options in self.chain))
        if text in alone and not option:
            self.needs_input = False

    def _unknown_word(self, text: str) -> tuple[str, str]:
        harmless = any(options.harmless for options in self.chain) and not self.in_script
        return ("" if harmless else "variable"), text

    def _is_named(self, at: int, text: str) -> bool:
        """Whether the rule names an option in full and leaves only its value open."""
        fixed = self.covered.get(at)
        return fixed is None or "=" in text[:fixed]

    def _end_options(self, at: int, option: str) -> None:
        # `--` may be the value of the option before it.
        before = self.words[at - 1].text
        if option or (before.startswith("-") and self._effect_of(before) is None):
            return
        rest = next((each.rest for each in self.chain if each.rest != "operands"), "operands")
        if rest == "generic":
            self.in_script = True
        elif rest == "operands":
            self.ended = True

    # Options

    def _option(self, text: str) -> tuple[str, str]:
        if self.in_script:
            self._note_value(text)
            return effect_by_name(text)
        if any(options.harmless for options in self.chain):
            return "", text
        effect = self._dashed(text)
        self._note_value(text)
        return effect

    def _dashed(self, text: str) -> tuple[str, str]:
        if HOLE in text.partition("=")[0]:
            return "variable", text
        style = self.tool.style
        name, given, value = text.partition("=")
        if style == "dash":
            return self._single(text)
        exact = self._effect_of(text, name)
        if exact is not None:
            if not exact and given and self._is_path_option(name) and PATH_VALUE.match(value):
                return "loads", name
            return exact or self._effect_of_value(value), name
        if text.startswith("--"):
            return self._long(name), name
        if style == "nopt" and len(text) > len("-x"):
            effect = self._long(f"-{name}")
            if effect:
                return effect, name
        return self._letters(text)

    def _single(self, text: str) -> tuple[str, str]:
        """Classify `-name`, `--name`, `-name=value` and `-nameVALUE`."""
        plain = text[1:] if text.startswith("--") else text
        name = re.split(r"[=:]", plain, maxsplit=1)[0]
        effect = self._effect_of(plain, name)
        if effect is not None:
            return effect, text.partition("=")[0]
        if NUMBER.fullmatch(plain):
            return "", text
        if self._is_strict() or (len(name) == len("-x") and self._letters_listed()):
            return UNKNOWN, text
        return effect_by_name(text)

    def _long(self, name: str) -> str:
        """Return the effect of a long option that is not listed in full."""
        for options in self.chain:
            for listed, effect in lookup(options).exact.items():
                if effect and listed.startswith("--") and listed.startswith(name):
                    return effect
        if name.startswith("--no-"):
            exact = self._effect_of("--" + name[len("--no-") :])
            if exact is not None:
                return exact
        return UNKNOWN if self._is_strict() else effect_by_name(name)[0]

    def _letters(self, text: str, *, every: bool = False) -> tuple[str, str]:
        """Classify bundled short options; `every` where values do not end the bundle."""
        if NUMBER.fullmatch(text):
            return "", text
        for at, letter in enumerate(text[1:], 2):
            effect = self._effect_of(f"-{letter}")
            if effect:
                return effect, text
            if effect is None and not (letter.isdigit() and letter.isascii()):
                if self._letters_listed():
                    return UNKNOWN, text
                effect = "" if letter in option_table().generic.short else UNKNOWN
                if effect:
                    return effect, text
            if not every and self._takes_value(f"-{letter}"):
                return self._effect_of_value(text[at:].removeprefix("=")), text
        return "", text

    def _effect_of(self, text: str, name: str = "") -> str | None:
        """Return the listed effect of an option, with and without its value; None if unlisted."""
        for options in self.chain:
            found = lookup(options)
            for form in (text, name):
                if form in found.exact:
                    return found.exact[form]
            for start, effect in found.starts:
                if text.startswith(start):
                    return effect
        return None

    def _effect_of_value(self, value: str) -> str:
        for options in self.chain:
            for pattern, effect in lookup(options).value_patterns:
                if pattern.match(value):
                    return effect
        return ""

    def _is_strict(self) -> bool:
        return any(options.strict for options in self.chain)

    def _letters_listed(self) -> bool:
        return any(options.short is not None for options in self.chain)

    def _takes_value(self, name: str) -> bool:
        for options in self.chain:
            found = lookup(options)
            if name in found.exact:
                return name in found.valued
        return False

    def _is_path_option(self, name: str) -> bool:
        if self.in_script:
            return name.lstrip("-") in option_table().generic.paths.split()
        return any(name in lookup(options).paths for options in self.chain)

    def _names_module(self, name: str) -> bool:
        return any(name == options.module for options in self.chain if options.module)

    def _note_value(self, text: str) -> None:
        """Remember an option whose value is the next word."""
        name, given, _ = text.partition("=")
        if given:
            return
        last = f"-{text[-1]}"
        bundled = not text.startswith("--") and self.tool.style != "dash"
        for each in (name, last) if bundled else (name,):
            if self._takes_value(each) or self._is_path_option(each) or self._names_module(each):
                self.expects_value = each
                return

    # Operands

    def _operand(self, text: str, at: int) -> tuple[str, str]:
        if self.in_script:
            return ("config" if text[:1] == "@" and len(text) > 1 else ""), text
        for options in self.chain:
            effect = self._matching(options, text)
            if effect:
                return effect, text
        if self.tool is UNLISTED:
            if text[:1] == "@" and len(text) > 1:
                return "config", text
            if text[:1] == "+" and not NUMBER.fullmatch(text):
                return UNKNOWN, text
            return "", text
        return self._counted(text, at)

    def _matching(self, options: ToolOptions, text: str) -> str:
        found = lookup(options)
        if found.settings and "=" in text:
            name, _, value = text.partition("=")
            harmless = name in found.settings and _PLAIN_VALUE.fullmatch(value) is not None
            return "" if harmless else "settings"
        for pattern, effect in found.patterns:
            if pattern.match(text):
                return effect
        return ""

    def _counted(self, text: str, at: int) -> tuple[str, str]:
        """Follow subcommands, scripts and programs that operands name."""
        self.operands += 1
        self.given += 1
        current = self.chain[0]
        if current.most and self.operands > current.most:
            return "writes", text
        if self.operands == current.inner:
            effect = "runs" if at in self.covered else ""
            self._hand_over(text)
            return effect, text
        if self.operands == current.script:
            self.in_script = True
        if self.operands == 1 and (current.subs or current.sub or current.void_subs):
            return self._subcommand(current, text)
        return "", text

    def _subcommand(self, current: ToolOptions, text: str) -> tuple[str, str]:
        for effect, listed in current.void_subs.items():
            if text in listed.split():
                self._enter(current, text)
                return effect, text
        unknown = text not in current.sub and current.subs and text not in current.subs.split()
        self._enter(current, text)
        return (UNKNOWN if unknown else ""), text

    def _enter(self, current: ToolOptions, name: str) -> None:
        self.operands = 0
        found = current.sub.get(name)
        below = (current.each,) if current.each is not None else self.chain
        self.chain = (found or _NO_OPTIONS, *below)

    def _hand_over(self, program: str) -> None:
        """Go on with the options of another program."""
        self.tool = tool_options(program)
        self.chain = (self.tool,)
        self.operands = 0
        self.ended = False


_NO_OPTIONS: Final = ToolOptions()
_PLAIN_VALUE: Final = re.compile(r"(?!-)[\w.,:/@%+-]*", re.ASCII)
