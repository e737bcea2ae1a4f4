"""Side panel of a session: context, outline, files, commands, usage."""

from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from markupsafe import Markup

from steno.report import humanize
from steno.report.context_usage import CONTEXT_SOURCES, ContextSource, ContextUsage, context_usage
from steno.report.humanize import money
from steno.report.pricing import Cost, ModelCost, costs_by_model
from steno.session.turns.compactions import Compaction, context_sizes
from steno.session.turns.session_facts import count_steps
from steno.session.turns.steps import FileTouch, one_line
from steno.session.turns.subagents import Thread
from steno.session.turns.turn_builder import Turn
from steno.session.turns.usage import UsageCounter
from steno.web.urls import path_tag
from steno.web.views.session_charts import SOURCE_CLASSES, context_bar, context_growth_chart
from steno.web.views.session_view import SessionView, subagent_key
from steno.web.views.step_view import RenderOptions, turn_url
from steno.web.views.turn_view import PRIME, context_tokens_at

_MIX_WIDTH: Final = 44.0
_FULL_MIX_STEPS: Final = 24.0
_MAX_TURNS: Final = 1_500
_MAX_TEXT: Final = 90
_MAX_BRANCHES: Final = 8
"""Maximum abandoned branches listed per turn."""
_RECT: Final = Markup('<rect class="{}" x="{:.1f}" width="{:.1f}" height="6"/>')


class OutlineRow(msgspec.Struct):
    """A row of the outline."""

    number: str
    text: str
    href: str
    cost: str = ""
    turn: int = 0
    step_mix: Markup | None = None
    is_abandoned: bool = False
    compaction_label: str = ""
    """Label of a compaction; empty for a turn."""
    errors: int = 0
    context_tokens: str = ""


def outline_rows(view: SessionView, options: RenderOptions) -> list[OutlineRow]:
    """Return the outline; only the newest turns of a very long session."""
    rows: list[OutlineRow] = []
    _add_branch_rows(rows, view, options, 0)
    for turn in view.turns[-_MAX_TURNS:]:
        if turn.opening is not None:
            rows.append(_compaction_row(turn.opening))
        rows.append(
            OutlineRow(
                str(turn.number),
                one_line(turn.prompt.text, _MAX_TEXT) if turn.prompt is not None else "(no prompt)",
                turn_url(view, options, turn.number),
                money(view.turn_cost(turn).amount) if turn.usage.messages else "",
                turn.number,
                _step_mix(turn, view),
                errors=turn.errors,
                context_tokens=humanize.tokens(context_tokens_at(view, turn.nodes)) if turn.usage.messages else "",
            )
        )
        rows += [_compaction_row(compaction) for compaction in turn.inner_seams]
        _add_branch_rows(rows, view, options, turn.number)
        if turn.closing is not None:
            rows.append(_compaction_row(turn.closing))
    return rows


def _compaction_row(compaction: Compaction) -> OutlineRow:
    size_label = humanize.token_reduction(*context_sizes(compaction)).removesuffix(" tokens")
    return OutlineRow("", "", "", compaction_label=f"compacted, {size_label}" if size_label else "compacted")


def _add_branch_rows(rows: list[OutlineRow], view: SessionView, options: RenderOptions, after: int) -> None:
    sides = view.branches_by_turn.get(after, [])
    for branch in sides[:_MAX_BRANCHES]:
        first_prompt = next((node for node in branch.branch.nodes if node.type == "user"), None)
        prompt_text = view.transcript.record(first_prompt).text if first_prompt is not None else ""
        rows.append(
            OutlineRow(
                f"{branch.first_turn}{PRIME * branch.depth}",
                one_line(prompt_text, _MAX_TEXT) or "(no prompt)",
                options.links.session(options.key, f"b{branch.number}", turn=after or 1, branch=branch.number),
                money(view.branch_cost(branch).amount),
                is_abandoned=True,
            )
        )
    if len(sides) > _MAX_BRANCHES:
        first = sides[_MAX_BRANCHES].number
        rows.append(
            OutlineRow(
                "",
                f"{len(sides) - _MAX_BRANCHES:,} more abandoned",
                options.links.session(options.key, f"b{first}", turn=after or 1, branch=first),
                is_abandoned=True,
            )
        )


def _step_mix(turn: Turn, view: SessionView) -> Markup | None:
    parts: dict[str, int] = {}
    for step in turn.steps:
        if step.kind in ("note", "hook", "queued"):
            continue
        if step.state == "failed":
            name = "fbad"
        elif step.agent is not None:
            name = f"fag{view.subagent_colour(step.agent)}"
        elif step.kind in ("words", "thought"):
            name = "f1"
        else:
            name = "fink"
        parts[name] = parts.get(name, 0) + 1
    return _mix_chart(list(parts.items())) if parts else None


