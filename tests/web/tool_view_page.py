"""A page, for tests alone, on which everything inside the steps of a session stands open."""

from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from steno.sanitize.html import trusted_markup
from steno.session.session import Session
from steno.session.turns.steps import Step
from steno.web.state.app_state import AppState
from steno.web.templating import links, sprite
from steno.web.tool_views import ViewContext, gap_view, record_view, step_content

__all__ = ["gallery"]

_PAGE = Markup(
    '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Bodies</title>'
    '<meta name="viewport" content="width=device-width, initial-scale=1">'
    '<meta name="color-scheme" content="light dark">'
    '<link rel="icon" href="{}"><link rel="stylesheet" href="{}"><link rel="stylesheet" href="{}">'
    '</head><body><div hidden>{}</div><main class="page" id="main"><h1>Bodies</h1>'
    '<div class="turns">{}</div></main></body></html>'
)
_STEP = Markup(
    '<details class="step {}" open><summary><span></span><span></span><span class="what"><b>{}</b>'
    '<span class="say">{}</span><span class="res">{}</span></span></summary>'
    '<div class="in">{}</div></details>'
)


def gallery(house: AppState, request: Request) -> Response:
    """Return the bodies of a session: all, or with `verb` some; `raw=1` gives its records."""
    asked = request.query_params
    key = request.path_params["key"]
    with house.index() as index:
        place = house.session_ref(index, key)
    with house.open_session(place) as session:
        about = ViewContext(
            key,
            "",
            session.transcript,
            links(),
            full=asked.get("full") == "1",
            start=int(asked.get("from", "0")),
            side_by_side=asked.get("diff") == "side",
            path="step/0-0",
        )
        made = _raw(session, about) if asked.get("raw") else _steps(session, about, asked.get("verb", ""))
    sheets = [links().static(name) for name in ("mark.svg", "steno.css", "bodies.css")]
    return HTMLResponse(_PAGE.format(*sheets, sprite(), made))


def _steps(session: Session, about: ViewContext, verb: str) -> Markup:
    steps = [step for turn in session.turns() for step in turn.steps]
    wanted = [step for step in steps if not verb or verb in (step.verb, step.kind)]
    return Markup("").join(_step(step, about) for step in wanted)


def _step(step: Step, about: ViewContext) -> Markup:
    kind = "agent w1" if step.kind == "agent" else ""
    return _STEP.format(kind, step.verb, step.subject, step.outcome, trusted_markup(step_content(step, about)))


def _raw(session: Session, about: ViewContext) -> Markup:
    nodes = session.transcript.nodes
    shown = [record_view(session.transcript.record(node), about) for node in nodes[-12:]]
    gaps = [gap_view(gap, about) for gap in session.transcript.gaps]
    return Markup("").join(_STEP.format("", "Record", "", "", trusted_markup(each)) for each in [*shown, *gaps])
