"""Messages the API would refuse or the clients drop are found, and their sound neighbours not."""

from typing import Any

import pytest
from tests.builders import Session, image, png, raw, session, text, thinking, tool
from tests.check.changed_records import changed, found, named
from tests.session.test_images import png_of

Records = list[dict[str, Any]]


def two(*blocks: Any) -> Session:
    return session().user("One.").assistant(*(blocks or ("First.",))).user("Two.").assistant("So.")


def last_of(records: Records, kind: str) -> dict[str, Any]:
    return [record for record in records if record["type"] == kind][-1]["message"]


def test_a_sound_session_has_none() -> None:
    assert named(two(thinking("Hm."), text("First."), tool("Read", file_path="/a")), "message") == []


@pytest.mark.parametrize("words", ["", " \n"])
def test_an_answer_of_empty_text_is_an_error(words: str) -> None:
    data = changed(two(), lambda records: last_of(records, "assistant").update(content=[text(words)]))
    assert named(data, "message") == [("empty-text", "error")]


def test_an_empty_line_of_an_answer_that_says_more_is_an_info() -> None:
    def blank(records: Records) -> None:
        lines = [record for record in records if record["type"] == "assistant"]
        lines[0]["message"]["content"] = [text("\n\n")]

    assert named(changed(two(text("a"), text("b")), blank), "message") == [("empty-text", "info")]


def test_empty_text_beside_a_call_on_one_line_is_an_error() -> None:
    def beside(records: Records) -> None:
        last_of(records, "assistant")["content"] = [text(""), text("So.")]

    assert named(changed(two(), beside), "message") == [("empty-text", "error")]


@pytest.mark.parametrize("content", ["", [text("")], [text("a"), text(" ")]])
def test_an_empty_prompt_is_an_error(content: Any) -> None:
    data = changed(two(), lambda records: last_of(records, "user").update(content=content))
    assert named(data, "message") == [("empty-text", "error")]


def test_what_is_no_longer_sent_is_an_info() -> None:
    made = two().rewind(1).user("Anew.").assistant("Yes.")

    def blank(records: Records) -> None:
        records[2]["message"]["content"] = ""

    assert named(changed(made, blank), "message") == [("empty-text", "info")]


@pytest.mark.parametrize("role", ["assistant", None, [["user"]]])
def test_a_role_that_is_not_the_type_is_an_info(role: Any) -> None:
    data = changed(two(), lambda records: last_of(records, "user").update(role=role))
    assert named(data, "message") == [("role", "info")]


def test_thinking_without_a_signature_is_an_error() -> None:
    made = session().user("One.").assistant(thinking("Hm."), text("First."))
    assert named(made, "message") == []

    def unsign(records: Records) -> None:
        del records[1]["message"]["content"][0]["signature"]

    assert named(changed(made, unsign), "message") == [("unsigned-thinking", "error")]


@pytest.mark.parametrize("odd", [{"thinking": 5}, {"signature": 7}, {"signature": ""}])
def test_thinking_and_its_signature_are_text(odd: dict[str, Any]) -> None:
    made = session().user("One.").assistant(thinking("Hm."), text("First."))
    data = changed(made, lambda records: records[1]["message"]["content"][0].update(odd))
    assert named(data, "message") == [("unsigned-thinking", "error")]


def test_a_response_of_nothing_but_thinking_is_a_warning() -> None:
    made = session().user("One.").assistant(thinking("Hm."))
    assert named(made, "message") == [("thinking-only", "warning")]
    more = session().user("One.").assistant(thinking("Hm."), text("First."))
    assert named(more, "message") == []


def test_a_block_of_no_known_kind_is_an_error() -> None:
    (finding,) = found(two(text("a"), raw("zzz_block", x=1)), "message")
    assert (finding.id, finding.severity) == ("message.unknown-block", "error")
    assert finding.message.endswith(": 'zzz_block'")


@pytest.mark.parametrize("block", ["words", 7, None, {"text": "x"}, {"type": ["text"]}])
def test_a_block_of_no_shape_is_an_error(block: Any) -> None:
    data = changed(two(), lambda records: last_of(records, "user").update(content=[block]))
    assert named(data, "message") == [("unknown-block", "error")]


def test_a_server_tool_is_known() -> None:
    assert named(two(text("a"), raw("web_search_tool_result", content=[])), "message") == []


def images_of(count: int, side: int) -> Session:
    made = session().user([text("See."), image(png_of(side, 10))])
    for _ in range(count - 1):
        made.assistant("Seen.").user([text("And."), image(png([[(0, 0, 0)]]))])
    return made.assistant("Seen.")


def test_an_image_the_api_refuses_is_an_error() -> None:
    assert named(images_of(1, 8000), "message") == []
    (finding,) = found(images_of(1, 8001), "message")
    assert (finding.id, finding.severity) == ("message.image", "error")
    assert "8,001 x 10 pixels" in finding.message


def test_an_image_in_a_tool_result_is_looked_at_too() -> None:
    made = session().user("One.").assistant(tool("Read", file_path="/a.png"))
    made.result([image(b"no image")]).assistant("Seen.")
    (finding,) = found(made, "message")
    assert finding.message == "Invalid image in a tool result: not an image"


def test_among_many_images_the_sides_may_be_less_long() -> None:
    assert named(images_of(20, 2001), "message") == []
    assert named(images_of(21, 2000), "message") == []
    assert named(images_of(21, 2001), "message") == [("image", "error")]


def without_id(records: Records) -> None:
    for record in records:
        record["message"].pop("id", None)


def test_two_responses_without_an_id_are_an_error() -> None:
    assert named(changed(two(), without_id), "message") == [("no-id", "error")] * 2


def test_one_response_without_an_id_is_an_info() -> None:
    made = session().user("One.").assistant("a", "b")
    assert named(changed(made, without_id), "message") == [("no-id", "info")] * 2


def test_responses_with_neither_id_nor_model_are_an_info() -> None:
    def bare(records: Records) -> None:
        without_id(records)
        for record in records:
            record["message"].pop("model", None)

    assert named(changed(two(), bare), "message") == [("no-id", "info")] * 2


@pytest.mark.parametrize("content", [None, [], {}, 7])
def test_a_message_without_content_is_an_error(content: Any) -> None:
    data = changed(two(), lambda records: last_of(records, "user").update(content=content))
    assert named(data, "message") == [("no-content", "error")]


@pytest.mark.parametrize("message", [None, 7, ["x"]])
def test_a_message_that_is_no_object_is_an_error(message: Any) -> None:
    data = changed(two(), lambda records: records[2].update(message=message))
    assert named(data, "message") == [("not-a-message", "error")]


@pytest.mark.parametrize("dialect", ["spec-000", "spec-004"])
def test_dialects_are_another_familys(dialect: str) -> None:
    assert named(session(dialect=dialect).turn("One.", "First."), "message") == []
