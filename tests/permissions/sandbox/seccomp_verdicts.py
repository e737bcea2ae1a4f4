"""What the seccomp filter answers to every system call, as a table that is recorded.

    python -m tests.permissions.sandbox.seccomp_verdicts      # write the table anew

For each architecture and set of options: the numbers of the calls that fail with zeros for
arguments, by error, and for each call that depends on an argument the values with the rarer answer.
"""

import errno
import struct
import sys
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Final, TypeAlias

from steno.permissions.sandbox.seccomp import FilterOptions, Instruction, build_filter

TABLE: Final = Path(__file__).with_name("seccomp_verdicts.txt")
AUDIT: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOW: Final = 0x7FFF0000
_LAST: Final = 475
_JUMP_IF_EQUAL: Final = 0x15
_LOAD: Final = 0x20
Args: TypeAlias = tuple[int, ...]
_OPTIONS: Final = {
    "all": FilterOptions(metadata=True, touch=True, signals=True, processes=True, truncation=True),
    "no touch": FilterOptions(metadata=True, touch=False, signals=True, processes=True, truncation=True),
    "none": FilterOptions(metadata=False, touch=False, signals=False, processes=False, truncation=False),
    "metadata": FilterOptions(metadata=True, touch=False, signals=False, processes=False, truncation=False),
    "signals": FilterOptions(metadata=False, touch=False, signals=True, processes=False, truncation=False),
    "processes": FilterOptions(metadata=False, touch=False, signals=False, processes=True, truncation=False),
    "truncation": FilterOptions(metadata=False, touch=False, signals=False, processes=False, truncation=True),
}
# Each bit alone, small numbers, and the ioctls of files and terminals with their neighbours.
_IOCTLS: Final = (
    *(0x5401, 0x540F, 0x5412, 0x5413, 0x541B, 0x5421, 0x5429, 0x5450, 0x5451, 0x802C542A),
    *(0x80086601, 0x40086602, 0xC020660B, 0x40049409, 0x4020940D, 0x80081272, 0x80087601),
    *(0x801C581F, 0xC0189436, 0x8901),
)
_VALUES: Final = sorted({*range(17), *(1 << bit for bit in range(35)), 0x241, 0x80041, 0x410041, *_IOCTLS})


def run_filter(program: list[Instruction], data: bytes) -> int:
    """Return what a filter answers: a small interpreter of classic BPF."""
    accumulator, at = 0, 0
    while True:
        code, yes, no, value = program[at]
        at += 1
        if code == 0x20:
            accumulator = struct.unpack_from("<I", data, value)[0]
        elif code == 0x54:
            accumulator &= value
        elif code == 0x06:
            return value
        else:
            holds = {
                0x15: accumulator == value,
                0x25: accumulator > value,
                0x35: accumulator >= value,
                0x45: bool(accumulator & value),
            }[code]
            at += yes if holds else no


def _verdict(program: list[Instruction], audit: int, number: int, *arguments: int) -> str:
    padded = (*arguments, *(0,) * (6 - len(arguments)))
    result = run_filter(program, struct.pack("<IIQ6Q", number, audit, 0, *padded))
    if result == ALLOW:
        return "allowed"
    return errno.errorcode.get(result - 0x50000, f"{result:#x}")


def verdicts() -> Iterator[str]:
    """Yield the lines of the table."""
    for architecture, audit in AUDIT.items():
        for name, options in _OPTIONS.items():
            program = build_filter(options, architecture)
            yield f"{architecture}, {name}"
            yield from _of_numbers(program, audit)
            if name in {"all", "none"}:
                yield from _of_arguments(program, audit)
    yield "other architectures: " + _verdict(build_filter(_OPTIONS["none"], "x86_64"), 0x40000028, 0)


def _of_numbers(program: list[Instruction], audit: int) -> Iterator[str]:
    numbers = (*range(_LAST), 0x3FFFFFFF, 0x40000000, 0x40000001, 0x7FFFFFFF)
    found: dict[str, list[int]] = {}
    for number in numbers:
        found.setdefault(_verdict(program, audit, number, *(0,) * 6), []).append(number)
    for verdict in sorted(found):
        if verdict != "allowed":
            yield f"  {verdict}: {_ranges(found[verdict])}"


def _of_arguments(program: list[Instruction], audit: int) -> Iterator[str]:
    for at, (code, _, length, number) in enumerate(program):
        body = program[at + 1 : at + 1 + length]
        looks = {(each.value - 16) // 8 for each in body if each.code == _LOAD}
        if code != _JUMP_IF_EQUAL or number >= _LAST:
            continue
        for index in sorted(looks):
            # A call that creates a file looks at the mode only with the flag for that.
            for before in (0, 1, 0o100) if index else (0,):
                line = _of_argument(program, audit, number, (before,) * index)
                if line:
                    yield f"  {number} argument {index} after {before:#o}: {line}"


def _of_argument(program: list[Instruction], audit: int, number: int, before: Args) -> str:
    found: dict[str, list[int]] = {}
    for value in _VALUES:
        found.setdefault(_verdict(program, audit, number, *before, value), []).append(value)
    if len(found) == 1:
        return ""
    rare = min(found, key=lambda each: (len(found[each]), each))
    rest = " or ".join(sorted(set(found) - {rare}))
    return f"{rare} for {' '.join(f'{value:#x}' for value in found[rare])}; else {rest}"


def _ranges(numbers: Iterable[int]) -> str:
    parts: list[str] = []
    for _, group in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        members = [number for _, number in group]
        parts.append(str(members[0]) if len(members) == 1 else f"{members[0]}-{members[-1]}")
    return " ".join(parts)


if __name__ == "__main__":
    TABLE.write_text("\n".join(verdicts()) + "\n", encoding="utf-8")
    sys.exit(0)
