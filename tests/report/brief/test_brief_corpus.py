"""Briefs of real sessions, held against what the raw lines say, and against figures read by hand."""

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.corpus import transcripts

from steno.report.brief import as_json, as_markdown, build_brief, estimate_tokens
from steno.report.brief.brief_json import encode_brief
from steno.session.session import Session
from steno.store.discovery import discover_file
from steno.store.session_lookup import open_file_session

pytestmark = pytest.mark.corpus

_COMMIT = re.compile(r"^\[[^\]]+ ([0-9a-f]{7,40})\] ", re.MULTILINE)


def _public(shared: Path) -> list[Path]:
    return [path for path in transcripts(shared) if "public" in path.parts]


def _opened(path: Path) -> Session:
    return open_file_session(discover_file(str(path)))


def test_every_real_session_gives_a_brief_within_any_budget_and_always_the_same(shared: Path) -> None:
    for path in transcripts(shared):
        with _opened(path) as session:
            brief = build_brief(session)
            assert build_brief(session) == brief
        for budget in (100, 900):
            assert estimate_tokens(as_markdown(brief, budget)) <= budget, path
        assert estimate_tokens(encode_brief(as_json(brief, 700)).decode()) <= 700, path
        assert as_markdown(brief)


# Against the lines themselves


_SIZE = re.compile(r"(\d+) files? changed(?:, (\d+) insert[^,\n]+)?(?:, (\d+) delet)?")
_REFUSED = re.compile(r"^The user doesn't want to|but you haven't granted it yet\.$")
_OWN = ("<", "[Request interrupted", "Caveat:", "This session is being continued")
"""How words begin that the client itself put into the mouth of the user."""


class _Raw:
    """What the lines of one file say, read by nothing of ours."""

    def __init__(self, path: Path) -> None:
        self.prompts: list[str] = []
        self.commits: list[tuple[str, int, int, int]] = []
        self.pulls: set[str] = set()
        self.changed: dict[str, list[int]] = {}
        """Of each file how often it was changed, and its lines that came and went."""
        self.tools: Counter[str] = Counter()
        self.texts: Counter[str] = Counter()
        self.calls: Counter[tuple[str, str]] = Counter()
        self.failed: set[str] = set()
        self.refused = 0
        self.todos: list[str] = []
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
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        kinds = {block.get("type") for block in blocks}
        if record.get("type") == "user" and not record.get("isMeta") and "tool_result" not in kinds:
            said = "\n".join(block.get("text", "") for block in blocks)
            said = re.sub(r"(?s)<system-reminder>.*?</system-reminder>", "", said).strip()
            if said and not said.startswith(_OWN):
                self.prompts.append(said)
        for block in blocks:
            if record.get("type") == "assistant" and block.get("type") == "text":
                self.texts[block["text"]] += bool(block["text"].strip())
            if block.get("type") == "tool_use" and block["id"] not in self._calls:
                self._calls[block["id"]] = block
                self.calls[block["id"], json.dumps(block["input"], sort_keys=True)] += 1
                self.tools[block["name"]] += 1
            elif block.get("type") == "tool_result":
                self._result(record, block)

    def _result(self, record: dict[str, Any], block: dict[str, Any]) -> None:
        call = self._calls.get(block["tool_use_id"], {"name": "", "input": {}})
        said = block.get("content")
        text = said if isinstance(said, str) else " ".join(p.get("text", "") for p in said or ())
        if block.get("is_error"):
            self.failed.add(block["tool_use_id"])
            self.refused += bool(_REFUSED.search(text))
            return
        command = call["input"].get("command", "") if call["name"] == "Bash" else ""
        if "git commit" in command:
            self._commit(command, text)
        if "gh pr create" in command:
            self.pulls.update(re.findall(r"https://github\.com/\S+/pull/\d+", text))
        if call["name"] == "TodoWrite":
            items = call["input"]["todos"]
            self.todos = [each["content"] for each in items if each["status"] != "completed"]
        if isinstance(kept := record.get("toolUseResult"), dict):
            self._change(call, kept)

    def _commit(self, command: str, text: str) -> None:
        if "--amend" in command and self.commits:
            self.commits.pop()
        for name in _COMMIT.findall(text):
            size = _SIZE.search(text)
            numbers = [int(each or 0) for each in size.groups()] if size else [0, 0, 0]
            self.commits.append((name[:12], numbers[0], numbers[1], numbers[2]))

    def _change(self, call: dict[str, Any], kept: dict[str, Any]) -> None:
        if call["name"] not in ("Edit", "MultiEdit", "Write"):
            return
        lines = [line for hunk in kept.get("structuredPatch", ()) for line in hunk["lines"]]
        if kept.get("type") == "create":
            lines = [f"+{line}" for line in kept["content"].splitlines()]
        mine = self.changed.setdefault(call["input"]["file_path"], [0, 0, 0])
        mine[0] += 1
        mine[1] += sum(line.startswith("+") for line in lines)
        mine[2] += sum(line.startswith("-") for line in lines)


