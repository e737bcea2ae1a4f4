"""An explorer that really runs: a house on a loopback port, and a way to ask it."""

import http.client
import threading
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Self

import msgspec

from steno.index.database import IndexLocation
from steno.index.sync.updater import sync
from steno.web.http_server import Server, open_socket
from steno.web.state.app_state import AppState


class Answer(msgspec.Struct, frozen=True):
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode()


class Explorer:
    """A running explorer."""

    def __init__(self, house: AppState, server: Server) -> None:
        self.house = house
        self.server = server
        self.base = server.address.base_url
        self.port = server.address.port
        self.cookie = f"{server.login_keys.cookie}={server.login_keys.token}"

    def ask(self, way: str, method: str = "GET", headers: Mapping[str, str] | None = None) -> Answer:
        """Ask for something, with nothing but the headers given."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, way, headers=dict(headers or {}))
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return Answer(response.status, found, response.read())
        finally:
            connection.close()

    def get(self, way: str) -> Answer:
        """Ask as a reader who is let in."""
        return self.ask(way, headers={"cookie": self.cookie})

    def refresh(self) -> Self:
        """Bring the index up to date and tell the pages."""
        sync(self.house.home)
        self.house.index_status.syncing = False
        self.house.index_status.updated = self.house.now()
        self.house.pubsub.publish()
        return self


@contextmanager
def explorer(folder: str, *roots: str, demo: bool = False) -> Generator[Explorer]:
    """Give an explorer over some roots, with its index in a folder; gone afterwards."""
    house = AppState(IndexLocation(folder, roots), demo=demo)
    with open_socket("127.0.0.1", 0) as made:
        server = Server(house, made)
        found = Explorer(house, server).refresh()
        thread = threading.Thread(target=server.run_until_stopped)
        thread.start()
        try:
            yield found
        finally:
            server.should_exit = True
            thread.join()
            house.close()
