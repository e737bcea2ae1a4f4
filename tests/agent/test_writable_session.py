"""Sessions that go on, fork, and are taken back: all by appending."""

import json
from pathlib import Path

import pytest
from tests.agent.loop_harness import Stage
from tests.notation import notation

from steno.agent.writable_session import fork_session, list_prompts, resume_session, rewind_session
from steno.errors import NotFound
from steno.format.source import BytesSource
from steno.llm.testserver.responders import tool
from steno.llm.testserver.scripted_responder import ScriptedResponder
from steno.session.resume.replay import as_resumed
from steno.session.transcript import load


def spoken(tmp_path: Path) -> Stage:
    script = ScriptedResponder().on("three", "Three.").on("two", "Two.").on("one", tool("Look", what="x"))
    stage = Stage(tmp_path, script.then("One."))
    stage.say("one", "two")
    return stage


def resumed(data: bytes) -> list[str]:
    return notation(as_resumed(load(BytesSource(data))) or [])


def test_a_fork_has_everything_and_leaves_the_other_alone(tmp_path: Path) -> None:
    stage = spoken(tmp_path)
    before, old = stage.data, stage.path
    stage.talk.recorder.close()
    stage.work = fork_session(stage.config, old, stage.cwd)
    stage.say("three")
    assert Path(old).read_bytes() == before
    assert stage.path != old
    assert resumed(stage.data)[-2:] == ["u:three", "a:Three."]
    assert resumed(stage.data)[:-2] == resumed(before)
    assert Path(old).stem.encode() not in stage.data
    stage.check()


def test_taken_back_a_session_goes_on_from_before_the_prompt(tmp_path: Path) -> None:
    stage = spoken(tmp_path)
    before = stage.data
    (_, first), (second, _) = list_prompts(stage.path)
    assert first == "one"
    stage.talk.recorder.close()
    stage.work = rewind_session(stage.path, stage.cwd, second)
    stage.say("three")
    assert stage.data.startswith(before)
    assert resumed(stage.data)[-1] == "a:Three."
    assert not any("two" in each for each in resumed(stage.data))
    stage.check()


def test_taken_back_to_the_very_beginning(tmp_path: Path) -> None:
    stage = spoken(tmp_path)
    (first, _), _ = list_prompts(stage.path)
    stage.talk.recorder.close()
    stage.work = rewind_session(stage.path, stage.cwd, first)
    stage.say("three")
    assert resumed(stage.data) == ["u:three", "a:Three."]
    stage.check()


def test_a_prompt_that_is_not_there_is_said(tmp_path: Path) -> None:
    stage = spoken(tmp_path)
    stage.talk.recorder.close()
    for _ in range(2):
        # The second one finds the session free.
        with pytest.raises(NotFound, match="no prompt"):
            rewind_session(stage.path, stage.cwd, "nonsense")


@pytest.mark.parametrize("torn", [b"", b'{"type":"user","mess'])
def test_a_session_that_was_cut_off_in_a_call_goes_on(tmp_path: Path, torn: bytes) -> None:
    stage = spoken(tmp_path)
    lines = stage.data.splitlines(keepends=True)
    call = next(at for at, line in enumerate(lines) if b'"tool_use"' in line)
    path = Path(stage.path)
    stage.talk.recorder.close()
    path.write_bytes(b"".join(lines[: call + 1]) + torn)
    stage.work = resume_session(str(path), stage.cwd)
    stage.say("three")
    said = resumed(stage.data)
    assert said[1].startswith("a:USE(")
    assert "interrupted" in str(stage.talk.messages())
    (result,) = [json.loads(line) for line in stage.data.splitlines() if b"tool_result" in line]
    assert result["sourceToolAssistantUUID"] == json.loads(lines[call])["uuid"]
    stage.check(allowed=("line.torn",))


def test_a_file_without_a_conversation_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "0f0e0d0c-0000-4000-8000-000000000000.jsonl"
    path.write_bytes(b'{"type":"summary","summary":"x"}\n')
    with pytest.raises(NotFound, match="no conversation"):
        resume_session(str(path), str(tmp_path))


def test_whoever_only_opens_a_session_changes_nothing_in_it(tmp_path: Path) -> None:
    stage = Stage(tmp_path, ScriptedResponder().on("go", tool("Look", what="x")).then("Seen."))
    stage.say("go")
    path = Path(stage.path)
    stage.talk.recorder.close()
    lines = path.read_bytes().splitlines(keepends=True)
    call = next(place for place, line in enumerate(lines) if b'"tool_use"' in line)
    path.write_bytes(b"".join(lines[: call + 1]))
    before = path.read_bytes()
    work = resume_session(stage.path, stage.cwd)
    assert path.read_bytes() == before
    # What became of the call is written with the next words.
    work.conversation.add_prompt("more")
    work.conversation.recorder.close()
    added = path.read_bytes()[len(before) :]
    assert added.index(b'"tool_result"') < added.index(b"more")
