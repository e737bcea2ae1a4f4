"""The builder writes each generation as the real client does: chain, habits, places."""

import json
import re
from functools import cache
from typing import Any

import pytest
from tests.builders import VERSIONS, ZERO, Json, Session, answer, png, session, text, thinking, tool
from tests.builders.everything import everything

from steno.errors import BadRequest

TREE = [version for version in VERSIONS if version not in {"1.0.128", "2.0.76"}]
WITH_REMINDERS = ["2.1.200", "2.1.325"]
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")


@cache
def built(version: str) -> list[Session]:
    """Return one set of sessions for all tests that only look."""
    return everything(version)


def chain(made: Session) -> list[Json]:
    return [record for record in made.records() if "uuid" in record]


def parents(made: Session) -> dict[str, str | None]:
    return {record["uuid"]: record["parentUuid"] for record in chain(made)}


def of_type(made: Session, kind: str) -> list[Json]:
    return [record for record in made.records() if record["type"] == kind]


def attached(made: Session, kind: str) -> Json:
    found = [a for a in of_type(made, "attachment") if a["attachment"]["type"] == kind]
    return found[0]


def three_calls(version: str) -> Session:
    calls = (tool("Read", file_path="/a"), tool("Bash", command="b"), tool("Grep", pattern="c"))
    return session(version).user("All at once.").assistant("Three.", *calls)


# Determinism and form


@pytest.mark.parametrize("version", VERSIONS)
def test_the_same_calls_give_the_same_bytes(version: str) -> None:
    again = [made.files() for made in everything(version)]
    assert [made.files() for made in built(version)] == again


def test_another_seed_gives_other_names_and_the_same_words() -> None:
    one, two = (session(seed=seed).turn("Hello.", "Hello.") for seed in (1, 2))
    assert one.session_id != two.session_id
    assert set(one.uuids()).isdisjoint(two.uuids())
    assert chain(one)[0]["message"]["content"] == chain(two)[0]["message"]["content"]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_line_is_json_and_encodes_to_the_same_bytes_again(version: str) -> None:
    for made in built(version):
        for name, data in made.files().items():
            if not name.endswith(".jsonl"):
                continue
            for line in data.removesuffix(b"\n").split(b"\n"):
                again = json.dumps(json.loads(line), ensure_ascii=False, separators=(",", ":"))
                assert again.encode() == line


@pytest.mark.parametrize("version", VERSIONS)
def test_uuids_are_unique_in_a_file_and_of_version_4(version: str) -> None:
    for made in built(version):
        names = made.uuids()
        assert len(set(names)) == len(names)
        assert all(_UUID.fullmatch(name) for name in (*names, made.session_id))


@pytest.mark.parametrize("version", VERSIONS)
def test_time_never_runs_back(version: str) -> None:
    for made in built(version):
        stamps = [record["timestamp"] for record in chain(made)]
        assert stamps == sorted(stamps)


@pytest.mark.parametrize("version", VERSIONS)
def test_every_parent_is_in_the_file(version: str) -> None:
    for made in built(version):
        known = parents(made)
        assert all(parent is None or parent in known for parent in known.values())


def test_a_version_in_between_writes_like_the_generation_before_it() -> None:
    made = session("2.1.237").turn("Hello.", "Hello.")
    assert {record["version"] for record in chain(made)} == {"2.1.237"}
    assert "requestRef" not in of_type(made, "assistant")[0]
    assert "promptId" in of_type(made, "user")[0]


# The chain, rule by rule


@pytest.mark.parametrize("version", VERSIONS)
def test_records_of_the_chain_have_a_uuid_and_the_others_have_none(version: str) -> None:
    linked = {"user", "assistant", "system", "attachment", "progress"}
    for made in built(version):
        for record in made.records():
            assert ("uuid" in record) == (record["type"] in linked)
            assert ("parentUuid" in record) == (record["type"] in linked)


