"""`steno chat --demo` without a terminal: a small task from beginning to end, line by line."""

import os
import sys

from steno.cli.happenings import lines_of
from steno.cli.screen import Screen
from steno.safe.terminal import ColourMode

__all__ = ["play_demo"]


def play_demo(color: ColourMode) -> int:
    """Show a small task from beginning to end; only its folder and its session stay."""
    import asyncio
    import tempfile

    from steno.agent.demo import PROMPT, lay_out, script
    from steno.agent.sessions import new
    from steno.agent.start import Options, People, start
    from steno.model.client import Api
    from steno.model.endpoint import Endpoint
    from steno.model.server.app import Server

    above = tempfile.mkdtemp(prefix="steno-demo-")
    folder, config = os.path.join(above, "project"), os.path.join(above, "config")
    os.mkdir(folder)
    lay_out(folder)
    options = Options(cwd=folder, config=config, env=dict(os.environ), mode="acceptEdits")
    options.allowed = (f"Bash({sys.executable} -m unittest:*)",)
    work = new(config, folder)
    screen = Screen(color)

    async def together() -> None:
        async with Server(script(folder)) as server, _demo_api(server.url) as api:
            people = People(emit=lambda event: screen.lines(lines_of(event, screen.width)))
            started = start(options, work, api, people, lambda _model, _usage: 0)
            await started.agent.turn(PROMPT)
            await started.close()

    def _demo_api(url: str) -> Api:
        return Api(Endpoint(url, api_key="none-needed"))

    asyncio.run(together())
    screen.next_steps([f"steno show {work.talk.recorder.path}", f"cat {folder}/temperature.py"])
    return 0
