"""Write the reference of the HTTP API from its code: `openapi.json` and `api.md`.

python -m tools.make_api_docs            write them
python -m tools.make_api_docs --check    exit 1 when they are out of date
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from steno.web.api.openapi import ENDPOINTS, document, document_bytes

FOLDER: Final = Path(__file__).parent.parent / "docs" / "reference"
MARK: Final = "<!-- Generated from src/steno/web/api by tools/make_api_docs.py; do not edit. -->"

INTRO: Final = f"""\
# HTTP API

{MARK}

`steno explore` serves a read-only JSON API below `/api/v1`, with the figures that its pages and the
commands show. [`openapi.json`](openapi.json) describes it in OpenAPI 3.1; a running server has the same
document at `/api/v1/openapi.json`. Generate a client from it, or use any HTTP client:

```sh
openssl rand -hex 32 > ~/.steno-token && chmod 600 ~/.steno-token
steno explore --no-open --port 8765 --token-file ~/.steno-token &
curl -s -H "Authorization: Bearer $(cat ~/.steno-token)" 'http://127.0.0.1:8765/api/v1/sessions?limit=2'
```

## Authentication

Every request needs one of:

| credential | how to get it |
|---|---|
| `Authorization: Bearer TOKEN` | choose a token of at least 16 characters; pass it in `STENO_TOKEN` or `--token-file` |
| the explorer's cookie | request the address that `steno explore` prints first, and keep the cookie (`curl -c jar`) |

The server listens on this machine only, unless `--host` is given. The `Host` header must name it, as for
the pages. CORS is not supported: scripts of other sites are refused with 403.

## Requests

- Only GET and HEAD. No request writes to a session, a setting or the index.
- An unknown, repeated, missing or wrong parameter is refused with 400; the message names it.
- Booleans are `true` or `false`. Times are a date (`2026-11-07`, a day of the local clock), a time
  (`2026-11-07T12:00:00Z`), a time ago (`7d`, `3h`), `today` or `yesterday`.
- A session is named by its `key`: its id or, where several files have that id (forks, copies from another
  machine), the id, `~` and a number. Where an id cannot be part of a path, `~` and the number alone.

## Responses

- JSON in UTF-8. Names are in snake_case, times in ISO 8601 and UTC, costs in US dollars and in millionths
  of one.
- Texts are as they are in the session: as on the pages, secrets are not masked. Exports
  (`steno export`) and `steno mcp` mask them.
- Sessions whose file is gone are listed while the index has them. Their turns are read from the archive;
  without an archived copy, 404.
- A session in a [published dialect](published-descriptions.md) is converted; `dialect` names it.
- Where half a surrogate pair is in a text, U+FFFD takes its place.

## Pages

Lists take `limit` and `cursor`. `next_cursor` is the cursor of the next page, null on the last one. A
cursor marks a place in the order and not a number of items, so no item is returned twice or left out when
others are added. It belongs to its parameters, except `limit`, and to its index: `steno sync --rebuild`
makes it invalid. A session that is written to while you page moves within every order but `sort=added`, and
a file within every order but `sort=path`; order by these if that matters. The order of a search by `rank`
changes with what is in the index, so an item may be returned twice or left out; `newest` and `oldest` do
not. A cursor whose message or version is not known any more is refused.

## Entity tags

Every 200 response has a strong `ETag`, made from its content, and `Cache-Control: private, no-cache`. Send
the tag back as `If-None-Match`; the answer is 304 without a body while nothing has changed.

## Errors

Every error below `/api/` is JSON, also those of authentication:

```json
{{"error": {{"code": "not_found", "message": "no session is called 'x'", "hint": "it may not be indexed yet"}}}}
```

| status | code | when |
|---|---|---|
| 400 | `bad_request` | a parameter is unknown, repeated, missing or wrong |
| 401 | `unauthorized` | no valid token |
| 403 | `forbidden` | the request comes from another site |
| 404 | `not_found` | nothing has that name |
| 405 | `method_not_allowed` | the method is neither GET nor HEAD |
| 421 | `misdirected_request` | the `Host` header does not name this server |
| 500 | `internal_error` | a bug; the terminal that runs steno shows the traceback |
| 503 | `not_ready` | the index is being made; `Retry-After` says when to try again |

What is not HTTP at all is refused with 400 as plain text, before there is an address.

## Background work

`/health` and `/drift` return what the check in the background has found so far and begin a new check
unless one has just ended, as the health page does; `check.complete` is true once all sessions were checked.
`/tasks` reads the files of a page when they are first listed, because the figures of a task are those of its
steps.

## Tasks

`/tasks` returns sessions in the form of TaskItem, TaskDetail and TaskStep of the
[published description](published-descriptions.md) for frago. The list rule of
`steno ls --listed` decides which are listed. That project
names some fields in two ways, so `id` and `session_id`, `title` and `name`, `ended_at` and `completed_at`
are all there.

## Endpoints

| endpoint | | response |
|---|---|---|
"""


def build() -> dict[str, bytes]:
    """Return the files by their names."""
    return {"openapi.json": document_bytes(), "api.md": "".join(_page()).encode()}


def _page() -> Iterator[str]:
    yield INTRO
    for endpoint in ENDPOINTS:
        yield (
            f"| [`{endpoint.path}`](#get-{_anchor(endpoint.path)}) | {endpoint.summary} "
            f"| `{endpoint.response.__name__}` |\n"
        )
    yield "| `/api/v1/openapi.json` | Get the OpenAPI document | |\n"
    paths: dict[str, Any] = document()["paths"]
    for endpoint in ENDPOINTS:
        parameters: list[dict[str, Any]] = paths[endpoint.path]["get"].get("parameters", [])
        yield f"\n### GET {endpoint.path}\n\n{endpoint.summary}.\n"
        if parameters:
            yield "\n| parameter | type | |\n|---|---|---|\n"
            yield from map(_row, parameters)


def _anchor(path: str) -> str:
    return "".join(letter for letter in path if letter.isalnum() or letter in "-_")


def _row(parameter: dict[str, Any]) -> str:
    schema = parameter["schema"]
    kind = " \\| ".join(f"`{each}`" for each in schema.get("enum", ())) or schema["type"]
    if "maximum" in schema:
        kind += f", {schema['minimum']} to {schema['maximum']}"
    about = parameter.get("description", "")
    if "default" in schema:
        default = str(schema["default"]).lower() if schema["type"] != "string" else schema["default"]
        about = f"{about} Default: `{default}`.".strip()
    required = " Required." if parameter.get("required") and parameter["in"] == "query" else ""
    return f"| `{parameter['name']}` | {kind} | {about}{required} |\n"


def main() -> None:
    """Write the files, or check them."""
    made = build()
    if "--check" in sys.argv:
        stale = [name for name, data in made.items() if _stored(name) != data]
        if stale:
            sys.exit(f"docs/reference/{stale[0]} is out of date: python -m tools.make_api_docs")
        return
    for name, data in made.items():
        (FOLDER / name).write_bytes(data)


def _stored(name: str) -> bytes:
    path = FOLDER / name
    return path.read_bytes() if path.exists() else b""


if __name__ == "__main__":
    main()
