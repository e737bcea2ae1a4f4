"""Repair: stages that each mend one thing, run over and over until none has anything to do.

Each stage looks at the file as the stage before left it, so none needs to know of the others, and
a file that was repaired is one on which no stage has anything to do: repairing it again changes
nothing, and a sound file comes out as it went in, byte for byte.
"""

from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

import msgspec

from steno.check.graph import Graph
from steno.check.repair.beginning import mend_beginning
from steno.check.repair.chain import mend_chain
from steno.check.repair.compaction import mend_compaction
from steno.check.repair.content import mend_content
from steno.check.repair.conversion import convert
from steno.check.repair.edits import Drafts, Edit, Left
from steno.check.repair.ids import mend_ids
from steno.check.repair.images import mend_images
from steno.check.repair.leaf import mend_leaf
from steno.check.repair.lines import mend_lines
from steno.check.repair.shape import mend_shape
from steno.check.repair.tools import mend_tools
from steno.format.records import Gap, Record
from steno.format.source import BytesSource, Source
from steno.session.nodes import Node
from steno.session.resume.clients import LATEST, Client, client_for
from steno.session.transcript import Transcript, load

__all__ = ["Repaired", "Stage", "Workshop", "repair", "repair_bytes", "stages_for"]

Stage = Callable[[Drafts], None]
Workshop = Callable[[Iterable[bytes]], Source]
"""Where a stage's file is put: it takes the bytes and gives them back as a source."""
_RUNS: Final = 400


class Repaired(msgspec.Struct):
    """What a repair came to."""

    transcript: Transcript
    """The file as it is now; the one it was when there was nothing to do."""
    edits: list[Edit]
    settled: bool
    """Whether nothing is left that a stage would mend."""
    left: tuple[Left, ...] = ()
    """Messages that the client came to before and no longer does."""
    endless: bool = False
    """Whether there was still something to mend when the repair had gone on for long enough."""

    @property
    def lost(self) -> list[str]:
        """What the new file no longer holds, in words."""
        return [edit.lost for edit in self.edits if edit.lost]

    @property
    def data(self) -> bytes:
        """The bytes of the new file; for files that fit in memory."""
        return b"".join(self.transcript.source.chunks())


def stages_for(goal: str | None, client: Client, written: datetime) -> tuple[Stage, ...]:
    """Return the stages that make a file resume in a client, in their order.

    `goal` is the record that the session is to go on from, if that is known.
    """
    return (
        mend_lines,
        lambda drafts: mend_shape(drafts, written=written),
        mend_ids,
        lambda drafts: mend_chain(drafts, client=client),
        mend_compaction,
        mend_content,
        mend_images,
        mend_tools,
        lambda drafts: mend_beginning(drafts, client=client),
        lambda drafts: mend_leaf(drafts, client=client, goal=goal),
    )


def repair(
    graph: Graph,
    stages: Sequence[Stage],
    workshop: Workshop,
    *,
    client: Client = LATEST,
    first: Iterable[Stage] = (),
    done: Callable[[], None] = lambda: None,
) -> Repaired:
    """Run the stages in turn, each until it is content, and on until all are.

    What comes `first` is done once, before anything else. `done` is called behind every stage. A
    stage that does the very same again never comes to an end: the repair does, unsettled. What
    leaves the conversation is told as `client` sees it.
    """
    bench = _Bench(graph, workshop, client)
    for stage in first:
        bench.run(stage)
        done()
    bench.begin()
    content = at = 0
    before: dict[int, list[Edit]] = {}
    stuck = False
    for _ in range(_RUNS):
        if edits := bench.run(stages[at]):
            # Once more, before the next one builds on what is only half done.
            content = 0
            stuck = edits == before.get(at)
            if stuck:
                break
            before[at] = edits
        else:
            content += 1
            at = (at + 1) % len(stages)
        done()
        if content == len(stages):
            break
    settled = content == len(stages)
    return Repaired(
        bench.graph.transcript,
        bench.edits,
        settled,
        bench.left(),
        endless=not settled and not stuck,
    )


