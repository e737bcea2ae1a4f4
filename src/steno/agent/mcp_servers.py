"""Which servers of the Model Context Protocol there are.

They stand in `.mcp.json` of the project, in `.claude.json` and the settings of the user, and in
files or JSON that the command line gives. One in `.mcp.json` starts only in a trusted folder and
when the user has agreed to it by name.
"""

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import msgspec

from steno.agent.around_files import Note, object_in, parse_json, read_text, strings
from steno.agent.settings import Settings
from steno.agent.settings_layers import OF_PROJECT
from steno.format.values import as_object
from steno.store.places import config_dir, home_dir

__all__ = ["SECRET", "Scope", "Server", "expanded", "find_servers"]

Scope: TypeAlias = Literal["flags", "local", "project", "user", "settings", "managed"]
SECRET: Final = re.compile(r"ANTHROPIC_(API_KEY|AUTH_TOKEN|CUSTOM_HEADERS)|CLAUDE_CODE_OAUTH.*")
"""The names in the environment that hold the user's key."""
_MANAGED: Final = "/etc/claude-code/managed-mcp.json"
_VARIABLE: Final = re.compile(r"\$\{([A-Za-z_]\w*)(?::-([^}]*))?\}")


class Server(msgspec.Struct, frozen=True, kw_only=True):
    """A server, as its configuration describes it."""

    name: str
    kind: Literal["stdio", "http", "sse"]
    scope: Scope
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
    managed: str = _MANAGED,
) -> tuple[tuple[Server, ...], tuple[Note, ...]]:
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
    around = os.environ if env is None else env
    notes: list[Note] = []
    ruled = read_text(Path(managed), notes)
    layers: list[tuple[Scope, str, dict[str, Any]]] = []
    if ruled is not None:
        layers.append(("managed", managed, parse_json(ruled, managed, notes)))
    else:
        layers.extend(("flags", "--mcp-config", _given(one, notes)) for one in flags)
        if not strict:
            layers += _of_files(project, settings, around, notes, trusted=trusted)
    found: dict[str, Server] = {}
    for scope, path, top in layers:
        for name, value in object_in(top, "mcpServers").items():
            if name in found or not _agreed(name, scope, settings, notes, path):
                continue
            server = _server(name, scope, as_object(value) or {}, around, path, notes)
            if server is not None:
                found[name] = server
    return tuple(found.values()), tuple(notes)


def _of_files(
    project: str, settings: Settings, env: Mapping[str, str], notes: list[Note], *, trusted: bool
) -> list[tuple[Scope, str, dict[str, Any]]]:
    layers: list[tuple[Scope, str, dict[str, Any]]] = []
    folder = config_dir(env) if env.get("CLAUDE_CONFIG_DIR") else home_dir(env)
    own = Path(folder, ".claude.json")
    top = parse_json(read_text(own, notes, 64 << 20) or "", str(own), notes)
    here = object_in(object_in(top, "projects"), str(Path(project).absolute()))
    layers.append(("local", str(own), here))
    shared = Path(project, ".mcp.json")
    text = read_text(shared, notes)
    if text is not None and not trusted:
        notes.append(Note(str(shared), "left out: the folder is not trusted"))
    elif text is not None:
        layers.append(("project", str(shared), parse_json(text, str(shared), notes)))
    layers.append(("user", str(own), top))
    for name, value in settings.mcp_servers.items():
        layer = settings.origin.get(f"mcpServers.{name}", "user")
        # A project's own, wherever it wrote them, are agreed to by name.
        scope: Scope = "project" if layer in OF_PROJECT else "settings"
        layers.append((scope, f"the settings ({layer})", {"mcpServers": {name: value}}))
    return layers


def _given(flag: str, notes: list[Note]) -> dict[str, Any]:
    if flag.lstrip().startswith("{"):
        return parse_json(flag, "--mcp-config", notes)
    text = read_text(Path(flag), notes)
    if text is None:
        notes.append(Note(flag, "there is no such file for --mcp-config"))
        return {}
    return parse_json(text, flag, notes)


def _agreed(name: str, scope: Scope, settings: Settings, notes: list[Note], path: str) -> bool:
    if scope != "project":
        return True
    if name in settings.disabled_mcpjson:
        return False
    if settings.enable_all_project_mcp or name in settings.enabled_mcpjson:
        return True
    words = f"the server `{name}` is not started: name it in `enabledMcpjsonServers` to agree to it"
    notes.append(Note(path, words))
    return False


def _server(
    name: str,
    scope: Scope,
    value: dict[str, Any],
    env: Mapping[str, str],
    path: str,
    notes: list[Note],
) -> Server | None:
    def fill(text: object) -> str:
        filled, missing = expanded(str(text), env, guarded=scope == "project")
        notes.extend(
            Note(path, f"the server `{name}` wants ${{{one}}}, which is not set") for one in missing
        )
        return filled

    kind: object = value.get("type") or ("http" if "url" in value else "stdio")
    kind = "http" if kind == "streamable-http" else kind
    command, url, timeout = value.get("command"), value.get("url"), value.get("timeout")
    seconds = timeout / 1000 if isinstance(timeout, int | float) and timeout > 0 else 0.0
    if kind == "stdio" and isinstance(command, str) and command:
        return Server(
            name=name,
            kind="stdio",
            scope=scope,
            command=fill(command),
            args=tuple(fill(one) for one in strings(value.get("args"))),
            env={key: fill(one) for key, one in object_in(value, "env").items()},
            timeout=seconds,
        )
    if kind in {"http", "sse"} and isinstance(url, str) and url:
        return Server(
            name=name,
            kind="sse" if kind == "sse" else "http",
            scope=scope,
            url=fill(url),
            headers={key: fill(one) for key, one in object_in(value, "headers").items()},
            timeout=seconds,
        )
    notes.append(Note(path, f"the server `{name}` is left out: no command and no address"))
    return None


def expanded(
    text: str, env: Mapping[str, str], *, guarded: bool = False
) -> tuple[str, tuple[str, ...]]:
    """Put values in the place of `${NAME}` and `${NAME:-otherwise}`.

    Also returns the names that have no value; they stay as they are written. With `guarded` the
    user's key is no value: a project must not send it anywhere.
    """
    missing: list[str] = []

    def value(match: re.Match[str]) -> str:
        known = None if guarded and SECRET.fullmatch(match[1]) else env.get(match[1])
        if known is not None and (known or match[2] is None):
            return known
        if match[2] is not None:
            return match[2]
        missing.append(match[1])
        return match[0]

    return _VARIABLE.sub(value, text), tuple(missing)
