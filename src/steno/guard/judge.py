"""The guard: says of every tool call whether it may be made.

guard = Guard(gather(layers, root=…, cwd=…, home=…), "default", cwd, (cwd,))
guard.judge("Bash", {"command": "git status && rm -rf x"}, cwd=cwd)   # ask, and why

Rules that deny come before rules that ask, and those before rules that allow. What is not
understood asks. Calls of `Bash` are read as bash reads them, so they must be run by bash.
"""

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, Final

import msgspec

from steno.errors import BadRequest
from steno.format.tool_catalogue import AGENT, SHELL, SKILL, facts_of
from steno.guard.commands import Commands
from steno.guard.decision import MODES, Decision, Mode
from steno.guard.denied_paths import TooManyFiles
from steno.guard.files import Files
from steno.guard.offers import offers_for_command, offers_for_path
from steno.guard.paths import Place
from steno.guard.rules import EDITS, READS, Layer, Rule, Rules, gather, tool_of
from steno.guard.told import told, told_folder
from steno.store.places import home_dir

__all__ = ["Guard"]

_NAMED_BY: Final[Mapping[str, tuple[str, ...]]] = {
    AGENT: ("subagent_type", "agent_type"),
    SKILL: ("skill", "command", "name"),
}
_PATHS: Final = ("file_path", "notebook_path", "path")