@pytest.mark.parametrize(
    ("version", "root"), [("2.1.29", "progress"), ("2.1.42", "progress"), ("2.1.325", "attachment")]
)
def test_a_start_hook_is_the_root_and_the_prompt_hangs_on_it(version: str, root: str) -> None:
    made = session(version).hook("SessionStart", "./start.sh", said="hi").user("Hello.")
    first, second = chain(made)
    assert (first["type"], first["parentUuid"]) == (root, None)
    assert second["parentUuid"] == first["uuid"]


def test_reminders_stand_between_the_first_prompt_and_the_answer() -> None:
    made = session(full=True).turn("Hello.", "Hello.")
    records = chain(made)
    answer_at = next(i for i, r in enumerate(records) if r["type"] == "assistant")
    between = records[1:answer_at]
    assert {record["type"] for record in between} == {"attachment"}
    assert 8 <= len(between) <= 10
    assert records[answer_at]["parentUuid"] == between[-1]["uuid"]
    links = [record["parentUuid"] for record in records[1:]]
    assert links == [record["uuid"] for record in records[:-1]]


@pytest.mark.parametrize("version", VERSIONS)
def test_a_response_is_a_line_a_block_under_one_message_id(version: str) -> None:
    made = session(version).user("Think.").assistant(thinking("Hm."), "So.", tool("Glob"))
    lines = of_type(made, "assistant")
    assert [len(line["message"]["content"]) for line in lines] == [1, 1, 1]
    assert len({line["message"]["id"] for line in lines}) == 1
    assert len({line["requestId"] for line in lines}) == 1
    assert [line["parentUuid"] for line in lines[1:]] == [line["uuid"] for line in lines[:-1]]
    if version == "2.1.325":
        assert [line["apiBlockIndex"] for line in lines] == [0, 1, 2]


@pytest.mark.parametrize(
    ("version", "stops"),
    [
        ("1.0.128", [None, "tool_use"]),
        ("2.0.76", [None, "tool_use"]),
        ("2.1.29", [None, None]),
        ("2.1.42", [None, None]),
        ("2.1.200", ["tool_use", "tool_use"]),
        ("2.1.325", ["tool_use", "tool_use"]),
    ],
)
def test_stop_reason_and_usage_are_true_only_where_they_were(version: str, stops: list[str | None]) -> None:
    made = session(version).user("Go.").assistant("Going.", tool("Glob"), output=77)
    said = [line["message"] for line in of_type(made, "assistant")]
    assert [each["stop_reason"] for each in said] == stops
    assert [each["usage"]["output_tokens"] for each in said] == [77 if stop else 1 for stop in stops]


@pytest.mark.parametrize("version", ["1.0.128", "2.0.76"])
def test_old_clients_chain_parallel_results_one_after_the_other(version: str) -> None:
    made = three_calls(version).results("a", "b", "c").assistant("Done.")
    links = [record["parentUuid"] for record in chain(made)]
    assert links == [None, *(record["uuid"] for record in chain(made)[:-1])]
    assert all("sourceToolAssistantUUID" not in record for record in chain(made))


@pytest.mark.parametrize("version", TREE)
def test_new_clients_hang_each_result_on_its_own_call(version: str) -> None:
    made = three_calls(version).result("a").result("c", of=2).result("b", of=1).assistant("Done.")
    lines = {line["message"]["content"][0].get("id"): line for line in of_type(made, "assistant")}
    results = [r for r in of_type(made, "user") if "sourceToolAssistantUUID" in r]
    for result in results:
        call = lines[result["message"]["content"][0]["tool_use_id"]]
        assert result["parentUuid"] == result["sourceToolAssistantUUID"] == call["uuid"]
    assert of_type(made, "assistant")[-1]["parentUuid"] == results[-1]["uuid"]


