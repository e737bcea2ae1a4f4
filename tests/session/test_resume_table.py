"""What the real client sends after `--resume`, case by case, against what is predicted."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.notation import notation, without_prompt

from steno.format.source import BytesSource
from steno.session.resume.replay import resumed_leaf
from steno.session.session import Session
from steno.session.transcript import load

pytestmark = pytest.mark.corpus

# What no file can tell: where it lay, and how the session was asked for.
BY_PLACE = {
    ("other_project_dir", "2.0.76"),
    ("other_project_dir", "2.1.42"),
    ("other_project_dir", "2.1.200"),
    ("custom_title", "2.1.42"),
    ("ai_title", "2.1.42"),
}
# Understood and not predicted: this client puts a word in place of an image it cannot decode.
NOT_PREDICTED = {("x_text_array", "2.1.42")}
CASES = {"1.0.128": 4, "2.0.76": 33, "2.1.29": 4, "2.1.42": 80, "2.1.200": 89, "2.1.325": 90}


def cases(shared: Path) -> list[tuple[str, str, dict[str, Any]]]:
    folders = sorted((shared / "corpus" / "resume-cases").iterdir())
    tables = [
        (folder.name, json.loads((folder / "expected.json").read_bytes())) for folder in folders if folder.is_dir()
    ]
    return [(name, version, row) for name, table in tables for version, row in table.items()]


def resumed(path: Path, case: str) -> Session:
    name = "sess-001" if case == "seed001_s11" else path.stem
    return Session(load(BytesSource(path.read_bytes())), name=name)


def expected(row: dict[str, Any]) -> list[str]:
    """Older clients put a reminder of their own in front when the user does not begin."""
    messages = without_prompt(row["msgs"])
    return messages[1:] if messages[:1] and messages[0].startswith("u:<system-r") else messages


@pytest.mark.parametrize("version", CASES)
def test_every_case_is_predicted(shared: Path, version: str) -> None:
    wrong: dict[str, tuple[list[str], list[str]]] = {}
    tried = 0
    for case, client, row in cases(shared):
        if client != version or (case, client) in BY_PLACE | NOT_PREDICTED:
            continue
        tried += 1
        before = shared / "corpus" / "resume-cases" / case / "before.jsonl"
        got = notation(resumed(before, case).as_resumed(client))
        if got != expected(row):
            wrong[case] = (expected(row), got)
    assert wrong == {}
    assert tried >= CASES[version]


def test_the_new_prompt_hangs_on_the_predicted_record(shared: Path) -> None:
    for case, client, row in cases(shared):
        parent = row["new_parent"] or ""
        if client != "2.1.325" or not parent.startswith("bbbbbbbb"):
            continue
        before = shared / "corpus" / "resume-cases" / case / "before.jsonl"
        leaf = resumed_leaf(load(BytesSource(before.read_bytes())))
        assert leaf is not None
        assert leaf.uuid == parent, case


def test_the_prompt_is_merged_as_the_client_merges_it(shared: Path) -> None:
    case = shared / "corpus" / "resume-cases" / "drop_message.id@assistant"
    row = json.loads((case / "expected.json").read_bytes())["2.1.325"]
    session = resumed(case / "before.jsonl", case.name)
    assert notation(session.as_resumed("2.1.325", prompt="SCN:more GO-ON")) == row["msgs"]


def test_random_sessions_are_predicted(shared: Path) -> None:
    """Every disagreement is known: docs/reference/resume.md says what is not understood."""
    lines = (shared / "corpus" / "resume-fuzz" / "2.1.325.jsonl").read_bytes().splitlines()
    wrong: list[str] = []
    for line in lines:
        case = json.loads(line)
        got = notation(Session(load(BytesSource(case["before"].encode()))).as_resumed("2.1.325"))
        if got != without_prompt(case["msgs"]):
            wrong.append(case["name"])
    assert wrong == []
    assert len(lines) == 400
