"""Requests to the API of an explorer, with every answer held to the OpenAPI document."""

import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, get_args
from urllib.parse import quote, urlencode

import msgspec
from jsonschema import Draft202012Validator, FormatChecker
from starlette.routing import Match, Route
from tests.published.files import FILES, FLAT
from tests.web.explorer import Answer, Explorer

from steno.report.usage.usage_query import Grouping
from steno.web.api.openapi import API_V1_PREFIX, ENDPOINTS, Endpoint, document

DOCUMENT: dict[str, Any] = document()


class Api:
    """A client that believes nothing."""

    def __init__(self, explorer: Explorer) -> None:
        self.explorer = explorer

    def ask(self, way: str, headers: dict[str, str] | None = None, **query: Any) -> Answer:
        """Return an answer, whatever it is."""
        pairs = {name: str(value).lower() if isinstance(value, bool) else value for name, value in query.items()}
        address = f"{API_V1_PREFIX}{way}" + (f"?{urlencode(pairs)}" if pairs else "")
        given = {"cookie": self.explorer.cookie, **(headers or {})}
        return self.explorer.ask(address, headers=given)

    def get(self, way: str, **query: Any) -> Any:
        """Return the body of an answer that must be 200 and as the document describes it."""
        answer = self.ask(way, **query)
        assert answer.status == 200, (way, query, answer.text[:500])
        hold_to_document(f"{API_V1_PREFIX}{way}", answer.body)
        return json.loads(answer.body)

    def error(self, way: str, **query: Any) -> tuple[int, dict[str, str]]:
        """Return the status and the error of an answer that must be one."""
        answer = self.ask(way, **query)
        assert answer.headers["content-type"] == "application/json"
        found = json.loads(answer.body)
        validator("ErrorResponse").validate(found)
        return answer.status, found["error"]

    def all(self, way: str, name: str, **query: Any) -> list[Any]:
        """Return the items of all pages of a list."""
        return [item for page in self.pages(way, **query) for item in page[name]]

    def pages(self, way: str, **query: Any) -> Iterator[Any]:
        """Yield the pages of a list."""
        cursor: str | None = ""
        while cursor is not None:
            page = self.get(way, **query, **({"cursor": cursor} if cursor else {}))
            yield page
            cursor = page["next_cursor"]


@lru_cache
def validator(name: str) -> Draft202012Validator:
    """Return what validates a response by the name of its schema."""
    schema = {"$ref": f"#/components/schemas/{name}", "components": DOCUMENT["components"]}
    return Draft202012Validator(schema, format_checker=FormatChecker())


async def _nothing(_: object) -> None:
    """Stand for an endpoint."""


@lru_cache
def _routes() -> list[tuple[Endpoint, Route]]:
    return [(endpoint, Route(endpoint.path, _nothing)) for endpoint in ENDPOINTS]


def endpoint_of(path: str) -> Endpoint:
    """Return the endpoint of a path."""
    scope = {"type": "http", "method": "GET", "path": path, "root_path": ""}
    return next(each for each, route in _routes() if route.matches(scope)[0] is Match.FULL)


def hold_to_document(path: str, body: bytes) -> None:
    """Fail where a response is not as its schema and its type say."""
    endpoint = endpoint_of(path)
    validator(endpoint.response.__name__).validate(json.loads(body))
    decoded = msgspec.json.decode(body, type=endpoint.response)
    # Nothing is in the response that its type does not have.
    assert json.loads(msgspec.json.encode(decoded)) == json.loads(body)


def write_dialects(root: Path) -> None:
    """Write a session of every form of the two published dialects below a config folder."""
    flat = {each.__name__ for each in FLAT}
    for number, (name, make) in enumerate(FILES.items()):
        place = "projects/-home-ada-work" if name in flat else "conversations/_home_ada_work"
        stem = f"0c9be80c-c704-4d9f-928e-{number:012}" if name in flat else f"2025-01-29T14-15-{number:02}"
        path = root / place / f"{stem}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(make().data)


def ask_everything(api: Api, every: int = 1) -> int:
    """Ask every endpoint for every session, sub-agent, file and task, or for one in so many.

    Returns how many answers were held to the document.
    """
    number = 0

    def get(way: str, **query: Any) -> Any:
        nonlocal number
        number += 1
        return api.get(way, **query)

    for way in ("/health", "/drift"):
        get(way)
    for by in get_args(Grouping):
        get("/usage", by=by)
    for words, order in (("the", "newest"), ("error", "rank"), ("a*", "oldest")):
        get("/search", q=words, order=order)
    for each in api.all("/sessions", "sessions", limit=500)[::every]:
        way = f"/sessions/{quote(each['key'], safe='~')}"
        for agent in get(way)["sub_agents"]:
            get(f"{way}/turns", agent=agent["id"])
        for inside in ("turns", "steps"):
            get(f"{way}/{inside}")
    for each in api.all("/files", "files", limit=500)[::every]:
        get(f"/files/{each['id']}")
    for each in api.all("/tasks", "tasks", limit=500)[::every]:
        get(f"/tasks/{quote(each['id'], safe='~')}")
    return number