def test_the_newest_client_writes_results_between_the_calls_of_one_response() -> None:
    calls = [tool("Read", file_path="/a"), tool("Bash", command="b"), tool("Grep", pattern="c")]
    made = session().user("Quick.")
    made.assistant(calls[0], answer("a"), calls[1], calls[2], answer("c", of=2), answer("b", of=1))
    use1, result1, use2, use3, result3, result2 = chain(made)[1:]
    assert result1["parentUuid"] == use1["uuid"]
    assert use2["parentUuid"] == result1["uuid"]
    assert use3["parentUuid"] == use2["uuid"]
    assert result3["parentUuid"] == use3["uuid"]
    assert result2["parentUuid"] == use2["uuid"]
    made.assistant("Done.")
    assert chain(made)[-1]["parentUuid"] == result2["uuid"]
    assert len({use["message"]["id"] for use in (use1, use2, use3)}) == 1


@pytest.mark.parametrize("version", WITH_REMINDERS)
def test_hooks_before_a_tool_lead_nowhere_and_those_after_it_go_on(version: str) -> None:
    made = session(version).user("Read.").assistant(tool("Read", file_path="/a"))
    made.hook("PreToolUse", "./pre.sh", tool="Read").result("x")
    made.hook("PostToolUse", "./post.sh", tool="Read").assistant("Read.")
    made.hook("Stop", "./stop.sh").stop_hook_summary("./stop.sh").user("Next.")
    _, call, pre, result, post, said, stop, summary, prompt = chain(made)
    assert pre["parentUuid"] == result["parentUuid"] == call["uuid"]
    assert post["parentUuid"] == result["uuid"]
    assert said["parentUuid"] == post["uuid"]
    assert [stop["parentUuid"], summary["parentUuid"]] == [said["uuid"], stop["uuid"]]
    assert prompt["parentUuid"] == summary["uuid"]


@pytest.mark.parametrize("version", ["2.1.29", "2.1.42"])
def test_progress_of_hooks_is_a_link_and_progress_of_commands_a_side_branch(version: str) -> None:
    made = session(version).user("Run.").assistant(tool("Bash", command="make"))
    made.bash_progress("one", "two").result("done").hook("PostToolUse", "callback", tool="Bash")
    made.assistant("Built.")
    _, call, first, second, result, hook, said = chain(made)
    assert [first["parentUuid"], second["parentUuid"]] == [call["uuid"], first["uuid"]]
    assert result["parentUuid"] == call["uuid"]
    assert [hook["parentUuid"], said["parentUuid"]] == [result["uuid"], hook["uuid"]]


def test_the_next_prompt_hangs_on_the_turns_duration() -> None:
    made = session(full=True).turn("One.", "First.").user("Two.")
    durations = [r for r in of_type(made, "system") if r["subtype"] == "turn_duration"]
    prompts = of_type(made, "user")
    assert prompts[1]["parentUuid"] == durations[0]["uuid"]


def test_retries_are_links_between_prompt_and_answer() -> None:
    made = session().user("Go.").api_error(529, "Overloaded").api_error(500, "Broken", 2)
    made.assistant("Went.")
    links = [record["parentUuid"] for record in chain(made)]
    assert links == [None, *(record["uuid"] for record in chain(made)[:-1])]
    assert [r["retryAttempt"] for r in of_type(made, "system")] == [1, 2]


@pytest.mark.parametrize("version", VERSIONS)
def test_compaction_starts_a_new_root_that_remembers_the_old_leaf(version: str) -> None:
    made = session(version).turn("Much.", "Done.").compact("It was much.").user("More.")
    _, old, boundary, summary, prompt = chain(made)
    assert (boundary["parentUuid"], boundary["logicalParentUuid"]) == (None, old["uuid"])
    assert summary["parentUuid"] == boundary["uuid"]
    assert summary["isCompactSummary"]
    assert summary["isVisibleInTranscriptOnly"]
    assert prompt["parentUuid"] == summary["uuid"]
    assert of_type(made, "summary") == []


def test_compaction_can_keep_the_last_records() -> None:
    made = session().turn("Much.", "Done.").compact("It was much.", keep=2)
    boundary, summary = chain(made)[-2:]
    kept = boundary["compactMetadata"]["preservedMessages"]
    assert kept == {"anchorUuid": summary["uuid"], "uuids": made.uuids()[:2], "allUuids": made.uuids()[:2]}
    assert boundary["compactMetadata"]["preservedSegment"]["tailUuid"] == made.uuids()[1]


