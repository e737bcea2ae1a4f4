"""What `.gitignore` files leave out of a working tree."""

import os
from typing import Any, Final

from steno.agent.file_states import pieces

__all__ = ["IGNORE", "Rules", "read_rules", "rules_above"]

IGNORE: Final = ".gitignore"
"""The name of a file of rules."""
_MOST_RULES: Final = 1 << 20
_MOST_SAID: Final = 10_000


class Rules:
    """What the files named `.gitignore` in and above a folder leave out of it."""

    def __init__(
        self, above: "Rules | None", levels: tuple[tuple[str, Any], ...], stamp: object
    ) -> None:
        self.above = above
        self.levels = levels
        self.stamp = stamp
        # Asked again for every name at every look, and slow to find out.
        self._said: dict[str, bool] = {}

    def leaves_out(self, path: str, *, is_folder: bool) -> bool:
        """Whether a file or folder is left out."""
        if not self.levels:
            return False
        named = path + "/" * is_folder
        if named not in self._said:
            if len(self._said) >= _MOST_SAID:
                self._said.clear()
            self._said[named] = self._find(named)
        return self._said[named]

    def _find(self, path: str) -> bool:
        for base, spec in reversed(self.levels):
            said = spec.check_file(path[len(base) :].lstrip("/")).include
            if said is not None:
                return bool(said)
        return False


def read_rules(folder: str) -> Any:
    """Return the rules in a folder; None where there are none that can be read."""
    from pathspec import GitIgnoreSpec

    try:
        data = b"".join(pieces(os.path.join(folder, IGNORE)))[:_MOST_RULES]
        return GitIgnoreSpec.from_lines(data.decode("utf-8", "replace").splitlines())
    except (OSError, ValueError):
        return None


def rules_above(project: str) -> "Rules | None":
    """Return what is said in the folders between the top of the repository and the project."""
    above: list[str] = []
    folder = project
    while not os.path.lexists(os.path.join(folder, ".git")):
        folder = os.path.dirname(folder)
        if folder == os.path.dirname(folder):
            return None
        above.append(folder)
    specs = [(folder, read_rules(folder)) for folder in reversed(above)]
    rules = Rules(None, tuple((folder, spec) for folder, spec in specs if spec is not None), None)
    # A project that is ignored itself is there to be worked on all the same.
    return None if rules.leaves_out(project, is_folder=True) else rules
