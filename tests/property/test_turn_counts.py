"""A turn is a prompt by a person and what follows it, wherever turns are counted.

Compactions stand at random places, in three forms: as clients write them, as the published
description "Claude Code Session Protocol Schema" has them, and as steno's own engine writes them.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from tests.builders import VERSIONS, session, tool
from tests.index.searching import NOW

from steno.agent.conversation import Conversation, RetainedTail
from steno.agent.writable_session import new_session, resume_session
from steno.index.database import IndexLocation, SessionIndex, open_for_reading
from steno.index.search.finder import Finder
from steno.index.search.hit_text import HitReader
from steno.index.search.query_parser import parse_query
from steno.index.sync.updater import sync
from steno.llm.messages_api import Response
from steno.report.brief import build_brief
from steno.report.clock import parse_time_range
from steno.session.session import Session
from steno.session.transcript import load
from steno.store.discovery import discover_file
from steno.store.file_source import FileSource
from steno.store.session_counts import count_turns
from steno.store.summary import summarize
from steno.tools.protocol import ToolResult

Action = str
ACTIONS: Final = ("ask", "work", "full", "compact")
"""Ask; ask for work with tools; the same, compacted in the middle; compact by hand."""
actions = st.lists(st.sampled_from(ACTIONS), min_size=1, max_size=8).filter(lambda chosen: chosen[0] != "compact")
Writer = Callable[[Path, list[Action]], Path]


def asked(chosen: list[Action]) -> int:
    """Return how many prompts a person gave."""
    return sum(action != "compact" for action in chosen)


def by_client(version: str) -> Writer:
    """Return what writes sessions as a client does."""

    def write(root: Path, chosen: list[Action]) -> Path:
        made = session(version)
        for number, action in enumerate(chosen):
            if action == "compact":
                made.compact("So far.")
                continue
            made.user(f"prompt{number} please")
            if action != "ask":
                made.assistant(tool("Bash", command="true")).result("x")
            if action == "full":
                made.compact("So far.", trigger="auto")
            made.assistant("Aye.").done()
        return _put(root, made.file, made.bytes())

    return write


def by_description(root: Path, chosen: list[Action]) -> Path:
    """Write a session as the published description has it: a summary record, a boundary, a root."""
    lines: list[dict[str, Any]] = []
    parent: str | None = None

    def link(kind: str, **fields: Any) -> None:
        nonlocal parent
        uuid = f"bbbbbbbb-0000-4000-8000-{len(lines):012}"
        stamp = f"2026-01-03T10:00:{len(lines) % 60:02}.000Z"
        around = {"sessionId": "s", "version": "2.1.29", "cwd": "/w", "isSidechain": False}
        record = {"type": kind, "parentUuid": parent, "uuid": uuid, "timestamp": stamp, **around}
        lines.append({**record, **fields})
        parent = uuid

    for number, action in enumerate(chosen):
        if action == "compact":
            before, leaf = parent, parent
            if number % 2:
                link("system", subtype="turn_duration", durationMs=5, isMeta=False)
                before = parent
            lines.append({"type": "summary", "summary": "So far.", "leafUuid": leaf})
            parent = None
            link(
                "system",
                subtype="compact_boundary",
                logicalParentUuid=before,
                content="Conversation compacted",
                compactMetadata={"trigger": "manual", "preTokens": 9},
            )
            parent = None
            continue
        link("user", message={"role": "user", "content": f"prompt{number} please"})
        answer = {"id": f"m{number}", "role": "assistant", "model": "claude-x", "usage": {}}
        content = [{"type": "text", "text": "Aye."}]
        link("assistant", requestId="r", message={**answer, "content": content})
    data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    return _put(root, "projects/-w/aaaaaaaa-0000-4000-8000-000000000001.jsonl", data)


def by_engine(root: Path, chosen: list[Action]) -> Path:
    """Write a session as steno's own engine does, which says the last turn again."""
    work = new_session(str(root), "/w")
    talk = work.conversation
    number = 0
    for number, action in enumerate(chosen):
        if action == "compact":
            _compact(talk, "manual")
            talk.add_prompt("<command-name>/compact</command-name>", typed="")
            talk.add_prompt("<local-command-stdout>Compacted</local-command-stdout>", typed="")
            continue
        words = f"prompt{number} please"
        talk.add_user_prompt(words, typed=words, mode="default", interactive=True)
        if action != "ask":
            call = {"type": "tool_use", "id": f"t{number}", "name": "Bash", "input": {}}
            talk.add_response(Response(id=f"c{number}", model="claude-x", blocks=[call]))
            talk.add_result(f"t{number}", ToolResult("x"))
        if action == "full":
            _compact(talk, "auto")
        said = {"type": "text", "text": "Aye."}
        talk.add_response(Response(id=f"m{number}", model="claude-x", blocks=[said]))
        talk.end_turn()
    talk.recorder.close()
    return Path(talk.recorder.path)


