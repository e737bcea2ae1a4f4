"""Health page: problems and the commands that fix them.

The page shows the results of the health monitor and starts a new check. It changes no files.
"""

from typing import Final

import msgspec
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from steno.report.diagnoses import DIAGNOSIS_CATEGORIES, AffectedSession, DiagnosisCategory, HealthDiagnosis
from steno.report.health_report import HealthReport
from steno.sanitize.html import escape_markup as shown
from steno.session.turns.prompts import UNTITLED
from steno.store.archive.catalogue import archived_count
from steno.web.state.app_state import AppState
from steno.web.templating import links, render_page

_TITLES: Final[dict[DiagnosisCategory, str]] = {
    "damage": "Damage",
    "risk": "Risk",
    "drift": "Drift",
    "clutter": "Cleanup",
}
_ICONS: Final[dict[DiagnosisCategory, tuple[str, str]]] = {
    "damage": ("cross", "bad"),
    "risk": ("clock", "warn"),
    "drift": ("unknown", "mid"),
    "clutter": ("archive", "mid"),
}
_NO_TITLE: Final = ("", "(no title)", UNTITLED)
_MAX_VERSIONS: Final = 8
_PERCENT: Final = 100


class _SessionLink(msgspec.Struct, frozen=True):
    """A session with a problem."""

    title: str
    href: str
    about: str


class _CaseView(msgspec.Struct, frozen=True):
    """A problem."""

    case: HealthDiagnosis
    means: Markup
    sessions: list[_SessionLink]


class _CaseGroup(msgspec.Struct, frozen=True):
    """Problems of one category."""

    harm: DiagnosisCategory
    title: str
    icon: str
    icon_class: str
    cases: list[_CaseView]


class _CheckLine(msgspec.Struct, frozen=True):
    """The result of one check, as a line."""

    ok: bool
    text: str


def health_page(app_state: AppState, request: Request) -> Response:
    """Return the page; with `part=body`, only the part that changes during a check."""
    app_state.health_monitor.start_check()
    report = app_state.health_monitor.health
    harm_name = request.query_params.get("harm", "")
    harms: list[DiagnosisCategory] = [harm for harm in DIAGNOSIS_CATEGORIES if harm == harm_name] or list(
        DIAGNOSIS_CATEGORIES
    )
    sessions = app_state.keys_and_titles_at([session.path for case in report.cases for session in case.sessions])
    groups = [
        _CaseGroup(harm, _TITLES[harm], *_ICONS[harm], [_case_view(each, sessions) for each in cases])
        for harm in harms
        if (cases := report.of(harm))
    ]
    template = "health-body.html.j2" if request.query_params.get("part") else "health.html.j2"
    text = render_page(
        app_state,
        template,
        here="health",
        health=report,
        progress=app_state.health_monitor.progress,
        asked=harm_name if harm_name in DIAGNOSIS_CATEGORIES else "",
        groups=groups,
        tabs=_tabs(report),
        versions=report.versions[:_MAX_VERSIONS],
        older=len(report.versions) - _MAX_VERSIONS,
        checks=_check_lines(app_state, report),
        read=_readable_share(report),
    )
    return HTMLResponse(text)


def _case_view(case: HealthDiagnosis, sessions: dict[str, tuple[str, str]]) -> _CaseView:
    return _CaseView(case, _inline_code(case.means), [_session_link(session, sessions) for session in case.sessions])


def _session_link(named: AffectedSession, sessions: dict[str, tuple[str, str]]) -> _SessionLink:
    key, title = sessions.get(named.path, ("", ""))
    return _SessionLink(named.name if title in _NO_TITLE else title, links().session(key) if key else "", named.about)


def _inline_code(text: str) -> Markup:
    """Return a text with parts between backticks as code."""
    parts = text.split("`")
    if not len(parts) % 2:
        return shown(text)
    return Markup("").join(
        Markup("<code>{}</code>").format(shown(part)) if position % 2 else shown(part)
        for position, part in enumerate(parts)
    )


def _tabs(report: HealthReport) -> list[tuple[str, str, int, str]]:
    tabs = [(harm, _TITLES[harm], len(report.of(harm)), links().health(harm=harm)) for harm in DIAGNOSIS_CATEGORIES]
    return [("", "All", len(report.cases), links().health()), *(tab for tab in tabs if tab[2])]


def _readable_share(report: HealthReport) -> str:
    """Return the share of lines that are valid records; never rounded up to 100%."""
    lines = report.records + report.gaps
    if not lines:
        return "none"
    share = report.records * _PERCENT / lines
    return "100%" if not report.gaps else f"{min(share, 99.99):.2f}%"


def _check_lines(app_state: AppState, report: HealthReport) -> list[_CheckLine]:
    state, archived = app_state.index_status, archived_count()
    folders = "Directories readable" if not report.unread else f"{report.unread:,} paths unreadable"
    index = state.problem or ("Updating index" if state.syncing else "Index up to date")
    archive = f"Archived sessions: {archived:,}" if archived else "No archived sessions"
    days = f"Claude Code deletes sessions after {report.cleanup_days:g} days"
    checks = [
        _CheckLine(not report.unread, folders),
        _CheckLine(not state.problem, index),
        _CheckLine(bool(archived) or not report.unkept, archive),
    ]
    if report.cleanup_days:
        checks.append(_CheckLine(not report.unkept, days))
    if report.newest:
        beyond = not report.unknown
        checks.append(_CheckLine(beyond, f"Format known up to Claude Code {report.newest}"))
    if report.empty:
        checks.append(_CheckLine(ok=True, text=f"{report.empty:,} files without a conversation"))
    return checks
