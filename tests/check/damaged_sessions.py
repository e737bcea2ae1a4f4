"""Every kind of damage at every kind of place of a session: thousands of broken files."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, Final

from tests.builders import VERSIONS, Session, image, png, session, text, thinking, tool

__all__ = ["damages", "damages_of", "story"]

_FILE: Final = "/home/ada/tidegauge/a.py"
_PAGE: Final = 4096
_UNKNOWN: Final = "bbbbbbbb-0000-4000-8000-00000000dead"
_Lines = list[bytes]


def story(version: str) -> Session:
    """Return a session with everything a resume goes by.

    Tools, a sub-agent's call, an image, a compaction, and a rewind; newer generations say in a
    `last-prompt` record where they went on.
    """
    made = session(version, seed="repair")
    made.user("Is there a gauge?").assistant("There is.").done().compact("A gauge was found.")
    made.user([text("Where is it?"), image(png([[(0, 0, 0)]]))])
    made.assistant(thinking("Look."), text("I look."), tool("Read", file_path=_FILE))
    made.result("x = 1\n" * 700).assistant("In a.py.").done()
    made.user("Plot it.")
    made.assistant(tool("Bash", command="plot"), tool("Grep", pattern="x"))
    made.results("plotted", "a.py: x")
    ask = tool(made.gen.agent_tool, description="Look", prompt="Look", subagent_type="Explore")
    made.assistant(ask).agent(lambda agent: agent.assistant("All is well."))
    made.assistant("Plotted.").done()
    made.user("Print it.").assistant("No printer.").done()
    made.rewind(len(made.prompts) - 1)
    return made.user("And now?").assistant(text("That is all.")).done()


def damages_of(version: str) -> Iterator[tuple[str, bytes]]:
    """Yield the damages of a version's story: all of them for the oldest and the newest.

    Those between write like a neighbour but for a few fields: of theirs each kind is done at every
    third place, and at other places for each version.
    """
    every = damages(story(version))
    if version in (VERSIONS[0], VERSIONS[-1]):
        yield from every
        return
    phase = VERSIONS.index(version)
    seen = Counter[str]()
    for name, broken in every:
        kind = re.split(r" \d", name)[0]
        if not seen[kind] or (seen[kind] + phase) % 3 == 0:
            yield name, broken
        seen[kind] += 1


def damages(made: Session) -> Iterator[tuple[str, bytes]]:
    """Yield (what was done, the broken file)."""
    data = made.bytes()
    lines = data.splitlines(keepends=True)
    yield from _cuts(data, lines)
    for at in range(len(lines)):
        for name, change in _ON_LINES.items():
            yield f"{name} {at}", b"".join(change(list(lines), at))
        if b'"uuid":' in lines[at]:
            for name, edit in _ON_RECORDS.items():
                yield f"{name} {at}", _edited(lines, at, edit)
    chain = [at for at, line in enumerate(lines) if b'"uuid":' in line]
    for at in chain:
        for parent in chain[:: max(1, len(chain) // 6)]:
            uuid = json.loads(lines[parent])["uuid"]
            yield f"hang {at} on {parent}", _edited(lines, at, {"parentUuid": uuid})


def _cuts(data: bytes, lines: _Lines) -> Iterator[tuple[str, bytes]]:
    """Cut at every page, and inside every line, with and without what comes behind."""
    for at in range(_PAGE, len(data), _PAGE):
        yield f"cut at {at}", data[:at]
        yield f"hole at {at}", data[: at - 300] + b"\0" * 300 + data[at:]
    before = 0
    for number, line in enumerate(lines):
        for share in (1, len(line) // 3, len(line) - 2):
            yield f"torn {number}.{share}", data[: before + share]
        before += len(line)


def _glue(lines: _Lines, at: int) -> _Lines:
    lines[at] = lines[at].removesuffix(b"\n")
    return lines


def _splice(lines: _Lines, at: int) -> _Lines:
    lines[at] = lines[at][: len(lines[at]) // 2]
    return lines


def _tear(lines: _Lines, at: int) -> _Lines:
    lines[at] = lines[at][: len(lines[at]) // 2] + b"\n"
    return lines


def _zeros(lines: _Lines, at: int) -> _Lines:
    lines[at] = b"\0" * 500 + lines[at]
    return lines


def _swap(lines: _Lines, at: int) -> _Lines:
    other = (at + 3) % len(lines)
    lines[at], lines[other] = lines[other], lines[at]
    return lines


_ON_LINES: Final[dict[str, Callable[[_Lines, int], _Lines]]] = {
    "glue": _glue,
    "splice": _splice,
    "tear": _tear,
    "zeros": _zeros,
    "swap": _swap,
    "drop": lambda lines, at: lines[:at] + lines[at + 1 :],
    "drop two": lambda lines, at: lines[:at] + lines[at + 2 :],
    "twice": lambda lines, at: [*lines[:at], lines[at], *lines[at:]],
    "again at the end": lambda lines, at: [*lines, lines[at]],
    "to the end": lambda lines, at: [*lines[:at], *lines[at + 1 :], lines[at]],
    "to the front": lambda lines, at: [lines[at], *lines[:at], *lines[at + 1 :]],
    "reversed from": lambda lines, at: [*lines[:at], *lines[:at:-1], lines[at]],
    "only from": lambda lines, at: lines[at:],
    "junk before": lambda lines, at: [*lines[:at], b"no record\n", *lines[at:]],
    "a list before": lambda lines, at: [*lines[:at], b"[1,2]\n", *lines[at:]],
    "bad bytes": lambda lines, at: [
        *lines[:at],
        lines[at].replace(b'"type":"', b'"odd":"\xff\xfe","type":"', 1),
        *lines[at + 1 :],
    ],
    "half a pair": lambda lines, at: [
        *lines[:at],
        lines[at].replace(b'"type":"', b'"odd":"\\ud83d","type":"', 1),
        *lines[at + 1 :],
    ],
    "a raw control": lambda lines, at: [
        *lines[:at],
        lines[at].replace(b'"type":"', b'"odd":"\x01","type":"', 1),
        *lines[at + 1 :],
    ],
    "no number": lambda lines, at: [
        *lines[:at],
        lines[at].replace(b'"type":"', b'"odd":NaN,"type":"', 1),
        *lines[at + 1 :],
    ],
}
_ON_RECORDS: Final[dict[str, dict[str, Any]]] = {
    "unknown parent": {"parentUuid": _UNKNOWN},
    "no parent": {"parentUuid": None},
    "no time": {"timestamp": None},
    "time as a number": {"timestamp": 1763184000000},
    "time unreadable": {"timestamp": "yesterday"},
    "another session": {"sessionId": _UNKNOWN},
    "no id": {"uuid": None},
    "no message": {"message": None},
    "empty message": {"message": {"role": "user", "content": ""}},
    "message as text": {"message": "words"},
    "unknown type": {"type": "zzz"},
}


def _edited(lines: _Lines, at: int, fields: dict[str, Any]) -> bytes:
    record = {**json.loads(lines[at]), **fields}
    line = json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
    return b"".join([*lines[:at], line, *lines[at + 1 :]])
