"""Project page: sessions, usage, instructions, memory, plans, settings of one project."""

from typing import Any, Final

import msgspec
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from steno.format.paths import SHORT_ID_LENGTH
from steno.report import humanize
from steno.report.humanize import MS_PER_SECOND, money
from steno.report.project_config import ProjectNote, SessionTodos, TypedPrompt
from steno.report.project_overview import LinkedPullRequest, ProjectOverview, WeeklyUsage, load_project_overview
from steno.sanitize.html import trusted_markup
from steno.web.render.charts import week_bars
from steno.web.render.code import code_block
from steno.web.render.markdown import markdown_markup
from steno.web.state.app_state import AppState
from steno.web.templating import links, render_page
from steno.web.urls import path_for_tag, path_tag
from steno.web.views.comparison import session_choices

_WEB_SCHEMES: Final = ("https://", "http://")


class _NoteView(msgspec.Struct, frozen=True):
    """A rendered Markdown file."""

    name: str
    source: str
    shown: Markup
    more: int
    lines: int


class _TodoView(msgspec.Struct, frozen=True):
    """The to-do list of a session."""

    title: str
    href: str
    todo: SessionTodos


class _PromptView(msgspec.Struct, frozen=True):
    """A prompt of the prompt history."""

    typed: TypedPrompt
    when: str
    href: str


class _PullRequestView(msgspec.Struct, frozen=True):
    """A pull request; `href` is empty if its address is not a web URL."""

    pull: LinkedPullRequest
    href: str
    session: str


def project_page(app_state: AppState, request: Request) -> Response:
    """Return the project page."""
    with app_state.index() as index:
        connection = index.connection
        paths = connection.execute("SELECT DISTINCT project FROM sessions WHERE project != ''")
        path = path_for_tag(request.path_params["tag"], (row for (row,) in paths))
        details = load_project_overview(connection, path, app_state.prices, app_state.now())
        rows = session_choices(app_state, index, ((each, "") for each in details.listing.rows))
        names = [*(each.session for each in details.kept.lists), *(each.session for each in details.kept.prompts)]
        marks = ", ".join("?" * len(names))
        titles: dict[str, str] = dict(
            connection.execute(f"SELECT id, title FROM sessions WHERE agent = '' AND id IN ({marks})", names)
        )
    values: dict[str, Any] = {
        "here": "sessions",
        "found": details,
        "tag": path_tag(path),
        "name": humanize.project_name(path) or path,
        "rows": rows,
        "strip": _summary_figures(details, app_state.now()),
        "chart": _week_chart(details.weeks),
        "told": [_note_view(each) for each in (*details.own.notes, *details.kept.instructions)],
        "memory": [_note_view(each) for each in details.kept.memory],
        "plans": [_note_view(each) for each in details.kept.plans],
        "lists": [_todo_view(each, titles) for each in details.kept.lists],
        "prompts": [_prompt_view(each, titles, app_state.now()) for each in details.kept.prompts],
        "pulls": [_pull_request_view(each) for each in details.pulls],
        "settings": [
            (each.source, each.settings, trusted_markup(code_block(each.settings.masked, "json")))
            for each in details.settings
        ],
        "ended": {
            each.name: "" if each.ended is None else humanize.day_name(each.ended / MS_PER_SECOND, app_state.now())
            for each in details.branches
        },
        "tag_of": path_tag,
        "short": _path_prefix(path),
    }
    return HTMLResponse(render_page(app_state, "project.html.j2", **values))


def _summary_figures(details: ProjectOverview, now: float) -> list[tuple[str, str, str]]:
    """Return the summary figures: label, value and note."""
    sums = details.sums
    since = "" if sums.started is None else humanize.day_name(sums.started / MS_PER_SECOND, now)
    last = "" if sums.ended is None else humanize.day_name(sums.ended / MS_PER_SECOND, now)
    last = last.lower() if last in ("Today", "Yesterday") else last
    figures = sums.figures
    cached = f"{figures.cache_read / figures.context:.0%} cached" if figures.context else ""
    share = f"{sums.failed / sums.steps:.0%} of {sums.steps:,} steps" if sums.steps else ""
    return [
        ("Sessions", f"{sums.sessions:,}", f"since {since}" if since else ""),
        ("Turns", f"{sums.turns:,}", f"last {last}" if last else ""),
        ("Cost", money(sums.cost) or "unknown", humanize.count(figures.responses, "response")),
        ("Input tokens", humanize.tokens(figures.context), cached),
        ("Output tokens", humanize.tokens(figures.output), ""),
        ("Failed steps", f"{sums.failed:,}", share),
    ]


def _week_chart(project_weeks: list[WeeklyUsage]) -> Markup:
    """Draw the cost per week, or tokens if no price is known."""
    if not project_weeks:
        return Markup("")
    priced = any(week.cost for week in project_weeks)
    values = [week.cost if priced else week.tokens for week in project_weeks]
    value_texts = [money(value) if priced else f"{humanize.tokens(value)} tokens" for value in values]
    labels = [
        f"Week of {week.monday}: {value_text}" for week, value_text in zip(project_weeks, value_texts, strict=True)
    ]
    highest = value_texts[values.index(max(values))]
    label = f"{humanize.count(len(project_weeks), 'week')}, highest {highest}, this week {value_texts[-1]}"
    return week_bars(values, [week.monday for week in project_weeks], labels, label, highest)


def _note_view(note: ProjectNote) -> _NoteView:
    return _NoteView(note.name, note.source, markdown_markup(note.text), note.more, len(note.text.splitlines()))


def _todo_view(todo: SessionTodos, titles: dict[str, str]) -> _TodoView:
    is_indexed = todo.session in titles
    title = titles.get(todo.session) or todo.session[:SHORT_ID_LENGTH]
    return _TodoView(title, links().session(todo.session) if is_indexed else "", todo)


def _prompt_view(typed: TypedPrompt, titles: dict[str, str], now: float) -> _PromptView:
    is_indexed = typed.session in titles
    seconds = typed.time / MS_PER_SECOND
    when = humanize.day_and_time(seconds, now) if 0 < seconds < now * 2 else ""
    return _PromptView(typed, when, links().session(typed.session) if is_indexed else "")


def _pull_request_view(pull: LinkedPullRequest) -> _PullRequestView:
    href = pull.address if pull.address.startswith(_WEB_SCHEMES) else ""
    return _PullRequestView(pull, href, links().session(pull.key))


def _path_prefix(path: str) -> str:
    base = path.rstrip("/\\")
    return base + ("\\" if "\\" in base and "/" not in base else "/") if base else ""
