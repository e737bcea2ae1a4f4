"""The smallest pieces of pages, of which there are very many: icons and names of files."""

from functools import lru_cache

from markupsafe import Markup

from steno.safe.html import Html, escaped, trusted

__all__ = ["glyph", "icon_of", "path_html"]


@lru_cache(maxsize=256)
def icon_of(name: str, classes: str = "") -> Html:
    """Return an icon from the sprite that every page carries; both names are our own."""
    return Html(f'<svg class="i {classes}" aria-hidden="true"><use href="#i-{name}"/></svg>')


def glyph(name: str, classes: str = "") -> Markup:
    """Return the same for a template."""
    return trusted(icon_of(name, classes))


def path_html(text: str) -> str:
    """Return a path that keeps its last part when room is short; anything else is cut at the end."""
    shown = escaped(text)
    if "/" not in shown or " " in shown:
        return f'<span class="arg">{shown}</span>'
    folder, _, leaf = shown.rpartition("/")
    return (
        f'<span class="arg path"><span class="dir">{folder}/</span>'
        f'<span class="leaf">{leaf}</span></span>'
    )
