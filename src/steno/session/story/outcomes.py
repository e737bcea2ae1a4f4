"""One line per tool: what it was asked, and what came of it."""

import re
from collections.abc import Callable, Iterable
from typing import Any, Final, cast

import msgspec

from steno.format.blocks import Image, ToolResult
from steno.format.records import Record
from steno.format.tool_catalogue import EDITING_TOOLS, FILE_TOOLS, Summary, facts_of
from steno.session.story.runners import tests_in
from steno.session.story.steps import FileTouch, State, one_line

__all__ = ["Outcome", "outcome_of", "subject_of", "touch_of"]

_MINUS: Final = "\N{MINUS SIGN}"
_SHORT: Final = 80
_HEAD: Final = 400
_LIKELY: Final = (
    "file_path",
    "path",
    "command",
    "query",
    "pattern",
    "url",
    "name",
    "title",
    "description",
    "subject",
    "prompt",
    "id",
)
_INTERRUPTED: Final = "[Request interrupted by user"
_EXIT: Final = re.compile(r"\A(?:Error: )?Exit code (-?\d+)")
_REFUSED: Final = re.compile(
    r"User rejected tool use|The user doesn't want to (?:proceed|take this action)|Permission to use .* has been denied"
    r"|requested permissions? to .*you haven't granted it"
)
_ERROR_TAG: Final = re.compile(r"\A\s*(?:<tool_use_error>|Error: |InputValidationError: )+")
_ERROR_END: Final = "</tool_use_error>"

Fields = dict[str, Any]


class Outcome(msgspec.Struct, frozen=True):
    """What came of a call."""

    words: str = ""
    state: State = "ok"
    touch: FileTouch | None = None


# What was asked


def subject_of(tool: str, asked: Fields) -> str:
    """Return what a call is about, in one line of its own words."""
    if tool == "TodoWrite":
        return _count(len(_list(asked.get("todos"))), "item")
    if tool == "AskUserQuestion":
        questions = [_fields(item) for item in _list(asked.get("questions"))]
        return one_line(_text(questions[0].get("question"))) if questions else ""
    facts = facts_of(tool)
    said = _first(asked, facts.subject)
    if facts.subject_details:
        details = (_text(asked.get(name)) for name in facts.subject_details)
        said = " ".join(filter(None, (said, *details)))
    return one_line(said or _first(asked, _LIKELY) or _first(asked, asked))


def _first(asked: Fields, names: Iterable[str]) -> str:
    for name in names:
        if text := _text(asked.get(name)):
            return text
    return ""


def touch_of(tool: str, asked: Fields) -> FileTouch | None:
    """Return the file a call reads or changes, as far as the call alone says it."""
    if tool not in FILE_TOOLS:
        return None
    facts = facts_of(tool)
    path = _text(asked.get(facts.path_field))
    if not path:
        return None
    match facts.file_action:
        case "replace":
            added, removed = _replaced(asked)
        case "replace_many":
            pairs = [_replaced(_fields(edit)) for edit in _list(asked.get("edits"))]
            added, removed = sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)
        case "write":
            added, removed = _lines(_text(asked.get("content"))), 0
        case "cell":
            added, removed = _lines(_text(asked.get("new_source"))), 0
        case _:
            added = removed = 0
    return FileTouch(path, tool, added, removed)


def _replaced(edit: Fields) -> tuple[int, int]:
    """Return how many lines a replacement adds and removes, those in common left out."""
    old = _text(edit.get("old_string")).splitlines()
    new = _text(edit.get("new_string")).splitlines()
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return len(new) - head - tail, len(old) - head - tail


# What came of it


def outcome_of(
    tool: str, block: ToolResult, record: Record, touch: FileTouch | None = None
) -> Outcome:
    """Return what came of a call; `touch` is what the call alone said about a file."""
    # One record may answer several calls; what the client kept is then of no certain call.
    alone = len(record.blocks) == 1 or len(record.tool_results) == 1
    detail = record.tool_use_result if alone else None
    text = block.text
    refused = _denied(record, text, detail)
    if refused or block.is_error:
        return _failure(text, refused=refused)
    kept = _fields(detail)
    if kept.get("interrupted") is True:
        return Outcome("interrupted", "interrupted")
    touched = _changed(touch, kept) if touch is not None else None
    reader = _READERS[facts_of(tool).summary]
    words = (
        _sizes(touched, kept) if touched and tool in EDITING_TOOLS else reader(kept, text, block)
    )
    return Outcome(words, "ok", touched)


def _denied(record: Record, text: str, detail: Any) -> bool:
    if record.envelope.tool_denial_kind:
        return True
    if isinstance(detail, str) and _REFUSED.search(detail, 0, _HEAD):
        return True
    return _REFUSED.match(text, 0, _HEAD) is not None


def _failure(text: str, *, refused: bool) -> Outcome:
    if refused:
        return Outcome("denied", "denied")
    found = _EXIT.match(text)
    if _INTERRUPTED in text:
        return Outcome("interrupted", "interrupted")
    if found:
        tests = tests_in(text)
        return Outcome(f"exit {found[1]}" + (f", {tests}" if tests else ""), "failed")
    words = _ERROR_TAG.sub("", text).replace(_ERROR_END, "")
    return Outcome(one_line(words, _SHORT) or "failed", "failed")


