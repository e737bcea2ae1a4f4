"""Paths of every kind of file, and the names of folders: what they say, and what they are called."""

from collections.abc import Iterator
from typing import Final

from tests.builders.paths import agent_path, dialect_session_path, file_history_path, task_path, todo_name

from steno.format.paths import (
    PathInfo,
    classify_path,
    classify_transcript,
    dialect_slug,
    file_history_name,
    guess_project,
    is_agent_id,
    is_uuid,
    meta_path,
    plan_path,
    session_path,
    slug_by_same_rule,
    slug_candidates,
    slug_for_path,
    tool_result_path,
)

__all__ = ["answers"]

_ID: Final = "62ecc684-5437-43ff-95cf-5c331fca7ea1"
_OTHER: Final = "11111111-2222-4333-8444-555555555555"
_PATHS: Final = (
    f"projects/-w/{_ID}.jsonl",
    f"projects/-w/{_ID}.json",
    "projects/-w/notes.jsonl",
    f"projects/{_ID}.jsonl",
    f"projects/-w/x/{_ID}.jsonl",
    "projects/-w/agent-a318043.jsonl",
    "projects/-w/agent-.jsonl",
    "projects/-w/agent-a318043.meta.json",
    f"projects/-w/{_ID}/subagents/agent-a318043.jsonl",
    f"projects/-w/{_ID}/subagents/agent-a318043.meta.json",
    f"projects/-w/{_ID}/subagents/deeper/agent-a318043.jsonl",
    f"projects/-w/{_ID}/subagents/workflows/run/agent-a318043.jsonl",
    f"projects/-w/{_ID}/subagents/workflows/run/deeper/agent-a318043.jsonl",
    f"projects/-w/{_ID}/subagents/workflows/run/agent-a318043.meta.json",
    f"projects/-w/{_ID}/subagents/workflows/run/journal.jsonl",
    f"projects/-w/{_ID}/subagents/journal.jsonl",
    f"projects/-w/{_ID}/tool-results/toolu_1.txt",
    f"projects/-w/{_ID}/tool-results/a/b.txt",
    f"projects/-w/{_ID}/custom-title.json",
    f"projects/-w/{_ID}/workflows/run.json",
    f"projects/-w/{_ID}/workflows/scripts/a/b.js",
    "projects/-w/memory/MEMORY.md",
    "projects/-w/memory/a/b.md",
    "projects/-w/sessions-index.json",
    "conversations/_w/2025.jsonl",
    "conversations/_w/x/2025.jsonl",
    f"file-history/{_ID}/0123456789abcdef@v1",
    "history.jsonl",
    "x/history.jsonl",
    f"todos/{_ID}-agent-{_ID}.json",
    f"todos/{_ID}-agent-{_OTHER}.json",
    "todos/x-agent-y.json",
    f"tasks/{_ID}/3.json",
    f"tasks/{_ID}/.lock",
    f"tasks/{_ID}/.highwatermark",
    "plans/a-plan.md",
    "plans/a/b.md",
    "plans/a.txt",
    "paste-cache/x.txt",
    "image-cache/x/y.png",
    "shell-snapshots/s.sh",
    "sessions/123.json",
    "sessions/123.key",
    ".credentials.json",
    f"debug/{_ID}.txt",
    "debug/latest",
    f"session-env/{_ID}",
    f"session-env/{_ID}/x/y",
    "settings.json",
    "settings.local.json",
    "settings.x.json",
    "CLAUDE.md",
    "CLAUDE.local.md",
    "rules/a/b.md",
    "agents/reviewer.md",
    "skills/pdf/SKILL.md",
    "skills/pdf",
    "commands/git/commit.md",
    "hooks/x.sh",
    "jobs/a",
    "daemon/b/c",
    "plugins/p/q",
    "telemetry/t",
    "statsig/s",
    "cache/c",
    "stats-cache.json",
    "ide/1.lock",
    "logs/x.log",
    "",
    "/",
    ".",
    "./settings.json",
    "//projects//-w//./x.jsonl",
    f"/home/ada/.claude/projects/-w/{_ID}.jsonl",
    "/home/ada/.claude/settings.json",
    "/home/ada/.claude/agents/x.md",
    f"backup/{_ID}/subagents/agent-a318043.jsonl",
    f"backup/-w/{_ID}/tool-results/x.txt",
    f"{_ID}/tool-results/x.txt",
    f"{_ID}.jsonl",
    f"x/{_ID}.jsonl",
    "agent-a318043.jsonl",
    "subagents/agent-a318043.jsonl",
    "x/subagents/agent-a318043.jsonl",
    "x/subagents/workflows/run/agent-a318043.jsonl",
    "x/subagents/workflows/agent-a318043.jsonl",
    "x/subagents/workflows/run/journal.jsonl",
    "y/x/subagents/other.jsonl",
    "x/subagents/workflows/run/other.jsonl",
    "y/x/subagents/workflows/run/history.jsonl",
    "x/subagents/other/run/journal.jsonl",
    f"z/y/x/subagents/workflows/run/deeper/{_ID}.jsonl",
    "subagents/journal.jsonl",
    "a/subagents/b/subagents/agent-a318043.jsonl",
    "b/a/conversations/x/subagents/other.jsonl",
    "conversations/_w/y/x/subagents/other.jsonl",
    "conversations/_w/subagents/other.jsonl",
    "history.jsonl/x.jsonl",
    "agents/subagents/agent-.jsonl",
    "conversations/x.jsonl",
    "a/conversations/_w/x.jsonl",
    "agents/x.jsonl",
    f"agents/{_ID}.jsonl",
    "notes.txt",
    "a\nb/settings.json",
)
_FOLDERS: Final = (
    "/home/ada/work",
    "/home/ada/my.work_2/ünï",
    "/home/ada/\U0001f600",
    "/",
    "",
    "C:\\Users\\ada\\work",
    "/a" * 99 + "/b",
    "/a" * 100,
    "/a" * 100 + "b",
    "/" + "é" * 201,
    "/" + "\U0001f600" * 101,
    "/" + "x" * 300,
    "relative/path",
)
_NAMES: Final = (
    "-home-ada-work",
    "-home-ada-work--claude-worktrees-wt9",
    "C--Users-ada-work",
    "c--x--y",
    "C-x",
    "home-ada-x",
    "Users-ada",
    "users-ada",
    "_home_ada_my-work",
    "plain",
    "",
    "-",
    "--x",
    "-" + "a" * 199 + "-hash",
    "-" + "a" * 199,
    "-" + "a" * 200,
    "C--" + "a" * 197 + "-hash",
    "_" + "a" * 199 + "-hash",
)


