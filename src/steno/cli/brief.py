"""`steno brief`: what was asked, done, decided and left open, for people and for pasting."""

import os
import sys
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from steno.cli.fresh import NO_SYNC, fresh_index
from steno.cli.options import COLOR, JSON, SESSIONS, WHERE, WIDTH, options, roots
from steno.cli.screen import Screen, complain, write_bytes
from steno.errors import NotFound
from steno.report import clock
from steno.safe.terminal import ColourMode

if TYPE_CHECKING:
    from steno.report.brief import Brief
    from steno.report.brief.choose import Place
    from steno.report.usage.wanted import Wanted

__all__ = ["command"]

_MOST: Final = 10
"""How many sessions are told where nobody says how many."""
_HELP: Final = """\
Tell sessions in brief: what was asked, what was done, what was decided, what is left open.

SESSION is named as everywhere; without one it is the newest. No model is asked: files with their
lines, commands, tests, commits, pull requests, sub-agents, failures and how they ended come from
the records. With --since or --until only the turns of that time are told.

\b
  steno brief                                   the newest session
  steno brief 7c1f --format markdown            to paste somewhere
  steno brief --project . --budget 2000         for a new conversation, at most 2,000 tokens
  steno brief --since yesterday                 what was done since then
  steno brief --last 3 --json                   for programs
  steno brief 7c1f --full                       every text, call and sub-agent

Every turn has all texts of the model, every call with its parameters and outcome, sub-agents,
files that the client backed up, compactions and the queue: in Markdown and JSON always, on the
terminal with --full. --full also leaves long parameters whole. A budget keeps what is worth most.

In Markdown and JSON, what looks like a secret is masked, and whatever sessions say is marked as
quoted material, in fences that it cannot close.
"""


class _Asked(msgspec.Struct):
    """What was asked for, beside the sessions."""

    last: int | None = None
    project: str | None = None
    since: str | None = None
    until: str | None = None
    form: str | None = None
    budget: int | None = None
    full: bool = False
    no_redact: bool = False
    no_sync: bool = False
    as_json: bool = False
    no_pager: bool = False

    @property
    def by_index(self) -> bool:
        """Whether the index says which sessions are meant."""
        return bool(self.project or self.since or self.until)


@click.command("brief", help=_HELP, short_help="Tell sessions in brief, for people and agents.")
@SESSIONS
@click.option("--last", metavar="N", type=click.IntRange(0), help="The newest N; 0 = all.")
@click.option("--project", metavar="P", help="Only projects whose path has P in it; `.` is here.")
@click.option("--since", metavar="WHEN", help="Only turns since: 2026-11-07, 7d, 3h, yesterday, …")
@click.option("--until", metavar="WHEN", help="Only turns until then, that day included.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "markdown", "json"]),
    help="How to write it.  [default: text; with --budget markdown]",
)
@click.option(
    "--budget",
    metavar="TOKENS",
    type=click.IntRange(1),
    help="At most so many tokens: what is worth most, and what is left out.",
)
@click.option("--full", is_flag=True, help="All texts and calls, with whole parameters.")
@click.option("--no-redact", is_flag=True, help="Do not mask what looks like a secret.")
@NO_SYNC
@options(WHERE, JSON)
@click.option("--no-pager", is_flag=True, help="Never page.")
@WIDTH
@options(COLOR)
def command(
    names: tuple[str, ...],
    root: tuple[str, ...],
    color: ColourMode,
    width: int | None,
    *,
    demo: bool,
    **asked: Any,
) -> None:
    """Choose the sessions, and tell them."""
    given = _Asked(**asked)
    form = _form(given)
    if given.full and given.budget is not None:
        raise click.UsageError("--full and --budget exclude each other")
    if names and (given.by_index or given.last is not None):
        raise click.UsageError("SESSION goes with none of --last, --project, --since, --until")
    from steno.report.brief.choose import briefs_of

    wanted = _wanted(given) if given.by_index else None
    places, further = _places(names, given, wanted, root, demo=demo)
    unread: list[str] = []
    from steno.cli.progress import Progress

    with Progress(sum(place.size for place in places), "Reading sessions") as bar:
        briefs = briefs_of(
            places, wanted, step=bar.add, unread=None if names else unread, full=given.full
        )
    if unread:
        complain(f"{len(unread):,} sessions could not be read, such as {unread[0]}")
    if not briefs and form != "json":
        raise NotFound("no session has a turn like that", hint="`steno ls` lists the sessions")
    _write(briefs, further + len(unread), form, given, Screen(color, width))
    if not briefs:
        raise click.exceptions.Exit(1)


def _form(given: _Asked) -> str:
    if given.as_json and given.form not in (None, "json"):
        raise click.UsageError(f"--json and --format {given.form} exclude each other")
    form = "json" if given.as_json else given.form
    if form == "text" and given.budget is not None:
        raise click.UsageError("--budget is for --format markdown and --json")
    return form or ("text" if given.budget is None else "markdown")


def _wanted(given: _Asked) -> "Wanted":
    from steno.report.usage.wanted import Wanted

    now = clock.now()
    since = clock.meant(given.since, now)[0] if given.since else None
    until = clock.meant(given.until, now)[1] if given.until else None
    return Wanted(
        since=None if since is None else round(since * 1000),
        until=None if until is None else round(until * 1000),
        project=given.project or "",
        here=os.getcwd() if given.project == "." else "",
    )


def _places(
    names: tuple[str, ...],
    given: _Asked,
    wanted: "Wanted | None",
    root: tuple[str, ...],
    *,
    demo: bool,
) -> "tuple[list[Place], int]":
    """Return the sessions that are meant, and how many more fit."""
    from steno.report.brief.choose import choose, most_for, place_of
    from steno.store.library import find

    where = roots(root, demo=demo)
    if names:
        found = {found.path: found for found in (find(name, where) for name in names)}
        return [place_of(each) for each in found.values()], 0
    if wanted is None:
        places = _newest(where, 1 if given.last is None else given.last)
        most = len(places)
    else:
        with fresh_index(root, demo=demo, no_sync=given.no_sync) as index:
            places = choose(index.connection, wanted)
        most = _MOST if given.last is None else given.last or len(places)
    if given.budget is not None:
        most = min(most, most_for(given.budget))
    return places[:most], max(0, len(places) - most)


def _newest(where: tuple[str, ...] | None, most: int) -> "list[Place]":
    from steno.report.brief.choose import place_of
    from steno.store.library import newest_first, seen

    listed = (each for each, look in seen(newest_first(where, archived=True)) if not look.hidden)
    places = [place_of(each) for each in islice(listed, most or None)]
    if not places:
        raise NotFound("there is no session", hint="`steno demo` makes some to look at")
    return places


def _write(briefs: "list[Brief]", further: int, form: str, given: _Asked, screen: Screen) -> None:
    redact = not given.no_redact
    if form == "json":
        from steno.report.brief.plain import as_json, encoded

        value = as_json(briefs, given.budget, redact=redact, further=further, full=given.full)
        write_bytes(encoded(value))
    elif form == "markdown":
        from steno.report.brief.markdown import as_markdown

        text = as_markdown(briefs, given.budget, redact=redact, further=further, full=given.full)
        sys.stdout.buffer.write(text.encode("utf-8", "replace"))
    else:
        from steno.cli.briefed import brief_lines
        from steno.cli.pager import page

        lines = brief_lines(briefs, further, screen.width, clock.now(), full=given.full)
        page(screen, lines, wanted=not given.no_pager)
