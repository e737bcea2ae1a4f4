"""The settings: all layers in one, as Claude Code reads them.

A single value comes from the highest layer that has one, rules of all layers count together, and
hooks run one layer after the other. What a project can never set is where requests go and with
which key. A file that is no JSON is a note, and its layer is empty.
"""

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import msgspec

from steno.agent.around_files import Note, object_in, parse_json, strings
from steno.agent.hook_settings import Hook, hooks_of
from steno.agent.sandbox_settings import SandboxSettings, sandbox_of
from steno.agent.settings_layers import LAYERS, MANAGED, Layer, Source, read_sources
from steno.guard.trust import effect_of

__all__ = ["Permissions", "Rule", "Settings", "load_settings", "merge"]

T = TypeVar("T")


class Rule(msgspec.Struct, frozen=True):
    """A permission rule or a folder, and the layer that it stands in."""

    text: str
    layer: Layer


class Permissions(msgspec.Struct, frozen=True):
    """What may be done unasked, what is asked, what never."""

    allow: tuple[Rule, ...] = ()
    ask: tuple[Rule, ...] = ()
    deny: tuple[Rule, ...] = ()
    directories: tuple[Rule, ...] = ()
    default_mode: str = ""
    bypass_disabled: bool = False


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """All layers in one. `origin` says which layer a single value came from (`env.NAME` too)."""

    permissions: Permissions = Permissions()
    model: str = ""
    env: dict[str, str] = {}
    hooks: tuple[Hook, ...] = ()
    output_style: str = ""
    language: str = ""
    """What the model answers in; empty for what it is asked in."""
    always_thinking: bool = False
    effort: str = ""
    auto_compact: bool = True
    enable_all_project_mcp: bool = False
    enabled_mcpjson: tuple[str, ...] = ()
    disabled_mcpjson: tuple[str, ...] = ()
    mcp_servers: dict[str, Any] = {}
    sandbox: SandboxSettings = SandboxSettings()
    status_line: str = ""
    """The command that writes the last line of a console; empty for none, and where hooks are off."""
    notices: str = ""
    """How a console tells that it waits (`preferredNotifChannel`); empty for as it sees fit."""
    origin: dict[str, Layer] = {}
    notes: tuple[Note, ...] = ()


def load_settings(
    project: str,
    *,
    trusted: bool,
    flags: str = "",
    env: Mapping[str, str] | None = None,
    managed: str = MANAGED,
) -> Settings:
    """Read and merge the settings that count in a project; `flags` is a path or JSON."""
    notes: list[Note] = []
    sources = read_sources(project, notes, flags=flags, env=env, managed=managed)
    return merge(sources, trusted=trusted, notes=tuple(notes))


# Merging


def merge(sources: Iterable[Source], *, trusted: bool, notes: tuple[Note, ...] = ()) -> Settings:
    """Lay the layers over each other; of a project's only what `guard.trust` lets have effect."""
    said = list(notes)
    layers: list[tuple[Source, dict[str, Any]]] = []
    for source in sorted(sources, key=lambda source: LAYERS.index(source.layer)):
        whole = parse_json(source.text, source.path, said)
        effect = effect_of(whole, source.layer, trusted=trusted)
        why = "a project cannot set it" if trusted else "the folder is not trusted"
        said += [Note(source.path, f"`{name}` is left out: {why}") for name in effect.held]
        layers.append((source, effect.settings))
    return _Merge(layers, said).settings()


