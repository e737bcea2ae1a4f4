"""Content and tool calls: what the API would refuse is mended, and losses are named."""

import json

import pytest
from tests.builders import image, png, session, text, thinking, tool
from tests.check.record_trees import calls, mended, results, said, sent, uuid
from tests.check.repair_checks import Records, at, broken, line_of, talk

from steno.check.repair.edits import ASIDE_TYPE, MAX_VALUE_LENGTH, new_uuid
from steno.check.repair.repair_job import repair_bytes
from steno.format.encode import encode_line
from steno.session.resume.api_rules import find_breaches
from steno.session.resume.clients import LATEST
from steno.session.resume.entries import INTERRUPTED_CALL
from steno.session.resume.replay import as_resumed

# Content


@pytest.mark.parametrize("inside", [False, True])
def test_a_poisoned_image_becomes_a_note_wherever_it_is(*, inside: bool) -> None:
    bad = image(png([[(0, 0, 0)]]))
    bad["source"]["data"] = "no base64!"
    made = session(seed="image")
    if inside:
        made.user("See.").assistant(tool("Read", file_path="/a.png")).result([bad])
    else:
        made.user([text("See."), bad])
    records, done = broken(made.assistant("Seen."), lambda _: None)
    assert [edit.finding for edit in done.edits] == ["message.image"]
    messages = json.dumps([each["message"] for each in records])
    assert "no base64!" not in messages
    assert "Image omitted" in messages
    assert "replace content that the API rejects with a note" in done.lost[0]


def test_thinking_without_a_signature_is_taken_out_and_named() -> None:
    made = session(seed="think").user("Why?").assistant(thinking("Because."), text("So."))

    def unsign(records: Records) -> None:
        for record in records:
            for block in record["message"]["content"]:
                if isinstance(block, dict):
                    block.pop("signature", None)

    records, done = broken(made, unsign)
    assert {edit.finding for edit in done.edits} == {"message.unsigned-thinking"}
    kept = [each for each in records if each["type"] == "assistant"]
    assert all(block["type"] != "thinking" for each in kept for block in each["message"]["content"])


def test_a_prompt_of_which_nothing_can_be_sent_gets_words_and_the_loss_is_named() -> None:
    def poison(records: Records) -> None:
        at(records, 4)["message"]["content"] = [{"type": "hologram", "data": "x"}]

    records, done = broken(talk(), poison)
    assert [edit.finding for edit in done.edits] == ["message.unknown-block"]
    assert at(records, 4)["message"]["content"] == [text("(no content)")]
    assert "hologram" in done.lost[0]
    (change,) = done.edits[0].changes
    assert change.field == "message.content"
    assert change.before == [{"type": "hologram", "data": "x"}]


def test_an_empty_prompt_gets_words() -> None:
    records, done = broken(talk(), lambda records: at(records, 4)["message"].update(content=""))
    assert [edit.finding for edit in done.edits] == ["message.empty-text"]
    assert at(records, 4)["message"]["content"] == [text("(no content)")]
    assert done.lost == []


def test_what_a_change_shows_is_cut_to_what_can_be_read() -> None:
    def poison(records: Records) -> None:
        long = {"type": "hologram", "data": "x" * 10_000}
        at(records, 4)["message"]["content"] = [text("Fine."), long]

    _, done = broken(talk(), poison)
    (change,) = done.edits[0].changes
    assert isinstance(change.before, str)
    assert len(change.before) == MAX_VALUE_LENGTH + 1
    assert change.after == []


@pytest.mark.parametrize("kind", [[], {}, None, 5])
def test_a_block_whose_type_is_no_text_is_taken_out_and_named(kind: object) -> None:
    def poison(records: Records) -> None:
        for number in (4, 5):
            at(records, number)["message"]["content"] = [text("Fine."), {"type": kind}]

    records, done = broken(talk(), poison)
    assert [edit.finding for edit in done.edits] == ["message.unknown-block"] * 2
    assert [at(records, n)["message"]["content"] for n in (4, 5)] == [[text("Fine.")]] * 2
    assert "a block of type" in done.lost[0]


@pytest.mark.parametrize(
    ("content", "finding", "words"),
    [
        (["Two?"], "message.unknown-block", "Two?"),
        (["Two?", text("!")], "message.unknown-block", "Two?"),
        (5, "message.no-content", "5"),
        (text("Two?"), "message.no-content", "Two?"),
    ],
)
def test_words_that_are_no_blocks_become_some(content: object, finding: str, words: str) -> None:
    records, done = broken(talk(), lambda records: at(records, 4)["message"].update(content=content))
    assert [edit.finding for edit in done.edits] == [finding]
    assert at(records, 4)["message"]["content"][0] == text(words)
    assert done.lost == []


def test_an_answer_of_text_that_is_none_is_set_aside() -> None:
    def poison(records: Records) -> None:
        at(records, 5)["message"]["content"] = [{"type": "text", "text": 0}]

    records, done = broken(talk(), poison)
    assert [edit.finding for edit in done.edits] == ["message.empty-text"]
    assert any(each["type"] == ASIDE_TYPE for each in records)


