"""Jinja environment, filters and globals, icons, static files.

Values are escaped, and invisible or reordering characters are made visible. Only `Markup` from the
renderers of this package is inserted unescaped.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from steno.report import humanize
from steno.report.humanize import money
from steno.sanitize.html import SafeHtml, escape_html, trusted_markup, visible_text
from steno.web.urls import Links, path_tag

if TYPE_CHECKING:
    from jinja2 import Environment

    from steno.web.state.app_state import AppState


_PACKAGE: Final = "steno.web"


@lru_cache(maxsize=1)
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    from steno.web.template_cache import TemplateCache

    environment = Environment(
        loader=PackageLoader(_PACKAGE, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finalize,
        auto_reload=False,
        bytecode_cache=TemplateCache(__file__),
    )
    environment.filters.update(
        tokens=humanize.tokens,
        duration=humanize.spaced_duration,
        ago=humanize.ago,
        size=humanize.size,
        money=money,
        clock=humanize.time_of_day,
        model=humanize.model_name,
        project=humanize.project_name,
        tag=path_tag,
    )
    from steno.web.views.step_view import steps_html
    from steno.web.views.turn_view import turn_html

    shared: dict[str, Any] = {
        "count": humanize.count,
        "glyph": icon_markup,
        "steps_html": steps_html,
        "turn_html": turn_html,
    }
    environment.globals.update(shared)
    return environment


def _finalize(value: object) -> object:
    if value is None:
        return ""
    return visible_text(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def render_page(app_state: "AppState", template: str, /, **values: Any) -> str:
    """Render a page, by default with the URLs of the explorer."""
    return (
        _environment()
        .get_template(template)
        .render({"links": links(), "app_state": app_state, "now": app_state.now(), "sprite": sprite(), **values})
    )


def render_part(template: str, /, **values: Any) -> str:
    """Render a part of a page."""
    return _environment().get_template(template).render({"links": links(), **values})


def compile_templates() -> None:
    """Compile all templates in advance."""
    environment = _environment()
    for name in environment.list_templates():
        environment.get_template(name)


@lru_cache(maxsize=1)
def links() -> Links:
    """Return the URLs of the explorer."""
    return Links(static_version())


@lru_cache(maxsize=1)
def static_version() -> str:
    """Return a fingerprint of all static files."""
    from hashlib import blake2b

    digest = blake2b(digest_size=6)
    for name in sorted(static_names()):
        digest.update(static_bytes(name))
    return digest.hexdigest()


@lru_cache(maxsize=1)
def static_names() -> frozenset[str]:
    """Return the names of all static files."""
    from importlib.resources import files

    folder = files(_PACKAGE) / "static"
    return frozenset(file.name for file in folder.iterdir() if file.is_file())


@lru_cache(maxsize=64)
def static_bytes(name: str) -> bytes:
    """Return the content of a static file."""
    from importlib.resources import files

    return (files(_PACKAGE) / "static" / name).read_bytes()


@lru_cache(maxsize=1)
def sprite() -> Markup:
    """Return all icons as an SVG sprite."""
    return Markup(static_bytes("icons.svg").decode())


@lru_cache(maxsize=256)
def icon_html(name: str, classes: str = "") -> SafeHtml:
    """Return an icon of the sprite; the arguments are not escaped."""
    return SafeHtml(f'<svg class="i {classes}" aria-hidden="true"><use href="#i-{name}"/></svg>')


def icon_markup(name: str, classes: str = "") -> Markup:
    """Return an icon of the sprite, for a template."""
    return trusted_markup(icon_html(name, classes))


def path_html(text: str) -> str:
    """Return a path that is truncated in the middle to keep its last part; other texts are truncated at the end."""
    escaped_path = escape_html(text)
    if "/" not in escaped_path or " " in escaped_path:
        return f'<span class="arg">{escaped_path}</span>'
    folder, _, file_name = escaped_path.rpartition("/")
    return f'<span class="arg path"><span class="dir">{folder}/</span><span class="leaf">{file_name}</span></span>'