def _changed(touch: FileTouch, kept: Fields) -> FileTouch:
    """Return the touch with the figures of the patch that the client kept."""
    patch = kept.get("structuredPatch")
    if touch.verb == "Read" or not isinstance(patch, list):
        return touch
    if not patch and kept.get("type") == "create":
        return touch
    lines = [
        line
        for hunk in cast("list[Any]", patch)
        for line in _list(_fields(hunk).get("lines"))
        if isinstance(line, str)
    ]
    signs = [line[:1] for line in lines]
    return FileTouch(touch.path, touch.verb, signs.count("+"), signs.count("-"))


def _sizes(touch: FileTouch, kept: Fields) -> str:
    if touch.verb == "Write" and (kept.get("type") == "create" or not touch.removed):
        return f"+{touch.added}"
    return f"+{touch.added} {_MINUS}{touch.removed}"


def _read(kept: Fields, text: str, block: ToolResult) -> str:
    file = _fields(kept.get("file"))
    shown, whole = _number(file.get("numLines")), _number(file.get("totalLines"))
    if shown is not None:
        more = f" of {whole}" if whole is not None and whole > shown else ""
        return _count(shown, "line", more)
    if "cells" in file:
        return _count(len(_list(file.get("cells"))), "cell")
    kind = _text(kept.get("type"))
    if kind and kind != "text":
        return kind.replace("_", " ")
    if any(isinstance(part, Image) for part in block.blocks):
        return "image"
    return _count(_lines(text), "line")


def _bash(kept: Fields, text: str, _block: ToolResult) -> str:
    if kept.get("backgroundTaskId"):
        return "in background"
    tests = tests_in(text)
    if tests:
        return tests
    said = _text(kept.get("stdout")) + _text(kept.get("stderr")) if kept else text
    lines = _lines(said.strip("\n"))
    meaning = _text(kept.get("returnCodeInterpretation"))
    return meaning or (_count(lines, "line") if lines else "no output")


def _grep(kept: Fields, text: str, _block: ToolResult) -> str:
    mode = _text(kept.get("mode"))
    files, lines = _number(kept.get("numFiles")), _number(kept.get("numLines"))
    if mode == "content" and lines is not None:
        total = _number(kept.get("totalLines"))
        of = f" of {total:,}" if total is not None and total > lines else ""
        return _count(lines, "match", of, none="no matches")
    matches = _number(kept.get("numMatches"))
    if mode == "count" and matches is not None:
        return _count(matches, "match", none="no matches")
    if files is not None:
        return _count(files, "file", none="no matches")
    return _count(_lines(text), "line")


def _glob(kept: Fields, text: str, _block: ToolResult) -> str:
    files = _number(kept.get("numFiles"))
    return _count(_lines(text) if files is None else files, "file", none="no files")


def _fetch(kept: Fields, text: str, block: ToolResult) -> str:
    code, size = _number(kept.get("code")), _number(kept.get("bytes"))
    if code is None:
        return _plain(kept, text, block)
    return f"{code}, {size / 1000:.0f} kB" if size is not None else str(code)


def _search(kept: Fields, text: str, block: ToolResult) -> str:
    results = kept.get("results")
    if not isinstance(results, list):
        return _plain(kept, text, block)
    found = [len(_list(_fields(item).get("content"))) for item in cast("list[Any]", results)]
    return _count(sum(found), "result", none="no results")


def _agent(kept: Fields, text: str, _block: ToolResult) -> str:
    if kept.get("isAsync") is True:
        return "in background"
    calls = _number(kept.get("totalToolUseCount"))
    return _count(calls, "step") if calls is not None else one_line(text, _SHORT)


def _todo(kept: Fields, _said: str, _block: ToolResult) -> str:
    todos = [_fields(item) for item in _list(kept.get("newTodos"))]
    done = sum(todo.get("status") == "completed" for todo in todos)
    return f"{done} of {len(todos)} done" if todos else ""


def _answers(kept: Fields, text: str, _block: ToolResult) -> str:
    answers = [_text(answer) for answer in _fields(kept.get("answers")).values()]
    return one_line("; ".join(answers) if answers else text, _SHORT)


def _tool_search(kept: Fields, text: str, block: ToolResult) -> str:
    matches = kept.get("matches")
    if not isinstance(matches, list):
        return _plain(kept, text, block)
    return _count(len(cast("list[Any]", matches)), "tool", none="no tools")


def _nothing(_kept: Fields, _said: str, _block: ToolResult) -> str:
    return ""


def _plain(_kept: Fields, text: str, block: ToolResult) -> str:
    words = text.strip()
    if "\n" in words:
        return _count(_lines(words), "line")
    if not words and any(isinstance(part, Image) for part in block.blocks):
        return "image"
    return one_line(words, _SHORT)


_READERS: Final[dict[Summary, Callable[[Fields, str, ToolResult], str]]] = {
    "text": _plain,
    "agent": _agent,
    "answers": _answers,
    "command": _bash,
    "file": _read,
    "files": _glob,
    "matches": _grep,
    "nothing": _nothing,
    "page": _fetch,
    "todos": _todo,
    "tools": _tool_search,
    "web_search": _search,
}


# Values that may be anything


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def _number(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return int(value) if abs(value) < 1 << 53 else None


def _fields(value: Any) -> Fields:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return cast("list[Any]", value) if isinstance(value, list) else []


def _lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n")) if text else 0


def _count(number: int, noun: str, of: str = "", *, none: str = "") -> str:
    """Return a number with its noun.

    >>> _count(1, "line"), _count(2, "match")
    ('1 line', '2 matches')
    """
    if not number and none:
        return none
    plural = noun if number == 1 and not of else f"{noun}es" if noun.endswith("ch") else f"{noun}s"
    return f"{number}{of} {plural}"