@pytest.mark.parametrize("block", [{"thinking": 5, "signature": 7}, {"thinking": "Hm."}])
def test_thinking_that_cannot_have_been_signed_is_taken_out(block: dict[str, object]) -> None:
    def poison(records: Records) -> None:
        at(records, 5)["message"]["content"] = [{"type": "thinking", **block}, text("Two.")]

    records, done = broken(talk(), poison)
    assert [edit.finding for edit in done.edits] == ["message.unsigned-thinking"]
    assert at(records, 5)["message"]["content"] == [text("Two.")]


def test_a_line_that_goes_into_another_response_leaves_its_thinking_behind() -> None:
    made = session(seed="mixed").user("Why?")
    made.assistant(text("So."), text("And so."), thinking("Hm."), text("Done."))

    def mix(records: Records) -> None:
        answers = [each for each in records if each["type"] == "assistant"]
        assert len(answers) == 4
        answers[1]["message"]["id"] = answers[2]["message"]["id"] = "msg_other"
        answers[1]["message"]["content"].insert(0, answers[2]["message"]["content"][0])

    records, done = broken(made, mix)
    assert {edit.finding for edit in done.edits} == {"message.mixed"}
    answers = [each for each in records if each["type"] == "assistant"]
    assert len({each["message"]["id"] for each in answers}) == 1
    assert [each["message"]["content"] for each in answers] == [[text("So.")], [text("And so.")], [text("Done.")]]
    assert [each["record"]["message"]["id"] for each in records if each["type"] == ASIDE_TYPE]
    assert any("signed for another response" in each for each in done.lost)


@pytest.mark.parametrize(
    ("inside", "finding"),
    [
        (text(""), "message.empty-text"),
        ({"type": "hologram"}, "message.unknown-block"),
        ({"type": "document", "source": {"type": "base64", "data": "no!"}}, "message.image"),
    ],
)
def test_an_edit_inside_a_result_names_what_is_wrong_there(inside: dict[str, object], finding: str) -> None:
    def poison(records: Records) -> None:
        at(records, 2)["message"]["content"][0]["content"] = [text("a.py"), inside]

    records, done = broken(talk(), poison)
    assert [edit.finding for edit in done.edits] == [finding]
    content = at(records, 2)["message"]["content"][0]["content"]
    assert content[0] == text("a.py")
    assert inside not in content
    assert bool(done.lost) == (finding != "message.empty-text")


# Tool calls


def without_result(records: Records) -> None:
    result, answer = at(records, 2), at(records, 3)
    answer["parentUuid"] = result["parentUuid"]
    records.remove(result)


def test_a_call_without_a_result_is_answered_with_an_error() -> None:
    made = talk()
    records, done = broken(made, without_result)
    call = at(made.records(), 1)
    (edit,) = [edit for edit in done.edits if edit.action == "insert"]
    assert (edit.finding, edit.line) == ("tools.unanswered", line_of(made.records(), 1))
    answer = next(each for each in records if each.get("uuid") == edit.uuid)
    (block,) = answer["message"]["content"]
    assert block["tool_use_id"] == call["message"]["content"][0]["id"]
    assert (block["content"], block["is_error"]) == (INTERRUPTED_CALL, True)
    assert answer["parentUuid"] == answer["sourceToolAssistantUUID"] == call["uuid"]
    for field in ("sessionId", "cwd", "version", "userType"):
        assert answer[field] == call[field]
    assert answer["timestamp"] > call["timestamp"]
    assert done.lost == []


def test_the_answer_of_a_repair_is_the_same_every_time() -> None:
    records = talk().records()
    without_result(records)
    data = b"".join(encode_line(record) for record in records)
    assert repair_bytes(data).data == repair_bytes(data).data


def test_a_result_without_its_call_is_set_aside_whole() -> None:
    made = talk()
    result = at(made.records(), 2)

    def orphan(records: Records) -> None:
        call = at(records, 1)
        at(records, 2)["parentUuid"] = call["parentUuid"]
        records.remove(call)

    records, done = broken(made, orphan)
    assert "tools.orphan-result" in {edit.finding for edit in done.edits}
    (aside,) = [each for each in records if each["type"] == ASIDE_TYPE]
    assert aside["record"]["message"] == result["message"]


def test_a_second_result_in_one_message_is_taken_out_and_named() -> None:
    def twice(records: Records) -> None:
        content = at(records, 2)["message"]["content"]
        content.append({**content[0], "content": "again"})

    records, done = broken(talk(), twice)
    assert [edit.finding for edit in done.edits] == ["tools.duplicate-result"]
    assert "a second tool result" in done.lost[0]
    assert [block["content"] for block in at(records, 2)["message"]["content"]] == ["a.py"]


def test_a_result_before_its_call_is_hung_behind_it() -> None:
    made = talk()

    def swap(records: Records) -> None:
        prompt, call, result, answer = (at(records, n) for n in range(4))
        result["parentUuid"] = prompt["uuid"]
        call["parentUuid"] = result["uuid"]
        answer["parentUuid"] = call["uuid"]

    _, done = broken(made, swap)
    assert "tools.result-before-use" in {edit.finding for edit in done.edits}
    assert "a.py" in json.dumps(as_resumed(done.transcript, LATEST))
    assert done.lost == []


