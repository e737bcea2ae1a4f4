"""The course of a conversation: its figures, counted along while a file is read.

Nearly every session is plain: each record goes on from the one before, nobody went back, nothing is
missing. Of such a session the figures are counted here, record by record, as
`steno.session.story` tells it; what must be kept in mind is little, however long it gets. Whatever
is not plain makes the course `loose`: then the session is told in full, and counted by
`steno.session.story.figures`, and from there on it may be plain again. When in doubt it is loose:
that costs time, and is never wrong.
"""

from typing import Final, cast

import msgspec

from steno.format.values import measured_time
from steno.index.lines import Block, Line
from steno.session.story.figures import Figures
from steno.session.story.prompts import FAINT, STARTS, Origin
from steno.session.story.usage import SYNTHETIC

__all__ = ["Course", "calls_of"]

_CONVERSES: Final = frozenset(("user", "assistant", "system", "attachment"))
_LINKS: Final = _CONVERSES | {"progress"}
_CALLS: Final = frozenset(("tool_use", "server_tool_use"))
_THOUGHTS: Final = frozenset(("thinking", "redacted_thinking"))
_NEAR: Final = 256
"""How many records may stand between two messages."""


class Scene(msgspec.Struct, gc=False):
    """The turn that is going on."""

    begun: bool = False
    """Whether any record is in it."""
    origin: Origin | None = None
    answered: bool = False
    seam: bool = False
    """Whether it begins with a compaction."""
    started: int | None = None
    ended: int | None = None
    measured: int | None = None
    """How long it took, as the client says."""
    erring: bool = False
    """Whether the last thing in it is an error of the API."""
    murky: bool = False
    """Whether something came since that may be the last thing instead."""
    retried: bool = False
    """Whether that error was tried again."""
    pending: int = 0
    """Failed steps that were none after all, if an answer comes."""

    @property
    def faint(self) -> bool:
        """Whether nothing has come of it yet."""
        return not self.answered and (self.origin is None or self.origin in FAINT)

    @property
    def took(self) -> int:
        """How many milliseconds it took."""
        if self.measured is not None:
            return self.measured
        if self.started is None or self.ended is None:
            return 0
        return max(0, self.ended - self.started)

    def work(self, time: int | None) -> None:
        """Note that it lasts at least until now."""
        if time is None:
            return
        self.started = time if self.started is None else self.started
        self.ended = time if self.ended is None else max(time, self.ended)