def _is_plain(session: Session) -> bool:
    """Whether the conversation is all there is: nothing abandoned, no sub-agents, no damage."""
    gaps = any(gap.damage for gap in session.transcript.gaps)
    return not (session.branches or session.all_agents or session.leaf is None or gaps)


def _whole(path: str, project: str) -> str:
    return path if path.startswith("/") else f"{project.rstrip('/')}/{path}"


def _short(text: str) -> str:
    return text[:100].strip()


def test_what_was_asked_and_done_is_what_the_raw_lines_say(shared: Path) -> None:
    looked = asked = committed = edited = 0
    for path in _public(shared):
        raw = _Raw(path)
        with _opened(path) as session:
            if not _is_plain(session):
                continue
            brief = build_brief(session, full=True)
        looked += 1
        turns = [turn.text for turn in brief.turns if turn.origin == "human" and turn.text]
        assert [_short(text) for text in turns] == [_short(text) for text in raw.prompts], path
        asked += len(turns)
        work = brief.work
        made = [(each.hash, each.files, each.added, each.removed) for each in work.commits]
        assert made == raw.commits, path
        committed += len(made)
        texts = Counter(text.text for turn in brief.turns for text in turn.texts)
        assert texts == +raw.texts, path
        calls = [call for turn in brief.turns for call in turn.calls]
        given = ((call.id, json.dumps(call.input, sort_keys=True)) for call in calls)
        assert Counter(given) == raw.calls, path
        bad = {call.id for call in calls if call.state in ("failed", "denied")}
        cut_off = {call.id for call in calls if call.state == "interrupted"}
        assert bad <= raw.failed <= bad | cut_off, path
        tools = Counter(raw.tools)
        tools["Agent"] += tools.pop("Task", 0)
        assert +tools == Counter(work.tools), path
        if "NotebookEdit" not in raw.tools:
            files = {_whole(each.path, brief.project): [each.edits, each.added, each.removed] for each in work.files}
            assert files == raw.changed, path
            edited += len(files)
        assert {each.url for each in work.pulls} >= raw.pulls, path
        assert sum(each.kind == "refused" for each in work.decisions) == raw.refused, path
        assert [each.text for each in brief.open if each.kind == "todo"] == raw.todos, path
    assert (looked > 20, asked > 40, committed > 10, edited > 60) == (True, True, True, True)


# Against what was read by hand