class _Bench:
    """The file as it stands, and what was done to it so far."""

    def __init__(self, graph: Graph, workshop: Workshop, client: Client) -> None:
        self.graph = graph
        self.edits: list[Edit] = []
        self._workshop = workshop
        self._client = client
        self._lines = _Lines()
        self._spoken: list[Left] | None = []
        self._unlinked: dict[str, str | None] = {}

    def begin(self) -> None:
        """Take the conversation as it stands for what there was to mend."""
        self._spoken = None

    def run(self, stage: Stage) -> list[Edit]:
        """Let one stage do its work; return what that was."""
        drafts = Drafts(self.graph, self._lines.of(self.graph.transcript), self._unlinked)
        stage(drafts)
        if not drafts:
            return []
        if self._spoken is None:
            self._spoken = [Left(drafts.line(node), node.uuid or "") for node in self._messages()]
        self.edits.extend(drafts.edits)
        self.graph = Graph(load(self._workshop(self._lines.followed(drafts))))
        self._unlinked = {**self._unlinked, **drafts.unlinked}
        return drafts.edits

    def _messages(self) -> list[Node]:
        """Return the messages of the conversation, and those that the client takes for some."""
        read = self.graph.readings.of(self._client).chain or ()
        others = (node for node in read if node.is_message)
        found = {node.index: node for node in (*self.graph.messages, *others)}
        return [found[index] for index in sorted(found)]

    def left(self) -> tuple[Left, ...]:
        """Return what there was to mend that is not said any more, and was not taken out."""
        if not self._spoken:
            return ()
        here = {node.uuid for node in self._messages()}
        out = {edit.uuid for edit in self.edits if edit.action in ("remove", "set aside")}
        # Of several records under one id, another may still be in the file: that is the one meant.
        kept = self.graph.by_uuid
        here |= out.difference(kept)
        line_of = self._lines.of(self.graph.transcript)
        return tuple(
            Left(line_of(kept[each.uuid].offset), each.uuid) if each.uuid in kept else each
            for each in self._spoken
            if each.uuid and each.uuid not in here
        )


class _Lines:
    """Which line of the first file each line of the present one comes from."""

    def __init__(self) -> None:
        self._origin: array[int] | None = None

    def of(self, transcript: Transcript) -> Callable[[int], int]:
        """Return a function from an offset in the present file to a line of the first one."""
        starts: dict[int, int] = {}

        def line(offset: int) -> int:
            if not starts:
                starts.update(_numbered(transcript))
            number = starts.get(offset, 0)
            return number if self._origin is None or not number else self._origin[number - 1]

        return line

    def followed(self, drafts: Drafts) -> Iterator[bytes]:
        """Yield the drafted file and remember where its lines come from."""
        line_of = self.of(drafts.transcript)
        origin = array("L")
        for offset, data in drafts.written():
            origin.extend([line_of(offset)] * data.count(b"\n"))
            yield data
        self._origin = origin


def _numbered(transcript: Transcript) -> Iterator[tuple[int, int]]:
    line = 1
    for piece in transcript.pieces():
        yield piece.offset, line
        end = piece.ending if isinstance(piece, Record) else _last_byte(transcript, piece)
        line += end.endswith(b"\n")


def _last_byte(transcript: Transcript, gap: Gap) -> bytes:
    return transcript.source.read(gap.offset + gap.length - 1, 1)


def repair_bytes(data: bytes, *, client: str | Client = LATEST, written: float = 0.0) -> Repaired:
    """Repair a file held in memory."""
    habits = client_for(client) if isinstance(client, str) else client
    graph = Graph(load(BytesSource(data)))
    goal = graph.leaf.uuid if graph.leaf is not None else None
    stages = stages_for(goal, habits, datetime.fromtimestamp(written, UTC))
    first = (convert,) if graph.transcript.is_converted else ()
    return repair(
        graph, stages, lambda chunks: BytesSource(b"".join(chunks)), client=habits, first=first
    )
