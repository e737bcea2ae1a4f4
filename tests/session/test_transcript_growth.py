"""A file that is read in parts gives what it gives when it is read at once."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from tests.builders import Session as Made
from tests.builders import session, tool
from tests.builders.everything import everything

from steno.format.source import BytesSource
from steno.session.session import Session
from steno.session.transcript import Node, Transcript, load, load_growth
from steno.session.turns.subagents import SubagentFile, Thread

if TYPE_CHECKING:
    from steno.session.turns.turn_builder import Turn

MODE = b'{"type":"mode","mode":"normal","sessionId":"s"}'
TAG = b'{"type":"tag","tag":"x","sessionId":"s","uuid":"u"}'
PIECES = st.sampled_from(
    [
        *(MODE, TAG, TAG[:20], MODE[10:], b"\n", b"\n\n", b"\r\n", b"\0" * 7, b"\xef\xbb\xbf"),
        *(MODE + b"\n", TAG + b"\n", b'{"type":"tag","tag":NaN}\n', b"x\n", b"x" * 300 + b"\n"),
    ]
)


def nodes_of(transcript: Transcript) -> list[Any]:
    return [
        *((msgspec.structs.astuple(node)) for node in transcript.nodes),
        *((gap.offset, gap.length, gap.head, gap.damage) for gap in transcript.gaps),
        *transcript.notes.items(),
    ]


@given(st.lists(PIECES, max_size=12).map(b"".join), st.lists(st.integers(0, 400), max_size=3))
def test_any_file_read_in_any_parts_has_the_same_records_and_gaps(data: bytes, cuts: list[int]) -> None:
    found = load(BytesSource(b""), cap=200)
    for cut in (*sorted(cuts), len(data)):
        found = load_growth(found, BytesSource(data[: max(cut, found.source.size)]))
    whole = load(BytesSource(data), cap=200)
    assert nodes_of(found) == nodes_of(whole)
    for node in found.nodes:
        assert found.record(node).damage == whole.record(node).damage


def test_what_was_read_is_not_read_again() -> None:
    class Counted(BytesSource):
        """Bytes that know how far back somebody read."""

        first = 1 << 30

        def chunks(self, start: int = 0) -> Iterator[bytes]:
            self.first = min(self.first, start)
            return super().chunks(start)

    data = (MODE + b"\n") * 50
    source = Counted(data + TAG + b"\n")
    before = load(BytesSource(data))
    later = load_growth(before, source)
    assert source.first == len(data)
    assert later.nodes[:50] == before.nodes


# What is told of it


def plain(value: Any) -> Any:
    """Return a value of the story with places in files instead of nodes."""
    match value:
        case Node():
            return value.offset, value.index
        case Thread():
            told = (value.kind, value.call_id, value.status, value.depth, value.prompt)
            return (value.agent_id, told, len(value.nodes), [each.agent_id for each in value.children])
        case msgspec.Struct():
            names = value.__struct_fields__
            return type(value).__name__, [plain(getattr(value, name)) for name in names]
        case list() | tuple():
            return [plain(each) for each in value]
        case _:
            return value


def told(found: Session) -> list[Any]:
    """Return everything that the pages about a session are made of."""
    everyone = found.all_agents
    turns: list[Sequence[Turn]] = [found.turns(), *(each.turns for each in everyone)]
    sides = [(each.nodes, each.fork, each.why, each.turns, each.usage) for each in found.branches]
    return [plain(part) for part in (turns, sides, everyone, found.usage, found.compactions)]


def opened(made: Made, shares: Sequence[float], before: Session | None) -> Session:
    """Open a session of whose files only so much was written yet."""
    files = [data for name, data in made.files().items() if name.endswith(".jsonl")]
    names = [name for name in made.files() if name.endswith(".jsonl")]
    parts = [data[: round(len(data) * share)] for data, share in zip(files, shares, strict=False)]
    sources = [BytesSource(part) for part in parts]
    known = [] if before is None else [before.transcript, *(f.transcript for f in before.agent_files)]
    if before is None:
        read = [load(source) for source in sources]
    else:
        read = [load_growth(old, source) for old, source in zip(known, sources, strict=False)]
    agents = [
        SubagentFile(name.rpartition("agent-")[2].removesuffix(".jsonl"), transcript, None, name)
        for name, transcript in zip(names[1:], read[1:], strict=False)
    ]
    if before is not None:
        return before.grown(read[0], agents)
    return Session(read[0], name=made.session_id, agents=agents)


ALL = [*everything("2.1.325"), *everything("2.0.76")]


@settings(max_examples=15, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(st.data())
def test_any_session_opened_while_it_is_written_is_told_as_if_opened_afterwards(data: st.DataObject) -> None:
    made = data.draw(st.sampled_from(ALL))
    files = sum(name.endswith(".jsonl") for name in made.files())
    shares = [0.0] * files
    found: Session | None = None
    for _ in range(data.draw(st.integers(1, 4))):
        shares = [data.draw(st.floats(share, 1.0)) for share in shares]
        found = opened(made, shares, found)
        if data.draw(st.booleans()):
            told(found)
    found = opened(made, [1.0] * files, found)
    assert told(found) == told(opened(made, [1.0] * files, None))


def test_a_session_written_line_by_line_is_told_as_if_opened_at_each_line() -> None:
    made = session(full=True).turn("one", "ok").command("/cost", says="nothing", local=True)
    made.user("two").assistant(tool("Bash", command="a"), tool("Read", file_path="/b"))
    made.results("x", "y").mark("fork").interrupt().shell("ls", "out").command("/init", says="x")
    made.assistant("after a command").rewind("fork").enqueue("and this").absorb().assistant("yes")
    made.compact("all of it").turn("three", "ok").user("four").assistant(tool("Bash", command="c"))
    made.user("meanwhile").result("late").assistant("hm").command("/cost", says="x", local=True)
    lines = made.bytes().splitlines(keepends=True)
    found: Session | None = None
    for end in range(1, len(lines) + 1):
        data = BytesSource(b"".join(lines[:end]))
        if found is None:
            found = Session(load(data), name=made.session_id)
        else:
            found = found.grown(load_growth(found.transcript, data), ())
        assert told(found) == told(Session(load(data), name=made.session_id)), end


def test_a_session_that_goes_on_reads_no_record_that_was_told(monkeypatch: pytest.MonkeyPatch) -> None:
    made = session(full=True)
    for number in range(20):
        made.user(f"ask {number}").assistant(tool("Bash", command="ls")).result("x").assistant("ok")
    found = opened(made, [1.0], None)
    found.turns()
    known = len(found.transcript.nodes)
    made.user("more").assistant("yes")
    later = opened(made, [1.0], found)
    read: list[int] = []
    once = Transcript.record

    def counted(self: Transcript, node: Node) -> Any:
        read.append(node.index)
        return once(self, node)

    monkeypatch.setattr(Transcript, "record", counted)
    assert len(later.turns()) == 21
    assert min(read) >= known - 1
