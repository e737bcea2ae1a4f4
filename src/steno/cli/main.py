"""The `steno` command group, its table of commands, and the process entry point.

Commands are imported when called, so that each pays only for its own imports.
"""

import os
import re
import sys
from collections.abc import Iterable
from io import TextIOWrapper
from typing import Final

import click

from steno.cli.output.screen import print_error, print_note
from steno.errors import Ambiguous, BadRequest, Busy, NotFound, StenoError, Unreadable, Unwritable

COMPLETION_VARIABLE: Final = "_STENO_COMPLETE"
"""Environment variable that a shell sets to request completions."""
INTERRUPTED_EXIT_CODE: Final = 130
_MAX_ERROR_LENGTH: Final = 300
_MAX_RECOVERIES: Final = 2
"""Maximum retries of a command after a damaged index was moved away."""

COMMANDS: Final = {
    "explore": ("steno.cli.commands.explore", "Open the web explorer."),
    "ls": ("steno.cli.commands.ls", "List sessions, newest first."),
    "show": ("steno.cli.commands.show", "Show a session as turns, records or API messages."),
    "brief": ("steno.cli.commands.brief", "Summarize sessions: work, decisions and open items."),
    "search": ("steno.cli.commands.search", "Search the text of all sessions."),
    "files": ("steno.cli.commands.files", "List the files that agents changed, and show any version."),
    "blame": ("steno.cli.commands.blame", "Show which prompt wrote each line of a file."),
    "compare": ("steno.cli.commands.compare", "Compare two sessions."),
    "tail": ("steno.cli.commands.tail", "Follow live sessions."),
    "usage": ("steno.cli.commands.usage", "Show token usage and cost."),
    "export": ("steno.cli.commands.export", "Export sessions as HTML, Markdown, JSON and more."),
    "sync": ("steno.cli.commands.maintenance.sync", "Update the index that search and usage read."),
    "check": ("steno.cli.commands.maintenance.check", "Check sessions for problems."),
    "doctor": ("steno.cli.commands.maintenance.doctor", "Check the config directory for problems."),
    "repair": ("steno.cli.commands.maintenance.repair", "Repair a session so that it can be resumed."),
    "chat": ("steno.cli.commands.chat", "Run an agent in the current directory."),
    "replay": ("steno.cli.commands.replay", "Serve recorded sessions as a Messages API for tests."),
    "archive": ("steno.cli.commands.maintenance.archive", "Archive sessions, compressed and byte for byte."),
    "relocate": ("steno.cli.commands.maintenance.relocate", "Update sessions after a project was moved."),
    "mcp": ("steno.cli.commands.mcp", "Serve your session history to agents over MCP."),
    "acp": ("steno.cli.commands.acp", "Run the agent in an editor over ACP."),
    "demo": ("steno.cli.commands.demo", "Write demo sessions to try steno on."),
    "drift": ("steno.cli.commands.maintenance.drift", "Report record types and fields unknown to steno."),
}
"""Module of each command (attribute `command`) and its line in `steno --help`."""

_HELP: Final = """\
Browse, search, price, repair and export your Claude Code sessions.

Sessions are read from CLAUDE_CONFIG_DIR (default: ~/.claude). Only `repair --in-place`,
`relocate --apply`, `chat` and `acp` write to existing session files. Without a command, steno opens
the web explorer.

SESSION is a path, an ID, the first four or more characters of an ID, a sub-agent ID, a title or
part of it, or `last`.

\b
Examples:
  steno                       Open the web explorer
  steno ls                    List recent sessions
  steno show last             Read the newest session
  steno show 7c1f --turn 4    Read turn 4 of session 7c1f
  steno brief                 Summarize the newest session
  steno check                 Check sessions for problems
  steno repair 7c1f           Repair session 7c1f in a new file
  steno demo                  Write demo sessions to try steno on

\b
Shell completion (bash, zsh, fish), for example in ~/.bashrc:
  eval "$(steno --completion bash)"

\b
Exit codes:
  0  success
  1  no match, or problems found
  2  usage error
  3  cannot read or write
"""
_SHELLS: Final = ("bash", "zsh", "fish")
_ALIASES: Final = {"list": "ls", "stats": "usage"}
"""Command names of similar programs, accepted as aliases; not listed in the help."""
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
"""Command names of similar programs, by equivalent command; suggested, not run."""
_MAX_SUGGESTIONS: Final = 3
_MAX_LISTED_CANDIDATES: Final = 6


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
    """Import a command of `COMMANDS`."""
    from importlib import import_module

    return import_module(COMMANDS[name][0]).command


