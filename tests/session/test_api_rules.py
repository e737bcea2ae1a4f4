"""The rules of the API one by one: what breaks each, where it is broken, and what is sent instead."""

from base64 import b64encode
from typing import Any

import pytest

from steno.session.resume.api_rules import (
    NO_CONTENT,
    block_flaw,
    blocks_of,
    find_breaches,
    fix_block,
    is_blank,
    result_flaws,
)
from steno.session.resume.clients import LATEST
from steno.session.resume.entries import INTERRUPTED_CALL, NO_RESPONSE, Entry, fix_entries, text_block
from steno.session.resume.replay import (
    MISSING_BEGINNING,
    MessageValidator,
    flaw_among_many_images,
    images_in,
    make_valid,
    output_size,
    trim_message,
    without_images,
    without_large_images,
)

Block = dict[str, Any]


def words(text: str) -> Block:
    return {"type": "text", "text": text}


def call(name: str = "c", **more: Any) -> Block:
    return {"type": "tool_use", "id": name, "name": "Bash", "input": {}, **more}


def result(name: str = "c", content: Any = "ok", **more: Any) -> Block:
    return {"type": "tool_result", "tool_use_id": name, "content": content, **more}


def user(*blocks: Block) -> Block:
    return {"role": "user", "content": list(blocks)}


def assistant(*blocks: Block) -> Block:
    return {"role": "assistant", "content": list(blocks)}


def broken(*messages: Block) -> list[tuple[str, int, int | None, str]]:
    found = find_breaches(list(messages))
    return [(one.rule, one.message, one.block, one.detail) for one in found]


FIRST = "the first message must have the role user"


@pytest.mark.parametrize(
    ("messages", "expected"),
    [
        ([], []),
        ([user(words("x"))], []),
        ([{"role": "user", "content": "x"}], []),
        ([assistant(words("x"))], [("role.first", 0, None, FIRST)]),
        ([{"role": "system", "content": "x"}], [("role.first", 0, None, FIRST)]),
        ([user(words("x")), {"role": "robot"}], [("role.known", 1, None, "'robot'")]),
        ([user(words("x")), {"role": 5}], [("role.known", 1, None, "5")]),
        ([user()], [("content.empty", 0, None, "no blocks")]),
        ([user(words("x"), words(" "))], [("block.text", 0, 1, "text is empty")]),
        ([user(words("x"), {"type": "odd"})], [("block.known", 0, 1, "odd")]),
        ([user({"type": 5})], [("block.known", 0, 0, "5")]),
        ([user({})], [("block.known", 0, 0, "None")]),
        ([user(call())], [("block.known", 0, 0, "tool_use"), ("tool_use.answered", 0, None, "c")]),
        ([user(words("x")), assistant(call()), user(result())], []),
        ([user(words("x")), assistant(call("a"), call("b")), user(result("b"))], [("tool_use.answered", 1, None, "a")]),
        ([user(words("x")), assistant(call("a"), call("b"))], [("tool_use.answered", 1, None, "a, b")]),
        ([user(words("x")), assistant(call("a"), call("a")), user(result("a"))], [("tool_use.unique", 1, None, "a")]),
        (
            [*(user(words("x")), assistant(call("a")), user(result("a"))), *(assistant(call("a")), user(result("a")))],
            [("tool_use.unique", 3, None, "a")],
        ),
        ([user(result("z"))], [("tool_result.called", 0, 0, "z")]),
        ([user(words("x")), assistant(call()), user(result(), result())], [("tool_result.once", 2, 1, "c")]),
        (
            [user(words("x")), assistant(call()), user(words("y"), result())],
            [("tool_result.first", 2, None, "results must come before other blocks")],
        ),
        ([user(words("x")), assistant(call()), user(result(), words("y"))], []),
    ],
)
def test_each_breach_is_named_by_its_place(
    messages: list[Block], expected: list[tuple[str, int, int | None, str]]
) -> None:
    assert broken(*messages) == expected


