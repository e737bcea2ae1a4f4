"""What goes over the wire: lines of any shape come in, updates go out in their order."""

import asyncio
import json
from typing import Any

from acp import helpers
from acp.schema import DeniedOutcome, RequestPermissionResponse, ToolCallUpdate

from steno.acp import server
from steno.acp.editor_session import UpdateQueue
from steno.acp.server import JsonRpcStream


class Paper:
    """Where answers are written."""

    def __init__(self) -> None:
        self.written = b""

    def write(self, data: bytes) -> None:
        self.written += data

    async def drain(self) -> None:
        pass

    def codes(self) -> list[int]:
        return [json.loads(line)["error"]["code"] for line in self.written.splitlines()]


def received(data: bytes) -> tuple[list[dict[str, Any]], list[int]]:
    """Return the messages in what came in, and the errors that were answered."""

    async def read() -> tuple[list[dict[str, Any]], list[int]]:
        reader = asyncio.StreamReader(limit=100)
        reader.feed_data(data)
        reader.feed_eof()
        paper: Any = Paper()
        wire = JsonRpcStream(reader, paper)
        found: list[dict[str, Any]] = []
        while (message := await wire.receive()) is not None:
            found.append(message)
        return found, paper.codes()

    return asyncio.run(read())


def test_a_line_that_is_no_message_is_answered_and_the_next_one_is_read() -> None:
    bad = [b"{", b"[]", b"\xff", b'{"id":[1],"result":1}', b'{"id":true,"method":"a"}', b"{}"]
    fine = b'{"id":1,"method":"a"}'
    found, codes = received(b"\n".join([*bad, b"", fine, b'{"id":"x","result":null}']))
    assert found == [{"id": 1, "method": "a"}, {"id": "x", "result": None}]
    assert codes == [-32700, -32600, -32700, -32600, -32600, -32600]


def test_a_line_that_is_too_long_is_left_out_whole() -> None:
    long = b'{"method":"' + b"x" * 1000 + b'"}'
    found, codes = received(long + b'\n{"method":"a"}\n' + long)
    assert found == [{"method": "a"}]
    assert codes == [-32600, -32600]
    assert server._MAX_LINE_BYTES > 20 << 20


def test_a_question_comes_behind_everything_that_led_to_it() -> None:
    told: list[str] = []

    class Slow:
        async def session_update(self, session_id: str, update: Any) -> None:
            await asyncio.sleep(0)
            told.append(f"{session_id} {update.content.text}")

        async def request_permission(
            self, session_id: str, tool_call: Any, options: list[Any]
        ) -> RequestPermissionResponse:
            assert not options
            told.append(f"{session_id} {tool_call.tool_call_id}?")
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))

    async def act() -> None:
        post = UpdateQueue(Slow(), "s")
        post.put(*map(helpers.update_agent_message_text, "abc"))
        await post.request_permission("s", ToolCallUpdate(tool_call_id="d"), [])
        await post.close()

    asyncio.run(act())
    assert told == ["s a", "s b", "s c", "s d?"]


def test_nobody_waits_for_a_client_that_is_gone() -> None:
    class Gone:
        async def session_update(self, session_id: str, update: Any) -> None:
            assert session_id
            assert update
            raise ConnectionError

        async def request_permission(
            self, session_id: str, tool_call: Any, options: list[Any]
        ) -> RequestPermissionResponse:
            raise AssertionError((session_id, tool_call, options))

    async def act() -> None:
        post = UpdateQueue(Gone(), "s")
        post.put(*map(helpers.update_agent_message_text, "abc"))
        await post.flush()
        await post.close()

    asyncio.run(act())