class _LazyGroup(click.Group):
    """A group that imports a command when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of `COMMANDS`."""
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
        """Write the command list without importing the commands."""
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
"""Commands with the same effect as an option, as in other programs; not listed in the help."""


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
    help="Print the version",
)
@click.option(
    "--completion",
    type=click.Choice(_SHELLS),
    is_eager=True,
    expose_value=False,
    callback=_print_completion,
    help="Print the completion script for a shell",
)
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Run a command; without one, open the web explorer."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(import_command("explore"))


def run_command(arguments: list[str]) -> int:
    """Run a command; return its exit code.

    Raises:
        StenoError: the command failed.
    """
    if instruction := os.environ.get(COMPLETION_VARIABLE):
        from click.shell_completion import shell_complete

        return shell_complete(cli, {}, "steno", COMPLETION_VARIABLE, instruction)
    try:
        # Not `cli.main`: it handles broken pipes and interrupts differently.
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
    """Return the next step after a usage error: similar names, or the command that prints the help."""
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
    return f"Run `{context.command_path} --help` for usage." if context else ""


def run(arguments: list[str] | None = None) -> None:
    """Run the command line and exit the process."""
    sys.exit(_run_and_report(arguments))


def _run_and_report(arguments: list[str] | None) -> int:
    if getattr(sys, "stdout", None) is None:
        print_error("cannot write: standard output is closed")
        return 3
    for stream in (sys.stdout, sys.stderr):
        # Write characters that the terminal encoding lacks as escapes.
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = _call_with_recovery(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED_EXIT_CODE
    except BrokenPipeError:
        # The reader closed the pipe. Python must not try to flush the rest at exit.
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
    """Report an internal error in one line; with STENO_DEBUG also the traceback."""
    from steno.sanitize.terminal import clean, one_line

    if os.environ.get("STENO_DEBUG"):
        from traceback import format_exception

        sys.stderr.write(clean("".join(format_exception(error)), newlines=True))
    print_error(
        f"internal error: {type(error).__name__}: {one_line(str(error), _MAX_ERROR_LENGTH)}",
        "This is a bug in steno. Set STENO_DEBUG=1 to show the traceback.",
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
            # The damaged index was moved away; the next attempt rebuilds it.
        return run_command(arguments)
    except StenoError as error:
        listed = _print_candidates(error) if isinstance(error, Ambiguous) and error.paths else False
        if not listed:
            print_error(str(error), error.hint)
        return _exit_code(error)


def _print_candidates(error: Ambiguous) -> bool:
    """Print the sessions that an ambiguous name matches; return whether all were readable."""
    from steno.format.paths import SHORT_ID_LENGTH
    from steno.report import humanize
    from steno.sanitize.terminal import one_line, pad
    from steno.store import environment
    from steno.store.discovery import discover_file
    from steno.store.session_lookup import summarize_files

    now = environment.now()
    paths = error.paths[:_MAX_LISTED_CANDIDATES]
    try:
        summaries = [summary for _, summary in summarize_files(map(discover_file, paths), now)]
    except StenoError:
        return False
    if len(summaries) < len(paths) or len({summary.id for summary in summaries}) < len(summaries):
        return False
    print_error(f"{error}:")
    short_ids = {summary.id[:SHORT_ID_LENGTH] for summary in summaries}
    id_length = SHORT_ID_LENGTH if len(short_ids) == len(summaries) else None
    for summary in summaries:
        short_id, project = summary.id[:id_length], one_line(humanize.project_name(summary.project))
        date = humanize.day_and_time(summary.ended, now) if summary.ended is not None else ""
        print_note(f"{short_id}  {pad(one_line(summary.title), 40)}  {pad(project, 14)}  {date}".rstrip())
    if len(error.paths) > len(paths):
        print_note(f"and {len(error.paths) - len(paths)} more")
    print_note("Use an ID or a longer part of the title.")
    return True


def _was_index_recovered(error: Exception, arguments: list[str]) -> bool:
    """Return whether the index was damaged and moved away; never with --no-sync."""
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
