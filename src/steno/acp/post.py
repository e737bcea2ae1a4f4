"""Updates on their way to the client: in their order, and before the questions that follow them."""

import asyncio
from typing import Protocol

from acp.schema import PermissionOption, RequestPermissionResponse, ToolCallUpdate

from steno.acp.asking import Client
from steno.acp.telling import Update

__all__ = ["Editor", "Post"]


class Editor(Client, Protocol):
    """The client, as far as a session needs it."""

    async def session_update(self, session_id: str, update: Update) -> None:
        """Take an update."""
        ...


class Post:
    """Carries what one session has to tell."""

    def __init__(self, editor: Editor, session_id: str) -> None:
        self._editor = editor
        self._session = session_id
        self._waiting: asyncio.Queue[Update] = asyncio.Queue()
        self._carrying = asyncio.ensure_future(self._carry())

    def put(self, *updates: Update) -> None:
        """Have something sent behind everything before it."""
        for update in updates:
            self._waiting.put_nowait(update)

    async def sent(self) -> None:
        """Wait until all of it is on its way."""
        await self._waiting.join()

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption]
    ) -> RequestPermissionResponse:
        """Ask the user to choose, once they have seen what led to it."""
        await self.sent()
        return await self._editor.request_permission(session_id, tool_call, options)

    async def close(self) -> None:
        """Carry nothing more."""
        self._carrying.cancel()
        await asyncio.gather(self._carrying, return_exceptions=True)

    async def _carry(self) -> None:
        gone = False
        while True:
            update = await self._waiting.get()
            try:
                if not gone:
                    await self._editor.session_update(self._session, update)
            except ConnectionError:
                # Nobody reads any more; whoever waits must not wait for ever.
                gone = True
            finally:
                self._waiting.task_done()
