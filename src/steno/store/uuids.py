"""Which records a file has, by their ids, without reading more of it than lines that name them."""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from steno.format.lines import Stretch, read_line, read_stretches
from steno.format.records import Record
from steno.format.source import Source

__all__ = ["uuids_in"]


class _Line(msgspec.Struct, gc=False):
    uuid: str | None = None


_DECODE: Final = msgspec.json.Decoder(_Line).decode
_BAD: Final = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)


def uuids_in(source: Source, wanted: set[str], stop: int) -> set[str]:
    """Return which of some ids records have that begin before the offset `stop`."""
    names = [re.escape(uuid.encode("utf-8", "surrogatepass")) for uuid in sorted(wanted) if uuid]
    if not names:
        return set()
    naming = re.compile(b"|".join(names))
    found: set[str] = set()
    for stretch in read_stretches(source):
        if stretch.offset >= stop or len(found) == len(names):
            break
        if isinstance(stretch, Stretch) and naming.search(stretch.data):
            found.update(wanted.intersection(_uuids(stretch, naming, stop)))
    return found


def _uuids(stretch: Stretch, naming: "re.Pattern[bytes]", stop: int) -> Iterator[str]:
    for line in stretch.lines():
        if line.offset >= stop:
            return
        if not naming.search(line.data):
            continue
        try:
            yield _DECODE(line.data).uuid or ""
        except _BAD:
            yield from (each.uuid or "" for each in read_line(line) if isinstance(each, Record))