def test_a_call_under_the_id_of_an_earlier_one_gets_its_own() -> None:
    made = session(seed="ids").user("One?").assistant(tool("Bash", command="ls")).result("a.py")
    made.assistant("One.").user("Two?").assistant(tool("Bash", command="ls")).result("b.py")
    made.assistant("Two.")

    def reuse(records: Records) -> None:
        first = at(records, 1)["message"]["content"][0]["id"]
        at(records, 5)["message"]["content"][0]["id"] = first
        at(records, 6)["message"]["content"][0]["tool_use_id"] = first

    records, done = broken(made, reuse)
    assert {edit.finding for edit in done.edits} == {"tools.duplicate-use"}
    call = at(records, 5)["message"]["content"][0]["id"]
    assert call == at(records, 6)["message"]["content"][0]["tool_use_id"]
    assert call != at(records, 1)["message"]["content"][0]["id"]
    assert done.lost == []


@pytest.mark.parametrize(
    ("given", "meant"),
    [('{"command":"ls"}', {"command": "ls"}), ("ls -l", {"value": "ls -l"}), (["ls"], {"value": ["ls"]}), (None, {})],
)
def test_the_input_of_a_call_is_kept_as_it_was_meant(given: object, meant: object) -> None:
    def poison(records: Records) -> None:
        at(records, 1)["message"]["content"][0]["input"] = given

    records, done = broken(talk(), poison)
    assert [edit.finding for edit in done.edits] == ["tools.input"]
    assert at(records, 1)["message"]["content"][0]["input"] == meant
    assert done.lost == []


@pytest.mark.parametrize("name", ["", None, 5, [], {"a": 1}])
@pytest.mark.parametrize("both", [False, True])
def test_a_call_whose_id_is_none_gets_one(name: object, *, both: bool) -> None:
    def poison(records: Records) -> None:
        at(records, 1)["message"]["content"][0]["id"] = name
        if both:
            at(records, 2)["message"]["content"][0]["tool_use_id"] = name

    records, done = broken(talk(), poison)
    sent = as_resumed(done.transcript, LATEST, prompt="Go on.") or []
    assert sent
    assert find_breaches(sent) == []
    assert ("a.py" in json.dumps(sent)) == both
    assert "a.py" in json.dumps(records)


@pytest.mark.parametrize("name", ["", None, 5, []])
def test_a_result_for_no_id_is_kept_aside(name: object) -> None:
    def poison(records: Records) -> None:
        at(records, 2)["message"]["content"][0]["tool_use_id"] = name

    records, done = broken(talk(), poison)
    assert find_breaches(as_resumed(done.transcript, LATEST, prompt="Go on.") or []) == []
    assert "a.py" in json.dumps([each for each in records if each["type"] == ASIDE_TYPE])


def test_a_result_that_may_be_an_error_or_not_stays_a_result() -> None:
    def poison(records: Records) -> None:
        at(records, 2)["message"]["content"][0]["is_error"] = "no"

    _, done = broken(talk(), poison)
    assert len(done.edits) == 1
    assert "a.py" in json.dumps(as_resumed(done.transcript, LATEST))


@pytest.mark.parametrize("thinks", [False, True])
def test_an_answer_behind_a_call_whose_result_stands_beside_is_not_misnamed(*, thinks: bool) -> None:
    thought = [{"type": "thinking", "thinking": "hm", "signature": "c2ln"}]
    done = mended(
        said(1, 0, 0, "One?"),
        said(2, 1, 1, calls("a"), "m1"),
        said(3, 2, 2, results("a")),
        said(4, 2, 3, thought if thinks else "Done.", "m2"),
        said(5, 4, 4, "Done.", "m2"),
    )
    assert done.edits == []


def test_a_line_gets_another_name_than_the_one_it_has() -> None:
    name = f"msg_{new_uuid(uuid(6)).replace('-', '')[:24]}"
    done = mended(
        said(1, 0, 0, "One?"),
        said(2, 1, 1, calls("a"), name),
        said(3, 2, 2, results("a")),
        said(4, 3, 3, calls("b"), "m2"),
        said(5, 4, 4, results("b")),
        said(6, 5, 5, "Done.", name),
    )
    assert [edit.finding for edit in done.edits] == ["message.mixed"]
    (change,) = done.edits[0].changes
    assert change.before == name != change.after


def test_a_name_that_comes_back_behind_a_command_is_found_though_results_move_behind_it() -> None:
    command = {**said(6, 5, 5, ""), "type": "system", "subtype": "local_command", "content": "/x"}
    del command["message"]
    done = mended(
        said(1, 0, 0, "One?"),
        said(2, 1, 1, calls("a"), "m1"),
        said(3, 2, 2, calls("b"), "m1"),
        said(4, 2, 3, results("a")),
        said(5, 3, 4, results("b")),
        command,
        said(7, 6, 6, "Done.", "m1"),
    )
    assert [edit.finding for edit in done.edits] == ["message.mixed"]
    assert all(word in sent(done) for word in ("out of a", "out of b", "Done."))
