"""`steno search`: words in every session, and where they were said."""

from collections.abc import Iterable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from steno.cli.fresh import NO_SYNC, fresh_index
from steno.cli.options import COLOR, JSON, WHERE, WIDTH, options, where_to_look
from steno.cli.screen import Screen, complain, write_json
from steno.report import clock, words
from steno.safe.terminal import ColourMode

if TYPE_CHECKING:
    from steno.cli.hits import Hits
    from steno.index.opened import Index
    from steno.index.search.finder import Found
    from steno.index.search.grep import Pattern
    from steno.index.search.language import Query

__all__ = ["command"]

_NOT: Final = "\0"
"""Stands before a word that is to be left out, so that it is not taken for an option."""
_SHORT: Final = 2
_HELP: Final = """\
Find words in prompts, answers, thinking, tool inputs and outputs, paths, titles.

All words must stand in one message. Identifiers, paths and versions are found as they are written;
a word that is nowhere is looked for inside longer words. Newest first, by session.

\b
  connection reset    both words            '"read only"'       the phrase
  auth* *part*        begins, has inside    this OR that        either
  -timeout            without it            -tool:Bash          also of filters

\b
  tool:Bash  file:login.py  in:prompt  role:user  model:opus  branch:main
  project:.  session:last   since:7d   until:yesterday        has:error
"""


class _Search(click.Command):
    """The command; `-word` leaves a word out and is no option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Hide words that begin with a dash from the parser of options."""
        valued = {
            name
            for param in self.get_params(ctx)
            if isinstance(param, click.Option) and not param.is_flag
            for name in param.opts
        }
        return super().parse_args(ctx, list(_hidden(args, valued)))


def _hidden(args: list[str], valued: set[str]) -> Iterable[str]:
    value = plain = False
    for arg in args:
        plain = plain or (arg == "--" and not value)
        is_option = arg.startswith("--") or (len(arg) == _SHORT and arg == "-h")
        yield _NOT + arg if arg.startswith("-") and not (plain or value or is_option) else arg
        value = arg in valued and not value and not plain


class _Asked(msgspec.Struct):
    """What was asked for, beside the words."""

    project: str | None = None
    since: str | None = None
    until: str | None = None
    regex: str | None = None
    rank: bool = False
    oldest: bool = False
    limit: int = 10
    each: int | None = None
    count: bool = False
    sessions: bool = False
    as_json: bool = False


@click.command("search", cls=_Search, help=_HELP, short_help="Find words in every session.")
@click.argument("query", metavar="WORDS...", nargs=-1)
@click.option("--project", metavar="P", help="Only projects whose path has P in it; `.` is here.")
@click.option("--since", metavar="WHEN", help="Only what was said since: 2026-11-07, 7d, 3h, …")
@click.option("--until", metavar="WHEN", help="Only what was said until then, that day included.")
@click.option(
    "--regex", metavar="RE", help="Only texts that this pattern fits; words are optional."
)
@click.option("--rank", is_flag=True, help="The best first, not the newest.")
@click.option("--oldest", is_flag=True, help="The oldest first.")
@click.option(
    "--limit",
    metavar="N",
    default=10,
    show_default=True,
    type=click.IntRange(0),
    help="How many sessions; 0 = all.",
)
@click.option(
    "--each",
    metavar="N",
    type=click.IntRange(0),
    help="How many hits of each; 0 = all.  [default: 4, with --json all]",
)
@click.option("--sessions", is_flag=True, help="Only list the sessions.")
@click.option("--count", is_flag=True, help="Only say how many messages have it.")
@click.option(
    "--audit", is_flag=True, help="Account for every byte: what is searched, what is not."
)
@NO_SYNC
@options(WHERE, JSON)
@WIDTH
@options(COLOR)
def command(
    query: tuple[str, ...],
    root: tuple[str, ...],
    color: ColourMode,
    width: int | None,
    *,
    demo: bool,
    audit: bool,
    no_sync: bool,
    **asked: Any,
) -> None:
    """Look for words, and tell what was found."""
    wanted = _Asked(**asked)
    if wanted.rank and wanted.oldest:
        raise click.UsageError("--rank and --oldest exclude each other")
    screen = Screen(color, width)
    with fresh_index(root, demo=demo, no_sync=no_sync) as index:
        if index.report is None and not no_sync:
            complain("a sync is at work; what it has not finished is not found yet")
        if audit:
            if query or wanted.regex:
                raise click.UsageError("--audit looks at everything; it takes no words")
            from steno.cli.audited import audited

            audited(index, screen, as_json=wanted.as_json)
            return
        text = " ".join(word.removeprefix(_NOT) for word in query)
        _search(index, text, wanted, screen, where_to_look(root, demo=demo))


