"""The configured MCP servers.

They come from `.mcp.json` of the project, from `.claude.json` and the settings of the user, and
from files or JSON on the command line. One in `.mcp.json` starts only in a trusted directory and
if the user has approved it by name.
"""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import msgspec

from steno.agent.config.project_files import ConfigNote, parse_json, read_text
from steno.agent.config.settings import Settings
from steno.format.client_settings import (
    PROJECT_LAYERS,
    PROJECT_SERVERS_FILE,
    STATE_FILE,
    ServerEntry,
    project_state,
    read_servers,
)
from steno.store.environment import config_dir, home_dir

ServerScope: TypeAlias = Literal["flags", "local", "project", "user", "settings", "managed"]
KEY_VARIABLE_PATTERN: Final = re.compile(r"ANTHROPIC_(API_KEY|AUTH_TOKEN|CUSTOM_HEADERS)|CLAUDE_CODE_OAUTH.*")
"""The names in the environment that hold the user's key."""
_MANAGED_FILE: Final = "/etc/claude-code/managed-mcp.json"
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}")


class ServerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """A server, as its configuration describes it."""

    name: str
    kind: Literal["stdio", "http", "sse"]
    scope: ServerScope
    command: str = ""
    args: tuple[str, ...] = ()
    env: dict[str, str] = {}
    url: str = ""
    headers: dict[str, str] = {}
    timeout: float = 0.0
    """Seconds for a call; 0 for the common one."""


def find_servers(
    project: str,
    settings: Settings,
    *,
    trusted: bool,
    flags: Iterable[str] = (),
    strict: bool = False,
    env: Mapping[str, str] | None = None,
    managed: str = _MANAGED_FILE,
) -> tuple[tuple[ServerConfig, ...], tuple[ConfigNote, ...]]:
    """Return the servers that may be started; of two with one name the nearest.

    Args:
        project: the folder of the session.
        settings: those that count there.
        trusted: whether the project's own may be started.
        flags: what `--mcp-config` gave: files or JSON.
        strict: whether those alone count.
        env: the environment, for `${NAME}` and the config folder.
        managed: the file of the machine's manager; where it is, it alone counts.
    """
    environment = os.environ if env is None else env
    notes: list[ConfigNote] = []
    managed_text = read_text(Path(managed), notes)
    layers: list[tuple[ServerScope, str, dict[str, Any]]] = []
    if managed_text is not None:
        layers.append(("managed", managed, parse_json(managed_text, managed, notes)))
    else:
        layers.extend(("flags", "--mcp-config", _read_flag(flag, notes)) for flag in flags)
        if not strict:
            layers += _file_layers(project, settings, environment, notes, trusted=trusted)
    servers: dict[str, ServerConfig] = {}
    for scope, path, config in layers:
        for entry in read_servers(config):
            if entry.name in servers or not _is_approved(entry.name, scope, settings, notes, path):
                continue
            server = _resolve_server(entry, scope, environment, path, notes)
            if server is not None:
                servers[entry.name] = server
    return tuple(servers.values()), tuple(notes)


def _file_layers(
    project: str, settings: Settings, env: Mapping[str, str], notes: list[ConfigNote], *, trusted: bool
) -> list[tuple[ServerScope, str, dict[str, Any]]]:
    layers: list[tuple[ServerScope, str, dict[str, Any]]] = []
    folder = config_dir(env) if env.get("CLAUDE_CONFIG_DIR") else home_dir(env)
    user_file = Path(folder, STATE_FILE)
    user_config = parse_json(read_text(user_file, notes, 64 << 20) or "", str(user_file), notes)
    layers.append(("local", str(user_file), project_state(user_config, str(Path(project).absolute()))))
    project_file = Path(project, PROJECT_SERVERS_FILE)
    text = read_text(project_file, notes)
    if text is not None and not trusted:
        notes.append(ConfigNote(str(project_file), "left out: the folder is not trusted"))
    elif text is not None:
        layers.append(("project", str(project_file), parse_json(text, str(project_file), notes)))
    layers.append(("user", str(user_file), user_config))
    for name, value in settings.mcp_servers.items():
        layer = settings.origins.get(f"mcpServers.{name}", "user")
        # A project's own, wherever it wrote them, are agreed to by name.
        scope: ServerScope = "project" if layer in PROJECT_LAYERS else "settings"
        layers.append((scope, f"the settings ({layer})", {"mcpServers": {name: value}}))
    return layers


def _read_flag(flag: str, notes: list[ConfigNote]) -> dict[str, Any]:
    if flag.lstrip().startswith("{"):
        return parse_json(flag, "--mcp-config", notes)
    text = read_text(Path(flag), notes)
    if text is None:
        notes.append(ConfigNote(flag, "there is no such file for --mcp-config"))
        return {}
    return parse_json(text, flag, notes)


def _is_approved(name: str, scope: ServerScope, settings: Settings, notes: list[ConfigNote], path: str) -> bool:
    if scope != "project":
        return True
    if name in settings.disabled_mcpjson:
        return False
    if settings.enable_all_project_mcp or name in settings.enabled_mcpjson:
        return True
    message = f"the server `{name}` is not started: name it in `enabledMcpjsonServers` to agree to it"
    notes.append(ConfigNote(path, message))
    return False


def _resolve_server(
    entry: ServerEntry, scope: ServerScope, env: Mapping[str, str], path: str, notes: list[ConfigNote]
) -> ServerConfig | None:
    """Return a server with its variables replaced; None if it has neither a command nor an address."""

    def fill(text: object) -> str:
        filled_text, missing = expand_variables(str(text), env, hide_keys=scope == "project")
        notes.extend(
            ConfigNote(path, f"the server `{entry.name}` wants ${{{variable}}}, which is not set")
            for variable in missing
        )
        return filled_text

    kind = entry.declared_type or ("http" if entry.has_url else "stdio")
    if kind == "stdio" and entry.command:
        return ServerConfig(
            name=entry.name,
            kind="stdio",
            scope=scope,
            command=fill(entry.command),
            args=tuple(map(fill, entry.args)),
            env={key: fill(value) for key, value in entry.env.items()},
            timeout=entry.timeout,
        )
    if kind in ("http", "streamable-http", "sse") and entry.url:
        return ServerConfig(
            name=entry.name,
            kind="sse" if kind == "sse" else "http",
            scope=scope,
            url=fill(entry.url),
            headers={key: fill(value) for key, value in entry.headers.items()},
            timeout=entry.timeout,
        )
    notes.append(ConfigNote(path, f"the server `{entry.name}` is left out: no command and no address"))
    return None


def expand_variables(text: str, env: Mapping[str, str], *, hide_keys: bool = False) -> tuple[str, tuple[str, ...]]:
    """Put values in the place of `${NAME}` and `${NAME:-otherwise}`.

    Also returns the names that have no value; they stay as they are written. With `hide_keys` the
    user's key is no value: a project must not send it anywhere.
    """
    missing: list[str] = []

    def value(match: re.Match[str]) -> str:
        variable = None if hide_keys and KEY_VARIABLE_PATTERN.fullmatch(match[1]) else env.get(match[1])
        if variable is not None and (variable or match[2] is None):
            return variable
        if match[2] is not None:
            return match[2]
        missing.append(match[1])
        return match[0]

    return _VARIABLE.sub(value, text), tuple(missing)
