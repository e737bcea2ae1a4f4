"""The scripted mind: scenes, steps, what comes first, and scripts in files."""

import re

import pytest
from tests.llm.testserver.asking import Json, assistant, body, call, result, user

from steno.errors import BadRequest
from steno.llm.testserver.responders import (
    ErrorReply,
    Pause,
    Reply,
    ReplyBlock,
    ResponderRequest,
    error_reply,
    text,
    tool,
)
from steno.llm.testserver.scripted_responder import DEFAULT_REPLY, ScriptedResponder, parse_script_file


def _said(script: ScriptedResponder, *messages: Json, number: int = 1) -> str:
    answer = script.answer(ResponderRequest(body(*messages), number))
    if isinstance(answer, ErrorReply):
        return str(answer.status)
    blocks = [item.block for item in answer.content if isinstance(item, ReplyBlock)]
    return "|".join(str(block.get("text") or block.get("name")) for block in blocks)


def test_a_scene_goes_on_with_the_results_of_its_calls() -> None:
    script = ScriptedResponder().on("fix", [text("I look."), tool("Read")]).then([tool("Edit")]).then("Fixed.")
    first = (user("Please fix it."),)
    second = (*first, assistant("I look.", call()), user(result()))
    third = (*second, assistant(call("b")), user(result("b")))
    assert [_said(script, *each) for each in (first, second, third)] == ["I look.|Read", "Edit", "Fixed."]
    assert _said(script, *second) == "Edit", "a retry gets the same answer"
    assert _said(script, *third, assistant("Fixed."), user("fix more")) == "I look.|Read"


def test_scenes_are_found_by_words_pattern_number_or_a_question() -> None:
    script = (
        ScriptedResponder()
        .on("tide", "words")
        .on(re.compile(r"^\d+$"), "pattern")
        .on(7, "number")
        .on(lambda asked: asked.body.get("model") == "claude-x" and asked.number == 9, "question")
        .otherwise("else")
    )
    assert _said(script, user("the tide table")) == "words"
    assert _said(script, user("42")) == "pattern"
    assert _said(script, user("any"), number=7) == "number"
    assert _said(script, user("any"), number=9) == "question"
    assert _said(script, user("any")) == "else"


def test_reminders_are_not_what_the_user_said() -> None:
    script = ScriptedResponder().on("tide", "wrong").on("Hi", "right")
    reminder = "<system-reminder>\nthe tide is high\n</system-reminder>"
    assert _said(script, user(reminder, "Hi.")) == "right"
    later = (user("Hi."), assistant("So."), user(reminder))
    assert ResponderRequest(body(*later)).prompt == "Hi."
    assert not ResponderRequest(body(*later)).prompt_is_last


def test_answers_in_line_are_given_one_after_the_other() -> None:
    script = ScriptedResponder("one", "two").queue("three")
    assert [_said(script, user("x")) for _ in range(4)] == ["one", "two", "three", DEFAULT_REPLY]
    assert script.unmatched == ["x"]


def test_what_comes_first_comes_once_each() -> None:
    script = ScriptedResponder().on("Hi", "fine", first=[error_reply(529), Reply(content=(text("half"),))])
    assert [_said(script, user("Hi")) for _ in range(4)] == ["529", "half", "fine", "fine"]


def test_an_answer_may_be_made_from_the_request() -> None:
    script = ScriptedResponder().otherwise(lambda asked: f"heard {asked.prompt}", stop_reason="max_tokens")
    answer = script.answer(ResponderRequest(body(user("this"))))
    assert isinstance(answer, Reply)
    assert answer.stop_reason == "max_tokens"
    assert _said(script, user("this")) == "heard this"


def test_then_needs_a_scene() -> None:
    with pytest.raises(BadRequest, match="requires a scene"):
        ScriptedResponder().then("x")


_TOML = b"""
queue = [{ text = "first" }]
otherwise = { text = "else" }

[[scene]]
on = "fix"
[[scene.answer]]
blocks = [
  { thinking = "hm" },
  { text = "I look." },
  { tool = "Read", input = { file_path = "a.py" } },
  { tool = "Bad", json = "{" },
  { pause = 0.5 },
  { ping = true },
  { redacted = "xyz" },
  { search = "tides", found = [{ title = "Tides", url = "https://tides.example" }] },
]
usage = { output_tokens = 7 }
delay = 2.0
[[scene.answer]]
text = "Fixed."
first = [{ status = 529, times = 2 }, { status = 429, retry_after = 1 }]

[[scene]]
regex = "^no"
answer = [{ error = { status = 400, message = "never" } }]

[[scene]]
request = 9
answer = [{ text = "ninth", cut_after = 100, stop_reason = "max_tokens" }]
"""


def test_a_script_can_be_a_file() -> None:
    script = parse_script_file(_TOML)
    answer = script.answer(ResponderRequest(body(user("fix it"))))
    assert isinstance(answer, Reply)
    assert answer.usage == {"output_tokens": 7}
    assert answer.after == Pause(2.0)
    assert len(answer.content) == 9
    called, found = (each.block for each in answer.content[-2:] if isinstance(each, ReplyBlock))
    assert (called["type"], called["input"]) == ("server_tool_use", {"query": "tides"})
    assert found["content"][0]["url"] == "https://tides.example"
    assert _said(script, user("fix it")).startswith("None|I look.|Read|Bad")
    later = (user("fix it"), assistant(call()), user(result()))
    assert [_said(script, *later) for _ in range(4)] == ["529", "529", "429", "Fixed."]
    assert _said(script, user("no")) == "400"
    assert _said(script, user("x"), number=9) == "ninth"
    assert [_said(script, user("x")) for _ in range(2)] == ["first", "else"]
    as_json = b'{"scene": [{"on": "fix", "answer": [{"text": "Fixed."}]}]}'
    assert _said(parse_script_file(as_json), user("fix")) == "Fixed."


@pytest.mark.parametrize(
    ("data", "about"),
    [
        (b"{", "is not a valid script"),
        (b"scene = 4", "is not a valid script"),
        (b"\xff", "is not a valid script"),
        (b'{"scenes": []}', "unknown field"),
        (b'{"scene": [{"on": "x", "answer": [{"blocks": [{}]}]}]}', "empty block"),
        (b'{"scene": [{"regex": "(", "answer": [{"text": "x"}]}]}', "regex"),
    ],
)
def test_a_file_that_is_no_script_is_said_to_be_none(data: bytes, about: str) -> None:
    with pytest.raises(BadRequest, match=about):
        parse_script_file(data)
