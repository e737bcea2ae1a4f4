"""Settings: reads the layers like Claude Code and merges them, including hooks and sandbox.

managed  /etc/claude-code/managed-settings.json      highest
flags    from the command line, a file or JSON
local    .claude/settings.local.json
project  .claude/settings.json
user     settings.json in the config directory

A single value comes from the highest layer that has it, rules of all layers apply together, and hooks run
layer by layer. `permissions.project_trust` decides what a project may set, before and after its directory is
trusted; a project can never change where requests are sent, nor loosen the sandbox. A layer with invalid JSON
is empty, with a note.
"""

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from steno.agent.config.project_files import ConfigNote, parse_json, read_text
from steno.format.client_settings import (
    PROJECT_LAYERS,
    PROJECT_SETTINGS_FILES,
    USER_SETTINGS_FILE,
    HookCommand,
    PermissionRules,
    SettingsLayer,
    read_hooks,
    read_rules,
)
from steno.format.lenient_json import get_object, string_items
from steno.permissions.project_trust import filter_settings
from steno.store.environment import config_dir

LAYER_ORDER: tuple[SettingsLayer, ...] = ("managed", "flags", "local", "project", "user")
MANAGED_SETTINGS_FILE: Final = "/etc/claude-code/managed-settings.json"


class LayerSource(msgspec.Struct, frozen=True):
    """The text of one layer and the path of its file."""

    layer: SettingsLayer
    path: str
    text: str


def read_sources(
    project: str,
    notes: list[ConfigNote],
    *,
    flags: str = "",
    env: Mapping[str, str] | None = None,
    managed: str = MANAGED_SETTINGS_FILE,
) -> list[LayerSource]:
    """Return the text of every existing layer, the highest first."""
    sources: list[LayerSource] = []
    paths: dict[SettingsLayer, Path] = {
        "managed": Path(managed),
        "local": Path(project, PROJECT_SETTINGS_FILES["local"]),
        "project": Path(project, PROJECT_SETTINGS_FILES["project"]),
        "user": Path(config_dir(os.environ if env is None else env), USER_SETTINGS_FILE),
    }
    for layer in LAYER_ORDER:
        if layer == "flags":
            sources += _read_flags(flags, notes)
            continue
        path = paths[layer]
        # If the project is the parent of the config directory, its settings file is that of the user.
        if layer == "project" and path == paths["user"]:
            continue
        text = read_text(path, notes)
        if text is not None:
            sources.append(LayerSource(layer, str(path), text))
    return sources


def _read_flags(flags: str, notes: list[ConfigNote]) -> list[LayerSource]:
    if not flags.strip():
        return []
    if flags.lstrip().startswith("{"):
        return [LayerSource("flags", "--settings", flags)]
    text = read_text(Path(flags), notes)
    if text is None:
        notes.append(ConfigNote(flags, "settings file not found"))
        return []
    return [LayerSource("flags", flags, text)]


_ALL_DOMAINS: Final = "*"


class SandboxSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Sandbox settings merged from all layers."""

    enabled: bool = False
    required_by_manager: bool = False
    """Whether managed settings require the sandbox: then it cannot be disabled."""
    fail_if_unavailable: bool = True
    """Whether commands fail if the sandbox is not available (`failIfUnavailable`)."""
    auto_allow: bool = True
    """Whether sandboxed commands need no approval (`autoAllowBashIfSandboxed`)."""
    excluded_commands: tuple[str, ...] = ()
    """Commands that run outside the sandbox (`excludedCommands`)."""
    allow_unsandboxed: bool = True
    """Whether the model may request a run outside the sandbox (`allowUnsandboxedCommands`)."""
    writable_paths: tuple[str, ...] = ()
    read_only_paths: tuple[str, ...] = ()
    hidden_paths: tuple[str, ...] = ()
    readable_paths: tuple[str, ...] = ()
    network: bool = False
    """Whether network access is unrestricted; otherwise commands have none."""


def merge_sandbox_settings(
    layers: Iterable[tuple[LayerSource, dict[str, Any]]], notes: list[ConfigNote]
) -> SandboxSettings:
    """Merge the sandbox settings of the layers, the highest first."""
    return _SandboxLayers(
        [(source, get_object(layer_settings, "sandbox")) for source, layer_settings in layers], notes
    ).merged()


class _SandboxLayers:
    """The sandbox sections of all layers."""

    def __init__(self, layers: list[tuple[LayerSource, dict[str, Any]]], notes: list[ConfigNote]) -> None:
        self.all = [(source, section) for source, section in layers if section]
        self.trusted_layers = [(source, part) for source, part in self.all if source.layer not in PROJECT_LAYERS]
        self.project_layers = [(source, part) for source, part in self.all if source.layer in PROJECT_LAYERS]
        self.notes = notes

    def merged(self) -> SandboxSettings:
        enabled = self._highest_value("enabled")
        self._note_refused("enabled", value=False)
        self._note_refused("failIfUnavailable", value=False)
        self._note_refused("allowUnsandboxedCommands", value=True)
        auto_allow = self._highest_value("autoAllowBashIfSandboxed")
        project_enabled = any(section.get("enabled") is True for _, section in self.project_layers)
        # A project that enables the sandbox must not thereby approve all commands.
        default_auto_allow = bool(enabled) or not project_enabled
        return SandboxSettings(
            enabled=bool(enabled) or project_enabled,
            required_by_manager=any(
                source.layer == "managed" and part.get("enabled") is True for source, part in self.trusted_layers
            ),
            fail_if_unavailable=self._highest_value("failIfUnavailable") is not False
            or self._project_sets("failIfUnavailable", value=True),
            auto_allow=(default_auto_allow if auto_allow is None else auto_allow)
            and not self._project_sets("autoAllowBashIfSandboxed", value=False),
            excluded_commands=self._strings_of_trusted("", "excludedCommands"),
            allow_unsandboxed=all(part.get("allowUnsandboxedCommands") is not False for _, part in self.all),
            writable_paths=self._strings_of_trusted("filesystem", "allowWrite"),
            read_only_paths=self._strings_of_all("filesystem", "denyWrite"),
            hidden_paths=self._strings_of_all("filesystem", "denyRead"),
            readable_paths=self._strings_of_trusted("filesystem", "allowRead"),
            network=self._network(),
        )

    def _highest_value(self, key: str) -> bool | None:
        """Return the value of the highest layer, ignoring the layers of the project."""
        for source, section in self.trusted_layers:
            value = section.get(key)
            if isinstance(value, bool):
                return value
            if value is not None:
                self._add_note(source, key, "wrong type")
        return None

    def _project_sets(self, key: str, *, value: bool) -> bool:
        return any(section.get(key) is value for _, section in self.project_layers)

    def _note_refused(self, key: str, *, value: bool) -> None:
        for source, section in self.project_layers:
            if section.get(key) is value:
                self._add_note(source, key, "a project cannot loosen the sandbox")

    def _strings_of_all(self, part: str, key: str) -> tuple[str, ...]:
        return _collect_strings((section for _, section in self.all), part, key)

    def _strings_of_trusted(self, part: str, key: str) -> tuple[str, ...]:
        for source, section in self.project_layers:
            if _collect_strings([section], part, key):
                self._add_note(source, f"{part}.{key}".strip("."), "a project cannot loosen the sandbox")
        return _collect_strings((top for _, top in self.trusted_layers), part, key)

    def _network(self) -> bool:
        domains = self._strings_of_trusted("network", "allowedDomains")
        if domains and _ALL_DOMAINS not in domains:
            message = (
                "`sandbox.network.allowedDomains` is not supported, so commands in "
                'the sandbox have no network access; "*" allows all domains'
            )
            self.notes.append(ConfigNote("", message))
        return _ALL_DOMAINS in domains

    def _add_note(self, source: LayerSource, key: str, reason: str) -> None:
        self.notes.append(ConfigNote(source.path, f"`sandbox.{key}` ignored: {reason}"))


def _collect_strings(sections: Iterable[dict[str, Any]], part: str, key: str) -> tuple[str, ...]:
    parts = ((get_object(section, part) if part else section) for section in sections)
    return tuple(dict.fromkeys(item for group in parts for item in string_items(group.get(key))))


T = TypeVar("T")


class LayeredRule(msgspec.Struct, frozen=True):
    """A permission rule or directory, with its layer."""

    text: str
    layer: SettingsLayer


class PermissionSettings(msgspec.Struct, frozen=True):
    """Permission rules and modes of all layers."""

    allow: tuple[LayeredRule, ...] = ()
    ask: tuple[LayeredRule, ...] = ()
    deny: tuple[LayeredRule, ...] = ()
    directories: tuple[LayeredRule, ...] = ()
    default_mode: str = ""
    bypass_disabled: bool = False


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """The merged settings. `origins` maps the key of each single value (also `env.NAME`) to its layer."""

    permissions: PermissionSettings = PermissionSettings()
    model: str = ""
    env: dict[str, str] = {}
    hooks: tuple[HookCommand, ...] = ()
    output_style: str = ""
    language: str = ""
    """The language of answers; empty for the language of the prompt."""
    always_thinking: bool = False
    effort: str = ""
    auto_compact: bool = True
    enable_all_project_mcp: bool = False
    enabled_mcpjson: tuple[str, ...] = ()
    disabled_mcpjson: tuple[str, ...] = ()
    mcp_servers: dict[str, Any] = {}
    sandbox: SandboxSettings = SandboxSettings()
    status_line: str = ""
    """The command of the console's status line; empty for none or if hooks are disabled."""
    notification_channel: str = ""
    """The notification channel of the console (`preferredNotifChannel`); empty for the default."""
    origins: dict[str, SettingsLayer] = {}
    notes: tuple[ConfigNote, ...] = ()


