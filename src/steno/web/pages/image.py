"""A picture that stands in a record, as a picture; nothing that is none by its own bytes."""

from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from steno.errors import NotFound
from steno.session.transcript import Transcript
from steno.web.bodies.pictures import bytes_of, pictures_in
from steno.web.house import House
from steno.web.story.opening import asked_of, opened

__all__ = ["image"]

_NAME: Final = "inline; filename=picture"


def image(house: House, request: Request) -> Response:
    """Return a picture: `image/OFFSET-N`, of a session or of a sub-agent.

    Raises:
        NotFound: there is none.
    """
    with opened(house, asked_of(request)) as told:
        data, kind = _found(told.tale.transcript, request.path_params["place"])
    return Response(data, media_type=kind, headers={"content-disposition": _NAME})


def _found(transcript: Transcript, place: str) -> tuple[bytes, str]:
    offset, _, number = place.partition("-")
    if offset.isdecimal() and number.isdecimal():
        node = next((each for each in transcript.nodes if str(each.offset) == offset), None)
        pictures = pictures_in(transcript.record(node)) if node is not None else []
        for picture in pictures:
            data = bytes_of(picture) if str(picture.number) == number else None
            if data is not None:
                return data, picture.media_type
    raise NotFound("there is no such picture")
