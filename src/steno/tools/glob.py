"""Glob: finds files by the pattern of their names.

Files are listed by ripgrep, which leaves out what git ignores, or without it by a walk of our own.
Which of them fit is always decided here, so that both ways mean the same by a pattern.
"""

import asyncio
import os
import re
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from steno.tools.base import ToolResult
from steno.tools.catalogue import own_spec
from steno.tools.context import ToolContext
from steno.tools.inputs import taken
from steno.tools.listing import relative, walk, when_changed
from steno.tools.patterns import folder_of, glob_pattern
from steno.tools.programs import FLAGS, SECONDS, Finder, ripgrep, run_program
from steno.tools.texts import settled
from steno.tools.words import shown, spoken

__all__ = ["Glob"]

_DESCRIPTION: Final = """\
Finds files by their names.

- The pattern knows `*`, `?`, `[abc]`, `{a,b}` and `**` for any number of folders, as in \
`src/**/*.ts`. A pattern without a slash fits names in every folder.
- What git ignores is left out. The newest files come first, 100 at most.
"""
_SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "pattern": {"type": "string", "description": "The pattern that the paths must fit"},
        "path": {
            "type": "string",
            "description": "The folder to look in; leave it out for the working directory",
        },
    },
    "required": ["pattern"],
    "additionalProperties": False,
}
_SHOWN: Final = 100


class _Input(msgspec.Struct, forbid_unknown_fields=True):
    pattern: str
    path: str | None = None


class Glob:
    """The tool."""

    spec = own_spec("Glob", description=_DESCRIPTION, schema=_SCHEMA)

    def __init__(self, find: Finder | None = None) -> None:
        self._find = find or ripgrep

    async def run(self, tool_input: dict[str, Any], context: ToolContext, call: str) -> ToolResult:
        """Find files."""
        asked = taken(tool_input, _Input)
        began = time.monotonic()
        folder, pattern = folder_of(asked.pattern, asked.path, context)
        fits = glob_pattern(pattern)
        real = await asyncio.to_thread(settled, folder, context, call)
        names, is_all = await self._list(real, context)
        found = await asyncio.to_thread(_newest, folder, names, fits, context.shown_in(folder))
        paths = [relative(path, context) for path in found[:_SHOWN]]
        detail = {
            "filenames": [spoken(path) for path in paths],
            "durationMs": int((time.monotonic() - began) * 1000),
            "numFiles": len(paths),
            "truncated": len(found) > _SHOWN or not is_all,
            "totalMatches": len(found),
            "countIsComplete": is_all,
        }
        lines = [shown(path) for path in paths] or ["No files found"]
        if len(found) > _SHOWN:
            lines.append(
                f"(The newest {_SHOWN} of {len(found):,} files: narrow the path or the pattern.)"
            )
        if not is_all:
            lines.append("(There are too many files to look at them all: narrow the path.)")
        return ToolResult("\n".join(lines), detail)

    async def _list(self, folder: str, context: ToolContext) -> tuple[list[str], bool]:
        """Return the paths of all files in a folder, and whether that is all of them."""
        program = self._find(context.project, context.cwd, *context.folders)
        if program is None:
            return await asyncio.to_thread(_walked, folder)
        command = [program, *FLAGS, "--files", "--null", "./"]
        ran = await run_program(command, folder, env=context.env)
        names = os.fsdecode(ran.out).split("\0")[:-1]
        return [name.removeprefix("./") for name in names], not (ran.is_cut or ran.is_late)


def _walked(folder: str) -> tuple[list[str], bool]:
    until = time.monotonic() + SECONDS
    names: list[str] = []
    for name in walk(folder):
        names.append(name)
        if time.monotonic() > until:
            return names, False
    return names, True


def _newest(
    folder: str, names: list[str], fits: re.Pattern[str], is_shown: Callable[[str], bool]
) -> list[str]:
    fitting = [name for name in names if fits.fullmatch(name) and is_shown(name)]
    paths = [os.path.join(folder, name) for name in fitting]
    return sorted(sorted(paths), key=when_changed, reverse=True)
