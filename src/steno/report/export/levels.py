"""In which formats a session is written, and how much of it is told."""

from typing import Final, Literal, get_args

__all__ = ["FORMATS", "LEVELS", "Format", "Level"]

Format = Literal["html", "markdown", "json", "messages", "steps", "parquet", "txt"]
FORMATS: Final[tuple[Format, ...]] = get_args(Format)

Level = Literal["full", "high", "low", "minimal", "prompts"]
"""full: everything; high: all but notes and hooks; low: steps as one line each; minimal: prompts and
answers; prompts: what was asked."""
LEVELS: Final[tuple[Level, ...]] = get_args(Level)
