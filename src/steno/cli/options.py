"""The options that many commands share."""

import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from steno.errors import NotFound, StenoError, Unreadable
from steno.store.places import demo_dir

__all__ = [
    "COLOR",
    "JSON",
    "MAYBE_SESSION",
    "SESSION",
    "WHERE",
    "WIDTH",
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


def roots(root: tuple[str, ...], *, demo: bool) -> tuple[str, ...] | None:
    """Return the folders to look in; None is the client's own.

    Raises:
        NotFound: the demo was asked for but is not there.
        Unreadable: a folder is not there or cannot be read.
    """
    for folder in root:
        _look_into(folder)
    if not demo:
        return root or None
    folder = demo_dir()
    if not os.path.isdir(folder):
        raise NotFound("there is no demo yet", hint=f"`{program()} demo` writes it")
    return (*root, folder)


def _look_into(folder: str) -> None:
    try:
        if os.path.isdir(folder):
            os.scandir(folder).close()
        else:
            os.stat(folder)
    except FileNotFoundError as error:
        raise Unreadable(f"{folder}: no such folder") from error
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else ""
        raise Unreadable(f"cannot read {folder}: {(said or str(error)).lower()}") from error


def where_to_look(root: tuple[str, ...], *, demo: bool) -> str:
    """Return the options that make another command look at the same folders, for a shell."""
    from shlex import quote

    return (" --demo" if demo else "") + "".join(f" --root {quote(folder)}" for folder in root)


def program() -> str:
    """Return how to call steno here: by its name if the shell finds it, else as it was called."""
    from shlex import quote
    from shutil import which

    called = sys.argv[0]
    if which("steno") or not called:
        return "steno"
    if os.path.basename(called) == "__main__.py":
        here = os.path.join(os.getcwd(), "")
        return f"{quote(sys.executable.removeprefix(here))} -m steno"
    return quote(called) if os.path.basename(called).startswith("steno") else "steno"


def _complete(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[Any]:
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


SESSION = click.argument("name", metavar="SESSION", shell_complete=_complete)
MAYBE_SESSION = click.argument(
    "name", metavar="[SESSION]", required=False, shell_complete=_complete
)
