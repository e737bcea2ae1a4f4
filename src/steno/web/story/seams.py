"""Compactions: boxes between turns, and among the steps of a turn that went on behind one."""

from typing import TYPE_CHECKING

import msgspec
from markupsafe import Markup

from steno.report import words
from steno.safe.html import Html
from steno.session.story.compactions import Compaction, sizes_of, summary_text
from steno.web.paint import duration, part
from steno.web.render.markdown import markdown

if TYPE_CHECKING:
    from steno.session.story.turns import Turn
    from steno.web.story.steps import Manner
    from steno.web.story.tale import Tale

__all__ = ["Seam", "own_address", "seam_html", "seam_of"]


class Seam(msgspec.Struct):
    """Where the conversation was compacted."""

    id: str
    clock: str
    word: str
    figures: str
    why: str
    kept: str
    summary: Markup | None = None
    summary_raw: str = ""
    dropped: str = ""
    raw: str = ""
    within: bool = False
    """Whether it stands among the steps of a turn."""
    kind: str = "seam"


def _kept(seam: Compaction) -> str:
    """Return what a compaction kept of the conversation before it."""
    said = words.kept_messages(seam.messages_before, seam.messages_kept, seam.ratio)
    if said or not seam.kept:
        return said
    return f"{words.count(len(seam.kept), 'record')} kept word for word"


def seam_of(seam: Compaction, before: "Turn | None", tale: "Tale", manner: "Manner") -> Seam:
    """Return a compaction; `before` is the turn that it came behind."""
    record = tale.transcript.record(seam.boundary)
    why = {"auto": "automatic", "manual": "asked for"}.get(seam.trigger, seam.trigger)
    took = f"took {duration(seam.duration)}" if seam.duration else ""
    number = tale.seam_numbers.get(seam.boundary.index)
    made = Seam(
        f"c{number}" if number else "",
        words.clock(record.time.timestamp()) if record.time else "",
        "Compacted" if seam.kind == "full" else "Old results dropped",
        words.shrunk(*sizes_of(seam)),
        ", ".join(each for each in (why, took) if each),
        _kept(seam),
        raw=manner.links.record(manner.key, seam.boundary.offset, tale.agent),
    )
    if seam.summary is not None:
        text = summary_text(tale.transcript, seam)
        made.summary = markdown(text) if text else None
        made.summary_raw = manner.links.record(manner.key, seam.summary.offset, tale.agent)
    if before is not None:
        made.dropped = own_address(tale, manner, before.number)
    return made


def seam_html(seam: Compaction, tale: "Tale", manner: "Manner", *, depth: int) -> Html:
    """Return a compaction that stands among steps; inside of another step no link leads to it."""
    made = seam_of(seam, None, tale, manner)
    made.within = True
    if depth:
        made.id = ""
    return Html(part("session-seam.html.j2", piece=made))


def own_address(tale: "Tale", manner: "Manner", turn: int, detail: str = "") -> str:
    """Return the address of a turn."""
    wanted = detail or ("" if manner.detail == "steps" else manner.detail)
    if tale.agent:
        return manner.links.agent(manner.key, tale.agent, f"t{turn}", turn=turn, detail=wanted)
    return manner.links.session(manner.key, f"t{turn}", turn=turn, detail=wanted)
