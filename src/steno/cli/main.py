"""The `steno` command group, its table of commands, and the entry point of the process.

Commands are imported when they are called, so that each one pays only for its own imports.
"""

import os
import re
import sys
from collections.abc import Iterable
from io import TextIOWrapper
from typing import Final

import click

from steno.cli.output.screen import print_error
from steno.errors import Ambiguous, BadRequest, Busy, NotFound, StenoError, Unreadable, Unwritable

COMPLETION_VARIABLE: Final = "_STENO_COMPLETE"
"""The variable by which a shell asks what could come next."""
INTERRUPTED_EXIT_CODE: Final = 130
_MAX_ERROR_LENGTH: Final = 300
_MAX_RECOVERIES: Final = 2
"""How often a command is started again after a damaged index was set aside."""

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
_ALIASES: Final = {"list": "ls", "stats": "usage"}
"""Names of commands in similar programs that run a command here; not listed."""
_SYNONYMS: Final = {
    "ls": ("history", "log", "sessions", "projects", "recent"),
    "usage": ("cost", "costs", "spend", "tokens", "blocks", "daily", "monthly", "weekly"),
    "search": ("find", "grep", "query"),
    "explore": ("open", "serve", "web", "ui", "browse", "dashboard", "start"),
    "show": ("view", "cat", "read", "print", "inspect"),
    "brief": ("summary", "summarize", "recap"),
    "compare": ("diff",),
    "repair": ("fix", "recover", "salvage"),
    "check": ("validate", "verify", "lint"),
    "doctor": ("health", "status", "diagnose"),
    "tail": ("watch", "follow", "live", "monitor"),
    "archive": ("backup", "save", "store"),
    "relocate": ("move", "mv", "rename"),
    "sync": ("index", "reindex", "update", "refresh"),
    "chat": ("resume", "continue", "run", "agent", "ask", "code"),
    "export": ("convert", "share", "html", "markdown"),
    "files": ("changes", "edits"),
}
"""Names that similar programs use, by the command that does this here; suggested, not run."""
_MAX_SUGGESTIONS: Final = 3


def _similar(word: str, choices: Iterable[str]) -> list[str]:
    from difflib import get_close_matches

    by_lower = {choice.lower(): choice for choice in choices}
    return [by_lower[match] for match in get_close_matches(word.lower(), by_lower, _MAX_SUGGESTIONS)]


def _suggest_commands(name: str) -> list[str]:
    synonyms = [command for command, words in _SYNONYMS.items() if name.lower() in words]
    return synonyms or list(
        dict.fromkeys(_ALIASES.get(match, match) for match in _similar(name, [*COMMANDS, *_ALIASES]))
    )


class NoSuchCommand(click.UsageError):
    """A name that is not a command; the message suggests similar ones."""

    def __init__(self, name: str, ctx: click.Context) -> None:
        super().__init__(f"No such command '{name}'.", ctx)
        self.suggestions = _suggest_commands(name)


def import_command(name: str) -> click.Command:
    """Import a command of the table."""
    from importlib import import_module

    return import_module(COMMANDS[name][0]).command


