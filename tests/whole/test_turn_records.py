"""What stands around the messages: how long turns took, names in words, the place of prompts.

When the client writes these was seen in its sessions (`turn_duration` at a terminal only, not after
an interruption; `slug` from a plan or a compaction on, but not in a fork).
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from tests.whole.house import House
from tests.whole.written import Written

from steno.agent import events
from steno.agent.agent_session import AgentSession
from steno.agent.recorder import plan_slug, session_slug
from steno.errors import Unwritable
from steno.llm.testserver.responders import ErrorReply, tool
from steno.llm.testserver.scripted_responder import ScriptedResponder
from steno.store.append import Appender

WRONG = ErrorReply(status=401, kind="authentication_error", message="no")
WORDS = re.compile(r"[a-z]+-[a-z]+-[a-z]+")


def lines_of(path: Path | str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_bytes().splitlines()]


def durations(records: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [each for each in records if each.get("subtype") == "turn_duration"]


# How long turns took


def test_each_turn_at_a_terminal_ends_with_how_long_it_took(tmp_path: Path) -> None:
    script = ScriptedResponder().on("go", tool("Bash", command="true")).then("Done.")
    house = House(tmp_path, script.otherwise("Yes."))
    house.say("go", "and")
    records = house.records
    first, second = durations(records)
    for each in (first, second):
        place = records.index(each)
        assert records[place - 1]["uuid"] == each["parentUuid"]
        assert records[place - 1]["type"] == "assistant"
        assert records[place + 1]["type"] == "last-prompt"
        assert records[place + 1]["leafUuid"] == each["uuid"]
        assert each["messageCount"] == sum("uuid" in before for before in records[:place])
        assert isinstance(each["durationMs"], int)
        assert each["isMeta"] is False
        assert "pendingBackgroundAgentCount" not in each
    follower = next(each for each in records if each.get("parentUuid") == first["uuid"])
    assert follower["message"]["content"] == "and"
    house.proves()


def test_nobody_reads_durations_behind_a_prompt_without_a_terminal(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Yes."))
    house.headless("go")
    assert durations(house.records) == []
    house.proves()


def test_a_turn_that_was_broken_off_has_no_duration_and_one_that_failed_has(tmp_path: Path) -> None:
    script = ScriptedResponder().on("long", tool("Bash", command="sleep 60")).on("wrong", WRONG)
    house = House(tmp_path, script.otherwise("Yes."))
    house.broken_off("long", lambda event: isinstance(event, events.ToolStarted))
    assert durations(house.records) == []
    house.say("wrong")
    (failed,) = durations(house.records)
    parent = next(each for each in house.records if each.get("uuid") == failed["parentUuid"])
    assert parent["isApiErrorMessage"]


def test_commands_that_ask_the_model_nothing_have_no_duration(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().on("Summarize", "In short.").otherwise("Yes."))

    async def hear(started: AgentSession) -> None:
        for said in ("one", "/usage", "/compact"):
            await started.submit(said)

    house.play(hear)
    assert len(durations(house.records)) == 1


def test_a_turn_that_leaves_sub_agents_at_work_says_how_many(tmp_path: Path) -> None:
    call = tool("Agent", description="d", prompt="wait for it", run_in_background=True)
    script = ScriptedResponder().on("wait for it", tool("Bash", command="sleep 60")).then("Late.")
    house = House(tmp_path, script.on("go", call).then("It runs."))
    house.say("go")
    (record,) = durations(house.records)
    assert record["pendingBackgroundAgentCount"] == 1


def test_the_count_of_messages_goes_on_as_the_client_loads_a_session(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().on("Summarize", "In short.").otherwise("Yes."))
    house.say("one", "two")
    house.resume()
    house.say("three")
    assert [each["messageCount"] for each in durations(house.records)] == [2, 5, 8]
    house.compact()
    house.resume()
    house.say("four")
    records = house.records
    boundary = max(place for place, each in enumerate(records) if _is_boundary(each))
    since = [each for each in records[boundary:] if "uuid" in each]
    assert durations(records)[-1]["messageCount"] == len(since) - 1


def _is_boundary(record: dict[str, Any]) -> bool:
    return record.get("subtype") == "compact_boundary"


def test_a_duration_that_cannot_be_saved_is_told_like_any_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Yes."))
    house.say("one")
    append = Appender.append

    def fails(self: Appender, *lines: bytes) -> None:
        if any(b"turn_duration" in line for line in lines):
            raise Unwritable("no space left on device")
        append(self, *lines)

    monkeypatch.setattr(Appender, "append", fails)
    (ended,) = house.say("two")
    assert ended.reason == "not_saved"
    monkeypatch.undo()
    house.resume()
    house.say("three")
    house.proves()


@pytest.mark.corpus
def test_the_client_counts_every_record_of_the_conversation_so_far(shared: Path) -> None:
    folder = shared / "corpus" / "real-client" / "2.1.325"
    checked = 0
    for path in sorted(folder.glob("tui_*/projects/*/*.jsonl")):
        records = lines_of(path)
        if "sdk-cli" in {each.get("entrypoint") for each in records} or "misc" in str(path):
            continue
        for place, each in enumerate(records):
            if each.get("subtype") == "turn_duration":
                before = [record for record in records[:place] if "uuid" in record]
                assert each["messageCount"] <= len(before)
                checked += each["messageCount"] == len(before)
    assert checked >= 10


# Names in words


def slugs_of(records: list[dict[str, Any]]) -> list[str]:
    return [each.get("slug", "") for each in records if "uuid" in each]


def test_a_session_has_a_name_in_words_from_its_first_compaction_on(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().on("Summarize", "In short.").otherwise("Yes."))
    house.say("one", "two")
    assert set(slugs_of(house.records)) == {""}
    house.compact()
    assert house.work is not None
    slug = session_slug(house.work.id)
    assert WORDS.fullmatch(slug)
    boundary = next(place for place, each in enumerate(house.records) if _is_boundary(each))
    assert set(slugs_of(house.records[boundary:])) == {slug}
    house.resume()
    house.say("three")
    house.compact()
    assert set(slugs_of(house.records[boundary:])) == {slug}
    house.proves()


def test_a_fork_begins_without_a_name_in_words_and_gets_its_own(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().on("Summarize", "In short.").otherwise("Yes."))
    house.say("one")
    house.compact()
    first = house.records[-2].get("slug")
    house.fork()
    house.say("two")
    assert set(slugs_of(house.records)) == {""}
    house.compact()
    assert house.records[-2].get("slug") not in ("", None, first)
    house.proves()


def test_a_session_that_begins_with_a_plan_is_named_by_its_prompt(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("A plan."))
    house.say("Think: move the tests, then the rest", mode="plan")
    assert house.work is not None
    slug = plan_slug(house.work.id, "Think: move the tests, then the rest")
    assert slug.startswith("think-move-the-tests-")
    assert set(slugs_of(house.records)) == {slug}
    house.resume()
    house.say("and on", mode="default")
    assert set(slugs_of(house.records)) == {slug}
    house.proves()


def test_the_plan_file_has_the_name_of_the_session(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("A plan."))

    async def plan(started: AgentSession) -> str:
        await started.agent.run_turn("Move the tests")
        return str(started.agent.executor.context.plan.file)

    path = house.play(plan, mode="plan")
    assert Path(path).parent == house.config / "plans"
    assert Path(path).stem == house.records[0]["slug"]
    house.resume()
    assert house.play(plan) == path


def test_sub_agents_carry_the_name_of_their_session(tmp_path: Path) -> None:
    script = ScriptedResponder().on("Summarize", "In short.").on("task", "Done.")
    script.on("go", tool("Agent", description="d", prompt="task")).then("It is done.")
    house = House(tmp_path, script.otherwise("Yes."))
    house.say("one")
    house.compact()
    house.say("go")
    assert house.work is not None
    (agent,) = house.agents
    assert set(slugs_of(lines_of(agent))) == {session_slug(house.work.id)}


@pytest.mark.parametrize("prompt", ["", "???", "日本語", "x" * 300, "\n\n", "../../etc/passwd a b c"])
def test_a_name_in_words_is_always_a_plain_file_name(prompt: str) -> None:
    slug = plan_slug("aaaaaaaa-0000-4000-8000-000000000001", prompt)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", slug)
    assert len(slug) < 80


@pytest.mark.parametrize("slug", ["../../x", "a/b", "a\x1b[31m", "", "-", "a" * 300, ".."])
def test_a_session_with_a_hostile_name_in_words_gets_a_plain_one(tmp_path: Path, slug: str) -> None:
    house = House(tmp_path, ScriptedResponder().otherwise("Yes."))
    house.say("one", mode="plan")
    assert house.work is not None
    house.work.conversation.recorder.close()
    path = Path(house.path)
    old = house.records[0]["slug"]
    path.write_bytes(path.read_bytes().replace(json.dumps(old).encode(), json.dumps(slug).encode()))

    async def plan(started: AgentSession) -> str:
        await started.agent.run_turn("and on")
        return str(started.agent.executor.context.plan.file)

    house.resume()
    written = Path(house.play(plan, mode="plan"))
    assert written.parent == house.config / "plans"
    assert re.fullmatch(r"[a-z0-9-]+", written.stem)
    assert house.records[-2]["slug"] == written.stem


@pytest.mark.corpus
def test_names_in_words_of_the_client_have_the_same_form(shared: Path) -> None:
    folder = shared / "corpus" / "real-client" / "2.1.325"
    found: dict[str, set[str]] = {}
    for path in folder.glob("*/projects/*/*.jsonl"):
        slugs = slugs_of(lines_of(path))
        named = [slug for slug in slugs if slug]
        if named:
            # From the first on, every record has it.
            assert len(set(named)) == 1
            assert slugs[slugs.index(named[0]) :] == named
            found.setdefault(path.parts[-4], set()).update(named)
    assert {"autocompact", "compact", "hooks", "tui_plan"} <= set(found)
    plan = found.pop("tui_plan")
    assert all(WORDS.fullmatch(slug) for slugs in found.values() for slug in slugs)
    assert all(slug.startswith("scn-plan-go-") for slug in plan)


def test_a_plan_that_is_begun_in_the_middle_names_the_session(tmp_path: Path) -> None:
    script = ScriptedResponder().on("go", tool("EnterPlanMode")).then(tool("Read", file_path="a")).then("So.")
    house = House(tmp_path, script, mode="default")
    house.file("a", "a")

    async def agrees(_kind: str, _what: dict[str, Any]) -> dict[str, Any]:
        return {"approved": True}

    house.ask = agrees
    house.say("go")
    slugs = slugs_of(house.records)
    assert house.work is not None
    assert slugs[0] == ""
    assert slugs[-1] == session_slug(house.work.id)


# The place of prompts, and the way in


def test_prompts_say_where_in_the_session_they_stand_and_who_gave_them(written: Written) -> None:
    prompts = [each for each in lines_of(written.console) if "turnPosition" in each]
    typed = [each for each in prompts if not each.get("isCompactSummary")]
    places = [each["turnPosition"] for each in typed]
    # The last one took the place of one that was taken back.
    assert [each["turnIndex"] for each in places] == [1, 2, 3, 4, 5, 5]
    assert all(each["promptIndex"] == each["turnIndex"] for each in places)
    assert {each["promptSource"] for each in typed} == {"typed"}
    assert {each["permissionMode"] for each in typed} == {"bypassPermissions"}
    given = [each for each in lines_of(written.headless) if "turnPosition" in each]
    assert [each["turnPosition"] for each in given] == [
        {"promptIndex": 0, "turnIndex": 1},
        {"promptIndex": 0, "turnIndex": 2},
    ]
    assert {each["promptSource"] for each in given} == {"sdk"}


def test_records_say_by_which_way_the_session_was_worked_on(written: Written) -> None:
    ways = {
        path: {each.get("entrypoint") for each in lines_of(path) if "uuid" in each}
        for path in (written.console, written.headless)
    }
    assert ways == {written.console: {"cli"}, written.headless: {"sdk-cli"}}


def test_a_call_that_was_cut_off_is_answered_by_the_way_that_goes_on(tmp_path: Path) -> None:
    house = House(tmp_path, ScriptedResponder().on("go", tool("Bash", command="true")).then("Done."))
    house.say("go")
    path = Path(house.path)
    lines = path.read_bytes().splitlines(keepends=True)
    call = next(place for place, line in enumerate(lines) if b'"tool_use"' in line)
    assert house.work is not None
    house.work.conversation.recorder.close()
    path.write_bytes(b"".join(lines[: call + 1]))
    house.resume()
    house.headless("go on")
    answer = next(each for each in house.records if "toolUseResult" in each)
    assert answer["entrypoint"] == "sdk-cli"
