"""Rules that deny files, held against the words of commands."""

import os
from typing import Final

import msgspec

from steno.guard.command_words import path_words
from steno.guard.content_readers import (
    files_below,
    is_process_path,
    joined_values,
    path_pieces,
    shown_by,
)
from steno.guard.decision import Decision
from steno.guard.files import Files
from steno.guard.moves import Folders
from steno.guard.paths import Place
from steno.guard.readers import READ_ONLY
from steno.guard.rules import Rules
from steno.guard.shell import Reading
from steno.guard.words import Command

__all__ = ["TALKERS", "DeniedFiles"]

TALKERS: Final = frozenset(name for name, plain in READ_ONLY.items() if plain.operands == "text")
"""Programs whose words are only words."""


class DeniedFiles(msgspec.Struct, frozen=True):
    """The files that rules deny, by the commands that name or show them."""

    rules: Rules
    files: Files

    def named(self, reading: Reading, where: Folders) -> Decision | None:
        """Hold the words of commands against rules that forbid files."""
        tools = [tool for tool in ("Read", "Edit") if self.rules.about("deny", tool)]
        if not tools:
            return None
        perhaps: Decision | None = None
        for command in reading.every():
            if command.program in TALKERS or not command.words:
                continue
            for word in path_words(command):
                places = where.places(word)
                if places is None or any(is_process_path(place.path) for place in places):
                    perhaps = Decision("ask", "a rule that forbids files may be about it")
                    continue
                denied = next(filter(None, (self._place_denied(p, tools) for p in places)), None)
                if denied is not None:
                    return denied
            if perhaps is None:
                perhaps = self._part_denied(command, where, tools)
        return perhaps

    def _place_denied(self, place: Place, tools: list[str]) -> Decision | None:
        rule = self.files.is_denied_by_path(place, *tools)
        if rule is not None:
            return Decision("deny", f"the rule {rule.text} forbids it", rule.text)
        if any(self.files.is_denied_elsewhere(place, each) for each in tools):
            return Decision("deny", f"{place.path} is the same file as one that a rule denies")
        return None

    def _part_denied(self, command: Command, where: Folders, tools: list[str]) -> Decision | None:
        """Ask where a part of a word names a file that a rule denies: `git show HEAD:.env`."""
        for word in command.words[1:]:
            for piece in (*path_pieces(word), *joined_values(word)):
                for place in where.places(piece) or ():
                    rule = self.files.is_denied_by_path(place, *tools)
                    if rule is not None:
                        reason = f"`{word.text}` may name a file that {rule.text} denies"
                        return Decision("ask", reason)
        return None

    def shown(self, command: Command, where: Folders) -> str:
        """Say which denied file a command may show without being given its name."""
        denied = [rule for rule in self.rules.about("deny", "Read") if not rule.is_bare]
        if not denied:
            return ""
        for each in (command, *command.inner):
            found = shown_by(each)
            name = " ".join(word.text for word in each.words[:2])
            if found.everything:
                return f"`{name}` may show a file that {denied[0].text} denies"
            for folder in found.folders:
                places = where.places(folder)
                if places is None or any(map(self._holds_denied, places)):
                    return f"`{name}` reads a folder with a file that {denied[0].text} denies"
        return ""

    def _holds_denied(self, place: Place) -> bool:
        """Whether a folder has a file in it that must not be read, or too many files to look."""
        if not os.path.isdir(place.real):
            return False
        return any(
            below is None or self.files.is_denied_by_path(below, "Read") is not None
            for below in files_below(place.real)
        )
