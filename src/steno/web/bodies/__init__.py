"""What is inside a step, and what a single record holds."""

import msgspec
from markupsafe import Markup

from steno.format.records import Gap, Record
from steno.session.story.steps import Step
from steno.session.transcript import Transcript
from steno.web.links import Links
from steno.web.render.code import code_block

__all__ = ["About", "body_of", "gap_view", "record_view"]


class About(msgspec.Struct):
    """Where a step or record stands, and how much of it is wanted."""

    key: str
    agent: str
    transcript: Transcript
    links: Links
    full: bool = False
    """Show everything, not only the first lines."""
    begin: int = 0
    """Where in a text, or in the rows of a diff, to begin."""
    side: bool = False
    """Show changes side by side."""
    here: str = ""
    """What addresses call the thing inside its session."""


def body_of(step: Step, about: About) -> Markup:
    """Return what is inside an opened step."""
    nodes = [node for node in (step.call, step.result) if node is not None]
    return Markup("").join(record_view(about.transcript.record(node), about) for node in nodes)


def record_view(record: Record, about: About) -> Markup:
    """Return one record as tidy JSON."""
    del about
    try:
        text = msgspec.json.format(record.line, indent=2).decode("utf-8", "replace")
    except msgspec.MsgspecError:
        text = record.line.decode("utf-8", "replace")
    return Markup('<div class="box">{}</div>').format(code_block(text, "json"))


def gap_view(gap: Gap, about: About) -> Markup:
    """Return bytes that are no record."""
    del about
    return Markup('<div class="box">{}</div>').format(
        code_block(gap.head.decode("utf-8", "replace"))
    )
