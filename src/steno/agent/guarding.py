"""The guard of an agent: its mode, its rules and its folders, from options and settings."""

import os
from collections.abc import Mapping

from steno.agent.options import Options
from steno.agent.settings import Permissions
from steno.errors import BadRequest
from steno.guard.decision import MODES, Mode
from steno.guard.judge import Guard
from steno.guard.rules import Layer, gather

__all__ = ["guard_for"]


def guard_for(options: Options, permissions: Permissions, env: Mapping[str, str]) -> Guard:
    """Return the guard; `env` is what the tools will see.

    Raises:
        BadRequest: there is no such mode, or it is forbidden here.
    """
    layers = [
        Layer(allow=options.allowed, deny=options.disallowed),
        Layer(
            allow=tuple(rule.text for rule in permissions.allow),
            ask=tuple(rule.text for rule in permissions.ask),
            deny=tuple(rule.text for rule in permissions.deny),
        ),
    ]
    home = env.get("HOME", "")
    rules = gather(layers, root=options.cwd, cwd=options.cwd, home=home)
    more = (*options.folders, *(rule.text for rule in permissions.directories))
    folders = (options.cwd, *(os.path.join(options.cwd, os.path.expanduser(f)) for f in more))
    return Guard(rules, _mode(options, permissions), options.cwd, folders, home=home)


def _mode(options: Options, permissions: Permissions) -> Mode:
    mode = options.mode or permissions.default_mode or "default"
    if mode not in MODES:
        where = "" if options.mode else "`permissions.defaultMode` of the settings: "
        raise BadRequest(
            f"{where}there is no permission mode {mode!r}", hint=f"one of {', '.join(MODES)}"
        )
    if mode == "bypassPermissions" and permissions.bypass_disabled:
        raise BadRequest("the settings of this machine forbid bypassPermissions")
    return mode
