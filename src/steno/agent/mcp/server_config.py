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

from steno.agent.config.project_files import ConfigNote, get_object, parse_json, read_text, string_items
from steno.agent.config.settings import PROJECT_LAYERS, Settings
from steno.format.lenient_json import as_object
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
        for name, value in get_object(config, "mcpServers").items():
            if name in servers or not _is_approved(name, scope, settings, notes, path):
                continue
            server = _parse_server(name, scope, as_object(value) or {}, environment, path, notes)
            if server is not None:
                servers[name] = server
    return tuple(servers.values()), tuple(notes)


def _file_layers(
    project: str, settings: Settings, env: Mapping[str, str], notes: list[ConfigNote], *, trusted: bool
) -> list[tuple[ServerScope, str, dict[str, Any]]]:
    layers: list[tuple[ServerScope, str, dict[str, Any]]] = []
    folder = config_dir(env) if env.get("CLAUDE_CONFIG_DIR") else home_dir(env)
    user_file = Path(folder, ".claude.json")
    user_config = parse_json(read_text(user_file, notes, 64 << 20) or "", str(user_file), notes)
    project_config = get_object(get_object(user_config, "projects"), str(Path(project).absolute()))
    layers.append(("local", str(user_file), project_config))
    project_file = Path(project, ".mcp.json")
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


def _parse_server(
    name: str, scope: ServerScope, value: dict[str, Any], env: Mapping[str, str], path: str, notes: list[ConfigNote]
) -> ServerConfig | None:
    def fill(text: object) -> str:
        filled_text, missing = expand_variables(str(text), env, hide_keys=scope == "project")
        notes.extend(
            ConfigNote(path, f"the server `{name}` wants ${{{variable}}}, which is not set") for variable in missing
        )
        return filled_text

    kind: object = value.get("type") or ("http" if "url" in value else "stdio")
    kind = "http" if kind == "streamable-http" else kind
    command, url, timeout = value.get("command"), value.get("url"), value.get("timeout")
    seconds = timeout / 1000 if isinstance(timeout, int | float) and timeout > 0 else 0.0
    if kind == "stdio" and isinstance(command, str) and command:
        return ServerConfig(
            name=name,
            kind="stdio",
            scope=scope,
            command=fill(command),
            args=tuple(fill(item) for item in string_items(value.get("args"))),
            env={key: fill(one) for key, one in get_object(value, "env").items()},
            timeout=seconds,
        )
    if kind in {"http", "sse"} and isinstance(url, str) and url:
        return ServerConfig(
            name=name,
            kind="sse" if kind == "sse" else "http",
            scope=scope,
            url=fill(url),
            headers={key: fill(one) for key, one in get_object(value, "headers").items()},
            timeout=seconds,
        )
    notes.append(ConfigNote(path, f"the server `{name}` is left out: no command and no address"))
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
