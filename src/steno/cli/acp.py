"""`steno acp`: the engine for editors, over the Agent Client Protocol."""

import os
import sys
from typing import TYPE_CHECKING, Any, Final

import click

from steno.cli.engine_options import ALLOWED, DISALLOWED, MAX_TURNS, MODEL, MODES, SETTINGS
from steno.cli.options import COLOR, JSON, options
from steno.cli.screen import Screen, write_json
from steno.errors import BadRequest
from steno.extras import require
from steno.safe.terminal import ColourMode

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from steno.acp.setting import Setting
    from steno.agent.loop import Model
    from steno.cli.chat import Asked
    from steno.model.endpoint import Endpoint

__all__ = ["command"]

_HELP: Final = """\
Let an editor drive the agent: the Agent Client Protocol on the standard input and output.

The editor starts it, and shows what it says, does and asks. It is the engine of `steno chat`:
the same tools, rules, commands and settings, and sessions that Claude Code resumes. It needs
ANTHROPIC_API_KEY, or ANTHROPIC_AUTH_TOKEN, in the environment that the editor gives it.

\b
  steno acp --editor           what to put into an editor's settings
  steno acp --model sonnet     as the editor starts it, with another model

The standard output carries the protocol and nothing else; anything to tell goes to the
standard error.
"""


@click.command("acp", help=_HELP, short_help="Let an editor drive the agent, over ACP.")
@click.option("--editor", is_flag=True, help="Say what to put into an editor's settings.")
@MODEL
@click.option(
    "--permission-mode",
    "mode",
    type=click.Choice(MODES),
    default=None,
    help="The mode that sessions begin in.",
)
@ALLOWED
@DISALLOWED
@SETTINGS
@click.option(
    "--sandbox/--no-sandbox",
    "sandbox",
    default=None,
    help="Confine commands to the folder, or not, whatever the settings say.",
)
@MAX_TURNS
@options(JSON, COLOR)
def command(*, editor: bool, as_json: bool, color: ColourMode, **asked: Any) -> None:
    """Serve an editor until it goes, or tell how to add it to one."""
    if editor:
        _tell(color, as_json=as_json)
        return
    if as_json:
        raise click.UsageError("--json goes with --editor")
    require("agent", "`steno acp`")
    if sys.stdin is None or sys.stdin.isatty():
        raise BadRequest(
            "an editor starts this, with pipes to talk through",
            hint="`steno acp --editor` says how to add it to one; `steno chat` is for terminals",
        )
    import asyncio

    from steno.acp.server import serve
    from steno.cli.chat import Asked

    asked["mode"] = asked["mode"] or ""
    asyncio.run(serve(_setting(Asked(**asked))))


def _setting(asked: "Asked") -> "Setting":
    import msgspec

    from steno.acp.setting import Setting
    from steno.agent.keys import holding_keys
    from steno.agent.options import Options
    from steno.cli.chat import options_of
    from steno.cli.chat_flags import refuse_unreadable
    from steno.guard.environ import forget
    from steno.guard.trust import is_trusted
    from steno.model.endpoint import Endpoint, NoKey
    from steno.report.prices import Prices
    from steno.report.spent import spending

    endpoint: Endpoint | NoKey
    try:
        endpoint = Endpoint.from_environment(os.environ)
    except NoKey as error:
        # It is told when a session is asked for, where an editor can show it.
        endpoint = error
    forget(holding_keys(os.environ))
    common = msgspec.structs.replace(options_of(asked), entrypoint="acp")
    refuse_unreadable(common)

    def in_folder(cwd: str) -> Options:
        return msgspec.structs.replace(common, cwd=cwd, trusted=is_trusted(cwd))

    return Setting(
        options=in_folder, model=lambda: _model(endpoint, asked), price=spending(Prices())
    )


def _model(
    endpoint: "Endpoint | BadRequest", asked: "Asked"
) -> "AbstractAsyncContextManager[Model]":
    from steno.agent.thinking import betas_for
    from steno.model.client import Api

    if isinstance(endpoint, BadRequest):
        raise endpoint
    betas = betas_for(asked.thinking, asked.effort, os.environ, asked.model)
    return Api(endpoint, betas=betas)


def _tell(color: ColourMode, *, as_json: bool) -> None:
    """Say how an editor starts this."""
    import json

    own = os.path.abspath(sys.argv[0])
    program, *words = [own] if os.access(own, os.X_OK) else [sys.executable, "-m", "steno"]
    words.append("acp")
    if as_json:
        write_json({"command": program, "args": words})
        return
    screen = Screen(color)
    screen.lines(
        [
            ["Zed, in its settings.json, under ", ("agent_servers", "bold"), ":"],
            [],
            [f'  "steno": {{"type": "custom", "command": {json.dumps(program)},'],
            [f'            "args": {json.dumps(words)}, "env": {{}}}}'],
            [],
            ["Any other editor that speaks ACP: have it start"],
            [],
            ["  ", " ".join([program, *words])],
            [],
            [("It needs ANTHROPIC_API_KEY, from your environment or under env.", "dim")],
        ]
    )
