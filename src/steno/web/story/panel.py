"""What stands beside the turns: where the context went, files, commands, usage."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from markupsafe import Markup

from steno.report import words
from steno.report.context import KINDS, Context, Kind, context_of
from steno.report.costs import Cost, Share, shares_of
from steno.session.story.figures import steps_in
from steno.session.story.steps import FileTouch
from steno.session.story.threads import Thread
from steno.session.story.turns import Turn
from steno.session.story.usage import Counter
from steno.web.paint import money
from steno.web.story.growth import CLASSES, filled, growth
from steno.web.story.outline import Row, outline_of
from steno.web.story.steps import Manner
from steno.web.story.tale import Tale, name_of
from steno.web.tags import tag_of

__all__ = ["Panel", "panel_of"]

_FILES: Final = 12
_COMMANDS: Final = 12
_NAMES: Final[dict[Kind, str]] = {
    "system": "System prompt, tools",
    "memory": "Memory files",
    "summary": "Summary",
    "prompts": "Your prompts",
    "files": "Files read",
    "output": "Command output",
    "answers": "Answers, thinking",
}


class Source(msgspec.Struct):
    """Something that fills the context."""

    cls: str
    name: str
    tokens: str
    share: str


class Held(msgspec.Struct):
    """Where the context went."""

    turn: int
    total: str
    limit: str
    share: str
    sources: Sequence[Source]
    bar: Markup
    chart: Markup
    cuts: int


class Touched(msgspec.Struct):
    """A file."""

    path: str
    href: str
    """Its page, with all that ever happened to it."""
    added: int = 0
    removed: int = 0
    reads: int = 0
    turn: int = 0
    """Where it was touched last."""
    at: str = ""


class Command(msgspec.Struct):
    """A command that was run."""

    text: str
    turn: int
    href: str
    failed: bool = False


class Line(msgspec.Struct):
    """A row of the table of usage."""

    name: str
    fresh: str
    cached: str
    output: str
    cost: str
    href: str = ""
    cls: str = ""
    dim: str = ""


class Panel(msgspec.Struct):
    """All of it."""

    held: Held | None
    outline: Sequence[Row]
    files: Sequence[Touched]
    more_files: Sequence[Touched]
    changed: int
    read: int
    commands: Sequence[Command]
    more_commands: Sequence[Command]
    usage: Sequence[Line]
    agents: Sequence[Line]
    total: Line
    notes: Sequence[str]
    """What the figures have in them that the head has not, and the other way round."""
    findings: str
    """Where they are had from."""


def panel_of(tale: Tale, manner: Manner, copied: int = 0) -> Panel:
    """Return what stands beside the turns; `copied` are responses that another session paid for."""
    files = _files(tale, manner)
    commands = list(_commands(tale, manner))
    usage, agents, total = _usage(tale, manner)
    return Panel(
        _held(context_of(tale.transcript, tale.turns)),
        outline_of(tale, manner),
        files[:_FILES],
        files[_FILES:],
        sum(bool(file.added or file.removed) for file in files),
        sum(bool(file.reads) for file in files),
        commands[:_COMMANDS],
        commands[_COMMANDS:],
        usage,
        agents,
        total,
        _notes(copied, len(agents)),
        manner.links.inside(manner.key, "findings", tale.agent),
    )


def _notes(copied: int, agents: int) -> list[str]:
    """Return, for the outline and for the usage, how their figures differ from the head's."""
    own = "Each turn by itself, without its sub-agents." if agents else ""
    if not copied:
        return [own, ""]
    said = words.count(copied, "response")
    were = "was" if copied == 1 else "were"
    shared = f"{said} {were} copied from another session and {were} paid for there"
    return [f"{own} {shared}; they count here.".strip(), f"{shared}: the head leaves them out."]


def _held(context: Context) -> Held | None:
    last = context.last
    if last is None or not last.total:
        return None
    parts = sorted(zip(KINDS, last.parts, strict=True), key=lambda pair: -pair[1])
    return Held(
        last.turn,
        words.tokens(last.total),
        words.tokens(context.limit).replace(".0k", "k").replace(".00M", "M"),
        f"{last.total * 100 / context.limit:.0f}%",
        [
            Source(
                CLASSES[kind],
                _NAMES[kind],
                words.tokens(tokens),
                f"{tokens * 100 / last.total:.0f}%",
            )
            for kind, tokens in parts
            if tokens
        ],
        filled(context),
        growth(context),
        len(context.cuts),
    )


