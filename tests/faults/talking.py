"""Lets an agent talk to a server and be killed at its N-th write to the session.

    python talking.py URL FOLDER N HOW

`HOW` is `before`, `half` or `behind`: whether nothing, the half or all of that record is written.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tests.agent.loop_harness import Stage

from steno.agent.context.compaction import ContextCompactor
from steno.llm.client import ApiClient
from steno.llm.endpoint import Endpoint
from steno.llm.testserver.scripted_responder import ScriptedResponder
from steno.store import append

if TYPE_CHECKING:
    from steno.agent.loop import Agent

PROMPTS: Final = ("look at it", "two", "three")


class _Blow:
    """Stands in for the module `os` where records are appended."""

    def __init__(self, at: int, how: str) -> None:
        self._left = at
        self._how = how

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def write(self, file: int, data: bytes) -> int:
        self._left -= 1
        if self._left:
            return os.write(file, data)
        if self._how != "before":
            os.write(file, data if self._how == "behind" else data[: len(data) // 2])
        os.kill(os.getpid(), signal.SIGKILL)
        return 0


async def _talk(url: str, folder: Path) -> None:
    stage = Stage(folder, ScriptedResponder())
    async with ApiClient(Endpoint(url, api_key="none")) as api:
        agent: Agent = stage.agent(api)
        for prompt in PROMPTS:
            await agent.run_turn(prompt)
            if prompt == "two":
                await ContextCompactor().compact(agent, "manual")


def main() -> None:
    """Talk until struck."""
    url, folder, at, how = sys.argv[1:]
    append.os = _Blow(int(at), how)
    asyncio.run(_talk(url, Path(folder)))


if __name__ == "__main__":
    main()
