"""One line per tool call: its subject and outcome, with the totals that test runners print."""

import re
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any, Final, cast

import msgspec

from steno.format.message import Image, ToolResult
from steno.format.records import Record
from steno.format.tool_catalogue import EDITING_TOOLS, FILE_TOOLS, Summary, tool_facts
from steno.session.turns.steps import FileTouch, StepState, one_line

_TAIL_LENGTH: Final = 4000
_MAX_SUMMARY_LENGTH: Final = 80
_RUNNER_WORDS: Final = ("pass", "failed", "error", "Ran ")
"""Every supported runner summary contains one of these."""
_SUMMARY_PATTERNS: Final = (
    ("= ", r"=+ (?P<words>[^=\n]*\b(?:passed|failed|errors?)\b[^=\n]*?) in [\d.:]+ ?s"),
    (" in ", r"^(?P<words>\d+ (?:passed|failed|errors?)\b[^\n]*?) in [\d.:]+ ?s"),
    ("test result: ", r"^test result: \w+\. (?P<words>\d+ passed; \d+ failed)"),
    ("Tests:", r"^\s*Tests:\s+(?P<words>[^\n]*\b(?:passed|failed)\b[^\n]*)"),
    ("Tests", r"^\s*Tests\s+(?P<words>\d+ (?:passed|failed)[^\n(]*)"),
    (" passing", r"^\s*(?P<words>\d+ passing\b[^\n(]*)"),
    ("Ran ", r"^(?P<words>Ran \d+ tests?) in [\d.]+s\s+(?P<end>OK|FAILED[^\n]*)"),
)
"""Patterns of summary lines, each with a substring for a fast check."""


def runner_summary(text: str) -> str:
    """Return the summary that a test runner prints at the end of its output, or an empty string.

    >>> runner_summary("==== 1 failed, 8 passed in 0.12s ====")
    '1 failed, 8 passed'
    """
    tail = text[-_TAIL_LENGTH:]
    if not any(word in tail for word in _RUNNER_WORDS):
        return ""
    for marker, pattern in _SUMMARY_PATTERNS:
        matches = list(_compiled(pattern).finditer(tail)) if marker in tail else []
        if matches:
            match = matches[-1]
            end = match.groupdict().get("end")
            return one_line(f"{match['words'].strip()}{f', {end}' if end else ''}", _MAX_SUMMARY_LENGTH)
    return ""


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.MULTILINE)


