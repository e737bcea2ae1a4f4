"""Tables of recorded answers: exact results of many inputs, in a readable file next to the test.

    assert_recorded(Path(__file__).with_name("answers") / "queries.json", answers)

`STENO_RECORD_ANSWERS=1` writes the tables anew and prints what differs. Read the difference before
you commit it: a wrong answer is a bug to fix, not to record.
"""

import json
import os
import sys
from collections.abc import Mapping
from difflib import unified_diff
from pathlib import Path
from typing import Any, Final, cast

import msgspec

__all__ = ["assert_recorded", "plain"]

_WIDTH: Final = 116


def assert_recorded(path: Path, answers: Mapping[str, object]) -> None:
    """Compare answers by the name of their case with the recorded ones, all of them and completely.

    Raises:
        AssertionError: an answer differs, or a case was added or removed.
    """
    text = _write(plain(dict(answers)), 0) + "\n"
    recorded = path.read_text("utf-8") if path.exists() else ""
    if text == recorded:
        return
    lines = unified_diff(recorded.splitlines(), text.splitlines(), "recorded", "now", "", "", 2, "")
    difference = "\n".join(lines)
    if os.environ.get("STENO_RECORD_ANSWERS"):
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, "utf-8")
        sys.stdout.write(f"{difference}\n")
        return
    raise AssertionError(f"{path.name} differs from what is recorded:\n{difference[:4000]}")


def plain(value: object) -> Any:
    """Return a value as JSON has it: structs as objects, tuples and sorted sets as arrays."""
    if isinstance(value, msgspec.Struct):
        fields = msgspec.structs.asdict(value)
        return {"": type(value).__name__.lstrip("_"), **{k: plain(v) for k, v in fields.items()}}
    if isinstance(value, Mapping):
        items = cast("Mapping[object, object]", value).items()
        return {name if isinstance(name, str) else repr(name): plain(each) for name, each in items}
    if isinstance(value, set | frozenset):
        members = [plain(each) for each in cast("set[object]", value)]
        return sorted(members, key=lambda each: json.dumps(each, sort_keys=True))
    if isinstance(value, list | tuple):
        return [plain(each) for each in cast("list[object]", value)]
    if isinstance(value, bytes | msgspec.Raw):
        return "b:" + bytes(value).decode("latin-1")
    if isinstance(value, BaseException):
        hint = getattr(value, "hint", "")
        return {"raises": type(value).__name__, "says": str(value), "hint": hint}
    if value is None or isinstance(value, str | int | float):
        return value
    return repr(value)


def _write(value: Any, depth: int) -> str:
    """Write a value on one line if it fits, else its members on lines of their own."""
    short = json.dumps(value, ensure_ascii=True)
    if len(short) + depth <= _WIDTH or not isinstance(value, dict | list) or not value:
        return short
    inner = " " * (depth + 1)
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        parts = [f"{json.dumps(k)}: {_write(v, depth + 1)}" for k, v in fields.items()]
    else:
        parts = [_write(each, depth + 1) for each in cast("list[Any]", value)]
    opening, closing = "{}" if isinstance(value, dict) else "[]"
    joined = f",\n{inner}".join(parts)
    return f"{opening}\n{inner}{joined}\n{' ' * depth}{closing}"