class _Merge:
    """Picks every value out of the layers, the highest first."""

    def __init__(self, layers: list[tuple[Source, dict[str, Any]]], notes: list[Note]) -> None:
        self.layers = layers
        self.notes = notes
        self.origin: dict[str, Layer] = {}

    def settings(self) -> Settings:
        return Settings(
            permissions=self._permissions(),
            model=self._one("model", str, ""),
            env=self._env(),
            hooks=self._hooks(),
            output_style=self._one("outputStyle", str, ""),
            language=self._one("language", str, ""),
            always_thinking=self._one("alwaysThinkingEnabled", bool, False),
            effort=self._one("effortLevel", str, ""),
            status_line=self._status_line(),
            notices=self._one("preferredNotifChannel", str, ""),
            auto_compact=self._one("autoCompactEnabled", bool, True),
            enable_all_project_mcp=self._one("enableAllProjectMcpServers", bool, False),
            enabled_mcpjson=self._all("enabledMcpjsonServers"),
            disabled_mcpjson=self._all("disabledMcpjsonServers"),
            mcp_servers=self._servers(),
            sandbox=sandbox_of(self.layers, self.notes),
            origin=self.origin,
            notes=tuple(self.notes),
        )

    def _one(self, key: str, kind: type[T], otherwise: T) -> T:
        for source, top in self.layers:
            value: object = top.get(key)
            if value is None:
                continue
            if isinstance(value, kind):
                self.origin[key] = source.layer
                return value
            self.notes.append(Note(source.path, f"`{key}` is left out: not the kind expected"))
        return otherwise

    def _all(self, key: str) -> tuple[str, ...]:
        return tuple(
            dict.fromkeys(item for _, top in self.layers for item in strings(top.get(key)))
        )

    def _permissions(self) -> Permissions:
        layers = self.layers
        if any(top.get("allowManagedPermissionRulesOnly") is True for top in self._managed()):
            layers = [pair for pair in layers if pair[0].layer == "managed"]

        def rules(key: str) -> tuple[Rule, ...]:
            found: dict[str, Rule] = {}
            for source, top in layers:
                for text in strings(object_in(top, "permissions").get(key)):
                    found.setdefault(text, Rule(text, source.layer))
            return tuple(found.values())

        off = any(
            object_in(top, "permissions").get("disableBypassPermissionsMode") == "disable"
            for _, top in self.layers
        )
        return Permissions(
            allow=rules("allow"),
            ask=rules("ask"),
            deny=rules("deny"),
            directories=rules("additionalDirectories"),
            default_mode=self._mode(),
            bypass_disabled=off,
        )

    def _mode(self) -> str:
        for source, top in self.layers:
            mode = object_in(top, "permissions").get("defaultMode")
            if not isinstance(mode, str):
                continue
            self.origin["permissions.defaultMode"] = source.layer
            return mode
        return ""

    def _env(self) -> dict[str, str]:
        env: dict[str, str] = {}
        for source, top in self.layers:
            for name, value in object_in(top, "env").items():
                if name not in env and not isinstance(value, dict | list) and value is not None:
                    env[name] = _as_env(value)
                    self.origin[f"env.{name}"] = source.layer
        return env

    def _managed(self) -> list[dict[str, Any]]:
        return [top for source, top in self.layers if source.layer == "managed"]

    def _hooks(self) -> tuple[Hook, ...]:
        """Return the hooks that run: what a manager wants run nobody below can switch off."""
        only_managed = any(top.get("allowManagedHooksOnly") is True for top in self._managed())
        if any(top.get("disableAllHooks") is True for top in self._managed()):
            return ()
        off = any(top.get("disableAllHooks") is True for _, top in self.layers)
        return tuple(
            hook
            for source, top in self.layers
            if source.layer == "managed" or not (off or only_managed)
            for hook in hooks_of(source, object_in(top, "hooks"), self.notes)
        )

    def _status_line(self) -> str:
        if any(top.get("disableAllHooks") is True for _, top in self.layers):
            return ""
        for source, top in self.layers:
            command = object_in(top, "statusLine").get("command")
            if isinstance(command, str) and command.strip():
                self.origin["statusLine"] = source.layer
                return command
        return ""

    def _servers(self) -> dict[str, Any]:
        servers: dict[str, Any] = {}
        for source, top in self.layers:
            for name, value in object_in(top, "mcpServers").items():
                if servers.setdefault(name, value) is value:
                    self.origin[f"mcpServers.{name}"] = source.layer
        return servers


def _as_env(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
