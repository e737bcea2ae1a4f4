"""A session while it is written: what changed of it, to whoever has its page open."""

import asyncio
import os
from collections.abc import AsyncGenerator, Iterator
from time import perf_counter
from typing import Any, Final

import msgspec
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from steno.errors import StenoError
from steno.web.house import House, Place
from steno.web.numbers import number_in
from steno.web.paint import part
from steno.web.story.head import head_of
from steno.web.story.opening import Opened, asked_of, opened, placed
from steno.web.story.window import between
from steno.web.story.wish import Wish

__all__ = ["live"]

_PATIENCE: Final = 15.0
"""Seconds of quiet after which the line is shown to be alive."""
_RETRY: Final = 2_000
_LEAST: Final = 0.2
_MOST: Final = 10.0
_REST: Final = 4.0
"""How much longer than the work took is waited before the next, so that a long session, which takes
long to read, does not keep the machine busy."""
_TURNS: Final = 12
"""How many are sent at once; of more that are new, the last so many are drawn in full."""


class _Reader(msgspec.Struct):
    """What somebody has on the screen: little, however long it is looked at."""

    wish: Wish
    at: int = 0
    """The last turn that they have."""
    mark: str = ""
    marks: list[str] | None = None
    head: int = 0


async def live(house: House, request: Request) -> Response:
    """Return the stream of what changes in a session."""
    wish = asked_of(request)
    place, _ = await run_in_threadpool(placed, house, wish)
    told = request.headers.get("last-event-id") or request.query_params.get("at", "")
    number, _, mark = told.partition(".")
    at = number_in(number)
    reader = _Reader(wish, at, mark)
    return StreamingResponse(
        _events(house, place, reader),
        media_type="text/event-stream",
        headers={"x-accel-buffering": "no"},
    )


async def _events(house: House, place: Place, reader: _Reader) -> AsyncGenerator[bytes]:
    async with house.news.heard() as hearing:
        yield b"retry: %d\n\n" % _RETRY
        while not hearing.over:
            begun = perf_counter()
            try:
                news = await run_in_threadpool(_news, house, reader)
            except StenoError as error:
                yield _event("gone", {"why": str(error)})
                return
            for each in news:
                yield each
            took = perf_counter() - begun
            await asyncio.sleep(min(_MOST, max(_LEAST, took * _REST)))
            while not hearing.over:
                paths = await hearing.next(_PATIENCE)
                if paths is None or any(_concerns(path, place) for path in paths):
                    break
                if not paths:
                    yield b": here\n\n"


def _concerns(path: str, place: Place) -> bool:
    """Whether a file that changed is the session's, or that of one of its sub-agents."""
    folder, name = os.path.split(path)
    beside = folder == os.path.dirname(place.path) and name.startswith("agent-")
    return path == place.path or beside or path.startswith(place.path.removesuffix(".jsonl") + "/")


def _news(house: House, reader: _Reader) -> list[bytes]:
    """Return what has changed since the reader last heard."""
    with opened(house, reader.wish, whole=True) as told:
        head = head_of(told.tale, told.place, told.found, house.now())
        made: list[bytes] = []
        text = part("session-head.html.j2", head=head)
        if reader.head != hash(text):
            if reader.head or reader.marks is None:
                made.append(_event("head", {"html": text, "live": head.live}))
            reader.head = hash(text)
        marks = told.tale.marks
        first = _first_changed(reader, marks)
        known = reader.at if reader.marks is None else len(reader.marks)
        reader.marks = marks
        if first is not None:
            made += _changed(told, reader, first, min(known, len(marks)), live=head.live)
        return made


def _first_changed(reader: _Reader, marks: list[str]) -> int | None:
    """Return the place of the first turn that is not as the reader has it; None for no change."""
    before = reader.marks
    if before is None:
        at = reader.at
        if at == len(marks) and (not at or marks[at - 1] == reader.mark):
            return None
        return max(0, min(at, len(marks)) - 1)
    if before == marks:
        return None
    pairs = enumerate(zip(before, marks, strict=False))
    same = min(len(before), len(marks))
    return next((place for place, (one, other) in pairs if one != other), max(0, same - 1))


def _changed(
    told: Opened, reader: _Reader, first: int, known: int, *, live: bool
) -> Iterator[bytes]:
    """Yield the turns from `first` on; the reader has as many as are `known` on the page."""
    tale = told.tale
    total = len(tale.turns)
    for begin, end in _batches(first, known, total):
        key = f"{begin} {end} {live} {reader.wish.detail}"
        if key not in tale.parts:
            # What the reader has stays as it is drawn; only what is new may be a row.
            full = range(begin + 1 if begin < known else max(begin, end - _TURNS) + 1, end + 1)
            pieces = between(tale, told.manner(live=live), begin + 1, end, full)
            tale.parts[key] = part("session-turns.html.j2", pieces=pieces)
        name = f"{end}.{tale.marks[end - 1]}" if end else "0."
        data = {"html": tale.parts[key], "first": begin + 1, "total": total}
        yield _event("turns", data, name)


def _batches(first: int, known: int, total: int) -> Iterator[tuple[int, int]]:
    """Yield the turns to send, some at a time: those that are known, then all that are new."""
    if total - first <= _TURNS:
        yield first, total
        return
    for begin in range(first, known, _TURNS):
        yield begin, min(begin + _TURNS, known)
    if total > known:
        yield known, total


def _event(kind: str, data: dict[str, Any], name: str = "") -> bytes:
    named = f"id: {name}\n" if name else ""
    return f"{named}event: {kind}\ndata: {msgspec.json.encode(data).decode()}\n\n".encode()
