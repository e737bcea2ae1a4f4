"""The console of `steno chat`: gives it what the options say, and a way to tell sessions."""

import os
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from steno.errors import BadRequest
from steno.safe.terminal import Line, Paint, wants_colour
from steno.store.config import read_config

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from steno.agent.loop import Model
    from steno.cli.chat import Asked
    from steno.console.setting import Ready, Setting

__all__ = ["open_console"]

_UNICODE: Final = frozenset({"utf8", "utf16", "utf32"})
_TOUR: Final = (
    (
        "The test of the temperature table fails. Find out why and mend it.",
        (
            "This is a demonstration: the model is scripted, the tools are real, and they work in "
            "a folder of their own. A first prompt is there already: press enter."
        ),
    ),
    (
        "/diff",
        (
            "It looked, found the mistake and asked before it changed anything. Press enter to see "
            "what it has changed."
        ),
    ),
    ("/rewind", "Any prompt can be taken back, with its files. Press enter and look; esc leaves."),
    (
        "/help",
        "That is all one needs. Press enter for everything else, or ctrl-d twice to leave.",
    ),
)


def open_console(asked: "Asked") -> int:
    """Open the console; return the exit code when the user leaves it."""
    import asyncio

    if os.environ.get("TERM") == "dumb":
        raise BadRequest(
            "the console needs a terminal that can move its cursor, and TERM is dumb",
            hint="steno chat -p PROMPT answers and leaves",
        )
    from steno.console.output import output_for
    from steno.console.screen import Screen
    from steno.console.talk import Talk

    kept = read_config()
    theme = "" if asked.color != "auto" else kept.theme
    colour = wants_colour(asked.color, os.environ, tty=True) and theme in ("", "colour")
    unicode = (sys.stdout.encoding or "").lower().replace("-", "") in _UNICODE
    paint = Paint(colour=colour, unicode=unicode)
    screen = Screen(output_for(sys.stdout), paint, reader=asked.reader or theme == "reader")
    setting = _demo() if asked.demo else _setting(asked, kept.model)
    setting.vi = kept.keys == "vi"

    async def together() -> Talk:
        talk = Talk(screen, setting)
        await talk.run()
        return talk

    talk = asyncio.run(together())
    if talk.left_at:
        said = setting.farewell.format(session=talk.left_at[:8])
        screen.print([[], [(said, "dim")]])
    return 0


def _setting(asked: "Asked", model: str) -> "Setting":
    from steno.console.setting import Setting

    # A session that goes on keeps the model that it had.
    if not asked.model and not asked.resume and not asked.go_on:
        asked.model = model
    return Setting(prepare=lambda: _ready(asked), tell=_told, first=" ".join(asked.words))


def _ready(asked: "Asked") -> "Ready":
    from steno.agent.keys import holding_keys
    from steno.agent.thinking import betas_for
    from steno.cli.chat import options_of
    from steno.cli.chat_flags import refuse_unreadable
    from steno.cli.chat_work import work_for
    from steno.console.setting import Ready
    from steno.guard.environ import forget
    from steno.model.client import Api
    from steno.model.endpoint import Endpoint
    from steno.report.prices import Prices
    from steno.report.spent import spending

    endpoint = Endpoint.from_environment(os.environ)
    forget(holding_keys(os.environ))
    options = options_of(asked)
    refuse_unreadable(options)
    betas = betas_for(asked.thinking, asked.effort, os.environ, asked.model)
    return Ready(
        options=options,
        work=lambda: work_for(asked, options),
        model=lambda: Api(endpoint, betas=betas),
        price=spending(Prices()),
    )


def _told(path: str, turns: int, columns: int) -> Iterator[Line]:
    """Yield the last turns of a session."""
    from steno.cli.transcript import Manner, turn_lines
    from steno.session.session import Session
    from steno.session.transcript import load
    from steno.store.read import FileSource

    session = Session(load(FileSource(path)))
    every = session.turns()
    manner = Manner(width=max(columns - 1, 40), project=os.getcwd())
    left = len(every) - turns
    if left > 0:
        yield [(f"{left} earlier turns; ctrl-o shows everything", "dim")]
    for turn in every[-turns:]:
        yield []
        yield from turn_lines(session.transcript, turn, manner)


def _demo() -> "Setting":
    from steno.console.setting import Setting

    farewell = "steno chat   the same in a folder of yours, with ANTHROPIC_API_KEY set"
    return Setting(prepare=_demo_ready, tell=_told, steps=_TOUR, farewell=farewell)


def _demo_ready() -> "Ready":
    """Lay out a small project in a folder of its own, and let a script think."""
    import tempfile

    from steno.agent.demo import lay_out, script
    from steno.agent.options import Options
    from steno.agent.sessions import new
    from steno.console.setting import Ready

    above = tempfile.mkdtemp(prefix="steno-demo-")
    folder, config = os.path.join(above, "project"), os.path.join(above, "config")
    os.mkdir(folder)
    lay_out(folder)
    options = Options(cwd=folder, config=config, env=dict(os.environ))
    options.allowed = (f"Bash({sys.executable} -m unittest:*)",)

    def model() -> "AbstractAsyncContextManager[Model]":
        return _scripted(script(folder), above)

    return Ready(
        options=options,
        work=lambda: new(config, folder),
        model=model,
        price=lambda _model, _usage: 0,
    )


@asynccontextmanager
async def _scripted(mind: Any, folder: str) -> "AsyncGenerator[Model]":
    import shutil

    from steno.model.client import Api
    from steno.model.endpoint import Endpoint
    from steno.model.server.app import Server

    async with Server(mind) as server, Api(Endpoint(server.url, api_key="none-needed")) as api:
        try:
            yield api
        finally:
            # Nothing of a demonstration is to be gone on with.
            shutil.rmtree(folder, ignore_errors=True)