_MINUS: Final = "\N{MINUS SIGN}"
_MAX_OUTCOME_LENGTH: Final = 80
_SEARCHED_LENGTH: Final = 400
_SUBJECT_FIELDS: Final = (
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
_EXIT_CODE: Final = re.compile(r"\A(?:Error: )?Exit code (-?\d+)")
_DENIED_TEXT: Final = re.compile(
    r"User rejected tool use|The user doesn't want to (?:proceed|take this action)|Permission to use .* has been denied"
    r"|requested permissions? to .*you haven't granted it"
)
_ERROR_TAG: Final = re.compile(r"\A\s*(?:<tool_use_error>|Error: |InputValidationError: )+")
_ERROR_END: Final = "</tool_use_error>"

Fields = dict[str, Any]


class ToolOutcome(msgspec.Struct, frozen=True):
    """Outcome of a tool call."""

    text: str = ""
    state: StepState = "ok"
    touch: FileTouch | None = None


# Subjects


def tool_call_subject(tool: str, tool_input: Fields) -> str:
    """Return the subject of a call as one line."""
    if tool == "TodoWrite":
        return _counted(len(_list(tool_input.get("todos"))), "item")
    if tool == "AskUserQuestion":
        questions = [_fields(item) for item in _list(tool_input.get("questions"))]
        return one_line(_text(questions[0].get("question"))) if questions else ""
    facts = tool_facts(tool)
    subject = _first_text(tool_input, facts.subject)
    if facts.subject_details:
        details = (_text(tool_input.get(name)) for name in facts.subject_details)
        subject = " ".join(filter(None, (subject, *details)))
    return one_line(subject or _first_text(tool_input, _SUBJECT_FIELDS) or _first_text(tool_input, tool_input))


def _first_text(tool_input: Fields, names: Iterable[str]) -> str:
    for name in names:
        if text := _text(tool_input.get(name)):
            return text
    return ""


def touched_file(tool: str, tool_input: Fields) -> FileTouch | None:
    """Return the file that a call reads or changes, as far as its input shows."""
    if tool not in FILE_TOOLS:
        return None
    facts = tool_facts(tool)
    path = _text(tool_input.get(facts.path_field))
    if not path:
        return None
    match facts.file_action:
        case "replace":
            added, removed = _replaced_lines(tool_input)
        case "replace_many":
            pairs = [_replaced_lines(_fields(edit)) for edit in _list(tool_input.get("edits"))]
            added, removed = sum(pair[0] for pair in pairs), sum(pair[1] for pair in pairs)
        case "write":
            added, removed = _count_lines(_text(tool_input.get("content"))), 0
        case "cell":
            added, removed = _count_lines(_text(tool_input.get("new_source"))), 0
        case _:
            added = removed = 0
    return FileTouch(path, tool, added, removed)


def _replaced_lines(edit: Fields) -> tuple[int, int]:
    old = _text(edit.get("old_string")).splitlines()
    new = _text(edit.get("new_string")).splitlines()
    head = 0
    while head < min(len(old), len(new)) and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < min(len(old), len(new)) - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    return len(new) - head - tail, len(old) - head - tail


# Outcomes


def call_outcome(tool: str, block: ToolResult, record: Record, touch: FileTouch | None = None) -> ToolOutcome:
    """Return the outcome of a call; `touch` is the file according to its input."""
    # With several results in one record, the recorded details cannot be assigned to a call.
    alone = len(record.blocks) == 1 or len(record.tool_results) == 1
    detail = record.tool_use_result if alone else None
    text = block.text
    refused = _is_denied(record, text, detail)
    if refused or block.is_error:
        return _failure(text, refused=refused)
    detail_fields = _fields(detail)
    if detail_fields.get("interrupted") is True:
        return ToolOutcome("interrupted", "interrupted")
    touched = _with_patch_lines(touch, detail_fields) if touch is not None else None
    reader = _SUMMARIES[tool_facts(tool).summary]
    summary = (
        _line_changes(touched, detail_fields)
        if touched and tool in EDITING_TOOLS
        else reader(detail_fields, text, block)
    )
    return ToolOutcome(summary, "ok", touched)


def _is_denied(record: Record, text: str, detail: Any) -> bool:
    if record.envelope.tool_denial_kind:
        return True
    if isinstance(detail, str) and _DENIED_TEXT.search(detail, 0, _SEARCHED_LENGTH):
        return True
    return _DENIED_TEXT.match(text, 0, _SEARCHED_LENGTH) is not None


def _failure(text: str, *, refused: bool) -> ToolOutcome:
    if refused:
        return ToolOutcome("denied", "denied")
    match = _EXIT_CODE.match(text)
    if _INTERRUPTED in text:
        return ToolOutcome("interrupted", "interrupted")
    if match:
        tests = runner_summary(text)
        return ToolOutcome(f"exit {match[1]}" + (f", {tests}" if tests else ""), "failed")
    message = _ERROR_TAG.sub("", text).replace(_ERROR_END, "")
    return ToolOutcome(one_line(message, _MAX_OUTCOME_LENGTH) or "failed", "failed")


def _with_patch_lines(touch: FileTouch, detail: Fields) -> FileTouch:
    patch = detail.get("structuredPatch")
    if touch.verb == "Read" or not isinstance(patch, list):
        return touch
    if not patch and detail.get("type") == "create":
        return touch
    lines = [
        line for hunk in cast("list[Any]", patch) for line in _list(_fields(hunk).get("lines")) if isinstance(line, str)
    ]
    signs = [line[:1] for line in lines]
    return FileTouch(touch.path, touch.verb, signs.count("+"), signs.count("-"))


def _line_changes(touch: FileTouch, detail: Fields) -> str:
    if touch.verb == "Write" and (detail.get("type") == "create" or not touch.removed):
        return f"+{touch.added}"
    return f"+{touch.added} {_MINUS}{touch.removed}"


def _file_summary(detail: Fields, text: str, block: ToolResult) -> str:
    file = _fields(detail.get("file"))
    shown, total = _number(file.get("numLines")), _number(file.get("totalLines"))
    if shown is not None:
        more = f" of {total}" if total is not None and total > shown else ""
        return _counted(shown, "line", more)
    if "cells" in file:
        return _counted(len(_list(file.get("cells"))), "cell")
    kind = _text(detail.get("type"))
    if kind and kind != "text":
        return kind.replace("_", " ")
    if any(isinstance(part, Image) for part in block.blocks):
        return "image"
    return _counted(_count_lines(text), "line")


def _command_summary(detail: Fields, text: str, _block: ToolResult) -> str:
    if detail.get("backgroundTaskId"):
        return "in background"
    tests = runner_summary(text)
    if tests:
        return tests
    output = _text(detail.get("stdout")) + _text(detail.get("stderr")) if detail else text
    lines = _count_lines(output.strip("\n"))
    meaning = _text(detail.get("returnCodeInterpretation"))
    return meaning or (_counted(lines, "line") if lines else "no output")


def _matches_summary(detail: Fields, text: str, _block: ToolResult) -> str:
    mode = _text(detail.get("mode"))
    files, lines = _number(detail.get("numFiles")), _number(detail.get("numLines"))
    if mode == "content" and lines is not None:
        total = _number(detail.get("totalLines"))
        of = f" of {total:,}" if total is not None and total > lines else ""
        return _counted(lines, "match", of, none="no matches")
    matches = _number(detail.get("numMatches"))
    if mode == "count" and matches is not None:
        return _counted(matches, "match", none="no matches")
    if files is not None:
        return _counted(files, "file", none="no matches")
    return _counted(_count_lines(text), "line")


def _files_summary(detail: Fields, text: str, _block: ToolResult) -> str:
    files = _number(detail.get("numFiles"))
    return _counted(_count_lines(text) if files is None else files, "file", none="no files")


def _page_summary(detail: Fields, text: str, block: ToolResult) -> str:
    code, size = _number(detail.get("code")), _number(detail.get("bytes"))
    if code is None:
        return _text_summary(detail, text, block)
    return f"{code}, {size / 1000:.0f} kB" if size is not None else str(code)


def _search_summary(detail: Fields, text: str, block: ToolResult) -> str:
    results = detail.get("results")
    if not isinstance(results, list):
        return _text_summary(detail, text, block)
    counts = [len(_list(_fields(item).get("content"))) for item in cast("list[Any]", results)]
    return _counted(sum(counts), "result", none="no results")


def _agent_summary(detail: Fields, text: str, _block: ToolResult) -> str:
    if detail.get("isAsync") is True:
        return "in background"
    calls = _number(detail.get("totalToolUseCount"))
    return _counted(calls, "step") if calls is not None else one_line(text, _MAX_OUTCOME_LENGTH)


def _todo_summary(detail: Fields, _said: str, _block: ToolResult) -> str:
    todos = [_fields(item) for item in _list(detail.get("newTodos"))]
    done = sum(todo.get("status") == "completed" for todo in todos)
    return f"{done} of {len(todos)} done" if todos else ""


def _answers_summary(detail: Fields, text: str, _block: ToolResult) -> str:
    answers = [_text(answer) for answer in _fields(detail.get("answers")).values()]
    return one_line("; ".join(answers) if answers else text, _MAX_OUTCOME_LENGTH)


def _tools_summary(detail: Fields, text: str, block: ToolResult) -> str:
    matches = detail.get("matches")
    if not isinstance(matches, list):
        return _text_summary(detail, text, block)
    return _counted(len(cast("list[Any]", matches)), "tool", none="no tools")


def _no_summary(_detail: Fields, _said: str, _block: ToolResult) -> str:
    return ""


def _text_summary(_detail: Fields, text: str, block: ToolResult) -> str:
    stripped = text.strip()
    if "\n" in stripped:
        return _counted(_count_lines(stripped), "line")
    if not stripped and any(isinstance(part, Image) for part in block.blocks):
        return "image"
    return one_line(stripped, _MAX_OUTCOME_LENGTH)


_SUMMARIES: Final[dict[Summary, Callable[[Fields, str, ToolResult], str]]] = {
    "text": _text_summary,
    "agent": _agent_summary,
    "answers": _answers_summary,
    "command": _command_summary,
    "file": _file_summary,
    "files": _files_summary,
    "matches": _matches_summary,
    "nothing": _no_summary,
    "page": _page_summary,
    "todos": _todo_summary,
    "tools": _tools_summary,
    "web_search": _search_summary,
}


# Untyped values


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


def _count_lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n")) if text else 0


def _counted(number: int, noun: str, of: str = "", *, none: str = "") -> str:
    """Return a number with its noun.

    >>> _counted(1, "line"), _counted(2, "match")
    ('1 line', '2 matches')
    """
    if not number and none:
        return none
    plural = noun if number == 1 and not of else f"{noun}es" if noun.endswith("ch") else f"{noun}s"
    return f"{number}{of} {plural}"
