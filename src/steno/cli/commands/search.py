"""`steno search`: full-text search over all sessions."""

from collections.abc import Iterable
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from steno.cli.command_arguments import root_arguments
from steno.cli.fresh_index import NO_SYNC, open_fresh_index
from steno.cli.options import COLOR, JSON, ROOT_OPTIONS, WIDTH, add_options
from steno.cli.output.screen import Screen, print_error, write_json
from steno.report import clock, humanize
from steno.sanitize.terminal import ColourMode
from steno.store import environment

if TYPE_CHECKING:
    from steno.cli.output.search_results import SearchResults
    from steno.index.database import SessionIndex
    from steno.index.search.finder import SearchResult
    from steno.index.search.hit_text import RegexPattern
    from steno.index.search.query_parser import Query


_EXCLUSION_MARK: Final = "\0"
"""Prefix of excluded words (`-word`), so that click does not parse them as options."""
_SHORT_OPTION_LENGTH: Final = 2
_HELP: Final = """\
Search prompts, answers, thinking, tool calls and results, paths and titles.

A message matches if it contains all words. Identifiers, paths and versions match as written; a
word without a match is also searched inside longer words. Results are grouped by session, newest
first.

\b
Query syntax:
  connection reset    both words            '"read only"'    the phrase
  auth* *part*        prefix, substring     this OR that     either word
  -timeout            not this word         -tool:Bash       not this filter

\b
Filters:
  tool:Bash  file:login.py  in:prompt  role:user  model:opus  branch:main
  project:.  session:last   since:7d   until:yesterday        has:error
"""


class _SearchCommand(click.Command):
    """A command that accepts `-word` as an excluded word."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse options without excluded words."""
        value_options = {
            name
            for param in self.get_params(ctx)
            if isinstance(param, click.Option) and not param.is_flag
            for name in param.opts
        }
        return super().parse_args(ctx, list(_mark_exclusions(args, value_options)))


def _mark_exclusions(args: list[str], value_options: set[str]) -> Iterable[str]:
    is_value = is_after_dashes = False
    for arg in args:
        is_after_dashes = is_after_dashes or (arg == "--" and not is_value)
        is_option = arg.startswith("--") or (len(arg) == _SHORT_OPTION_LENGTH and arg == "-h")
        yield (_EXCLUSION_MARK + arg if arg.startswith("-") and not (is_after_dashes or is_value or is_option) else arg)
        is_value = arg in value_options and not is_value and not is_after_dashes


class _SearchOptions(msgspec.Struct):
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


@click.command("search", cls=_SearchCommand, help=_HELP, short_help="Search the text of all sessions.")
@click.argument("query", metavar="WORDS...", nargs=-1)
@click.option("--project", metavar="P", help="Filter by project path; `.` is the current directory")
@click.option("--since", metavar="WHEN", help="Only messages since WHEN: 2026-11-07, 7d, 3h")
@click.option("--until", metavar="WHEN", help="Only messages until WHEN, that day included")
@click.option("--regex", metavar="RE", help="Only text that matches this pattern; words are optional")
@click.option("--rank", is_flag=True, help="Sort by relevance")
@click.option("--oldest", is_flag=True, help="Sort oldest first")
@click.option(
    "--limit",
    metavar="N",
    default=10,
    show_default=True,
    type=click.IntRange(0),
    help="Maximum number of sessions; 0 = all",
)
@click.option(
    "--each",
    metavar="N",
    type=click.IntRange(0),
    help="Maximum number of matches per session; 0 = all  [default: 4; all with --json]",
)
@click.option("--sessions", is_flag=True, help="List only the sessions")
@click.option("--count", is_flag=True, help="Print only the number of matching messages")
@click.option("--audit", is_flag=True, help="Report which bytes of the session files are searched")
@NO_SYNC
@add_options(ROOT_OPTIONS, JSON)
@WIDTH
@add_options(COLOR)
def command(
    query: tuple[str, ...],
    root: tuple[str, ...],
    color: ColourMode,
    width: int | None,
    *,
    demo: bool,
    audit: bool,
    no_sync: bool,
    **values: Any,
) -> None:
    """Search and print the matches."""
    command_options = _SearchOptions(**values)
    if command_options.rank and command_options.oldest:
        raise click.UsageError("--rank cannot be combined with --oldest")
    screen = Screen(color, width)
    with open_fresh_index(root, demo=demo, no_sync=no_sync, while_syncing="results may be incomplete") as index:
        if audit:
            if query or command_options.regex:
                raise click.UsageError("--audit cannot be combined with a query")
            from steno.cli.output.search_results import print_audit

            print_audit(index, screen, as_json=command_options.as_json)
            return
        text = " ".join(term.removeprefix(_EXCLUSION_MARK) for term in query)
        _run_search(index, text, command_options, screen, root_arguments(root, demo=demo))