def test_resuming_goes_on_in_the_same_file_with_a_newer_client() -> None:
    made = session("2.1.42").turn("One.", "First.").resume("2.1.325").turn("Two.", "Second.")
    assert [record["version"] for record in chain(made)] == ["2.1.42"] * 2 + ["2.1.325"] * 2
    assert chain(made)[2]["parentUuid"] == chain(made)[1]["uuid"]
    assert len({record["sessionId"] for record in chain(made)}) == 1


def test_a_fork_copies_uuids_parents_and_times_under_a_new_session() -> None:
    made = session().turn("One.", "First.")
    fork = made.fork()
    for old, new in zip(chain(made), chain(fork), strict=True):
        assert {**old, "sessionId": fork.session_id} == new
    fork.user("Two.")
    assert chain(fork)[-1]["parentUuid"] == made.uuids()[-1]
    assert len(chain(made)) == 2
    traced = chain(made.fork("b", traced=True))[0]
    assert traced["forkedFrom"] == {"sessionId": made.session_id, "messageUuid": traced["uuid"]}


@pytest.mark.parametrize("version", VERSIONS)
def test_rewinding_branches_off_before_the_prompt(version: str) -> None:
    made = session(version).turn("One.", "First.").turn("Two.", "Second.")
    made.rewind(1).user("Two, better.")
    prompts = of_type(made, "user")
    assert prompts[2]["parentUuid"] == prompts[1]["parentUuid"] == made.uuids()[1]
    resets = of_type(made, "last-prompt")
    if version == "2.1.325":
        assert [(r["leafUuid"], r["explicit"]) for r in resets] == [(ZERO, True)]
    else:
        assert resets == []


def test_rewinding_finds_marks_and_uuids() -> None:
    made = session().turn("One.", "First.").mark("here").turn("Two.", "Second.")
    made.rewind("here").user("Three.").rewind(made.uuids()[0]).user("Four.")
    three, four = of_type(made, "user")[-2:]
    assert [three["parentUuid"], four["parentUuid"]] == [made.uuids()[1], made.uuids()[0]]


def test_clearing_begins_a_new_file_that_names_the_old_session() -> None:
    made = session().turn("One.", "First.")
    fresh = made.clear()
    assert fresh.session_id != made.session_id
    assert chain(fresh)[0]["parentUuid"] is None
    assert "<command-name>/clear" in str(chain(fresh)[1]["message"]["content"])
    fresh.user("Two.").assistant("Second.")
    assert chain(fresh)[-1]["session_id"] == made.session_id


@pytest.mark.parametrize("version", ["2.0.76", "2.1.42"])
def test_a_prompt_absorbed_by_an_old_client_leaves_only_the_queue(version: str) -> None:
    made = session(version).user("Go.").assistant(tool("Bash", command="sleep"))
    made.enqueue("Faster.").result("slept").absorb().assistant("Done.")
    queue = of_type(made, "queue-operation")
    assert [(q["operation"], q.get("content")) for q in queue] == [("enqueue", "Faster."), ("remove", None)]
    assert "Faster." not in json.dumps(chain(made))


def test_a_prompt_absorbed_by_the_newest_client_is_an_attachment() -> None:
    made = session().user("Go.").assistant(tool("Bash", command="sleep"))
    made.enqueue("Faster.").result("slept").absorb().assistant("Done.")
    queued = attached(made, "queued_command")
    removed = of_type(made, "queue-operation")[1]
    assert queued["attachment"]["prompt"] == "Faster."
    assert queued["attachment"]["humanTurn"]
    assert removed["reason"] == "absorbed_mid_turn"
    assert removed["deliveryId"] == queued["attachment"]["delivery_id"]
    assert chain(made)[-1]["parentUuid"] == queued["uuid"]


