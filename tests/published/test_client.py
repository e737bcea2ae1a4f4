"""What real clients write and send, where the published descriptions say otherwise."""

import json
from collections.abc import Callable, Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
from tests.published.forms import Client, Json, call, lines

from steno.check.checkup import check
from steno.check.verdict import verdicts
from steno.format.paths import slug_for_path
from steno.format.source import BytesSource
from steno.session.resume.clients import CLIENTS, LATEST
from steno.session.resume.replay import as_resumed
from steno.session.session import Session
from steno.session.transcript import load
from steno.session.turns.compactions import summary_text

pytestmark = pytest.mark.corpus
OLD, NEW = ("1.0.128", "2.0.76"), ("2.1.29", "2.1.42", "2.1.325")
EVERY = (*OLD, *NEW)
STREAMING = ("2.1.29", "2.1.42")


@lru_cache(maxsize=16)
def _files(folder: Path, version: str) -> tuple[tuple[Path, tuple[Json, ...]], ...]:
    found = sorted((folder / "corpus" / "real-client" / version).rglob("*.jsonl"))
    return tuple((path, tuple(_records(path))) for path in found if "projects" in path.parts)


def _records(path: Path) -> Iterator[Json]:
    for line in path.read_bytes().split(b"\n"):
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            yield value


Of = Callable[..., list[Json]]


@pytest.fixture
def of(shared: Path) -> Of:
    """Return the records of a type, and subtype, that some versions wrote."""

    def records(versions: tuple[str, ...], kind: str, subtype: str = "") -> list[Json]:
        every = (each for version in versions for _, found in _files(shared, version) for each in found)
        return [each for each in every if each.get("type") == kind and (not subtype or each.get("subtype") == subtype)]

    return records


def blocks(record: Json) -> list[Json]:
    message = record.get("message")
    content = message.get("content") if isinstance(message, dict) else None
    return content if isinstance(content, list) else []


def results(records: list[Json]) -> list[Json]:
    return [each for each in records if any(b.get("type") == "tool_result" for b in blocks(each))]


# Names and places


def test_every_sign_but_letters_and_digits_becomes_a_dash_in_a_folder_name() -> None:
    assert slug_for_path("/home/ada/my_work.v2") == "-home-ada-my-work-v2"
    assert slug_for_path("/ünï/日本") == "--n----"
    assert len(slug_for_path("/" + "a" * 300)) < 220


def test_sub_agents_moved_into_a_folder_of_the_session(shared: Path) -> None:
    def folders(version: str) -> set[bool]:
        paths = [path for path, _ in _files(shared, version) if path.name.startswith("agent-")]
        return {path.parent.name == "subagents" for path in paths}

    assert folders("2.0.76") == {False}
    for version in NEW:
        assert folders(version) == {True}


def test_the_tool_for_sub_agents_got_another_name(of: Of) -> None:
    def tools(version: str) -> set[str]:
        calls = (block for each in of((version,), "assistant") for block in blocks(each))
        return {block["name"] for block in calls if block.get("type") == "tool_use"}

    assert "Task" in tools("2.1.42")
    assert "Agent" in tools("2.1.325")
    assert "Task" not in tools("2.1.325")


# Fields


def test_is_meta_is_written_only_where_it_is_true(of: Of) -> None:
    assert not [each for each in of(EVERY, "user") if each.get("isMeta") is False]


def test_the_slug_is_on_some_records_only(of: Of) -> None:
    for version in ("2.0.76", *NEW):
        named = ["slug" in each for each in of((version,), "user")]
        assert any(named)
        assert not all(named)


def test_the_permission_mode_came_with_2_1(of: Of) -> None:
    assert not [each for each in of(OLD, "user") if "permissionMode" in each]
    assert [each for each in of(("2.1.29",), "user") if "permissionMode" in each]