def _compact(talk: Conversation, trigger: str) -> None:
    messages = talk.messages()
    starts = [
        place
        for place, message in enumerate(messages)
        if message["role"] == "user" and "prompt" in str(message["content"])
    ]
    tail = RetainedTail(messages[starts[-1] :], "claude-x") if starts else RetainedTail([], "claude-x")
    talk.replace_by_summary("So far.", tail, trigger=trigger, tokens_before=9, tokens_after=3, seconds=0.1)


def _put(root: Path, name: str, data: bytes) -> Path:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    os.utime(path, (1_700_000_000, 1_700_000_000))
    return path


def counts_of(root: Path, path: Path, last: str) -> dict[str, int]:
    """Return how many turns each part of steno says there are; `last` is a word of the last one."""
    home = IndexLocation(f"{root}-index", (str(root),))
    sync(home)
    connection = open_for_reading(home.folder)
    assert connection is not None
    with connection:
        asked_for = "SELECT turns, steps, title FROM sessions WHERE agent = ''"
        (row,) = connection.execute(asked_for).fetchall()
        finder = Finder(connection, SessionIndex(home, connection).texts, lambda word: parse_time_range(word, NOW))
        with HitReader(connection) as reader:
            hits = reader.read_texts(finder.find(parse_query(last), "newest").messages)
    found = Session(load(FileSource(str(path))))
    turns = found.turns()
    assert row[2] == found.title.text == summarize(discover_file(str(path)), 0).title
    assert row[1] == sum(step.kind in ("tool", "agent", "error") for t in turns for step in t.steps)
    return {
        "show": len(turns),
        "brief": len(build_brief(found).turns),
        "index": row[0],
        "ls without an index": count_turns(discover_file(str(path))) or 0,
        **{f"search, hit {number}": hit.turn for number, hit in enumerate(hits)},
    }


WRITERS: Final[dict[str, Writer]] = {
    **{version: by_client(version) for version in VERSIONS},
    "description": by_description,
    "engine": by_engine,
}


@pytest.mark.parametrize("name", WRITERS)
@settings(deadline=None, max_examples=10, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chosen=actions)
@example(["ask", "full", "compact"])
@example(["work", "compact", "compact", "ask"])
@example(["full", "full"])
def test_every_part_counts_the_same_turns(
    tmp_path_factory: pytest.TempPathFactory, name: str, chosen: list[Action]
) -> None:
    root = tmp_path_factory.mktemp("turns")
    path = WRITERS[name](root, chosen)
    number = max(place for place, action in enumerate(chosen) if action != "compact")
    counts = counts_of(root, path, f"prompt{number}")
    assert counts == dict.fromkeys(counts, asked(chosen))
    assert any(each.startswith("search") for each in counts)


def test_a_session_that_was_compacted_goes_on_with_the_turn_it_had_come_to(tmp_path: Path) -> None:
    path = by_engine(tmp_path, ["ask", "full", "compact"])
    work = resume_session(str(path), "/w")
    figures = work.conversation.counters
    assert (figures.turn_index, figures.prompt_index) == (2, 2)
    assert figures.dropped_tokens == 12
    work.conversation.recorder.close()