class Guard:
    """Judges tool calls by rules, mode and place."""

    def __init__(
        self,
        rules: Rules,
        mode: Mode,
        cwd: str,
        folders: Iterable[str],
        read_only_commands: Iterable[str] | None = None,
        *,
        home: str | None = None,
        confinable: bool = True,
    ) -> None:
        """Take the rules, the mode, the project's folder and all working folders.

        `home` is what the tools and bash will take `~` for: that of their environment.
        `confinable` says whether whoever runs commands can confine them.

        Raises:
            BadRequest: there is no such mode, or a folder is not absolute.
        """
        self.rules = rules
        self.mode: Mode = mode
        self.cwd = cwd
        self.folders = tuple(dict.fromkeys(folders))
        self._only = None if read_only_commands is None else frozenset(read_only_commands)
        self._home = _home() if home is None else home
        if mode not in MODES:
            modes = ", ".join(MODES)
            raise BadRequest(f"there is no permission mode {mode!r}", hint=f"one of {modes}")
        if not all(map(os.path.isabs, (cwd, *self.folders))):
            raise BadRequest("working folders must be absolute")
        self._files = Files(rules, mode, self.folders)
        self.confinable = confinable
        self._commands = Commands(
            rules, mode, self.folders, self._files, self._home, self._only, confinable
        )

    def judge(self, tool_name: str, given: dict[str, Any], *, cwd: str) -> Decision:
        """Say whether a tool may be called with what it is given, in a folder."""
        tool = tool_of(tool_name)
        said = self.says(tool, given, cwd)
        if said.verdict != "ask":
            return said
        if self.mode == "dontAsk":
            return Decision("deny", f"{said.reason}; in this mode nobody is asked", said.rule)
        if said.rule:
            return said
        offers = tuple(self._offers(tool, given, cwd))
        together = () if offers or tool != SHELL else tuple(self._together(given, cwd))
        return msgspec.structs.replace(said, offers=offers, together=together)

    def shown_in(self, folder: str) -> Callable[[str], bool]:
        """Return what says whether a search of a folder may show a name that it came upon there.

        Where the folder is, and whether it may be searched, was judged before; what counts here is
        whether some of what is in it is kept from being read.
        """
        real = os.path.realpath(folder)

        @lru_cache(maxsize=1)
        def denied() -> frozenset[tuple[int, int]] | None:
            try:
                return self._files.denied_files("Read")
            except TooManyFiles:
                return None

        def is_shown(name: str) -> bool:
            place = Place(os.path.join(folder, name), os.path.join(real, name))
            if self._files.hides(place):
                return False
            if not self.rules.about("deny", "Read") or not place.is_shared:
                return True
            status, found = os.lstat(place.real), denied()
            return found is not None and (status.st_dev, status.st_ino) not in found

        return is_shown

    def with_mode(self, mode: Mode) -> "Guard":
        """Return the same guard in another mode."""
        return self._like(self.rules, mode)

    def with_confinement(self, *, confinable: bool) -> "Guard":
        """Return the same guard for commands that can, or cannot, be confined."""
        return self._like(self.rules, self.mode, confinable=confinable)

    def with_rules(self, *allow: str) -> "Guard":
        """Return the same guard with more rules that allow."""
        added = gather([Layer(allow=allow)], root=self.cwd, cwd=self.cwd, home=self._home)
        rules = Rules(
            (*self.rules.allow, *added.allow),
            self.rules.ask,
            self.rules.deny,
            (*self.rules.problems, *added.problems),
        )
        return self._like(rules, self.mode)

    def _like(self, rules: Rules, mode: Mode, *, confinable: bool | None = None) -> "Guard":
        return Guard(
            rules,
            mode,
            self.cwd,
            self.folders,
            self._only,
            home=self._home,
            confinable=self.confinable if confinable is None else confinable,
        )

    def is_named_by(self, rule: str, tool: str, given: dict[str, Any]) -> bool:
        """Whether a rule names a call, or something that it runs."""
        layer = Layer(deny=(rule,))
        rules = gather([layer], root=self.cwd, cwd=self.cwd, home=home_dir())
        alone = Guard(rules, "default", self.cwd, self.folders, self._only)
        return alone.judge(tool, given, cwd=self.cwd).verdict == "deny"

    # Tools

    def says(self, tool: str, given: dict[str, Any], cwd: str) -> Decision:
        """Judge without offers, and before the mode has made a refusal of a question."""
        if tool == SHELL:
            command = given.get("command")
            if not isinstance(command, str):
                return Decision("ask", "there is no command in it")
            return self._commands.judge(command, cwd)
        if tool in EDITS:
            if not _path(given):
                return Decision("ask", "it does not say which file it changes")
            # All that are given are judged: which one counts is for the tool to say.
            places = [self._place(each, cwd) for each in _paths(given)]
            return _worst(places, [self._files.write(place, tool) for place in places])
        if tool in READS:
            return self._read(tool, given, cwd)
        if tool == "WebFetch":
            host = _host(given.get("url"))
            return self._named(tool, host, f"it fetches {host or 'an address that is unclear'}")
        name = next(
            (str(given[key]) for key in _NAMED_BY.get(tool, ()) if isinstance(given.get(key), str)),
            "",
        )
        return self._named(
            tool,
            name.removeprefix("/"),
            "" if facts_of(tool).permission == "free" else f"it calls {tool}",
        )

    def _read(self, tool: str, given: dict[str, Any], cwd: str) -> Decision:
        path = _path(given)
        if not path and tool == "Read":
            return Decision("ask", "it does not say which file it reads")
        places = [self._place(each, cwd) for each in _paths(given) or ["."]]
        pattern = given.get("pattern")
        if tool == "Glob" and isinstance(pattern, str):
            places = list(self._globbed(pattern, _paths(given) or ["."], cwd))
        return _worst(places, [self._files.read(place, tool) for place in places])

    def _globbed(self, pattern: str, paths: list[str], cwd: str) -> Iterator[Place]:
        """Yield the folders that a pattern is looked for in, and what it names in them."""
        for path in paths:
            try:
                folder, rest = told_folder(pattern, path, cwd, self._home)
            except (OSError, ValueError):
                folder, rest = pattern, os.pardir
            if os.pardir in rest.split("/"):
                yield Place(pattern, pattern, broken=True)
                continue
            yield Place.of(folder)
            fixed = re.split(r"[*?\[{\\]", rest, maxsplit=1)[0].lstrip("/")
            start = fixed if fixed == rest.lstrip("/") else fixed[: fixed.rfind("/") + 1]
            if start:
                yield Place.of(start, folder)

    def _place(self, path: str, cwd: str) -> Place:
        """Return the place that a tool will take a path for."""
        try:
            return Place.of(told(path, cwd, self._home))
        except (OSError, ValueError):
            return Place(path, path, broken=True)

    def _named(self, tool: str, name: str, ask: str) -> Decision:
        """Judge by name alone; without words to ask with, it is allowed."""
        below = tool == "WebFetch"
        for rule in self.rules.about("deny", tool):
            if rule.fits_name(name, below=below):
                return Decision("deny", f"the rule {rule.text} forbids it", rule.text)
        for rule in self.rules.about("ask", tool):
            if rule.fits_name(name, below=below):
                return Decision("ask", f"the rule {rule.text} asks", rule.text)
        for rule in self.rules.about("allow", tool):
            if self._allows(rule, name):
                return Decision("allow", f"the rule {rule.text} allows it", rule.text)
        if self.mode == "bypassPermissions":
            return Decision("allow", "permissions are bypassed")
        return Decision("ask", ask) if ask else Decision("allow", "it changes nothing by itself")

    @staticmethod
    def _allows(rule: Rule, name: str) -> bool:
        return bool(name or not rule.name) and rule.fits_name(name)

    # Offers

    def _offers(self, tool: str, given: dict[str, Any], cwd: str) -> Iterator[str]:
        """Yield the rules under which this very call would be allowed."""
        for offer in dict.fromkeys(self._candidates(tool, given, cwd)):
            if self.with_rules(offer).says(tool, given, cwd).verdict == "allow":
                yield offer

    def _together(self, given: dict[str, Any], cwd: str) -> list[str]:
        """Return the narrowest rules under which all parts of a command would be allowed."""
        narrowest = [next(offers, "") for offers in self._by_part(given, cwd)]
        rules = list(dict.fromkeys(narrowest))
        if len(rules) < len(("one", "another")) or "" in rules:
            return []
        allowed = self.with_rules(*rules).says(SHELL, given, cwd).verdict == "allow"
        return rules if allowed else []

    def _by_part(self, given: dict[str, Any], cwd: str) -> Iterator[Iterator[str]]:
        """Yield the rules for each part of a command that nothing allows."""
        script = given.get("command")
        for command in self._commands.unallowed(script, cwd) if isinstance(script, str) else []:
            inner = command
            while inner.transparent and inner.inner:
                inner = inner.inner[0]
            yield offers_for_command(inner)

    def _candidates(self, tool: str, given: dict[str, Any], cwd: str) -> Iterator[str]:
        if tool == SHELL:
            yield from next(self._by_part(given, cwd), ())
        elif tool in EDITS | READS:
            yield from offers_for_path(self._place(_path(given) or ".", cwd), tool, self.cwd)
        elif tool == "WebFetch":
            host = _host(given.get("url"))
            if host:
                yield f"WebFetch(domain:{host})"
        elif tool.startswith("mcp__") and re.fullmatch(r"[\w-]+", tool):
            yield tool
            yield tool[: tool.index("__", len("mcp__"))] if "__" in tool[len("mcp__") :] else tool
        elif facts_of(tool).permission != "free" and re.fullmatch(r"\w+", tool):
            yield tool


def _path(given: dict[str, Any]) -> str:
    return next(iter(_paths(given)), "")


def _paths(given: dict[str, Any]) -> list[str]:
    found = (given.get(key) for key in _PATHS)
    return [path for path in found if isinstance(path, str) and path]


def _worst(places: list[Place], said: list[Decision]) -> Decision:
    """Return the strictest of decisions, with all the places that were judged."""
    order = {"deny": 0, "ask": 1, "allow": 2}
    strictest = min(said, key=lambda each: order[each.verdict])
    return msgspec.structs.replace(strictest, paths=tuple(place.real for place in places))


def _home() -> str:
    with suppress(BadRequest):
        return home_dir()
    return ""


def _host(url: object) -> str:
    """Return the host that an address leads to; nothing where readers of it could disagree."""
    if not isinstance(url, str) or re.search(r"[\\\s\x00-\x1f\x7f@]", url):
        return ""
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
    except ValueError:
        return ""
    if parts.scheme not in {"http", "https"} or not re.fullmatch(r"[a-z0-9.:-]+", host):
        return ""
    return host.rstrip(".")
