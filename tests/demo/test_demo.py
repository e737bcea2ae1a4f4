"""The demo shows what it promises, is the same on every run, and harms nothing on disk."""

import json
import os
import re
import stat
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tests.builders import Json, Session
from tests.builders.generations import generation
from tests.builders.stories import common, stories

from steno.demo.recording import MARKER, read_recording, write_demo
from steno.errors import BadRequest


@cache
def told() -> list[Session]:
    return stories()


@cache
def all_records() -> list[Json]:
    own = [record for made in told() for record in made.records()]
    return own + [r for made in told() for each in made.transcripts for r in each.records]


def blocks(kind: str) -> list[Json]:
    found: list[Json] = []
    for record in all_records():
        content = record.get("message", {}).get("content")
        found += [b for b in content if b["type"] == kind] if isinstance(content, list) else []
    return found


def subtypes() -> set[str]:
    return {str(record["subtype"]) for record in all_records() if "subtype" in record}


def attachments() -> set[str]:
    return {r["attachment"]["type"] for r in all_records() if r["type"] == "attachment"}


def contents(folder: Path) -> dict[str, bytes]:
    found = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.read_bytes() for path in found}


def test_the_demo_has_a_believable_number_of_sessions_in_several_projects() -> None:
    assert 14 <= len(told()) <= 19
    assert len({made.cwd for made in told()}) == 4
    assert len({made.session_id for made in told()}) == len(told())


def test_all_generations_of_the_format_are_there() -> None:
    versions = {record["version"] for record in all_records() if "version" in record}
    expected = {"1.0.128", "2.0.76", "2.1.29", "2.1.42", "2.1.200", "2.1.325"}
    assert {generation(version).version for version in versions} == expected


def test_all_times_lie_in_the_two_weeks_of_the_demo() -> None:
    stamps = [record["timestamp"] for record in all_records() if "timestamp" in record]
    assert min(stamps) >= "2026-11-02"
    assert max(stamps) < "2026-11-15"


def test_the_kinds_of_content_are_there() -> None:
    assert blocks("thinking")
    assert blocks("redacted_thinking")
    assert blocks("image")
    references = [b for block in blocks("tool_result") for b in _inner(block)]
    assert "tool_reference" in {b["type"] for b in references}
    patches = [
        record["toolUseResult"]["structuredPatch"]
        for record in all_records()
        if isinstance(record.get("toolUseResult"), dict) and record["toolUseResult"].get("structuredPatch")
    ]
    assert len(patches) > 10
    names = {block["name"] for block in blocks("tool_use")}
    wanted = {"Agent", "AskUserQuestion", "Bash", "Edit", "ExitPlanMode", "Glob", "Grep", "Read"}
    wanted |= {"Task", "TaskCreate", "TaskUpdate", "TodoWrite", "ToolSearch", "WebSearch", "Write"}
    assert names >= wanted


def _inner(block: Json) -> list[Json]:
    return block["content"] if isinstance(block["content"], list) else []


def test_failures_and_passes_of_tests_are_there() -> None:
    said = json.dumps(all_records())
    assert re.search(r"\d+ failed, \d+ passed", said)
    assert re.search(r"\b\d+ passed in", said)


def test_what_happens_to_sessions_is_there() -> None:
    assert subtypes() >= {"api_error", "compact_boundary", "stop_hook_summary", "turn_duration"}
    assert attachments() >= {"hook_success", "queued_command", "plan_mode"}
    assert any(record["type"] == "progress" for record in all_records())
    assert "[Request interrupted by user for tool use]" in json.dumps(all_records())
    assert any("<task-notification>" in str(r.get("message")) for r in all_records())
    assert any("forkedFrom" in record for record in all_records())
    assert any(record["type"] == "custom-title" for record in all_records())
    assert any(record["type"] == "summary" for record in all_records())


def test_a_rewind_left_work_behind() -> None:
    branched = [
        made for made in told() if any(r["type"] == "last-prompt" and r.get("explicit") for r in made.records())
    ]
    assert len(branched) == 2
    for made in branched:
        prompts = [r for r in made.records() if r["type"] == "user" and r.get("promptSource")]
        assert len(prompts) > len({r["parentUuid"] for r in prompts})


def test_an_old_title_points_into_another_file() -> None:
    for made in told():
        for record in made.records():
            if record["type"] == "summary":
                assert record["leafUuid"] not in made.uuids()
                assert any(record["leafUuid"] in other.uuids() for other in told())


def test_sub_agents_of_all_layouts_are_there_and_one_has_its_own() -> None:
    assert any(r.get("isSidechain") and "agentId" not in r for r in all_records())
    names = [name for made in told() for name in made.files() if "agent-" in name]
    assert any(re.search(r"projects/[^/]+/agent-[0-9a-f]{7}\.jsonl", name) for name in names)
    assert any("/subagents/agent-" in name for name in names)
    metas = [each.meta for made in told() for each in made.transcripts if each.meta]
    assert {meta["spawnDepth"] for meta in metas} == {1, 2}


def test_one_session_waits_for_an_answer_and_one_ends_with_an_error() -> None:
    ends = [[r for r in made.records() if "uuid" in r][-1] for made in told()]
    asked = [e for e in ends if e["type"] == "assistant" and _called(e, "AskUserQuestion")]
    assert len(asked) == 1
    failed = [made for made in told() if any(r.get("isApiErrorMessage") for r in made.records()[-8:])]
    assert len(failed) == 1


def _called(record: Json, name: str) -> bool:
    return record["message"]["content"][0].get("name") == name


def test_exactly_one_file_is_damaged() -> None:
    damaged = [made.file for made in told() if not _is_sound(made)]
    assert len(damaged) == 1