# Files and commands


def _all_turns(tale: Tale) -> Iterator[tuple[int, Turn, str]]:
    """Yield the turns of the conversation and of the sub-agents in it, and where they are."""
    for turn in tale.turns:
        yield turn.number, turn, tale.agent
        for step in turn.steps:
            for thread in step.agent.family() if step.agent is not None else ():
                for inner in thread.turns:
                    yield turn.number, inner, name_of(thread)


def _files(tale: Tale, manner: Manner) -> list[Touched]:
    found: dict[str, Touched] = {}
    for number, turn, _ in _all_turns(tale):
        for touch in turn.files:
            file = found.setdefault(touch.path, Touched(_short(touch, manner), ""))
            file.href = manner.links.file(tag_of(touch.path))
            file.added += touch.added
            file.removed += touch.removed
            file.turn, file.at = number, _at(tale, manner, number)
            if not touch.changes:
                file.reads += 1
    return sorted(found.values(), key=lambda file: -(file.added + file.removed))


def _short(touch: FileTouch, manner: Manner) -> str:
    inside = f"{manner.project}/" if manner.project else ""
    return touch.path[len(inside) :] if inside and touch.path.startswith(inside) else touch.path


def _commands(tale: Tale, manner: Manner) -> Iterator[Command]:
    for number, turn, _ in _all_turns(tale):
        for step in turn.steps:
            if step.command:
                yield Command(
                    step.subject or step.command,
                    number,
                    _at(tale, manner, number),
                    step.state == "failed",
                )


def _at(tale: Tale, manner: Manner, turn: int) -> str:
    if tale.agent:
        return manner.links.agent(manner.key, tale.agent, f"t{turn}", turn=turn)
    return manner.links.session(manner.key, f"t{turn}", turn=turn)


# Usage


def _usage(tale: Tale, manner: Manner) -> tuple[list[Line], list[Line], Line]:
    own = Counter()
    # Inside old files the lines of sub-agents stand between those of the session.
    whole = tale.thread is not None
    own.add_nodes(tale.transcript, (node for node in tale.nodes if whole or not node.sidechain))
    shares = shares_of(own, tale.prices, tale.day)
    threads = tale.session.all_agents if tale.thread is None else tale.thread.children
    agents = [_agent(tale, manner, each) for each in threads if each.nodes and not each.warmup]
    spent = sum((cost for _, cost in agents), Cost())
    total = sum((share.cost for share in shares), Cost()) + spent
    lines = [_line(words.model_name(share.model) or "unknown", share) for share in shares]
    totals = [share.totals for share in shares] + [each.usage for each in threads]
    return (
        lines,
        [line for line, _ in agents],
        Line(
            "All",
            words.tokens(sum(each.input + each.cache_write for each in totals)),
            words.tokens(sum(each.cache_read for each in totals)),
            words.tokens(sum(each.output for each in totals)),
            money(total.known),
        ),
    )


def _agent(tale: Tale, manner: Manner, thread: Thread) -> tuple[Line, Cost]:
    counter = Counter()
    thread.count(counter)
    shares = shares_of(counter, tale.prices, tale.day)
    cost = sum((share.cost for share in shares), Cost())
    usage = thread.usage
    line = Line(
        thread.description or thread.kind or name_of(thread),
        words.tokens(usage.input + usage.cache_write),
        words.tokens(usage.cache_read),
        words.tokens(usage.output),
        money(cost.known),
        manner.links.agent(manner.key, name_of(thread)),
        f"w{tale.colour(thread)}",
        words.count(steps_in(thread.steps), "step"),
    )
    return line, cost


def _line(name: str, share: Share) -> Line:
    totals = share.totals
    about = "≥ " if totals.estimated else ""
    return Line(
        name,
        words.tokens(totals.input + totals.cache_write),
        words.tokens(totals.cache_read),
        f"{about}{words.tokens(totals.output)}",
        money(share.cost.known) or "no price",
    )
