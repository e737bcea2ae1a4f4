"""Every case that was put to real clients: damaged ones resume, sound ones stay as they are."""

import json
from pathlib import Path
from typing import Final

import pytest
from tests.check.test_cases import CASES

from steno.check.checkup import check
from steno.check.repair.repair_job import RepairResult, repair_bytes
from steno.format.source import BytesSource
from steno.session.resume.api_rules import find_breaches
from steno.session.resume.clients import LATEST
from steno.session.resume.replay import as_resumed

DIALECTS = ("seed000", "seed004")
NOTHING: Final = ("empty_file", "only_summary", "drop_message")
FUZZED: Final = 400


def before(shared: Path, case: str) -> bytes:
    return (shared / "corpus" / "resume-cases" / case / "before.jsonl").read_bytes()


def errors(data: bytes) -> list[str]:
    return [found.id for found in check(BytesSource(data)).findings if found.severity == "error"]


def check_mended(data: bytes) -> RepairResult:
    """Repair a file; it must resume, and a second repair must find nothing to do."""
    done = repair_bytes(data)
    assert done.settled
    assert errors(done.data) == []
    sent = as_resumed(done.transcript, LATEST, prompt="Go on.")
    assert sent
    assert find_breaches(sent) == []
    assert repair_bytes(done.data).edits == []
    return done


@pytest.mark.parametrize("case", [case for case, found in CASES.items() if found])
def test_a_damaged_case_resumes(shared: Path, case: str) -> None:
    if case in NOTHING:
        pytest.skip("there is nothing in it to resume")
    check_mended(before(shared, case))


@pytest.mark.parametrize("case", [case for case, found in CASES.items() if not found and case not in DIALECTS])
def test_a_sound_case_is_left_as_it_is(shared: Path, case: str) -> None:
    data = before(shared, case)
    done = repair_bytes(data)
    assert done.edits == []
    assert done.data == data


@pytest.mark.parametrize("case", DIALECTS)
def test_a_case_in_a_dialect_is_converted(shared: Path, case: str) -> None:
    done = repair_bytes(before(shared, case))
    assert {edit.finding for edit in done.edits} == {"fields.dialect"}
    assert as_resumed(done.transcript, LATEST)


@pytest.mark.parametrize("case", NOTHING)
def test_a_case_with_nothing_to_resume_stays_one(shared: Path, case: str) -> None:
    done = repair_bytes(before(shared, case))
    assert not as_resumed(done.transcript, LATEST)
    assert done.settled
    assert done.lost == []


def test_every_random_session_resumes(shared: Path) -> None:
    lines = (shared / "corpus" / "resume-fuzz" / f"{LATEST.version}.jsonl").read_bytes().splitlines()
    assert len(lines) == FUZZED
    for line in lines:
        case = json.loads(line)
        done = repair_bytes(case["before"].encode())
        found = errors(done.data)
        assert done.settled, case["name"]
        if "chain.empty" in found:
            assert not as_resumed(done.transcript, LATEST), case["name"]
            continue
        assert found == [], case["name"]
        sent = as_resumed(done.transcript, LATEST, prompt="Go on.") or []
        assert find_breaches(sent) == [], case["name"]
        assert repair_bytes(done.data).edits == [], case["name"]
