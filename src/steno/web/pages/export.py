"""A session to take away: one page, or Markdown, with everything masked that must not leave."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from steno.errors import BadRequest
from steno.report.export.files import Job, parts_of
from steno.report.export.levels import Format
from steno.safe.masking import Masker
from steno.web.export.folder import one_page
from steno.web.house import House
from steno.web.shelf import found_at_path

__all__ = ["export"]

_ENDS: Final[dict[str, tuple[Format, str]]] = {
    "html": ("html", "html"),
    "markdown": ("markdown", "md"),
}


def export(house: House, request: Request) -> Response:
    """Return a session as a file to be kept.

    Raises:
        NotFound: there is no such session.
        BadRequest: there is no such format.
    """
    wanted = request.query_params.get("format", "html")
    if wanted not in _ENDS:
        raise BadRequest("a session can be taken away as html or as markdown")
    kind, end = _ENDS[wanted]
    with house.index() as index:
        place = house.place(index, request.path_params["key"])
    found = found_at_path(place.path)
    job = Job(kind, masker=Masker())
    data = one_page(found, job) if kind == "html" else b"".join(parts_of(found, job))
    name = "".join(letter for letter in place.id[:8] if letter.isalnum()) or "session"
    # Never shown here: a page of ours may run our scripts, and this one brings its own.
    return Response(
        data,
        media_type="application/octet-stream",
        headers={"content-disposition": f'attachment; filename="session-{name}.{end}"'},
    )
