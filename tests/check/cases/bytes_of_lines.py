"""Bytes that are no sound line: cut, glued, zeroed, odd, or too long to be read."""

from collections.abc import Callable
from typing import Final

from tests.check.check_answers import Case
from tests.check.small_sessions import UNKNOWN, call, data_of, output, prompt, reply

__all__ = ["cases"]

_TALK: Final = [prompt(1), reply(2), prompt(3), reply(4)]
_LINES: Final = data_of(_TALK).splitlines(keepends=True)


def _with(at: int, change: Callable[[bytes], bytes]) -> bytes:
    """Return the file with one line changed, counted from one."""
    lines = list(_LINES)
    lines[at - 1] = change(lines[at - 1])
    return b"".join(lines)


def _odd(value: bytes) -> Callable[[bytes], bytes]:
    """Put a field with an odd value into a line."""
    return lambda line: line.replace(b'{"parentUuid"', b'{"odd":' + value + b',"parentUuid"', 1)


_CHANGES: Final[dict[str, Callable[[bytes], bytes]]] = {
    "cut in two": lambda line: line[: len(line) // 2] + b"\n",
    "cut, the next behind it": lambda line: line[: len(line) // 2],
    "its newline gone": lambda line: line[:-1],
    "a blank for its newline": lambda line: line[:-1] + b" ",
    "zeros before": lambda line: b"\0" * 9 + line,
    "zeros behind": lambda line: line[:-1] + b"\0" * 9 + b"\n",
    "zeros for it": lambda line: b"\0" * (len(line) - 1) + b"\n",
    "zeros and words for it": lambda _: b"\0\0x\n",
    "words for it": lambda _: b"no json\n",
    "more words for it": lambda _: b"x" * 60 + b"\n",
    "many words for it": lambda _: b"x" * 61 + b"\n",
    "bytes for it": lambda _: b"\xff\xfe\n",
    "a list for it": lambda _: b"[1,2]\n",
    "a text for it": lambda _: b'"x"\n',
    "a number for it": lambda _: b"5\n",
    "null for it": lambda _: b"null\n",
    "nothing for it": lambda _: b"\n",
    "blanks for it": lambda _: b"  \t\n",
    "blanks around it": lambda line: b"  " + line[:-1] + b" \n",
    "an empty line before": lambda line: b"\n" + line,
    "a carriage return": lambda line: line[:-1] + b"\r\n",
    "a mark before": lambda line: b"\xef\xbb\xbf" + line,
    "itself again, glued": lambda line: line[:-1] + line,
    "a raw control": _odd(b'"\x01"'),
    "a raw tab": _odd(b'"a\tb"'),
    "NaN": _odd(b"NaN"),
    "minus infinity": _odd(b"-Infinity"),
    "bad UTF-8": _odd(b'"\xff"'),
    "cut UTF-8": _odd(b'"\xe2\x82"'),
    "half a pair": _odd(b'"\\ud83d"'),
    "the other half": _odd(b'"\\ude00"'),
    "a pair": _odd(b'"\\ud83d\\ude00"'),
    "an escape": _odd(b'"\\u0041"'),
    "2**53": _odd(b"9007199254740992"),
    "2**53 + 1": _odd(b"9007199254740993"),
    "minus 2**53 - 1": _odd(b"-9007199254740993"),
    "16 digits": _odd(b"1000000000000000"),
    "16 digits in a text": _odd(b'"1000000000000000"'),
    "21 digits": _odd(b"1" * 21),
    "a fraction": _odd(b"1.50"),
    "a key twice": _odd(b'1,"odd":2'),
    "a key twice inside": _odd(b'{"a":1,"a":2}'),
    "8 levels": _odd(b"[" * 7 + b"]" * 7),
    "9 levels": _odd(b"[" * 8 + b"]" * 8),
    "deep": _odd(b"[" * 120 + b"]" * 120),
    "too deep": _odd(b"[" * 300 + b"]" * 300),
    "two flaws": lambda line: _odd(b'"\xff"')(_odd(b'"\x01"')(line)),
    "a control and a lone half": _odd(b'"\x01\\ud83d"'),
    "a key twice, bad UTF-8": _odd(b'1,"odd":"\xff"'),
    "blanks inside": lambda line: line.replace(b'":', b'" : '),
}


def cases() -> dict[str, list[Case]]:
    """Return the files by which line is changed."""
    parents = [prompt(1), reply(2), prompt(3, parentUuid=UNKNOWN), reply(4)]
    lost = [prompt(1), call(2, "a"), output(3, "a"), reply(4)]
    long = prompt(3, "x" * 600)
    every = b"".join(_LINES)
    return {
        "line 2": [Case(name, _with(2, change)) for name, change in _CHANGES.items()],
        "the first line": [
            Case(name, _with(1, change))
            for name, change in _CHANGES.items()
            if name in ("a mark before", "a carriage return", "zeros before", "words for it") or name.startswith("cut")
        ],
        "the last line": [
            Case(name, _with(4, change))
            for name, change in _CHANGES.items()
            if name.startswith(("cut", "zeros", "its", "a blank", "words", "bad", "nothing"))
        ],
        "files": [
            Case("empty", b""),
            Case("a newline", b"\n"),
            Case("zeros", b"\0" * 100),
            Case("only words", b"no json\n"),
            Case("carriage returns", every.replace(b"\n", b"\r\n")),
            Case("no newlines", every.replace(b"\n", b"")),
            Case("one line", _LINES[0]),
            Case("one line, open", _LINES[0][:-1]),
            Case("open, then words", every + b"x"),
            Case("open, then half a record", every + _LINES[0][:40]),
            Case("open, blanks behind", every[:-1] + b"  "),
            Case("a hundred and two wrong lines", every + b"x\n" * 102),
        ],
        "too long": [
            Case("a prompt", [prompt(1), reply(2), long, reply(4)], cap=700),
            Case("at the cap", [prompt(1), reply(2), long, reply(4)], cap=len(data_of([long])) - 1),
            Case("below the cap", [prompt(1), reply(2), long, reply(4)], cap=len(data_of([long]))),
            Case("a lost parent", [*parents, prompt(5, "x" * 600)], cap=700),
            Case("an open call", [*lost[:2], long, *lost[3:]], cap=700),
        ],
    }
