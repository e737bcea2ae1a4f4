"""The dialects that session files are written in."""

from typing import Final, Literal, TypeAlias

__all__ = ["MESSAGE_TYPES", "OPERATIONS", "OWN_TYPES", "ROLES", "SYSTEM_SUBTYPES", "Dialect"]

Dialect: TypeAlias = Literal["claude", "spec-000", "spec-004"]
"""`claude` is what the real client writes; the others are published descriptions."""
MESSAGE_TYPES: Final = frozenset(("human", "tool_result", "compact_prelude", "compact_recap"))
"""Types of messages that the real client does not write."""
OWN_TYPES: Final = MESSAGE_TYPES | {"compact_system"}
"""All types that the real client does not write."""
ROLES: Final = frozenset(("user", "assistant"))
"""Types of messages that the real client writes, and the dialects too."""
SYSTEM_SUBTYPES: Final = frozenset(("", "tool_result", "error", "meta"))
"""Subtypes of system records in a dialect."""
OPERATIONS: Final = frozenset(
    f"conversation_{name}" for name in ("compacting", "compacted", "restoring", "restored")
)
"""What a `compact_system` record may say."""