def _mix_chart(parts: Sequence[tuple[str, int]]) -> Markup:
    total = sum(number for _, number in parts)
    x = 0.0
    shapes: list[Markup] = []
    for name, number in parts:
        width = number / total * _MIX_WIDTH * min(1.0, total / _FULL_MIX_STEPS + 0.15)
        shapes.append(_RECT.format(name, x, max(width - 0.8, 0.8)))
        x += width
    return Markup('<svg viewBox="0 0 44 6" aria-hidden="true">{}</svg>').format(Markup("").join(shapes))


_MAX_FILES: Final = 12
_MAX_COMMANDS: Final = 12
_SOURCE_NAMES: Final[dict[ContextSource, str]] = {
    "system": "System prompt, tools",
    "memory": "Memory files",
    "summary": "Summary",
    "prompts": "Your prompts",
    "files": "Files read",
    "output": "Command output",
    "answers": "Answers, thinking",
}


class ContextShare(msgspec.Struct):
    """A source of context tokens."""

    css_class: str
    name: str
    tokens: str
    share: str


class ContextPanel(msgspec.Struct):
    """Context size by source."""

    turn: int
    total: str
    limit: str
    share: str
    sources: Sequence[ContextShare]
    bar: Markup
    chart: Markup
    compactions: int


class TouchedFile(msgspec.Struct):
    """A touched file."""

    path: str
    href: str
    """URL of the file page."""
    added: int = 0
    removed: int = 0
    reads: int = 0
    turn: int = 0
    """The turn that last touched the file."""
    turn_url: str = ""


class PanelCommand(msgspec.Struct):
    """A command that was run."""

    text: str
    turn: int
    href: str
    failed: bool = False


class UsageLine(msgspec.Struct):
    """A row of the usage table."""

    name: str
    fresh: str
    cached: str
    output: str
    cost: str
    href: str = ""
    css_class: str = ""
    step_count: str = ""


class SessionPanel(msgspec.Struct):
    """The side panel."""

    context: ContextPanel | None
    outline: Sequence[OutlineRow]
    files: Sequence[TouchedFile]
    more_files: Sequence[TouchedFile]
    changed: int
    read: int
    commands: Sequence[PanelCommand]
    more_commands: Sequence[PanelCommand]
    usage: Sequence[UsageLine]
    agents: Sequence[UsageLine]
    total: UsageLine
    notes: Sequence[str]
    """Notes on figures that differ from those in the header."""
    findings_url: str
    """URL of the findings."""


def session_panel(view: SessionView, options: RenderOptions, copied_responses: int = 0) -> SessionPanel:
    """Return the side panel; `copied_responses` were paid for in another session."""
    files = _touched_files(view, options)
    commands = list(_panel_commands(view, options))
    usage, agents, total = _usage_lines(view, options)
    return SessionPanel(
        _context_panel(context_usage(view.transcript, view.turns)),
        outline_rows(view, options),
        files[:_MAX_FILES],
        files[_MAX_FILES:],
        sum(bool(file.added or file.removed) for file in files),
        sum(bool(file.reads) for file in files),
        commands[:_MAX_COMMANDS],
        commands[_MAX_COMMANDS:],
        usage,
        agents,
        total,
        _usage_notes(copied_responses, len(agents)),
        options.links.inside(options.key, "findings", view.agent),
    )


def _usage_notes(copied_responses: int, agents: int) -> list[str]:
    """Return notes on the outline and on the usage: how their figures differ from the header."""
    turn_note = "Figures exclude sub-agents." if agents else ""
    if not copied_responses:
        return [turn_note, ""]
    response_count = humanize.count(copied_responses, "response")
    verb = "was" if copied_responses == 1 else "were"
    shared = f"{response_count} {verb} copied from another session, where the cost is counted"
    return [f"{turn_note} {shared}; included here.".strip(), f"{shared}; excluded from the cost in the header."]


def _context_panel(context: ContextUsage) -> ContextPanel | None:
    last = context.latest
    if last is None or not last.total:
        return None
    parts = sorted(zip(CONTEXT_SOURCES, last.parts, strict=True), key=lambda pair: -pair[1])
    return ContextPanel(
        last.turn,
        humanize.tokens(last.total),
        humanize.tokens(context.limit).replace(".0k", "k").replace(".00M", "M"),
        f"{last.total * 100 / context.limit:.0f}%",
        [
            ContextShare(
                SOURCE_CLASSES[kind], _SOURCE_NAMES[kind], humanize.tokens(tokens), f"{tokens * 100 / last.total:.0f}%"
            )
            for kind, tokens in parts
            if tokens
        ],
        context_bar(context),
        context_growth_chart(context),
        len(context.cuts),
    )


