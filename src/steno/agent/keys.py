"""Keys in the environment: what no program, hook or server gets to see."""

from collections.abc import Mapping
from typing import Final

__all__ = ["holding_keys", "without_keys"]

_SECRETS: Final = (
    *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS"),
    *("CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_OAUTH_REFRESH_TOKEN"),
)
_SHORTEST: Final = 8


def without_keys(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without keys, under whatever names they stand in it.

    >>> without_keys({"ANTHROPIC_API_KEY": "k3y-of-ada", "COPY": "k3y-of-ada", "TERM": "x"})
    {'TERM': 'x'}
    """
    held = holding_keys(env)
    return {name: value for name, value in env.items() if name not in held}


def holding_keys(env: Mapping[str, str]) -> tuple[str, ...]:
    """Return the names of the variables that hold a key, whatever they are called."""
    keys = [env[name] for name in _SECRETS if len(env.get(name, "")) >= _SHORTEST]
    return tuple(name for name in env if name in _SECRETS or any(key in env[name] for key in keys))