class _LazyGroup(click.Group):
    """A group that imports a command when it is wanted."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return [*super().list_commands(ctx), *COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import one command."""
        name = _ALIASES.get(cmd_name, cmd_name)
        if name in COMMANDS:
            return import_command(name)
        return _HIDDEN_COMMANDS.get(name) or super().get_command(ctx, cmd_name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that the first argument names."""
        if not ctx.resilient_parsing and self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            raise NoSuchCommand(args[0], ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name][1]) for name in self.list_commands(ctx)])


def _print_completion(ctx: click.Context, _param: click.Parameter, shell: str | None) -> None:
    if shell:
        _write_completion(ctx.command, shell)
        ctx.exit()


def _write_completion(command: click.Command, shell: str) -> None:
    from click.shell_completion import get_completion_class

    completion_class = get_completion_class(shell)
    if completion_class is not None:
        sys.stdout.write(completion_class(command, {}, "steno", COMPLETION_VARIABLE).source() + "\n")


def _print_version(ctx: click.Context, _param: click.Parameter, value: object) -> None:
    if value:
        _write_version()
        ctx.exit()


def _write_version() -> None:
    from steno._version import __version__

    sys.stdout.write(f"steno {__version__}\n")


@click.command("help", hidden=True)
@click.argument("names", nargs=-1)
@click.pass_context
def _help_command(ctx: click.Context, names: tuple[str, ...]) -> None:
    """Show the help of steno or of a command."""
    context, command = ctx.find_root(), ctx.find_root().command
    for name in names:
        child = command.get_command(context, name) if isinstance(command, click.Group) else None
        if child is None:
            raise NoSuchCommand(name, ctx=context)
        context, command = click.Context(child, context, name, **child.context_settings), child
    sys.stdout.write(command.get_help(context) + "\n")


@click.command("completion", hidden=True)
@click.argument("shell", type=click.Choice(_SHELLS), required=False)
@click.pass_context
def _completion_command(ctx: click.Context, shell: str | None) -> None:
    """Print the completion script for a shell, by default that of the SHELL variable."""
    default = os.path.basename(os.environ.get("SHELL", ""))
    _write_completion(ctx.find_root().command, shell or (default if default in _SHELLS else "bash"))


@click.command("version", hidden=True)
def _version_command() -> None:
    """Print the version."""
    _write_version()


_HIDDEN_COMMANDS: Final = {command.name: command for command in (_help_command, _completion_command, _version_command)}
"""Commands that other programs have where steno has options."""


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
        ctx.invoke(import_command("explore"))


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
        print_error(error.format_message(), _error_hint(error))
        return error.exit_code
    return 0


def _error_hint(error: click.ClickException) -> str:
    """Return the next step after a usage error: what was probably meant, and where the help is."""
    help_hint = _help_hint(error)
    if isinstance(error, NoSuchCommand) and error.suggestions:
        return f"Did you mean {' or '.join(f'`steno {name}`' for name in error.suggestions)}?"
    if isinstance(error, click.BadParameter) and error.param is not None:
        choices = getattr(error.param.type, "choices", ())
        value = re.match(r"'([^']*)'", error.message)
        if value and (similar := _similar(value[1], map(str, choices))):
            return f"Did you mean {' or '.join(similar)}?"
    return help_hint


def _help_hint(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    return f"`{context.command_path} --help` says what there is" if context else ""


def run(arguments: list[str] | None = None) -> None:
    """Run the command line and leave the process with its exit code."""
    sys.exit(_run_and_report(arguments))


def _run_and_report(arguments: list[str] | None) -> int:
    if getattr(sys, "stdout", None) is None:
        print_error("cannot write: the standard output is closed")
        return 3
    for stream in (sys.stdout, sys.stderr):
        # A letter the terminal does not have is written as its number.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _call_with_recovery(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED_EXIT_CODE
    except BrokenPipeError:
        # Whoever read the output has seen enough. Python must not try to flush the rest at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print_error(f"cannot read or write: {error.strerror or error}")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 3
    except Exception as error:
        return _report_internal_error(error)
    return code


def _report_internal_error(error: Exception) -> int:
    """Say in one line that steno itself is at fault; where it is at fault only when asked."""
    from steno.sanitize.terminal import clean, one_line

    if os.environ.get("STENO_DEBUG"):
        from traceback import format_exception

        sys.stderr.write(clean("".join(format_exception(error)), newlines=True))
    print_error(
        f"internal error: {type(error).__name__}: {one_line(str(error), _MAX_ERROR_LENGTH)}",
        "a fault of steno's own; STENO_DEBUG=1 shows where",
    )
    return 3


def _call_with_recovery(arguments: list[str]) -> int:
    from steno.store.damaged_files import add_damage_listener

    add_damage_listener(print_error)
    try:
        for _ in range(_MAX_RECOVERIES):
            try:
                return run_command(arguments)
            except Exception as error:
                if not _was_index_recovered(error, arguments):
                    raise
            # What was damaged has been set aside, and is made anew.
        return run_command(arguments)
    except StenoError as error:
        print_error(str(error), error.hint)
        return _exit_code(error)


def _was_index_recovered(error: Exception, arguments: list[str]) -> bool:
    """Whether an index was damaged, and set aside; a command that does not sync leaves it."""
    if "sqlite3" not in sys.modules or "--no-sync" in arguments:
        return False
    from steno.index.recovery import recover

    return recover(error)


def _exit_code(error: StenoError) -> int:
    match error:
        case NotFound():
            return 1
        case Ambiguous() | BadRequest():
            return 2
        case Unreadable() | Unwritable() | Busy():
            return 3
        case _:
            return 1