def _search(index: "Index", text: str, wanted: _Asked, screen: Screen, where: str) -> None:
    from steno.cli.hits import Hits
    from steno.index.search.finder import open_finder, why_ignored
    from steno.index.search.grep import Pattern

    query = _query(text, wanted)
    finder = open_finder(index, lambda text: clock.meant(text, clock.now()))
    order = "rank" if wanted.rank else "oldest" if wanted.oldest else "newest"
    pattern = Pattern(wanted.regex) if wanted.regex is not None else None
    found = finder.find(query, order, alone=pattern is None)
    # The pattern is looked for again where excerpts are made: its limit holds until the end.
    with nullcontext() if pattern is None else pattern:
        if pattern is not None:
            _match(index, found, pattern)
        for word in found.wanted.ignored:
            complain(f"{why_ignored(word)}: left out", "--regex looks for anything")
        _tell(Hits(index, finder, found, pattern, where), query, wanted, screen)
    if pattern is not None:
        _tell_limits(pattern)
    if not found.messages:
        raise click.exceptions.Exit(1)


def _query(text: str, wanted: _Asked) -> "Query":
    """Return what was asked for, in words and in options."""
    from steno.index.search.language import Filter, parse

    query = parse(text)
    told = {"project": wanted.project, "since": wanted.since, "until": wanted.until}
    more = [Filter(name, value) for name, value in told.items() if value is not None]
    return msgspec.structs.replace(query, filters=(*query.filters, *more))


def _match(index: "Index", found: "Found", pattern: "Pattern") -> None:
    """Leave only the messages that the pattern fits."""
    from steno.cli.progress import Progress
    from steno.index.search.reader import Reader

    lengths = index.connection.execute(
        "SELECT sum(length) FROM messages WHERE id IN (SELECT value FROM json_each(?))",
        (msgspec.json.encode(found.messages).decode(),),
    )
    total = int(lengths.fetchone()[0] or 0)
    with Progress(total, "Matching") as bar, Reader(index.connection) as reader:
        fitting = pattern.among(reader, found.messages, found.scope, bar.add)
    found.messages = [message for message in found.messages if message in fitting]


def _tell_limits(pattern: "Pattern") -> None:
    if pattern.slow:
        were = "was" if pattern.slow == 1 else "were"
        complain(f"{words.count(pattern.slow, 'text')} took the pattern too long, {were} skipped")
    if pattern.cut:
        complain(f"{words.count(pattern.cut, 'text')} longer than 4 MB, looked at in part")


def _tell(hits: "Hits", query: "Query", wanted: _Asked, screen: Screen) -> None:
    if wanted.count:
        _count(hits, screen, as_json=wanted.as_json)
    elif wanted.sessions:
        _sessions(hits, screen, wanted)
    elif wanted.as_json:
        write_json(hits.as_json(wanted.limit, wanted.each or 0))
        if hits.left_out(wanted.limit):
            complain(hits.left_out(wanted.limit))
    elif not hits.total:
        screen.lines(hits.nothing(query, screen.width))
    else:
        each = 4 if wanted.each is None else wanted.each
        screen.lines(hits.lines(wanted.limit, each, screen.width))
        hits.finish(screen, wanted.limit)


def _count(hits: "Hits", screen: Screen, *, as_json: bool) -> None:
    if as_json:
        write_json(hits.sums())
    else:
        screen.lines([[str(hits.total)]])


def _sessions(hits: "Hits", screen: Screen, wanted: _Asked) -> None:
    if wanted.as_json:
        write_json(hits.sessions_json(wanted.limit))
        if hits.left_out(wanted.limit):
            complain(hits.left_out(wanted.limit))
        return
    screen.lines(hits.session_lines(wanted.limit, screen.width))
    hits.finish(screen, wanted.limit)