def test_a_result_names_the_answer_of_its_call_from_2_1_on(of: Of) -> None:
    assert not [each for each in of(OLD, "user") if "sourceToolAssistantUUID" in each]
    assert all("sourceToolAssistantUUID" in each for each in results(of(("2.1.42",), "user")))


def test_what_the_client_keeps_of_a_result_has_any_type(of: Of) -> None:
    kinds = {type(each["toolUseResult"]) for each in of(NEW, "user") if "toolUseResult" in each}
    assert kinds == {dict, str, list}


def test_an_error_answer_has_no_request_id(of: Of) -> None:
    assert [each for each in of(EVERY, "assistant") if "requestId" not in each]


def test_thinking_is_signed(of: Of) -> None:
    thoughts = [block for each in of(EVERY, "assistant") for block in blocks(each) if block["type"] == "thinking"]
    assert thoughts
    assert all("signature" in block for block in thoughts)


def test_thinking_metadata_is_on_few_prompts(of: Of) -> None:
    users = of(("2.1.42",), "user")
    assert 0 < sum("thinkingMetadata" in each for each in users) < len(users) / 10


def test_every_line_of_an_answer_has_one_block_and_every_result_a_line(of: Of) -> None:
    assert {len(blocks(each)) for each in of(EVERY, "assistant")} == {1}
    assert {len(blocks(each)) for each in results(of(EVERY, "user"))} == {1}


# Responses and turns


def _stops(of: Of, version: str) -> dict[str, list[str | None]]:
    found: dict[str, list[str | None]] = {}
    for each in of((version,), "assistant"):
        if each.get("requestId"):
            found.setdefault(each["message"]["id"], []).append(each["message"]["stop_reason"])
    return found


def test_the_stop_reason_stands_on_the_last_line_on_none_or_on_all(of: Of) -> None:
    several = [each for each in _stops(of, "2.0.76").values() if len(each) > 1]
    assert any(each[-1] and not any(each[:-1]) for each in several)
    for version in STREAMING:
        assert {stop for each in _stops(of, version).values() for stop in each} == {None}
    assert None not in {stop for each in _stops(of, "2.1.325").values() for stop in each}


def test_the_figures_of_a_response_stand_on_each_of_its_lines(of: Of) -> None:
    usage: dict[str, set[str]] = {}
    for each in of(("2.1.325",), "assistant"):
        message = each["message"]
        usage.setdefault(message["id"], set()).add(json.dumps(message["usage"], sort_keys=True))
    assert {len(each) for each in usage.values()} == {1}


def _with_parallel(shared: Path, version: str) -> list[bool]:
    """Say of each result of parallel calls whether it hangs on the line of its own call."""
    said: list[bool] = []
    for _, records in _files(shared, version):
        calls = {
            block["id"]: each
            for each in records
            if each.get("type") == "assistant"
            for block in blocks(each)
            if block.get("type") == "tool_use"
        }
        mates: dict[str, int] = {}
        for each in calls.values():
            mates[each["message"]["id"]] = mates.get(each["message"]["id"], 0) + 1
        for each in results(list(records)):
            owner = calls.get(blocks(each)[0]["tool_use_id"])
            if each.get("type") == "user" and owner and mates[owner["message"]["id"]] > 1:
                said.append(each["parentUuid"] == owner["uuid"])
    return said


def test_results_of_parallel_calls_are_a_chain_first_and_a_tree_since_2_1(shared: Path) -> None:
    assert False in _with_parallel(shared, "2.0.76")
    assert set(_with_parallel(shared, "2.1.42")) == {True}


def test_the_length_of_a_turn_is_written_in_the_terminal_only(shared: Path) -> None:
    found = {
        any(each.get("entrypoint") == "cli" for each in records)
        for _, records in _files(shared, "2.1.325")
        if any(each.get("subtype") == "turn_duration" for each in records)
    }
    assert found == {True}


