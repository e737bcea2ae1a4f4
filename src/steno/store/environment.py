"""Directories and the current time, as set by environment variables.

Only environment variables are read, except by `archive_stamp`, which stats the archive's catalogue.
"""

import os
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from steno.errors import BadRequest

CONFIG_FILE: Final = "config.toml"
"""File name of the user's settings in steno's home directory."""


def home_dir(env: Mapping[str, str] | None = None, platform: str = sys.platform) -> str:
    """Return the user's home directory. Raises BadRequest if no environment variable names it."""
    env = os.environ if env is None else env
    names = ("USERPROFILE", "HOME") if platform == "win32" else ("HOME",)
    for name in names:
        if env.get(name):
            return env[name]
    raise BadRequest("home directory not set", hint=f"Set {names[0]} or CLAUDE_CONFIG_DIR.")


def config_dir(env: Mapping[str, str] | None = None, platform: str = sys.platform) -> str:
    """Return the config directory of Claude Code: `CLAUDE_CONFIG_DIR`, or `~/.claude`."""
    env = os.environ if env is None else env
    return env.get("CLAUDE_CONFIG_DIR") or _join_path(platform, home_dir(env, platform), ".claude")


def steno_home(env: Mapping[str, str] | None = None, platform: str = sys.platform) -> str:
    """Return steno's home directory: `STENO_HOME`, or a directory in the system's data directory."""
    env = os.environ if env is None else env
    if env.get("STENO_HOME"):
        return env["STENO_HOME"]
    if platform == "win32":
        if env.get("LOCALAPPDATA"):
            return _join_path(platform, env["LOCALAPPDATA"], "steno")
        return _join_path(platform, home_dir(env, platform), "AppData", "Local", "steno")
    # The XDG specification requires relative values to be ignored.
    if env.get("XDG_DATA_HOME", "").startswith("/"):
        return _join_path(platform, env["XDG_DATA_HOME"], "steno")
    if platform == "darwin":
        return _join_path(platform, home_dir(env, platform), "Library", "Application Support", "steno")
    return _join_path(platform, home_dir(env, platform), ".local", "share", "steno")


def demo_dir(env: Mapping[str, str] | None = None, platform: str = sys.platform) -> str:
    """Return the config directory that `steno demo` generates."""
    return _join_path(platform, steno_home(env, platform), "demo")


def _join_path(platform: str, base: str, *names: str) -> str:
    separator = "\\" if platform == "win32" else "/"
    return separator.join((base.rstrip(separator), *names))


def now() -> float:
    """Return the time in seconds: `STENO_NOW` if set, or the system time.

    Raises:
        BadRequest: `STENO_NOW` is not a valid time.
    """
    configured = os.environ.get("STENO_NOW", "")
    if not configured:
        return time.time()
    value = parse_time(configured)
    if value is None:
        raise BadRequest(
            f"STENO_NOW is not a valid time: {configured!r}", hint="Use a time such as 2026-11-15T12:00:00Z."
        )
    return value


def parse_time(text: str) -> float | None:
    """Return an ISO time in seconds since 1970, read as local time if it has no zone; None if invalid."""
    from datetime import datetime

    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


ARCHIVE_FOLDER: Final = "archive"
CATALOGUE_PATH: Final = (ARCHIVE_FOLDER, "sessions.jsonl")


def archive_stamp() -> str:
    """Return a string that changes when the archive changes; empty without an archive."""
    with suppress(BadRequest, OSError):
        status = os.stat(os.path.join(steno_home(), *CATALOGUE_PATH))
        return f"{status.st_mtime_ns} {status.st_size}"
    return ""
