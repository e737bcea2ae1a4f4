"""The real client and ours, given the same words, files and answers: what they print and write.

Run by `make interop`.
"""

import json
from typing import Any, Final

import pytest
from tests.interop.client import LIMIT, Talk, Talked, talk_all

pytestmark = [pytest.mark.interop, pytest.mark.timeout(LIMIT)]

NEWEST: Final = "2.1.325"
STREAM: Final = ["--output-format", "stream-json", "--verbose"]
YES: Final[dict[str, Any]] = {"otherwise": {"text": "Yes."}}
OURS: Final = {"sandbox"}
"""What we say and the real client does not."""
LACKING: Final = {
    # How long things took on the way; and speeds, displays and sockets that there are not here.
    *("ttft_ms", "ttft_stream_ms", "time_to_request_ms", "first_content_frame_ms"),
    *("thinking_display", "thinking_duration_ms", "fast_mode_disabled_reason", "view_mode"),
    *("messaging_socket_path", "memory_paths", "per_turn_effort_active", "run_id"),
    *("ultrathink_available", "ultrathink_typed_raises", "safety_stops", "subagent_stats"),
    "model_usage_since_last_result",
}
UNTOLD: Final = {"system/thinking_tokens", "system/task_updated"}
"""The kinds of lines that are not printed here."""


def both(*talks: Talk) -> list[tuple[Talked, Talked]]:
    real, ours = talk_all(NEWEST, talks), talk_all("steno", talks)
    for each in (*real, *ours):
        assert each.refused == []
    return list(zip(real, ours, strict=True))


def kinds(talked: Talked) -> dict[str, set[str]]:
    """Return the keys of each kind of line."""
    found: dict[str, set[str]] = {}
    for line in talked.lines:
        about = line.get("subtype") or line.get("event", {}).get("type", "")
        inner = "/sub" if line.get("parent_tool_use_id") else ""
        keys = found.setdefault(f"{line['type']}/{about}{inner}", set())
        keys |= line.keys()
        for part in ("message", "event"):
            keys |= {f"{part}.{key}" for key in line.get(part, {})}
    return found


READ: Final = {"tool": "Read", "input": {"file_path": "{project}/a.txt"}}
AGENT: Final = {"description": "find", "prompt": "sub do", "subagent_type": "general-purpose"}
EVERYTHING: Final[dict[str, Any]] = {
    "scene": [
        {
            "on": "go",
            "answer": [
                {"blocks": [{"thinking": "hm"}, {"text": "I look."}, READ]},
                {"blocks": [{"tool": "Agent", "input": {**AGENT, "run_in_background": False}}]},
                {"blocks": [{"tool": "Bash", "input": {"command": "rm -r a.txt"}}]},
                {"text": "Done."},
            ],
        },
        {"on": "sub do", "answer": [{"blocks": [READ]}, {"text": "Done below."}]},
    ]
}
BROKEN: Final[dict[str, Any]] = {
    "otherwise": {"error": {"status": 400, "kind": "invalid_request_error", "message": "no"}}
}
ENDLESS: Final[dict[str, Any]] = {"otherwise": {"blocks": [READ]}}


def test_lines_have_the_keys_that_those_of_the_real_client_have() -> None:
    files = {"a.txt": "hello\n"}
    talks = [
        Talk(["-p", "go", *STREAM, "--include-partial-messages"], EVERYTHING, files),
        Talk(["-p", "go", *STREAM], BROKEN),
        Talk(["-p", "go", *STREAM, "--max-turns", "2"], ENDLESS, files),
        Talk(["-p", "go", *STREAM], YES, config={"settings.json": hook("exit 2")}),
    ]
    for real, ours in both(*talks):
        theirs, mine = kinds(real), kinds(ours)
        assert theirs.keys() - mine.keys() <= UNTOLD
        assert mine.keys() <= theirs.keys()
        for kind, keys in mine.items():
            assert keys - theirs[kind] <= OURS, kind
            assert theirs[kind] - keys <= LACKING, kind


