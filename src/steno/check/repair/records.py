"""What the records that a repair adds have in common."""

from typing import Any, Final

__all__ = ["envelope_of"]

_SHARED: Final = ("userType", "entrypoint", "cwd", "sessionId", "version", "gitBranch")


def envelope_of(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that a new record shares with one beside it."""
    return {key: fields[key] for key in _SHARED if key in fields}
