"""New bytes of a session → what to tell: prompts, steps and their outcomes, words, ends.

    follower = Follower()
    for event in follower.feed(data): …

The file is followed in the order it is written, by the same rules and in the same words as a
finished session is told. However the bytes are cut, the events are the same.
"""

from collections import deque
from collections.abc import Iterator
from typing import Final

from steno.format.blocks import Text, read_blocks
from steno.format.lines import LINE_CAP
from steno.format.loose import REFUSED, loose
from steno.format.records import Gap, Piece, Record
from steno.format.source import BytesSource
from steno.format.tool_catalogue import AGENT_TOOLS
from steno.session.converted_feed import ConvertedFeed
from steno.session.events import Brief, Event
from steno.session.feed import Feed
from steno.session.nodes import Node, read_node
from steno.session.recall import remember
from steno.session.story.prompts import tagged
from steno.session.story.steps import Step, one_line
from steno.session.transcript import Transcript
from steno.session.voice import Voice

__all__ = ["Follower"]

# How much is remembered of a session that is followed for days; beyond that the oldest goes.
_RECORDS: Final = 1 << 16
"""Of records that were told: one that is copied from further back is told again."""
_CALLS: Final = 512
"""Of calls without a result: the record of an older one cannot be had with its outcome."""
_AGENTS: Final = 1024
"""Of sub-agents: an older one has no name any more, and begins anew inside the file."""
_QUEUED: Final = 256
"""Of prompts that were typed: an older one is told again when it is taken up."""


class _Kept(Transcript):
    """The records that somebody may still ask for: those just told, and calls without a result."""

    def __init__(self) -> None:
        super().__init__(BytesSource(b""), [], [])
        self.open: dict[str, Record] = {}
        self.fresh: dict[int, Record] = {}

    def record(self, node: Node) -> Record:
        """Return a record that was told in the last portion, or whose call was answered in it."""
        held = self.fresh.get(node.offset)
        return held if held is not None else super().record(node)

    def turn_page(self) -> None:
        """Let go of what was told."""
        self.fresh.clear()

    def keep(self, record: Record, node: Node) -> None:
        """Keep a record while it is told, a call until it is answered."""
        self.fresh[node.offset] = record
        for name in node.uses:
            remember(self.open, name, record, _CALLS)
        for name in node.results:
            call = self.open.pop(name, None)
            if call is not None:
                self.fresh[call.offset] = call


class Follower:
    """One file, followed. `agent` says that it is a sub-agent's own.

    What it remembers is bounded, but for the steps of the turn that is told and, in the story, one
    step for each call.
    """

    def __init__(self, start: int = 0, *, agent: bool = False, cap: int = LINE_CAP) -> None:
        self._feed = Feed(start, cap=cap)
        self._converted = ConvertedFeed()
        self._agent = agent
        self._main = Voice("", agent=agent, whole=not start)
        self._inline: dict[str, Voice] = {}
        self._groups: dict[str, str] = {}
        self._seen: dict[str, int] = {}
        self._count = 0
        self._waiting: deque[str] = deque(maxlen=_QUEUED)
        self.pages: Transcript = _Kept()
        """Gives back the records of the events that were told last."""
        self.briefs: dict[str, Brief] = {}
        """What sub-agents were started as, by the id of the call and by the prompt they got."""
        self.title = ""
        self._named = False
        self.project = ""
        self.session_id = ""

    def feed(self, data: bytes) -> list[Event]:
        """Take in the next bytes of the file and return what they tell."""
        if isinstance(self.pages, _Kept):
            self.pages.turn_page()
        pieces = self._converted.take(self._feed.take(data))
        return [event for piece in pieces for event in self._piece(piece)]

    def _piece(self, piece: Piece) -> Iterator[Event]:
        if isinstance(piece, Gap):
            if piece.damage:
                yield Event(kind="damage", size=piece.length, text=piece.damage[0].id)
            return
        record = piece
        node = read_node(record, self._count)
        self._count += 1
        self._learn(record, node)
        if record.type == "queue-operation" and not node.uuid:
            yield from self._queue(record)
        elif record.type == "cost-state":
            yield from self._main.left(record)
        if not (node.uuid or record.role) or self._told_before(record, node):
            return
        if isinstance(self.pages, _Kept):
            self.pages.keep(record, node)
        for event in self._voice(node).take(record, node):
            if not self._is_repeated(event):
                yield event

    def _told_before(self, record: Record, node: Node) -> bool:
        """Whether the very same record was told; clients copy some when they resume."""
        if not node.uuid:
            return False
        digest = hash(record.line)
        same = self._seen.get(node.uuid) == digest
        remember(self._seen, node.uuid, digest, _RECORDS)
        return same

    def _voice(self, node: Node) -> Voice:
        if self._agent or not node.sidechain:
            return self._main
        name = node.agent_id or self._groups.get(node.parent or "") or f"@{node.index}"
        if node.uuid:
            remember(self._groups, node.uuid, name, _RECORDS)
        voice = self._inline.get(name) or Voice(name, agent=True, whole=True)
        remember(self._inline, name, voice, _AGENTS)
        return voice

    # What the session says about itself

    def _learn(self, record: Record, node: Node) -> None:
        self.session_id = self.session_id or record.session_id or ""
        self.project = self.project or record.envelope.cwd or ""
        own = record.type == "custom-title"
        if own or (record.type == "ai-title" and not self._named):
            title = record.fields.get("customTitle" if own else "aiTitle")
            if isinstance(title, str) and title:
                self.title, self._named = title, own
        for block in record.tool_uses if node.uses else ():
            if block.name in AGENT_TOOLS:
                asked = {name: said for name, said in block.input.items() if isinstance(said, str)}
                brief = Brief(asked.get("subagent_type", ""), asked.get("description", ""))
                for name in (block.id, asked.get("prompt", "").strip()):
                    remember(self.briefs, name, brief, 2 * _AGENTS)

    @property
    def asked(self) -> str:
        """The first prompt."""
        return self._main.asked

    def brief_of(self, agent: str) -> Brief:
        """Return what a sub-agent inside this file was started as."""
        voice = self._inline.get(agent)
        return self.briefs.get(voice.asked, Brief()) if voice is not None else Brief()

    # What was typed meanwhile

    def _queue(self, record: Record) -> Iterator[Event]:
        """Tell a prompt when it is typed; some clients write it nowhere else."""
        envelope = record.envelope
        if envelope.operation != "enqueue" or not envelope.content:
            return
        try:
            blocks = read_blocks(loose(envelope.content))
        except REFUSED:
            return
        text = "\n\n".join(block.text for block in blocks if isinstance(block, Text))
        if not text.strip() or tagged(text) is not None:
            return
        self._waiting.append(one_line(text))
        step = Step(kind="queued", verb="Queued", subject=one_line(text), started=record.time)
        yield Event(kind="queued", time=record.time, turn=self._main.number, step=step, text=text)

    def _is_repeated(self, event: Event) -> bool:
        """Whether it is a prompt taken up by the running turn, told when it was typed."""
        subject = event.step.subject if event.kind == "queued" and event.step else None
        if subject is None or subject not in self._waiting:
            return False
        self._waiting.remove(subject)
        return True
