"""A step as one line."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final

import msgspec
from markupsafe import Markup

from steno.report import words
from steno.session.story.figures import steps_in
from steno.session.story.steps import Step
from steno.web.bodies import About, body_of
from steno.web.links import Links
from steno.web.paint import duration, money
from steno.web.render.markdown import markdown
from steno.web.story.tale import Tale, name_of
from steno.web.story.wish import DETAILS, Wish

__all__ = ["Manner", "StepLine", "about_of", "is_hidden", "places_of", "step_body", "step_lines"]

_QUIET: Final = frozenset(("note", "hook"))
_SAID: Final = frozenset(("thought", "words", "agent", "error", "note", "queued"))
_DEEPEST: Final = 3
"""How far sub-agents of sub-agents are drawn inside each other."""
_ICONS: Final = {
    "Read": "read",
    "NotebookRead": "read",
    "Edit": "edit",
    "MultiEdit": "edit",
    "NotebookEdit": "edit",
    "Write": "write",
    "Bash": "bash",
    "BashOutput": "bash",
    "KillShell": "bash",
    "Grep": "grep",
    "Glob": "grep",
    "LS": "folder",
    "ToolSearch": "search",
    "TodoWrite": "todo",
    "TodoRead": "todo",
    "TaskCreate": "todo",
    "TaskUpdate": "todo",
    "TaskList": "todo",
    "WebFetch": "web",
    "WebSearch": "web",
    "AskUserQuestion": "help",
    "ScheduleWakeup": "clock",
}
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


class Manner(msgspec.Struct):
    """How a reader wants it told."""

    key: str
    links: Links
    detail: str = "steps"
    opened: frozenset[str] = frozenset()
    """The places of steps that stand open."""
    live: bool = False
    """Whether it may still be going on."""
    project: str = ""
    shut: bool = False
    """Whether steps whose inside is drawn are shut all the same."""
    full: bool = False
    """Whether all of what is inside is drawn, not only its first lines."""
    laid: Callable[[Markup], Markup] | None = None
    """Lays aside what is inside of a step, and gives what stands for it meanwhile."""

    @property
    def everything(self) -> bool:
        """Whether notes and hooks are wanted as well."""
        return self.detail == "everything"

    @property
    def with_steps(self) -> bool:
        """Whether steps are drawn at all."""
        return self.detail in DETAILS[2:]


class StepLine(msgspec.Struct):
    """What a template draws of a step."""

    place: str
    kind: str
    icon: str
    verb: str
    arg: str = ""
    say: str = ""
    result: str = ""
    added: int = 0
    removed: int = 0
    tokens: str = ""
    time: str = ""
    clock: str = ""
    state: str = ""
    classes: str = ""
    href: str = ""
    source: str = ""
    """Where its inside is had from."""
    raw: str = ""
    body: Markup | None = None
    queued: bool = False
    shut: bool = False


def icon_of(step: Step) -> str:
    """Return the name of the picture for a step."""
    return _KINDS.get(step.kind) or _ICONS.get(step.verb, "tool")


def places_of(steps: Iterable[Step]) -> Iterator[tuple[str, Step]]:
    """Yield steps with their places: the offset of the call, and which one of that record it is."""
    seen: dict[int, int] = {}
    for step in steps:
        node = step.call or step.result
        offset = -1 if node is None else node.offset
        number = seen.get(offset, 0)
        seen[offset] = number + 1
        yield f"{offset}-{number}", step


def step_lines(
    steps: Iterable[Step],
    tale: Tale,
    manner: Manner,
    *,
    depth: int = 0,
    begin: int = 0,
    end: int | None = None,
) -> list[StepLine]:
    """Return the steps that are drawn, of those from `begin` to `end`."""
    return [
        _line(place, step, tale, manner, depth)
        for place, step in islice(places_of(steps), begin, end)
        if not is_hidden(step, manner)
    ]


def is_hidden(step: Step, manner: Manner) -> bool:
    """Whether a step is not drawn unless everything is: a note or a hook that went well."""
    return step.kind in _QUIET and not manner.everything and not _matters(step)


def _matters(step: Step) -> bool:
    """Whether a quiet step is worth a look all the same."""
    return step.state in ("failed", "interrupted", "denied")


def _line(place: str, step: Step, tale: Tale, manner: Manner, depth: int) -> StepLine:
    said = step.kind in _SAID
    touch = step.touch if step.touch is not None and step.touch.changes else None
    changed = touch is not None and bool(touch.added or touch.removed)
    line = StepLine(
        place=place,
        kind=step.kind,
        icon=icon_of(step),
        verb=step.verb,
        arg="" if said else _short(step.subject, manner.project),
        say=_unmarked(step.subject) if said else "",
        result="" if changed or not _says(step.outcome) else step.outcome,
        added=touch.added if touch is not None and changed else 0,
        removed=touch.removed if touch is not None and changed else 0,
        tokens=words.tokens(step.tokens) if step.tokens else "",
        time=duration(step.duration) if step.duration is not None else "",
        clock=_clock(step) if step.kind == "queued" else "",
        state=_state(step, live=manner.live),
        classes=_classes(step),
        queued=step.kind == "queued",
        shut=manner.shut,
    )
    if manner.links.live:
        _address(line, step, tale, manner)
    if step.agent is not None:
        _employ(line, step, tale)
    if place in manner.opened:
        body = step_body(step, place, tale, manner, depth=depth)
        line.body = body if manner.laid is None else manner.laid(body)
    return line


def _says(outcome: str) -> bool:
    """Whether there is more in some words than a frame that a program drew around them."""
    return outcome[:1].isalnum() or any(map(str.isalnum, outcome))


def _address(line: StepLine, step: Step, tale: Tale, manner: Manner) -> None:
    """Say where a step, its inside and its record are; without a server they are nowhere."""
    place = f"step/{line.place}"
    line.href = manner.links.inside(manner.key, place, tale.agent)
    line.source = manner.links.inside(manner.key, place, tale.agent, part=1)
    node = step.call or step.result
    if node is not None:
        line.raw = manner.links.record(manner.key, node.offset, tale.agent)


def _clock(step: Step) -> str:
    return step.started.astimezone().strftime("%H:%M:%S") if step.started else ""


def _employ(line: StepLine, step: Step, tale: Tale) -> None:
    """Say on the line of a sub-agent what it did and what that cost."""
    thread = step.agent
    if thread is None:
        return
    line.classes = f"agent w{tale.colour(thread)} {line.classes}".strip()
    line.say = thread.description or line.say
    work = steps_in(thread.steps)
    amount = money(tale.cost_of_agent(thread).known)
    line.result = ", ".join(part for part in (words.count(work, "step"), amount) if part)
    usage = thread.usage
    line.tokens = words.tokens(usage.total) if usage.messages else ""


def _unmarked(text: str) -> str:
    """Return one line of Markdown without its marks, which only mean something when drawn.

    >>> _unmarked("## **Step 5**: `git` accepts a*b")
    'Step 5: git accepts a*b'
    """
    return text.lstrip("#> ").replace("**", "").replace("`", "")


def _short(subject: str, project: str) -> str:
    inside = f"{project}/" if project else ""
    return subject[len(inside) :] if inside and subject.startswith(inside) else subject


def _state(step: Step, *, live: bool) -> str:
    match step.state:
        case "open":
            return "live" if live else "interrupted"
        case "ok" if step.kind == "error":
            return "recovered"
        case "ok":
            return "done" if step.kind in ("tool", "agent") else ""
        case other:
            return other


def _classes(step: Step) -> str:
    kind = "thought" if step.kind == "thought" else "quiet" if step.kind in _QUIET else ""
    if step.state == "failed":
        state = "failed"
    elif step.state == "denied" or step.kind == "error":
        state = "warned"
    else:
        state = ""
    return f"{kind} {state}".strip()


# What is inside


def step_body(
    step: Step, place: str, tale: Tale, manner: Manner, *, wish: Wish | None = None, depth: int = 0
) -> Markup:
    """Return what is inside an opened step; a wish says how much of it, and in which form."""
    if step.agent is not None and depth < _DEEPEST:
        return _agent_body(step, tale, manner, depth)
    if wish is None and not manner.links.live:
        return body_of(step, _about(tale, manner))
    wanted = wish or Wish(manner.key, tale.agent, full=manner.full)
    about = about_of(f"step/{place}", tale, manner.key, manner.links, wanted)
    return body_of(step, about)


def _about(tale: Tale, manner: Manner) -> About:
    """Return what all bodies know where none has an address."""
    if tale.about is None:
        wanted = Wish(manner.key, tale.agent, full=manner.full)
        tale.about = about_of("", tale, manner.key, manner.links, wanted)
    return tale.about


def about_of(here: str, tale: Tale, key: str, links: Links, wish: Wish | None = None) -> About:
    """Return what a body has to know beside its step or record."""
    wanted = wish or Wish(key, tale.agent)
    return About(
        key,
        tale.agent,
        tale.transcript,
        links,
        full=wanted.full,
        begin=wanted.first,
        side=wanted.side,
        here=here,
    )


def _agent_body(step: Step, tale: Tale, manner: Manner, depth: int) -> Markup:
    """Return a sub-agent's brief, its steps and its report."""
    from steno.web.paint import part

    thread = step.agent
    if thread is None:
        return Markup("")
    own = Tale(tale.session, tale.prices, name_of(thread))
    steps = thread.steps
    return Markup(
        part(
            "session-agent.html.j2",
            brief=markdown(thread.prompt),
            lines=step_lines(steps, own, manner, depth=depth + 1),
            report=markdown(thread.report) if thread.report else "",
            href=manner.links.agent(manner.key, own.agent),
            status=thread.status,
            steps=steps_in(steps),
        )
    )
