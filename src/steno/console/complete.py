"""Completion: `/command` with a word on each, `@file` by a few of its letters."""

import asyncio
import os
import re
import subprocess
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from typing import Final

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from steno.tools.programs import FLAGS, ripgrep

__all__ = ["Completions", "fuzzy"]

_FILE: Final = re.compile(r"(?:^|(?<=\s))@([^\s@]*)$")
_COMMAND: Final = re.compile(r"/([\w:.-]*)$")
_APART: Final = 3
"""The rank of names that hold the letters, but not next to each other."""
_SHOWN: Final = 40
_MOST: Final = 100_000
_SECONDS: Final = 5
_FRESH: Final = 10.0


class Completions(Completer):
    """Knows what can be called, and which files there are."""

    def __init__(self, names: Callable[[], list[tuple[str, str]]], cwd: Callable[[], str]) -> None:
        self._names = names
        self._cwd = cwd
        self._files: tuple[str, float, list[str]] = ("", 0.0, [])

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """Return what could stand before the cursor."""
        del complete_event
        before = document.text_before_cursor
        command = _COMMAND.fullmatch(before)
        if command is not None:
            return self._commands(command[1])
        file = _FILE.search(before)
        if file is None:
            return []
        return [
            Completion(f"@{path}", -len(file[1]) - 1, display=path)
            for path in fuzzy(file[1], self._known())
        ]

    def at_once(self, document: Document) -> list[Completion] | None:
        """Return the same; None where files have to be looked for, which may take a while."""
        if _FILE.search(document.text_before_cursor) and not self._is_fresh():
            return None
        return list(self.get_completions(document, CompleteEvent(completion_requested=True)))

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """Yield the same; files are looked through in a thread, so that typing goes on."""
        if _FILE.search(document.text_before_cursor):
            found = await asyncio.to_thread(self.get_completions, document, complete_event)
        else:
            found = self.get_completions(document, complete_event)
        for each in found:
            yield each

    def _commands(self, typed: str) -> Iterable[Completion]:
        names = dict(self._names())
        first = [name for name in names if name.startswith(typed)]
        more = [name for name in fuzzy(typed, list(names)) if name not in first] if typed else []
        for name in (*sorted(first), *more):
            yield Completion(f"/{name}", -len(typed) - 1, display_meta=names[name])

    def _is_fresh(self) -> bool:
        where, since, _ = self._files
        return where == self._cwd() and time.monotonic() - since < _FRESH

    def _known(self) -> list[str]:
        """Return the files below here, as ripgrep lists them: without what git ignores."""
        if self._is_fresh():
            return self._files[2]
        cwd = self._cwd()
        program = ripgrep(cwd)
        files = _listed(program, cwd) if program else _walked(cwd)
        self._files = (cwd, time.monotonic(), files)
        return files


def _listed(program: str, cwd: str) -> list[str]:
    try:
        ran = subprocess.run(
            [program, *FLAGS, "--files", "--null"],
            cwd=cwd,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return []
    names = ran.stdout.split(b"\0")[:_MOST]
    return sorted(name.decode("utf-8", "replace") for name in names if name)


def _walked(cwd: str) -> list[str]:
    found: list[str] = []
    for folder, folders, files in os.walk(cwd):
        folders[:] = sorted(name for name in folders if name != ".git")
        found += [os.path.relpath(os.path.join(folder, name), cwd) for name in files]
        if len(found) > _MOST:
            break
    return sorted(found)


def fuzzy(typed: str, names: list[str]) -> list[str]:
    """Return the names that hold the letters in that order, the best first.

    >>> fuzzy("scr", ["docs/scripts.md", "src/screen.py", "src/core.rs"])
    ['src/screen.py', 'docs/scripts.md', 'src/core.rs']
    """
    if not typed:
        return sorted(names, key=lambda name: (name.count("/"), name))[:_SHOWN]
    pattern = re.compile(".*?".join(map(re.escape, typed.lower())))
    found: list[tuple[tuple[int, int, int, str], str]] = []
    for name in names:
        low = name.lower()
        match = pattern.search(low)
        if match is None:
            continue
        base = low.rpartition("/")[2]
        inside = base.find(typed.lower())
        rank = 0 if inside == 0 else 1 if inside > 0 else 2 if typed.lower() in low else _APART
        # How far its letters lie apart says something only where they do.
        spread = match.end() - match.start() if rank == _APART else 0
        found.append(((rank, spread, len(name), name), name))
    return [name for _, name in sorted(found)[:_SHOWN]]
