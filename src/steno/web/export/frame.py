"""What every exported page has: its styles and its script, and a policy that lets it load nothing.

The policy names both by their fingerprints, so nothing else on the page runs or changes its looks,
whatever a session says.
"""

import re
from base64 import b64encode
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final

from markupsafe import Markup

from steno.web.links import Links
from steno.web.paint import part, sprite, static_bytes

__all__ = ["page_of"]

_STYLES: Final = ("steno.css", "bodies.css", "session.css", "export.css")
_SCRIPTS: Final = ("theme.js", "export.js", "paint.js")
_COMMENT: Final = re.compile(r"/\*.*?\*/", re.DOTALL)
_INDENT: Final = re.compile(r"\n\s*")


@lru_cache(maxsize=1)
def _frame() -> dict[str, Markup]:
    styles = "".join(static_bytes(name).decode() for name in _STYLES)
    styles = _INDENT.sub("\n", _COMMENT.sub("", styles)).strip()
    script = "".join(static_bytes(name).decode() for name in _SCRIPTS)
    policy = (
        f"default-src 'none'; style-src '{_print_of(styles)}'; script-src '{_print_of(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    icon = b64encode(static_bytes("mark.svg")).decode()
    return {
        "styles": Markup(styles),
        "script": Markup(script),
        "policy": Markup(policy),
        "icon": Markup(f"data:image/svg+xml;base64,{icon}"),
        "sprite": sprite(),
    }


def _print_of(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def page_of(template: str, links: Links, **values: Any) -> str:
    """Return a whole page."""
    return part(template, links=links, **_frame(), **values)
