"""Turns as HTML: prompts, answers, figures, abandoned branches, and the window of full turns.

A page has hundreds of turns, so their HTML is built without templates. Everything from a session is
escaped here.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

import msgspec
from markupsafe import Markup

from steno.format.records import read_time
from steno.report import humanize
from steno.report.humanize import money
from steno.report.pricing import Cost
from steno.sanitize.html import SafeHtml, escape_html, trusted_markup
from steno.session.transcript import Node
from steno.session.turns.prompts import Prompt
from steno.session.turns.session_facts import ABANDONED_REASONS, count_steps
from steno.session.turns.steps import one_line
from steno.session.turns.turn_builder import Turn
from steno.web.render.code import code_block
from steno.web.render.markdown import markdown_to_html
from steno.web.templating import icon_html
from steno.web.tool_views.record_images import ImageView, thumbnails
from steno.web.views.session_view import AbandonedBranch, SessionView
from steno.web.views.step_view import (
    CompactionBox,
    RenderOptions,
    compaction_box,
    is_hidden,
    step_lines,
    steps_html,
    turn_url,
)

_FENCE: Final = re.compile(r"^```([\w+-]*)[^\n]*\n(.*?)^```[ \t]*$", re.DOTALL | re.MULTILINE)
_CODE: Final = re.compile(r"`([^`\n]+)`")
_BLANK: Final = re.compile(r"\n[ \t]*\n")
_MAX_LINES: Final = 40
_MAX_CHARACTERS: Final = 4_000
_MAX_FENCED: Final = 200_000
_ORIGIN_LABELS: Final = {
    "notification": "Background task notification",
    "teammate": "From a teammate",
    "agent": "Sub-agent prompt",
    "fork": "Fork prompt",
    "summary": "Continued from a summary",
    "command": "Slash command",
    "shell": "Shell command",
    "other": "Added by Claude Code",
}


class PromptView(msgspec.Struct, frozen=True):
    """A prompt for a template."""

    first_html: SafeHtml
    rest_html: SafeHtml | None = None
    line_count: int = 0
    tag: str = ""
    images: tuple[ImageView, ...] = ()
    other_attachments: int = 0
    """Number of attachments that are not images."""


def prompt_view(prompt: Prompt, images: tuple[ImageView, ...] = ()) -> PromptView:
    """Return a prompt for a page; a long one is split into the first part and the rest."""
    text = prompt.text.strip("\n")
    if prompt.origin == "shell":
        text = f"! {text}"
    beginning, remainder = _split_long(text)
    return PromptView(
        prompt_html(beginning),
        prompt_html(remainder) if remainder else None,
        text.count("\n") + 1,
        _ORIGIN_LABELS.get(prompt.origin, ""),
        images,
        max(0, prompt.images - len(images)),
    )


def _split_long(text: str) -> tuple[str, str]:
    lines = text.split("\n")
    if len(lines) <= _MAX_LINES and len(text) <= _MAX_CHARACTERS:
        return text, ""
    first = "\n".join(lines[: _MAX_LINES // 2])
    if len(first) > _MAX_CHARACTERS:
        first = first[: first.rfind(" ", 0, _MAX_CHARACTERS // 2) + 1 or _MAX_CHARACTERS // 2]
    return first, text[len(first) :].lstrip("\n")


def prompt_html(text: str) -> SafeHtml:
    r"""Return the text of a prompt as HTML.

    >>> prompt_html("Fix `a<b`\nnow")
    '<p>Fix <code>a&lt;b</code>\nnow</p>'
    """
    if "```" not in text or len(text) > _MAX_FENCED:
        return SafeHtml(_paragraphs_html(text))
    html = ""
    end = 0
    for fence in _FENCE.finditer(text):
        html += f'{_paragraphs_html(text[end : fence.start()])}<div class="box">'
        html += f"{code_block(fence[2], fence[1])}</div>"
        end = fence.end()
    return SafeHtml(f"{html}{_paragraphs_html(text[end:])}")


def _paragraphs_html(text: str) -> str:
    parts = [part.strip("\n") for part in _BLANK.split(text)]
    return "".join([f"<p>{_inline_code_html(part)}</p>" for part in parts if part])


def _inline_code_html(text: str) -> str:
    # Every second part is code between backticks.
    parts = _CODE.split(text) if "`" in text else [text]
    html_parts = [escape_html(part) for part in parts]
    html_parts[1::2] = [f"<code>{code}</code>" for code in html_parts[1::2]]
    return "".join(html_parts)


_REASONS: Final = {
    "rewind": "after rewinding to turn {}",
    "edited": "prompt edited before it was answered",
    "dangling": "parent record missing",
    "second root": "separate root",
}
PRIME: Final = "\u2032"
"""Mark after the turn numbers of abandoned branches."""
_EN_DASH: Final = "\u2013"


class TurnView(msgspec.Struct):
    """A fully rendered turn."""

    id: str
    number: str
    clock: str = ""
    prompt: PromptView | None = None
    steps: Sequence[SafeHtml] = ()
    answer: SafeHtml | None = None
    later_steps: Sequence[SafeHtml] = ()
    """Steps after the answer."""
    figures: Sequence[tuple[str, str]] = ()
    """Values and their labels."""
    cost: str = ""
    subagent_cost: str = ""
    interrupted: bool = False
    errors: int = 0
    hidden_label: str = ""
    """Label of what the level of detail hides."""
    href: str = ""
    more_url: str = ""
    """URL of the turn with all details."""
    raw: str = ""
    record_count: str = ""
    kind: str = "turn"


class FoldedTurns(msgspec.Struct):
    """Consecutive turns as one row."""

    id: str
    first: int
    last: int
    text: str
    cost: str
    href: str
    source: str
    errors: int = 0
    kind: str = "fold"


class BranchView(msgspec.Struct):
    """An abandoned branch."""

    id: str
    number: str
    clock: str
    label: str
    reason: str
    facts: str
    cost: str
    href: str
    source: str
    raw: str = ""
    turns: Sequence[TurnView] = ()
    collapsed: bool = False
    kind: str = "side"


class MoreBranches(msgspec.Struct):
    """Abandoned branches that are loaded on request."""

    id: str
    text: str
    href: str
    source: str
    kind: str = "more"


def turn_view(turn: Turn, view: SessionView, options: RenderOptions, *, label: str = "", prefix: str = "t") -> TurnView:
    """Return a fully rendered turn."""
    links = options.links
    first = turn.nodes[0].offset if turn.nodes else 0
    box = TurnView(f"{prefix}{turn.number}", label or str(turn.number), interrupted=turn.interrupted)
    box.clock = humanize.time_of_day(turn.started.timestamp()) if turn.started else ""
    box.errors = turn.errors
    box.href = turn_url(view, options, turn.number)
    box.raw = links.inside(options.key, "records", view.agent, **{"from": first, "turn": turn.number})
    box.record_count = humanize.count(len(turn.nodes), "record")
    if turn.prompt is not None:
        box.prompt = prompt_view(turn.prompt, _prompt_images(turn.prompt, view, options))
    if options.shows_steps or turn.inner_seams:
        only_compactions = not options.shows_steps
        box.steps = step_lines(turn.steps, view, options, end=turn.before, only_compactions=only_compactions)
        box.later_steps = step_lines(turn.steps, view, options, begin=turn.before, only_compactions=only_compactions)
    if not options.shows_everything:
        box.hidden_label = _hidden_label(turn, options)
        box.more_url = turn_url(view, options, turn.number, detail="everything")
    if options.detail != "prompts" and turn.answer:
        box.answer = markdown_to_html(turn.answer)
    if options.detail != "prompts":
        _add_figures(box, turn, view)
    return box


def _prompt_images(prompt: Prompt, view: SessionView, options: RenderOptions) -> tuple[ImageView, ...]:
    if not prompt.images:
        return ()
    offset = prompt.node.offset

    def image_url(number: int) -> str:
        return options.links.inside(options.key, f"image/{offset}-{number}", view.agent)

    return thumbnails(view.transcript.record(prompt.node), image_url)


def _hidden_label(turn: Turn, options: RenderOptions) -> str:
    """Return a label of the hidden parts of a turn: notes and hooks, or all steps."""
    if not options.shows_steps:
        return "Show steps" if turn.steps else ""
    counts = Counter(step.kind for step in turn.steps if is_hidden(step, options))
    return ", ".join(humanize.count(counts[kind], kind) for kind in ("note", "hook") if counts[kind])


def _add_figures(box: TurnView, turn: Turn, view: SessionView) -> None:
    figures: list[tuple[str, str]] = []
    own_steps = count_steps(turn.steps)
    threads = {id(step.agent): step.agent for step in turn.steps if step.agent is not None}
    subagent_steps = sum(count_steps(subagent.steps) for subagent in threads.values())
    if own_steps or subagent_steps:
        unit = f"{'step' if own_steps + subagent_steps == 1 else 'steps'}"
        figures.append(
            (f"{own_steps + subagent_steps:,}", unit + (f", {subagent_steps:,} by sub-agents" * bool(subagent_steps)))
        )
    if turn.duration is not None:
        figures.append((humanize.spaced_duration(turn.duration), ""))
    usage = turn.usage
    if usage.messages:
        cached = f", {usage.cache_read * 100 // usage.context}% cached" if usage.context else ""
        figures.append((humanize.tokens(usage.context), f"in{cached}"))
        about = "at least " if usage.estimated else ""
        figures.append((f"{about}{humanize.tokens(usage.output)}", "out"))
    subagent_cost = sum((view.subagent_cost(each) for each in threads.values()), Cost())
    own_cost = view.turn_cost(turn)
    if own_cost.amount is not None and usage.messages:
        box.cost = money(own_cost.micro_dollars + subagent_cost.micro_dollars)
        box.subagent_cost = money(subagent_cost.micro_dollars) if subagent_cost.micro_dollars else ""
    context_tokens = context_tokens_at(view, turn.nodes)
    if context_tokens:
        figures.append((humanize.tokens(context_tokens), "context"))
    box.figures = figures


def context_tokens_at(view: SessionView, nodes: Sequence[Node]) -> int:
    """Return the context size after some records, in tokens."""
    for node in reversed(nodes):
        if node.type == "assistant" and node.model and not node.synthetic_error:
            usage = view.transcript.record(node).usage
            if usage is not None and usage.context:
                return usage.context
    return 0


def folded_turns(turns: Sequence[Turn], view: SessionView, options: RenderOptions) -> FoldedTurns:
    """Return consecutive turns as one row."""
    first, last = turns[0].number, turns[-1].number
    step_count = sum(count_steps(turn.steps) for turn in turns)
    first_prompt = next((turn.prompt.text for turn in turns if turn.prompt is not None), "")
    parts = [humanize.count(len(turns), "turn")] if len(turns) > 1 else []
    parts += [humanize.count(step_count, "step")] if step_count else []
    prompt_line = f"{one_line(first_prompt, 160)}"
    cost = sum((view.turn_cost(turn) for turn in turns), Cost())
    query: dict[str, str | int | None] = {"from": first, "to": last}
    if options.detail != "steps":
        query["detail"] = options.detail
    return FoldedTurns(
        f"f{first}-{last}",
        first,
        last,
        f"{', '.join(parts)}: {prompt_line}" if parts and prompt_line else ", ".join(parts) or prompt_line,
        money(cost.amount),
        turn_url(view, options, first),
        options.links.inside(options.key, "turns", view.agent, **query),
        sum(turn.errors for turn in turns),
    )


def branch_view(
    abandoned: AbandonedBranch, view: SessionView, options: RenderOptions, *, opened: bool = False
) -> BranchView:
    """Return an abandoned branch, with its content only if it is expanded."""
    branch = abandoned.branch
    started, ended = (read_time(node.timestamp) for node in _first_and_last(branch.nodes))
    elapsed = (ended - started).total_seconds() if started is not None and ended is not None else None
    calls = sum(len(node.uses) for node in branch.nodes)
    facts = [
        humanize.count(branch.turns, "turn") if branch.turns else "",
        humanize.count(calls, "step") if calls else humanize.count(len(branch.nodes), "record"),
        humanize.spaced_duration(elapsed) if elapsed else "",
    ]
    prime = PRIME * abandoned.depth
    last = abandoned.first_turn + max(branch.turns, 1) - 1
    anchor = f"b{abandoned.number}"
    box = BranchView(
        anchor,
        f"{abandoned.first_turn}{prime}"
        if last == abandoned.first_turn
        else f"{abandoned.first_turn}{prime}{_EN_DASH}{last}{prime}",
        humanize.time_of_day(started.timestamp()) if started is not None else "",
        "Abandoned" if branch.why in ABANDONED_REASONS else "Disconnected",
        _REASONS[branch.why].format(abandoned.after_turn),
        ", ".join(fact for fact in facts if fact),
        money(view.branch_cost(abandoned).amount),
        options.links.session(options.key, anchor, turn=abandoned.after_turn or 1, branch=abandoned.number),
        options.links.inside(options.key, f"branch/{abandoned.number}", detail=_detail_param(options)),
        options.links.inside(options.key, "records", "", **{"from": branch.nodes[0].offset}),
    )
    if opened:
        box.collapsed = options.collapsed
        box.turns = [
            turn_view(turn, view, options, label=f"{abandoned.first_turn + position}{prime}", prefix=f"{anchor}-")
            for position, turn in enumerate(view.branch_turns(abandoned))
        ]
    return box


def more_branches(after: int, remaining: int, view: SessionView, options: RenderOptions) -> MoreBranches:
    """Return a row for further branches after a turn."""
    first = view.branches_by_turn[after][-remaining]
    return MoreBranches(
        f"m{after}",
        f"{remaining:,} more abandoned here",
        options.links.session(options.key, f"b{first.number}", turn=after or 1, branch=first.number),
        options.links.inside(options.key, "sides", "", **{"from": after, "detail": _detail_param(options)}),
    )


def _detail_param(options: RenderOptions) -> str:
    return "" if options.detail == "steps" else options.detail


def _first_and_last(nodes: Sequence[Node]) -> tuple[Node, Node]:
    return nodes[0], nodes[-1]


def turn_html(box: "TurnView") -> Markup:
    """Return the HTML of a turn: prompt, steps, answer and figures."""
    prompt_html = _prompt_html(box.prompt) if box.prompt is not None else ""
    answer = f'<div class="prose">{box.answer}</div>\n' if box.answer else ""
    footer = _footer_html(box) if box.figures or box.interrupted else ""
    return trusted_markup(f"{prompt_html}{steps_html(box.steps)}{answer}{steps_html(box.later_steps)}{footer}")


def _prompt_html(prompt: "PromptView") -> str:
    tag = f'<div class="tagline">{escape_html(prompt.tag)}</div>' if prompt.tag else ""
    rest_html = ""
    if prompt.rest_html:
        summary = f'<summary class="link">All {prompt.line_count:,} lines</summary>'
        rest_html = f'<details class="long">{summary}{prompt.rest_html}</details>'
    return f'<div class="prompt">{tag}{prompt.first_html}{rest_html}{_attachments_html(prompt)}</div>\n'


def _attachments_html(prompt: "PromptView") -> str:
    if not prompt.images and not prompt.other_attachments:
        return ""
    images = "".join(_image_html(image, number) for number, image in enumerate(prompt.images, 1))
    others = ""
    if prompt.other_attachments:
        attachment_count = humanize.count(prompt.other_attachments, "other attachment")
        others = f'<span class="dim">{attachment_count}, see the record</span>'
    return f'<div class="attached">{images}{others}</div>'


def _image_html(image: "ImageView", number: int) -> str:
    caption = f"Image {number}: {escape_html(image.caption)}"
    address = image.url
    if not address:
        return f'<span class="dim">{caption}</span>'
    # Data URLs are already escaped; escaping such long texts again is slow.
    url = address if isinstance(address, Markup) else escape_html(address)
    if url.startswith("data:"):
        return f'<img src="{url}" alt="{caption}">'
    size_attributes = f' width="{image.width}" height="{image.height}"' if image.width and image.height else ""
    return f'<a href="{url}"><img src="{url}" alt="{caption}" loading="lazy"{size_attributes}></a>'


def _footer_html(box: "TurnView") -> str:
    html = ""
    if box.interrupted:
        html = f'<span class="warn">{icon_html("stop", "sm")} interrupted</span>'
    for figure, label in box.figures:
        if label == "context":
            html += f"<span>context <b>{escape_html(figure)}</b></span>"
        else:
            html += f"<span><b>{escape_html(figure)}</b> {escape_html(label)}</span>"
    if box.cost:
        agents = f", <b>{escape_html(box.subagent_cost)}</b> by sub-agents" if box.subagent_cost else ""
        html += f'<span><b class="money">{escape_html(box.cost)}</b>{agents}</span>'
    return f'<footer class="turn-foot">{html}<span class="end">{_links_html(box)}</span></footer>\n'


def _links_html(box: "TurnView") -> str:
    more_link = f'<a href="{escape_html(box.more_url)}">{escape_html(box.hidden_label)}</a>' if box.hidden_label else ""
    records = f"<span>{escape_html(box.record_count)}</span>"
    if box.raw:
        records = f'<a href="{escape_html(box.raw)}">{escape_html(box.record_count)}</a>'
    return f'{more_link}<a href="{escape_html(box.href)}">Link</a>{records}'


TurnSection: TypeAlias = TurnView | FoldedTurns | CompactionBox | BranchView | MoreBranches
_MAX_FULL_TURNS: Final = {"prompts": 120, "answers": 40, "steps": 16, "everything": 10}
_MAX_FULL_STEPS: Final = 200
_MAX_WHOLE_SESSION: Final = 30
_MAX_FOLDED_ROWS: Final = 60
"""Maximum rows before and after the fully rendered turns."""
_MAX_BRANCHES: Final = 8
"""Maximum abandoned branches rendered per turn."""
_BACK_EVERY: Final = 3
"""Of this many fully rendered turns, one is before the selected turn, the others are after it."""


def full_range(turns: Sequence[Turn], start_turn: int, detail: str) -> range:
    """Return the range of turns to render in full, including the selected turn."""
    if not turns:
        return range(0)
    counts_steps = detail in ("steps", "everything")
    steps = [len(turn.steps) if counts_steps else 0 for turn in turns]
    max_turns = _MAX_FULL_TURNS[detail]
    if len(turns) <= max(_MAX_WHOLE_SESSION, max_turns) and sum(steps) <= _MAX_FULL_STEPS:
        return range(1, len(turns) + 1)
    first = last = min(max(start_turn, 1), len(turns)) - 1
    weight = steps[first]
    while last - first + 1 < max_turns and weight < _MAX_FULL_STEPS:
        extends_back = first > 0 and ((last - first) % _BACK_EVERY == _BACK_EVERY - 1 or last == len(turns) - 1)
        if not extends_back and last == len(turns) - 1:
            break
        if extends_back:
            first -= 1
            weight += steps[first]
        else:
            last += 1
            weight += steps[last]
    return range(first + 1, last + 2)


def sections_around(view: SessionView, options: RenderOptions, start_turn: int, branch: int = 0) -> list[TurnSection]:
    """Return all sections of a conversation, rendered in full around one turn."""
    return list(_sections(view, options, view.turns, full_range(view.turns, start_turn, options.detail), branch))


def sections_between(
    view: SessionView, options: RenderOptions, first: int, last: int, full: range | None = None
) -> list[TurnSection]:
    """Return the sections of a range of turns. Those in `full`, by default as many as allowed, are rendered in full."""
    chosen = [turn for turn in view.turns if first <= turn.number <= last]
    if not chosen:
        return []
    if full is None:
        relative_range = full_range(chosen, 1, options.detail)
        shift = chosen[0].number - 1
        full = range(relative_range.start + shift, relative_range.stop + shift)
    return list(_sections(view, options, chosen, full, 0))


def _sections(
    view: SessionView, options: RenderOptions, turns: Sequence[Turn], full: range, branch: int
) -> Iterator[TurnSection]:
    if turns and turns[0].number == 1:
        yield from _branch_sections(view, options, 0, branch)
    size = max(1, -(-max(full.start - 1, len(turns) - full.stop + 1, 1) // _MAX_FOLDED_ROWS))
    folded: list[Turn] = []
    for turn in turns:
        is_full = turn.number in full
        if folded and (is_full or len(folded) >= size or turn.seams):
            yield folded_turns(folded, view, options)
            folded = []
        before = view.turns[turn.number - 2] if turn.number > 1 else None
        if turn.opening is not None:
            yield compaction_box(turn.opening, before, view, options)
        if is_full:
            yield turn_view(turn, view, options)
            yield from _branch_sections(view, options, turn.number, branch)
        else:
            folded.append(turn)
        # Branches within folded turns are shown after the row.
        following = () if is_full else turn.inner_seams
        for compaction in (*following, turn.closing):
            if compaction is None:
                continue
            if folded:
                yield folded_turns(folded, view, options)
                folded = []
            yield compaction_box(compaction, turn, view, options)
    if folded:
        yield folded_turns(folded, view, options)


def _branch_sections(
    view: SessionView, options: RenderOptions, after: int, branch: int
) -> Iterator[BranchView | MoreBranches]:
    """Yield the abandoned branches after a turn; of many, only the first and the selected one."""
    sides = view.branches_by_turn.get(after, [])
    visible = [
        abandoned for position, abandoned in enumerate(sides) if position < _MAX_BRANCHES or abandoned.number == branch
    ]
    for side in visible:
        yield branch_view(side, view, options, opened=side.number == branch)
    if len(sides) > len(visible):
        yield more_branches(after, len(sides) - len(visible), view, options)


def all_branches(view: SessionView, options: RenderOptions, after: int) -> list[TurnSection]:
    """Return all abandoned branches after a turn."""
    return [branch_view(abandoned, view, options) for abandoned in view.branches_by_turn.get(after, ())]
