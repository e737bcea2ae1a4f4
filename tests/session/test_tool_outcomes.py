"""One line per tool."""

from typing import Any

import pytest
from tests.builders import Json, image, session, tool
from tests.builders.blocks import UNSET
from tests.session.open_sessions import opened

from steno.session.turns.steps import Step
from steno.session.turns.tool_outcomes import tool_call_subject, touched_file


def step(call: Json, content: Any = "ok", *, error: bool = False, detail: object = UNSET) -> Step:
    made = session().user("go").assistant(call).result(content, error=error, detail=detail)
    return next(s for s in opened(made).turns()[0].steps if s.kind in ("tool", "agent"))


@pytest.mark.parametrize(
    ("name", "asked", "expected"),
    [
        ("Read", {"file_path": "/a/b.py"}, "/a/b.py"),
        ("Bash", {"command": "make\nmake test"}, "make …"),
        ("Grep", {"pattern": "x", "path": "src", "glob": "*.py"}, "x src *.py"),
        ("WebFetch", {"url": "https://example.com", "prompt": "p"}, "https://example.com"),
        ("Task", {"description": "Look", "prompt": "p"}, "Look"),
        ("TodoWrite", {"todos": [1, 2]}, "2 items"),
        ("AskUserQuestion", {"questions": [{"question": "Which?"}]}, "Which?"),
        ("TaskUpdate", {"taskId": "3", "status": "completed"}, "3 completed"),
        ("Skill", {"skill": "pdf", "args": "a.pdf"}, "pdf a.pdf"),
        ("mcp__db__query", {"flag": True, "sql": "select 1"}, "select 1"),
        ("mcp__db__get", {"zzz": "last", "path": "/p"}, "/p"),
        ("Read", {}, ""),
        ("Read", {"file_path": ["odd"]}, ""),
    ],
)
def test_the_subject_is_what_the_call_is_about(name: str, asked: Json, expected: str) -> None:
    assert tool_call_subject(name, asked) == expected


@pytest.mark.parametrize(
    ("output", "expected"),
    [
        ("....\n=== 3 passed, 1 failed in 0.12s ===", "3 passed, 1 failed"),
        ("5 passed in 0.29s", "5 passed"),
        ("test result: ok. 12 passed; 0 failed; 0 ignored", "12 passed; 0 failed"),
        ("Tests:       1 failed, 3 passed, 4 total", "1 failed, 3 passed, 4 total"),
        ("      Tests  43 passed (43)", "43 passed"),
        ("  7 passing (12ms)", "7 passing"),
        ("Ran 4 tests in 0.001s\n\nOK", "Ran 4 tests, OK"),
        ("one\ntwo", "2 lines"),
        ("", "no output"),
    ],
)
def test_a_command_is_summed_up_by_its_tests_or_its_lines(output: str, expected: str) -> None:
    assert step(tool("Bash", command="run"), output).outcome == expected


def test_a_failed_command_says_its_exit_code() -> None:
    found = step(tool("Bash", command="x"), "Exit code 2\nno such file", error=True)
    assert (found.outcome, found.state) == ("exit 2", "failed")


def test_an_edit_counts_its_lines_with_and_without_a_patch() -> None:
    asked = {"file_path": "/a", "old_string": "a\nb\nc", "new_string": "a\nX\nY\nc"}
    patch = [{"lines": [" a", "-b", "+X", "+Y", "+Z", " c"]}]
    assert step(tool("Edit", **asked), detail={"structuredPatch": patch}).outcome == "+3 \N{MINUS SIGN}1"
    found = step(tool("Edit", **asked), detail=None)
    assert found.outcome == "+2 \N{MINUS SIGN}1"
    assert found.touch is not None
    assert (found.touch.path, found.touch.added, found.touch.removed) == ("/a", 2, 1)


def test_a_failed_edit_touches_nothing() -> None:
    asked = {"file_path": "/a", "old_string": "a", "new_string": "b"}
    found = step(tool("Edit", **asked), "<tool_use_error>String not found</tool_use_error>", error=True)
    assert (found.outcome, found.state, found.touch) == ("String not found", "failed", None)


@pytest.mark.parametrize(
    ("name", "asked", "detail", "expected"),
    [
        ("Read", {"file_path": "/a"}, {"type": "text", "file": {"numLines": 88}}, "88 lines"),
        ("Read", {"file_path": "/a"}, {"file": {"numLines": 8, "totalLines": 90}}, "8 of 90 lines"),
        ("Read", {"file_path": "/a"}, {"type": "image", "file": {}}, "image"),
        ("Grep", {"pattern": "x"}, {"mode": "content", "numLines": 7, "numFiles": 0}, "7 matches"),
        (
            "Grep",
            {"pattern": "x"},
            {"mode": "content", "numLines": 250, "totalLines": 6004, "appliedLimit": 250},
            "250 of 6,004 matches",
        ),
        ("Grep", {"pattern": "x"}, {"mode": "files_with_matches", "numFiles": 1}, "1 file"),
        ("Grep", {"pattern": "x"}, {"mode": "files_with_matches", "numFiles": 0}, "no matches"),
        ("Glob", {"pattern": "*"}, {"numFiles": 3}, "3 files"),
        ("WebFetch", {"url": "u"}, {"code": 200, "bytes": 12345}, "200, 12 kB"),
        ("WebSearch", {"query": "q"}, {"results": [{"content": [1, 2]}, "words"]}, "2 results"),
        ("Bash", {"command": "x"}, {"backgroundTaskId": "b1"}, "in background"),
        ("AskUserQuestion", {"questions": []}, {"answers": {"Which?": "Both"}}, "Both"),
        ("ToolSearch", {"query": "q"}, {"matches": ["a", "b"]}, "2 tools"),
        ("mcp__a__b", {"x": "y"}, [{"type": "text"}], "ok"),
        ("Write", {"file_path": "/a", "content": "1\n2\n"}, {"type": "create"}, "+2"),
    ],
)
def test_the_outcome_says_what_came_of_it(name: str, asked: Json, detail: object, expected: str) -> None:
    assert step(tool(name, **asked), detail=detail).outcome == expected


def test_a_refused_call_is_denied_and_an_interrupted_one_interrupted() -> None:
    for version in ("2.0.76", "2.1.325"):
        made = session(version).user("go").assistant(tool("Bash", command="rm")).deny()
        assert opened(made).turns()[0].steps[0].state == "denied"
    words = "The user doesn't want to take this action right now. STOP what you are doing."
    made = session("1.0.128").user("go").assistant(tool("Bash", command="rm"))
    assert opened(made.result(words, error=True)).turns()[0].steps[0].state == "denied"
    made = session().user("go").assistant(tool("Bash", command="sleep")).interrupt()
    turn = opened(made).turns()[0]
    assert (turn.steps[0].state, turn.interrupted) == ("interrupted", True)


def test_a_picture_is_an_outcome() -> None:
    assert step(tool("mcp__a__pic"), [image(b"a")], detail=None).outcome == "image"


@pytest.mark.parametrize("odd", [None, 3, "text", ["x"], {"file": 3}, {"structuredPatch": [1]}])
@pytest.mark.parametrize("name", ["Read", "Edit", "Bash", "Grep", "TodoWrite", "Agent", "X"])
def test_an_odd_result_is_no_reason_to_fail(name: str, odd: object) -> None:
    asked: Json = {"file_path": "/a"}
    assert step(tool(name, **asked), "said", detail=odd).state == "ok"


def test_a_touch_needs_a_path() -> None:
    assert touched_file("Edit", {}) is None
    assert touched_file("Bash", {"file_path": "/a"}) is None
