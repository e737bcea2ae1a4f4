"""What exported pages share: links between files, deferred pieces, styles, script, CSP.

Finished steps are most of a page. A placeholder around a NUL character stands for each while
templates render, and they are inserted as bytes at the end. The policy allows only the page's own
style and script, by hash.
"""

import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from functools import lru_cache
from hashlib import sha256
from typing import Any, Final

from steno.sanitize.html import SafeHtml, trusted_markup
from steno.web.templating import render_part, sprite, static_bytes
from steno.web.urls import Links

_IMAGE_PREFIX = "image/"


class FileLinks(Links):
    """Where things are without a server; an empty address where they are not."""

    live = False

    def __init__(
        self, pages: Mapping[str, str] | None = None, image_data_url: Callable[[str, str], str] | None = None
    ) -> None:
        super().__init__()
        self._pages = pages or {}
        """The page of each anchor of the session, where it has several."""
        self._image_data_url = image_data_url

    def static(self, name: str) -> str:
        """A stylesheet, script or picture of ours stands in the page itself."""
        del name
        return ""

    def sessions(self, **query: str | int | None) -> str:
        """The page that lists all of them, where there is one."""
        del query
        return self._pages.get("index", "")

    def session(self, key: str, anchor: str = "", **query: str | int | None) -> str:
        """A turn or a seam of the same session."""
        del key, query
        return f"{self._pages.get(anchor, '')}#{anchor}" if anchor else ""

    def agent(self, key: str, agent: str, anchor: str = "", **query: str | int | None) -> str:
        """A sub-agent stands inside of the step that called it."""
        del key, agent, anchor, query
        return ""

    def inside(self, key: str, page: str, agent: str = "", **query: str | int | None) -> str:
        """A picture, in itself; nothing else of a session has a page of its own."""
        del key, query
        if page.startswith(_IMAGE_PREFIX) and self._image_data_url is not None:
            return self._image_data_url(agent, page.removeprefix(_IMAGE_PREFIX))
        return ""

    def project(self, key: str, **query: str | int | None) -> str:
        """A project has no page."""
        del key, query
        return ""

    def search(self, **query: str | int | None) -> str:
        """Nothing can be asked."""
        del query
        return ""

    def files(self, **query: str | int | None) -> str:
        """Files have no pages."""
        del query
        return ""

    def file(self, key: str, **query: str | int | None) -> str:
        """A file has none."""
        del key, query
        return ""

    def usage(self, **query: str | int | None) -> str:
        """Figures stand beside what they are of."""
        del query
        return ""

    def health(self, **query: str | int | None) -> str:
        """What is wrong is not told to others."""
        del query
        return ""

    def compare(self, **query: str | int | None) -> str:
        """Nothing can be compared."""
        del query
        return ""


_PLACEHOLDER: Final = "\0"


class DeferredPieces:
    """Pieces of pages as bytes, by number."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._length = 0

    def defer_step(self, start: SafeHtml, inside: SafeHtml, end: SafeHtml) -> SafeHtml:
        """Lay a step aside, and return what stands for it."""
        piece = b"".join(self.to_bytes(inside)) if _PLACEHOLDER in inside else _encode(inside)
        self._length += len(piece)
        return self.defer(b"".join((_encode(start), piece, _encode(end))))

    def defer(self, piece: bytes) -> SafeHtml:
        """Take a piece that is bytes already, and return what stands for it."""
        self._pieces.append(piece)
        return SafeHtml(f"{_PLACEHOLDER}{len(self._pieces) - 1}{_PLACEHOLDER}")

    def take_length(self) -> int:
        """Return how many bytes were inside of steps since this was asked last."""
        length, self._length = self._length, 0
        return length

    def to_bytes(self, html: str) -> list[bytes]:
        """Return a text as bytes, piece by piece."""
        parts = html.split(_PLACEHOLDER)
        result = [b""] * len(parts)
        result[::2] = map(_encode, parts[::2])
        result[1::2] = [self._pieces[int(number)] for number in parts[1::2]]
        return result


def _encode(html: str) -> bytes:
    return html.encode("utf-8", "replace")


_STYLES: Final = ("steno.css", "bodies.css", "session.css", "export.css")
_SCRIPTS: Final = ("theme.js", "export.js", "paint.js")
_COMMENT: Final = re.compile(r"/\*.*?\*/", re.DOTALL)
_INDENT: Final = re.compile(r"\n\s*")


@lru_cache(maxsize=1)
def _frame_values() -> dict[str, bytes]:
    styles = "".join(static_bytes(name).decode() for name in _STYLES)
    styles = _INDENT.sub("\n", _COMMENT.sub("", styles)).strip()
    script = "".join(static_bytes(name).decode() for name in _SCRIPTS)
    policy = (
        f"default-src 'none'; style-src '{_csp_hash(styles)}'; script-src '{_csp_hash(script)}'; "
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


def _csp_hash(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def assemble_page(template: str, links: Links, deferred: DeferredPieces, **values: Any) -> list[bytes]:
    """Return a whole page in pieces, with what was laid aside in its place."""
    frame = {name: trusted_markup(deferred.defer(piece)) for name, piece in _frame_values().items()}
    return deferred.to_bytes(render_part(template, links=links, **frame, **values))
