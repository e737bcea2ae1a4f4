"""Briefs of real sessions, held against what the raw lines say, and against figures read by hand."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.corpus import transcripts

from steno.report.brief import Brief, as_json, as_markdown, brief_of, tokens_in
from steno.report.brief.plain import encoded
from steno.session.session import Session
from steno.store.discover import found_at
from steno.store.library import open_found

pytestmark = pytest.mark.corpus

_COMMIT = re.compile(r"^\[[^\]]+ ([0-9a-f]{7,40})\] ", re.MULTILINE)


def _public(shared: Path) -> list[Path]:
    return [path for path in transcripts(shared) if "public" in path.parts]


def _opened(path: Path) -> Session:
    return open_found(found_at(str(path)))


def test_every_real_session_gives_a_brief_within_any_budget_and_always_the_same(
    shared: Path,
) -> None:
    for path in transcripts(shared):
        with _opened(path) as session:
            brief = brief_of(session)
            assert brief_of(session) == brief
        for budget in (100, 900):
            assert tokens_in(as_markdown(brief, budget)) <= budget, path
        assert tokens_in(encoded(as_json(brief, 700)).decode()) <= 700, path
        assert as_markdown(brief)


# Against the lines themselves


class _Raw:
    """What the lines of one file say, read by nothing of ours."""

    def __init__(self, path: Path) -> None:
        self.prompts = 0
        self.commits: set[str] = set()
        self.added: Counter[str] = Counter()
        self.removed: Counter[str] = Counter()
        self.tools: Counter[str] = Counter()
        self._calls: dict[str, dict[str, Any]] = {}
        for line in path.read_bytes().split(b"\n"):
            try:
                record = json.loads(line)
            except ValueError:
                continue
            if isinstance(record, dict) and not record.get("isSidechain"):
                self._take(record)

    def _take(self, record: dict[str, Any]) -> None:
        message = record.get("message")
        content = message.get("content") if isinstance(message, dict) else None
        for block in content if isinstance(content, list) else ():
            if block.get("type") == "tool_use" and block["id"] not in self._calls:
                self._calls[block["id"]] = block
                self.tools[block["name"]] += 1
            elif block.get("type") == "tool_result":
                self._result(record, block)

    def _result(self, record: dict[str, Any], block: dict[str, Any]) -> None:
        call = self._calls.get(block["tool_use_id"], {"name": "", "input": {}})
        said = block.get("content")
        text = said if isinstance(said, str) else " ".join(p.get("text", "") for p in said or ())
        if call["name"] == "Bash" and "git commit" in call["input"].get("command", ""):
            self.commits.update(_COMMIT.findall(text))
        kept = record.get("toolUseResult")
        if not isinstance(kept, dict) or block.get("is_error"):
            return
        name = call["input"].get("file_path", "")
        if call["name"] in ("Edit", "MultiEdit"):
            for line in (line for hunk in kept["structuredPatch"] for line in hunk["lines"]):
                self.added[name] += line.startswith("+")
                self.removed[name] += line.startswith("-")


def _is_plain(session: Session) -> bool:
    """Whether the conversation is all there is: nothing abandoned, no sub-agents, no damage."""
    gaps = any(gap.damage for gap in session.transcript.gaps)
    return not (session.branches or session.all_agents or session.leaf is None or gaps)


def test_commits_tools_and_lines_are_those_of_the_raw_lines(shared: Path) -> None:
    looked = committed = edited = 0
    for path in _public(shared):
        raw = _Raw(path)
        with _opened(path) as session:
            if not _is_plain(session):
                continue
            brief = brief_of(session)
            project = session.project.rstrip("/") + "/"
        looked += 1
        made = {commit.hash for commit in brief.work.commits}
        assert {each[:12] for each in raw.commits} >= made, path
        committed += len(made)
        tools = Counter(raw.tools)
        tools["Agent"] += tools.pop("Task", 0)
        assert +tools == Counter(brief.work.tools), path
        wrote = {each.path for each in brief.work.files if project + each.path not in raw.added}
        for each in brief.work.files:
            name = each.path if each.path.startswith("/") else project + each.path
            if each.path not in wrote and "Write" not in raw.tools:
                assert (each.added, each.removed) == (raw.added[name], raw.removed[name]), path
                edited += 1
    assert (looked > 20, committed > 10, edited > 20) == (True, True, True)


# Against what was read by hand

_GOLDEN = {
    "EntityProcess+agentv/7a/d2528cc37f/0/full.jsonl": "t1 c2 p1 f1 +3 -0 ok0 bad0 d0 x1",
    "EntityProcess+agentv/1e/d266d094ed/1/full.jsonl": "t2 c1 p0 f1 +182 -0 ok0 bad0 d0 x1",
    "entireio+cli/73/7e6e3ea2ad/2/full.jsonl": (
        "t1 c0 p0 f2 +149 -25 ok2 bad1 d0 x2 open:uncommitted2"
    ),
    "entireio+cli/81/de29e2290e/0/full.jsonl": (
        "t3 c1 p0 f6 +1028 -101 ok2 bad0 d0 x1 open:uncommitted1"
    ),
    "entireio+cli/84/324d6610f2/0/full.jsonl": (
        "t4 c2 p0 f6 +164 -218 ok2 bad0 d2 x1 open:todo2 open:uncommitted1"
    ),
    "entireio+cli/89/e8867f9092/0/full.jsonl": (
        "t4 c0 p0 f5 +86 -64 ok6 bad1 d0 x3 open:question1 open:uncommitted5"
    ),
    "entireio+cli/c7/f7b48fb868/0/full.jsonl": "t7 c2 p0 f4 +113 -30 ok3 bad1 d4 x2",
    "entireio+cli/d9/e47174f862/0/full.jsonl": "t3 c1 p0 f5 +109 -311 ok1 bad0 d1 x0",
    "obra+episodic-memory/test/fixtures/large-conversation.jsonl": (
        "t22 c11 p1 f11 +155 -165 ok0 bad0 d1 x10"
    ),
    "obra+episodic-memory/test/fixtures/long-conversation.jsonl": (
        "t15 c5 p0 f18 +1329 -112 ok0 bad0 d0 x3"
    ),
}
"""Turns, commits, pull requests, files and lines, tests, decisions, failures, open ends."""


def _figures(brief: Brief) -> str:
    work = brief.work
    ends = Counter(each.kind for each in brief.open)
    return " ".join(
        [
            f"t{sum(not turn.idle for turn in brief.turns)}",
            f"c{len(work.commits)}",
            f"p{len(work.pulls)}",
            f"f{len(work.files)}",
            f"+{sum(each.added for each in work.files)}",
            f"-{sum(each.removed for each in work.files)}",
            f"ok{sum(each.ok for each in work.tests)}",
            f"bad{sum(not each.ok for each in work.tests)}",
            f"d{len(work.decisions)}",
            f"x{len(work.troubles)}",
            *(f"open:{kind}{number}" for kind, number in sorted(ends.items())),
        ]
    )


@pytest.mark.parametrize("name", _GOLDEN)
def test_real_sessions_keep_the_figures_that_they_had(shared: Path, name: str) -> None:
    path = shared / "corpus" / "public" / name
    if not path.exists():
        pytest.skip(f"no {name} in the corpus")
    with _opened(path) as session:
        assert _figures(brief_of(session)) == _GOLDEN[name]