def load_settings(
    project: str,
    *,
    trusted: bool,
    flags: str = "",
    env: Mapping[str, str] | None = None,
    managed: str = MANAGED_SETTINGS_FILE,
) -> Settings:
    """Read and merge the settings for a project; `flags` is a path or JSON."""
    notes: list[ConfigNote] = []
    sources = read_sources(project, notes, flags=flags, env=env, managed=managed)
    return merge_settings(sources, trusted=trusted, notes=tuple(notes))


# Merging


def merge_settings(sources: Iterable[LayerSource], *, trusted: bool, notes: tuple[ConfigNote, ...] = ()) -> Settings:
    """Merge the layers; of a project's settings, only what `permissions.project_trust` permits."""
    merge_notes = list(notes)
    layers: list[tuple[LayerSource, dict[str, Any]]] = []
    for source in sorted(sources, key=lambda source: LAYER_ORDER.index(source.layer)):
        parsed = parse_json(source.text, source.path, merge_notes)
        effect = filter_settings(parsed, source.layer, trusted=trusted)
        reason = "a project cannot set it" if trusted else "the directory is not trusted"
        merge_notes += [ConfigNote(source.path, f"`{name}` ignored: {reason}") for name in effect.held]
        layers.append((source, effect.settings))
    return _SettingsMerger(layers, merge_notes).merged()