@pytest.mark.parametrize(
    ("block", "role", "flaw"),
    [
        (words("x"), "user", ""),
        (words(""), "user", "text is empty"),
        ({"type": "text"}, "user", "text is empty"),
        ({"type": "text", "text": 5}, "user", "text is empty"),
        ({"type": "thinking", "thinking": "", "signature": "s"}, "assistant", ""),
        ({"type": "thinking", "thinking": "x", "signature": ""}, "assistant", "no signature"),
        ({"type": "thinking", "signature": "s"}, "assistant", "no signature"),
        ({"type": "redacted_thinking", "data": "x"}, "assistant", ""),
        ({"type": "redacted_thinking", "data": ""}, "assistant", "no data"),
        ({"type": "redacted_thinking", "data": 5}, "assistant", "no data"),
        (call(), "assistant", ""),
        (call(""), "assistant", "id, name or input"),
        (call(name=""), "assistant", "id, name or input"),
        (call(input=[]), "assistant", "id, name or input"),
        ({**call(), "name": ""}, "assistant", "id, name or input"),
        ({**call(), "type": "server_tool_use", "input": None}, "assistant", "id, name or input"),
        ({"type": "document"}, "user", "no source"),
        ({"type": "document", "source": {"type": "base64", "data": "aGk="}}, "user", ""),
        ({"type": "document", "source": {"type": "base64", "data": "a?"}}, "user", "not base64"),
        ({"type": "document", "source": {"type": "base64", "data": ""}}, "user", "not base64"),
        ({"type": "document", "source": {"type": "base64", "data": 5}}, "user", "not base64"),
        ({"type": "document", "source": {"type": "text", "data": "x"}}, "user", ""),
        ({"type": "document", "source": {"type": "content", "content": "x"}}, "user", ""),
        ({"type": "document", "source": {"type": "url", "url": "x"}}, "user", ""),
        ({"type": "document", "source": {"type": "file", "file_id": "x"}}, "user", ""),
        ({"type": "document", "source": {"type": "text", "content": "x"}}, "user", "a source of type 'text'"),
        ({"type": "document", "source": {"type": 5}}, "user", "a source of type 5"),
        ({"type": "image"}, "user", "no source"),
        (result(), "user", ""),
        (result(""), "user", "no tool call ID"),
        (result(is_error=1), "user", "is_error is not a boolean"),
        (result(is_error=True), "user", ""),
        (result(content=5), "user", "content is neither text nor blocks"),
        (result(content=None), "user", ""),
        (result(content=[words("")]), "user", "text is empty"),
        (result(content=[call()]), "user", "contains 'tool_use'"),
        (result(content=[5]), "user", "contains None"),
        (result(content=[{"type": "tool_reference"}]), "user", ""),
        (words("x"), "robot", "a block of type 'text'"),
        ({"type": "odd"}, "user", "a block of type 'odd'"),
        ({"type": "container_upload"}, "user", ""),
        ({"type": "mcp_tool_use"}, "assistant", ""),
    ],
)
def test_each_flaw_of_a_block_is_said(block: Block, role: str, flaw: str) -> None:
    assert block_flaw(block, role) == flaw


def test_flaws_inside_of_a_result_are_named_by_the_block_they_are_in() -> None:
    odd = result("", [words(""), {"type": "image"}, {"type": "odd"}], is_error="x")
    assert list(result_flaws(odd)) == [
        ("tool_result", "no tool call ID"),
        ("tool_result", "is_error is not a boolean"),
        ("text", "text is empty"),
        ("image", "no source"),
        ("odd", "contains 'odd'"),
    ]


def test_blank_is_text_without_a_letter() -> None:
    assert [is_blank(one) for one in (words(""), words(" \n"), words("x"), {"type": "text"})] == [
        *(True, True, False, True)
    ]
    assert not is_blank({"type": "image"})
    assert not is_blank("x")
    assert is_blank({"type": "text", "text": 5})


EMPTY = {"type": "text", "text": NO_CONTENT}


