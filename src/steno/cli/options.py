"""Click options and arguments shared by commands, and completion of session names."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from steno.cli.command_arguments import search_roots
from steno.errors import StenoError

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])
Option = Callable[[FunctionT], FunctionT]

COLOR = click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    help="When to use colour; NO_COLOR is respected",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON")
WIDTH = click.option("--width", metavar="N", type=click.IntRange(40, 500), help="Width of the output in columns")
_ROOT_OPTION = click.option(
    "--root",
    "root",
    multiple=True,
    metavar="DIR",
    type=click.Path(readable=False),
    help="Read sessions from this directory instead; repeatable",
)
_DEMO_OPTION = click.option("--demo", is_flag=True, help="Use the sessions that `steno demo` wrote")


def add_options(*decorators: Callable[[Any], Any]) -> Callable[[FunctionT], FunctionT]:
    """Return a decorator that adds options in the given order."""

    def decorate(decorated: FunctionT) -> FunctionT:
        for option in reversed(decorators):
            decorated = option(decorated)
        return decorated

    return decorate


ROOT_OPTIONS = add_options(_ROOT_OPTION, _DEMO_OPTION)


def complete(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[Any]:
    """Return completions: the newest sessions, by ID and title."""
    from itertools import islice

    from click.shell_completion import CompletionItem

    from steno.sanitize.terminal import one_line
    from steno.store.session_lookup import sessions_newest_first, summarize_files

    try:
        where = search_roots(tuple(ctx.params.get("root") or ()), demo=bool(ctx.params.get("demo")))
        files = sessions_newest_first(where)
    except StenoError:
        return []
    summaries = (summary for _, summary in summarize_files(files) if not summary.hidden)
    matches = (look for look in summaries if look.id.startswith(incomplete))
    return [CompletionItem(look.id, help=one_line(look.title, 60)) for look in islice(matches, 40)]


SESSION = click.argument("name", metavar="SESSION", shell_complete=complete)
OPTIONAL_SESSION = click.argument("name", metavar="[SESSION]", required=False, shell_complete=complete)
SESSIONS = click.argument("names", metavar="[SESSION]...", nargs=-1, shell_complete=complete)


PERMISSION_MODES: Final = ("default", "plan", "acceptEdits", "bypassPermissions", "dontAsk")

MODEL_OPTION = click.option("--model", metavar="MODEL", default="", help="Model ID, or opus, sonnet or haiku")
ALLOWED_TOOLS = click.option(
    "--allowedTools",
    "--allowed-tools",
    "allowed",
    multiple=True,
    metavar="RULE",
    help="Allow tool calls that match, such as `Bash(make:*)`",
)
DISALLOWED_TOOLS = click.option(
    "--disallowedTools",
    "--disallowed-tools",
    "disallowed",
    multiple=True,
    metavar="RULE",
    help="Deny tool calls that match",
)
SETTINGS_OPTION = click.option(
    "--settings", metavar="FILE|JSON", default="", help="Settings for this run, as a file or JSON"
)
MAX_TURNS_OPTION = click.option(
    "--max-turns", type=click.IntRange(1), default=None, help="Maximum number of API requests"
)
