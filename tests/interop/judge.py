"""What was predicted, what was sent, and what got lost between the two."""

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from tests.interop.client import QUICK, SID, Resumed
from tests.notation import notation, without_prompt

from steno.check.record_graph import RecordGraph
from steno.check.repair.repair_job import RepairResult
from steno.format.message import Text, ToolResult
from steno.format.source import BytesSource
from steno.session.session import Session
from steno.session.transcript import Node, Transcript, load

__all__ = ["Made", "fresh", "missing_texts", "names_much", "predicted", "seed", "sent"]

_QUICK_SEED: Final = 7


def seed() -> int:
    """Return what random sessions are made of: new ones each time, but for a quick look the same.

    The quick part decides about changes, so it must not depend on luck.
    """
    told = int(os.environ.get("STENO_INTEROP_SEED", "0"))
    return told or (_QUICK_SEED if QUICK else secrets.randbelow(1_000_000))


def predicted(data: bytes, version: str) -> list[str]:
    """Return what steno says a client sends of a session, in the notation of the resume cases."""
    return notation(Session(load(BytesSource(data)), name=SID).as_resumed(version))


def sent(resumed: Resumed) -> list[str]:
    """Return what the client did send of it, without the new prompt.

    Older clients put a reminder of their own in front when the user does not begin.
    """
    messages = without_prompt(notation(resumed.messages or []))
    return messages[1:] if messages[:1] and messages[0].startswith("u:<system-r") else messages


def missing_texts(data: bytes, done: RepairResult, messages: Sequence[object], whole: bytes = b"") -> list[str]:
    """Return the texts of a conversation that were neither sent nor named by the repair.

    A repair names a record that it sets aside, removes, or leaves beside the conversation, and says
    in words what it loses. What a client says about its own failures is never sent. `whole` is the
    file before it was damaged, where all of that can be brought back: then it says what the
    conversation was.
    """
    transcript = load(BytesSource(whole or data))
    named = _named(done)
    request = json.dumps(messages, ensure_ascii=False)
    held = _held(data)
    return [
        said
        for node in RecordGraph(transcript).conversation
        if node.is_message and node.uuid not in named and not node.synthetic_error
        for said in _texts(transcript, node)
        if _quoted(said) not in request
        and not any(said in words for words in done.lost)
        # What stands in bytes that are no record is lost with these, which are named themselves.
        and (said in held or (_quoted(said).encode() in data and not done.lost))
    ]


def names_much(data: bytes, done: RepairResult, meant: bytes = b"") -> bool:
    """Whether a repair leaves out much of a conversation: to name it is no excuse for losing it.

    Where the file as it was `meant` is known, only what was said there counts, up to the record
    that the damaged file goes on from.
    """
    graph = RecordGraph(load(BytesSource(meant or data)))
    leaf = RecordGraph(load(BytesSource(data))).leaf
    if leaf is not None and leaf.uuid in graph.by_uuid:
        graph.leaf = graph.by_uuid[leaf.uuid]
    messages = {node.uuid for node in graph.messages}
    return len(messages & _named(done)) > max(_FEW, len(messages) * _SHARE)


def _named(done: RepairResult) -> set[str | None]:
    named = {edit.uuid for edit in done.edits if edit.lost or edit.action in _OUT}
    return {*named, *(each.uuid for each in done.left)}


def _held(data: bytes) -> set[str]:
    """Return the texts in the records of a file."""
    transcript = load(BytesSource(data))
    return {said for node in transcript.nodes for said in _texts(transcript, node)}


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)[1:-1]


_OUT = ("remove", "set aside")
_FEW = 3
_SHARE = 0.4
"""How many of the messages a repair may leave out and name: so many, or that part of them."""


def _texts(transcript: Transcript, node: Node) -> list[str]:
    """Return what a person or the model said in a record, and what came out of tools.

    A result of no call in the file is sent by no client, mended or not.
    """
    if node.is_result and not _is_called(transcript, node):
        return []
    blocks = transcript.record(node).blocks
    said = [block.text for block in blocks if isinstance(block, Text | ToolResult)]
    return [words for words in said if words.strip()]


def _is_called(transcript: Transcript, node: Node) -> bool:
    return any(call in each.uses for each in transcript.nodes for call in node.results)


class Made(NamedTuple):
    """A random session, and what it was before it was damaged."""

    data: bytes
    meant: bytes


def fresh(shared: Path, folder: Path, seed: int, count: int, *, sound: float = 0.0) -> dict[str, Made]:
    """Return random sessions of the shared generator, by number and what was done to them.

    Only what makes sessions is taken from it: everything between its imports and its `main`.
    """
    source = (shared / "oracle" / "fuzz.py").read_text()
    body = source[source.index("class Gen") : source.index("def main()")]
    (folder / "records.py").write_text((shared / "oracle" / "records.py").read_text())
    (folder / "make.py").write_text(_MAKE.replace("BODY", body))
    made = subprocess.run(
        [sys.executable, folder / "make.py", str(seed), str(count), str(sound)], capture_output=True, check=True
    )
    cases = [json.loads(line) for line in made.stdout.splitlines()]
    return {
        f"{seed}/{number} {done}": Made(text.encode(), meant.encode())
        for number, (done, text, meant) in enumerate(cases)
    }


_MAKE = """
import json, random, sys
from records import user, asst, tr, tu, u, ts, ENVL, SID
BODY
for n in range(int(sys.argv[2])):
    r = random.Random(int(sys.argv[1]) * 1_000_003 + n)
    records, blows = Gen(r).make(), []
    lines = [json.dumps(x, ensure_ascii=False, separators=(",", ":")) for x in records]
    text = meant = "\\n".join(lines) + "\\n"
    if r.random() >= float(sys.argv[3]):
        text, blows = damage(r, records)
    print(json.dumps([blows, text, meant]))
"""
