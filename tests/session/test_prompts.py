"""Which user records are people."""

import pytest
from tests.builders import Json, image, session, text, tool

from steno.format.encode import encode_line
from steno.format.source import BytesSource
from steno.session.session import Session
from steno.session.transcript import Transcript, load
from steno.session.turns.prompts import _without_reminders, origin_of, read_prompt, tag_content


def said(content: str | list[Json], **fields: object) -> Transcript:
    record = {"type": "user", "uuid": "a", "message": {"role": "user", "content": content}}
    return load(BytesSource(encode_line({**record, **fields})))


def origin(content: str | list[Json], **fields: object) -> str:
    transcript = said(content, **fields)
    return origin_of(transcript.record(transcript.nodes[0]))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("Mend it.", "human"),
        ([{"type": "text", "text": "Mend it."}], "human"),
        ("<command-name>/init</command-name>", "command"),
        ("<command-message>init</command-message>\n<command-name>/init</command-name>", "command"),
        ("<bash-input>ls</bash-input>", "shell"),
        ("<bash-stdout>a</bash-stdout><bash-stderr></bash-stderr>", "output"),
        ("<local-command-stdout>ok</local-command-stdout>", "output"),
        ("<task-notification>\n<task-id>b</task-id>", "notification"),
        ('<teammate-message teammate_id="bo">hi</teammate-message>', "teammate"),
        ([{"type": "text", "text": "[Request interrupted by user for tool use]"}], "interrupt"),
        ("<user-prompt-submit-hook>x</user-prompt-submit-hook>", "hook"),
        ("<system-reminder>x</system-reminder>", "meta"),
        ("<system-reminder>x</system-reminder>\nMend it.", "human"),
        ("<b>Mend</b> it.", "human"),
        ([{"type": "tool_result", "tool_use_id": "t", "content": "x"}], "result"),
    ],
)
def test_the_origin_is_told_by_the_words(content: str | list[Json], expected: str) -> None:
    assert origin(content) == expected


def test_what_the_record_says_about_itself_counts() -> None:
    assert origin("Mend it.", isMeta=True) == "meta"
    assert origin("Mend it.", isCompactSummary=True) == "summary"
    assert origin("Mend it.", origin={"kind": "human"}, promptSource="typed") == "human"
    assert origin("Mend it.", origin={"kind": "task-notification"}) == "notification"
    assert origin("Mend it.", origin={"kind": "carrier-pigeon"}) == "other"
    assert origin("Mend it.", promptSource="system") == "other"
    assert origin("Mend it.", promptSource="sdk") == "human"
    assert origin("Mend it.", origin=["odd"], promptSource=4) == "human"


def test_a_prompt_is_shown_without_its_tags() -> None:
    tags = (
        "<command-message>demo</command-message>\n<command-name>/demo</command-name>\n<command-args>a b</command-args>"
    )
    for content, expected, name in (
        (tags, "/demo a b", "/demo"),
        ("<bash-input> ls -l </bash-input>", "ls -l", ""),
        ("<task-notification><task-id>b1</task-id><summary>Done</summary>", "Done", "b1"),
        ('<teammate-message teammate_id="bo">hi</teammate-message>', "hi", "bo"),
    ):
        transcript = said(content)
        record = transcript.record(transcript.nodes[0])
        prompt = read_prompt(record, transcript.nodes[0], origin_of(record))
        assert (prompt.text, prompt.name) == (expected, name)


def test_pictures_are_counted() -> None:
    made = session().user([image(b"a"), text("What is this?"), image(b"b")])
    transcript = load(BytesSource(made.bytes()))
    node = next(node for node in transcript.nodes if node.type == "user")
    prompt = read_prompt(transcript.record(node), node, "human")
    assert (prompt.images, prompt.text, prompt.by_person) == (2, "What is this?", True)


def test_a_tag_without_an_end_runs_to_the_end() -> None:
    assert tag_content("<a>open", "a") == "open"
    assert tag_content("no tag", "a") == ""
    assert tag_content("<a", "a") == ""


@pytest.mark.timeout(15)
def test_any_number_of_reminders_is_passed_over_in_one_reading() -> None:
    reminder = "<system-reminder>mind the tide</system-reminder>\n"
    assert _without_reminders(reminder * 200_000 + "Go") == "Go"


@pytest.mark.parametrize("odd", [{"is_error": "yes"}, {"is_error": 1}, {"tool_use_id": None}])
def test_a_result_with_an_odd_value_is_no_prompt(odd: Json) -> None:
    result = {"type": "tool_result", "tool_use_id": "t", "content": "a.txt", **odd}
    assert origin([result]) == "result"
    made = session().user("go").assistant(tool("Bash", command="ls"))
    made.user([result]).assistant("Done.").done()
    (turn,) = Session(load(BytesSource(made.bytes()))).turns()
    assert turn.answer == "Done."
