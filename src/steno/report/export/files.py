"""Some sessions in a format, as files; the HTML is in `steno.web.export`."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import msgspec

from steno.format.encode import encode_line
from steno.report.export.levels import Format, Level
from steno.report.export.lossless import lossless
from steno.report.export.markdown import markdown
from steno.report.export.messages import messages
from steno.report.export.names import name_of
from steno.report.export.opened import Leaving, open_leaving
from steno.report.export.plain import plain
from steno.report.export.put import make_folder, put_file
from steno.safe.masking import Masker
from steno.store.found import Found

__all__ = ["Job", "parts_of", "write_all", "write_each"]

_ENDS: Final[dict[str, str]] = {
    "markdown": ".md",
    "txt": ".txt",
    "json": ".json",
    "messages": ".json",
}


class Job(msgspec.Struct):
    """What is to be done with each session."""

    format: Format = "html"
    level: Level = "full"
    masker: Masker | None = None
    out: str = ""
    force: bool = False
    done: Callable[[int], None] = lambda _size: None
    """Is told how many bytes were read."""


def parts_of(found: Found, job: Job) -> Iterator[bytes]:
    """Yield a session in one of the formats that are one file.

    Raises:
        Unreadable: it cannot be read.
    """
    if job.format == "json":
        yield from lossless(found, job.masker)
        return
    leaving = open_leaving(found, job.masker)
    yield from _told(leaving, job)


def _told(leaving: Leaving, job: Job) -> Iterator[bytes]:
    if job.format == "messages":
        found = messages(leaving, masked=job.masker is not None)
        yield encode_line({"messages": found})
        return
    tell = markdown if job.format == "markdown" else plain
    for part in tell(leaving.session, job.level):
        yield part.encode("utf-8", "replace")


def write_all(files: Iterable[tuple[str, list[bytes]]], job: Job) -> list[str]:
    """Write files into a folder as they come, in pieces; return their paths.

    Raises:
        StenoError: something cannot be read or written.
    """
    make_folder(job.out, force=job.force)
    written: list[str] = []
    for name, parts in files:
        path = os.path.join(job.out, name)
        put_file(path, parts, force=job.force)
        written.append(path)
    return written


def write_each(files: Sequence[Found], job: Job) -> list[str]:
    """Write each session into a file of its own; return their paths.

    Raises:
        StenoError: something cannot be read or written.
    """
    make_folder(job.out, force=job.force)
    taken: set[str] = set()
    written: list[str] = []
    for found in files:
        leaving = open_leaving(found, _masker(job))
        name = name_of(leaving.session, taken) + _ENDS[job.format]
        path = os.path.join(job.out, name)
        parts = lossless(found, job.masker) if job.format == "json" else _told(leaving, job)
        put_file(path, parts, force=job.force)
        job.done(found.size)
        written.append(path)
    return written


def _masker(job: Job) -> Masker | None:
    """Return what masks a session that is told; what is lossless masks by itself, and counts."""
    return Masker() if job.masker is not None and job.format == "json" else job.masker
