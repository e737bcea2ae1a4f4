"""What is written: numbers and texts as JSON, new records, and paths put below another folder."""

import json
from collections.abc import Iterator
from itertools import count
from typing import Any, Final

from steno.format.encode import Composer, SessionContext, encode, encode_line
from steno.format.path_rewriter import TEXT_FIELDS, PathRewriter

__all__ = ["answers"]

_NUMBERS: Final = (
    *(0, 1, -1, 2**53, 2**63, 10**30),
    *(0.0, -0.0, 1.0, 2.5, -2.5, 1e-5, 1e-6, 1.5e-6, 9.9e-7, 1e-7, 1.5e-7, -1e-7, 123456789.125),
    *(1e15, 9007199254740991.0, 9007199254740992.0, 1e16, 1.5e20, 1e20, 1e21, 1.5e21, 1e22, 1e300, -1e21),
    *(float("inf"), float("-inf"), float("nan"), 5e-324, 0.1, 1 / 3),
)
_VALUES: Final[tuple[Any, ...]] = (
    None,
    True,
    "x",
    "é\U0001f600",
    "\ud83d",
    "a\nb\t\x00\x7f\u2028",
    '"\\/',
    [],
    {},
    [1.0, [2.0, {"a": 3.0}]],
    {"a": 1e-7, "b": "\x00number:1", "c": ("x", 1e21)},
    {"é": 1.0, "\ud83d": 2},
    ("x", "y"),
)
_OLD, _NEW = "/home/ada/wörk", "/srv/new"
_REROOTED: Final[dict[str, bytes]] = {
    "the folder": json.dumps({"cwd": _OLD}, ensure_ascii=False).encode(),
    "below it": json.dumps({"cwd": f"{_OLD}/a/b"}, ensure_ascii=False).encode(),
    "beside it": json.dumps({"cwd": f"{_OLD}ing"}, ensure_ascii=False).encode(),
    "above it": b'{"cwd":"/home/ada"}',
    "in ASCII": json.dumps({"cwd": f"{_OLD}/a"}).encode(),
    "slashes escaped": json.dumps({"cwd": f"{_OLD}/a"}, ensure_ascii=False).replace("/", "\\/").encode(),
    "a name": json.dumps({_OLD: 1, f"{_OLD}/x": {"text": 2}}, ensure_ascii=False).encode(),
    "a name of words": json.dumps({"text": {f"{_OLD}/x": "y"}}, ensure_ascii=False).encode(),
    "in a list": json.dumps({"files": [f"{_OLD}/a", "x", f"{_OLD}/b"]}, ensure_ascii=False).encode(),
    "in a list of words": json.dumps({"lines": [f"{_OLD}/a", [f"{_OLD}/b"]]}, ensure_ascii=False).encode(),
    "in an object in a list of words": json.dumps(
        {"lines": [{"file": f"{_OLD}/a"}, f"{_OLD}/b"]}, ensure_ascii=False
    ).encode(),
    "behind a list": json.dumps({"lines": [1], "x": [f"{_OLD}/a"]}, ensure_ascii=False).encode(),
    "with a control": json.dumps({"cwd": f"{_OLD}/a\nb"}, ensure_ascii=False).encode(),
    "with an escape": json.dumps({"cwd": f'{_OLD}/a"b'}, ensure_ascii=False).encode(),
    "with a backslash": json.dumps({"cwd": f"{_OLD}/a\\nb"}, ensure_ascii=False).encode(),
    "blanks around": json.dumps({"cwd": f"{_OLD}/a", "text": f"{_OLD}/a"}, ensure_ascii=False, indent=1).encode(),
    "a text in a text": json.dumps({"x": json.dumps({"cwd": f"{_OLD}/a"})}, ensure_ascii=False).encode(),
    "a request": json.dumps({"type": "api-request", "cwd": _OLD}, ensure_ascii=False).encode(),
    "a request's blob": json.dumps({"cwd": _OLD, "type": "api-request-blob"}, ensure_ascii=False).encode(),
    "a request in a text": json.dumps({"x": '"type":"api-request', "cwd": _OLD}, ensure_ascii=False).encode(),
    "saved": json.dumps({"content": f"<persisted-output>\nSaved to: {_OLD}/a.txt\n"}, ensure_ascii=False).encode(),
    "saved far away": json.dumps(
        {"content": f"<persisted-output>\n{'x' * 201}{_OLD}/a.txt"}, ensure_ascii=False
    ).encode(),
    "saved near": json.dumps({"content": f"<persisted-output>\n{'x' * 200}{_OLD}/a.txt"}, ensure_ascii=False).encode(),
    "saved, in a text": json.dumps(
        {"x": json.dumps({"content": f"<persisted-output>\nto {_OLD}/a"})}, ensure_ascii=False
    ).encode(),
    "long": json.dumps({"cwd": f"{_OLD}/{'x' * 9000}"}, ensure_ascii=False).encode(),
    "cut": json.dumps({"cwd": f"{_OLD}/a"}, ensure_ascii=False).encode()[:-4],
    "alone": json.dumps(_OLD, ensure_ascii=False).encode(),
    "alone in a list": json.dumps([_OLD, {"a": [_OLD]}], ensure_ascii=False).encode(),
    "a long name before": json.dumps({"x" * 300: _OLD}, ensure_ascii=False).encode(),
    "two": json.dumps({"a": _OLD, "text": _OLD, "b": f"{_OLD}/c"}, ensure_ascii=False).encode(),
    "nothing": b"{}",
}