@pytest.mark.parametrize(
    ("block", "role", "fixed"),
    [
        (words("x"), "user", words("x")),
        (words(""), "user", None),
        (call(), "user", None),
        ({"type": "odd"}, "assistant", None),
        ({"type": "thinking", "thinking": "x"}, "assistant", None),
        (call(input='{"a":1}'), "assistant", call(input={"a": 1})),
        (call(input="x"), "assistant", call(input={"value": "x"})),
        (call(input="\ud800"), "assistant", call(input={"value": "\ud800"})),
        (call(input=None), "assistant", call(input={})),
        (call(input=[1]), "assistant", call(input={"value": [1]})),
        ({**call(), "name": 5}, "assistant", {**call(), "name": "unknown"}),
        ({**call(), "id": 5}, "assistant", {**call(), "id": "toolu_5"}),
        ({**call(), "id": "", "name": "B"}, "assistant", {**call(), "id": "toolu_", "name": "B"}),
        ({**call(), "id": ["ü-7"]}, "assistant", {**call(), "id": "toolu_7"}),
        ({"type": "image"}, "user", words("[Image omitted: no source]")),
        ({"type": "document"}, "user", words("[Document omitted: no source]")),
        ({**result(), "tool_use_id": {"a": 1}}, "user", result("toolu_a1")),
        (result(is_error="x"), "user", result()),
        (result(is_error=False, content=[]), "user", result(is_error=False, content=[])),
        (result(content=5), "user", result(content=[EMPTY])),
        (result(content=["x", 5]), "user", result(content=[words("x")])),
        (result(content=[words(""), call()]), "user", result(content=[EMPTY])),
        (
            result(content=[{"type": "image"}, {"type": "tool_reference"}]),
            "user",
            result(content=[words("[Image omitted: no source]"), {"type": "tool_reference"}]),
        ),
        (result(is_error=True, content=""), "user", result(is_error=True, content=[EMPTY])),
        (result(is_error=True, content="x"), "user", result(is_error=True, content="x")),
        (result(is_error=True, content=None), "user", result(is_error=True, content=[EMPTY])),
        (result(is_error=True, content=[]), "user", result(is_error=True, content=[EMPTY])),
        (result(is_error=True, content=[words("x")]), "user", result(is_error=True, content=[words("x")])),
        (
            result(is_error=True, content=[words("x"), {"type": "tool_reference"}]),
            "user",
            result(is_error=True, content=[words("x"), words("[tool_reference omitted from an error result]")]),
        ),
    ],
)
def test_a_block_is_sent_as_it_is_or_mended_or_left_out(block: Block, role: str, fixed: Block | None) -> None:
    assert fix_block(block, role) == fixed
    if fixed is not None:
        assert block_flaw(fixed, role) == ""


def test_words_alone_are_one_block_and_what_is_no_block_is_empty() -> None:
    assert blocks_of({"content": "x"}) == [words("x")]
    assert blocks_of({"content": [words("x"), 5]}) == [words("x"), {}]
    assert blocks_of({"content": 5}) == []
    assert blocks_of({}) == []


# One message after the other


def test_an_id_that_was_used_before_gets_another_and_its_result_with_it() -> None:
    said = make_valid(
        [
            *(user(words("x")), assistant(call("a"), call("b")), user(result("a"), result("b"))),
            *(assistant(call("a")), user(result("a")), assistant(call("a")), user(result("a"))),
        ]
    )
    assert [block["id"] for block in said[1]["content"]] == ["a", "b"]
    assert [said[place]["content"][0]["id"] for place in (3, 5)] == ["a-again", "a-again-again"]
    results = [said[place]["content"][0]["tool_use_id"] for place in (4, 6)]
    assert results == ["a-again", "a-again-again"]


def test_a_conversation_that_does_not_begin_with_the_user_is_begun() -> None:
    proof = MessageValidator()
    beginning = {"role": "user", "content": [words(MISSING_BEGINNING)]}
    assert proof.preview(assistant(words("x"))) == [beginning, assistant(words("x"))]
    assert proof.add(assistant(words("x"))) == [beginning, assistant(words("x"))]
    assert proof.add(assistant(words("y"))) == [assistant(words("y"))]
    assert MessageValidator().add(user(words(""))) == [user(words(NO_CONTENT))]


