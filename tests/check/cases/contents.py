"""What messages hold: every kind of block and every way in which it can be wrong."""

import base64
import struct
from typing import Any, Final

from tests.check.check_answers import Case
from tests.check.small_sessions import (
    Records,
    blank,
    boundary,
    call,
    calls,
    output,
    outputs,
    picture,
    prompt,
    reply,
    summary,
    thought,
    uuid,
    words,
)

__all__ = ["cases"]


def _png(width: int, height: int) -> str:
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR"
    return base64.b64encode(head + struct.pack(">II", width, height)).decode()


_SMALL: Final = picture(_png(1, 1))
_CONTENTS: Final[dict[str, Any]] = {
    "text": "Words.",
    "empty text": "",
    "blank text": " \t\n",
    "null": None,
    "a number": 5,
    "an object": {"type": "text", "text": "Words."},
    "no blocks": [],
    "a text in a list": ["Words."],
    "a blank text in a list": [" "],
    "null in a list": [None],
    "a number in a list": [5],
    "a list in a list": [["Words."]],
    "no type": [{"text": "Words."}],
    "type null": [{"type": None, "text": "Words."}],
    "type a list": [{"type": ["text"]}],
    "unknown type": [{"type": "zzz", "text": "Words."}],
    "unknown beside words": [{"type": "zzz"}, words("Words.")],
    "empty block": [words("")],
    "blank block": [blank()],
    "text null": [words(None)],
    "text a number": [words(5)],
    "text missing": [{"type": "text"}],
    "blank beside words": [blank(), words("Words.")],
    "words beside blank": [words("Words."), blank()],
    "words twice": [words("Words."), words("More.")],
    "signed thinking": [thought()],
    "signed thinking and words": [thought(), words("Words.")],
    "thinking and blank": [thought(), blank()],
    "unsigned thinking": [thought("")],
    "signature missing": [{"type": "thinking", "thinking": "Hm."}],
    "signature a number": [thought(5)],
    "thinking no text": [{"type": "thinking", "thinking": None, "signature": "c2ln"}],
    "unsigned thinking and words": [thought(""), words("Words.")],
    "redacted": [{"type": "redacted_thinking", "data": "c2ln"}],
    "redacted without data": [{"type": "redacted_thinking"}],
    "redacted and words": [{"type": "redacted_thinking", "data": "c2ln"}, words("Words.")],
    "image": [_SMALL],
    "image of no kind": [picture(_png(1, 1), "image/bmp")],
    "image of another kind": [picture(_png(1, 1), "image/gif")],
    "image without data": [picture("")],
    "image no base64": [picture("?")],
    "image without source": [{"type": "image"}],
    "image of 8000": [picture(_png(8000, 1))],
    "image of 8001": [picture(_png(1, 8001))],
    "image at an address": [{"type": "image", "source": {"type": "url", "url": "https://a.b"}}],
    "image at no address": [{"type": "image", "source": {"type": "url"}}],
    "document": [{"type": "document", "source": {"type": "text", "data": "Words."}}],
    "document without source": [{"type": "document"}],
    "document no base64": [{"type": "document", "source": {"type": "base64", "data": "?"}}],
    "search result": [{"type": "search_result", "title": "t"}],
    "server tool": [{"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}],
    "server tool without input": [{"type": "server_tool_use", "id": "s", "name": "web_search"}],
}
_CALLS: Final[dict[str, dict[str, Any]]] = {
    "sound": {},
    "input null": {"input": None},
    "input text of an object": {"input": '{"command":"ls"}'},
    "input text": {"input": "ls"},
    "input a list": {"input": ["ls"]},
    "input a number": {"input": 5},
    "name null": {"name": None},
    "name empty": {"name": ""},
    "name a number": {"name": 5},
    "id null": {"id": None},
    "id empty": {"id": ""},
    "id a number": {"id": 5},
}
_RESULTS: Final[dict[str, dict[str, Any]]] = {
    "content null": {"content": None},
    "content empty": {"content": ""},
    "content a number": {"content": 5},
    "content an object": {"content": {"type": "text", "text": "out"}},
    "no blocks": {"content": []},
    "blocks": {"content": [words("out"), _SMALL]},
    "blank block": {"content": [blank()]},
    "blank block and words": {"content": [blank(), words("out")]},
    "unknown block": {"content": [{"type": "zzz"}, words("out")]},
    "no object": {"content": ["out"]},
    "no type": {"content": [{"text": "out"}]},
    "thinking": {"content": [thought("")]},
    "bad image": {"content": [picture("?")]},
    "bad image and words": {"content": [words("out"), picture(_png(9000, 9000))]},
    "a result": {"content": [{"type": "tool_result", "tool_use_id": "a", "content": "in"}]},
    "a reference": {"content": [{"type": "tool_reference", "tool_name": "x"}]},
    "error": {"is_error": True},
    "error without words": {"is_error": True, "content": ""},
    "error with an image": {"is_error": True, "content": [_SMALL]},
    "error a text": {"is_error": "yes"},
    "call null": {"tool_use_id": None},
    "call empty": {"tool_use_id": ""},
    "call a number": {"tool_use_id": 5},
}


def _asked(content: Any, **message: Any) -> Records:
    made = [prompt(1), reply(2), prompt(3), reply(4)]
    made[2]["message"] = {"role": "user", "content": content, **message}
    return made


def _answered(content: Any, **message: Any) -> Records:
    made = [prompt(1), reply(2), prompt(3), reply(4), prompt(5), reply(6)]
    made[3]["message"] = {**made[3]["message"], "content": content, **message}
    return made


def _in_response(*contents: Any) -> Records:
    """Return an answer of several lines in one response."""
    lines = [reply(at, content, "m") for at, content in enumerate(contents, 2)]
    end = len(contents) + 2
    return [prompt(1), *lines, prompt(end), reply(end + 1)]


def _called(fields: dict[str, Any], *, answered: bool = True) -> Records:
    block = {**calls("a")[0], **fields}
    given = {**outputs("a")[0], "tool_use_id": block["id"]}
    results = [prompt(3, [given])] if answered else [prompt(3)]
    return [prompt(1), reply(2, [block]), *results, reply(4)]


def _resulted(fields: dict[str, Any]) -> Records:
    block = {**outputs("a")[0], **fields}
    return [prompt(1), call(2, "a"), prompt(3, [block]), reply(4)]


def _many(count: int, side: int, *, where: str = "prompt") -> Records:
    images = [_SMALL] * (count - 1) + [picture(_png(side, 1))]
    match where:
        case "result":
            blocks = [{**outputs("a")[0], "content": [words("out"), *images]}]
            return [prompt(1), call(2, "a"), prompt(3, blocks), reply(4)]
        case "compacted":
            old = [prompt(1, images[:2]), reply(2), boundary(3), summary(4)]
            return [*old, prompt(5, images[2:]), reply(6)]
        case "apart":
            first = [prompt(1, [*images[:10], words("x")]), reply(2)]
            return [*first, prompt(3, images[10:]), reply(4)]
        case _:
            return [prompt(1, images), reply(2)]


def cases() -> dict[str, list[Case]]:
    """Return the files by what kind of message is looked at."""
    prompts = [Case(name, _asked(content)) for name, content in _CONTENTS.items()]
    answers = [Case(name, _answered(content)) for name, content in _CONTENTS.items()]
    return {
        "a prompt": prompts,
        "an answer": answers,
        "a first prompt": [
            Case(name, [prompt(1, on=0, message={"role": "user", "content": content}), reply(2)])
            for name, content in _CONTENTS.items()
            if name in ("empty text", "null", "no blocks", "blank block", "unknown type")
        ],
        "a message": [
            Case("no role", _asked("Words.", role=None)),
            Case("another role", _asked("Words.", role="assistant")),
            Case("an answer of a user", _answered([words("x")], role="user")),
            Case("role a number", _asked("Words.", role=5)),
            Case("no content", [prompt(1), reply(2), prompt(3, message={"role": "user"})]),
            Case("nothing", [prompt(1), reply(2), prompt(3, message={}), reply(4)]),
            Case("a list", [prompt(1), reply(2), prompt(3, message=[1]), reply(4)]),
            Case("a number", [prompt(1), reply(2), prompt(3, message=7), reply(4)]),
            Case("an answer a list", [prompt(1), reply(2, message=[1]), prompt(3), reply(4)]),
            Case("an answer a text", [prompt(1), reply(2, message="x"), prompt(3), reply(4)]),
            Case("of an agent", [prompt(1), reply(2), prompt(3, 5, on=2, isSidechain=True)]),
            Case("abandoned", [prompt(1), prompt(2, [blank()], on=1), prompt(3, on=1), reply(4)]),
        ],
        "a response": [
            Case("blank, then words", _in_response([blank()], [words("x")])),
            Case("words, then blank", _in_response([words("x")], [blank()])),
            Case("thinking, then blank", _in_response([thought()], [blank()])),
            Case("blank, then thinking", _in_response([blank()], [thought()])),
            Case("thinking, then words", _in_response([thought()], [words("x")])),
            Case("thinking twice", _in_response([thought()], [thought()])),
            Case("unsigned, then words", _in_response([thought("")], [words("x")])),
            Case("blank twice", _in_response([blank()], "")),
            Case("unknown, then words", _in_response([{"type": "zzz"}], [words("x")])),
            Case("blank, then unknown", _in_response([blank()], [{"type": "zzz"}])),
            Case("thinking, then a number", _in_response([thought()], 5)),
        ],
        "a call": [
            *(Case(name, _called(fields)) for name, fields in _CALLS.items()),
            *(Case(f"{n}, open", _called(f, answered=False)) for n, f in _CALLS.items()),
            Case("no input", [prompt(1), reply(2, [{"type": "tool_use", "id": "a", "name": "x"}])]),
        ],
        "a result": [Case(name, _resulted(fields)) for name, fields in _RESULTS.items()],
        "many images": [
            Case("20 of 2001", _many(20, 2001)),
            Case("21 of 2000", _many(21, 2000)),
            Case("21 of 2001", _many(21, 2001)),
            Case("21 of 2001 in a result", _many(21, 2001, where="result")),
            Case("21 of 2001, 2 of them compacted", _many(21, 2001, where="compacted")),
            Case("22 of 2001 apart", _many(22, 2001, where="apart")),
            Case("21 of 9000", _many(21, 9000)),
        ],
        "the beginning": [
            Case("a command first", [prompt(1, "<command-name>/x</command-name>"), reply(2)]),
            Case("a caveat first", [prompt(1, "<local-command-caveat>x", isMeta=True), reply(2)]),
            Case("a result first", [output(1, "a"), reply(2)]),
            Case("an answer first", [reply(1, on=0), prompt(2), reply(3)]),
            Case("only an answer", [reply(1, on=0)]),
            Case("only a prompt", [prompt(1)]),
            Case("only a call", [prompt(1), call(2, "a")]),
            Case("an answer behind a note", [_note(1), reply(2), prompt(3), reply(4)]),
        ],
    }


def _note(number: int) -> dict[str, Any]:
    made = prompt(number)
    del made["message"]
    return {**made, "type": "system", "subtype": "local_command", "content": "x", "uuid": uuid(1)}
