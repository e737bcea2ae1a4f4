"""A model server that answers immediately, in a separate process: `python bench/agent_server.py FILE`.

For each prompt it requests a read of the file, then ends the turn. It prints its port. It does not validate requests,
so that only the agent is measured.
"""

import asyncio
import sys
from typing import Any

import msgspec

TEXT = {"type": "text", "text": ""}
SIZE = 4


class Body(msgspec.Struct):
    """The fields of a request that the server reads."""

    messages: list[msgspec.Raw]
    tools: list[msgspec.Raw] = []


class Model:
    """Answers requests, with a new ID for each answer."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.answers = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer the requests of one connection."""
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                body = await reader.readexactly(length_of(head))
                writer.write(whole(self.answer(body)))
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    def answer(self, body: bytes) -> bytes:
        """Return the event stream that answers a request."""
        self.answers += 1
        asked = msgspec.json.decode(body, type=Body)
        if asked.tools and b'"tool_result"' not in bytes(asked.messages[-1]):
            return answered(self.answers, len(body) // SIZE, call=self.file)
        return answered(self.answers, len(body) // SIZE)


def length_of(head: bytes) -> int:
    """Return the content length in a request head."""
    lines = [line.partition(b":") for line in head.lower().split(b"\r\n")]
    return next(int(value) for name, _, value in lines if name == b"content-length")


def whole(stream: bytes) -> bytes:
    """Return a stream with the head of an HTTP response."""
    head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: "
    return f"{head}{len(stream)}\r\n\r\n".encode() + stream


def answered(number: int, tokens: int, call: str = "") -> bytes:
    """Return an answer as an event stream: a tool call that reads a file, or text."""
    usage = {"input_tokens": tokens, "output_tokens": 20}
    message: dict[str, Any] = {"id": f"msg_{number}", "type": "message", "role": "assistant", "content": []}
    message |= {"model": "claude-opus-4-5-20251101", "stop_reason": None, "usage": usage}
    block: dict[str, Any] = TEXT
    if call:
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": "Read", "input": {}}
        given = msgspec.json.encode({"file_path": call}).decode()
        delta = {"type": "input_json_delta", "partial_json": given}
    else:
        delta = {"type": "text_delta", "text": "That is done."}
    events: list[dict[str, Any]] = [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use" if call else "end_turn"}, "usage": usage},
        {"type": "message_stop"},
    ]
    return b"".join(f"event: {each['type']}\ndata: ".encode() + msgspec.json.encode(each) + b"\n\n" for each in events)


async def main() -> None:
    """Serve until killed."""
    server = await asyncio.start_server(Model(sys.argv[1]).serve, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