@pytest.mark.parametrize("kind", ["server_tool_use", "mcp_tool_use"])
def test_a_servers_own_calls_and_results_stand_together_or_not_at_all(kind: str) -> None:
    own = {**call("s"), "type": kind}
    answer = {"type": "web_search_tool_result", "tool_use_id": "s"}
    for blocks, left in (
        ([own, answer], [own, answer]),
        ([words("x"), own], [words("x")]),
        ([words("x"), answer], [words("x")]),
        ([words("x"), own, {**answer, "tool_use_id": "t"}], [words("x")]),
    ):
        said = make_valid([user(words("q")), assistant(*blocks), user(words("on"))])
        assert said[1]["content"] == left
    # A server that paused at the very end goes on with its call.
    assert make_valid([user(words("q")), assistant(own)])[1]["content"] == [own]


# Open calls and prompts without an answer


def said(entries: list[Entry]) -> list[tuple[str, list[Any]]]:
    return [
        (entry.role, [block.get("text") or block.get("id") or block.get("tool_use_id")
                      for block in entry.blocks])
        for entry in entries
    ]  # fmt: skip


def prompt(text: str = "q") -> Entry:
    return Entry("user", [text_block(text)])


def answer(group: str, *blocks: Block, error: bool = False) -> Entry:
    return Entry("assistant", list(blocks), group=group, error=error)


def test_a_call_that_the_end_cut_off_is_answered_and_an_older_one_is_dropped() -> None:
    entries = [prompt(), answer("1", words("x"), call("old")), prompt("r"), answer("2", words("y"), call("new"))]
    mended = fix_entries(entries, LATEST)
    assert said(mended)[:4] == [*(("user", ["q"]), ("assistant", ["x"]), ("user", ["r"]), ("assistant", ["y", "new"]))]
    assert mended[4].blocks == [
        {"type": "tool_result", "content": INTERRUPTED_CALL, "is_error": True, "tool_use_id": "new"}
    ]
    assert said(mended)[5:] == [("assistant", [NO_RESPONSE])]


def test_calls_of_a_turn_that_ends_in_results_stay_and_the_last_ones_are_answered() -> None:
    entries = [
        *(prompt(), answer("1", call("a"), call("b")), Entry("user", [result("a")])),
        *(answer("2", call("c"), call("d")), Entry("user", [result("c")])),
    ]
    mended = fix_entries(entries, LATEST)
    calls = [name for entry in mended for name in entry.calls]
    assert calls == ["a", "b", "c", "d"]
    answered = [block["tool_use_id"] for entry in mended for block in entry.blocks
                if block.get("content") == INTERRUPTED_CALL]  # fmt: skip
    assert answered == ["d"]


def test_an_answer_of_nothing_but_thinking_or_blanks_is_left_out() -> None:
    hollow = {"type": "thinking", "thinking": "x", "signature": "s"}
    entries = [prompt(), answer("1", hollow), answer("2", words(" ")), answer("3", words("z"))]
    assert said(fix_entries(entries, LATEST)) == [("user", ["q"]), ("assistant", ["z"])]
    split = [prompt(), answer("1", hollow), answer("1", words("z"))]
    assert len(fix_entries(split, LATEST)) == 3
    failed = [prompt(), answer("1", words("z"), error=True)]
    assert said(fix_entries(failed, LATEST))[0] == ("user", ["q"])
    assert "z" not in str(said(fix_entries(failed, LATEST)))


def test_an_answer_stands_behind_the_last_prompt_and_its_reminders() -> None:
    reminder = Entry("user", [text_block("note")], kind="reminder")
    command = Entry("user", [text_block("cmd")], kind="command")
    entries = [prompt(), answer("1", words("x")), prompt("r"), reminder, command]
    assert said(fix_entries(entries, LATEST)) == [
        *(("user", ["q"]), ("assistant", ["x"]), ("user", ["r"]), ("user", ["note"])),
        *(("assistant", [NO_RESPONSE]), ("user", ["cmd"])),
    ]
    assert fix_entries([command], LATEST) == [command]
    assert fix_entries([], LATEST) == []