class _SettingsMerger:
    """Merges values from the layers, the highest first."""

    def __init__(self, layers: list[tuple[LayerSource, dict[str, Any]]], notes: list[ConfigNote]) -> None:
        self.layers = layers
        self.notes = notes
        self.origins: dict[str, SettingsLayer] = {}

    def merged(self) -> Settings:
        return Settings(
            permissions=self._permissions(),
            model=self._highest_value("model", str, ""),
            env=self._env(),
            hooks=self._hooks(),
            output_style=self._highest_value("outputStyle", str, ""),
            language=self._highest_value("language", str, ""),
            always_thinking=self._highest_value("alwaysThinkingEnabled", bool, False),
            effort=self._highest_value("effortLevel", str, ""),
            status_line=self._status_line(),
            notification_channel=self._highest_value("preferredNotifChannel", str, ""),
            auto_compact=self._highest_value("autoCompactEnabled", bool, True),
            enable_all_project_mcp=self._highest_value("enableAllProjectMcpServers", bool, False),
            enabled_mcpjson=self._all_strings("enabledMcpjsonServers"),
            disabled_mcpjson=self._all_strings("disabledMcpjsonServers"),
            mcp_servers=self._mcp_servers(),
            sandbox=merge_sandbox_settings(self.layers, self.notes),
            origins=self.origins,
            notes=tuple(self.notes),
        )

    def _highest_value(self, key: str, expected_type: type[T], default: T) -> T:
        for source, layer_settings in self.layers:
            value: object = layer_settings.get(key)
            if value is None:
                continue
            if isinstance(value, expected_type):
                self.origins[key] = source.layer
                return value
            self.notes.append(ConfigNote(source.path, f"`{key}` ignored: wrong type"))
        return default

    def _all_strings(self, key: str) -> tuple[str, ...]:
        return tuple(
            dict.fromkeys(item for _, layer_settings in self.layers for item in string_items(layer_settings.get(key)))
        )

    def _permissions(self) -> PermissionSettings:
        only_managed = any(top.get("allowManagedPermissionRulesOnly") is True for top in self._managed_layers())
        layers: list[tuple[SettingsLayer, PermissionRules]] = [
            (source.layer, read_rules(top))
            for source, top in self.layers
            if source.layer == "managed" or not only_managed
        ]

        def all_rules(select: Callable[[PermissionRules], tuple[str, ...]]) -> tuple[LayeredRule, ...]:
            # Of duplicate rules, keep the one of the highest layer.
            rules_by_text: dict[str, LayeredRule] = {}
            for layer, rules in layers:
                for text in select(rules):
                    rules_by_text.setdefault(text, LayeredRule(text, layer))
            return tuple(rules_by_text.values())

        bypass_disabled = any(
            get_object(top, "permissions").get("disableBypassPermissionsMode") == "disable" for _, top in self.layers
        )
        return PermissionSettings(
            allow=all_rules(lambda rules: rules.allow),
            ask=all_rules(lambda rules: rules.ask),
            deny=all_rules(lambda rules: rules.deny),
            directories=all_rules(lambda rules: rules.directories),
            default_mode=self._default_mode(),
            bypass_disabled=bypass_disabled,
        )

    def _default_mode(self) -> str:
        for source, layer_settings in self.layers:
            mode = get_object(layer_settings, "permissions").get("defaultMode")
            if not isinstance(mode, str):
                continue
            self.origins["permissions.defaultMode"] = source.layer
            return mode
        return ""

    def _env(self) -> dict[str, str]:
        env: dict[str, str] = {}
        for source, layer_settings in self.layers:
            for name, value in get_object(layer_settings, "env").items():
                if name not in env and not isinstance(value, dict | list) and value is not None:
                    env[name] = _environment_value(value)
                    self.origins[f"env.{name}"] = source.layer
        return env

    def _managed_layers(self) -> list[dict[str, Any]]:
        return [layer_settings for source, layer_settings in self.layers if source.layer == "managed"]

    def _hooks(self) -> tuple[HookCommand, ...]:
        """Return the enabled hooks; managed hooks can only be disabled by managed settings."""
        only_managed = any(
            layer_settings.get("allowManagedHooksOnly") is True for layer_settings in self._managed_layers()
        )
        if any(top.get("disableAllHooks") is True for top in self._managed_layers()):
            return ()
        all_disabled = any(top.get("disableAllHooks") is True for _, top in self.layers)
        hooks: list[HookCommand] = []
        for source, top in self.layers:
            if source.layer != "managed" and (all_disabled or only_managed):
                continue
            for hook in read_hooks(top, source.layer):
                if hook.can_run:
                    hooks.append(hook)
                else:
                    message = f"`{hook.event}` hook ignored: no command to run (type `{hook.kind}`)"
                    self.notes.append(ConfigNote(source.path, message))
        return tuple(hooks)

    def _status_line(self) -> str:
        if any(layer_settings.get("disableAllHooks") is True for _, layer_settings in self.layers):
            return ""
        for source, top in self.layers:
            command = get_object(top, "statusLine").get("command")
            if isinstance(command, str) and command.strip():
                self.origins["statusLine"] = source.layer
                return command
        return ""

    def _mcp_servers(self) -> dict[str, Any]:
        servers: dict[str, Any] = {}
        for source, layer_settings in self.layers:
            for name, value in get_object(layer_settings, "mcpServers").items():
                if servers.setdefault(name, value) is value:
                    self.origins[f"mcpServers.{name}"] = source.layer
        return servers


def _environment_value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
