"""Whether a file may be read or written: rules first, then where it is."""

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

import msgspec

from steno.guard.decision import Decision, Mode
from steno.guard.denied_paths import TooManyFiles, denied_paths
from steno.guard.paths import Place, is_inside, why_protected, why_secret
from steno.guard.rules import Rule, Rules

__all__ = ["Files"]

_MOST_FILES: Final = 1_000_000


class Files(msgspec.Struct, frozen=True):
    """Judges places."""

    rules: Rules
    mode: Mode
    folders: tuple[str, ...]

    def read(self, place: Place, tool: str = "Read") -> Decision:
        """Say whether a place may be read."""
        said = self._forbidden(place, tool) or self._forbidden_elsewhere(place, tool)
        if said is not None:
            return said
        secret = why_secret(place)
        if secret:
            return Decision("ask", f"{place.path} is not read without asking: {secret}")
        rule = self._allowing(place, tool)
        if rule is not None:
            return Decision("allow", f"the rule {rule.text} allows it", rule.text)
        if self.mode == "bypassPermissions":
            return Decision("allow", "permissions are bypassed")
        if is_inside(place, self.folders):
            return Decision("allow", "it reads inside the working folders")
        return Decision("ask", f"{place.path} is outside the working folders{_leads(place)}")

    def write(self, place: Place, tool: str = "Edit") -> Decision:
        """Say whether a place may be written."""
        said = self._forbidden(place, tool)
        if said is not None and said.verdict == "deny":
            return said
        if self.mode == "plan":
            return Decision("deny", "while a plan is made, nothing is written")
        if said is not None:
            return said
        unreadable = self._first(self.rules.about("deny", "Read"), place)
        if unreadable is not None:
            return Decision("ask", f"the rule {unreadable.text} keeps it from being read")
        protected = why_protected(place)
        if protected:
            return Decision("ask", f"{place.path} is not changed without asking: {protected}")
        rule = self._allowing(place, tool)
        if self.mode == "bypassPermissions":
            return Decision("allow", "permissions are bypassed")
        if place.is_shared:
            return Decision("ask", f"{place.path} is the same file as another (a hard link)")
        if rule is not None:
            return Decision("allow", f"the rule {rule.text} allows it", rule.text)
        inside = is_inside(place, self.folders)
        if inside and self.mode == "acceptEdits":
            return Decision("allow", "edits inside the working folders are accepted")
        where = "" if inside else f", and outside the working folders{_leads(place)}"
        return Decision("ask", f"{place.path} would be changed{where}")

    def is_denied(self, place: Place, tool: str) -> Rule | None:
        """Return the rule that forbids a place to a tool, if one does."""
        return self._first(self.rules.about("deny", tool), place)

    def is_denied_by_path(self, place: Place, *tools: str) -> Rule | None:
        """Return the rule that forbids a place by its path to one of some tools.

        A rule that forbids every call of a tool is not about the paths in a command.
        """
        rules = (rule for tool in tools for rule in self.rules.about("deny", tool))
        return self._first(tuple(rule for rule in rules if rule.paths), place)

    def denied_files(self, tool: str) -> frozenset[tuple[int, int]]:
        """Return the files that rules deny to a tool, by device and number.

        Raises:
            TooManyFiles: the working folders have too many files to look them up.
        """
        found: set[tuple[int, int]] = set()
        for path in denied_paths(self.rules, self.folders, tool=tool, most=_MOST_FILES):
            for name in (path, *_files_below(path)):
                with suppress(OSError):
                    status = os.lstat(name)
                    found.add((status.st_dev, status.st_ino))
        return frozenset(found)

    def is_denied_elsewhere(self, place: Place, tool: str) -> bool:
        """Whether a file has another name (a hard link) that rules deny to a tool."""
        if not place.is_shared or not self.rules.about("deny", tool):
            return False
        try:
            status = os.lstat(place.real)
            return (status.st_dev, status.st_ino) in self.denied_files(tool)
        except (OSError, TooManyFiles):
            return True

    def hides_some(self) -> bool:
        """Whether there are places that must not be read, or only when asked."""
        kinds = (*self.rules.about("deny", "Read"), *self.rules.about("ask", "Read"))
        return bool(kinds)

    def hides(self, place: Place) -> bool:
        """Whether a place is kept from being read, wherever it is."""
        return self._forbidden(place, "Read") is not None or bool(why_secret(place))

    def forbids(self) -> bool:
        """Whether there are rules that forbid files."""
        return bool(self.rules.about("deny", "Read") or self.rules.about("deny", "Edit"))

    def _forbidden(self, place: Place, tool: str) -> Decision | None:
        rule = self.is_denied(place, tool)
        if rule is not None:
            return Decision("deny", f"the rule {rule.text} forbids it", rule.text)
        if place.broken:
            return Decision("ask", "it is no path that a file can have")
        rule = self._first(self.rules.about("ask", tool), place)
        if rule is not None:
            return Decision("ask", f"the rule {rule.text} asks", rule.text)
        return None

    def _forbidden_elsewhere(self, place: Place, tool: str) -> Decision | None:
        if not self.is_denied_elsewhere(place, tool):
            return None
        return Decision("deny", f"{place.path} is the same file as one that a rule denies")

    def _first(self, rules: tuple[Rule, ...], place: Place) -> Rule | None:
        for rule in rules:
            if not rule.paths or any(pattern.touches(place) for pattern in rule.paths):
                return rule
        return None

    def _allowing(self, place: Place, tool: str) -> Rule | None:
        for rule in self.rules.about("allow", tool):
            if not rule.paths or any(pattern.covers(place) for pattern in rule.paths):
                return rule
        return None


def _files_below(path: str) -> Iterator[str]:
    for folder, _, names in os.walk(path):
        yield from (os.path.join(folder, name) for name in names)


def _leads(place: Place) -> str:
    return f" (it leads to {place.real})" if place.real != place.path else ""