def _composer() -> Composer:
    ids, times = count(1), count(1)
    place = SessionContext(session_id="s", cwd="/w", version="9.9", git_branch="main")
    return Composer(place, new_uuid=lambda: f"u{next(ids)}", now=lambda: f"t{next(times)}")


def _composed() -> Iterator[tuple[str, Any]]:
    """Yield a record of every kind, in the order of a session."""
    made = _composer()
    yield "title", made.title("T")
    yield "prompt", made.prompt("x")
    yield "meta", made.prompt("y", isMeta=True)
    yield "attachment", made.attachment({"type": "a"})
    yield "attachment with words", made.attachment({"type": "a"}, "one", "two")
    yield "attachment of the user", made.attachment({"type": "a"}, role="user")
    blocks = [{"type": "text", "text": "x"}, {"type": "tool_use", "id": "c"}, {"type": "tool_use", "id": "d"}]
    usage = {"input_tokens": 1}
    yield (
        "response",
        made.response(blocks, message_id="m", model="o", stop_reason="tool_use", usage=usage, request_id="r", more=1),
    )
    yield "attachment beside", made.attachment({"type": "a"}, "w", beside="c")
    yield "attachment beside nothing", made.attachment({"type": "a"}, "w", beside="z")
    yield "result", made.result("c", "out", detail={"x": 1}, extra=2)
    yield "error", made.result("d", [{"type": "text"}], is_error=True)
    yield "result of nothing", made.result("c", "again")
    yield (
        "plain response",
        made.response([{"type": "text"}], message_id="n", model="o", stop_reason=None, usage={}, stop_sequence="S"),
    )
    yield "failure", made.failure("no")
    yield "failure of a kind", made.failure("no", status=529)
    yield "note", made.note("turn_duration", durationMs=5)
    yield "turn", made.turn_end("line\nother ")
    yield "turn of nothing", made.turn_end("")
    for size in (199, 200, 201):
        yield f"turn of {size}", made.turn_end("x" * (size - 1) + "y")
    yield "turn cut at a blank", made.turn_end("x" * 199 + " " + "y" * 9)
    yield "compaction", made.compaction("sum", metadata={"trigger": "auto", "preTokens": 7})
    made.rewind("back")
    yield "behind a rewind", made.prompt([{"type": "text", "text": "x"}])
    agent = Composer(
        SessionContext(session_id="s", cwd="/w", version="9.9", agent_id="a"),
        new_uuid=lambda: "u",
        now=lambda: "t",
        leaf="l",
    )
    yield "of an agent", agent.result("q", "out")


def answers() -> Iterator[tuple[str, str]]:
    """Yield what is to be written, and how it is."""
    for number in _NUMBERS:
        yield f"number {number!r}", encode(number).decode()
    for value in _VALUES:
        yield f"value {value!r}", f"{encode(value)!r} {encode_line(value)[-1:]!r}"
    for name, record in _composed():
        yield f"composed {name}", json.dumps(record)
    paths = PathRewriter([(_OLD, _NEW), ("/home/ada", "/home/ada"), ("/x", "/y")])
    for name, data in _REROOTED.items():
        changed, number = paths.rewrite(data)
        back, again = paths.inverse().rewrite(changed)
        shown = changed.decode("utf-8", "replace")
        shown = shown if len(shown) < 500 else f"{shown[:20]}…{shown[-30:]} ({len(shown)})"
        yield f"below another, {name}", f"{number} {shown} back {again} {back == data}"
    for word in (*sorted(TEXT_FIELDS), "file", "path"):
        changed, number = paths.rewrite(json.dumps({word: "/x/a", "o": [{word: ["/x"]}]}).encode())
        yield f"in {word}", f"{number} {changed.decode()}"
    for old, new in (("/a", "C:\\b"), ("C:\\b", "/a"), ("C:\\b", "D:\\c"), ("/a", "/b")):
        turned = PathRewriter([(old, new)])
        data = json.dumps({"cwd": old, "f": old + ("\\x\\y" if "\\" in old else "/x/y"), "g": old + "z"})
        told = [
            turned.rewrite_path(old),
            turned.rewrite_path(old + "/x"),
            turned.rewrite_path(old + "\\x"),
            turned.rewrite_path("/q"),
        ]
        changed, number = turned.rewrite(data.encode())
        yield (
            f"from {old} to {new}",
            f"{told} {number} {changed.decode()} {turned.inverse().rewrite(changed)[0] == data.encode()}",
        )
    deepest = PathRewriter([("/a", "/1"), ("/a/b", "/2"), ("/a/b/c", "/a/b/c")])
    data = json.dumps({"x": ["/a", "/a/b", "/a/b/c", "/a/b/c/d", "/a/d", "/ab"]}).encode()
    yield "the deepest first", f"{deepest.pairs} {deepest.rewrite(data)}"
    yield "no folders", str(PathRewriter([]).rewrite(data))
