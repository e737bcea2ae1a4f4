"""A session file as it lies on disk: one line, or one JSON object, per record and gap."""

from collections.abc import Iterator
from typing import Any, Final, cast

from steno.format.lines import read_pieces
from steno.format.records import Gap, Piece, Record
from steno.format.source import Source
from steno.format.spans import Damage
from steno.report import words
from steno.safe.terminal import Line, one_line, pad

__all__ = ["excerpt", "numbered", "piece_json", "piece_line"]

_COMMON: Final = frozenset(
    (
        *("type", "subtype", "uuid", "parentUuid", "sessionId", "session_id", "timestamp"),
        *("userType", "cwd", "version", "gitBranch", "entrypoint", "renderedRole", "level"),
        *("slug", "id", "requestId", "promptId", "messageId", "agentId", "toolUseID"),
        "logicalParentUuid",
    )
)


def numbered(source: Source) -> Iterator[tuple[int, Piece]]:
    """Yield every record and gap with the number of its line; nothing is held on to."""
    number = 1
    for piece in read_pieces(source):
        yield number, piece
        end = piece.ending if isinstance(piece, Record) else _last_byte(source, piece)
        number += end.endswith(b"\n")


def _last_byte(source: Source, gap: Gap) -> bytes:
    return source.read(gap.offset + gap.length - 1, 1)


def piece_json(number: int, piece: Piece) -> dict[str, Any]:
    """Return a record or gap as one object of JSON Lines."""
    record = piece if isinstance(piece, Record) else None
    return {
        "offset": piece.offset,
        "length": piece.length,
        "line": number,
        "kind": record.kind if record else "gap",
        "type": record.envelope.type if record else None,
        "uuid": record.uuid if record else None,
        "parentUuid": record.parent_uuid if record else None,
        "timestamp": record.timestamp if record else None,
        "dialect": record.dialect if record else None,
        "damage": [_damage_json(damage) for damage in piece.damage],
        "gap": record is None,
    }


def _damage_json(damage: Damage) -> dict[str, Any]:
    return {
        "id": damage.id,
        "offset": damage.span.offset,
        "length": damage.span.length,
        "message": damage.message,
        "hint": damage.hint,
    }


def piece_line(number: int, piece: Piece, width: int) -> Iterator[Line]:
    """Yield the line about a record or gap, and one more per damage."""
    size = pad(words.size(piece.length), 7, right=True)
    head: Line = [(pad(f"{number:,}", 6, right=True), "dim"), "  ", (size, "dim"), "  "]
    if isinstance(piece, Record):
        uuid = pad(one_line((piece.uuid or "")[:8]), 8)
        kind = pad(one_line(piece.kind, 28), 28)
        room = max(width - 57, 0)
        said = excerpt(piece, room)
        yield [*head, (uuid, "bold"), "  ", kind, "  ", (said, "dim")]
    else:
        yield [*head, (pad("", 8), ""), "  ", ("gap", "yellow")]
    for damage in piece.damage:
        about = one_line(f"{damage.message}: {damage.hint}" if damage.message else damage.hint)
        room = max(width - 30 - len(damage.id), 20)
        yield [" " * 27, (f"! {damage.id}", "yellow"), " ", (one_line(about, room), "dim")]


def excerpt(record: Record, room: int) -> str:
    """Return the first words of what a record says, whatever kind it is."""
    if record.tool_uses:
        call = record.tool_uses[0]
        values = (str(value) for value in call.input.values() if isinstance(value, str))
        return one_line(f"{call.name} {next(values, '')}", room)
    if record.tool_results:
        return one_line(record.tool_results[0].text, room)
    said = record.text or record.thinking
    if said:
        return one_line(said, room)
    return one_line(next(_strings(record.fields), ""), room)


def _strings(fields: dict[str, Any]) -> Iterator[str]:
    """Yield what a record without words says for itself, what all records have left out."""
    inner = (cast("Any", value) for value in fields.values() if isinstance(value, dict))
    parts: list[dict[str, Any]] = [*inner, fields]
    for part in parts:
        for name, value in part.items():
            if name not in _COMMON and isinstance(value, str) and value:
                yield f"{name} {value}"