def _is_sound(made: Session) -> bool:
    try:
        return [json.loads(line) for line in made.lines()] == made.records()
    except ValueError:
        return False


def test_the_damaged_file_is_cut_spliced_zeroed_and_torn() -> None:
    (made,) = (made for made in told() if not _is_sound(made))
    data = made.bytes()
    assert b"\0" * 64 in data
    assert not data.endswith(b"\n")
    known = set(made.uuids())
    parents = re.findall(rb'"parentUuid":"([^"]+)"', data)
    assert [p for p in parents if p.decode() not in known] != []
    assert re.search(rb'[^}]\{"parentUuid"', data)


def test_hostile_text_is_there() -> None:
    said = json.dumps(all_records(), ensure_ascii=False)
    for bite in ("\\u001b[2J", "<script>", "[bold red]", "\u202e", "=HYPERLINK", "javascript:"):
        assert bite in said


def test_another_script_is_there() -> None:
    assert any(re.search(r"[\u3040-\u30ff]", json.dumps(r, ensure_ascii=False)) for r in all_records())


def test_prompts_are_remembered_in_order_of_time() -> None:
    lines = common(told())["history.jsonl"].splitlines()
    entries: list[Any] = [json.loads(line) for line in lines]
    assert len(entries) > 20
    times = [entry["timestamp"] for entry in entries]
    assert times == sorted(times)
    assert {entry["project"] for entry in entries} == {made.cwd for made in told()}


def test_writing_twice_gives_the_same_bytes(tmp_path: Path) -> None:
    first, second = tmp_path / "one", tmp_path / "two"
    report = write_demo(str(first))
    write_demo(str(first))
    write_demo(str(second))
    assert contents(first) == contents(second)
    assert report.sessions == len(told())
    assert report.files == len(contents(first)) - 1
    assert report.size < 3_000_000


def test_the_promised_places_are_filled(tmp_path: Path) -> None:
    write_demo(str(tmp_path))
    names = set(contents(tmp_path))
    for pattern in (
        r"projects/[^/]+/[0-9a-f-]{36}\.jsonl",
        r"projects/[^/]+/memory/MEMORY\.md",
        r"projects/[^/]+/[0-9a-f-]{36}/tool-results/.+\.txt",
        r"projects/[^/]+/[0-9a-f-]{36}/custom-title\.json",
        r"file-history/[0-9a-f-]{36}/[0-9a-f]{16}@v\d+",
        r"todos/.+\.json",
        r"tasks/[0-9a-f-]{36}/1\.json",
        r"plans/.+\.md",
        r"history\.jsonl",
        r"settings\.json",
    ):
        assert any(re.fullmatch(pattern, name) for name in names), pattern


@pytest.mark.skipif(os.name == "nt", reason="Windows has no such modes")
def test_files_and_folders_are_private(tmp_path: Path) -> None:
    root = tmp_path / "demo"
    write_demo(str(root))
    for path in (root, *root.rglob("*")):
        expected = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == expected, path


def test_a_sessions_file_is_as_old_as_its_last_record(tmp_path: Path) -> None:
    write_demo(str(tmp_path))
    for made in told():
        stamps = [r["timestamp"] for r in made.records() if "timestamp" in r]
        last = datetime.fromisoformat(stamps[-1]).timestamp()
        assert (tmp_path / made.file).stat().st_mtime == pytest.approx(last, abs=0.001)


def test_a_file_of_somebody_elses_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text("mine")
    with pytest.raises(BadRequest, match=r"settings\.json"):
        write_demo(str(tmp_path))
    assert contents(tmp_path) == {"settings.json": b"mine"}


def test_a_file_beside_the_demo_is_left_alone(tmp_path: Path) -> None:
    write_demo(str(tmp_path))
    (tmp_path / "notes.txt").write_text("mine")
    write_demo(str(tmp_path))
    assert (tmp_path / "notes.txt").read_text() == "mine"


def test_what_an_older_demo_wrote_and_this_one_does_not_is_removed(tmp_path: Path) -> None:
    write_demo(str(tmp_path))
    marker = json.loads((tmp_path / MARKER).read_text())
    (tmp_path / "old.txt").write_text("older demo")
    (tmp_path / MARKER).write_text(json.dumps({"files": [*marker["files"], "old.txt"]}))
    assert write_demo(str(tmp_path)).removed == 1
    assert not (tmp_path / "old.txt").exists()


@pytest.mark.parametrize("name", ["../outside.txt", "/outside.txt", "a/../../outside.txt", ""])
def test_a_marker_cannot_remove_what_lies_outside(tmp_path: Path, name: str) -> None:
    outside, root = tmp_path / "outside.txt", tmp_path / "demo"
    outside.write_text("mine")
    root.mkdir()
    (root / MARKER).write_text(json.dumps({"files": [name, 7, None]}))
    assert write_demo(str(root)).removed == 0
    assert outside.read_text() == "mine"


@pytest.mark.parametrize("marker", ["", "[]", '{"files":3}', "\0"])
def test_a_broken_marker_counts_as_none(tmp_path: Path, marker: str) -> None:
    (tmp_path / MARKER).write_text(marker)
    assert write_demo(str(tmp_path)).removed == 0


def test_the_recording_is_what_the_builders_make() -> None:
    made = {name: data for session in told() for name, data in session.files().items()}
    recording = read_recording()
    assert {name: data for name, (data, _) in recording.files.items()} == made | common(told())
    assert recording.sessions == len(told())
    times = {name: session.ended for session in told() for name in session.files()}
    assert {name: recording.files[name][1] for name in times} == times
