"""The options that many commands share."""

import os
from collections.abc import Callable
from typing import Any, TypeVar

import click

from steno.errors import NotFound
from steno.store.places import demo_dir

__all__ = ["COLOR", "JSON", "SESSION", "WHERE", "WIDTH", "options", "roots"]

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
    type=click.Path(),
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


def roots(root: tuple[str, ...], *, demo: bool) -> tuple[str, ...] | None:
    """Return the folders to look in; None is the client's own.

    Raises:
        NotFound: the demo was asked for but is not there.
    """
    if not demo:
        return root or None
    folder = demo_dir()
    if not os.path.isdir(folder):
        raise NotFound("there is no demo yet", hint="`steno demo` writes it")
    return (*root, folder)


def _complete(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[Any]:
    """Offer the newest sessions, by id and title."""
    from itertools import islice

    from click.shell_completion import CompletionItem

    from steno.safe.terminal import one_line
    from steno.store.library import newest_first, seen

    where = roots(tuple(ctx.params.get("root") or ()), demo=bool(ctx.params.get("demo")))
    looks = (look for _, look in seen(newest_first(where)) if not look.hidden)
    fitting = (look for look in looks if look.id.startswith(incomplete))
    return [CompletionItem(look.id, help=one_line(look.title, 60)) for look in islice(fitting, 40)]


SESSION = click.argument("name", metavar="SESSION", shell_complete=_complete)
