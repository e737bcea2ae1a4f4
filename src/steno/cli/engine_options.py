"""The options that whoever starts the engine has: the console, `-p` and editors."""

from typing import Final

import click

__all__ = ["ALLOWED", "DISALLOWED", "MAX_TURNS", "MODEL", "MODES", "SETTINGS"]

MODES: Final = ("default", "plan", "acceptEdits", "bypassPermissions", "dontAsk")
MODEL = click.option(
    "--model", metavar="MODEL", default="", help="A model, or opus, sonnet, haiku."
)
ALLOWED = click.option(
    "--allowedTools",
    "--allowed-tools",
    "allowed",
    multiple=True,
    metavar="RULE",
    help="Allow this, as in `Bash(make:*)`.",
)
DISALLOWED = click.option(
    "--disallowedTools",
    "--disallowed-tools",
    "disallowed",
    multiple=True,
    metavar="RULE",
    help="Never allow this.",
)
SETTINGS = click.option(
    "--settings", metavar="FILE|JSON", default="", help="Settings for this run."
)
MAX_TURNS = click.option(
    "--max-turns", type=click.IntRange(1), default=None, help="Requests at most."
)
