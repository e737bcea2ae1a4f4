"""Steps as HTML: lines, contents, and compactions between steps.

A page has thousands of steps, so the HTML is built without templates. Everything from a session is
escaped here.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Final

import msgspec
from markupsafe import Markup

from steno.format.tool_catalogue import tool_facts
from steno.report import humanize
from steno.report.humanize import MINUS_SIGN, money
from steno.sanitize.html import SafeHtml, escape_html, escape_text, trusted_markup
from steno.session.turns.compactions import Compaction, context_sizes, summary_text
from steno.session.turns.session_facts import count_steps
from steno.session.turns.steps import Step, StepKind
from steno.web.render.markdown import markdown_markup
from steno.web.templating import icon_html, path_html, render_part
from steno.web.tool_views import ViewContext, step_content
from steno.web.urls import Links
from steno.web.views.session_params import DETAIL_LEVELS, SessionPageParams
from steno.web.views.session_view import SessionView, subagent_key

if TYPE_CHECKING:
    from collections.abc import Sequence

    from steno.session.turns.subagents import Thread
    from steno.session.turns.turn_builder import Turn


QUIET_KINDS: Final = frozenset(("note", "hook"))
"""Kinds of steps shown only at the highest level of detail, unless they failed."""
_TEXT_KINDS: Final = frozenset(("thought", "words", "agent", "error", "note", "queued"))
_KIND_ICONS: Final = {
    "agent": "agent",
    "thought": "think",
    "words": "say",
    "queued": "clock",
    "hook": "branch",
    "error": "warn",
    "note": "dot",
    "unknown": "unknown",
}
_STATE_ICONS: Final = {
    "done": ("check", "st"),
    "failed": ("cross", "st bad"),
    "recovered": ("warn", "st warn"),
    "interrupted": ("stop", "st"),
    "denied": ("stop", "st warn"),
}
STEP_END: Final = SafeHtml("</div></details>\n")
"""HTML that closes an opened step."""
_MAX_VERB: Final = 100
"""Maximum characters of a verb; the verb of an unknown kind of step comes from the record."""
_LIVE_MARK: Final = '<span class="pulse"></span>'


def step_icon(kind: StepKind, verb: str) -> str:
    """Return the icon name of a kind of step."""
    return _KIND_ICONS.get(kind) or tool_facts(verb).icon


def steps_html(lines: "Sequence[SafeHtml]") -> Markup:
    """Return steps as a list."""
    return trusted_markup(f'<div class="steps">{"".join(lines)}</div>\n' if lines else "")


def step_html(
    step: Step, step_key: str, view: "SessionView", options: "RenderOptions", body: SafeHtml | None = None
) -> SafeHtml:
    """Return a step as a line that opens in place; without JavaScript, it links to its own page."""
    if step.kind == "queued":
        return _queued_prompt_html(step, step_key, view, options)
    line_markup = step_line_html(step, step_key, view, options, has_body=body is not None)
    if body is None:
        body = _step_link(step_key, view, options, "link", "Open step")
    return SafeHtml(f"{line_markup}{body}{STEP_END}")


def step_line_html(
    step: Step, step_key: str, view: "SessionView", options: "RenderOptions", *, has_body: bool
) -> SafeHtml:
    """Return the line of a step, up to its content; `has_body` means that the content follows."""
    kind, agent = step.kind, step.agent
    description = _description_html(step, options.project) if agent is None else _subagent_html(step, agent, view)
    live = options.live and step.state == "open"
    classes, state_html = _state_html(kind, "live" if live else step.state)
    if agent is not None:
        classes = f"agent w{view.subagent_colour(agent)} {classes}".strip()
    source = _data_attributes(step, step_key, view, options) if options.links.live else ""
    opened = (" data-full" if options.collapsed else " open data-full") if has_body else ""
    return SafeHtml(
        f'<details class="step {classes}" data-stop data-place="{step_key}"{source}{opened}>'
        f"<summary>{_line_head(kind, step.verb[:_MAX_VERB])}{description}"
        f'<span class="fig">{humanize.spaced_duration(step.duration) if step.duration is not None else ""}</span>'
        f'<span>{state_html}</span></summary><div class="in">'
    )


@lru_cache(maxsize=512)
def _line_head(kind: StepKind, verb: str) -> str:
    icon = icon_html(step_icon(kind, verb), "kind")
    return f'{icon_html("chev", "chev sm")}{icon}<span class="what"><b>{escape_text(verb)}</b>'


def _description_html(step: Step, project: str) -> str:
    """Return the description of a step: subject, outcome and tokens."""
    subject, touch = step.subject, step.touch
    if step.kind in _TEXT_KINDS:
        html = _text_html(_strip_markdown(subject))
    else:
        if project and subject.startswith(f"{project}/"):
            subject = subject[len(project) + 1 :]
        html = path_html(subject) if subject else ""
    if touch is not None and (touch.added or touch.removed) and touch.changes:
        html += _changes_html(touch.added, touch.removed)
    elif _is_meaningful(step.outcome):
        html += f'<span class="res">{escape_text(step.outcome)}</span>'
    return f'{html}</span><span class="fig tok">{_format_tokens(step.tokens)}</span>'


def _subagent_html(step: Step, agent: "Thread", view: "SessionView") -> str:
    """Return the description of a sub-agent: steps, tokens and cost."""
    cost = money(view.subagent_cost(agent).amount)
    step_count = humanize.count(count_steps(agent.steps), "step")
    outcome = escape_text(f"{step_count}, {cost}" if cost else step_count)
    tokens = _format_tokens(agent.usage.total if agent.usage.messages else None)
    return (
        f'{_text_html(agent.description or _strip_markdown(step.subject))}<span class="res">{outcome}</span></span>'
        f'<span class="fig tok">{tokens}</span>'
    )


def _text_html(text: str) -> str:
    return f'<span class="say">{escape_text(text)}</span>' if text else ""


def _format_tokens(number: int | None) -> str:
    return humanize.tokens(number) if number else ""


def _strip_markdown(text: str) -> str:
    """Return one line of Markdown without markup characters.

    >>> _strip_markdown("## **Step 5**: `git` accepts a*b")
    'Step 5: git accepts a*b'
    """
    return text.lstrip("#> ").replace("**", "").replace("`", "")


def _is_meaningful(outcome: str) -> bool:
    """Return whether an outcome contains letters or digits, and not only box-drawing characters."""
    return outcome[:1].isalnum() or any(map(str.isalnum, outcome))


def _changes_html(added: int, removed: int) -> str:
    added_html = f"<b>+{added}</b>" if added else ""
    removed_html = f"<i>{MINUS_SIGN}{removed}</i>" if removed else ""
    return f'<span class="pm">{added_html}{" " if added_html and removed_html else ""}{removed_html}</span>'


@lru_cache(maxsize=64)
def _state_html(kind: StepKind, state: str) -> tuple[str, str]:
    """Return the CSS classes of a step and the icon of its state."""
    name = "thought" if kind == "thought" else "quiet" if kind in QUIET_KINDS else ""
    if state == "failed":
        name = f"{name} failed"
    elif state == "denied" or kind == "error":
        name = f"{name} warned"
    if state == "ok":
        # Steps other than tool calls show no state if they succeeded.
        state = "recovered" if kind == "error" else "done" if kind in ("tool", "agent") else ""
    elif state == "open":
        state = "interrupted"
    elif state == "unknown":
        # The outcome describes the state.
        state = ""
    if not state:
        return name.strip(), ""
    mark = _LIVE_MARK if state == "live" else icon_html(*_STATE_ICONS[state])
    return name.strip(), f'{mark}<span class="vh">{state}</span>'


# Links, if a server is available


def _data_attributes(step: Step, step_key: str, view: "SessionView", options: "RenderOptions") -> str:
    """Return attributes with the URLs of the step content and its record."""
    inside = options.links.inside(options.key, f"step/{step_key}", view.agent, part=1)
    return f' data-src="{escape_html(inside)}" data-raw="{_record_url(step, view, options)}"'


def _record_url(step: Step, view: "SessionView", options: "RenderOptions") -> str:
    node = step.call or step.result
    if node is None or not options.links.live:
        return ""
    return escape_html(options.links.record(options.key, node.offset, view.agent))


def _step_link(step_key: str, view: "SessionView", options: "RenderOptions", classes: str, label: str) -> SafeHtml:
    if not options.links.live:
        return SafeHtml("")
    address = escape_html(options.links.inside(options.key, f"step/{step_key}", view.agent))
    return SafeHtml(f'<a class="{classes}" href="{address}">{label}</a>')


def _queued_prompt_html(step: Step, step_key: str, view: "SessionView", options: "RenderOptions") -> SafeHtml:
    """Return a queued prompt."""
    clock = f" {humanize.local_second(step.started)}" if step.started else ""
    link = _step_link(step_key, view, options, "link end", "Open")
    return SafeHtml(
        f'<div class="prompt queued" data-stop data-place="{step_key}" '
        f'data-raw="{_record_url(step, view, options)}"><div class="tagline">{icon_html("clock", "sm")}'
        f"<span>{escape_text(step.verb)}{clock}, delivered here</span>{link}</div>"
        f"<p>{escape_text(_strip_markdown(step.subject))}</p></div>\n"
    )


class CompactionBox(msgspec.Struct):
    """A compaction of the conversation."""

    id: str
    clock: str
    label: str
    figures: str
    trigger_label: str
    kept_label: str
    summary: Markup | None = None
    summary_url: str = ""
    dropped_url: str = ""
    record_url: str = ""
    inside_turn: bool = False
    """Whether the compaction is within a turn."""
    kind: str = "seam"


def _kept_label(compaction: Compaction) -> str:
    """Return a label of the messages that a compaction kept."""
    label = humanize.kept_message_count(compaction.messages_before, compaction.messages_kept, compaction.ratio)
    if label or not compaction.kept:
        return label
    return f"{humanize.count(len(compaction.kept), 'record')} kept verbatim"


def compaction_box(
    compaction: Compaction, before: "Turn | None", view: "SessionView", options: "RenderOptions"
) -> CompactionBox:
    """Return a compaction; `before` is the turn before it."""
    record = view.transcript.record(compaction.boundary)
    trigger = {"auto": "automatic", "manual": "manual"}.get(compaction.trigger, compaction.trigger)
    duration_label = f"took {humanize.spaced_duration(compaction.duration)}" if compaction.duration else ""
    number = view.compaction_numbers.get(compaction.boundary.index)
    box = CompactionBox(
        f"c{number}" if number else "",
        humanize.time_of_day(record.time.timestamp()) if record.time else "",
        "Compacted" if compaction.kind == "full" else "Old tool results cleared",
        humanize.token_reduction(*context_sizes(compaction)),
        ", ".join(item for item in (trigger, duration_label) if item),
        _kept_label(compaction),
        record_url=options.links.record(options.key, compaction.boundary.offset, view.agent),
    )
    if compaction.summary is not None:
        text = summary_text(view.transcript, compaction)
        box.summary = markdown_markup(text) if text else None
        box.summary_url = options.links.record(options.key, compaction.summary.offset, view.agent)
    if before is not None:
        box.dropped_url = turn_url(view, options, before.number)
    return box


def compaction_html(compaction: Compaction, view: "SessionView", options: "RenderOptions", *, depth: int) -> SafeHtml:
    """Return a compaction within a turn. Within another step, it has no anchor."""
    box = compaction_box(compaction, None, view, options)
    box.inside_turn = True
    if depth:
        box.id = ""
    return SafeHtml(render_part("session-seam.html.j2", piece=box))


def turn_url(view: "SessionView", options: "RenderOptions", turn: int, detail: str = "") -> str:
    """Return the URL of a turn."""
    detail_param = detail or ("" if options.detail == "steps" else options.detail)
    return options.links.thread(options.key, view.agent, f"t{turn}", turn=turn, detail=detail_param)


_MAX_DEPTH: Final = 3
"""Maximum nesting depth of sub-agents that are rendered inline."""


class RenderOptions(msgspec.Struct):
    """Options for rendering a session."""

    key: str
    links: Links
    detail: str = "steps"
    open_steps: frozenset[str] = frozenset()
    """Keys of expanded steps."""
    live: bool = False
    """Whether the session may still be active."""
    project: str = ""
    collapsed: bool = False
    """Whether steps with rendered content are collapsed."""
    full: bool = False
    """Whether to render the full content of steps."""
    defer_step: Callable[[SafeHtml, SafeHtml, SafeHtml], SafeHtml] | None = None
    """Stores the start, content and end of a step elsewhere and returns a placeholder."""

    @property
    def shows_everything(self) -> bool:
        """Return whether notes and hooks are shown."""
        return self.detail == "everything"

    @property
    def shows_steps(self) -> bool:
        """Return whether steps are shown."""
        return self.detail in DETAIL_LEVELS[2:]


def keyed_steps(steps: Iterable[Step]) -> Iterator[tuple[str, Step]]:
    """Yield steps with their keys: offset of the record and position within it."""
    counts: dict[int, int] = {}
    for step in steps:
        node = step.call or step.result
        offset = -1 if node is None else node.offset
        number = counts.get(offset, 0)
        counts[offset] = number + 1
        yield f"{offset}-{number}", step


def step_lines(
    steps: Iterable[Step],
    view: SessionView,
    options: RenderOptions,
    *,
    depth: int = 0,
    begin: int = 0,
    end: int | None = None,
    only_compactions: bool = False,
) -> list[SafeHtml]:
    """Return the visible lines of the steps from `begin` to `end`, with compactions as boxes.

    With `only_compactions`, return only the compactions.
    """
    return [
        _step_or_compaction(step_key, step, view, options, depth)
        for step_key, step in islice(keyed_steps(steps), begin, end)
        if step.seam is not None or not (only_compactions or is_hidden(step, options))
    ]


def is_hidden(step: Step, options: RenderOptions) -> bool:
    """Return whether a step is a note or hook without problems, shown only at the highest level of detail."""
    is_quiet = step.kind in QUIET_KINDS and step.seam is None
    return is_quiet and not options.shows_everything and not _needs_attention(step)


def _needs_attention(step: Step) -> bool:
    """Return whether a note or hook failed and is always shown."""
    return step.state in ("failed", "interrupted", "denied")


def _step_or_compaction(step_key: str, step: Step, view: SessionView, options: RenderOptions, depth: int) -> SafeHtml:
    if step.seam is not None:
        return compaction_html(step.seam, view, options, depth=depth)
    if step_key not in options.open_steps or step.kind == "queued":
        return step_html(step, step_key, view, options)
    body = step_body(step, step_key, view, options, depth=depth)
    if options.defer_step is None:
        return step_html(step, step_key, view, options, body)
    return options.defer_step(step_line_html(step, step_key, view, options, has_body=True), body, STEP_END)


# Content


def step_body(
    step: Step,
    step_key: str,
    view: SessionView,
    options: RenderOptions,
    *,
    params: SessionPageParams | None = None,
    depth: int = 0,
) -> SafeHtml:
    """Return the content of an opened step; `params` select the excerpt and the diff style."""
    if step.agent is not None and depth < _MAX_DEPTH:
        return _subagent_body(step, view, options, depth)
    if params is None and not options.links.live:
        return step_content(step, _shared_context(view, options))
    body_params = params or SessionPageParams(options.key, view.agent, full=options.full)
    context = view_context(f"step/{step_key}", view, options.key, options.links, body_params)
    return step_content(step, context)


def _shared_context(view: SessionView, options: RenderOptions) -> ViewContext:
    """Return a context shared by all steps, if steps have no URLs."""
    if view.shared_context is None:
        body_params = SessionPageParams(options.key, view.agent, full=options.full)
        view.shared_context = view_context("", view, options.key, options.links, body_params)
    return view.shared_context


def view_context(
    path: str, view: SessionView, key: str, links: Links, params: SessionPageParams | None = None
) -> ViewContext:
    """Return the context of a step or record."""
    body_params = params or SessionPageParams(key, view.agent)
    return ViewContext(
        key,
        view.agent,
        view.transcript,
        links,
        full=body_params.full,
        start=body_params.first_turn,
        side_by_side=body_params.side_by_side,
        path=path,
    )


def _subagent_body(step: Step, view: SessionView, options: RenderOptions, depth: int) -> SafeHtml:
    """Return the prompt, steps and report of a sub-agent."""
    subagent = step.agent
    if subagent is None:
        return SafeHtml("")
    subagent_view = SessionView(view.session, view.prices, subagent_key(subagent))
    steps = subagent.steps
    return SafeHtml(
        render_part(
            "session-agent.html.j2",
            brief=markdown_markup(subagent.prompt),
            lines=step_lines(steps, subagent_view, options, depth=depth + 1),
            report=markdown_markup(subagent.report) if subagent.report else "",
            href=options.links.agent(options.key, subagent_view.agent),
            status=subagent.status,
            steps=count_steps(steps),
        )
    )
