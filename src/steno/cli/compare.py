"""`steno compare`: two sessions side by side."""

from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from steno.cli.fresh import NO_SYNC, fresh_index
from steno.cli.options import COLOR, JSON, WHERE, WIDTH, complete, options, roots, where_to_look
from steno.cli.screen import Screen, complain, write_bytes, write_json
from steno.errors import BadRequest
from steno.report import clock
from steno.safe.terminal import ColourMode

if TYPE_CHECKING:
    from steno.index.opened import Index
    from steno.report.compare import Side
    from steno.report.prices import Prices
    from steno.store.found import Found

__all__ = ["command"]

_FORMATS: Final = ("text", "markdown", "json")
_HELP: Final = """\
Lay two sessions side by side: prompts, the path of steps, files, commands, tests, cost and time,
and where they part.

A and B are named as for `steno show`. Steps are the same when they do the same to the same thing,
in whatever folder the project lies. Two tries of one task, a session and its fork, and a resumed
session and what it was made from are told apart from sessions that only share a project.

\b
  steno compare 7c1f 9e02            what differs, and where they part
  steno compare 7c1f last --all      with every step
  steno compare 7c1f 9e02 --format markdown > comparison.md
"""


class _Asked(msgspec.Struct):
    """What was asked for, beside the two names."""

    everything: bool = False
    style: str = "text"
    as_json: bool = False
    no_sync: bool = False
    no_pager: bool = False
    root: tuple[str, ...] = ()
    demo: bool = False


@click.command("compare", help=_HELP, short_help="Lay two sessions side by side.")
@click.argument("a", metavar="A", shell_complete=complete)
@click.argument("b", metavar="B", shell_complete=complete)
@click.option("--all", "everything", is_flag=True, help="Every step, file and command.")
@click.option(
    "--format",
    "style",
    type=click.Choice(_FORMATS),
    default="text",
    show_default=True,
    help="What to print.",
)
@options(NO_SYNC, WHERE, JSON)
@click.option("--no-pager", is_flag=True, help="Never page.")
@WIDTH
@options(COLOR)
def command(a: str, b: str, color: ColourMode, width: int | None, **given: Any) -> None:
    """Compare two sessions."""
    from steno.cli.compared import comparison_json, comparison_lines
    from steno.cli.pager import page
    from steno.report.compare import compare
    from steno.report.price_file import chosen_prices
    from steno.store.library import find

    asked = _Asked(**given)
    where = roots(asked.root, demo=asked.demo)
    one, other = (find(name, where) for name in (a, b))
    if one.path == other.path:
        raise BadRequest(f"{a!r} and {b!r} are the same session")
    screen = Screen(color, width)
    prices = chosen_prices("")
    with fresh_index(asked.root, demo=asked.demo, no_sync=asked.no_sync) as index:
        if index.report is None and not asked.no_sync:
            complain("a sync is at work; cost and models may not be complete")
        found = compare(*(_side(index, each, prices) for each in (one, other)))
    if asked.as_json or asked.style == "json":
        write_json(comparison_json(found))
    elif asked.style == "markdown":
        from steno.cli.compared_markdown import comparison_markdown

        text = comparison_markdown(found, clock.now(), everything=asked.everything)
        write_bytes(text.encode())
    else:
        lines = comparison_lines(found, screen.width, clock.now(), everything=asked.everything)
        page(screen, lines, wanted=not asked.no_pager)
        told = where_to_look(asked.root, demo=asked.demo)
        screen.next_steps([f"steno compare{told} A B --all", f"steno show{told} A --turn N"])


def _side(index: "Index", found: "Found", prices: "Prices") -> "Side":
    """Return one of the two; one that is in no index says of itself what there is."""
    from steno.index.scan import path_to
    from steno.report.compare import side_of
    from steno.report.compare.partners import listed_of
    from steno.report.compare.told import known_alone, known_of
    from steno.store.library import open_found

    row = index.connection.execute(
        "SELECT s.id, s.file FROM sessions s JOIN files f ON f.id = s.file WHERE f.path = ?",
        (path_to(found.path),),
    ).fetchone()
    listed = listed_of(index.connection, *row) if row is not None else None
    with open_found(found) as session:
        if listed is None:
            known = known_alone(session, found, prices)
        else:
            known = known_of(index.connection, listed, prices)
        return side_of(session, known)