def test_blocks_that_are_merged_put_results_first_and_end_text_in_a_newline() -> None:
    entry = Entry("user", [words("a"), result("1")])
    entry.merge([words("b"), result("2")], newline=True)
    entry.merge([result("3"), words("c")], newline=True)
    entry.merge([words("d")], newline=False)
    assert said([entry]) == [("user", ["1", "2", "3", "a\n", "b", "c", "d"])]
    late = Entry("user", [words("a")])
    late.merge([words("b")], newline=True)
    late.merge([words("c")], newline=True)
    assert said([late]) == [("user", ["a\n", "b\n", "c"])]


# Pictures and output that is left out


def test_a_picture_or_a_document_counts_for_six_thousand_characters() -> None:
    assert output_size(result(content="abc")) == 3
    assert output_size(result(content=[words("abc"), {"type": "image"}, 5])) == 12_003
    assert output_size(result(content=[words("abc"), {"type": "text", "text": 5}])) == 3
    assert output_size(result(content=None)) == 0


def test_a_note_stands_for_output_that_is_longer_than_the_note() -> None:
    long, short = result("a", "x" * 300), result("b", "y")
    picture = result("c", [{"type": "image"}, words("z")])
    message = user(long, short, picture, words("w"))
    noted = trim_message(message, {"a", "b", "c"})["content"]
    assert "(300 characters) removed" in noted[0]["content"]
    assert noted[1] == short
    assert "1 characters and 1 images or documents" in noted[2]["content"]
    assert noted[3] == words("w")
    assert trim_message(message, {"d"}) is message
    length = len(trim_message(user(result("a", "x" * 1000)), {"a"})["content"][0]["content"]) - 3
    for size, stays in ((length, True), (length + 1, False)):
        block = result("a", "x" * size)
        assert (trim_message(user(block), {"a"})["content"] == [block]) == stays, size


def picture(side: int) -> Block:
    header = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\x0dIHDR" + side.to_bytes(4, "big") + b"\0\0\0\x01"
    data = b64encode(header + bytes(16)).decode()
    source = {"type": "base64", "media_type": "image/png", "data": data}
    return {"type": "image", "source": source}


def test_more_than_twenty_images_have_sides_of_two_thousand_at_most() -> None:
    assert flaw_among_many_images(picture(2000)) == ""
    assert flaw_among_many_images(picture(2001)) == ("2,001 pixels a side; the limit is 2,000 with more than 20 images")
    small, large = picture(10), picture(2001)
    inside = result("c", [large, words("x"), small])
    assert list(images_in([small, inside, words("y")])) == [small, large, small]
    few = [user(*[small] * 18, inside)]
    assert without_large_images(few) == few
    many = [user(*[small] * 19, inside), user(words("z"))]
    (first, second) = without_large_images(many)
    assert first["content"][:19] == [small] * 19
    assert [one["type"] for one in first["content"][19]["content"]] == ["text", "text", "image"]
    assert second == many[1]
    assert without_large_images([user(*[small] * 30)]) == [user(*[small] * 30)]
    assert without_images([small, words("x")], lambda _block: "why") == [words("[Image omitted: why]"), words("x")]


@pytest.mark.parametrize("twins", [1, 2, 3, 4])
def test_calls_that_share_an_id_get_one_each_and_so_do_their_results(twins: int) -> None:
    call = {"type": "tool_use", "id": "a", "name": "Read", "input": {}}
    answers = [{"type": "tool_result", "tool_use_id": "a", "content": str(n)} for n in range(twins)]
    turn = [{"role": "assistant", "content": [call] * twins}, {"role": "user", "content": answers}]
    sent = make_valid([{"role": "user", "content": "Go."}, *turn, *turn])
    calls = [[block["id"] for block in sent[at]["content"]] for at in (1, 3)]
    assert [[block["tool_use_id"] for block in sent[at]["content"]] for at in (2, 4)] == calls
    assert calls[0][0] == "a"
    assert len(set(calls[0] + calls[1])) == 2 * twins
    assert find_breaches(sent) == []
