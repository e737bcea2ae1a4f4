"""Write the HTTP API reference from its code: `openapi.json` and `api.md`.

python -m tools.make_api_docs            write the files
python -m tools.make_api_docs --check    exit 1 if they are out of date
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

`steno explore` serves a read-only JSON API below `/api/v1`, with the same figures as its pages and the commands.
[`openapi.json`](openapi.json) describes it in OpenAPI 3.1; a running server serves the same document at
`/api/v1/openapi.json`. Generate a client from it, or use any HTTP client:

```sh
openssl rand -hex 32 > ~/.steno-token && chmod 600 ~/.steno-token
steno explore --no-open --port 8765 --token-file ~/.steno-token &
curl -s -H "Authorization: Bearer $(cat ~/.steno-token)" 'http://127.0.0.1:8765/api/v1/sessions?limit=2'
```

## Authentication

Every request needs one of:

| credential | how to get it |
|---|---|
| `Authorization: Bearer TOKEN` | a token of your choice, at least 16 characters, in `STENO_TOKEN` or `--token-file` |
| the explorer's cookie | request the URL that `steno explore` prints, and store the cookie (`curl -c jar`) |

The server listens on this machine only, unless `--host` is given. As for the pages, the `Host` header must match the
server. CORS is not supported: requests from other sites are rejected with 403.

## Requests

- Only GET and HEAD are allowed. No request modifies a session, a setting or the index.
- An unknown, repeated, missing or invalid parameter is rejected with 400; the message names it.
- Booleans are `true` or `false`. Times are a date (`2026-11-07`, in local time), a time (`2026-11-07T12:00:00Z`), a
  time ago (`7d`, `3h`), `today` or `yesterday`.
- A session is identified by its `key`: its ID or, if several files have that ID (forks, copies from another machine),
  the ID, `~` and a number. If the ID is not valid in a URL path, the key is `~` and the number.

## Responses

- JSON in UTF-8. Names are in snake_case, times in ISO 8601 and UTC, costs in US dollars and in micro-dollars.
- Texts are unchanged: as on the pages, secrets are not masked. Exports (`steno export`) and `steno mcp` mask them.
- Sessions whose file is deleted are listed while the index contains them. Their turns are read from the archive;
  without an archived copy, the response is 404.
- A session in a [published dialect](published-descriptions.md) is converted; `dialect` contains its name.
- A lone surrogate in a text is replaced by U+FFFD.

## Pages

Lists take `limit` and `cursor`. `next_cursor` is the cursor of the next page, null on the last one. A cursor marks a
position in the order, not an offset, so no item is returned twice or skipped when others are added. A cursor is valid
only with the same parameters, except `limit`, and the same index: `steno sync --rebuild` invalidates it. While you
page, a session that changes moves within every order except `sort=added`, and a file within every order except
`sort=path`; use these orders if that matters. The order of a search by `rank` depends on the content of the index, so
an item may be returned twice or skipped; with `newest` and `oldest` it is not. A cursor with an unknown message or
version is rejected.

## Entity tags

Every 200 response has a strong `ETag`, computed from its content, and `Cache-Control: private, no-cache`. Send the
tag as `If-None-Match`; the response is 304 without a body if nothing has changed.

## Errors

Every error below `/api/` is JSON, including authentication errors:

```json
{{"error": {{"code": "not_found", "message": "no session is called 'x'", "hint": "it may not be indexed yet"}}}}
```

| status | code | when |
|---|---|---|
| 400 | `bad_request` | a parameter is unknown, repeated, missing or invalid |
| 401 | `unauthorized` | no valid token |
| 403 | `forbidden` | the request comes from another site |
| 404 | `not_found` | the item does not exist |
| 405 | `method_not_allowed` | the method is neither GET nor HEAD |
| 421 | `misdirected_request` | the `Host` header does not match this server |
| 500 | `internal_error` | a bug; the terminal that runs steno shows the traceback |
| 503 | `not_ready` | the index is being built; `Retry-After` is the time until the next try |

A request that is not HTTP is rejected with 400 as plain text.

## Background work

`/health` and `/drift` return the results of the background check so far and start a new check unless one has just
finished, as the health page does; `check.complete` is true once all sessions are checked. `/tasks` reads the files of
a page when they are first listed, because the figures of a task are computed from its steps.

## Tasks

`/tasks` returns sessions in the form of TaskItem, TaskDetail and TaskStep of the
[published description](published-descriptions.md) for frago. The list rule of `steno ls --listed` selects the
sessions. That project uses two names for some fields, so `id` and `session_id`, `title` and `name`, `ended_at` and
`completed_at` are all present.

## Endpoints

| endpoint | | response |
|---|---|---|
"""


def build() -> dict[str, bytes]:
    """Return the files by name."""
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
