"""Claude Code's settings files and MCP configuration: permission rules, hooks and servers of one file.

Values of an unexpected type count as missing. The precedence of layers, what a project may set and which servers start
are decided by the agent (`agent/config/settings.py`, `agent/mcp/connections.py`). `read_settings` masks secrets for
display.
"""

import re
from typing import Any, Final, Literal, TypeAlias, cast

import msgspec

from steno.format.lenient_json import as_object, get_object, get_text, object_items, string_items
from steno.format.sidecars import ReadResult, decode_json
from steno.format.source import Damage, Span

SettingsLayer: TypeAlias = Literal["managed", "flags", "user", "project", "local"]
PROJECT_LAYERS: Final[frozenset[SettingsLayer]] = frozenset({"project", "local"})
"""Layers that the author of a project controls."""
USER_SETTINGS_FILE: Final = "settings.json"
"""Name of the user settings file in the config directory."""
PROJECT_SETTINGS_FILES: Final = {"project": ".claude/settings.json", "local": ".claude/settings.local.json"}
"""Paths of the project settings files, relative to the project."""
PROJECT_SERVERS_FILE: Final = ".mcp.json"
"""Name of the MCP configuration file in a project."""
STATE_FILE: Final = ".claude.json"
"""Name of Claude Code's state file, with MCP servers of the user and of projects."""
_DEFAULT_TIMEOUT: Final = 60.0


class PermissionRules(msgspec.Struct, frozen=True):
    """The permission rules of one settings file."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    directories: tuple[str, ...] = ()


def read_rules(settings: dict[str, Any]) -> PermissionRules:
    """Return the permission rules of a settings file."""
    permissions = get_object(settings, "permissions")
    keys = ("allow", "ask", "deny", "additionalDirectories")
    return PermissionRules(*(string_items(permissions.get(key)) for key in keys))


class HookCommand(msgspec.Struct, frozen=True, kw_only=True):
    """One hook of a settings file: a program that runs at an event."""

    event: str
    command: str
    """Shell command; empty if the hook cannot be run."""
    matcher: str = ""
    args: tuple[str, ...] | None = None
    """Arguments; if given, the command runs with them and without a shell."""
    timeout: float = _DEFAULT_TIMEOUT
    layer: SettingsLayer = "user"
    condition: str = ""
    """Permission rule (`if`) that the tool call must match."""
    background: bool = False
    """Whether the agent continues without waiting for the hook (`async`)."""
    kind: Any = "command"

    @property
    def can_run(self) -> bool:
        """Whether the hook is a command; other kinds are not supported."""
        return self.kind == "command" and bool(self.command)


def read_hooks(settings: dict[str, Any], layer: SettingsLayer = "user") -> list[HookCommand]:
    """Return the hooks of a settings file in order, including those that cannot be run."""
    return [
        _read_hook(event, get_text(group, "matcher"), entry, layer)
        for event, groups in get_object(settings, "hooks").items()
        for group in object_items(groups)
        for entry in object_items(group.get("hooks"))
    ]


def _read_hook(event: str, matcher: str, entry: dict[str, Any], layer: SettingsLayer) -> HookCommand:
    args = entry.get("args")
    return HookCommand(
        event=event,
        command=get_text(entry, "command"),
        matcher=matcher,
        args=None if args is None else string_items(args),
        timeout=_positive_number(entry.get("timeout")) or _DEFAULT_TIMEOUT,
        layer=layer,
        condition=get_text(entry, "if"),
        background=entry.get("async") is True,
        kind=entry.get("type", "command"),
    )


def _positive_number(value: Any) -> float:
    """Return a positive number; 0 for anything else, including integers too large for a float."""
    if not isinstance(value, int | float) or isinstance(value, bool) or value <= 0:
        return 0.0
    try:
        return float(value)
    except OverflowError:
        return 0.0


class ServerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """An MCP server as in a configuration file; `${NAME}` is not replaced."""

    name: str
    declared_type: Any = None
    """The `type` field, unchecked."""
    has_url: bool = False
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, Any] = {}
    url: str = ""
    headers: dict[str, Any] = {}
    timeout: float = 0.0
    """Seconds before a call is cancelled; 0 for the default."""


def read_servers(config: dict[str, Any]) -> list[ServerEntry]:
    """Return the MCP servers of a `.mcp.json`, of settings, or of a part of the state file."""
    servers: list[ServerEntry] = []
    for name, value in get_object(config, "mcpServers").items():
        fields = as_object(value) or {}
        servers.append(
            ServerEntry(
                name=name,
                declared_type=fields.get("type"),
                has_url="url" in fields,
                command=get_text(fields, "command"),
                args=string_items(fields.get("args")),
                env=get_object(fields, "env"),
                url=get_text(fields, "url"),
                headers=get_object(fields, "headers"),
                timeout=_positive_number(fields.get("timeout")) / 1000,
            )
        )
    return servers


def project_state(state: dict[str, Any], project: str) -> dict[str, Any]:
    """Return the state of a project in the state file."""
    return get_object(get_object(state, "projects"), project)


MASK: Final = "<masked>"
_SECRET: Final = re.compile(r"token|key|secret|passw|passphrase|credential|authorization|cookie", re.IGNORECASE)
_MAX_DEPTH: Final = 64


class Hook(msgspec.Struct, frozen=True):
    """A hook command for display."""

    event: str
    matcher: str = ""
    command: str = ""


class Settings(msgspec.Struct, frozen=True):
    """The main parts of a settings file, and the whole file as masked JSON."""

    model: str = ""
    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    hooks: tuple[Hook, ...] = ()
    env_names: tuple[str, ...] = ()
    masked: str = "{}"


def read_settings(raw: bytes) -> ReadResult[Settings | None]:
    """Read a settings file. Values of `env` and of keys with secret-like names are always masked."""
    value = decode_json(raw)
    if not isinstance(value, dict):
        message = "not JSON" if value is None else "JSON, but not an object"
        kind = "sidecar.not-json" if value is None else "sidecar.not-object"
        return None, (Damage(kind, Span(0, len(raw)), message),)
    top = cast("dict[str, Any]", value)
    rules = read_rules(top)
    masked = msgspec.json.encode(_mask_secrets(top, hide=False, depth=0))
    return (
        Settings(
            model=get_text(top, "model"),
            allow=rules.allow,
            ask=rules.ask,
            deny=rules.deny,
            hooks=tuple(Hook(hook.event, hook.matcher, hook.command) for hook in read_hooks(top)),
            env_names=tuple(get_object(top, "env")),
            masked=msgspec.json.format(masked, indent=2).decode(),
        ),
        (),
    )


def _mask_secrets(value: object, *, hide: bool, depth: int) -> object:
    """Copy a JSON value, masking every string and number below keys with secret-like names."""
    if depth > _MAX_DEPTH:
        return MASK
    if isinstance(value, dict):
        return {
            name: _mask_secrets(item, hide=hide or name == "env" or _is_secret_name(name), depth=depth + 1)
            for name, item in cast("dict[str, object]", value).items()
        }
    if isinstance(value, list):
        items = cast("list[object]", value)
        return [_mask_secrets(item, hide=hide, depth=depth + 1) for item in items]
    return value if not hide or value is None or isinstance(value, bool) else MASK


def _is_secret_name(name: str) -> bool:
    return _SECRET.search(name) is not None
