"""The line of a step as HTML. There are very many of them, which a template makes dear.

Whatever comes from a session is escaped here, as templates do it by themselves.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from steno.safe.html import escaped, escaped_text, trusted
from steno.web.render.pieces import icon_of, path_html

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steno.web.story.steps import StepLine

__all__ = ["step_html", "steps_html"]

_ICON: Final = '<svg class="i {}" aria-hidden="true"><use href="#i-{}"/></svg>'
_CHEVRON: Final = _ICON.format("chev sm", "chev")
_STATES: Final = {
    "done": (_ICON.format("st", "check"), "done"),
    "passed": (_ICON.format("st ok", "check"), "passed"),
    "failed": (_ICON.format("st bad", "cross"), "failed"),
    "recovered": (_ICON.format("st warn", "warn"), "recovered"),
    "running": (_ICON.format("st", "run"), "running"),
    "interrupted": (_ICON.format("st", "stop"), "interrupted"),
    "denied": (_ICON.format("st warn", "stop"), "denied"),
    "live": ('<span class="pulse"></span>', "live"),
}
_MINUS: Final = "\N{MINUS SIGN}"


def steps_html(lines: "Sequence[StepLine]") -> Markup:
    """Return steps one below the other."""
    made = [_queued(line) if line.queued else step_html(line) for line in lines]
    return trusted(f'<div class="steps">{"".join(made)}</div>\n' if made else "")


def step_html(line: "StepLine") -> str:
    """Return a step: a line that opens in place. Without script its inside has its own page."""
    body = line.body
    source, inside, opened = "", "", ""
    if line.source:
        source = f' data-src="{escaped(line.source)}" data-raw="{escaped(line.raw)}"'
    if body is not None:
        inside, opened = body, " data-full" if line.shut else " open data-full"
    elif line.href:
        inside = f'<a class="link" href="{escaped(line.href)}">Open this step</a>'
    arg = path_html(line.arg) if line.arg else ""
    say = f'<span class="say">{escaped_text(line.say)}</span>' if line.say else ""
    if line.added or line.removed:
        result = _changes(line.added, line.removed)
    else:
        result = f'<span class="res">{escaped_text(line.result)}</span>' if line.result else ""
    return (
        f'<details class="step {line.classes}" data-stop data-place="{line.place}"{source}{opened}>'
        f'<summary>{_CHEVRON}<svg class="i kind" aria-hidden="true"><use href="#i-{line.icon}"/>'
        f'</svg><span class="what"><b>{escaped_text(line.verb)}</b>{arg}{say}{result}</span>'
        f'<span class="fig tok">{line.tokens}</span><span class="fig">{line.time}</span>'
        f'<span>{_state(line.state)}</span></summary><div class="in">{inside}</div></details>\n'
    )


def _queued(line: "StepLine") -> str:
    """Return a prompt that came while the agent was busy."""
    clock = f" {line.clock}" if line.clock else ""
    door = f'<a class="link end" href="{escaped(line.href)}">Open</a>' if line.href else ""
    return (
        f'<div class="prompt queued" data-stop data-place="{line.place}" '
        f'data-raw="{escaped(line.raw)}"><div class="tagline">{icon_of("clock", "sm")}'
        f"<span>{escaped_text(line.verb)}{clock}, taken in here</span>{door}</div>"
        f"<p>{escaped_text(line.say)}</p></div>\n"
    )


def _changes(added: int, removed: int) -> str:
    came = f"<b>+{added}</b>" if added else ""
    went = f"<i>{_MINUS}{removed}</i>" if removed else ""
    return f'<span class="pm">{came}{" " if came and went else ""}{went}</span>'


@lru_cache(maxsize=64)
def _state(state: str) -> str:
    icon, said = _STATES.get(state) or (_ICON.format("st", "check"), state)
    return f'{icon}<span class="vh">{escaped(said)}</span>' if state else ""
