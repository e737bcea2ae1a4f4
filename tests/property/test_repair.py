"""Whatever happens to a session, a repair of it settles, resumes, and finds nothing to do again."""

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.builders import VERSIONS, session, text, thinking, tool

from steno.check.checkup import check
from steno.check.repair.repair_job import repair_bytes
from steno.format.lines import read_bytes
from steno.format.source import BytesSource
from steno.session.resume.api_rules import find_breaches
from steno.session.resume.clients import LATEST
from steno.session.resume.replay import as_resumed

_NOTHING = {"chain.empty"}


def story(version: str) -> bytes:
    made = session(version, seed="blows").user("Where?")
    made.assistant(thinking("Look."), text("I look."), tool("Read", file_path="/a.py"))
    made.result("x = 1").assistant("There.").done().user("Plot it.")
    made.assistant(tool("Bash", command="plot"), tool("Grep", pattern="x")).results("ok", "a.py")
    return made.assistant("Plotted.").done().user("And now?").assistant("All.").done().bytes()


STORIES = {version: story(version) for version in VERSIONS}
FIELDS = ("parentUuid", "uuid", "timestamp", "message", "type", "isSidechain", "sessionId")
BLOCK_FIELDS = ("type", "id", "tool_use_id", "name", "input", "text", "content", "signature", "source")
VALUES = st.sampled_from([None, "", 0, [], {}, True, "x", [5], {"type": []}, "bbbbbbbb-0000-4000-8000-00000000dead"])


@st.composite
def beaten(draw: st.DrawFn) -> bytes:
    """A session after a few blows to its bytes, its lines and its records."""
    data = STORIES[draw(st.sampled_from(VERSIONS))]
    for _ in range(draw(st.integers(1, 5))):
        lines = data.splitlines(keepends=True) or [b""]
        at = draw(st.integers(0, len(lines) - 1))
        match draw(st.sampled_from(["cut", "drop", "copy", "move", "glue", "zero", "block", "field"])):
            case "cut":
                lines[at] = lines[at][: draw(st.integers(0, len(lines[at])))]
            case "drop":
                del lines[at]
            case "copy":
                lines.insert(draw(st.integers(0, len(lines))), lines[at])
            case "move":
                line = lines.pop(at)
                lines.insert(draw(st.integers(0, len(lines))), line)
            case "glue":
                lines[at] = lines[at].rstrip(b"\n")
            case "zero":
                lines[at] = bytes(draw(st.integers(1, 300))) + lines[at]
            case "block":
                lines[at] = draw(dented(lines[at]))
            case _:
                lines[at] = draw(changed(lines[at], lines))
        data = b"".join(lines)
    return data


@st.composite
def changed(draw: st.DrawFn, line: bytes, lines: list[bytes]) -> bytes:
    """A record with one field of another value, perhaps that of another record."""
    record, other = _read(line), _read(draw(st.sampled_from(lines)))
    if record is None:
        return line
    field = draw(st.sampled_from(FIELDS))
    named = (other or {}).get("uuid")
    record[field] = draw(st.one_of(VALUES, st.just(named)))
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


@st.composite
def dented(draw: st.DrawFn, line: bytes) -> bytes:
    """A message with one field of a block, or a block, or all of its content of another value."""
    record = _read(line)
    message = (record or {}).get("message")
    content = message.get("content") if isinstance(message, dict) else None
    if record is None or not isinstance(message, dict):
        return line
    blocks = content if isinstance(content, list) else []
    at = draw(st.integers(-1, len(blocks) - 1))
    if at < 0:
        message["content"] = draw(VALUES)
    elif isinstance(blocks[at], dict) and draw(st.booleans()):
        blocks[at][draw(st.sampled_from(BLOCK_FIELDS))] = draw(VALUES)
    else:
        blocks[at] = draw(VALUES)
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


def _read(line: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


@settings(max_examples=150)
@given(beaten())
def test_a_beaten_session_is_mended(data: bytes) -> None:
    done = repair_bytes(data)
    mended = done.data
    assert done.settled
    assert sum(piece.length for piece in read_bytes(mended)) == len(mended)
    found = {each.id for each in check(BytesSource(mended)).findings if each.severity == "error"}
    sent = as_resumed(done.transcript, LATEST, prompt="Go on.")
    if sent is None:
        assert found & _NOTHING
    else:
        assert found == set()
        assert find_breaches(sent) == []
    assert repair_bytes(mended).edits == []
