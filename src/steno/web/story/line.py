"""The line of a step as HTML. There are very many of them, which a template makes dear.

Whatever comes from a session goes through `words`, as templates do it by themselves.
"""

from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from steno.safe.html import words

if TYPE_CHECKING:
    from steno.web.story.steps import StepLine

__all__ = ["step_html"]

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


def step_html(line: "StepLine") -> Markup:
    """Return a step: a line that opens in place. Without script its inside has its own page."""
    body = line.body
    opened = "" if body is None else (" data-full" if line.shut else " open data-full")
    inside = "" if body is None else str(body)
    if body is None and line.href:
        inside = f'<a class="link" href="{words(line.href)}">Open this step</a>'
    return Markup(
        f'<details class="step {line.classes}" data-stop data-place="{line.place}"'
        f"{_source(line)}{opened}><summary>{_CHEVRON}"
        f'<svg class="i kind" aria-hidden="true"><use href="#i-{line.icon}"/></svg>'
        f'<span class="what"><b>{words(line.verb)}</b>{_what(line)}</span>'
        f'<span class="fig tok">{words(line.tokens)}</span>'
        f'<span class="fig">{words(line.time)}</span><span>{_state(line.state)}</span>'
        f'</summary><div class="in">{inside}</div></details>\n'
    )


def _source(line: "StepLine") -> str:
    """Return where a script has the inside of a step from; nothing where there is no server."""
    if not line.source:
        return ""
    return f' data-src="{words(line.source)}" data-raw="{words(line.raw)}"'


def _what(line: "StepLine") -> str:
    made = _arg(line.arg) if line.arg else ""
    if line.say:
        made += f'<span class="say">{words(line.say)}</span>'
    if line.added or line.removed:
        return made + _changes(line.added, line.removed)
    return made + (f'<span class="res">{words(line.result)}</span>' if line.result else "")


def _arg(text: str) -> str:
    """Return a path that keeps its last part when room is short; anything else is cut at the end."""
    if "/" not in text or " " in text:
        return f'<span class="arg">{words(text)}</span>'
    folder, _, leaf = text.rpartition("/")
    return (
        f'<span class="arg path"><span class="dir">{words(folder)}/</span>'
        f'<span class="leaf">{words(leaf)}</span></span>'
    )


def _changes(added: int, removed: int) -> str:
    came = f"<b>+{added}</b>" if added else ""
    went = f"<i>{_MINUS}{removed}</i>" if removed else ""
    return f'<span class="pm">{came}{" " if came and went else ""}{went}</span>'


def _state(state: str) -> str:
    icon, said = _STATES.get(state) or (_ICON.format("st", "check"), state)
    return f'{icon}<span class="vh">{words(said)}</span>' if state else ""
