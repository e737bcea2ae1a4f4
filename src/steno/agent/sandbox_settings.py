"""What the settings say of the sandbox, under the names that Claude Code has for it.

Whoever owns the machine decides. A project may ask for a sandbox, and for a tighter one, but what
would let commands do more is left out where a project says it.
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from steno.agent.around_files import Note, object_in, strings
from steno.agent.settings_layers import OF_PROJECT, Source

__all__ = ["SandboxSettings", "sandbox_of"]

_ALL: Final = "*"


class SandboxSettings(msgspec.Struct, frozen=True, kw_only=True):
    """All layers in one."""

    enabled: bool = False
    demanded: bool = False
    """Whether it is the machine's manager who wants it: then nobody can do without."""
    required: bool = True
    """Whether nothing is run where there is no sandbox (`failIfUnavailable`)."""
    auto_allow: bool = True
    """Whether commands that are confined need no consent (`autoAllowBashIfSandboxed`)."""
    excluded: tuple[str, ...] = ()
    """Commands that run outside (`excludedCommands`)."""
    outside: bool = True
    """Whether the model may ask to run a command outside (`allowUnsandboxedCommands`)."""
    writable: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    hidden: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    network: bool = False
    """Whether every address may be reached; without a list of some there is no network."""


def sandbox_of(
    layers: Iterable[tuple[Source, dict[str, Any]]], notes: list[Note]
) -> SandboxSettings:
    """Lay the layers over each other, the highest first."""
    return _Layers([(source, object_in(top, "sandbox")) for source, top in layers], notes).merged()


class _Layers:
    """The part about the sandbox of every layer."""

    def __init__(self, layers: list[tuple[Source, dict[str, Any]]], notes: list[Note]) -> None:
        self.all = [(source, part) for source, part in layers if part]
        self.own = [(source, part) for source, part in self.all if source.layer not in OF_PROJECT]
        self.theirs = [(source, part) for source, part in self.all if source.layer in OF_PROJECT]
        self.notes = notes

    def merged(self) -> SandboxSettings:
        own = self._first("enabled")
        self._refuse("enabled", value=False)
        self._refuse("failIfUnavailable", value=False)
        self._refuse("allowUnsandboxedCommands", value=True)
        auto = self._first("autoAllowBashIfSandboxed")
        asked = any(part.get("enabled") is True for _, part in self.theirs)
        # A project that asks for a sandbox has not thereby got consent for every command.
        usual = bool(own) or not asked
        return SandboxSettings(
            enabled=bool(own) or asked,
            demanded=any(
                source.layer == "managed" and part.get("enabled") is True
                for source, part in self.own
            ),
            required=self._first("failIfUnavailable") is not False
            or self._theirs("failIfUnavailable", value=True),
            auto_allow=(usual if auto is None else auto)
            and not self._theirs("autoAllowBashIfSandboxed", value=False),
            excluded=self._owned("", "excludedCommands"),
            outside=all(part.get("allowUnsandboxedCommands") is not False for _, part in self.all),
            writable=self._owned("filesystem", "allowWrite"),
            kept=self._united("filesystem", "denyWrite"),
            hidden=self._united("filesystem", "denyRead"),
            shown=self._owned("filesystem", "allowRead"),
            network=self._network(),
        )

    def _first(self, key: str) -> bool | None:
        """Return what the highest layer says that is nobody's project."""
        for source, part in self.own:
            value = part.get(key)
            if isinstance(value, bool):
                return value
            if value is not None:
                self._note(source, key, "not the kind expected")
        return None

    def _theirs(self, key: str, *, value: bool) -> bool:
        return any(part.get(key) is value for _, part in self.theirs)

    def _refuse(self, key: str, *, value: bool) -> None:
        for source, part in self.theirs:
            if part.get(key) is value:
                self._note(source, key, "a project cannot loosen the sandbox")

    def _united(self, part: str, key: str) -> tuple[str, ...]:
        return _strings((top for _, top in self.all), part, key)

    def _owned(self, part: str, key: str) -> tuple[str, ...]:
        for source, top in self.theirs:
            if _strings([top], part, key):
                self._note(
                    source, f"{part}.{key}".strip("."), "a project cannot loosen the sandbox"
                )
        return _strings((top for _, top in self.own), part, key)

    def _network(self) -> bool:
        domains = self._owned("network", "allowedDomains")
        if domains and _ALL not in domains:
            words = (
                "`sandbox.network.allowedDomains` cannot be held to by name here, so commands in "
                'the sandbox have no network at all; "*" gives them all of it'
            )
            self.notes.append(Note("", words))
        return _ALL in domains

    def _note(self, source: Source, key: str, why: str) -> None:
        self.notes.append(Note(source.path, f"`sandbox.{key}` is left out: {why}"))


def _strings(tops: Iterable[dict[str, Any]], part: str, key: str) -> tuple[str, ...]:
    parts = ((object_in(top, part) if part else top) for top in tops)
    return tuple(dict.fromkeys(item for each in parts for item in strings(each.get(key))))
