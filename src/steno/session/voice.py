"""One conversation of a file that grows: records in, events out, by the rules of the story."""

from collections.abc import Iterator
from typing import Final

import msgspec

from steno.format.blocks import RedactedThinking, Thinking
from steno.format.records import Record
from steno.format.tool_catalogue import AWAITED_TOOLS
from steno.session.events import Ending, Event, Telling
from steno.session.nodes import Node
from steno.session.recall import remember
from steno.session.story.compactions import Compaction, is_seam, seam_of
from steno.session.story.prompts import Prompt
from steno.session.story.scenes import Scene
from steno.session.story.steps import Draft, Step, one_line
from steno.session.story.telling import answered_by
from steno.session.story.turns import Story

__all__ = ["Voice"]

_ENDS: Final = frozenset(("end_turn", "stop_sequence", "max_tokens", "refusal"))
_COUNTED: Final = frozenset(("tool", "agent", "thought", "error", "unknown"))
_PLAIN: Final[dict[str, Telling]] = {
    "tool": "step",
    "agent": "step",
    "thought": "thought",
    "words": "words",
    "queued": "queued",
    "hook": "hook",
    "error": "error",
    "note": "note",
    "unknown": "unknown",
}
_PARENTS: Final = 1 << 16
"""How many records are known to have been gone on from: a prompt that goes back further than that
is not told to."""
_Sign = tuple[str, str, str, int]


class Voice:
    """One conversation of a file: the session's own, or that of a sub-agent inside it.

    It holds the turn that is told and the one before; of the calls of all turns the story keeps
    the steps, because a result may come at any time.
    """

    def __init__(self, name: str, *, agent: bool, whole: bool) -> None:
        self._name = name
        self._whole = whole
        self._seams: dict[int, Compaction] = {}
        self._story = Story({}, self._seams, agent=agent)
        self._before = 0
        self._told = 0
        """How many of the turn's steps have been told: only those behind them can be new."""
        self._named: set[str] = set()
        self._ended: Ending = ""
        self._continued: dict[str, None] = {}
        self.asked = ""
        """The first prompt."""

    @property
    def number(self) -> int:
        """The number of the turn that is told; 0 when it is not known."""
        return self._before + len(self._story.done) + 1 if self._whole else 0

    def take(self, record: Record, node: Node) -> Iterator[Event]:
        """Take in the next record and yield what it tells."""
        story = self._story
        scene = story.now
        last = scene.drafts[-1] if scene.drafts else None
        prompt, sign, interrupted = scene.prompt, _sign(last), scene.interrupted
        seam = seam_of(record, node) if is_seam(node) else None
        if seam is not None:
            self._seams[node.index] = seam
        story.take(record, node)
        now = story.now
        self._seams.clear()
        if now is not scene:
            self._forget()
        if seam is not None:
            yield self._event("seam", record, compaction=seam)
        if now.prompt is not None and now.prompt is not prompt:
            yield from self._turn(record, now.prompt, back=node.parent in self._continued)
        if node.parent and record.role:
            remember(self._continued, node.parent, None, _PARENTS)
        if last is not None and last.result is not node and _sign(last) != sign:
            yield from self._again(record, last)
        yield from self._fresh(record, node, now)
        yield from self._results(record, node, now)
        yield from self._end(record, now, interrupted=now.interrupted and not interrupted)

    def left(self, record: Record) -> Iterator[Event]:
        """Tell that the client was closed."""
        if self._ended != "left":
            self._ended = "left"
            yield self._event("end", record, ending="left")

    def _event(self, kind: Telling, record: Record, **more: object) -> Event:
        plain = Event(kind=kind, time=record.time, turn=self.number, agent=self._name)
        return msgspec.structs.replace(plain, **more)

    def _forget(self) -> None:
        """Let go of the turns before, but for the last, which may still be added to."""
        done = self._story.done
        self._before += max(len(done) - 1, 0)
        del done[:-1]
        # What was handed over from there is passed over again: it is not this record's.
        self._told = 0
        self._named.clear()

    def _turn(self, record: Record, prompt: Prompt, *, back: bool) -> Iterator[Event]:
        self.asked = self.asked or prompt.text.strip()
        self._ended = ""
        yield self._event("turn", record, prompt=prompt, back=back)

    # Steps

    def _again(self, record: Record, draft: Draft) -> Iterator[Event]:
        """Tell a step that something was added to: one more try, a hook that failed after all."""
        if draft.kind not in ("tool", "agent"):
            yield self._event(_PLAIN[draft.kind], record, step=draft.step())

    def _fresh(self, record: Record, node: Node, now: Scene) -> Iterator[Event]:
        thoughts = iter([b for b in record.blocks if isinstance(b, Thinking | RedactedThinking)])
        fresh = now.drafts[self._told :]
        self._told = len(now.drafts)
        for draft in fresh:
            # A note that was put in further up moves some that were told behind the mark.
            if draft.call is not node or draft.is_deleted:
                continue
            text = draft.text
            if draft.kind == "thought":
                block = next(thoughts, None)
                text = block.thinking if isinstance(block, Thinking) else ""
            elif draft.kind == "queued":
                text = draft.subject
            self._ended = "" if draft.kind in _COUNTED or draft.kind == "words" else self._ended
            yield self._event(
                _PLAIN[draft.kind], record, step=draft.step(self._tokens(draft, now)), text=text
            )
        if now.output is not None and now.output[0] is node:
            said = one_line(now.output[1])
            step = Step(kind="note", verb="Output", subject=said, started=record.time, call=node)
            yield self._event("note", record, step=step, text=now.output[1])

    def _tokens(self, draft: Draft, now: Scene) -> int | None:
        """Return what a response cost, with the first step of it that is told."""
        name = draft.message_id
        if not name or name in self._named or draft.state == "open":
            return None
        self._named.add(name)
        return now.counter.output_of(name)

    def _results(self, record: Record, node: Node, now: Scene) -> Iterator[Event]:
        for name in dict.fromkeys((*node.results, *answered_by(record))):
            draft = self._story.call(name)
            if draft is not None and (draft.result is node or draft.state == "unknown"):
                self._ended = ""
                step = draft.step(self._tokens(draft, now))
                yield self._event("outcome", record, step=step)

    # Ends

    def _end(self, record: Record, now: Scene, *, interrupted: bool) -> Iterator[Event]:
        ending = "interrupted" if interrupted else self._ending(record, now)
        if not ending or self._ended in (ending, "left"):
            return
        self._ended = ending
        seconds = now.seconds
        if seconds is None and now.started is not None and now.ended is not None:
            seconds = max(0.0, (now.ended - now.started).total_seconds())
        yield self._event(
            "end",
            record,
            ending=ending,
            steps=sum(draft.kind in _COUNTED for draft in now.drafts),
            duration=seconds,
            usage=now.counter.totals(),
        )

    def _ending(self, record: Record, now: Scene) -> Ending:
        if record.type == "system":
            # A turn that failed or was broken off has its figures told already.
            ends = record.subtype == "turn_duration" and now.last == "end" and not self._ended
            return "answered" if ends else ""
        if record.role != "assistant":
            return ""
        if record.envelope.is_api_error_message:
            return "failed"
        if any(block.name in AWAITED_TOOLS for block in record.tool_uses):
            return "asks"
        stop = record.message.stop_reason if record.message is not None else None
        return "answered" if stop in _ENDS and now.last == "words" else ""


def _sign(draft: Draft | None) -> _Sign:
    if draft is None:
        return "", "", "", 0
    return draft.state, draft.subject, draft.outcome, draft.retries