_TESTS = {
    "entireio+cli/73/7e6e3ea2ad/2/full.jsonl": [
        ("mise run test -- -run TestExplain -v", "failed", 1, 1),
        ("mise run test -- -run TestExplainDefault -v", "passed", 1, 0),
        ("mise run test", "passed", 1, 0),
    ],
    "entireio+cli/89/e8867f9092/0/full.jsonl": [
        ("…-run TestGeminiConcurrentSessionWarning_SubsequentPromptsSucceed", "passed", 2, 1),
        ("…-run TestConcurrentSessions_BothCondensedOnCommit", "failed", 1, 1),
        ('…-run "^TestConcurrentSessions_BothCondensedOnCommit$"', "passed", 1, 0),
        ("…-run TestGeminiConcurrentSessions_BothCondensedOnCommit", "failed", 1, 1),
        ("mise run test", "passed", 2, 0),
        ("…-run TestGeminiConcurrent", "passed", 5, 3),
    ],
    "entireio+cli/9a/db5fd9b101/0/full.jsonl": [
        ("mise run test", "passed", 2, 1),
        ("mise run fmt 2>&1 && mise run lint 2>&1 && mise run test", "passed", 1, 0),
        ("mise run fmt 2>&1 && mise run lint 2>&1 && mise run test:ci", "passed", 1, 0),
    ],
    "entireio+cli/c7/f7b48fb868/0/full.jsonl": [
        ("go test -v -run '' 2>&1 | grep -A 20 \"FAIL\\|--- FAIL\"", "failed", 1, 1),
        ("mise run test", "passed", 2, 1),
        ("go test ./cmd/entire/cli/session/... -v -run InvalidUUID", "passed", 1, 0),
        ("mise run fmt && mise run lint && mise run test", "passed", 1, 0),
    ],
    "entireio+cli/81/de29e2290e/0/full.jsonl": [
        ("mise run test", "passed", 1, 0),
        ("mise run test:ci", "passed", 1, 0),
    ],
}
"""What was tested, in the order of the last run: how it ended then, how often it ran, and failed."""
_TROUBLES = {
    "entireio+cli/73/7e6e3ea2ad/2/full.jsonl": [
        ("mise run test -- -run TestExplain -v", 1, True),
        ("mise run lint", 1, True),
    ],
    "entireio+cli/89/e8867f9092/0/full.jsonl": [
        ("…-run TestGeminiConcurrentSessionWarning_SubsequentPromptsSucceed", 1, True),
        ("…-run TestGeminiConcurrent", 5, True),
    ],
    "entireio+cli/9a/db5fd9b101/0/full.jsonl": [("mise run test", 1, True), ("mise run lint", 1, True)],
    "entireio+cli/c7/f7b48fb868/0/full.jsonl": [
        ("mise run test", 1, True),
        ("go test -v -run '' 2>&1 | grep -A 20 \"FAIL\\|--- FAIL\"", 1, True),
    ],
    "entireio+cli/81/de29e2290e/0/full.jsonl": [("mise run lint", 1, True)],
    "EntityProcess+agentv/7a/d2528cc37f/0/full.jsonl": [("git push -u origin chore/enable-entire", 1, True)],
    "entireio+cli/84/324d6610f2/0/full.jsonl": [
        ("gh api repos/entireio/cli/pulls/comments/2715029017/replies -f body=…", 1, False)
    ],
}
"""What failed, how often, and whether it was seen to work later."""


def _is_called(command: str, said: str) -> bool:
    """Whether a command is the one that is meant, where it is told shorter."""
    start, _, end = said.partition("…")
    flat = " ".join(command.split())
    return flat == said or ("…" in said and flat.startswith(start) and (flat + " ").endswith(f"{end} "))


@pytest.mark.parametrize("name", _TESTS)
def test_tests_ended_as_whoever_reads_the_lines_sees_it(shared: Path, name: str) -> None:
    with _opened(_named(shared, name)) as session:
        found = build_brief(session).work.tests
    assert len(found) == len(_TESTS[name])
    for each, (said, ended, times, bad) in zip(found, _TESTS[name], strict=True):
        assert _is_called(each.command, said), each
        assert ("passed" if each.ok else "failed", each.times, each.bad) == (ended, times, bad)


@pytest.mark.parametrize("name", _TROUBLES)
def test_failures_went_as_whoever_reads_the_lines_sees_it(shared: Path, name: str) -> None:
    with _opened(_named(shared, name)) as session:
        found = build_brief(session).work.troubles
    assert len(found) == len(_TROUBLES[name])
    for each, (said, times, solved) in zip(found, _TROUBLES[name], strict=True):
        assert _is_called(each.what, said) or said.endswith("=…"), each
        assert (each.times, each.solved) == (times, solved), each


def _named(shared: Path, name: str) -> Path:
    path = shared / "corpus" / "public" / name
    if not path.exists():
        pytest.skip(f"no {name} in the corpus")
    return path
