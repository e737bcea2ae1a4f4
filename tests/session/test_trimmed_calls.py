"""Output that a session says was left out: a note stands for it, made from the output alone."""

from typing import Any

import pytest
from tests.builders import session, text, tool
from tests.session.open_sessions import opened

from steno.format.encode import encode_line
from steno.format.source import BytesSource
from steno.session.resume.api_rules import find_breaches
from steno.session.resume.replay import output_size, trim_message
from steno.session.session import Session
from steno.session.transcript import load

LONG = "word " * 100
PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}}


def result(content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": "a", "content": content, **more}


def message(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (LONG, "500 characters"),
        ([{"type": "text", "text": LONG}, {"type": "text", "text": LONG}], "1,000 characters"),
        ([PICTURE, {"type": "text", "text": "x"}], "1 characters and 1 images or documents"),
    ],
)
def test_a_note_says_how_much_was_left_out(content: Any, told: str) -> None:
    left = trim_message(message(result(content, is_error=True)), {"a"})
    (block,) = left["content"]
    assert told in block["content"]
    assert block == result(block["content"], is_error=True)


@pytest.mark.parametrize("content", ["short", "", None, [{"type": "text", "text": "short"}]])
def test_what_is_shorter_than_the_note_stays(content: Any) -> None:
    assert trim_message(message(result(content)), {"a"}) == message(result(content))


def test_other_calls_keep_what_they_printed() -> None:
    whole = message(result(LONG), {"type": "text", "text": LONG})
    assert trim_message(whole, {"b"}) is whole
    assert trim_message(whole, {"a"})["content"][1] == whole["content"][1]


def test_a_picture_counts_as_what_it_takes_of_the_window() -> None:
    assert output_size(result([PICTURE, PICTURE])) > 10_000
    assert output_size(result(LONG)) == 500
    assert output_size(result(None)) == 0


def test_a_session_of_a_client_that_trimmed_is_sent_trimmed() -> None:
    made = session("2.1.29").user("Go.").assistant(tool("Glob")).result(LONG)
    found = opened(made.microcompact().assistant(text("Done.")))
    messages = found.messages()
    assert find_breaches(messages) == []
    assert LONG not in str(messages)
    assert LONG in str(found.as_resumed("2.1.29"))


@pytest.mark.parametrize("told", [None, 7, [], {"compactedToolIds": 7}, {"compactedToolIds": [7]}])
def test_a_record_that_names_nothing_leaves_all_as_it_is(told: Any) -> None:
    made = session("2.1.29").user("Go.").assistant(tool("Glob")).result(LONG).microcompact()
    records = made.assistant(text("Done.")).records()
    (trim,) = [each for each in records if each.get("subtype") == "microcompact_boundary"]
    trim["microcompactMetadata"] = told
    found = Session(load(BytesSource(b"".join(map(encode_line, records)))))
    assert find_breaches(found.messages()) == []
    assert LONG in str(found.messages())