def test_a_prompt_may_be_a_list_and_a_text_may_be_no_prompt(of: Of) -> None:
    users = of(EVERY, "user")
    plain = [each for each in users if not each.get("isMeta")]
    assert [each for each in plain if any(b["type"] == "text" for b in blocks(each))]
    texts = [each["message"]["content"] for each in users if isinstance(each["message"]["content"], str)]
    for tag in ("<command-name>", "<local-command-", "<task-notification>", "<bash-input>"):
        assert [text for text in texts if text.startswith(tag)]


# Other records


def test_progress_is_a_link_of_the_chain_and_no_newer_client_writes_it(of: Of) -> None:
    hooks = {each["uuid"] for each in of(("2.1.42",), "progress") if each["data"]["type"] == "hook_progress"}
    every = [*of(("2.1.42",), "user"), *of(("2.1.42",), "assistant")]
    assert [each for each in every if each.get("parentUuid") in hooks]
    assert of((*OLD, "2.1.325"), "progress") == []


def test_a_summary_is_written_as_a_user_record_below_the_boundary(of: Of) -> None:
    for version in EVERY:
        bounds = {each["uuid"] for each in of((version,), "system", "compact_boundary")}
        summaries = [each for each in of((version,), "user") if each.get("isCompactSummary")]
        assert summaries
        assert {each["parentUuid"] for each in summaries} & bounds


def test_a_summary_record_is_a_title_of_old_clients(of: Of) -> None:
    titles = of(OLD, "summary")
    assert titles
    assert {frozenset(each) for each in titles} == {frozenset(("type", "summary", "leafUuid"))}
    assert of(NEW, "summary") == []


def test_a_snapshot_names_backups_by_paths_in_the_folder(of: Of) -> None:
    snapshots = of(EVERY, "file-history-snapshot")
    assert not [each for each in snapshots if "sessionId" in each]
    backups = [pair for each in snapshots for pair in each["snapshot"]["trackedFileBackups"].items()]
    assert backups
    assert all({"backupFileName", "version", "backupTime"} <= set(each) for _, each in backups)
    assert not [name for name, _ in backups if name.startswith("/")]


def test_a_queue_is_filled_taken_from_and_emptied(of: Of) -> None:
    found = {each["operation"] for each in of(EVERY, "queue-operation")}
    assert found == {"enqueue", "dequeue", "remove"}


def test_a_failed_request_is_written_as_api_error(of: Of) -> None:
    assert of(EVERY, "system", "error") == []
    (first, *_) = of(("2.1.325",), "system", "api_error")
    assert {"retryAttempt", "maxRetries", "retryInMs", "error", "level"} <= set(first)


def test_a_slash_command_is_a_user_record_first_and_a_system_record_since(of: Of) -> None:
    assert of((*OLD, *STREAMING), "system", "local_command") == []
    assert of(("2.1.325",), "system", "local_command")


def test_the_smaller_compaction_was_not_seen(of: Of) -> None:
    assert of(EVERY, "system", "microcompact_boundary") == []


# What is sent


def test_a_meta_record_is_sent_and_a_summary_record_is_not() -> None:
    file = Client()
    file.user("Question")
    file.user("Expanded skill", isMeta=True)
    leaf = file.says("Answer.")
    title = {"type": "summary", "summary": "A title", "leafUuid": leaf}
    data = lines([*file.records, title])
    for client in CLIENTS:
        sent = json.dumps(as_resumed(load(BytesSource(data)), client))
        assert "Expanded skill" in sent
        assert "A title" not in sent


def test_lines_of_a_response_belong_together_by_its_message_id() -> None:
    file = Client()
    file.user("Question")
    file.says("Reading.", requestId="req_1")
    file.says(call("toolu_1", "Read", file_path="a"), requestId="req_2")
    file.result("toolu_1", "found")
    sent = as_resumed(load(BytesSource(file.data())), LATEST) or []
    assert [each["role"] for each in sent[:3]] == ["user", "assistant", "user"]


