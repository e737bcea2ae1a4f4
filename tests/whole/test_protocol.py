"""What a client of this format has to do, point by point, done by the whole agent.

`tests/published/checklist.py` says which test is for which point.
"""

import json
import os
import re
import subprocess
import uuid
from pathlib import Path
from typing import Any, Final

import pytest
from tests.whole.house import House
from tests.whole.test_tools import furnish
from tests.whole.written import Written

from steno.agent import events
from steno.agent.agent_session import AgentSession
from steno.agent.writable_session import new_session, resume_session
from steno.format.catalogue import catalogue
from steno.format.paths import slug_for_path
from steno.llm.testserver.responders import text, thinking, tool
from steno.llm.testserver.scripted_responder import ScriptedResponder
from steno.session.resume.clients import LATEST

Records = list[dict[str, Any]]
STAMP: Final = re.compile(r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z")


def lines_of(path: Path | str) -> Records:
    return [json.loads(line) for line in Path(path).read_bytes().splitlines()]


def chain_of(records: Records) -> Records:
    return [each for each in records if "uuid" in each]


def blocks_of(records: Records, kind: str) -> list[dict[str, Any]]:
    contents = [each["message"]["content"] for each in records if "message" in each]
    blocks = [block for content in contents if isinstance(content, list) for block in content]
    return [block for block in blocks if block["type"] == kind]


def git(folder: Path, *arguments: str) -> None:
    names = {"GIT_CONFIG_GLOBAL": os.devnull, "PATH": os.environ["PATH"], "HOME": str(folder)}
    who = {f"GIT_{role}_{part}": "a" for role in ("AUTHOR", "COMMITTER") for part in ("NAME", "EMAIL")}
    subprocess.run(["git", "-C", folder, *arguments], env=names | who, check=True, capture_output=True)


# Sessions


def test_each_new_session_has_a_random_id_of_its_own(tmp_path: Path) -> None:
    works = [new_session(str(tmp_path), "/w") for _ in range(3)]
    assert [uuid.UUID(work.id).version for work in works] == [4, 4, 4]
    assert len({work.id for work in works}) == 3


def test_the_file_is_named_for_the_session_in_the_folder_of_its_project(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Yes."))
    house.say("go")
    assert house.work is not None
    folder = house.config / "projects" / slug_for_path(os.path.realpath(house.project))
    assert Path(house.path) == folder / f"{house.work.id}.jsonl"
    assert Path(house.path).stat().st_mode & 0o777 == 0o600
    assert {each["sessionId"] for each in house.records if "sessionId" in each} == {house.work.id}


def test_every_record_says_the_folder_the_branch_and_the_version(tmp_path: Path) -> None:
    script = ScriptedResponder().on("go", tool("Bash", command="git checkout -qb other; cd sub"))
    house = House(tmp_path, script.then("Done."))
    (house.project / "sub").mkdir()
    git(house.project, "init", "-qb", "main")
    git(house.project, "commit", "-q", "--allow-empty", "-m", "x")
    house.say("go")
    chain = chain_of(house.records)
    assert {each["version"] for each in chain} == {LATEST.version}
    places = [(Path(each["cwd"]).name, each["gitBranch"]) for each in chain]
    assert places[0] == ("project", "main")
    assert places[-1] == ("sub", "other")


# Writing


def test_each_record_is_one_line_of_compact_json(written: Written) -> None:
    for path in written.files:
        data = path.read_bytes()
        assert data.endswith(b"\n")
        for line in data.splitlines():
            record = json.loads(line)
            assert isinstance(record, dict)
            assert line == json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode()


def test_a_file_only_grows_whatever_is_done(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().on("Summarize", "In short.").otherwise("Yes."))
    house.say("one", "two")
    before = Path(house.path).read_bytes()
    for act in (house.compact, house.resume, lambda: house.rewind(-1), lambda: house.say("on")):
        act()
        now = Path(house.path).read_bytes()
        assert now.startswith(before)
        before = now


def test_every_record_of_the_conversation_has_an_id_of_its_own(written: Written) -> None:
    for path in written.files:
        names = [each["uuid"] for each in chain_of(lines_of(path))]
        assert len(names) == len(set(names))
        assert {uuid.UUID(name).version for name in names} == {4}


def test_each_record_hangs_on_the_one_before_it(tmp_path: Path) -> None:
    script = ScriptedResponder().on("go", [text("Look."), tool("Read", file_path="a"), tool("Glob", pattern="*")])
    house = House(tmp_path, script.then("Done.").otherwise("Yes."))
    house.file("a", "a")
    house.say("go", "and")
    chain = chain_of(house.records)
    assert chain[0]["parentUuid"] is None
    assert [each["parentUuid"] for each in chain[1:]] == [each["uuid"] for each in chain[:-1]]


def test_what_a_file_was_is_kept_before_it_is_changed(tmp_path: Path) -> None:
    script = ScriptedResponder().on("go", tool("Read", file_path="a.txt"))
    script.then(tool("Edit", file_path="a.txt", old_string="old", new_string="new")).then("Done.")
    house = House(tmp_path, script)
    house.file("a.txt", "old words")
    house.say("go")
    records = house.records
    prompt = next(each for each in records if each["type"] == "user")
    snapshot = next(each for each in records if each["type"] == "file-history-snapshot")
    delta = next(each for each in records if each["type"] == "file-history-delta")
    assert snapshot["messageId"] == delta["snapshotMessageId"] == prompt["uuid"]
    assert delta["trackingPath"] == "a.txt"
    assert house.work is not None
    backup = house.config / "file-history" / house.work.id / delta["backup"]["backupFileName"]
    assert backup.read_text() == "old words"
    assert (house.project / "a.txt").read_text() == "new words"
    edit = next(at for at, each in enumerate(records) if '"oldString"' in json.dumps(each))
    assert records.index(delta) < edit


def test_times_are_iso_and_rise(written: Written) -> None:
    for path in written.files:
        stamps = [each["timestamp"] for each in chain_of(lines_of(path))]
        assert all(STAMP.fullmatch(stamp) for stamp in stamps)
        if path != written.forked:
            assert stamps == sorted(stamps)


# The API


def test_messages_go_out_by_turns_of_user_and_assistant(tmp_path: Path) -> None:
    script = ScriptedResponder().on("go", tool("Read", file_path="a")).then("Done.")
    house = House(tmp_path, script.otherwise("Yes."))
    house.file("a", "a")
    house.say("go", "and")
    roles = [each["role"] for each in house.sent[-1]["messages"]]
    assert roles == ["user", "assistant", "user", "assistant", "user"]
    assert house.sent[-1]["stream"] is True


def test_every_request_defines_the_tools(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Yes."))
    house.say("go", "and")
    first, second = (each["tools"] for each in house.sent)
    assert first == second
    assert {"Read", "Write", "Edit", "Bash", "Glob", "Grep", "Agent"} <= {t["name"] for t in first}
    for each in first:
        assert each["description"]
        assert each["input_schema"]["type"] == "object"


def test_each_block_of_a_streamed_answer_is_a_record(tmp_path: Path) -> None:
    calls = [tool("Read", file_path="a"), tool("Glob", pattern="*")]
    house = House(tmp_path, ScriptedResponder().on("go", [thinking("hm"), text("Look."), *calls]).then("Done."))
    house.file("a", "a")
    house.say("go")
    answers = [each for each in house.records if each["type"] == "assistant"]
    first = [each for each in answers if each["message"]["id"] == answers[0]["message"]["id"]]
    assert [each["message"]["content"][0]["type"] for each in first] == ["thinking", "text", "tool_use", "tool_use"]
    assert [len(each["message"]["content"]) for each in first] == [1, 1, 1, 1]
    assert [each["apiBlockIndex"] for each in first] == [0, 1, 2, 3]
    assert {each["message"]["stop_reason"] for each in first} == {"tool_use"}
    assert len({json.dumps(each["message"]["usage"]) for each in first}) == 1


def test_records_of_one_answer_share_the_id_of_its_request(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().on("go", [text("a"), text("b")]).otherwise("Yes."))
    house.say("go", "and")
    ids: dict[str, set[str]] = {}
    for each in house.records:
        if each["type"] == "assistant":
            ids.setdefault(each["message"]["id"], set()).add(each["requestId"])
    assert [len(each) for each in ids.values()] == [1, 1]
    assert len(set.union(*ids.values())) == 2


@pytest.mark.parametrize(("stop", "requests"), [("end_turn", 1), ("stop_sequence", 1), ("max_tokens", 2)])
def test_why_an_answer_stopped_decides_what_comes_next(tmp_path: Path, stop: str, requests: int) -> None:
    script = ScriptedResponder().on("limit of", "the end").on("go", "Yes.", stop_reason=stop)
    house = House(tmp_path, script)
    (ended,) = house.say("go")
    assert (ended.reason, ended.requests) == ("done", requests)


def test_calls_are_made_only_when_the_answer_stopped_for_them(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().on("go", tool("Bash", command="touch here")).then("Done."))
    (ended,) = house.say("go")
    assert (ended.requests, ended.text) == (2, "Done.")
    assert (house.project / "here").exists()


# Tools


def test_the_input_of_a_call_reaches_the_tool_as_it_was_streamed(tmp_path: Path) -> None:
    words = 'quotes " and \\ and\nlines, ü, 日本 🙂'
    house = House(tmp_path, ScriptedResponder().on("go", tool("Write", file_path="a", content=words)).then("Done."))
    house.say("go")
    (call,) = blocks_of(house.records, "tool_use")
    assert call["input"] == {"file_path": "a", "content": words}
    assert (house.project / "a").read_text() == words


def test_results_are_blocks_of_the_user_that_name_their_call(tmp_path: Path) -> None:
    script = ScriptedResponder().on("go", [tool("Bash", command="echo so"), tool("Read", file_path="none")])
    house = House(tmp_path, script.then("Done."))
    house.say("go")
    calls = blocks_of(house.records, "tool_use")
    results = [each for each in house.records if "toolUseResult" in each]
    assert {each["type"] for each in results} == {"user"}
    blocks = [each["message"]["content"][0] for each in results]
    assert [block["tool_use_id"] for block in blocks] == [call["id"] for call in calls]
    assert ["is_error" in block for block in blocks] == [False, True]
    sent = house.sent[-1]["messages"][-1]
    assert sent["role"] == "user"
    assert [block["tool_use_id"] for block in sent["content"]] == [call["id"] for call in calls]


KEPT: Final[dict[str, set[str]]] = {
    "Read": {"type", "file"},
    "Write": {"type", "filePath", "content", "structuredPatch", "originalFile"},
    "Edit": {"filePath", "oldString", "newString", "structuredPatch", "replaceAll"},
    "Bash": {"stdout", "stderr", "interrupted", "isImage"},
    "Glob": {"filenames", "numFiles", "durationMs", "truncated"},
    "Grep": {"mode", "filenames", "numFiles"},
    "Agent": {"status", "prompt", "agentId", "content", "totalDurationMs", "totalTokens"},
}
"""What a result of a tool keeps at least, by the tool."""


def test_results_keep_what_the_client_keeps_of_them_and_nothing_of_it_is_sent(written: Written) -> None:
    seen: set[str] = set()
    for path in written.files:
        names: dict[str, str] = {}
        for each in lines_of(path):
            for block in blocks_of([each], "tool_use"):
                names[block["id"]] = block["name"]
            detail = each.get("toolUseResult")
            if not isinstance(detail, dict):
                continue
            name = names.get(each["message"]["content"][0]["tool_use_id"], "")
            entry = catalogue().tool(name)
            assert entry is not None, name
            assert set(detail) <= set(entry.result), (name, set(detail) - set(entry.result))
            if detail.get("status") != "async_launched":
                assert KEPT.get(name, set()) <= set(detail), name
            seen.add(name)
    assert seen >= set(KEPT)


def test_every_tool_takes_the_keys_that_the_client_knows(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Yes."))
    house.say("go")
    for each in house.sent[-1]["tools"]:
        entry = catalogue().tool(each["name"])
        assert entry is not None, each["name"]
        keys = set(each["input_schema"].get("properties", {}))
        assert keys <= set(entry.input), (each["name"], keys - set(entry.input))


def test_results_of_parallel_calls_are_all_there_in_order_before_the_next_request(tmp_path: Path) -> None:
    calls = [tool("Bash", command=f"sleep 0.{3 - n}; echo {n}") for n in range(3)]
    house = House(tmp_path, ScriptedResponder().on("go", calls).then("Done."))
    house.say("go")
    results = [each for each in house.records if "toolUseResult" in each]
    assert [each["toolUseResult"]["stdout"] for each in results] == ["0", "1", "2"]
    uses = {
        each["message"]["content"][0]["id"]: each["uuid"]
        for each in house.records
        if each["type"] == "assistant" and each["message"]["content"][0]["type"] == "tool_use"
    }
    for each in results:
        call = each["message"]["content"][0]["tool_use_id"]
        assert each["sourceToolAssistantUUID"] == uses[call]
    assert len(house.sent) == 2
    assert len(house.sent[-1]["messages"][-1]["content"]) == 3


# Sub-agents


def with_agent(folder: Path) -> House:
    script = ScriptedResponder().on("the task", tool("Bash", command="echo inside")).then("Three apples.")
    script.on("go", tool("Agent", description="Count", prompt="the task")).then("It is done.")
    house = House(folder, script)
    house.say("go")
    return house


def test_a_sub_agent_has_a_file_and_a_note_beside_it(tmp_path: Path) -> None:
    house = with_agent(tmp_path)
    (path,) = house.agents
    assert path.parent == Path(house.path).with_suffix("") / "subagents"
    assert re.fullmatch(r"agent-a[0-9a-f]{16}\.jsonl", path.name)
    meta = json.loads(path.with_suffix(".meta.json").read_bytes())
    assert (meta["agentType"], meta["description"], meta["spawnDepth"]) == ("general-purpose", "Count", 1)


def test_a_sub_agent_asks_calls_and_answers_by_itself_also_below_another(tmp_path: Path) -> None:
    script = (
        ScriptedResponder()
        .on("the inner task", "Two.")
        .on("the outer task", tool("Agent", description="d", prompt="the inner task"))
    )
    script.then("One.").on("go", tool("Agent", description="d", prompt="the outer task")).then("So.")
    house = House(tmp_path, script)
    house.say("go")
    assert len(house.agents) == 2
    said = sorted(blocks_of(lines_of(path), "text")[-1]["text"] for path in house.agents)
    assert said == ["One.", "Two."]


def test_records_of_a_sub_agent_are_marked_and_name_the_session(tmp_path: Path) -> None:
    house = with_agent(tmp_path)
    (path,) = house.agents
    chain = chain_of(lines_of(path))
    assert house.work is not None
    assert {each["isSidechain"] for each in chain} == {True}
    assert {each["agentId"] for each in chain} == {path.stem.removeprefix("agent-")}
    assert {each["sessionId"] for each in chain} == {house.work.id}
    assert chain[0]["parentUuid"] is None
    assert {each["isSidechain"] for each in chain_of(house.records)} == {False}


def test_the_answer_of_a_sub_agent_is_the_result_of_its_call(tmp_path: Path) -> None:
    house = with_agent(tmp_path)
    (result,) = [each for each in house.records if "toolUseResult" in each]
    (call,) = blocks_of(house.records, "tool_use")
    block = result["message"]["content"][0]
    assert block["tool_use_id"] == call["id"]
    assert "Three apples." in json.dumps(block["content"])
    (path,) = house.agents
    assert result["toolUseResult"]["agentId"] == path.stem.removeprefix("agent-")


def test_the_totals_of_a_sub_agent_are_those_of_its_file(tmp_path: Path) -> None:
    house = with_agent(tmp_path)
    (path,) = house.agents
    (detail,) = house.details
    usages = {each["message"]["id"]: each["message"]["usage"] for each in lines_of(path) if each["type"] == "assistant"}
    counted = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    tokens = sum(usage[name] for usage in usages.values() for name in counted)
    assert detail["totalTokens"] == tokens
    assert detail["totalToolUseCount"] == len(blocks_of(lines_of(path), "tool_use")) == 1
    assert isinstance(detail["totalDurationMs"], int)


# The context


def test_what_answers_took_is_recorded_as_the_api_said_it(tmp_path: Path) -> None:
    usage = {"input_tokens": 7, "output_tokens": 5, "cache_read_input_tokens": 90}
    house = House(tmp_path, ScriptedResponder().on("go", "Yes.", usage=usage))

    async def ask(started: AgentSession) -> int:
        await started.agent.run_turn("go")
        return started.agent.meter.context_size

    context = house.play(ask)
    (answer,) = [each for each in house.records if each["type"] == "assistant"]
    said = answer["message"]["usage"]
    assert {name: said[name] for name in usage} == usage
    assert context >= 102


def test_a_conversation_that_grows_too_long_is_summed_up_before_it_is_refused(tmp_path: Path) -> None:
    script = ScriptedResponder().on("Summarize", "In short.").on("Write one", "In short.")
    house = House(tmp_path, script.otherwise("word " * 600), window=12_000, max_tokens=1_000)
    ended = house.say(*(f"{number} {'word ' * 300}" for number in range(9)))
    assert {each.reason for each in ended} == {"done"}
    assert house.happened(events.Compacted)
    assert [each.refusal for each in house.server.refused] == []
    boundaries = [each for each in house.records if each.get("subtype") == "compact_boundary"]
    assert {each["compactMetadata"]["trigger"] for each in boundaries} == {"auto"}


def compacted(folder: Path) -> tuple[House, dict[str, Any], dict[str, Any], Records]:
    house = House(folder, ScriptedResponder().on("Summarize", "In short.").otherwise("Yes."))
    house.say("one", "two")
    before = chain_of(house.records)[-1]
    house.compact()
    house.say("three")
    records = house.records
    place = next(at for at, each in enumerate(records) if each.get("subtype") == "compact_boundary")
    return house, before, records[place], records[place + 1 :]


def test_a_compaction_is_a_boundary_with_its_figures_and_a_summary(tmp_path: Path) -> None:
    _, _, boundary, after = compacted(tmp_path)
    figures = boundary["compactMetadata"]
    assert figures["trigger"] == "manual"
    assert figures["preTokens"] > 0
    assert figures["postTokens"] > 0
    assert figures["durationMs"] >= 0
    assert figures["cumulativeDroppedTokens"] == max(0, figures["preTokens"] - figures["postTokens"])
    assert after[0]["isCompactSummary"] is True
    assert "In short." in after[0]["message"]["content"]
    assert after[0]["turnPosition"] == {"promptIndex": 2, "turnIndex": 2}


def test_the_chain_begins_anew_at_a_boundary_that_names_what_was_before(tmp_path: Path) -> None:
    _, before, boundary, after = compacted(tmp_path)
    assert boundary["parentUuid"] is None
    assert boundary["logicalParentUuid"] == before["uuid"]
    assert after[0]["parentUuid"] == boundary["uuid"]


# Progress


def test_what_a_command_prints_is_live_and_no_record(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().on("go", tool("Bash", command="echo one; echo two")).then("Done."))
    house.say("go")
    grown = "".join(each.text for each in house.happened(events.ToolOutput))
    assert grown.split() == ["one", "two"]
    assert no_progress(house)


def test_what_a_sub_agent_does_is_live_and_no_record(tmp_path: Path) -> None:
    house = with_agent(tmp_path)
    within = [each for each in house.events if isinstance(each, events.SubagentEvent)]
    kinds = {type(each.event) for each in within}
    assert {events.ToolStarted, events.ToolOutput, events.ToolEnded, events.ResponseReceived} <= kinds
    assert no_progress(house)


def test_a_hook_that_runs_is_live_and_no_progress_record(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().on("go", tool("Bash", command="true")).then("Done."))
    command = "cat > /dev/null; echo heard"
    run = [{"hooks": [{"type": "command", "command": command}]}]
    house.settings(hooks={"PreToolUse": run, "Stop": run})
    house.say("go")
    began = [each.name for each in house.happened(events.HookStarted)]
    assert began == [each.name for each in house.happened(events.HookEnded)]
    assert began == ["PreToolUse:Bash", "Stop"]
    assert no_progress(house)


def no_progress(house: House) -> bool:
    files = [Path(house.path), *house.agents]
    return not any(each["type"] == "progress" for path in files for each in lines_of(path))


@pytest.mark.corpus
def test_the_newest_client_writes_no_progress_records(shared: Path) -> None:
    folder = shared / "corpus" / "real-client"
    kinds = {
        version: {
            each.get("type")
            for path in (folder / version).rglob("*.jsonl")
            if path.name != "history.jsonl"
            for each in lines_of(path)
        }
        for version in (LATEST.version, "2.1.42")
    }
    assert "progress" in kinds["2.1.42"]
    assert "progress" not in kinds[LATEST.version]


# Going on


def test_a_session_is_read_back_as_it_was_said(tmp_path: Path) -> None:
    script = ScriptedResponder().on("go", [text("a"), tool("Read", file_path="a"), tool("Glob", pattern="*")])
    house = House(tmp_path, script.then([text("b"), text("c")]).otherwise("Yes."))
    house.file("a", "a")
    house.say("go", "and")
    said = house.live
    house.resume()
    assert house.work is not None
    assert house.work.conversation.messages() == said
    # The blocks of an answer, which are a record each, are one message again.
    assert [len(each["content"]) for each in said] == [1, 3, 2, 2, 1, 1]


def test_a_new_prompt_hangs_on_the_last_record_of_the_conversation(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Yes."))
    house.say("one", "two")
    last = chain_of(house.records)[-1]["uuid"]
    house.resume()
    house.say("three")
    prompt = next(each for each in house.records if "three" in str(each.get("message")))
    assert prompt["parentUuid"] == last
    house.rewind(1)
    house.say("instead of two")
    first_end = chain_of(house.records)[2]["uuid"]
    prompt = next(each for each in house.records if "instead" in str(each.get("message")))
    assert prompt["parentUuid"] == first_end
    assert "two" not in str(house.sent[-1]["messages"][:-1])


def test_a_session_that_was_compacted_goes_on_from_its_summary(tmp_path: Path) -> None:
    house, _, _, _ = compacted(tmp_path)
    assert house.work is not None
    house.work.conversation.recorder.close()
    work = resume_session(house.path, str(house.project))
    messages = work.conversation.messages()
    work.conversation.recorder.close()
    assert "In short." in str(messages[0])
    assert "one" not in str(messages)
    assert messages == house.live


def test_every_tool_of_the_table_runs_here(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Yes."))
    furnish(house)
    house.say("go")
    known = {each["name"] for each in house.sent[-1]["tools"]}
    files = {"Read", "Write", "Edit", "Bash", "Glob", "Grep"}
    assert files | {"Agent", "TodoWrite", "WebSearch", "WebFetch"} <= known
