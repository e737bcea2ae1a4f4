"""Completion of `/commands` with descriptions, and of `@files` by fuzzy matching."""

import asyncio
import os
import re
import subprocess
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from typing import Final

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from steno.tools.programs import RIPGREP_FLAGS, find_ripgrep

_FILE_MENTION: Final = re.compile(r"(?:^|(?<=\s))@([^\s@]*)$")
_COMMAND_NAME: Final = re.compile(r"/([\w:.-]*)$")
_SCATTERED_RANK: Final = 3
"""The rank of names that hold the letters, but not next to each other."""
_MAX_MATCHES: Final = 40
_MAX_FILES: Final = 100_000
_LIST_TIMEOUT: Final = 5
_CACHE_SECONDS: Final = 10.0


class PromptCompleter(Completer):
    """Knows what can be called, and which files there are."""

    def __init__(self, get_commands: Callable[[], list[tuple[str, str]]], get_cwd: Callable[[], str]) -> None:
        self._get_commands = get_commands
        self._get_cwd = get_cwd
        self._file_cache: tuple[str, float, list[str]] = ("", 0.0, [])

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Return what could stand before the cursor."""
        del complete_event
        before = document.text_before_cursor
        command = _COMMAND_NAME.fullmatch(before)
        if command is not None:
            return self._complete_commands(command[1])
        file = _FILE_MENTION.search(before)
        if file is None:
            return []
        return [
            Completion(f"@{path}", -len(file[1]) - 1, display=path) for path in fuzzy_match(file[1], self._list_files())
        ]

    def complete_now(self, document: Document) -> list[Completion] | None:
        """Return the same; None where files have to be looked for, which may take a while."""
        if _FILE_MENTION.search(document.text_before_cursor) and not self._is_cache_fresh():
            return None
        return list(self.get_completions(document, CompleteEvent(completion_requested=True)))

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """Yield the same; files are looked through in a thread, so that typing goes on."""
        if _FILE_MENTION.search(document.text_before_cursor):
            completions = await asyncio.to_thread(self.get_completions, document, complete_event)
        else:
            completions = self.get_completions(document, complete_event)
        for completion in completions:
            yield completion

    def _complete_commands(self, typed: str) -> Iterable[Completion]:
        names = dict(self._get_commands())
        prefix_matches = [name for name in names if name.startswith(typed)]
        fuzzy_matches = (
            [name for name in fuzzy_match(typed, list(names)) if name not in prefix_matches] if typed else []
        )
        for name in (*sorted(prefix_matches), *fuzzy_matches):
            yield Completion(f"/{name}", -len(typed) - 1, display_meta=names[name])

    def _is_cache_fresh(self) -> bool:
        cached_cwd, cached_at, _ = self._file_cache
        return cached_cwd == self._get_cwd() and time.monotonic() - cached_at < _CACHE_SECONDS

    def _list_files(self) -> list[str]:
        """Return the files below here, as ripgrep lists them: without what git ignores."""
        if self._is_cache_fresh():
            return self._file_cache[2]
        cwd = self._get_cwd()
        program = find_ripgrep(cwd)
        files = _list_with_ripgrep(program, cwd) if program else _walk_files(cwd)
        self._file_cache = (cwd, time.monotonic(), files)
        return files


def _list_with_ripgrep(program: str, cwd: str) -> list[str]:
    try:
        finished = subprocess.run(
            [program, *RIPGREP_FLAGS, "--files", "--null"],
            cwd=cwd,
            capture_output=True,
            timeout=_LIST_TIMEOUT,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return []
    names = finished.stdout.split(b"\0")[:_MAX_FILES]
    return sorted(name.decode("utf-8", "replace") for name in names if name)


def _walk_files(cwd: str) -> list[str]:
    paths: list[str] = []
    for folder, folders, files in os.walk(cwd):
        folders[:] = sorted(name for name in folders if name != ".git")
        paths += [os.path.relpath(os.path.join(folder, name), cwd) for name in files]
        if len(paths) > _MAX_FILES:
            break
    return sorted(paths)


def fuzzy_match(typed: str, names: list[str]) -> list[str]:
    """Return the names that hold the letters in that order, the best first.

    >>> fuzzy_match("scr", ["docs/scripts.md", "src/screen.py", "src/core.rs"])
    ['src/screen.py', 'docs/scripts.md', 'src/core.rs']
    """
    if not typed:
        return sorted(names, key=lambda name: (name.count("/"), name))[:_MAX_MATCHES]
    pattern = re.compile(".*?".join(map(re.escape, typed.lower())))
    ranked: list[tuple[tuple[int, int, int, str], str]] = []
    for name in names:
        lowered = name.lower()
        match = pattern.search(lowered)
        if match is None:
            continue
        base = lowered.rpartition("/")[2]
        position = base.find(typed.lower())
        rank = 0 if position == 0 else 1 if position > 0 else 2 if typed.lower() in lowered else _SCATTERED_RANK
        # How far its letters lie apart says something only where they do.
        spread = match.end() - match.start() if rank == _SCATTERED_RANK else 0
        ranked.append(((rank, spread, len(name), name), name))
    return [name for _, name in sorted(ranked)[:_MAX_MATCHES]]
