"""Which project folders are trusted, and what a project's settings may do.

Before its folder is trusted, a project's settings may only narrow what is allowed. After that
they may do more, but never say where requests and keys go, or which programs are found.
"""

import os
import re
from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias, cast

import msgspec

from steno.errors import BadRequest, Unwritable
from steno.guard.paths import Place, inside_parts
from steno.guard.words import names
from steno.store.clock import now
from steno.store.kept import read_private, write_private
from steno.store.places import home_dir

__all__ = [
    "FROM_PROJECT",
    "Effect",
    "Source",
    "effect_of",
    "forget",
    "is_trusted",
    "own_files",
    "trust",
    "trusted_folders",
]

_FILE: Final = "trust.json"
_OWN: Final = (
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
"""What of a project has an effect once its folder is trusted."""
Source: TypeAlias = Literal["managed", "flags", "user", "project", "local"]
FROM_PROJECT: Final[frozenset[Source]] = frozenset({"project", "local"})
"""The sources that whoever wrote the project has a say in."""
_NARROWING: Final = frozenset({"deny", "ask"})
# These run something, or say who is talked to with which key: never a project's business.
_NEVER: Final = names(
    "apiKeyHelper awsAuthRefresh awsCredentialExport gcpAuthRefresh otelHeadersHelper"
    " forceLoginMethod forceLoginOrgUUID skipDangerousModePermissionPrompt"
    " enableAllProjectMcpServers enabledMcpjsonServers autoMemoryDirectory"
    " allowManagedHooksOnly proxyAuthHelper"
)
_NEVER_PERMITTED: Final = frozenset(
    {"additionalDirectories", "skipDangerousModePermissionPrompt", "defaultMode"}
)
# Values with which a project may only forbid something.
_NARROW_VALUES: Final = {
    "defaultMode": frozenset({"default", "plan"}),
    "disableBypassPermissionsMode": frozenset({"disable"}),
}
# Variables with which a project would choose programs, keys, hosts or folders of ours.
_VARIABLES: Final = (
    *("ANTHROPIC_", "CLAUDE_", "STENO_", "AWS_", "GOOGLE_", "VERTEX_", "LD_", "DYLD_", "GIT_"),
    *("BASH_", "OTEL_", "NODE_OPTIONS", "NODE_PATH", "NODE_TLS", "NODE_EXTRA", "PYTHON", "PERL"),
    *("RUBY", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_", "CURL_", "REQUESTS_"),
    *("NPM_CONFIG", "XDG_", "PROMPT_COMMAND", "SHELLOPTS", "BASHOPTS", "LESSOPEN", "LESSCLOSE"),
    *("SSH_", "GCONV_PATH", "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA", "RUSTC", "CARGO_"),
)
# A model's name is a choice, not a place or a key.
_CHOICES: Final = re.compile(r"ANTHROPIC_(DEFAULT_\w+_|SMALL_FAST_)?MODEL")
_EXACT: Final = names(
    "PATH HOME USERPROFILE SHELL IFS ENV PS4 EDITOR VISUAL PAGER MANPAGER BROWSER TMPDIR TMP TEMP"
    " CDPATH LESS RIPGREP_CONFIG_PATH HOSTALIASES"
)


class Effect(msgspec.Struct, frozen=True):
    """What of a settings file takes effect."""

    settings: dict[str, Any]
    held: tuple[str, ...] = ()
    """The names of what does not, as `permissions.allow` or `env.PATH`."""


def trusted_folders() -> tuple[str, ...]:
    """Return the folders that were trusted; none where the record cannot be read."""
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


def own_files(folder: str) -> list[str]:
    """Return what of a folder would have an effect if it was trusted."""
    return [name for name in _OWN if os.path.exists(os.path.join(folder, name))]


def is_trusted(folder: str) -> bool:
    """Whether a folder, or one above it, was trusted; the home folder never is."""
    place = Place.of(folder)
    if place.broken or _holds_home(place):
        return False
    for each in trusted_folders():
        above = Place.of(each)
        # A folder that has since become a link to elsewhere is not the one that was trusted.
        if above.real != each or _holds_home(above):
            continue
        if inside_parts(place.real_parts, above.real_parts) is not None:
            return True
    return False


def trust(folder: str) -> None:
    """Record that a folder is trusted.

    Raises:
        BadRequest: it is the home folder, or above it: everything would be trusted.
        Unwritable: it could not be recorded.
    """
    place = Place.of(folder)
    if place.broken or _holds_home(place):
        raise BadRequest(f"{folder} holds everything you have, so it is not trusted as a whole")
    _write((*trusted_folders(), place.real))


def forget(folder: str) -> None:
    """Take trust in a folder back."""
    real = Place.of(folder).real
    _write(tuple(each for each in trusted_folders() if each != real))


def _write(folders: tuple[str, ...]) -> None:
    body = {"version": 1, "folders": {each: {"time": now()} for each in dict.fromkeys(folders)}}
    if not write_private(_FILE, msgspec.json.encode(body) + b"\n"):
        raise Unwritable("which folders are trusted cannot be recorded")


def _holds_home(place: Place) -> bool:
    return inside_parts(Place.of(home_dir()).real_parts, place.real_parts) is not None


def effect_of(settings: Mapping[str, Any], source: Source, *, trusted: bool) -> Effect:
    """Return what of a settings file takes effect, by where it lies and whether that is trusted."""
    if source not in FROM_PROJECT:
        return Effect(dict(settings))
    taken: dict[str, Any] = {}
    held: list[str] = []
    for key, value in settings.items():
        if key == "permissions":
            taken[key] = _permissions(value, held, trusted=trusted)
        elif key == "env" and trusted:
            taken[key] = _variables(value, held)
        elif trusted and key not in _NEVER:
            taken[key] = value
        else:
            held.append(key)
    return Effect(
        {key: value for key, value in taken.items() if value not in ({}, None)}, tuple(held)
    )


def _permissions(value: object, held: list[str], *, trusted: bool) -> dict[str, Any]:
    taken: dict[str, Any] = {}
    for key, item in _object(value).items():
        narrow = key in _NARROWING or (
            isinstance(item, str) and item in _NARROW_VALUES.get(key, ())
        )
        # Whoever trusts a folder has not thereby agreed that it may lift all limits.
        edits = key == "defaultMode" and item == "acceptEdits"
        if narrow or (trusted and (edits or key not in _NEVER_PERMITTED)):
            taken[key] = item
        else:
            held.append(f"permissions.{key}")
    return taken


def _variables(value: object, held: list[str]) -> dict[str, Any]:
    taken: dict[str, Any] = {}
    for name, item in _object(value).items():
        upper = name.upper()
        guarded = upper in _EXACT or upper.startswith(_VARIABLES) or "CA_BUNDLE" in upper
        if guarded and not _CHOICES.fullmatch(upper):
            held.append(f"env.{name}")
        else:
            taken[name] = item
    return taken


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
