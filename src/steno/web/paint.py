"""Templates, and the words and figures that they use.

Whatever a template is given is escaped, and characters that hide or turn text around are made
visible; only `Markup` that our own renderers made is taken as it is.
"""

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from markupsafe import Markup

from steno.report import words
from steno.report.words import money
from steno.safe.html import inert
from steno.web.links import Links
from steno.web.tags import tag_of

if TYPE_CHECKING:
    from jinja2 import Environment

    from steno.web.house import House

__all__ = [
    "ago",
    "duration",
    "links",
    "make_ready",
    "money",
    "page",
    "part",
    "sprite",
    "static_bytes",
    "static_names",
]

_PLACE: Final = "steno.web"


@lru_cache(maxsize=1)
def _environment() -> "Environment":
    from jinja2 import Environment, PackageLoader, StrictUndefined

    from steno.web.compiled import Compiled

    environment = Environment(
        loader=PackageLoader(_PLACE, "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
        auto_reload=False,
        bytecode_cache=Compiled(__file__),
    )
    environment.filters.update(
        tokens=words.tokens,
        duration=duration,
        ago=ago,
        size=words.size,
        money=money,
        clock=words.clock,
        model=words.model_name,
        project=words.project_name,
        tag=tag_of,
    )
    from steno.web.render.pieces import glyph
    from steno.web.story.drawn import turn_html
    from steno.web.story.line import steps_html

    shared: dict[str, Any] = {
        "count": words.count,
        "glyph": glyph,
        "steps_html": steps_html,
        "turn_html": turn_html,
    }
    environment.globals.update(shared)
    return environment


def _shown(value: object) -> object:
    if value is None:
        return ""
    return inert(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def page(house: "House", template: str, /, **values: Any) -> str:
    """Return a whole page. `links` may be given; the explorer's own are used otherwise."""
    return (
        _environment()
        .get_template(template)
        .render(
            {"links": links(), "house": house, "now": house.now(), "sprite": sprite(), **values}
        )
    )


def part(template: str, /, **values: Any) -> str:
    """Return a piece of a page."""
    return _environment().get_template(template).render({"links": links(), **values})


def make_ready() -> None:
    """Compile every template, so that nobody who looks has to wait for it."""
    environment = _environment()
    for name in environment.list_templates():
        environment.get_template(name)


@lru_cache(maxsize=1)
def links() -> Links:
    """Return the explorer's own addresses."""
    return Links(mark())


@lru_cache(maxsize=1)
def mark() -> str:
    """Return what changes whenever a static file does."""
    from hashlib import blake2b

    digest = blake2b(digest_size=6)
    for name in sorted(static_names()):
        digest.update(static_bytes(name))
    return digest.hexdigest()


@lru_cache(maxsize=1)
def static_names() -> frozenset[str]:
    """Return the files that pages load."""
    from importlib.resources import files

    folder = files(_PLACE) / "static"
    return frozenset(each.name for each in folder.iterdir() if each.is_file())


@lru_cache(maxsize=64)
def static_bytes(name: str) -> bytes:
    """Return one of them."""
    from importlib.resources import files

    return (files(_PLACE) / "static" / name).read_bytes()


@lru_cache(maxsize=1)
def sprite() -> Markup:
    """Return every icon, to be named by a page."""
    return Markup(static_bytes("icons.svg").decode())


def ago(seconds: float) -> str:
    """Return how long something is past, as people say it.

    >>> ago(59), ago(500), ago(7300), ago(180_000)
    ('just now', '8 minutes ago', '2 hours ago', '2 days ago')
    """
    for length, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= length:
            return f"{words.count(int(seconds // length), unit)} ago"
    return "just now"


def duration(seconds: float | None) -> str:
    """Return how long something took, with room between number and unit.

    >>> duration(6720), duration(108), duration(2880), duration(2.4)
    ('1 h 52', '1 m 48', '48 m', '2.4 s')
    """
    short = words.duration(seconds)
    if short.endswith("s"):
        return short
    for unit in "dhm":
        short = short.replace(unit, f" {unit} ")
    return short.strip()
