"""`steno acp`: serves the agent to editors over the Agent Client Protocol."""

import os
import sys
from typing import TYPE_CHECKING, Any, Final

import click

from steno.cli.options import (
    ALLOWED_TOOLS,
    COLOR,
    DISALLOWED_TOOLS,
    JSON,
    MAX_TURNS_OPTION,
    MODEL_OPTION,
    PERMISSION_MODES,
    SETTINGS_OPTION,
    add_options,
)
from steno.cli.output.screen import Screen, write_json
from steno.errors import BadRequest
from steno.extras import require
from steno.sanitize.terminal import ColourMode

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from steno.acp.editor_session import ServerConfig
    from steno.agent.loop import ModelClient
    from steno.cli.commands.chat import ChatOptions
    from steno.llm.endpoint import Endpoint


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
@MODEL_OPTION
@click.option(
    "--permission-mode",
    "mode",
    type=click.Choice(PERMISSION_MODES),
    default=None,
    help="The mode that sessions begin in.",
)
@ALLOWED_TOOLS
@DISALLOWED_TOOLS
@SETTINGS_OPTION
@click.option(
    "--sandbox/--no-sandbox",
    "sandbox",
    default=None,
    help="Confine commands to the folder, or not, whatever the settings say.",
)
@MAX_TURNS_OPTION
@add_options(JSON, COLOR)
def command(*, editor: bool, as_json: bool, color: ColourMode, **values: Any) -> None:
    """Serve an editor until it goes, or tell how to add it to one."""
    if editor:
        _print_editor_setup(color, as_json=as_json)
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
    from steno.cli.commands.chat import ChatOptions

    values["mode"] = values["mode"] or ""
    asyncio.run(serve(_acp_settings(ChatOptions(**values))))


def _acp_settings(chat_options: "ChatOptions") -> "ServerConfig":
    import msgspec

    from steno.acp.editor_session import ServerConfig
    from steno.agent.child_process import variables_with_keys
    from steno.agent.config.agent_options import AgentOptions
    from steno.cli.commands.chat import agent_options, check_option_files
    from steno.llm.endpoint import Endpoint, MissingKey
    from steno.permissions.program_environment import scrub_environment
    from steno.permissions.project_trust import is_trusted
    from steno.report.pricing import PriceTable, response_cost_function

    endpoint: Endpoint | MissingKey
    try:
        endpoint = Endpoint.from_environment(os.environ)
    except MissingKey as error:
        # It is told when a session is asked for, where an editor can show it.
        endpoint = error
    scrub_environment(variables_with_keys(os.environ))
    engine_options = msgspec.structs.replace(agent_options(chat_options), entrypoint="acp")
    check_option_files(engine_options)

    def in_folder(cwd: str) -> AgentOptions:
        return msgspec.structs.replace(engine_options, cwd=cwd, trusted=is_trusted(cwd))

    return ServerConfig(
        make_options=in_folder,
        open_model=lambda: _open_model(endpoint, chat_options),
        price_response=response_cost_function(PriceTable()),
    )


def _open_model(
    endpoint: "Endpoint | BadRequest", chat_options: "ChatOptions"
) -> "AbstractAsyncContextManager[ModelClient]":
    from steno.agent.config.models import beta_headers
    from steno.llm.client import ApiClient

    if isinstance(endpoint, BadRequest):
        raise endpoint
    betas = beta_headers(chat_options.thinking, chat_options.effort, os.environ, chat_options.model)
    return ApiClient(endpoint, betas=betas)


def _print_editor_setup(color: ColourMode, *, as_json: bool) -> None:
    """Say how an editor starts this."""
    import json

    script_path = os.path.abspath(sys.argv[0])
    program, *arguments = [script_path] if os.access(script_path, os.X_OK) else [sys.executable, "-m", "steno"]
    arguments.append("acp")
    if as_json:
        write_json({"command": program, "args": arguments})
        return
    screen = Screen(color)
    screen.print_lines(
        [
            ["Zed, in its settings.json, under ", ("agent_servers", "bold"), ":"],
            [],
            [f'  "steno": {{"type": "custom", "command": {json.dumps(program)},'],
            [f'            "args": {json.dumps(arguments)}, "env": {{}}}}'],
            [],
            ["Any other editor that speaks ACP: have it start"],
            [],
            ["  ", " ".join([program, *arguments])],
            [],
            [("It needs ANTHROPIC_API_KEY, from your environment or under env.", "dim")],
        ]
    )
