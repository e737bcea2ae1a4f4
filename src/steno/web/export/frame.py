"""What every exported page has: its styles and its script, and a policy that lets it load nothing.

The policy names both by their fingerprints, so nothing else on the page runs or changes its looks,
whatever a session says.
"""

import re
from base64 import b64encode
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final

from steno.safe.html import trusted
from steno.web.export.aside import Aside
from steno.web.links import Links
from steno.web.paint import part, sprite, static_bytes

__all__ = ["page_of"]

_STYLES: Final = ("steno.css", "bodies.css", "session.css", "export.css")
_SCRIPTS: Final = ("theme.js", "export.js", "paint.js")
_COMMENT: Final = re.compile(r"/\*.*?\*/", re.DOTALL)
_INDENT: Final = re.compile(r"\n\s*")


@lru_cache(maxsize=1)
def _frame() -> dict[str, bytes]:
    styles = "".join(static_bytes(name).decode() for name in _STYLES)
    styles = _INDENT.sub("\n", _COMMENT.sub("", styles)).strip()
    script = "".join(static_bytes(name).decode() for name in _SCRIPTS)
    policy = (
        f"default-src 'none'; style-src '{_print_of(styles)}'; script-src '{_print_of(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    icon = b64encode(static_bytes("mark.svg")).decode()
    frame = {
        "styles": styles,
        "script": script,
        "policy": policy,
        "icon": f"data:image/svg+xml;base64,{icon}",
        "sprite": sprite(),
    }
    return {name: text.encode() for name, text in frame.items()}


def _print_of(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def page_of(template: str, links: Links, aside: Aside, **values: Any) -> list[bytes]:
    """Return a whole page in pieces, with what was laid aside in its place."""
    frame = {name: trusted(aside.put(piece)) for name, piece in _frame().items()}
    return aside.parts(part(template, links=links, **frame, **values))
