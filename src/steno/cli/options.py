"""The options that many commands share."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from steno.cli.where import program, roots, where_to_look
from steno.errors import StenoError

__all__ = [
    "COLOR",
    "JSON",
    "MAYBE_SESSION",
    "SESSION",
    "SESSIONS",
    "WHERE",
    "WIDTH",
    "complete",
    "options",
    "program",
    "roots",
    "where_to_look",
]

F = TypeVar("F", bound=Callable[..., Any])
Option = Callable[[F], F]

COLOR = click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    help="Colour: when a terminal is looking (auto), always or never. NO_COLOR is respected.",
)
JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
WIDTH = click.option(
    "--width", metavar="N", type=click.IntRange(40, 500), help="How many columns to use."
)
_ROOT = click.option(
    "--root",
    "root",
    multiple=True,
    metavar="DIR",
    type=click.Path(readable=False),
    help="Look here instead: a config folder, a project or any folder. May be repeated.",
)
_DEMO = click.option("--demo", is_flag=True, help="Look at the demo that `steno demo` wrote.")


def options(*several: Callable[[Any], Any]) -> Callable[[F], F]:
    """Return a decorator that adds options in the order given."""

    def add(function: F) -> F:
        for option in reversed(several):
            function = option(function)
        return function

    return add


WHERE = options(_ROOT, _DEMO)


def complete(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[Any]:
    """Offer the newest sessions, by id and title."""
    from itertools import islice

    from click.shell_completion import CompletionItem

    from steno.safe.terminal import one_line
    from steno.store.library import newest_first, seen

    try:
        where = roots(tuple(ctx.params.get("root") or ()), demo=bool(ctx.params.get("demo")))
        files = newest_first(where)
    except StenoError:
        return []
    looks = (look for _, look in seen(files) if not look.hidden)
    fitting = (look for look in looks if look.id.startswith(incomplete))
    return [CompletionItem(look.id, help=one_line(look.title, 60)) for look in islice(fitting, 40)]


SESSION = click.argument("name", metavar="SESSION", shell_complete=complete)
MAYBE_SESSION = click.argument("name", metavar="[SESSION]", required=False, shell_complete=complete)
SESSIONS = click.argument("names", metavar="[SESSION]...", nargs=-1, shell_complete=complete)
