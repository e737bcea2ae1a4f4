"""A record, or a gap, as it stands in its file: tidy, exact, and what is known of its kind."""

from typing import Final

import msgspec

from steno.format.catalogue import catalogue
from steno.format.records import Gap, Record
from steno.format.spans import Damage
from steno.report import words as say
from steno.safe.html import Html, escaped
from steno.session.transcript import Transcript
from steno.web.bodies.about import About
from steno.web.bodies.parts import Door, Fact, box, facts, joined, note, window
from steno.web.bodies.pictures import gallery
from steno.web.bodies.tidy import tidy
from steno.web.render.code import code_block

__all__ = ["gap_view", "record_view"]

_GAP: Final = 400_000
"""Bytes of a gap that are shown."""
_ODD: Final = 30
_BYTES: Final = 16
_DUMP: Final = 64


def record_view(record: Record, about: About) -> Html:
    """Return one record."""
    about = _placed(about, record.offset)
    fields = record.fields
    head = facts(
        Fact("kind", record.kind or "none"),
        Fact("bytes", f"{record.length:,}"),
        Fact("at byte", f"{record.offset:,}"),
        Fact("client", record.envelope.version or ""),
        Fact("time", str(record.timestamp or "")),
        Fact("here", _often(record, about.transcript)),
    )
    made = [head, *(_damage(each) for each in record.damage[:_ODD])]
    said, mood = _known(record)
    drift = (Door("Drift", about.links.health()),) if mood else ()
    foot = (
        Fact("", "Kept byte for byte."),
        Fact("", said, mood),
        Fact("", _unknown_fields(record)),
    )
    body = tidy(fields, full=about.full) if fields else note("It cannot be read as JSON.", "warn")
    made.append(box(body, title=record.kind, plain="tidy", doors=drift, foot=foot))
    made += [gallery(record, about), _exact(record.line, about, record.offset)]
    return joined(*made)


def gap_view(gap: Gap, about: About) -> Html:
    """Return bytes that are no record."""
    about = _placed(about, gap.offset)
    raw = about.transcript.source.read(gap.offset, min(gap.length, _GAP))
    empty = not raw.strip(b"\x00 \t\r\n")
    head = facts(
        Fact("kind", "gap: no record"),
        Fact("bytes", f"{gap.length:,}"),
        Fact("at byte", f"{gap.offset:,}"),
        Fact("holds", "nothing but blanks or zero bytes" if empty else ""),
    )
    made = [head, *(_damage(each) for each in gap.damage[:_ODD])]
    if not gap.damage and empty:
        made.append(note("An empty line. Every reader skips it."))
    if gap.length > len(raw):
        made.append(
            note(f"The first {say.size(len(raw))} of {say.size(gap.length)} are shown.", "warn")
        )
    made.append(_dump(raw) if empty and raw else _exact(raw, about, gap.offset))
    return joined(*made)


def _placed(about: About, offset: int) -> About:
    """Return the same with the address of a record, where it has no other."""
    return about if about.here else msgspec.structs.replace(about, here=f"record/{offset}")


def _dump(raw: bytes) -> Html:
    rows = [raw[at : at + _BYTES].hex(" ") for at in range(0, min(len(raw), _DUMP), _BYTES)]
    cut = f"{_DUMP} of {say.count(len(raw), 'byte')}" if len(raw) > _DUMP else ""
    return box(code_block("\n".join(rows)), plain="Bytes", foot=(Fact("", cut),))


def _exact(raw: bytes, about: About, offset: int) -> Html:
    """Return the very line; bytes that are no text are written as such."""
    text = raw.decode("utf-8", "backslashreplace")
    shown = window(text, about, offset=offset)
    body = Html(f'<pre class="out">{escaped(shown.text)}</pre>')
    copy = (Door("All records from here", _from(about, offset)),)
    return box(body, plain="The line itself", doors=copy, shown=shown)


def _from(about: About, offset: int) -> str:
    return about.links.inside(about.key, "records", about.agent, **{"from": offset})


def _often(record: Record, transcript: Transcript) -> str:
    """Return how many records of the type there are in this file."""
    count = sum(
        node.type == record.type and node.subtype == record.subtype for node in transcript.nodes
    )
    name = f"{record.type}/{record.subtype}" if record.subtype else record.type
    return f"{count:,} of type {name}" if count and name else ""


def _known(record: Record) -> tuple[str, str]:
    """Return what the catalogue says of the kind, and whether that is worth a colour."""
    entry = catalogue().kind(record.kind, record.dialect) or catalogue().kind(record.kind)
    if entry is None:
        return "Not in the catalogue yet.", "warn"
    dialect = "" if record.dialect == "claude" else f" of the dialect {record.dialect}"
    seen = f", seen in {entry.seen[0]} to {entry.seen[-1]}" if entry.seen else ""
    told = " It was only told of by others." if entry.claimed else ""
    role = "part of the conversation" if entry.family == "graph" else "beside the conversation"
    return f"In the catalogue{dialect}{seen}, {role}.{told}", ""


def _unknown_fields(record: Record) -> str:
    entry = catalogue().kind(record.kind, record.dialect) or catalogue().kind(record.kind)
    if entry is None:
        return ""
    known = {*catalogue().fields(entry), *catalogue().envelopes[entry.dialect], "type"}
    odd = [name for name in record.fields if name not in known]
    more = f" and {len(odd) - _ODD} more" if len(odd) > _ODD else ""
    return f"Fields not in the catalogue: {', '.join(odd[:_ODD])}{more}" if odd else ""


def _damage(damage: Damage) -> Html:
    said = ": ".join(part for part in (damage.id, damage.message or damage.hint) if part)
    where = f" (byte {damage.span.offset:,}, {say.count(damage.span.length, 'byte')})"
    return note(
        f"{said}{where}. {damage.hint}" if damage.message else f"{said}{where}", "warn", "warn"
    )
