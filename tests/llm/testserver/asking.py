"""Requests for the server's tests, and a client that is as plain as can be."""

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

import msgspec

from steno.llm.testserver.server import Server

HEADERS = {"anthropic-version": "2023-06-01", "content-type": "application/json"}

Json = dict[str, Any]


class Got(msgspec.Struct, frozen=True):
    """An answer."""

    status: int
    headers: dict[str, str]
    data: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.data)

    @property
    def error(self) -> Json:
        return self.json["error"]

    @property
    def events(self) -> list[Json]:
        return events(self.data)

    @property
    def kinds(self) -> list[str]:
        return [event["type"] for event in self.events]


def events(data: bytes) -> list[Json]:
    """Return the whole events of a stream; each must be named as its data says."""
    found: list[Json] = []
    for part in data.decode().split("\n\n")[:-1]:
        name, _, rest = part.partition("\n")
        event = json.loads(rest.removeprefix("data: "))
        assert name == f"event: {event['type']}"
        found.append(event)
    return found


def user(*content: str | Json) -> Json:
    return {"role": "user", "content": _content(content)}


def assistant(*content: str | Json) -> Json:
    return {"role": "assistant", "content": _content(content)}


def _content(content: tuple[str | Json, ...]) -> str | list[Json]:
    if len(content) == 1 and isinstance(content[0], str):
        return content[0]
    return [{"type": "text", "text": each} if isinstance(each, str) else each for each in content]


def call(call_id: str = "toolu_1", **changes: Any) -> Json:
    return {"type": "tool_use", "id": call_id, "name": "Read", "input": {}, **changes}


def result(call_id: str = "toolu_1", **changes: Any) -> Json:
    return {"type": "tool_result", "tool_use_id": call_id, "content": "fine", **changes}


def tool(name: str = "Read", /, **changes: Any) -> Json:
    return {"name": name, "description": "x", "input_schema": {"type": "object"}, **changes}


def body(*messages: Json, **changes: Any) -> Json:
    """Return a request that the API takes, unless the changes spoil it."""
    given = {"model": "claude-x", "max_tokens": 100, "messages": list(messages or (user("Hi."),))}
    return {key: value for key, value in (given | changes).items() if value is not ...}


def connect(server: Server | str) -> http.client.HTTPConnection:
    where = urlsplit(server if isinstance(server, str) else server.url)
    return http.client.HTTPConnection(str(where.hostname), where.port, timeout=60)


def send(
    server: Server | str,
    asked: Json | bytes | None = None,
    *,
    path: str = "/v1/messages",
    method: str = "POST",
    headers: dict[str, str] | None = None,
) -> Got:
    """Ask over a connection of its own; as much comes back as there was before it ended."""
    raw = asked if isinstance(asked, bytes) else json.dumps(asked or body()).encode()
    connection = connect(server)
    try:
        connection.request(method, path, raw if method == "POST" else None, headers or HEADERS)
        return receive(connection)
    finally:
        connection.close()


def receive(connection: http.client.HTTPConnection) -> Got:
    response = connection.getresponse()
    try:
        data = response.read()
    except http.client.IncompleteRead as cut:
        data = cut.partial
    return Got(response.status, {key.lower(): value for key, value in response.getheaders()}, data)
