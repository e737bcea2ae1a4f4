"""Where a script's relative paths may be: every folder that its `cd`s can lead to."""

import os
from itertools import permutations
from typing import Final

import msgspec

from steno.guard.paths import Place
from steno.guard.shell import Reading
from steno.guard.words import Command, Word
from steno.store.places import home_dir

__all__ = ["Folders", "folders_of"]

_MOST: Final = 3


class Folders(msgspec.Struct, frozen=True):
    """The folders that a script's commands may run in."""

    all: tuple[str, ...]
    lost: bool = False
    """Whether there may be others."""

    def places(self, word: Word) -> tuple[Place, ...] | None:
        """Return all places that a word may name; None when that cannot be said."""
        if not word.literal or word.splits:
            return None
        text = home_dir() + word.text[1:] if word.tilde else word.text
        if self.lost and not os.path.isabs(text):
            return None
        return tuple(dict.fromkeys(Place.of(text, folder) for folder in self.all))


def folders_of(reading: Reading, cwd: str) -> Folders:
    """Return where the commands of a script may run, in whatever order it moves."""
    targets: list[str] = []
    for command in reading.every():
        texts = [word.text for word in command.words]
        if command.program in {"pushd", "popd"} or "-execdir" in texts or "-okdir" in texts:
            return Folders((cwd,), lost=True)
        if command.program == "cd":
            target = cd_target(command)
            if target is None or command.repeated:
                return Folders((cwd,), lost=True)
            targets.append(target)
    if len(targets) > _MOST:
        return Folders((cwd,), lost=True)
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
    return Folders(tuple(found))


def cd_target(command: Command) -> str | None:
    """Return where a `cd` goes; None when that is not known before it runs."""
    words = [word for word in command.words[1:] if word.text not in {"-P", "-L", "--"}]
    if len(words) != 1 or not words[0].literal or words[0].splits:
        return None
    word = words[0]
    if word.text.startswith("-") or not word.text:
        return None
    return home_dir() + word.text[1:] if word.tilde else word.text
