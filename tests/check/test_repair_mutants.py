"""Kinds of damage that random changes to files found, each in its least form."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.campaign.mutants import holds

from steno.check.repair.repair_job import repair_bytes
from steno.session.resume.clients import LATEST
from steno.session.resume.replay import as_resumed

Json = dict[str, Any]


def name(number: int) -> str:
    return f"00000000-0000-4000-8000-{number:012d}"


def said(number: int, parent: int | None, role: str, content: Any, **fields: Any) -> Json:
    message: Json = {"role": role, "content": content}
    if role == "assistant":
        message = {"model": "claude-sonnet-4-5", "id": f"msg_{number}", "type": "message", **message}
    return {
        "parentUuid": None if parent is None else name(parent),
        "isSidechain": False,
        "userType": "external",
        "cwd": "/home/ada/work",
        "sessionId": name(0),
        "version": "2.1.325",
        "gitBranch": "main",
        "type": role,
        "message": message,
        "uuid": name(number),
        "timestamp": f"2026-11-02T09:00:{number:02d}.000Z",
        **fields,
    }


def words(text: str) -> list[Json]:
    return [{"type": "text", "text": text}]


def call(number: int) -> list[Json]:
    return [{"type": "tool_use", "id": f"toolu_{number}", "name": "Read", "input": {}}]


def result(number: int) -> list[Json]:
    return [{"type": "tool_result", "tool_use_id": f"toolu_{number}", "content": "x = 1"}]


def boundary(number: int, logical: int) -> Json:
    made = said(number, None, "user", "")
    made.pop("message")
    metadata = {"trigger": "auto", "preTokens": 9}
    return {
        **made,
        "type": "system",
        "subtype": "compact_boundary",
        "logicalParentUuid": name(logical),
        "content": "Conversation compacted",
        "level": "info",
        "compactMetadata": metadata,
    }


def summary(number: int, parent: int) -> Json:
    return said(number, parent, "user", "The summary.", isCompactSummary=True)


def result_inside_an_answer() -> list[Json]:
    """A splice puts a result into an answer beside its call; that is no result."""
    second = said(3, 2, "assistant", call(3))
    second["message"]["id"] = "msg_2"
    return [
        said(1, None, "user", "Look."),
        said(2, 1, "assistant", call(2)),
        second,
        said(4, 2, "assistant", result(2)),
        said(5, 3, "user", result(3)),
        said(6, 5, "assistant", words("Seen.")),
    ]


def boundary_of_an_unknown_type() -> list[Json]:
    """The client does not see the boundary, and goes back to an answer that nothing precedes."""
    return [
        said(1, None, "assistant", words("There.")),
        {**boundary(2, 1), "type": "s]stem"},
        summary(3, 2),
        said(4, 3, "user", "Plot it."),
        said(5, 4, "assistant", words("Plotted.")),
    ]


def beginning_of_an_unknown_type() -> list[Json]:
    """What stands before a compaction hangs on a record that no conversation begins with."""
    return [
        {**said(1, None, "user", "Where?"), "type": ",user"},
        said(2, 1, "assistant", words("There.")),
        boundary(3, 99),
        summary(4, 3),
        said(5, 4, "user", "Plot it."),
        said(6, 5, "assistant", words("Plotted.")),
    ]


def marker_with_a_parent() -> list[Json]:
    """A `last-prompt` record names a record as its parent that is set aside."""
    return [
        said(1, None, "user", "Look."),
        said(2, 1, "assistant", []),
        said(3, 2, "assistant", words("Seen.")),
        {"type": "last-prompt", "leafUuid": name(3), "parentUuid": name(2), "sessionId": name(0)},
    ]


@pytest.mark.parametrize(
    "made", [result_inside_an_answer, boundary_of_an_unknown_type, beginning_of_an_unknown_type, marker_with_a_parent]
)
def test_a_repair_settles_it(made: Callable[[], list[Json]]) -> None:
    data = b"".join(json.dumps(record).encode() + b"\n" for record in made())
    holds(data)
    assert as_resumed(repair_bytes(data).transcript, LATEST)