@pytest.mark.parametrize("version", ["2.0.76", "2.1.42", "2.1.325"])
def test_a_prompt_that_waited_is_an_ordinary_prompt(version: str) -> None:
    made = session(version).user("Go.").enqueue("And then?").assistant("Gone.").dequeue()
    operations = [q["operation"] for q in of_type(made, "queue-operation")]
    assert operations == ["enqueue", "dequeue"]
    assert of_type(made, "user")[-1]["message"]["content"] == "And then?"
    assert [entry["display"] for entry in made.history] == ["Go.", "And then?"]


# Sub-agents


def delegated(version: str, *, background: bool = False) -> Session:
    made = session(version)
    call = tool(made.gen.agent_tool, description="Look", prompt="Look.", subagent_type="Explore")
    made.user("Delegate.").assistant(call)

    def work(agent: Session) -> None:
        agent.assistant(tool("Glob", pattern="*")).result("a.py").assistant("One file.")

    return made.agent(work, background=background)


def test_the_first_client_writes_sub_agents_inline_and_apart_from_the_chain() -> None:
    made = delegated("1.0.128").assistant("Thanks.")
    side = [record for record in chain(made) if record["isSidechain"]]
    assert side[0]["parentUuid"] is None
    assert all("agentId" not in record for record in side)
    call, result = chain(made)[1], chain(made)[-2]
    assert result["parentUuid"] == call["uuid"]
    assert list(made.files()) == [made.file]


@pytest.mark.parametrize("version", [v for v in VERSIONS if v != "1.0.128"])
def test_later_clients_give_sub_agents_a_file_of_their_own(version: str) -> None:
    made = delegated(version)
    (transcript,) = made.transcripts
    assert not any(record["isSidechain"] for record in chain(made))
    records = [record for record in transcript.records if "uuid" in record]
    assert records[0]["parentUuid"] is None
    assert {record["agentId"] for record in records} == {transcript.agent_id}
    assert {record["sessionId"] for record in records} == {made.session_id}
    assert all(record["isSidechain"] for record in records)
    detail = of_type(made, "user")[-1]["toolUseResult"]
    assert detail["agentId"] == transcript.agent_id
    assert detail["content"] == [text("One file.")]
    assert detail["totalToolUseCount"] == 1


@pytest.mark.parametrize(
    ("version", "pattern"),
    [
        ("2.0.76", r"projects/[^/]+/agent-[0-9a-f]{7}\.jsonl"),
        ("2.1.29", r"projects/[^/]+/SID/subagents/agent-[0-9a-f]{7}\.jsonl"),
        ("2.1.42", r"projects/[^/]+/SID/subagents/agent-[0-9a-f]{7}\.jsonl"),
        ("2.1.200", r"projects/[^/]+/SID/subagents/agent-[0-9a-f]{17}\.jsonl"),
        ("2.1.325", r"projects/[^/]+/SID/subagents/agent-a[0-9a-f]{16}\.jsonl"),
    ],
)
def test_sub_agents_lie_where_their_generation_puts_them(version: str, pattern: str) -> None:
    made = delegated(version)
    names = [name for name in made.files() if "agent-" in name and name.endswith(".jsonl")]
    assert [bool(re.fullmatch(pattern.replace("SID", made.session_id), n)) for n in names] == [True]
    metas = [name for name in made.files() if name.endswith(".meta.json")]
    assert len(metas) == (1 if version in WITH_REMINDERS else 0)


def test_a_sub_agent_in_the_background_answers_at_once_and_reports_later() -> None:
    made = delegated("2.1.325", background=True).assistant("Waiting.").notify().assistant("Good.")
    launched = of_type(made, "user")[1]["toolUseResult"]
    assert (launched["isAsync"], launched["status"]) == (True, "async_launched")
    report = of_type(made, "user")[2]
    assert "<task-notification>" in report["message"]["content"]
    assert launched["agentId"] in report["message"]["content"]
    assert report["origin"]["kind"] == "task-notification"
    assert report["turnOrigin"] == "task_notification"
    assert len(made.prompts) == 1


def test_a_report_inside_a_turn_is_an_attachment() -> None:
    made = delegated("2.1.325", background=True).assistant(tool("Bash", command="sleep"))
    made.result("slept").notify(absorbed=True)
    assert attached(made, "queued_command")["attachment"]["commandMode"] == "task-notification"


