"""Trimming: old output leaves the window, stays in the file, and is left out again on resume."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
from tests.agent.loop_harness import Does, Stage

from steno.agent import events
from steno.agent.context.compaction import ContextCompactor
from steno.format.source import BytesSource
from steno.llm.testserver.responders import tool
from steno.llm.testserver.scripted_responder import ScriptedResponder
from steno.session.resume.replay import as_resumed
from steno.session.transcript import load

WINDOW = 20_000
LEFT_OUT = "removed to save context"


async def print_much(given: dict[str, Any]) -> str:
    return f"{given.get('what')} " * 1_200


def printing(folder: Path, name: str = "Print", *, window: int = WINDOW) -> Stage:
    script = ScriptedResponder().on("Summarize", "In short.").on("Write one", "In short.")
    script.on("print", tool(name, what="word")).then("Done.").otherwise("Yes.")
    stage = Stage(folder, script)
    stage.tools.append(Does(name, print_much, reads_only=True))
    stage.fit = ContextCompactor(window=window)
    return stage


def sent(stage: Stage) -> list[bytes]:
    """Return what the conversation sent, each request without the mark of what may be cached."""
    bodies = [each.body["messages"] for each in stage.server.requests if each.body.get("tools")]
    return [_plain(messages) for messages in bodies]


def _plain(messages: list[dict[str, Any]]) -> bytes:
    for message in messages:
        for block in message["content"]:
            block.pop("cache_control", None)
    return msgspec.json.encode(messages)


def noted(stage: Stage, kind: type[Any]) -> list[Any]:
    return [each for each in stage.events if isinstance(each, kind)]


def test_old_output_is_left_out_before_anything_is_compacted(tmp_path: Path) -> None:
    stage = printing(tmp_path)
    stage.say(*(f"print {number}" for number in range(9)))
    (first, *_) = noted(stage, events.Trimmed)
    assert not noted(stage, events.Compacted)
    assert first.tokens_after < first.tokens_before
    last = sent(stage)[-1].decode()
    assert last.count(LEFT_OUT) >= len(first.call_ids)
    assert "word word" in last
    stage.check()


def test_the_file_keeps_what_is_left_out_and_names_it(tmp_path: Path) -> None:
    stage = printing(tmp_path)
    stage.say(*(f"print {number}" for number in range(9)))
    trims = noted(stage, events.Trimmed)
    assert stage.data.count(b"word word word") >= 9
    assert LEFT_OUT.encode() not in stage.data
    transcript = load(BytesSource(stage.data))
    records = [transcript.record(node).fields for node in transcript.nodes if node.subtype == "microcompact_boundary"]
    named = [tuple(each["microcompactMetadata"]["compactedToolIds"]) for each in records]
    assert named == [each.call_ids for each in trims]
    # The real client knows no such record any more, and sends all of it.
    assert LEFT_OUT not in str(as_resumed(transcript))


def test_between_trimmings_the_beginning_of_a_request_stays_as_it_is(tmp_path: Path) -> None:
    stage = printing(tmp_path)
    stage.say(*(f"print {number}" for number in range(20)))
    bodies = sent(stage)
    breaks = sum(not after.startswith(before[:-1]) for before, after in pairwise(bodies))
    made = len(noted(stage, events.Trimmed)) + len(noted(stage, events.Compacted))
    assert 0 < breaks <= made < len(bodies) / 4


def test_what_is_recent_stays(tmp_path: Path) -> None:
    stage = printing(tmp_path)
    stage.say(*(f"print {number}" for number in range(30)))
    for body in sent(stage):
        results = [
            block["content"]
            for message in msgspec.json.decode(body)
            for block in message["content"]
            if block["type"] == "tool_result"
        ]
        assert not any(LEFT_OUT in each for each in results[-2:])


def test_a_resumed_session_sends_what_it_sent_before(tmp_path: Path) -> None:
    stage = printing(tmp_path)
    stage.say(*(f"print {number}" for number in range(9)))
    before = sent(stage)[-1]
    assert LEFT_OUT.encode() in before
    stage.resume()
    stage.fit = ContextCompactor(window=WINDOW)
    stage.say("And now?")
    assert sent(stage)[-1].startswith(before[:-1])
    stage.check()


def test_when_there_is_nothing_to_leave_out_the_window_is_compacted(tmp_path: Path) -> None:
    stage = printing(tmp_path)
    stage.say(*(f"print {number} {'x, ' * 800}" for number in range(40)))
    kinds = [type(each) for each in stage.events if type(each) in (events.Trimmed, events.Compacted)]
    assert kinds[0] is events.Trimmed
    assert events.Compacted in kinds
    assert events.Trimmed in kinds[kinds.index(events.Compacted) :]
    stage.check()


def test_what_cannot_be_had_again_is_not_left_out(tmp_path: Path) -> None:
    stage = printing(tmp_path, "Agent")
    stage.say(*(f"print {number}" for number in range(20)))
    assert not noted(stage, events.Trimmed)
    assert noted(stage, events.Compacted)
    stage.check()


def test_who_wants_nothing_done_by_itself_has_nothing_left_out(tmp_path: Path) -> None:
    stage = printing(tmp_path)
    stage.fit = ContextCompactor(window=WINDOW, automatic=False)
    stage.say(*(f"print {number}" for number in range(12)))
    assert not noted(stage, events.Trimmed)
    assert LEFT_OUT not in str(stage.talk.messages())


def test_taken_back_to_before_a_trimming_it_is_undone(tmp_path: Path) -> None:
    from steno.agent.writable_session import list_prompts, rewind_session

    stage = printing(tmp_path)
    stage.say(*(f"print {number}" for number in range(9)))
    assert LEFT_OUT in str(stage.talk.messages())
    asked = list_prompts(stage.path)
    stage.talk.recorder.close()
    stage.work = rewind_session(stage.path, stage.cwd, asked[3][0])
    assert LEFT_OUT not in str(stage.talk.messages())
    assert str(stage.talk.messages()).count("word word word") >= 3
