"""Export formats and levels of detail, as the command line offers them; imports nothing heavy."""

from typing import Final, Literal, get_args

ExportFormat = Literal["html", "markdown", "json", "messages", "steps", "parquet", "txt"]
FORMATS: Final[tuple[ExportFormat, ...]] = get_args(ExportFormat)

ExportLevel = Literal["full", "high", "low", "minimal", "prompts"]
"""full: everything; high: all but notes and hooks; low: steps as one line each; minimal: prompts and
answers; prompts: what was asked."""
LEVELS: Final[tuple[ExportLevel, ...]] = get_args(ExportLevel)
