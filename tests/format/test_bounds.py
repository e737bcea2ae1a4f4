"""Hostile lines cost time and memory in proportion to their length, and no more."""

import json
import subprocess
import sys
from typing import Any

import pytest

from steno.format import salvage as salvage_module
from steno.format.lenient_json import MAX_DEPTH, decode_lenient, nesting_depth
from steno.format.lines import read_bytes
from steno.format.records import Gap, Record
from steno.format.salvage import salvage

MODE = b'{"type":"mode","mode":"normal","sessionId":"s"}'
BESIDE = b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1)

PEAK = """
import resource, sys
from steno.format.lenient_json import nesting_depth
from steno.format.salvage import _LONE_SURROGATE
line = b'{"a":"' + {unit} * ((24 << 20) // len({unit})) + b'","b":' + b"[" * 300 + b"]" * 300
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
found = nesting_depth(line)
assert _LONE_SURROGATE.search(line) is None
print(found, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.parametrize("unit", [b"x\\n", b'\\"', b"\\\\"])
def test_depth_is_counted_without_holding_a_long_string(unit: bytes) -> None:
    pytest.importorskip("resource")
    program = PEAK.replace("{unit}", repr(unit))
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    depth, megabytes = run.stdout.split()
    assert int(depth) == 301
    assert int(megabytes) < 100


@pytest.mark.parametrize(
    ("line", "depth"),
    [
        (BESIDE, MAX_DEPTH + 1),
        (b'{"a":"' + b"[" * 300 + b'"}', 1),
        (b'{"a":"\\"' + b"[" * 300 + b'"}', 1),
        (b'{"a":"\\\\",' + b'"b":' + b"[" * 300, 301),
        (b"[]" * 300, 1),
        (b'{"torn":"' + b"[" * 300, 1),
        (b'{"torn":"' + b"[" * 300 + b"\\", 1),
        (b"[" * 300 + b'{"torn":"' + b'\\"[' * 100_000, 301),
        (b"[" * MAX_DEPTH, 0),
    ],
)
def test_brackets_inside_strings_do_not_nest(line: bytes, depth: int) -> None:
    assert nesting_depth(line) == depth


@pytest.mark.parametrize("deep", [1, 6, 7, 300, 512])
def test_a_value_of_a_sane_depth_is_read_whole(deep: int) -> None:
    raw = b'{"a":' * (deep - 1) + b'["caf\xc3\xa9",1,2.5,true,null]' + b"}" * (deep - 1)
    assert decode_lenient(raw) == json.loads(raw)


def test_a_value_that_nests_deeper_than_any_limit_is_none() -> None:
    assert decode_lenient(b"[" * 513 + b"]" * 513) is None


def test_a_repeated_key_among_very_many_is_named() -> None:
    keys = b",".join(b'"k%d":0' % number for number in range(200_000))
    (record,) = read_bytes(b'{"type":"mode",' + keys + b',"again":1,"again":2}')
    assert [(note.id, note.message) for note in record.damage] == [("line.duplicate-key", "again")]


class Sliced(bytes):
    """Bytes that count what is copied out of them."""

    copied = 0

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        if isinstance(found, bytes):
            Sliced.copied += len(found)
        return found


def test_glued_records_are_copied_once_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Sliced, "copied", 0)
    line = Sliced(b"  ".join([MODE] * 2000))
    pieces = list(salvage(line, 0, ended=True))
    assert [type(piece) for piece in pieces] == [Record] * 2000
    assert Sliced.copied <= 2 * len(line)


class Counting(json.JSONDecoder):
    """A decoder that counts what it is given to read."""

    given = 0

    def raw_decode(self, s: str, idx: int = 0) -> tuple[Any, int]:
        Counting.given += len(s) - idx
        return super().raw_decode(s, idx)


@pytest.fixture
def decoder(monkeypatch: pytest.MonkeyPatch) -> type[Counting]:
    monkeypatch.setattr(Counting, "given", 0)
    monkeypatch.setattr(salvage_module, "_FORGIVING", Counting(strict=False, parse_int=len))
    return Counting


@pytest.mark.parametrize(
    "line",
    [
        b'{"a":[' * 300 + b'"' + b"x" * (1 << 20) + b'","type":"',
        b'{"type":[' * 300 + b'"' + b"x" * (1 << 20),
        b'{"type":' * 600 + b"1," * (1 << 19),
        b'{"type":"' * 600 + b"x" * (1 << 20),
    ],
)
def test_a_hopeless_line_is_not_decoded_from_every_brace(line: bytes, decoder: type[Counting]) -> None:
    (piece,) = read_bytes(line)
    assert isinstance(piece, Gap)
    assert piece.length == len(line)
    assert 0 < decoder.given <= 100 * len(line)


def test_a_record_behind_a_hopeless_wreck_is_still_found(decoder: type[Counting]) -> None:
    wreck = b'{"type":[' * 300 + b'"' + b"x" * (1 << 20)
    gap, record = read_bytes(wreck + MODE + b"\n")
    assert isinstance(gap, Gap)
    assert isinstance(record, Record)
    assert record.line == MODE
    assert decoder.given <= 100 * len(wreck)


@pytest.mark.parametrize("size", [1, 4000, 4090, 4096, 5000, 33_000, 300_000])
@pytest.mark.parametrize("filler", [b"x", b"\\n", b" ", b"\\u00e9"])
def test_glued_records_of_any_size_are_read_whole(size: int, filler: bytes) -> None:
    """The window a record is decoded through may end anywhere: in an escape, in a literal."""
    many = filler * (size // len(filler) + 1)
    inside = b'"x"' + many if filler == b" " else b'"' + many + b'"'
    record = MODE[:-1] + b',"x":[' + inside + b",null,false,-12.5e3]}"
    pieces = list(read_bytes(MODE + record + record[:-1] + record + b"\n"))
    assert [isinstance(piece, Record) for piece in pieces] == [True, True, False, True]
    whole = len(record)
    assert [piece.length for piece in pieces] == [len(MODE), whole, whole - 1, whole + 1]


@pytest.mark.parametrize("end", range(4060, 4110))
def test_a_window_may_end_at_any_byte_of_a_record(end: int) -> None:
    rest = b'","y":[true,-1.5e-3,"\\u00e9\\\\",Infinity, {"z" : null , "n":12}] }'
    record = MODE[:-1] + b',"x":"' + b"x" * (end - len(MODE) - len(rest)) + rest
    pieces = list(read_bytes(record + MODE + b"\n"))
    assert [piece.length for piece in pieces] == [len(record), len(MODE) + 1]


def test_an_integer_without_end_does_not_hide_a_glued_record() -> None:
    huge = b'{"type":"mode","sessionId":"s","n":' + b"9" * 5000 + b"}"
    assert all(isinstance(piece, Record) for piece in read_bytes(MODE + huge + MODE))
