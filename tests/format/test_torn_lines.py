"""Objects inside of a torn line are no records, however much they look like one."""

import pytest

from steno.format.lines import read_bytes
from steno.format.records import Record

INNER = b'{"type":"progress","sessionId":"s","uuid":"u1","parentUuid":null}'
WHOLE = b'{"type":"user","uuid":"u2","sessionId":"s","message":{"role":"user","content":"x"}}'


def records(data: bytes) -> list[str | None]:
    pieces = list(read_bytes(data))
    # Every byte belongs to a piece.
    assert sum(piece.span.length for piece in pieces) == len(data)
    return [piece.uuid for piece in pieces if isinstance(piece, Record)]


@pytest.mark.parametrize(
    "torn",
    [
        b'{"type":"user","data":' + INNER + b',"more":"cut o',
        b'{"type":"user","data":[' + INNER + b',{"type":"x"',
        b'{"type":"user","data":[' + INNER + b'],"more":tr',
        b'{"type":"user","data":{"in":' + INNER + b'},"more":"cut',
        b'{"type":"user","data":' + INNER + b' ,"more',
    ],
)
@pytest.mark.parametrize("behind", [b"", b"\n", b"\n" + WHOLE + b"\n"])
def test_an_object_inside_of_a_torn_record_is_no_record(torn: bytes, behind: bytes) -> None:
    assert records(torn + behind) == (["u2"] if WHOLE in behind else [])


def test_a_record_that_follows_a_torn_one_on_its_line_is_found() -> None:
    assert records(b'{"type":"user","data":"cut o' + WHOLE + b"\n") == ["u2"]
