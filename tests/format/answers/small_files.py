"""The small files around a session: every field as it should be, missing, and of a wrong type."""

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

import msgspec

from steno.format.client_settings import read_settings
from steno.format.sidecars import (
    AgentMeta,
    CustomTitle,
    HistoryEntry,
    IndexEntry,
    LiveProcess,
    Paste,
    SessionsIndex,
    TaskItem,
    TodoItem,
    decode_json,
    parse_backup_name,
    read_agent_meta,
    read_custom_title,
    read_history,
    read_live_process,
    read_sessions_index,
    read_task,
    read_text,
    read_todos,
)
from steno.format.source import DAMAGE_HINTS, Damage

__all__ = ["answers"]

_READERS: Final[dict[str, tuple[Callable[[bytes], tuple[Any, tuple[Damage, ...]]], Any]]] = {
    "agent": (read_agent_meta, AgentMeta),
    "title": (read_custom_title, CustomTitle),
    "task": (read_task, TaskItem),
    "live": (read_live_process, LiveProcess),
    "index": (read_sessions_index, SessionsIndex),
}
_EVERY: Final[dict[Any, tuple[Any, ...]]] = {
    str: ("x", 5, None, ["x"]),
    bool: (True, False, 0, "yes"),
    int: (5, 5.9, True, "5", 2**63, -(2**63) + 1, 1e300),
    tuple[str, ...]: (["a", "b"], [], ["a", 5], "a", {"a": 1}),
    tuple[IndexEntry, ...]: ([{"sessionId": "s", "fileMtime": "x"}, 5], "x", [{}], []),
    tuple[Paste, ...]: ({"1": {"id": 1, "content": "c"}, "2": 5}, [1], {}, {"1": {"id": "x"}}),
}


def _values(kind: Any) -> dict[str, tuple[Any, ...]]:
    return {field.encode_name: _EVERY[field.type] for field in msgspec.structs.fields(kind)}


def _told(read: tuple[Any, tuple[Damage, ...]]) -> str:
    value, damage = read
    notes = [f"{each.id} {each.span.offset}+{each.span.length} {each.message}" for each in damage]
    fields = value if isinstance(value, tuple | str) or value is None else _fields(value)
    return f"{fields} {notes}"


def _fields(value: Any) -> str:
    """Return the fields of a struct that are not what they are by default."""
    plain = type(value)()
    names = value.__struct_fields__
    return str({name: getattr(value, name) for name in names if getattr(value, name) != getattr(plain, name)})


def _line(value: Any) -> bytes:
    return json.dumps(value).encode()


def answers() -> Iterator[tuple[str, str]]:
    """Yield each file, and what is read from it."""
    for name, (read, kind) in _READERS.items():
        yield f"{name} of nothing", _told(read(b""))
        yield f"{name} of a list", _told(read(b"[1]"))
        yield f"{name} of words", _told(read(b"no json"))
        yield f"{name} without fields", _told(read(b"{}"))
        everything = {field: values[0] for field, values in _values(kind).items()}
        yield f"{name} in full", _told(read(_line(everything)))
        for field, values in _values(kind).items():
            told = [f"{value!r}: {_told(read(_line({field: value})))}" for value in values]
            yield f"{name} {field}", "\n    ".join(told)
        wrong = {key: {"x": 1} for key in everything}
        yield f"{name} all wrong", _told(read(_line(wrong)))
    yield "live, older", _told(read_live_process(b'{"pid":1,"session_id":"s"}'))
    yield "live, both", _told(read_live_process(b'{"sessionId":"t","session_id":"s"}'))
    yield "live, older a number", _told(read_live_process(b'{"session_id":5}'))
    item = dict.fromkeys(_values(TodoItem), "x")
    for name, raw in {
        "list": [item, {"content": "y"}],
        "empty list": [],
        "odd items": [5, item, None],
        "odd fields": [{"content": 5, "status": "s"}, {"content": 6}],
        "no list": {"a": 1},
    }.items():
        yield f"todos, {name}", _told(read_todos(_line(raw)))
    yield "todos, no json", _told(read_todos(b"["))
    entry = {"display": "d", "timestamp": 5, "project": "p", "sessionId": "s", "pastedContents": {}}
    lines = [_line(entry), b"", b"no json", _line({"display": 5}), b"  ", b"[1]", _line({})]
    yield "history", _told(read_history(b"\n".join(lines)))
    for value in _EVERY[tuple[Paste, ...]]:
        yield f"pastes {value!r}", _told(read_history(_line({"pastedContents": value})))
    assert HistoryEntry() == read_history(b"{}")[0][0]
    for name, raw in {"words": b"x\xc3\xa9", "bad": b"ab\xffcd\xfe", "cut": b"a\xe2\x82", "none": b""}.items():
        yield f"text, {name}", _told(read_text(raw))
    for name in (
        "0123456789abcdef@v1",
        "0123456789abcdef@v",
        "0123456789abcde@v1",
        "0123456789abcdef@v1234567890",
        "0123456789ABCDEF@v1",
        "",
    ):
        backup = parse_backup_name(name)
        yield f"backup {name!r}", f"{backup} {backup is not None and backup.is_of('/a')}"
    backup = parse_backup_name("ca978112ca1bbdca@v3")
    assert backup is not None
    yield "backup of a", f"{backup.is_of('a')} {backup.is_of('/a')}"
    deep = b"[" * 100_000
    yield "decoded", f"{decode_json(b'[1]')} {decode_json(b'x')} {decode_json(deep)}"
    for name, raw in _SETTINGS.items():
        read, notes = read_settings(raw)
        shown = None if read is None else {**msgspec.structs.asdict(read), "masked": json.loads(read.masked)}
        yield f"settings, {name}", f"{shown} {notes}"
    nested: Any = "x"
    for _ in range(70):
        nested = [nested]
    read, _ = read_settings(_line({"deep": nested}))
    assert read is not None
    yield "settings, deep", str(read.masked.count("["))
    for name in DAMAGE_HINTS:
        yield f"hint {name}", Damage(name, _NOWHERE).hint
    yield "no hint", repr(Damage("zzz", _NOWHERE).hint)


_NOWHERE: Final = Damage("", read_todos(b"")[1][0].span).span
_SETTINGS: Final[dict[str, bytes]] = {
    "nothing": b"",
    "a list": b"[1]",
    "empty": b"{}",
    "all": _line(
        {
            "model": "m",
            "permissions": {"allow": ["a", 5], "ask": ["b"], "deny": ["c"]},
            "hooks": {"Stop": [{"matcher": "x", "hooks": [{"command": "c"}, {"command": 5}]}, 5]},
            "env": {"A": "secret", "B": 5, "C": None, "D": True, "E": [1, {"f": "g"}]},
            "apiKeyHelper": "run",
            "list": [{"authToken": "t", "name": "n"}],
            "PASSWORD": {"x": "y", "z": False},
        }
    ),
    "odd": _line({"model": 5, "permissions": [1], "hooks": {"Stop": 5}, "env": "x"}),
    "odd inside": _line({"permissions": {"allow": "x", "deny": None}, "hooks": [1], "env": [1]}),
    **{
        f"a {word}": _line({f"my_{word}_x": "hidden"})
        for word in ("token", "KEY", "secret", "passwd", "passphrase", "credential", "authorization", "cookie", "plain")
    },
}