def test_a_sub_agent_may_have_sub_agents() -> None:
    call = tool("Agent", description="Deeper", prompt="Look.", subagent_type="Explore")

    def deep(agent: Session) -> None:
        agent.assistant(call).agent(lambda inner: inner.assistant("Bottom.")).assistant("Middle.")

    made = session().user("Down.").assistant(call).agent(deep).assistant("Top.")
    inner, outer = made.transcripts
    assert [inner.meta and inner.meta["spawnDepth"], outer.meta and outer.meta["spawnDepth"]] == [2, 1]


# The rest of what a client writes


def test_a_trivial_session_of_each_generation_is_as_long_as_the_real_one() -> None:
    lengths = {
        version: len(session(version, full=True, entrypoint="sdk-cli").turn("Hello.", "Hello.").records())
        for version in VERSIONS
    }
    assert lengths == {"1.0.128": 2, "2.0.76": 3, "2.1.29": 3, "2.1.42": 3, "2.1.200": 7, "2.1.325": 21}


def test_edits_know_the_file_they_changed() -> None:
    made = session().have("a.py", "one\ntwo\nthree\n").user("Change it.")
    path = made.path("a.py")
    made.assistant(tool("Edit", file_path=path, old_string="two", new_string="2")).result()
    made.assistant(tool("Read", file_path=path)).result()
    edit, read = (r["toolUseResult"] for r in of_type(made, "user")[1:])
    assert edit["originalFile"] == "one\ntwo\nthree\n"
    assert edit["structuredPatch"] == [
        {"oldStart": 1, "oldLines": 3, "newStart": 1, "newLines": 3, "lines": [" one", "-two", "+2", " three"]}
    ]
    assert read["file"]["content"] == "one\n2\nthree\n"


@pytest.mark.parametrize("version", ["2.0.76", "2.1.42", "2.1.325"])
def test_the_terminal_client_backs_files_up_before_it_changes_them(version: str) -> None:
    made = session(version, full=True).have("a.py", "before\n").user("Change it.")
    call = tool("Edit", file_path=made.path("a.py"), old_string="before", new_string="after")
    made.assistant(call).result().assistant("Changed.").user("Fine.")
    backups = {n: d for n, d in made.files().items() if n.startswith("file-history/")}
    assert sorted(backups.values()) == [b"after\n", b"before\n"]
    kinds = {record["type"] for record in made.records()}
    assert ("file-history-delta" in kinds) == (version == "2.1.325")


def test_an_interruption_while_a_tool_runs_answers_the_call_as_well() -> None:
    made = session().user("Go.").assistant(tool("Bash", command="sleep")).interrupt()
    result, word = of_type(made, "user")[1:]
    assert result["message"]["content"][0]["is_error"]
    assert word["message"]["content"] == [text("[Request interrupted by user for tool use]")]
    quick = session().user("Go.").interrupt()
    assert of_type(quick, "user")[1]["message"]["content"] == [text("[Request interrupted by user]")]


def test_an_output_too_large_for_the_session_lies_beside_it() -> None:
    made = session().user("Go.").assistant(tool("Bash", command="yes")).saved("y\n" * 900)
    result = of_type(made, "user")[1]
    path = result["toolUseResult"]["persistedOutputPath"].removeprefix("/home/ada/.claude/")
    assert made.files()[path] == b"y\n" * 900
    assert result["message"]["content"][0]["content"].startswith("<persisted-output>")


def test_unknown_records_are_links_or_dead_ends_as_wished() -> None:
    made = session().user("Go.").record("future-kind", depth=3).record("other", move=False)
    made.assistant("Went.").side({"type": "future-note"})
    prompt, link, dead, said = chain(made)
    assert [link["parentUuid"], dead["parentUuid"]] == [prompt["uuid"], link["uuid"]]
    assert said["parentUuid"] == link["uuid"]
    assert made.records()[-1] == {"type": "future-note"}


