"""Sessions as HTML: one page that holds all it needs, or a folder with a page that lists them."""

import gc
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import msgspec

from steno.report.export.files import Job
from steno.report.export.names import name_of
from steno.report.export.opened import open_leaving
from steno.report.price_file import chosen_prices
from steno.report.words import project_name
from steno.store.found import Found
from steno.web.export.aside import Aside
from steno.web.export.frame import page_of
from steno.web.export.links import FileLinks
from steno.web.export.pages import Drawn, Style, draw

__all__ = ["one_page", "pages_of", "said_of"]

_INDEX: Final = "index.html"
_HEAP: Final = 64_000_000
"""Bytes of sessions, after which what is left of them is cleared up."""
_COLOURED: Final = 24
"""Sessions; of more the pages paint code themselves, when it is looked at."""


class _Row(msgspec.Struct):
    file: str
    title: str
    project: str
    day: str
    started: float
    turns: int
    steps: int
    cost: str


def said_of(job: Job) -> str:
    """Return what a page says of what was masked."""
    if job.masker is None:
        return "Nothing was masked"
    return "Secrets, home folders and e-mail addresses are masked"


def one_page(found: Found, job: Job) -> bytes:
    """Return a session as one page.

    Raises:
        Unreadable: it cannot be read.
    """
    leaving = open_leaving(found, job.masker)
    style = Style(job.level, masked=said_of(job))
    drawn = draw(leaving, "session", chosen_prices(), style)
    return b"".join(drawn.pages[0][1])


def pages_of(files: Sequence[Found], job: Job) -> Iterator[tuple[str, list[bytes]]]:
    """Yield sessions as pages in pieces, by the names of their files; last the list of them.

    Raises:
        StenoError: something cannot be read.
    """
    coloured = len(files) <= _COLOURED
    style = Style(job.level, split=True, index=_INDEX, coloured=coloured, masked=said_of(job))
    prices = chosen_prices()
    taken: set[str] = set()
    rows: list[_Row] = []

    def drawn(found: Found) -> Iterator[tuple[str, list[bytes]]]:
        leaving = open_leaving(found, job.masker)
        made = draw(leaving, name_of(leaving.session, taken), prices, style)
        rows.append(_row(made))
        yield from made.pages

    with _tidied(files) as each:
        for found in each:
            yield from drawn(found)
            job.done(found.size)
    yield _INDEX, _index(rows, style)


@contextmanager
def _tidied(files: Sequence[Found]) -> Generator[Iterator[Found]]:
    """Give files one by one, and clear up between them: in the midst of one nothing is garbage.

    What was there before stays for good, so nobody need look through it each time.
    """

    def each() -> Iterator[Found]:
        read = 0
        for found in files:
            read += found.size
            if read > _HEAP:
                gc.collect()
                read = found.size
            yield found

    before = gc.isenabled()
    gc.disable()
    gc.freeze()
    try:
        yield each()
    finally:
        gc.unfreeze()
        if before:
            gc.enable()


def _row(drawn: Drawn) -> _Row:
    return _Row(
        drawn.pages[0][0],
        drawn.title,
        drawn.project,
        drawn.day,
        drawn.started,
        drawn.turns,
        drawn.steps,
        drawn.cost,
    )


def _index(rows: list[_Row], style: Style) -> list[bytes]:
    groups: dict[str, list[_Row]] = {}
    for row in sorted(rows, key=lambda row: -row.started):
        groups.setdefault(project_name(row.project) if row.project else "", []).append(row)
    return page_of(
        "export-index.html.j2",
        FileLinks(),
        Aside(),
        groups=list(groups.items()),
        total=len(rows),
        made="Exported by steno",
        masked=style.masked,
    )
