"""The dialects that session files are written in."""

from typing import Literal, TypeAlias

__all__ = ["Dialect"]

Dialect: TypeAlias = Literal["claude", "spec-000", "spec-004"]
"""`claude` is what the real client writes; the others are published descriptions."""
