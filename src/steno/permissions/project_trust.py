"""Trusted project directories, and the project settings that take effect.

Settings of an untrusted project may only restrict permissions. Those of a trusted project may do more, but never choose
the API endpoint, keys, or the search path for programs.
"""

import os
import re
from collections.abc import Mapping
from typing import Any, Final, cast

import msgspec

from steno.errors import BadRequest, Unwritable
from steno.format.client_settings import PROJECT_LAYERS, SettingsLayer
from steno.format.lenient_json import as_object
from steno.permissions.paths import ResolvedPath, relative_parts
from steno.permissions.shell.command import word_set
from steno.store.atomic import read_private, write_private
from steno.store.environment import home_dir, now

_FILE: Final = "trust.json"
_EFFECTIVE_FILES: Final = (
    "CLAUDE.md",
    "CLAUDE.local.md",
    "AGENTS.md",
    ".mcp.json",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".claude/CLAUDE.md",
    ".claude/commands",
    ".claude/agents",
    ".claude/skills",
    ".claude/rules",
)
"""Project files that take effect once the directory is trusted."""
_RESTRICTING_KEYS: Final = frozenset({"deny", "ask"})
# Keys that run programs or choose the endpoint and its key: never taken from a project.
_NEVER_FROM_PROJECT: Final = word_set(
    "apiKeyHelper awsAuthRefresh awsCredentialExport gcpAuthRefresh otelHeadersHelper"
    " forceLoginMethod forceLoginOrgUUID skipDangerousModePermissionPrompt"
    " enableAllProjectMcpServers enabledMcpjsonServers autoMemoryDirectory"
    " allowManagedHooksOnly proxyAuthHelper"
)
_NEVER_IN_PERMISSIONS: Final = frozenset({"additionalDirectories", "skipDangerousModePermissionPrompt", "defaultMode"})
# Values with which a project only restricts permissions.
_RESTRICTING_VALUES: Final = {
    "defaultMode": frozenset({"default", "plan"}),
    "disableBypassPermissionsMode": frozenset({"disable"}),
}
# Variables with which a project could choose programs, keys, hosts or directories.
_PROTECTED_PREFIXES: Final = (
    *("ANTHROPIC_", "CLAUDE_", "STENO_", "AWS_", "GOOGLE_", "VERTEX_", "LD_", "DYLD_", "GIT_"),
    *("BASH_", "OTEL_", "NODE_OPTIONS", "NODE_PATH", "NODE_TLS", "NODE_EXTRA", "PYTHON", "PERL"),
    *("RUBY", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_", "CURL_", "REQUESTS_"),
    *("NPM_CONFIG", "XDG_", "PROMPT_COMMAND", "SHELLOPTS", "BASHOPTS", "LESSOPEN", "LESSCLOSE"),
    *("SSH_", "GCONV_PATH", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA", "RUSTC", "CARGO_"),
)
# A model name is neither a location nor a key.
_MODEL_VARIABLE: Final = re.compile(r"ANTHROPIC_(DEFAULT_\w+_|SMALL_FAST_)?MODEL")
_PROTECTED_VARIABLES: Final = word_set(
    "PATH HOME USERPROFILE SHELL IFS ENV PS4 EDITOR VISUAL PAGER MANPAGER BROWSER TMPDIR TMP TEMP"
    " CDPATH LESS RIPGREP_CONFIG_PATH HOSTALIASES"
)


class TrustedSettings(msgspec.Struct, frozen=True):
    """The effective part of a settings file."""

    settings: dict[str, Any]
    held: tuple[str, ...] = ()
    """Names of the ignored settings, such as `permissions.allow` or `env.PATH`."""


def trusted_folders() -> tuple[str, ...]:
    """Return the trusted directories; none if the file cannot be read."""
    try:
        value = msgspec.json.decode(read_private(_FILE) or b"{}")
    except msgspec.DecodeError:
        return ()
    if not isinstance(value, dict):
        return ()
    folders = cast("dict[str, object]", value).get("folders")
    if not isinstance(folders, dict):
        return ()
    return tuple(name for name in cast("dict[str, object]", folders) if os.path.isabs(name))


def effective_files(folder: str) -> list[str]:
    """Return the files of a directory that take effect once it is trusted."""
    return [name for name in _EFFECTIVE_FILES if os.path.exists(os.path.join(folder, name))]


def is_trusted(folder: str) -> bool:
    """Whether a directory, or one above it, is trusted; never true for the home directory."""
    resolved_path = ResolvedPath.of(folder)
    if resolved_path.broken or _holds_home(resolved_path):
        return False
    for trusted in trusted_folders():
        trusted_path = ResolvedPath.of(trusted)
        # A directory that has become a symbolic link is not the one that was trusted.
        if trusted_path.real != trusted or _holds_home(trusted_path):
            continue
        if relative_parts(resolved_path.real_parts, trusted_path.real_parts) is not None:
            return True
    return False


def trust_folder(folder: str) -> None:
    """Record a directory as trusted.

    Raises:
        BadRequest: it is the home directory or above it, so everything would be trusted.
        Unwritable: the record cannot be written.
    """
    resolved_path = ResolvedPath.of(folder)
    if resolved_path.broken or _holds_home(resolved_path):
        raise BadRequest(f"cannot trust {folder}: it contains your home directory")
    _write_folders((*trusted_folders(), resolved_path.real))


def revoke_trust(folder: str) -> None:
    """Remove a directory from the trusted directories."""
    real = ResolvedPath.of(folder).real
    _write_folders(tuple(trusted for trusted in trusted_folders() if trusted != real))


def _write_folders(folders: tuple[str, ...]) -> None:
    body = {"version": 1, "folders": {name: {"time": now()} for name in dict.fromkeys(folders)}}
    if not write_private(_FILE, msgspec.json.encode(body) + b"\n"):
        raise Unwritable("cannot save the trusted directories")


def _holds_home(resolved_path: ResolvedPath) -> bool:
    return relative_parts(ResolvedPath.of(home_dir()).real_parts, resolved_path.real_parts) is not None


def filter_settings(settings: Mapping[str, Any], source: SettingsLayer, *, trusted: bool) -> TrustedSettings:
    """Return the effective part of a settings file, by its layer and whether the project is trusted."""
    if source not in PROJECT_LAYERS:
        return TrustedSettings(dict(settings))
    effective: dict[str, Any] = {}
    ignored: list[str] = []
    for key, value in settings.items():
        if key == "permissions":
            effective[key] = _filter_permissions(value, ignored, trusted=trusted)
        elif key == "env" and trusted:
            effective[key] = _filter_variables(value, ignored)
        elif trusted and key not in _NEVER_FROM_PROJECT:
            effective[key] = value
        else:
            ignored.append(key)
    return TrustedSettings({key: value for key, value in effective.items() if value not in ({}, None)}, tuple(ignored))


def _filter_permissions(value: object, ignored: list[str], *, trusted: bool) -> dict[str, Any]:
    effective: dict[str, Any] = {}
    for key, item in (as_object(value) or {}).items():
        is_restricting = key in _RESTRICTING_KEYS or (
            isinstance(item, str) and item in _RESTRICTING_VALUES.get(key, ())
        )
        # Trusting a directory does not mean that it may lift all limits.
        is_accept_edits = key == "defaultMode" and item == "acceptEdits"
        if is_restricting or (trusted and (is_accept_edits or key not in _NEVER_IN_PERMISSIONS)):
            effective[key] = item
        else:
            ignored.append(f"permissions.{key}")
    return effective


def _filter_variables(value: object, ignored: list[str]) -> dict[str, Any]:
    effective: dict[str, Any] = {}
    for name, item in (as_object(value) or {}).items():
        upper = name.upper()
        is_protected = upper in _PROTECTED_VARIABLES or upper.startswith(_PROTECTED_PREFIXES) or "CA_BUNDLE" in upper
        if is_protected and not _MODEL_VARIABLE.fullmatch(upper):
            ignored.append(f"env.{name}")
        else:
            effective[name] = item
    return effective
