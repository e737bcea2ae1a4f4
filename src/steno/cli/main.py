"""The `steno` command group: its help, its options, and the table of commands.

Commands are imported when they are called, so that each one pays only for its own imports.
"""

import os
import sys
from typing import Final

import click

from steno.cli.entry_point import COMPLETION_VARIABLE, INTERRUPTED_EXIT_CODE
from steno.cli.output.screen import print_error

COMMANDS: Final = {
    "explore": ("steno.cli.commands.explore", "Look at everything in a browser."),
    "ls": ("steno.cli.commands.ls", "List sessions, newest first."),
    "show": ("steno.cli.commands.show", "Read one session: turns, steps, answers; or its records."),
    "brief": ("steno.cli.commands.brief", "Tell sessions in brief: asked, done, decided, left open."),
    "search": ("steno.cli.commands.search", "Find words in every session."),
    "files": ("steno.cli.commands.files", "Show what agents did to files, and any version of one."),
    "blame": ("steno.cli.commands.blame", "Say which prompt wrote each line of a file."),
    "compare": ("steno.cli.commands.compare", "Lay two sessions side by side: where they part, who did better."),
    "tail": ("steno.cli.commands.tail", "Follow live sessions: turns and steps as they are written."),
    "usage": ("steno.cli.commands.usage", "Say what was used and what it cost, down to the line."),
    "export": ("steno.cli.commands.export", "Write sessions in a format for others, secrets masked."),
    "sync": ("steno.cli.commands.maintenance.sync", "Bring the index up to date: what search and usage read."),
    "check": ("steno.cli.commands.maintenance.check", "Say what is wrong with sessions, and what it means."),
    "doctor": ("steno.cli.commands.maintenance.doctor", "Look after the config folder: what is broken or about to go."),
    "repair": ("steno.cli.commands.maintenance.repair", "Make a broken session resume, in a new file."),
    "chat": ("steno.cli.commands.chat", "Let an agent work on your files, in a session that resumes."),
    "replay": ("steno.cli.commands.replay", "Serve recorded sessions as a Messages API, to test agents."),
    "archive": ("steno.cli.commands.maintenance.archive", "Keep sessions for good: compressed, byte for byte."),
    "relocate": ("steno.cli.commands.maintenance.relocate", "Have sessions follow a project that was moved."),
    "mcp": ("steno.cli.commands.mcp", "Give agents your history: an MCP server that only reads."),
    "acp": ("steno.cli.commands.acp", "Let an editor drive the agent, over the Agent Client Protocol."),
    "demo": ("steno.cli.commands.demo", "Write a few made-up sessions to try things on."),
    "drift": ("steno.cli.commands.maintenance.drift", "Say what files contain that the catalogue does not know."),
}
"""Each command's module, which has it as `command`, and its line in the help."""

_HELP: Final = """\
Read what coding agents said and did: the sessions of Claude Code, told turn by turn.

Sessions are read where the client keeps them (CLAUDE_CONFIG_DIR, else ~/.claude). Nothing changes
them but `repair --in-place` and `relocate --apply`. Without a command, the explorer opens in a browser.

SESSION is a path, an id, the first letters of an id (four or more), a sub-agent's id, a title or a
part of one, or `last`.

\b
  steno                       everything, in a browser
  steno ls                    what happened lately
  steno show last             read the newest session
  steno show 7c1f --turn 4    one turn of it
  steno brief                 what was done in it, and what is left open
  steno check                 is anything damaged or lost?
  steno repair 7c1f           make it resume, in a new file
  steno demo                  made-up sessions to try things on

\b
Completion:  eval "$(steno --completion bash)" in ~/.bashrc; also zsh, fish
Exit codes:  0 fine, 1 nothing found or findings, 2 wrong usage, 3 cannot read or write
"""
_SHELLS: Final = ("bash", "zsh", "fish")


class _LazyGroup(click.Group):
    """A group that imports a command when it is wanted."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return [*super().list_commands(ctx), *COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        from importlib import import_module

        return import_module(COMMANDS[cmd_name][0]).command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])


def _print_completion(ctx: click.Context, _param: click.Parameter, shell: str | None) -> None:
    if not shell:
        return
    from click.shell_completion import get_completion_class

    completion_class = get_completion_class(shell)
    if completion_class is not None:
        sys.stdout.write(completion_class(ctx.command, {}, "steno", COMPLETION_VARIABLE).source() + "\n")
    ctx.exit()


def _print_version(ctx: click.Context, _param: click.Parameter, value: object) -> None:
    if value:
        from steno._version import __version__

        sys.stdout.write(f"steno {__version__}\n")
        ctx.exit()


@click.group(
    cls=_LazyGroup,
    help=_HELP,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "-V",
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version.",
)
@click.option(
    "--completion",
    type=click.Choice(_SHELLS),
    is_eager=True,
    expose_value=False,
    callback=_print_completion,
    help="Print the completion script for a shell.",
)
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Run a command; without one, open the explorer."""
    if ctx.invoked_subcommand is None:
        from steno.cli.commands.explore import command

        ctx.invoke(command)


def run_command(arguments: list[str]) -> int:
    """Run a command; return its exit code.

    Raises:
        StenoError: it could not do what it was to do.
    """
    if instruction := os.environ.get(COMPLETION_VARIABLE):
        from click.shell_completion import shell_complete

        return shell_complete(cli, {}, "steno", COMPLETION_VARIABLE, instruction)
    try:
        # Not `cli.main`, which has ideas of its own about pipes and interrupts.
        with cli.make_context("steno", arguments) as context:
            cli.invoke(context)
    except click.exceptions.Exit as exit_request:
        return exit_request.exit_code
    except click.Abort:
        return INTERRUPTED_EXIT_CODE
    except click.ClickException as error:
        print_error(error.format_message(), _help_hint(error))
        return error.exit_code
    return 0


def _help_hint(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f"`{context.command_path} --help` says what there is" if context else ""
