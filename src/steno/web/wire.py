"""Requests as they come in by wire: what is no HTTP, or never becomes any, ends here."""

import asyncio
from typing import Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from steno.web.gate import HEADERS

__all__ = ["Wire"]

_PATIENCE: Final = 30.0
"""Seconds within which a first request has to be there."""


class Wire(H11Protocol):
    """A connection. It says no the way all of the explorer does, and does not wait for ever."""

    patience: float = _PATIENCE

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Begin, and wait for a request."""
        super().connection_made(transport)
        self.loop.call_later(self.patience, self._give_up)

    def _give_up(self) -> None:
        # Uvicorn says that there is always one; before the first request there is none.
        if getattr(self, "cycle", None) is None and not self.transport.is_closing():
            self.transport.close()

    def send_400_response(self, msg: str) -> None:
        """Say that a request was none, with the headers that everything goes out with."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            body = msg.encode()
            headers = [
                *((name.encode(), value.encode()) for name, value in HEADERS),
                (b"content-type", b"text/plain; charset=utf-8"),
                (b"content-length", str(len(body)).encode()),
                (b"cache-control", b"no-store"),
                (b"connection", b"close"),
            ]
            for event in (
                h11.Response(status_code=400, headers=headers, reason=b"Bad Request"),
                h11.Data(data=body),
                h11.EndOfMessage(),
            ):
                self.transport.write(self.conn.send(event) or b"")
        self.transport.close()
