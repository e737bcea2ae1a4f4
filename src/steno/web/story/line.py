"""The line of a step as HTML. There are very many of them, which a template makes dear.

Whatever comes from a session is escaped here, as templates do it by themselves.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Final

from markupsafe import Markup

from steno.format.tool_catalogue import facts_of
from steno.report import words
from steno.safe.html import Html, escaped, escaped_text, trusted
from steno.session.story.figures import steps_in
from steno.session.story.steps import Kind, Step
from steno.web.paint import duration, money
from steno.web.render.pieces import icon_of, path_html

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steno.session.story.threads import Thread
    from steno.web.story.steps import Manner
    from steno.web.story.tale import Tale

__all__ = ["END", "QUIET", "icon_for", "line_html", "step_html", "steps_html"]

QUIET: Final = frozenset(("note", "hook"))
"""Kinds of steps that are drawn only where everything is, unless something is wrong."""
_SAID: Final = frozenset(("thought", "words", "agent", "error", "note", "queued"))
_KINDS: Final = {
    "agent": "agent",
    "thought": "think",
    "words": "say",
    "queued": "clock",
    "hook": "branch",
    "error": "warn",
    "note": "dot",
    "unknown": "unknown",
}
_MARKS: Final = {
    "done": ("check", "st"),
    "failed": ("cross", "st bad"),
    "recovered": ("warn", "st warn"),
    "interrupted": ("stop", "st"),
    "denied": ("stop", "st warn"),
}
END: Final = Html("</div></details>\n")
"""Stands behind what is inside of a step."""
_LONGEST: Final = 100
"""Letters of a verb; of what nobody knows it is whatever the record says."""
_PULSE: Final = '<span class="pulse"></span>'
_MINUS: Final = "\N{MINUS SIGN}"


def icon_for(kind: Kind, verb: str) -> str:
    """Return the name of the picture for a kind of step."""
    return _KINDS.get(kind) or facts_of(verb).icon


def steps_html(lines: "Sequence[Html]") -> Markup:
    """Return steps one below the other."""
    return trusted(f'<div class="steps">{"".join(lines)}</div>\n' if lines else "")


def step_html(
    step: Step, place: str, tale: "Tale", manner: "Manner", body: Html | None = None
) -> Html:
    """Return a step: a line that opens in place. Without script its inside has its own page."""
    if step.kind == "queued":
        return _queued(step, place, tale, manner)
    line = line_html(step, place, tale, manner, drawn=body is not None)
    if body is None:
        body = _door(place, tale, manner, "link", "Open this step")
    return Html(f"{line}{body}{END}")


def line_html(step: Step, place: str, tale: "Tale", manner: "Manner", *, drawn: bool) -> Html:
    """Return the line alone, up to what is inside; `drawn` says that it follows."""
    kind, agent = step.kind, step.agent
    what = _what(step, manner.project) if agent is None else _employed(step, agent, tale)
    live = manner.live and step.state == "open"
    classes, ended = _mood(kind, "live" if live else step.state)
    if agent is not None:
        classes = f"agent w{tale.colour(agent)} {classes}".strip()
    source = _source(step, place, tale, manner) if manner.links.live else ""
    opened = (" data-full" if manner.shut else " open data-full") if drawn else ""
    return Html(
        f'<details class="step {classes}" data-stop data-place="{place}"{source}{opened}>'
        f"<summary>{_head(kind, step.verb[:_LONGEST])}{what}"
        f'<span class="fig">{duration(step.duration) if step.duration is not None else ""}</span>'
        f'<span>{ended}</span></summary><div class="in">'
    )


@lru_cache(maxsize=512)
def _head(kind: Kind, verb: str) -> str:
    icon = icon_of(icon_for(kind, verb), "kind")
    return f'{icon_of("chev", "chev sm")}{icon}<span class="what"><b>{escaped_text(verb)}</b>'


def _what(step: Step, project: str) -> str:
    """Return what was done with what, what came of it, and the tokens that it took."""
    subject, touch = step.subject, step.touch
    if step.kind in _SAID:
        said = _say(_unmarked(subject))
    else:
        if project and subject.startswith(f"{project}/"):
            subject = subject[len(project) + 1 :]
        said = path_html(subject) if subject else ""
    if touch is not None and (touch.added or touch.removed) and touch.changes:
        said += _changes(touch.added, touch.removed)
    elif _says(step.outcome):
        said += f'<span class="res">{escaped_text(step.outcome)}</span>'
    return f'{said}</span><span class="fig tok">{_tokens(step.tokens)}</span>'


def _employed(step: Step, agent: "Thread", tale: "Tale") -> str:
    """Return the same for a sub-agent: what it did and what that cost."""
    cost = money(tale.cost_of_agent(agent).known)
    work = words.count(steps_in(agent.steps), "step")
    did = escaped_text(f"{work}, {cost}" if cost else work)
    tokens = _tokens(agent.usage.total if agent.usage.messages else None)
    return (
        f'{_say(agent.description or _unmarked(step.subject))}<span class="res">{did}</span></span>'
        f'<span class="fig tok">{tokens}</span>'
    )


def _say(text: str) -> str:
    return f'<span class="say">{escaped_text(text)}</span>' if text else ""


def _tokens(number: int | None) -> str:
    return words.tokens(number) if number else ""


def _unmarked(text: str) -> str:
    """Return one line of Markdown without its marks, which only mean something when drawn.

    >>> _unmarked("## **Step 5**: `git` accepts a*b")
    'Step 5: git accepts a*b'
    """
    return text.lstrip("#> ").replace("**", "").replace("`", "")


def _says(outcome: str) -> bool:
    """Whether there is more in some words than a frame that a program drew around them."""
    return outcome[:1].isalnum() or any(map(str.isalnum, outcome))


def _changes(added: int, removed: int) -> str:
    came = f"<b>+{added}</b>" if added else ""
    went = f"<i>{_MINUS}{removed}</i>" if removed else ""
    return f'<span class="pm">{came}{" " if came and went else ""}{went}</span>'


@lru_cache(maxsize=64)
def _mood(kind: Kind, state: str) -> tuple[str, str]:
    """Return the classes of a step in a state, and how it ended, as a mark and a word."""
    name = "thought" if kind == "thought" else "quiet" if kind in QUIET else ""
    if state == "failed":
        name = f"{name} failed"
    elif state == "denied" or kind == "error":
        name = f"{name} warned"
    if state == "ok":
        # What did its work and went on says nothing of it.
        state = "recovered" if kind == "error" else "done" if kind in ("tool", "agent") else ""
    elif state == "open":
        state = "interrupted"
    elif state == "unknown":
        # Its outcome says so.
        state = ""
    if not state:
        return name.strip(), ""
    mark = _PULSE if state == "live" else icon_of(*_MARKS[state])
    return name.strip(), f'{mark}<span class="vh">{state}</span>'


# Where there is a server


def _source(step: Step, place: str, tale: "Tale", manner: "Manner") -> str:
    """Return where a script finds a step's inside, and its record."""
    inside = manner.links.inside(manner.key, f"step/{place}", tale.agent, part=1)
    return f' data-src="{escaped(inside)}" data-raw="{_raw(step, tale, manner)}"'


def _raw(step: Step, tale: "Tale", manner: "Manner") -> str:
    node = step.call or step.result
    if node is None or not manner.links.live:
        return ""
    return escaped(manner.links.record(manner.key, node.offset, tale.agent))


def _door(place: str, tale: "Tale", manner: "Manner", classes: str, said: str) -> Html:
    if not manner.links.live:
        return Html("")
    address = escaped(manner.links.inside(manner.key, f"step/{place}", tale.agent))
    return Html(f'<a class="{classes}" href="{address}">{said}</a>')


def _queued(step: Step, place: str, tale: "Tale", manner: "Manner") -> Html:
    """Return a prompt that came while the agent was busy."""
    clock = f" {step.started.astimezone():%H:%M:%S}" if step.started else ""
    door = _door(place, tale, manner, "link end", "Open")
    return Html(
        f'<div class="prompt queued" data-stop data-place="{place}" '
        f'data-raw="{_raw(step, tale, manner)}"><div class="tagline">{icon_of("clock", "sm")}'
        f"<span>{escaped_text(step.verb)}{clock}, taken in here</span>{door}</div>"
        f"<p>{escaped_text(_unmarked(step.subject))}</p></div>\n"
    )
