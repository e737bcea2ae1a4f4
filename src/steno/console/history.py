"""What was typed before, in all sessions: one JSON string a line in steno's own folder."""

import os
from collections import deque
from collections.abc import Iterable
from typing import Any, Final

import msgspec
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.history import History

from steno.store.places import steno_home

__all__ = ["LONGEST", "Remembering", "Typed"]

_FILE: Final = "prompts.jsonl"
_READ: Final = 1 << 20
LONGEST: Final = 20_000
"""How many letters of a prompt are kept at most."""
_MODE: Final = 0o600


class Typed(History):
    """Prompts of all sessions, the newest first; only the last megabyte is read."""

    def __init__(self, path: str = "") -> None:
        super().__init__()
        self.path = path or os.path.join(steno_home(), _FILE)

    def load_history_strings(self) -> Iterable[str]:
        """Yield what was typed, the newest first."""
        try:
            with open(self.path, "rb") as file:
                file.seek(max(os.fstat(file.fileno()).st_size - _READ, 0))
                lines = file.read().split(b"\n")
        except OSError:
            return
        last = ""
        for line in reversed(lines):
            try:
                text = msgspec.json.decode(line, type=str)
            except msgspec.MsgspecError:
                continue
            if text and text != last:
                last = text
                yield text

    def store_string(self, string: str) -> None:
        """Keep a prompt; where that cannot be done it is only kept in memory."""
        if len(string) > LONGEST or not string.strip():
            return
        line = msgspec.json.encode(string.encode("utf-8", "replace").decode()) + b"\n"
        try:
            os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
            file = os.open(self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, _MODE)
        except OSError:
            return
        try:
            os.write(file, line)
        except OSError:
            return
        finally:
            os.close(file)


class Remembering(Buffer):
    """What is typed, with what was typed before: read once, not again with every prompt."""

    def reset(self, document: Document | None = None, append_to_history: Any = None) -> None:
        """Begin anew."""
        # The library calls this before it has made anything of its own.
        loading = getattr(self, "_load_history_task", None)
        super().reset(document, bool(append_to_history))
        if loading is None or not loading.done() or loading.cancelled():
            return
        known = self.history.get_strings()
        self._working_lines = deque([*known, *self._working_lines])
        self.working_index = len(known)
        self.cursor_position = document.cursor_position if document is not None else 0
        self._load_history_task = loading
