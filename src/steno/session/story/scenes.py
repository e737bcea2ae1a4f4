"""A turn in the making: records come in one by one, steps and an answer come out."""

from copy import copy
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal

from steno.format.records import read_time
from steno.session.story.compactions import Compaction
from steno.session.story.prompts import FAINT, Prompt
from steno.session.story.steps import Draft, FileTouch, Kind, Step, one_line
from steno.session.story.usage import Counter

if TYPE_CHECKING:
    from steno.session.nodes import Node

__all__ = ["Scene", "Work"]

_SILENT: Final = frozenset(("note", "hook", "thought"))
"""Kinds that do not come between the words of an answer."""
Work = Literal["", "prompt", "words", "call", "result", "end"]


class Scene:
    """Everything about one turn, while it is read."""

    def __init__(self, compaction: Compaction | None = None) -> None:
        self.compaction = compaction
        self.closing: Compaction | None = None
        """The last compaction at its end, behind which nothing was asked."""
        self.prompt: Prompt | None = None
        self.nodes: list[Node] = []
        self.drafts: list[Draft] = []
        self.counter = Counter()
        self.answered = False
        self.interrupted = False
        self.seconds: float | None = None
        self.started: datetime | None = None
        self.ended: datetime | None = None
        self.last: Work = ""
        self.output: tuple[Node, str] | None = None
        self.trail = 0
        """How many of the last records only introduce what comes next."""
        self._prompt_at = 0

    # Beginning

    @property
    def is_faint(self) -> bool:
        """Whether nothing has come of it yet, so that the next prompt may take it over."""
        faint = self.prompt is None or self.prompt.origin in FAINT
        return faint and not self.answered

    @property
    def is_idle(self) -> bool:
        """Whether nothing was asked of the model: a local command, a shell escape."""
        shell = self.prompt is not None and self.prompt.origin == "shell"
        return (shell and not self.answered) or self.is_faint

    def begin(self, prompt: Prompt) -> None:
        """Put a prompt at its head; one that nothing came of becomes a note."""
        self.demote()
        self.prompt = prompt
        self.started = prompt.time
        self.ended = None
        self.last = "prompt"
        self._prompt_at = len(self.drafts)

    def demote(self) -> None:
        """Make a note of a command that led to no answer."""
        prompt = self.prompt
        self.prompt = None
        if prompt is None or prompt.origin == "summary":
            return
        if prompt.origin == "command":
            draft = Draft("note", prompt.name, prompt.text.removeprefix(prompt.name).strip())
        else:
            draft = Draft("note", "Notification", one_line(prompt.text))
        draft.call, draft.started = prompt.node, prompt.time
        if self.output is not None:
            draft.result, draft.outcome = self.output[0], one_line(self.output[1], 80)
            self.output = None
        self.drafts.insert(self._prompt_at, draft)

    def take_over(self, other: "Scene") -> None:
        """Append another scene that turned out to be no turn of its own."""
        other.demote()
        self.nodes += other.nodes
        self.drafts += other.drafts
        self.interrupted = self.interrupted or other.interrupted

    def note(self, seam: Compaction) -> None:
        """Note that the conversation was compacted while this turn went on."""
        time = read_time(seam.boundary.timestamp)
        self.add("note", "Compacted", seam.trigger, seam.boundary, time).seam = seam

    def close(self, seam: Compaction | None) -> None:
        """Take a compaction for the one at its end; one that was taken for it is noted before."""
        if self.closing is not None and seam is not None:
            self.note(self.closing)
        self.closing = seam or self.closing

    def reopen(self, seam: Compaction) -> None:
        """Go on behind a compaction, and behind the one that seemed to be at its end."""
        self.close(seam)
        self.note(seam)
        self.closing = None

    def hand_over(self, other: "Scene") -> None:
        """Give the records that only introduce the next turn to it."""
        if self.trail:
            other.nodes, self.nodes = self.nodes[-self.trail :], self.nodes[: -self.trail]
            other.drafts, self.drafts = self.drafts[-self.trail :], self.drafts[: -self.trail]
            self.trail = 0

    def copy(self) -> "Scene":
        """Return the same scene, which may be changed while this one goes on; its steps may not."""
        other = copy(self)
        other.nodes, other.drafts = self.nodes.copy(), self.drafts.copy()
        return other

    # Middle

    def add(
        self, kind: Kind, verb: str, subject: str, node: "Node | None", time: datetime | None
    ) -> Draft:
        """Append a step."""
        draft = Draft(kind, verb, subject, node, time)
        self.drafts.append(draft)
        return draft

    def work(self, kind: Work, time: datetime | None) -> None:
        """Note that work was done: the turn lasts at least until now."""
        self.last = kind
        if time is None:
            return
        self.started = self.started or time
        if self.ended is None or time > self.ended:
            self.ended = time

    @property
    def latest(self) -> Draft | None:
        """The last step, of those that are not deleted."""
        return next((draft for draft in reversed(self.drafts) if not draft.is_deleted), None)

    def last_error(self) -> Draft | None:
        """Return the error that has just happened, if nothing came after it."""
        last = self.latest
        return last if last is not None and last.kind == "error" else None

    # End

    def finish(self, *, final: bool) -> tuple[tuple[Step, ...], str, int]:
        """Return the steps, the answer, and how many of the steps came before it.

        What is deleted is among the steps.
        `final` when no turn comes behind this one.
        """
        drafts = self._shown()
        answer = _answer(drafts)
        spoken = {id(draft) for draft in answer}
        counted: set[str] = set()
        made: list[Step] = []
        before = len(drafts)
        cut = self.interrupted or not final
        for draft in drafts:
            if id(draft) in spoken:
                before = len(made)
                continue
            tokens = None
            if draft.message_id and draft.message_id not in counted:
                counted.add(draft.message_id)
                tokens = self.counter.output_of(draft.message_id)
            made.append(draft.step(tokens, cut=cut))
        words = "\n\n".join(draft.text for draft in answer)
        return tuple(made), words, min(before, len(made))

    def _shown(self) -> list[Draft]:
        """Return the steps, with what a command printed where it was typed."""
        if self.output is None:
            return self.drafts
        node, text = self.output
        draft = Draft("note", "Output", one_line(text), call=node)
        return [*self.drafts[: self._prompt_at], draft, *self.drafts[self._prompt_at :]]

    def files(self) -> tuple[FileTouch, ...]:
        """Return the files that were touched, once per file and verb."""
        touched: dict[tuple[str, str], FileTouch] = {}
        for draft in self.drafts:
            touch = draft.touch
            if touch is None or draft.state != "ok":
                continue
            key = (touch.path, touch.verb)
            before = touched.get(key, FileTouch(*key))
            touched[key] = FileTouch(
                *key, before.added + touch.added, before.removed + touch.removed
            )
        return tuple(touched.values())


def _answer(drafts: list[Draft]) -> list[Draft]:
    """Return the words behind the last thing that was done; an error may follow them."""
    answer: list[Draft] = []
    for draft in reversed(drafts):
        if draft.kind == "words":
            answer.append(draft)
        elif draft.kind not in _SILENT and (answer or draft.kind != "error"):
            break
    return answer[::-1]
