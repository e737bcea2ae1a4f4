"""One session, sound, and broken in every way that session files have been seen broken.

`sound(version)` has three turns in thirteen records of the chain (see the names below); every text in it
is another, so that each can be looked for in what a client sends.
"""

from collections.abc import Callable
from typing import Any, Final

from tests.builders import Session, session, text, thinking, tool
from tests.interop.client import SID

from steno.format.encode import encode_line

__all__ = ["damaged", "sound"]

_FILE: Final = "/home/ada/tidegauge/README.md"
_ANOTHER: Final = "bbbbbbbb-0000-4000-8000-000000000777"
_Records = list[dict[str, Any]]
_Edit = Callable[[_Records], None]

# Where what stands in the bare session.
PROMPT, THOUGHT, WORDS, CALL, RESULT, ANSWER = range(6)
SECOND, CALL_A, CALL_B, RESULT_A, RESULT_B, ANSWER_2 = range(6, 12)
THIRD, ANSWER_3 = 12, 13


def sound(version: str, *, full: bool = False) -> Session:
    """Return the session as the client of that version would have written it."""
    made = session(version, session_id=SID, full=full, seed="interop")
    made.user("Which harbour is this?")
    made.assistant(thinking("Look it up."), text("I read it."), tool("Read", file_path=_FILE))
    made.result("# Harbour of Emden").assistant(text("It is Emden.")).done()
    made.user("How high is the tide?")
    made.assistant(tool("Bash", command="tide"), tool("Grep", pattern="tide"))
    made.results("3.2 m", "gauge.log: tide").assistant(text("Three metres and a bit.")).done()
    return made.user("And tomorrow?").assistant(text("Some 3.4 m.")).done()


def damaged(version: str) -> dict[str, bytes]:
    """Return the broken files by what was done to them."""

    def new() -> Session:
        return sound(version)

    unknown = "bbbbbbbb-0000-4000-8000-000000000666"
    own = new().uuids()
    files = {
        "torn tail": new().torn_tail(),
        "torn by a byte": new().torn_tail(1),
        "no newline at the end": new().no_final_newline(),
        "byte order mark": new().bom(),
        "CRLF": new().crlf(),
        "two records in a line": new().glue(RESULT),
        "spliced answer": new().splice(ANSWER, 90),
        "spliced result": new().splice(RESULT_A, 400),
        "NUL run": new().nul_run(CALL),
        "NUL run at the end": new().nul_run(ANSWER_3, 300),
        "bad UTF-8": new().bad_utf8(ANSWER),
        "lone surrogate": new().lone_surrogate(ANSWER),
        "key said twice": new().duplicate_key(ANSWER),
        "huge number": new().huge_int(RESULT),
        "a list between": new().not_object(RESULT),
        "blank line": new().blank(SECOND),
        "lost prompt": new().drop(SECOND),
        "lost first prompt": new().drop(PROMPT),
        "lost call": new().drop(CALL),
        "lost result": new().drop(RESULT),
        "lost answer": new().drop(ANSWER_2),
        "lost results": new().drop(RESULT_A).drop(RESULT_B),
        "parent unknown": new().retarget(SECOND, unknown),
        "parent of a result unknown": new().retarget(RESULT, unknown),
        "its own parent": new().retarget(ANSWER, own[ANSWER]),
        "no parent": new().retarget(ANSWER_2, None),
        "parent behind": new().retarget(SECOND, own[THIRD]),
        "circle": new().cycle(),
        "said again at the end": new().duplicate_uuid(RESULT),
    }
    edited = {name: _edited(new(), edit) for name, edit in _EDITS.items()}
    return {name: made.bytes() for name, made in files.items()} | edited


def _edited(made: Session, edit: _Edit) -> bytes:
    records = made.records()
    edit(records)
    return b"".join(encode_line(record) for record in records)


def _without(at: int, *fields: str) -> _Edit:
    def edit(records: _Records) -> None:
        for field in fields:
            records[at].pop(field, None)

    return edit


def _in_message(at: int, **values: Any) -> _Edit:
    return lambda records: records[at]["message"].update(values)


def _without_in_message(at: int, field: str) -> _Edit:
    return lambda records: records[at]["message"].pop(field)


def _more_results(**changes: str) -> _Edit:
    """Put a second result behind the first, with something changed in its block."""

    def edit(records: _Records) -> None:
        again: dict[str, Any] = {**records[RESULT], "uuid": _ANOTHER}
        message: dict[str, Any] = again["message"]
        block: dict[str, Any] = {**message["content"][0], **changes}
        records.insert(RESULT + 1, {**again, "message": {**message, "content": [block]}})

    return edit


def _backwards(records: _Records) -> None:
    stamps = [record["timestamp"] for record in records][::-1]
    for record, stamp in zip(records, stamps, strict=True):
        record["timestamp"] = stamp


def _no_ids(records: _Records) -> None:
    for record in records:
        if record["type"] == "assistant":
            record["message"].pop("id")


_EDITS: Final[dict[str, _Edit]] = {
    "no uuid": _without(ANSWER, "uuid"),
    "no parent field": _without(ANSWER, "parentUuid"),
    "no timestamp": _without(ANSWER_2, "timestamp"),
    "no type": _without(ANSWER, "type"),
    "no session id": _without(RESULT, "sessionId", "cwd", "version"),
    "no message ids": _no_ids,
    "empty text": _in_message(ANSWER, content=[{"type": "text", "text": ""}]),
    "unknown block": _in_message(ANSWER, content=[{"type": "hologram", "x": 1}]),
    "unsigned thought": _in_message(THOUGHT, content=[{"type": "thinking", "thinking": "Hm."}]),
    "no content": _without_in_message(ANSWER, "content"),
    "two results of one call": _more_results(content="# Another harbour"),
    "result of no call": _more_results(tool_use_id="toolu_nobody"),
    "times backwards": _backwards,
    "parts out of order": lambda records: records.insert(1, records.pop(ANSWER)),
}
