"""Models by the names that people give them."""

from typing import Final

__all__ = ["DEFAULT_MODEL", "LARGE", "bare_model", "model_named"]

DEFAULT_MODEL: Final = "claude-opus-4-5-20251101"
LARGE: Final = "[1m]"
"""Behind a name it asks for the large window; the API does not know it as a part of the name."""
_NAMES: Final = {
    "default": DEFAULT_MODEL,
    "opus": DEFAULT_MODEL,
    "sonnet": "claude-sonnet-4-5-20250929",
    "haiku": "claude-haiku-4-5-20251001",
    "inherit": "",
}
"""`inherit` is the one that is asked anyway."""


def model_named(name: str) -> str:
    """Return the model that is meant by a name, be it a short one.

    >>> model_named("sonnet[1m]")
    'claude-sonnet-4-5-20250929[1m]'
    """
    bare = bare_model(name)
    found = _NAMES.get(bare.lower(), bare)
    return f"{found}{LARGE}" if found and bare != name else found


def bare_model(name: str) -> str:
    """Return a model's name as the API knows it.

    >>> bare_model("claude-sonnet-4-5-20250929[1M]")
    'claude-sonnet-4-5-20250929'
    """
    return name[: -len(LARGE)] if name.lower().endswith(LARGE) else name