def _place(place: PathInfo) -> str:
    parts = {name: getattr(place, name) for name in PathInfo.__struct_fields__}
    return " ".join(f"{name}={value!r}" for name, value in parts.items() if value)


def _short(text: str) -> str:
    return text if len(text) < 120 else f"{text[:12]}…{text[-20:]} ({len(text)})"


def answers() -> Iterator[tuple[str, str]]:
    """Yield each path and name, and what it says."""
    for path in _PATHS:
        yield f"path {path!r}", _place(classify_path(path))
        parts = [part for part in path.split("/") if part]
        if path.endswith(".jsonl"):
            yield f"transcript {path!r}", _place(classify_transcript(parts))
    for folder in _FOLDERS:
        yield f"folder {_short(folder)!r}", _short(slug_for_path(folder))
        yield "  or", " | ".join(map(_short, slug_candidates(folder)))
        yield "  in the dialect", _short(dialect_slug(folder))
    for name in _NAMES:
        yield f"name {_short(name)!r}", _short(guess_project(name))
    known = "/home/ada/a.b"
    for name in (*slug_candidates(known), "x", ""):
        others = ("/srv/c.d", "/" + "x" * 260, "/" + "é" * 150)
        yield (f"named like {name!r}", " | ".join(_short(slug_by_same_rule(name, known, o)) for o in others))
    for text in (_ID, _ID.upper(), _ID[:-1], f"{_ID}0", f"{_ID}\n", _ID.replace("-", ""), "g" + _ID[1:], ""):
        yield f"uuid {text!r}", str(is_uuid(text))
    ids = ("a318043", "a31804", "a3180433", "aa4e0dbe5b26c1968", "g318043", "A318043")
    ids += ("areview-0123456789abcdef", "review-0123456789abcdef", "areview-0123456789abcde", "a-0123456789abcdef", "")
    for text in ids:
        yield f"agent {text!r}", str(is_agent_id(text))
    yield "session", session_path("-w", _ID)
    yield "dialect", dialect_session_path("_w", "2025")
    agent = agent_path("-w", _ID, "a318043")
    yield "agent", f"{agent} {meta_path(agent)}"
    yield "agent of a workflow", agent_path("-w", _ID, "a318043", workflow="run")
    yield "agent beside", agent_path("-w", _ID, "a318043", workflow="run", next_to_session=True)
    yield "tool result", tool_result_path("-w", _ID, "x.txt")
    yield "backup", f"{file_history_name('/a', 2)} {file_history_path(_ID, '/a', 3)}"
    yield "todo", f"{todo_name(_ID)} {todo_name(_ID, 'a318043')}"
    yield "task and plan", f"{task_path(_ID, 3)} {plan_path('x')}"
