"""Repaired files, resumed by the real client: it sends what was promised, and nothing is lost.

Run by `make interop`; `make interop-quick` takes a part of it.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.builders import VERSIONS
from tests.interop.client import LIMIT, QUICK, Job, resume_all
from tests.interop.damages import damaged, sound
from tests.interop.judge import fresh, missing_texts, names_much, predicted, seed, sent

from steno.check.record_graph import RecordGraph
from steno.check.repair.repair_job import RepairResult, repair_bytes

pytestmark = [pytest.mark.interop, pytest.mark.timeout(LIMIT)]

NEWEST = "2.1.325"
OLDER = ("2.0.76", "2.1.42")
STORED, FRESH = (8, 4) if QUICK else (120, 100)
SEED = seed()
QUICKLY = (
    "torn tail",
    "two records in a line",
    "spliced result",
    "lost call",
    "parent unknown",
    "NUL run",
    "lost prompt",
    "lost result",
    "circle",
    "no message ids",
)


def key(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


@pytest.mark.parametrize("version", [NEWEST, *OLDER])
def test_sound_sessions_resume_exactly(version: str) -> None:
    writers = [writer for writer in VERSIONS if key(writer) <= key(version)]
    files = {
        f"{writer}, {'full' if full else 'bare'}": sound(writer, full=full).bytes()
        for writer in (writers[-1:] if QUICK else writers)
        for full in (False, True)
    }
    assert {name: repair_bytes(data).data for name, data in files.items()} == files
    answers = resume_all(version, [Job(data) for data in files.values()])
    got = {name: sent(answer) for name, answer in zip(files, answers, strict=True)}
    assert got == {name: predicted(data, version) for name, data in files.items()}
    assert all(got.values())


@pytest.mark.parametrize("version", [NEWEST, *OLDER])
def test_repaired_sessions_resume_as_predicted_and_lose_nothing_unnamed(version: str) -> None:
    files = damaged(version)
    if QUICK:
        files = {name: files[name] for name in QUICKLY[: 10 if version == NEWEST else 5]}
    done = {name: repair_bytes(data, client=version) for name, data in files.items()}
    assert len(files) >= (5 if QUICK else 25)
    check(files, done, version, whole=sound(version).bytes())


def test_repaired_random_sessions_lose_nothing_unnamed(shared: Path, tmp_path: Path) -> None:
    lines = (shared / "corpus" / "resume-fuzz" / f"{NEWEST}.jsonl").read_bytes().splitlines()
    cases = [json.loads(line) for line in lines[:: len(lines) // STORED][:STORED]]
    files = {f"{case['name']} {case['ops']}": case["before"].encode() for case in cases}
    made = fresh(shared, tmp_path, SEED, FRESH)
    files |= {name: each.data for name, each in made.items()}
    assert len(files) == STORED + FRESH
    done = {name: repair_bytes(data) for name, data in files.items()}
    meant = {name: each.meant for name, each in made.items()}
    check(files, done, NEWEST, meant=meant, exact=False)


def check(
    before: dict[str, bytes],
    done: dict[str, RepairResult],
    version: str,
    *,
    whole: bytes = b"",
    meant: dict[str, bytes] | None = None,
    exact: bool = True,
) -> None:
    """Let a client resume repaired files: it sends what is predicted, and every text or its name.

    Not `exact`, one of a hundred predictions may be wrong, and one of a hundred repairs may leave
    out much and name it; no text may be lost unnamed in any case.
    """
    meant = meant or {}
    wrong: dict[str, Any] = {}
    lost: dict[str, Any] = {}
    answers = resume_all(version, [Job(each.data) for each in done.values()])
    for (name, each), answer in zip(done.items(), answers, strict=True):
        got, want = sent(answer), predicted(each.data, version)
        # A blow may leave nothing to resume; then the client must refuse the file, as predicted.
        if got != want or (not got and RecordGraph(each.transcript).messages):
            wrong[name] = {"sent": got, "predicted": want, "said": answer.err}
        missing = missing_texts(before[name], each, answer.messages or [], whole)
        if missing:
            lost[name] = {"missing": missing, "edits": [edit.what for edit in each.edits]}
    much = [name for name, each in done.items() if names_much(before[name], each, meant.get(name, whole))]
    assert lost == {}
    assert len(wrong) <= (0 if exact else len(done) // 100), wrong
    assert len(much) <= (0 if exact else len(done) // 100), much
