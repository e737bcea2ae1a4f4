"""Export formats and levels of detail, without slow imports because the command line loads this module at startup."""

from typing import Final, Literal, get_args

ExportFormat = Literal["html", "markdown", "json", "messages", "steps", "parquet", "txt"]
FORMATS: Final[tuple[ExportFormat, ...]] = get_args(ExportFormat)

ExportLevel = Literal["full", "high", "low", "minimal", "prompts"]
"""Level of detail.

full: everything; high: without notes and hooks; low: one line per step; minimal: prompts and answers; prompts: prompts
only.
"""
LEVELS: Final[tuple[ExportLevel, ...]] = get_args(ExportLevel)
