"""Where things are on this machine. Environment only: nothing is looked up on disk or created."""

import os
import sys
from collections.abc import Mapping

from steno.errors import BadRequest

__all__ = ["config_dir", "demo_dir", "home_dir", "steno_home"]


def home_dir(env: Mapping[str, str] | None = None, platform: str = sys.platform) -> str:
    """Return the user's home folder.

    Raises:
        BadRequest: the environment does not name one.
    """
    env = os.environ if env is None else env
    names = ("USERPROFILE", "HOME") if platform == "win32" else ("HOME",)
    for name in names:
        if env.get(name):
            return env[name]
    raise BadRequest("there is no home folder", hint=f"set {names[0]}, or CLAUDE_CONFIG_DIR")


def config_dir(env: Mapping[str, str] | None = None, platform: str = sys.platform) -> str:
    """Return the client's config folder: `CLAUDE_CONFIG_DIR`, else `~/.claude`."""
    env = os.environ if env is None else env
    return env.get("CLAUDE_CONFIG_DIR") or _join(platform, home_dir(env, platform), ".claude")


def steno_home(env: Mapping[str, str] | None = None, platform: str = sys.platform) -> str:
    """Return the folder for steno's own files: `STENO_HOME`, else the system's place for data."""
    env = os.environ if env is None else env
    if env.get("STENO_HOME"):
        return env["STENO_HOME"]
    if platform == "win32":
        if env.get("LOCALAPPDATA"):
            return _join(platform, env["LOCALAPPDATA"], "steno")
        return _join(platform, home_dir(env, platform), "AppData", "Local", "steno")
    # The XDG specification asks that a relative value be ignored.
    if env.get("XDG_DATA_HOME", "").startswith("/"):
        return _join(platform, env["XDG_DATA_HOME"], "steno")
    if platform == "darwin":
        return _join(platform, home_dir(env, platform), "Library", "Application Support", "steno")
    return _join(platform, home_dir(env, platform), ".local", "share", "steno")


def demo_dir(env: Mapping[str, str] | None = None, platform: str = sys.platform) -> str:
    """Return the folder in which `steno demo` builds its made-up config folder."""
    return _join(platform, steno_home(env, platform), "demo")


def _join(platform: str, base: str, *names: str) -> str:
    separator = "\\" if platform == "win32" else "/"
    return separator.join((base.rstrip(separator), *names))
