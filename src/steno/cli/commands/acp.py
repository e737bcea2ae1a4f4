"""`steno acp`: runs the agent in editors over the Agent Client Protocol."""

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
Run the agent in an editor, over the Agent Client Protocol on standard input and output.

The editor starts this command and shows messages, tool calls and approval requests. Tools,
permission rules, slash commands and settings are those of `steno chat`, and Claude Code can resume
the sessions. ANTHROPIC_API_KEY or ANTHROPIC_AUTH_TOKEN must be set in the editor's environment.

\b
Examples:
  steno acp --editor          Print the settings for an editor
  steno acp --model sonnet    Serve an editor and use another model

Standard output carries only the protocol; messages go to standard error.
"""


@click.command("acp", help=_HELP, short_help="Run the agent in an editor over ACP.")
@click.option("--editor", is_flag=True, help="Print the settings for an editor")
@MODEL_OPTION
@click.option(
    "--permission-mode",
    "mode",
    type=click.Choice(PERMISSION_MODES),
    default=None,
    help="Initial permission mode of sessions",
)
@ALLOWED_TOOLS
@DISALLOWED_TOOLS
@SETTINGS_OPTION
@click.option(
    "--sandbox/--no-sandbox", "sandbox", default=None, help="Turn the sandbox on or off, overriding the settings"
)
@MAX_TURNS_OPTION
@add_options(JSON, COLOR)
def command(*, editor: bool, as_json: bool, color: ColourMode, **values: Any) -> None:
    """Serve an editor until it disconnects, or print the editor settings."""
    if editor:
        _print_editor_setup(color, as_json=as_json)
        return
    if as_json:
        raise click.UsageError("--json requires --editor")
    require("agent", "`steno acp`")
    if sys.stdin is None or sys.stdin.isatty():
        raise BadRequest(
            "`steno acp` must be started by an editor, over pipes",
            hint="Run `steno acp --editor` for the editor settings, or `steno chat` in a terminal.",
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
        # Reported when the editor opens a session, where it can show the error.
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
    """Print the settings that make an editor start `steno acp`."""
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
            ["Zed: add to settings.json under ", ("agent_servers", "bold"), ":"],
            [],
            [f'  "steno": {{"type": "custom", "command": {json.dumps(program)},'],
            [f'            "args": {json.dumps(arguments)}, "env": {{}}}}'],
            [],
            ["Other editors with ACP support: set the agent command to"],
            [],
            ["  ", " ".join([program, *arguments])],
            [],
            [("Set ANTHROPIC_API_KEY in your environment or under env.", "dim")],
        ]
    )
