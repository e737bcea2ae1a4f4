"""A server on loopback that answers with any bytes, cut, dripped or never, as it is told."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Any, Final, Literal, TypeAlias

import msgspec

End: TypeAlias = Literal["keep", "close", "abort", "hang"]
KEY: Final = "sk-ant-very-secret-0123456789"


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes to answer with, in pieces of `drip` bytes, and what comes after them."""

    raw: bytes = b""
    drip: int = 0
    end: End = "keep"


class Got(msgspec.Struct, frozen=True):
    """A request as it came."""

    line: str
    headers: dict[str, str]
    body: bytes


class Loopback:
    """Answers each request with the next answer; the last one over and over."""

    def __init__(self) -> None:
        self.answers: list[Answer] = []
        self.got: list[Got] = []
        self.connections = 0
        self.asked = asyncio.Event()
        self.left = asyncio.Event()
        """Somebody has closed a connection on which the server hangs."""
        self.url = ""
        self._tasks: set[asyncio.Task[None]] = set()

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await self._answer(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
            self._tasks.discard(task)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        line, *lines = head.strip().split("\r\n")
        pairs = (text.partition(":") for text in lines)
        headers = {name.lower(): value.strip() for name, _, value in pairs}
        body = await reader.readexactly(int(headers.get("content-length", "0")))
        self.got.append(Got(line, headers, body))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        step = answer.drip or max(len(answer.raw), 1)
        for start in range(0, len(answer.raw), step):
            writer.write(answer.raw[start : start + step])
            await writer.drain()
            await asyncio.sleep(0)
        self.asked.set()
        if answer.end == "hang":
            await reader.read()
            self.left.set()
        if answer.end == "abort":
            writer.transport.abort()
        return answer.end == "keep"

    async def stop(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@asynccontextmanager
async def loopback(*answers: Answer) -> AsyncGenerator[Loopback, None]:
    """Run a server for as long as the block lasts."""
    server = Loopback()
    server.answers = list(answers)
    listening = await asyncio.start_server(server.accept, "127.0.0.1", 0)
    server.url = f"http://127.0.0.1:{listening.sockets[0].getsockname()[1]}"
    try:
        yield server
    finally:
        listening.close()
        await server.stop()
        await listening.wait_closed()


def http(
    status: int,
    body: bytes,
    kind: str = "application/json",
    *,
    framing: Literal["length", "chunked", "close"] = "length",
    step: int = 0,
    **headers: str,
) -> bytes:
    """Return a whole answer; with `step`, in chunks of so many bytes."""
    lines = [f"HTTP/1.1 {status} x", f"content-type: {kind}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    if framing == "length":
        lines.append(f"content-length: {len(body)}")
    elif framing == "chunked":
        lines.append("transfer-encoding: chunked")
        size = step or max(len(body), 1)
        pieces = [body[start : start + size] for start in range(0, len(body), size)]
        body = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"
    else:
        lines.append("connection: close")
    return "\r\n".join([*lines, "", ""]).encode() + body


def refusal(status: int, kind: str, message: str, **headers: Any) -> Answer:
    """Return an error as the API says it."""
    error = {"type": "error", "error": {"type": kind, "message": message}}
    return Answer(raw=http(status, msgspec.json.encode(error), **headers))


def sse(*events: dict[str, Any]) -> bytes:
    """Return events as the bytes of a stream."""
    return b"".join(
        b"event: %b\ndata: %b\n\n" % (str(event["type"]).encode(), msgspec.json.encode(event)) for event in events
    )


def streamed(*events: dict[str, Any], end: End = "keep") -> Answer:
    """Return a stream of events as an answer."""
    raw = http(200, sse(*events), "text/event-stream", framing="chunked", request_id="req_1")
    return Answer(raw=raw, end=end)


def delta(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    change = {"type": f"{kind}_delta", **fields}
    return {"type": "content_block_delta", "index": index, "delta": change}


def begun(index: int, kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind} | fields}


def ended(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def message(**usage: Any) -> dict[str, Any]:
    inner = {"id": "msg_1", "model": "m-1", "role": "assistant", "content": [], "usage": usage}
    return {"type": "message_start", "message": inner}


def stopped(reason: str, **usage: Any) -> dict[str, Any]:
    stop = {"stop_reason": reason, "stop_sequence": None}
    return {"type": "message_delta", "delta": stop, "usage": usage}


END: Final[dict[str, Any]] = {"type": "message_stop"}
SIGNATURE: Final = "EqQB/+c29tZQ=="
RECORDED: Final[tuple[dict[str, Any], ...]] = (
    message(input_tokens=9, output_tokens=1, cache_creation={"ephemeral_5m_input_tokens": 3}),
    begun(0, "thinking", thinking="", signature=""),
    {"type": "ping"},
    delta(0, "thinking", thinking="Größe\u2028"),
    delta(0, "thinking", thinking="?\n"),
    delta(0, "signature", signature=SIGNATURE),
    ended(0),
    begun(1, "text", text="", citations=None),
    delta(1, "text", text="I am "),
    delta(1, "citations", citation={"cited_text": "x", "title": None}),
    delta(1, "text", text="💡 here"),
    ended(1),
    {"type": "of_tomorrow", "index": 9},
    begun(2, "tool_use", id="toolu_1", name="Read", input={}, caller={"type": "direct"}),
    delta(2, "input_json", partial_json=""),
    delta(2, "input_json", partial_json='{"file_'),
    delta(2, "input_json", partial_json='path":"/ä","n":[1,2.5]}'),
    ended(2),
    stopped("tool_use", output_tokens=40, cache_creation={"ephemeral_1h_input_tokens": 0}),
    END,
)
"""A stream with a thought, an answer and a call."""
BLOCKS: Final[list[dict[str, Any]]] = [
    {"type": "thinking", "thinking": "Größe\u2028?\n", "signature": SIGNATURE},
    {"type": "text", "text": "I am 💡 here", "citations": [{"cited_text": "x", "title": None}]},
    {
        "type": "tool_use",
        "id": "toolu_1",
        "name": "Read",
        "input": {"file_path": "/ä", "n": [1, 2.5]},
        "caller": {"type": "direct"},
    },
]
"""The blocks it makes."""
USAGE: Final[dict[str, Any]] = {
    "input_tokens": 9,
    "output_tokens": 40,
    "cache_creation": {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 0},
}