class Course(msgspec.Struct):
    """What was counted so far; the turn that is going on is not among the turns yet."""

    turns: int = 0
    worked: int = 0
    steps: int = 0
    failed: int = 0
    compactions: int = 0
    loose: bool = False
    told: Figures | None = None
    """The figures when it was last told in full."""
    mark: Figures = Figures()
    """What was counted here by then."""
    near: list[str] = []
    """The records that the next one may hang on: the last message, and what came with it."""
    response: str = ""
    """The response that these belong to."""
    uses: list[str] = []
    """What that response called."""
    scene: Scene = msgspec.field(default_factory=Scene)

    def figures(self) -> Figures:
        """Return the figures so far: what was told, and what was counted since."""
        now = self._counted()
        if self.told is None:
            return now
        told, mark = self.told, self.mark
        return Figures(
            turns=told.turns + now.turns - mark.turns,
            steps=told.steps + now.steps - mark.steps,
            failed=told.failed + now.failed - mark.failed,
            worked=told.worked + now.worked - mark.worked,
            compactions=told.compactions + now.compactions - mark.compactions,
            agents=told.agents,
            branches=told.branches,
        )

    def tell(self, figures: Figures, leaf: str) -> None:
        """Take the figures of the whole; from `leaf` on the conversation goes on."""
        self.told, self.mark = figures, self._counted()
        # Else somebody went back, and whatever comes next may be anywhere.
        self.loose = leaf not in self.near

    def _counted(self) -> Figures:
        scene = self.scene
        counts = scene.begun and not self._joins
        return Figures(
            turns=self.turns + counts,
            steps=self.steps,
            failed=self.failed,
            worked=self.worked + scene.took * counts,
            compactions=self.compactions,
        )

    # Where a record hangs

    def follow(self, line: Line, *, odd: bool) -> bool:
        """Take in where a record hangs; say whether it is part of the conversation."""
        kind = line.type or ""
        if line.is_sidechain:
            # A sub-agent inside the file of its session.
            self.loose = True
            return False
        if line.uuid is None:
            if kind == "last-prompt":
                self.loose = self.loose or bool(line.leaf_uuid and line.leaf_uuid not in self.near)
            elif kind in _CONVERSES:
                self.loose = True
            return False
        hangs = self._hangs(line, line.uuid, kind)
        if odd or not hangs or kind not in _LINKS or self._goes_on(kind):
            self.loose = True
        return True

    def _goes_on(self, kind: str) -> bool:
        """Whether a turn goes on behind a compaction, so that it began before what is counted."""
        scene = self.scene
        unasked = scene.seam and scene.origin in (None, "summary")
        return unasked and (scene.answered or kind == "assistant")

    def _hangs(self, line: Line, name: str, kind: str) -> bool:
        """Go on with a record; say whether it hangs on what came last."""
        parent = line.parent_uuid
        if parent is None and kind == "system" and line.subtype == "compact_boundary":
            parent = line.logical_parent_uuid
        if name in self.near or (self.near and parent not in self.near):
            if kind == "progress":
                return True
            self.near, self.uses, self.response = [name], calls_of(line)[0], ""
            return False
        if kind == "assistant" or (kind == "user" and not line.is_meta):
            uses, results = calls_of(line)
            message = (line.message.id if line.message is not None else None) or ""
            if results:
                if not all(call in self.uses for call in results):
                    self.near.append(name)
                    return False
            elif not message or message != self.response:
                self.near, self.uses, self.response = [], [], message
            self.uses += uses
        self.near.append(name)
        if len(self.near) > _NEAR:
            del self.near[0]
            return False
        return True

    # What it says

    def said(self, origin: Origin, time: int | None) -> None:
        """Take in what a person, or the client, says."""
        scene = self.scene
        if origin in STARTS or (origin == "summary" and scene.faint):
            self._begin(origin, time)
            return
        self.noted()
        if origin == "interrupt":
            scene.work(time)

    def _begin(self, origin: Origin, time: int | None) -> None:
        scene = self.scene
        if scene.faint and (not self.turns or scene.seam):
            self.loose = self.loose or scene.erring
            scene.begun, scene.origin, scene.started, scene.ended = True, origin, time, None
            return
        self._close()
        self.scene = Scene(begun=True, origin=origin, started=time)

    def seam(self) -> None:
        """Take in a compaction."""
        self.compactions += 1
        # What introduces the first turn may be nothing, or a turn of its own.
        self.loose = self.loose or (not self.turns and self.scene.faint)
        self._close()
        self.scene = Scene(begun=True, seam=True)

    @property
    def _joins(self) -> bool:
        """Whether what goes on belongs to the turn before."""
        return bool(self.turns) and self.scene.faint

    def _close(self) -> None:
        if self.scene.begun and not self._joins:
            self.turns += 1
            self.worked += self.scene.took

    def answered(self, line: Line, time: int | None) -> None:
        """Take in a line of a response."""
        body, scene = line.message, self.scene
        scene.begun = True
        if body is None:
            self.loose = True
            return
        if body.model == SYNTHETIC or line.is_api_error_message:
            # Nobody calls a tool in the model's name.
            self.loose = self.loose or bool(calls_of(line)[0])
            if not line.is_api_error_message:
                self.noted()
                return
            scene.answered = True
            self.erred(time, retried=False)
            return
        scene.answered = True
        self.failed -= scene.pending
        self.loose = self.loose or (scene.murky and bool(scene.pending))
        scene.pending = 0
        if self._speaks(body.content):
            scene.work(time)
            scene.erring = False
        else:
            self.loose = self.loose or scene.erring

    def _speaks(self, content: str | list[Block] | None) -> bool:
        """Count the calls in a response; say whether there is anything in it."""
        if content.__class__ is str:
            return bool(cast("str", content).strip())
        spoke = False
        for block in cast("list[Block]", content or ()):
            if block.type in _CALLS:
                self.steps += 1
                spoke = True
            elif block.type == "text":
                spoke = spoke or bool((block.text or "").strip())
            elif block.type in _THOUGHTS:
                spoke = True
            else:
                self.loose = True
        return spoke

    def came(self, time: int | None, *, known: bool, failed: int) -> None:
        """Take in the results of calls; `known` says that each was waited for."""
        self.scene.begun = True
        self.loose = self.loose or not known
        self.failed += failed
        self.scene.work(time)

    def erred(self, time: int | None, *, retried: bool) -> None:
        """Take in an error of the API; those in a row are one step."""
        scene = self.scene
        scene.begun = True
        scene.work(time)
        if not scene.erring:
            self.steps += 1
            self.failed += 1
            scene.erring, scene.retried, scene.murky = True, False, False
        self.loose = self.loose or scene.murky
        if retried and not scene.retried:
            scene.retried = True
            scene.pending += 1

    def measured(self, duration: float | None) -> None:
        """Take in how long a turn took."""
        self.scene.begun = True
        took = measured_time(duration)
        if took is not None:
            self.scene.measured = round(took)

    def noted(self) -> None:
        """Take in whatever leaves no more than a note."""
        self.scene.begun = True
        self.scene.murky = self.scene.erring or bool(self.scene.pending)


def calls_of(line: Line) -> tuple[list[str], list[str]]:
    """Return the calls that a message makes, and those that it answers."""
    content = line.message.content if line.message is not None else None
    if content.__class__ is not list:
        return [], []
    blocks = cast("list[Block]", content)
    uses = [block.id or "" for block in blocks if block.type == "tool_use"]
    return uses, [block.tool_use_id or "" for block in blocks if block.type == "tool_result"]