def test_a_built_png_is_a_valid_png() -> None:
    data = png([[(255, 0, 0), (0, 255, 0)], [(0, 0, 255), (9, 9, 9)]])
    assert data.startswith(b"\x89PNG\r\n\x1a\n")
    assert data[16:24] == bytes([0, 0, 0, 2, 0, 0, 0, 2])


# Dialects


def test_spec_000_says_everything_in_flat_fields() -> None:
    made = session(dialect="spec-000").user("Write.").assistant("Sure.", tool("Write", a=1))
    made.result("written").assistant(tool("Read", b=2)).result("no such file", error=True)
    rows: list[tuple[Any, ...]] = [
        (r["type"], r.get("subtype"), r.get("message"), r.get("toolName")) for r in made.records()
    ]
    assert rows == [
        ("user", None, "Write.", None),
        ("assistant", "response", "Sure.", None),
        ("assistant", "tool_use", None, "Write"),
        ("system", "tool_result", "written", None),
        ("assistant", "tool_use", None, "Read"),
        ("system", "error", "no such file", None),
    ]
    assert [r.get("parentUuid") for r in made.records()][:3] == [None, "msg-001", "msg-002"]


def test_spec_004_says_human_and_keeps_a_response_in_one_line() -> None:
    made = session(dialect="spec-004").user("Write.").assistant("Sure.", tool("Write", a=1))
    made.result("written").assistant("Done.")
    records = made.records()
    assert [r["type"] for r in records] == ["human", "assistant", "tool_result", "assistant"]
    assert [b["type"] for b in records[1]["message"]["content"]] == ["text", "tool_use"]
    assert all(isinstance(r["timestamp"], int) for r in records)
    assert [r["parentUuid"] for r in records[1:]] == [r["uuid"] for r in records[:-1]]
    assert made.file.startswith("conversations/_home_ada_tidegauge/")


def test_an_unknown_dialect_is_refused() -> None:
    with pytest.raises(BadRequest, match="spec-009"):
        session(dialect="spec-009")


# Requests and small records


def test_requests_are_delta_coded_and_named_by_the_lines_they_gave() -> None:
    made = session(full=True).turn("One.", "First.").turn("Two.", "Second.")
    first, second = of_type(made, "api-request")
    assert "base" not in first
    assert (second["base"], second["keep"]) == (first["id"], len(first["tail"]))
    blobs = [blob["hash"] for blob in of_type(made, "api-request-blob")]
    assert first["tail"] == blobs
    (shape,) = of_type(made, "api-request-shape")
    assert {first["shapeHash"], second["shapeHash"]} == {shape["shapeHash"]}
    assert [line["requestRef"] for line in of_type(made, "assistant")] == [first["id"], second["id"]]


def test_the_bill_counts_each_response_once() -> None:
    made = session(full=True).user("Go.").assistant("One.", "Two.", output=40).exit()
    (bill,) = of_type(made, "cost-state")
    assert bill["modelUsage"][made.model]["outputTokens"] == 40
    assert bill["totalCostUSD"] == bill["modelUsage"][made.model]["costUSD"]


def test_a_microcompaction_is_a_link_that_names_the_calls_left_out() -> None:
    made = session("2.1.29").user("Go.").assistant(tool("Glob")).result("a").microcompact()
    made.assistant("Went.")
    *_, result, boundary, said = chain(made)
    assert [boundary["parentUuid"], said["parentUuid"]] == [result["uuid"], boundary["uuid"]]
    named = boundary["microcompactMetadata"]["compactedToolIds"]
    assert named == [result["message"]["content"][0]["tool_use_id"]]


def test_titles_stand_in_each_generations_own_record() -> None:
    old = session("2.0.76").turn("Hello.", "Hello.").title("A name")
    new = session().turn("Hello.", "Hello.").rename("A name")
    assert old.records()[-1] == {"type": "custom-title", "customTitle": "A name", "sessionId": old.session_id}
    assert {r["type"] for r in new.records()} >= {"custom-title", "agent-name"}
    folder = new.file.removesuffix(".jsonl")
    assert new.files()[f"{folder}/custom-title.json"] == b'{"customTitle":"A name"}'
