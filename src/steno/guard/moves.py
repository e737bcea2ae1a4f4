"""Where a script's relative paths may be: every folder that its `cd`s can lead to."""

import os
from itertools import permutations
from typing import Final

import msgspec

from steno.guard.paths import Place
from steno.guard.shell import Reading
from steno.guard.words import Command, Word

__all__ = ["Folders", "folders_of"]

_MOST: Final = 3
_LONGEST: Final = 8192
"""Twice what the kernel takes for a path; patterns are slow on longer ones."""


class Folders(msgspec.Struct, frozen=True):
    """The folders that a script's commands may run in."""

    all: tuple[str, ...]
    home: str
    """What `~` stands for."""
    lost: bool = False
    """Whether there may be others."""

    def places(self, word: Word) -> tuple[Place, ...] | None:
        """Return all places that a word may name; None when that cannot be said."""
        if not word.literal or len(word.text) > _LONGEST:
            return None
        if word.tilde and not self.home:
            return None
        text = self.home + word.text[1:] if word.tilde else word.text
        if self.lost and not os.path.isabs(text):
            return None
        return tuple(dict.fromkeys(Place.of(text, folder) for folder in self.all))


def folders_of(reading: Reading, cwd: str, home: str) -> Folders:
    """Return where the commands of a script may run, in whatever order it moves."""
    targets: list[str] = []
    for command in reading.every():
        texts = [word.text for word in command.words]
        if command.program in {"pushd", "popd"} or "-execdir" in texts or "-okdir" in texts:
            return Folders((cwd,), home, lost=True)
        if command.program == "cd":
            target = cd_target(command, home)
            if target is None or command.repeated:
                return Folders((cwd,), home, lost=True)
            targets.append(target)
    if len(targets) > _MOST:
        return Folders((cwd,), home, lost=True)
    found = {cwd: None}
    for count in range(1, len(targets) + 1):
        for order in permutations(targets, count):
            at = cwd
            for target in order:
                place = Place.of(target, at)
                # `cd` goes by names: `link/..` leads back, and not to what is above the target.
                found[os.path.realpath(place.path)] = None
                at = place.real
                found[at] = None
    return Folders(tuple(found), home)


def cd_target(command: Command, home: str) -> str | None:
    """Return where a `cd` goes; None when that is not known before it runs."""
    words = [word for word in command.words[1:] if word.text not in {"-P", "-L", "--"}]
    if len(words) != 1 or not words[0].literal:
        return None
    word = words[0]
    if word.text.startswith("-") or not word.text:
        return None
    if word.tilde and not home:
        return None
    return home + word.text[1:] if word.tilde else word.text