def test_the_documented_compaction_keeps_its_summary_after_repair() -> None:
    file = Client()
    file.user("Old")
    leaf = file.says("Old answer.")
    title = {"type": "summary", "summary": "What was said", "leafUuid": leaf}
    bound = {"subtype": "compact_boundary", "content": "Conversation compacted"}
    file.raw(type="system", **bound, logicalParentUuid=leaf, cwd="/home/ada/work")
    file.records[-1]["parentUuid"] = None
    file.user("New", parentUuid=None)
    data = lines([*file.records[:2], title, *file.records[2:]])
    found = {each.id for each in check(BytesSource(data)).findings}
    assert "compaction.title-form" in found
    turns = Session(load(BytesSource(data))).turns()
    assert [turn.prompt.text for turn in turns if turn.prompt] == ["Old", "New"]


@pytest.mark.parametrize("way", ["summary behind", "answer goes on", "edited prompt"])
def test_the_documented_compaction_may_go_on_in_other_ways(way: str) -> None:
    file = Client()
    file.user("Old")
    leaf = file.says("Old answer.")
    title = {"type": "summary", "summary": "What was said", "leafUuid": leaf}
    bound = {"subtype": "compact_boundary", "content": "Conversation compacted"}
    file.raw(type="system", **bound, logicalParentUuid=leaf, cwd="/home/ada/work")
    file.records[-1]["parentUuid"] = None
    place = 3 if way == "summary behind" else 2
    if way == "answer goes on":
        file.says("More.", parentUuid=None)
    else:
        file.user("New", parentUuid=None)
        file.says("New answer.")
    if way == "edited prompt":
        file.user("New, edited", parentUuid=None)
        file.says("Another answer.")
    data = lines([*file.records[:place], title, *file.records[place:]])
    findings = check(BytesSource(data)).findings
    found = {each.id for each in findings if each.severity == "error"}
    assert found == {"compaction.title-form"}
    # The summary is what stands before an answer: the beginning is not missing.
    assert "chain.headless" not in {each.id for each in findings}
    session = Session(load(BytesSource(data)))
    assert [turn.prompt.text for turn in session.turns()[:1] if turn.prompt] == ["Old"]
    (seam,) = session.compactions
    assert summary_text(session.transcript, seam) == "What was said"


def test_a_session_may_begin_with_what_a_hook_said(of: Of) -> None:
    begun = [each for each in of(("2.1.325",), "attachment") if each["parentUuid"] is None]
    said = {each["attachment"]["type"] for each in begun if not each["isSidechain"]}
    assert said == {"hook_success"}


def test_the_output_of_a_response_is_not_final_in_2_1_29_and_2_1_42(of: Of) -> None:
    def small(versions: tuple[str, ...]) -> float:
        usages = [each["message"].get("usage") or {} for each in of(versions, "assistant")]
        outputs = [usage["output_tokens"] for usage in usages if usage.get("output_tokens")]
        return sum(output == 1 for output in outputs) / len(outputs)

    assert small(STREAMING) > 0.9
    assert small(("2.1.325",)) < 0.1


def test_a_session_is_resumed_by_a_uuid_only() -> None:
    file = Client()
    file.user("Question")
    file.says("Answer.")
    for record in file.records:
        record["sessionId"] = "sess-001"
    found = check(BytesSource(lines(file.records)), name="sess-001")
    assert "ids.file-name" in {each.id for each in found.findings}
    assert {verdict.outcome for verdict in verdicts(found)} == {"not at all"}


def test_a_prompt_with_a_picture_is_a_prompt() -> None:
    file = Client()
    source: Any = {"type": "base64", "media_type": "image/png", "data": "aGk="}
    content = [{"type": "text", "text": "What is this?"}, {"type": "image", "source": source}]
    file.add("user", {"role": "user", "content": content})
    file.says("A picture.")
    (turn,) = Session(load(BytesSource(file.data()))).turns()
    assert turn.prompt is not None
    assert turn.prompt.text == "What is this?"
