"""What an agent is put together from, as options and settings want it; what is amiss is noted."""

import os
from typing import Any

from steno.agent.definitions import Definition, discover_definitions
from steno.agent.hook_env import EnvFile
from steno.agent.mcp_servers import Server, find_servers
from steno.agent.options import Options
from steno.agent.settings import Settings, load_settings
from steno.agent.thinking import EFFORTS, thinking_for
from steno.errors import BadRequest
from steno.store.places import steno_home

__all__ = ["definitions", "effort", "env_file", "servers", "settings", "thinking"]


def env_file(options: Options, session: str) -> EnvFile:
    """Return the file in which hooks leave variables for a session."""
    return EnvFile(os.path.join(steno_home(options.env), "hook-env", f"{session}.sh"))


def settings(options: Options, notes: list[str]) -> Settings:
    """Return the settings that count."""
    found = load_settings(
        options.cwd, trusted=options.trusted, flags=options.settings, env=options.env
    )
    notes += map(str, found.notes)
    return found


def thinking(options: Options, found: Settings) -> dict[str, Any] | None:
    """Return how the model is to think."""
    return thinking_for(
        options.thinking,
        {**options.env, **found.env},
        always=found.always_thinking,
        max_tokens=options.max_tokens,
    )


def effort(options: Options, found: Settings) -> str:
    """Return how hard the model is to try.

    Raises:
        BadRequest: in a way that there is none of.
    """
    wanted = options.effort or found.effort
    if wanted and wanted not in EFFORTS:
        raise BadRequest(f"there is no effort {wanted!r}", hint=f"one of {', '.join(EFFORTS)}")
    return wanted


def servers(options: Options, found: Settings, notes: list[str]) -> tuple[Server, ...]:
    """Return the servers whose tools can be used."""
    known, more = find_servers(
        options.cwd,
        found,
        trusted=options.trusted,
        flags=options.mcp_config,
        strict=options.strict_mcp,
        env=options.env,
    )
    notes += map(str, more)
    return known


def definitions(options: Options, notes: list[str]) -> tuple[Definition, ...]:
    """Return the kinds of sub-agents."""
    known, more = discover_definitions(
        options.cwd, trusted=options.trusted, flags=options.agents, env=options.env
    )
    notes += map(str, more)
    return known
