"""What is inside of a turn as HTML: a page has hundreds of them, which a template makes dear.

Whatever comes from a session is escaped here, as templates do it by themselves.
"""

from typing import TYPE_CHECKING

from markupsafe import Markup

from steno.report import words
from steno.safe.html import escaped, trusted
from steno.web.render.pieces import icon_of
from steno.web.story.line import steps_html

if TYPE_CHECKING:
    from steno.web.bodies.pictures import Shown
    from steno.web.story.prompts import Asked
    from steno.web.story.turns import TurnBox

__all__ = ["turn_html"]


def turn_html(box: "TurnBox") -> Markup:
    """Return the prompt of a turn, its steps, its answer and its figures."""
    asked = _prompt(box.asked) if box.asked is not None else ""
    answer = f'<div class="prose">{box.answer}</div>\n' if box.answer else ""
    foot = _foot(box) if box.foot or box.interrupted else ""
    return trusted(f"{asked}{steps_html(box.lines)}{answer}{steps_html(box.later)}{foot}")


def _prompt(asked: "Asked") -> str:
    tag = f'<div class="tagline">{escaped(asked.tag)}</div>' if asked.tag else ""
    rest = ""
    if asked.rest:
        summary = f'<summary class="link">All {asked.lines:,} lines</summary>'
        rest = f'<details class="long">{summary}{asked.rest}</details>'
    return f'<div class="prompt">{tag}{asked.shown}{rest}{_attached(asked)}</div>\n'


def _attached(asked: "Asked") -> str:
    if not asked.images and not asked.others:
        return ""
    images = "".join(_image(image, number) for number, image in enumerate(asked.images, 1))
    others = ""
    if asked.others:
        said = words.count(asked.others, "other attachment")
        others = f'<span class="dim">{said}, see the record</span>'
    return f'<div class="attached">{images}{others}</div>'


def _image(image: "Shown", number: int) -> str:
    said = f"Picture {number}: {escaped(image.said)}"
    address = image.address
    if not address:
        return f'<span class="dim">{said}</span>'
    # A picture in itself comes escaped: it is long, and is looked through once.
    shown = address if isinstance(address, Markup) else escaped(address)
    if shown.startswith("data:"):
        return f'<img src="{shown}" alt="{said}">'
    room = f' width="{image.width}" height="{image.height}"' if image.width and image.height else ""
    return f'<a href="{shown}"><img src="{shown}" alt="{said}" loading="lazy"{room}></a>'


def _foot(box: "TurnBox") -> str:
    made = ""
    if box.interrupted:
        made = f'<span class="warn">{icon_of("stop", "sm")} interrupted</span>'
    for figure, of in box.foot:
        if of == "context":
            made += f"<span>context <b>{escaped(figure)}</b></span>"
        else:
            made += f"<span><b>{escaped(figure)}</b> {escaped(of)}</span>"
    if box.cost:
        agents = f", <b>{escaped(box.agents_cost)}</b> by sub-agents" if box.agents_cost else ""
        made += f'<span><b class="money">{escaped(box.cost)}</b>{agents}</span>'
    return f'<footer class="turn-foot">{made}<span class="end">{_doors(box)}</span></footer>\n'


def _doors(box: "TurnBox") -> str:
    more = f'<a href="{escaped(box.more)}">{escaped(box.hidden)}</a>' if box.hidden else ""
    records = f"<span>{escaped(box.records)}</span>"
    if box.raw:
        records = f'<a href="{escaped(box.raw)}">{escaped(box.records)}</a>'
    return f'{more}<a href="{escaped(box.href)}">Link</a>{records}'
