"""A pattern over texts, with a limit on time, so that it comes to an end, whatever it is.

The limit is an alarm of the system. Windows has none, and other threads than the first get none:
there is no limit there, and a pattern such as `(a+)+$` may go on for ever.
"""

import re
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, Final, Self

from steno.errors import BadRequest
from steno.index.search.reader import Reader
from steno.index.search.scope import Scope
from steno.index.search.terms import Span

if TYPE_CHECKING:
    from signal import Handlers

__all__ = ["LONGEST_TEXT", "Pattern"]

LONGEST_TEXT: Final = 4_000_000
"""So many letters of one text are looked at."""
_PATIENCE: Final = 1.0
_LONGEST: Final = 1_000
_MOST: Final = 200
_CAPITAL: Final = re.compile(r"(?<!\\)(?:\\\\)*[A-Z]")


class _TooSlow(Exception):
    """The pattern took too long on one text."""


class Pattern:
    """A regular expression. Used in a `with`, it gives up on texts that take it too long.

    Outside of a `with` there is no limit on time, and none on Windows or in other threads.

    Small letters also mean capitals, unless there is a capital in it. `^` and `$` are the ends of
    lines.
    """

    def __init__(self, text: str, patience: float = _PATIENCE) -> None:
        self._patience = patience
        self._armed = False
        self._before: Callable[[int, FrameType | None], object] | int | Handlers | None = None
        self._guarded = False
        self._slow: set[tuple[int, int]] = set()
        self._cut: set[tuple[int, int]] = set()
        self._search = _compiled(text).finditer

    @property
    def slow(self) -> int:
        """How many different texts took too long, and were given up."""
        return len(self._slow)

    @property
    def cut(self) -> int:
        """How many different texts were too long, and looked at only in their beginning."""
        return len(self._cut)

    def __enter__(self) -> Self:
        import signal
        import threading

        here = threading.current_thread() is threading.main_thread()
        if here and hasattr(signal, "setitimer"):
            self._before = signal.signal(signal.SIGALRM, self._ring)
            self._guarded = True
        return self

    def __exit__(self, *_: object) -> None:
        import signal

        if self._guarded:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._before)
            self._guarded = False

    def spans(self, text: str) -> list[Span]:
        """Return where the pattern fits; nothing when that takes too long, or did so before."""
        if len(text) > LONGEST_TEXT:
            self._cut.add((len(text), hash(text)))
            text = text[:LONGEST_TEXT]
        if self._slow and (len(text), hash(text)) in self._slow:
            return []
        try:
            self._arm(self._patience)
            return self._found(text)
        except _TooSlow:
            self._slow.add((len(text), hash(text)))
            return []
        finally:
            with suppress(_TooSlow):
                self._arm(0)

    def _found(self, text: str) -> list[Span]:
        spans: list[Span] = []
        empty = False
        for found in self._search(text):
            if found.start() < found.end():
                spans.append(found.span())
                if len(spans) >= _MOST:
                    break
            elif not empty:
                empty = True
        self._armed = False
        return spans or ([(0, 0)] if empty else [])

    def _arm(self, seconds: float) -> None:
        self._armed = bool(seconds)
        if self._guarded:
            import signal

            # `re` looks at signals while it works, so this stops it in the middle.
            signal.setitimer(signal.ITIMER_REAL, seconds)

    def _ring(self, _number: int, _frame: FrameType | None) -> None:
        if self._armed:
            self._armed = False
            raise _TooSlow

    def among(
        self, reader: Reader, messages: Iterable[int], scope: Scope, step: Callable[[int], None]
    ) -> set[int]:
        """Return those messages in which the pattern fits; they are read in the order of files."""
        fitting: set[int] = set()
        for text in reader.texts(sorted(messages)):
            step(text.length)
            if any(scope.fits(part) and self.spans(part.text) for part in text.parts):
                fitting.add(text.message)
        return fitting


def _compiled(text: str) -> "re.Pattern[str]":
    if not text or len(text) > _LONGEST:
        raise BadRequest(
            f"a pattern of {len(text):,} letters", hint=f"between 1 and {_LONGEST:,} will do"
        )
    flags = re.MULTILINE | (0 if _CAPITAL.search(text) else re.IGNORECASE)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.compile(text, flags)
    except (re.error, RecursionError, OverflowError) as error:
        said = error.msg if isinstance(error, re.error) else "too deep"
        raise BadRequest(f"not a pattern: {said}", hint="as Python's `re` has them") from error