# Files and commands


def _turns_with_subagents(view: SessionView) -> Iterator[tuple[int, Turn, str]]:
    """Yield the turns of the conversation and its sub-agents: turn number, turn, sub-agent ID."""
    for turn in view.turns:
        yield turn.number, turn, view.agent
        for step in turn.steps:
            for subagent in step.agent.family() if step.agent is not None else ():
                for subagent_turn in subagent.turns:
                    yield turn.number, subagent_turn, subagent_key(subagent)


def _touched_files(view: SessionView, options: RenderOptions) -> list[TouchedFile]:
    files: dict[str, TouchedFile] = {}
    for number, turn, _ in _turns_with_subagents(view):
        for touch in turn.files:
            file = files.setdefault(touch.path, TouchedFile(_relative_path(touch, options), ""))
            file.href = options.links.file(path_tag(touch.path))
            file.added += touch.added
            file.removed += touch.removed
            file.turn, file.turn_url = number, _turn_url(view, options, number)
            if not touch.changes:
                file.reads += 1
    return sorted(files.values(), key=lambda file: -(file.added + file.removed))


def _relative_path(touch: FileTouch, options: RenderOptions) -> str:
    prefix = f"{options.project}/" if options.project else ""
    return touch.path[len(prefix) :] if prefix and touch.path.startswith(prefix) else touch.path


def _panel_commands(view: SessionView, options: RenderOptions) -> Iterator[PanelCommand]:
    for number, turn, _ in _turns_with_subagents(view):
        for step in turn.steps:
            if step.command:
                yield PanelCommand(
                    step.subject or step.command, number, _turn_url(view, options, number), step.state == "failed"
                )


def _turn_url(view: SessionView, options: RenderOptions, turn: int) -> str:
    return options.links.thread(options.key, view.agent, f"t{turn}", turn=turn)


# Usage


def _usage_lines(view: SessionView, options: RenderOptions) -> tuple[list[UsageLine], list[UsageLine], UsageLine]:
    counter = UsageCounter()
    # Files of old versions interleave records of sub-agents with those of the session.
    is_subagent = view.subagent is not None
    counter.add_nodes(view.transcript, (node for node in view.nodes if is_subagent or not node.sidechain))
    shares = costs_by_model(counter, view.prices, view.price_date)
    threads = view.session.all_agents if view.subagent is None else view.subagent.children
    agents = [_subagent_line(view, options, subagent) for subagent in threads if subagent.nodes and not subagent.warmup]
    subagent_cost = sum((cost for _, cost in agents), Cost())
    total = sum((share.cost for share in shares), Cost()) + subagent_cost
    lines = [_usage_line(humanize.model_name(share.model) or "unknown", share) for share in shares]
    totals = [share.totals for share in shares] + [each.usage for each in threads]
    return (
        lines,
        [line for line, _ in agents],
        UsageLine(
            "All",
            humanize.tokens(sum(each.input + each.cache_write for each in totals)),
            humanize.tokens(sum(each.cache_read for each in totals)),
            humanize.tokens(sum(each.output for each in totals)),
            money(total.amount),
        ),
    )


def _subagent_line(view: SessionView, options: RenderOptions, subagent: Thread) -> tuple[UsageLine, Cost]:
    counter = UsageCounter()
    subagent.count(counter)
    shares = costs_by_model(counter, view.prices, view.price_date)
    cost = sum((share.cost for share in shares), Cost())
    usage = subagent.usage
    line = UsageLine(
        subagent.description or subagent.kind or subagent_key(subagent),
        humanize.tokens(usage.input + usage.cache_write),
        humanize.tokens(usage.cache_read),
        humanize.tokens(usage.output),
        money(cost.amount),
        options.links.agent(options.key, subagent_key(subagent)),
        f"w{view.subagent_colour(subagent)}",
        humanize.count(count_steps(subagent.steps), "step"),
    )
    return line, cost


def _usage_line(name: str, share: ModelCost) -> UsageLine:
    totals = share.totals
    estimate_mark = "≥ " if totals.estimated else ""
    return UsageLine(
        name,
        humanize.tokens(totals.input + totals.cache_write),
        humanize.tokens(totals.cache_read),
        f"{estimate_mark}{humanize.tokens(totals.output)}",
        money(share.cost.amount) or "no price",
    )
