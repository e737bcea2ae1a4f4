"""Random hostile requests for every route of the explorer, answered in this process."""

import ast
import asyncio
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import quote, quote_from_bytes

import msgspec

import steno.web
from steno.web.app import ADDRESSES, make_app
from steno.web.auth import LoginKeys
from steno.web.state.app_state import AppState

_HOST = "127.0.0.1:1"
_VALUES: tuple[str | bytes, ...] = (
    "", " ", "*", "**", '"', '""', '"a', "'", "a*", "*a*", "a*b*c", "-", "-a", "--", "OR", "a OR",
    "OR a", "a OR -b", "AND", "NOT a", "NEAR(a b)", "NEAR/2", "text:a", "message:1", "a^2", "a~1",
    "[1 TO 2]", "{a TO b}", "/re.*/", "(", ")", "((a", "a)) OR ((b", "\\", "\\x", "%", "_", ";--",
    "tool:", "tool:*", "tool:Bash", "-tool:Bash", "since:", "since:x", "since:9999-99-99",
    "since:0000-00-00", "since:99999999999d", "until:-1", "since:1e309", "file:[", "file:***",
    "file:[!-]*?", "session:last", "session:", "role:x", "has:x", "in:prompt", "project:.",
    "model:*", "branch:", "0", "-1", "1", "00", "1e9", "1e309", "NaN", "Infinity", "-0", "0x10",
    "9" * 20, "9" * 5000, "-" + "9" * 400, "1_000", "١٢٣", "½", "1_1", "-1_-1", "1_2_3",
    f"{(1 << 63) - 1}_{(1 << 63) - 1}", f"-{1 << 63}_0", "2026-11-16", "2026-13-45", "0000-01-01",
    "9999-12-31", "10000-01-01", "today", "week", "month", "day", "hour", "year", "live", "damaged",
    "waiting", "newest", "rank", "flat", "project", "session", "model", "tool", "agent", "rows",
    "page", "body", "all", "true", "null", "[]", "{}", "[1]", "a,b,,c", "../../etc/passwd", "~",
    "..", "\x00", "a\x00b", "\r\nx: y", "\u202e", "\ufeff", "é", "é", "漢字", "ﷺ" * 30, "😀",
    "<script>alert(1)</script>", "{{7*7}}", "${7*7}", b"\xff\xfe", b"\xc3", b"\xed\xa0\x80",
    b"a\xed\xb0\x80*", b"\x80" * 50, b"\xf4\x90\x80\x80",
)  # fmt: skip
_PIECES = ("a*", "*", "a ", "(", '"', "-", "a OR ", "a,", "é", "漢", "-a ", "tool:a ", "a*a", "x")


class Reply(msgspec.Struct, frozen=True):
    """What came back, as far as it was sent."""

    status: int
    body: bytes


class App:
    """The explorer without a socket."""

    def __init__(self, house: AppState) -> None:
        keys = LoginKeys(1)
        self._cookie = f"{keys.cookie}={keys.token}"
        self._app = make_app(house, keys, frozenset((_HOST,)))
        self._loop = asyncio.new_event_loop()

    def close(self) -> None:
        """End the loop, and the threads that it started."""
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()

    def get(self, path: str, query: str = "") -> Reply:
        """Answer one request; of a stream only what comes first. Raises what a page raises."""
        return self._loop.run_until_complete(self._get(path, query))

    async def _get(self, path: str, query: str) -> Reply:
        status, body, sent = 0, bytearray(), asyncio.Event()
        scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": "GET",
            "scheme": "http",
            "path": path,
            "raw_path": quote(path).encode(),
            "query_string": query.encode(),
            "headers": [(b"host", _HOST.encode()), (b"cookie", self._cookie.encode())],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 1),
        }

        async def receive() -> dict[str, Any]:
            await sent.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            nonlocal status
            status = message.get("status", status)
            body.extend(message.get("body", b""))
            if body:
                sent.set()

        await self._app(scope, receive, send)
        return Reply(status, bytes(body))


def parameter_names() -> list[str]:
    """Return every short word that the code of the explorer could read from an address."""
    names: set[str] = set()
    for file in Path(steno.web.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                value = node.value
                if value.isascii() and value.isidentifier() and value.islower() and len(value) < 12:
                    names.add(value)
    return sorted(names)


_LIKELY = (
    "q", "project", "branch", "model", "status", "size", "since", "has", "sort", "view", "order",
    "after", "open", "session", "from", "part", "by", "until", "at", "a", "b", "all", "tag", "kind",
    "agent", "tool", "day", "format", "harm", "turn", "find", "at", "limit", "page", "path",
)  # fmt: skip


def requests(seed: int, number: int, keys: list[str], tags: list[str]) -> Iterator[tuple[str, str]]:
    """Yield paths and queries; the same for the same seed."""
    dice = Random(seed)
    names = parameter_names()
    routes = ADDRESSES
    for place in range(number):
        # Every route in turn, the list of sessions as often as all others together.
        way = "/" if place % 2 else routes[place // 2 % len(routes)]
        path = way
        for name in ("key", "id", "agent", "number", "place", "offset", "tag", "mark", "name"):
            if f"{{{name}}}" in path:
                real = {"key": keys, "id": keys, "tag": tags}.get(name, ["0", "1", "0-0"])
                value = dice.choice(real) if dice.random() < 0.7 else _text(dice)
                path = path.replace(f"{{{name}}}", value.replace("/", "_") or "_")
        pairs: list[str] = []
        for _ in range(dice.choice((0, 1, 1, 1, 2, 2, 3, 8))):
            name = dice.choice(_LIKELY) if dice.random() < 0.8 else dice.choice(names)
            pairs += [f"{name}={_value(dice)}" for _ in range(dice.choice((1, 1, 1, 2, 5)))]
        yield path, "&".join(pairs)


def _text(dice: Random) -> str:
    value = dice.choice(_VALUES)
    return value if isinstance(value, str) else value.decode("utf-8", "replace")


def _value(dice: Random) -> str:
    """Return a value as it stands in an address; not always a well-formed one."""
    kind = dice.random()
    if kind < 0.6:
        value = dice.choice(_VALUES)
        return quote(value, safe="") if isinstance(value, str) else quote_from_bytes(value, safe="")
    if kind < 0.85:
        piece = dice.choice(_PIECES)
        return quote(piece * dice.choice((1, 2, 9, 33, 300, 2000)), safe="")
    if kind < 0.95:
        some = "".join(chr(dice.choice((dice.randrange(1, 128), 0x600, 0x1F600))) for _ in range(20))
        return quote(some, safe="")
    return dice.choice(("%", "%zz", "%u0041", "+", "%00%00", "=", "%ed%a0%80"))