def test_the_events_of_an_answer_are_those_that_the_real_client_prints() -> None:
    files = {"a.txt": "hello\n"}
    arguments = ["-p", "go", *STREAM, "--include-partial-messages"]
    ((real, ours),) = both(Talk(arguments, EVERYTHING, files))
    assert shapes(ours) == shapes(real)


def shapes(talked: Talked) -> list[str]:
    """Return the events in their order; how the words are cut up is left to the server."""
    events = [line["event"] for line in talked.lines if line["type"] == "stream_event"]
    parts = [f"{each['type']} {each.get('delta', {}).get('type')}" for each in events]
    return [part for at, part in enumerate(parts) if not at or part != parts[at - 1]]


def hook(command: str) -> str:
    entry = {"hooks": [{"type": "command", "command": command}]}
    return json.dumps({"hooks": {"UserPromptSubmit": [entry]}})


BLOCKS: Final = (
    "echo not this >&2; exit 2",
    """echo '{"decision":"block","reason":"nope"}'""",
    """echo '{"continue":false,"stopReason":"halt"}'""",
    """echo '{"continue":false}'""",
)


def test_of_a_prompt_that_is_kept_out_the_same_is_kept() -> None:
    talks = [Talk(["-p", "go", *STREAM], YES, config={"settings.json": hook(each)}) for each in BLOCKS]
    for real, ours in both(*talks):
        assert notes(ours) == notes(real)
        assert said(ours) == said(real)
        assert texts(ours) == texts(real)


def notes(talked: Talked) -> list[dict[str, Any]]:
    """Return the notes and the end of a session, without what differs by itself."""
    kept = [each for each in talked.records if each["type"] in {"system", "last-prompt"}]
    other = {"uuid", "parentUuid", "leafUuid", "timestamp", "sessionId", "entrypoint", "gitBranch"}
    return [{key: each[key] for key in each if key not in other} for each in kept]


def said(talked: Talked) -> list[Any]:
    users = [each for each in talked.records if each["type"] == "user"]
    return [(each["message"], each.get("isMeta", False)) for each in users]


def texts(talked: Talked) -> list[Any]:
    return [line["result"] for line in talked.lines if line["type"] == "result"]


FILES: Final = {
    "src/x.py": "a = 1\nb = 2\nc = 3\n",
    "src/sub/y.txt": "y\n",
    "a b.py": "spaced\n",
    "x.md": "no newline",
    "ü.txt": "u\r\nv\r\n",
    "long.txt": "line of words\n" * 9_000,
    "huge.txt": "y" * 300_000,
}
PROMPTS: Final = (
    "look at @src/x.py please",
    "@src/x.py#L2-3 and @x.md",
    "@src/x.py#L2",
    'look at @"a b.py" now',
    "@sub/nothing @src/sub/",
    "@x.md, @x.md and @ü.txt.",
    "@long.txt",
    "@huge.txt",
)
DENY: Final = ("--settings", '{"permissions":{"deny":["Read(./x.md)","Read(./src/**)"]}}')


def test_files_that_are_named_are_kept_and_told_as_by_the_real_client() -> None:
    talks = [Talk(["-p", prompt], YES, FILES) for prompt in PROMPTS]
    talks.append(Talk(["-p", "@x.md @src @src/x.py @ü.txt", *DENY], YES, FILES))
    for real, ours in both(*talks):
        assert attached(ours) == attached(real)


def attached(talked: Talked) -> list[Any]:
    """Return what is kept of files, and, where it is the file itself, what the model reads."""
    found: list[Any] = []
    for record in talked.records:
        body = dict(record.get("attachment", {}))
        if body.get("type") in {"file", "directory"}:
            body.pop("savedCopyFraming", None)
            found.append((body, record["renderedRole"], record["rendered"]))
        elif body.get("type") == "at_mention_reference":
            found.append(body)
    return found