def _run_search(index: "SessionIndex", text: str, options: _SearchOptions, screen: Screen, root_options: str) -> None:
    from steno.cli.output.search_results import SearchResults
    from steno.index.search.finder import ignored_reason, open_finder
    from steno.index.search.hit_text import RegexPattern

    query = _build_query(text, options)
    finder = open_finder(index, lambda text: clock.parse_time_range(text, environment.now()))
    order = "rank" if options.rank else "oldest" if options.oldest else "newest"
    pattern = RegexPattern(options.regex) if options.regex is not None else None
    result = finder.find(query, order, require_terms=pattern is None)
    # Excerpts match the pattern again, so its time limit applies until they are printed.
    with nullcontext() if pattern is None else pattern:
        if pattern is not None:
            _filter_by_pattern(index, result, pattern)
        for term in result.query_forms.ignored:
            print_error(f"{ignored_reason(term)}: ignored", "Use --regex to search for any text.")
        _print_results(SearchResults(index, finder, result, pattern, root_options), query, options, screen)
    if pattern is not None:
        _report_pattern_limits(pattern)
    if not result.messages:
        raise click.exceptions.Exit(1)


def _build_query(text: str, options: _SearchOptions) -> "Query":
    from steno.index.search.query_parser import Filter, parse_query

    query = parse_query(text)
    option_filters = {"project": options.project, "since": options.since, "until": options.until}
    filters = [Filter(name, value) for name, value in option_filters.items() if value is not None]
    return msgspec.structs.replace(query, filters=(*query.filters, *filters))


def _filter_by_pattern(index: "SessionIndex", result: "SearchResult", pattern: "RegexPattern") -> None:
    from steno.cli.output.progress import ProgressBar
    from steno.index.database import json_array
    from steno.index.search.hit_text import HitReader

    lengths = index.connection.execute(
        "SELECT sum(length) FROM messages WHERE id IN (SELECT value FROM json_each(?))", (json_array(result.messages),)
    )
    total = int(lengths.fetchone()[0] or 0)
    with ProgressBar(total, "Matching") as bar, HitReader(index.connection) as reader:
        matching = pattern.filter_messages(reader, result.messages, result.scope, bar.advance)
    result.messages = [message for message in result.messages if message in matching]


def _report_pattern_limits(pattern: "RegexPattern") -> None:
    if pattern.slow_count:
        print_error(f"skipped {humanize.count(pattern.slow_count, 'text')}: the pattern took too long")
    if pattern.truncated_count:
        print_error(f"searched only the start of {humanize.count(pattern.truncated_count, 'text')} longer than 4 MB")


def _print_results(results: "SearchResults", query: "Query", options: _SearchOptions, screen: Screen) -> None:
    if options.count:
        _print_count(results, screen, as_json=options.as_json)
    elif options.sessions:
        _print_sessions(results, screen, options)
    elif options.as_json:
        write_json(results.hits_json(options.limit, options.each or 0))
        if results.limit_message(options.limit):
            print_error(results.limit_message(options.limit))
    elif not results.total:
        screen.print_lines(results.no_hits_lines(query, screen.width))
    else:
        hits_per_session = 4 if options.each is None else options.each
        screen.print_lines(results.lines(options.limit, hits_per_session, screen.width))
        results.print_next_steps(screen, options.limit)


def _print_count(results: "SearchResults", screen: Screen, *, as_json: bool) -> None:
    if as_json:
        write_json(results.counts_json())
    else:
        screen.print_lines([[str(results.total)]])


def _print_sessions(results: "SearchResults", screen: Screen, options: _SearchOptions) -> None:
    if options.as_json:
        write_json(results.sessions_json(options.limit))
        if results.limit_message(options.limit):
            print_error(results.limit_message(options.limit))
        return
    screen.print_lines(results.session_lines(options.limit, screen.width))
    results.print_next_steps(screen, options.limit)
