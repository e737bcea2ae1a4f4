"""Lines: records glued together are parted, what is no record is left out, odd bytes made sound."""

from typing import Final

from steno.check.repair.edits import Drafts
from steno.format.flaws import flaws
from steno.format.records import Gap, Record

__all__ = ["mend_lines"]

_KEPT: Final = frozenset(("line.oversize", "line.depth"))
_EXCERPT: Final = 60
_REWRITTEN: Final = {
    "line.control": "escape raw control characters; clients skip the line with them",
    "line.number": "write a number that JSON does not have as null; clients skip the line with it",
    "line.utf8": "write bytes that are no UTF-8 as U+FFFD",
    "line.surrogate": "write half a surrogate pair as U+FFFD",
}
_LOST: Final = {
    "line.number": "a number that JSON does not have (NaN or an infinity)",
    "line.utf8": "bytes that are no UTF-8",
    "line.surrogate": "half a surrogate pair",
}


def mend_lines(drafts: Drafts) -> None:
    """Make every line one sound record."""
    nodes = iter(drafts.transcript.nodes)
    for piece in drafts.transcript.pieces():
        if isinstance(piece, Gap):
            _leave_out(drafts, piece)
            continue
        node = next(nodes)
        if any(note.id == "line.glued" for note in piece.notes):
            drafts.mend_line(node, "line.glued", "begin a new line here: another record is before")
        for name in _odd(piece):
            lost = f"{_LOST[name]}, in line {drafts.line(node):,}" if name in _LOST else ""
            drafts.rewrite(node, name, _REWRITTEN[name], lost=lost)


def _leave_out(drafts: Drafts, gap: Gap) -> None:
    harm = [note for note in gap.damage if note.id != "line.bom"]
    if not harm or harm[0].id in _KEPT:
        return
    note = harm[0]
    if note.id == "line.nul-run" and not gap.head.strip(b"\0\r\n"):
        drafts.remove(gap, note.id, f"leave out {gap.length:,} zero bytes")
        return
    excerpt = gap.head[:_EXCERPT].decode("utf-8", "replace").strip()
    excerpt += "…" if len(gap.head.strip()) > _EXCERPT else ""
    where = f"line {drafts.line(gap):,}"
    lost = f"{gap.length:,} bytes that are no record, in {where}: {excerpt}"
    drafts.remove(gap, note.id, f"leave out {gap.length:,} bytes that are no record", lost=lost)


def _odd(record: Record) -> list[str]:
    """Return the oddities of a line that a client, or the API, stumbles over."""
    found = [note.id for note in record.notes if note.id in _REWRITTEN]
    line = record.line
    if b"\\u" in line or not line.isascii():
        found += [each.id for each in flaws(line, record.offset) if each.id in _REWRITTEN]
    return list(dict.fromkeys(found))
