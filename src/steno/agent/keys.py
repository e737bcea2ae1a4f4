"""Keys in the environment: what no program, hook or server gets to see."""

from collections.abc import Mapping
from typing import Final

__all__ = ["SECRETS", "without_keys"]

SECRETS: Final = (
    *("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS"),
    *("CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_OAUTH_REFRESH_TOKEN"),
)
"""The variables that hold a key."""
_SHORTEST: Final = 8


def without_keys(env: Mapping[str, str]) -> dict[str, str]:
    """Return an environment without keys, under whatever names they stand in it.

    >>> without_keys({"ANTHROPIC_API_KEY": "k3y-of-ada", "COPY": "k3y-of-ada", "TERM": "x"})
    {'TERM': 'x'}
    """
    keys = [env[name] for name in SECRETS if len(env.get(name, "")) >= _SHORTEST]
    return {
        name: value
        for name, value in env.items()
        if name not in SECRETS and not any(key in value for key in keys)
    }
