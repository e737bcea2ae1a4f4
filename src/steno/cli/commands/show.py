"""`steno show`: shows a session as a transcript, a record tree, records or API messages."""

import os
import sys
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from steno.cli.command_arguments import root_arguments, search_roots
from steno.cli.options import COLOR, JSON, ROOT_OPTIONS, SESSION, WIDTH, add_options
from steno.cli.output.screen import Screen, escape_invisible, print_error, print_paged, write_bytes, write_json
from steno.errors import NotFound
from steno.format.paths import JSONL_SUFFIX, SHORT_ID_LENGTH
from steno.report import humanize
from steno.sanitize.terminal import ColourMode, clean
from steno.sanitize.terminal import display_width as width_of
from steno.session.session import Session
from steno.store.discovery import DiscoveredFile
from steno.store.session_lookup import find, open_file_session, sessions_newest_first

if TYPE_CHECKING:
    from steno.cli.output.transcript import SessionTranscript


_LATEST_VERSION: Final = "2.1.325"
_VIEW_OPTIONS: Final = {
    "turns": ("turn", "at", "branch", "agent", "thinking", "all", "json"),
    "graph": ("json",),
    "records": ("json",),
    "messages": ("all", "json"),
    "as_resumed": ("client", "prompt", "all", "json"),
    "raw": (),
}
"""The options that each view accepts."""


class _ShowOptions(msgspec.Struct):
    view: str | None = None
    client: str | None = None
    prompt: str | None = None
    turn: int | None = None
    at: str | None = None
    branch: int | None = None
    agent: str | None = None
    thinking: bool = False
    raw: str | None = None
    everything: bool = False
    as_json: bool = False
    no_pager: bool = False
    show_command: str = ""
    """Command that shows the session again."""


class _ShowCommand(click.Command):
    """A command that rejects more than one view; click would silently use the last one."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments and check that at most one view is given."""
        views = [view for view in _VIEW_OPTIONS if _view_flag(view) in args]
        if len(views) > 1:
            flags = " and ".join(_view_flag(view) for view in views)
            raise click.UsageError(f"{flags} cannot be combined", ctx)
        return super().parse_args(ctx, args)


def _view_flag(view: str) -> str:
    return "--" + view.replace("_", "-")


@click.command("show", cls=_ShowCommand, short_help="Show a session as turns, records or API messages.")
@SESSION
@click.option("--turns", "view", flag_value="turns", help="Show turns as a transcript (default)")
@click.option("--graph", "view", flag_value="graph", help="Show the tree of records")
@click.option("--records", "view", flag_value="records", help="List all records and gaps in the file")
@click.option("--messages", "view", flag_value="messages", help="Show the conversation as API messages")
@click.option("--as-resumed", "view", flag_value="as_resumed", help="Show what Claude Code would send on resume")
@click.option("--client", metavar="V", help=f"Claude Code version for --as-resumed  [default: {_LATEST_VERSION}]")
@click.option("--prompt", metavar="TEXT", help="Prompt for --as-resumed")
@click.option("--turn", metavar="N", type=click.IntRange(1), help="Show only this turn")
@click.option("--at", metavar="WHERE", help="Show one record in context, by UUID or byte offset")
@click.option("--branch", metavar="N", type=click.IntRange(1), help="Show an abandoned branch")
@click.option("--agent", metavar="ID", help="Show the transcript of a sub-agent")
@click.option("--thinking", is_flag=True, help="Show thinking in full")
@click.option("--raw", metavar="UUID", help="Print the exact bytes of one record")
@click.option("--all", "everything", is_flag=True, help="Include notes, hooks, summaries and long output")
@add_options(ROOT_OPTIONS, JSON)
@click.option("--no-pager", is_flag=True, help="Do not use a pager")
@WIDTH
@add_options(COLOR)
def command(
    name: str, root: tuple[str, ...], color: ColourMode, width: int | None, *, demo: bool, **values: Any
) -> None:
    """Show a session as turns, records or API messages.

    SESSION is a path, an ID, the first characters of an ID, a sub-agent ID, a title or part of it,
    or `last`.
    """
    command_options = _ShowOptions(**values)
    _check_options(command_options)
    folders = search_roots(root, demo=demo)
    command_options.show_command = f"steno show{root_arguments(root, demo=demo)}"
    screen = Screen(color, width)
    if command_options.view == "records":
        _print_records(find(name, folders), screen, command_options)
        return
    _print_session(name, folders, screen, command_options)


def _check_options(options: _ShowOptions) -> None:
    """Check that every option applies to the view."""
    view = "raw" if options.raw is not None else options.view or "turns"
    options_set = {
        "turn": options.turn is not None,
        "at": options.at is not None,
        "branch": options.branch is not None,
        "agent": options.agent is not None,
        "thinking": options.thinking,
        "client": options.client is not None,
        "prompt": options.prompt is not None,
        "all": options.everything,
        "json": options.as_json,
    }
    for option in (name for name, is_told in options_set.items() if is_told):
        if option not in _VIEW_OPTIONS[view]:
            if view == "turns" and options.view is None:
                views = " or ".join(_view_flag(name) for name, allowed in _VIEW_OPTIONS.items() if option in allowed)
                raise click.UsageError(f"--{option} requires {views}")
            raise click.UsageError(f"--{option} cannot be combined with {_view_flag(view)}")
    if options.branch is not None and options.agent is not None:
        raise click.UsageError("--branch cannot be combined with --agent")
    for option in ("turn", "branch", "json"):
        if options.at is not None and options_set[option]:
            raise click.UsageError(f"--at cannot be combined with --{option}")


def _print_records(file: DiscoveredFile, screen: Screen, options: _ShowOptions) -> None:
    from steno.cli.output.record_views import numbered_pieces, piece_json, piece_line
    from steno.format.encode import encode_line
    from steno.store.archive.file_access import open_file

    with open_file(file) as source:
        if options.as_json:
            for number, piece in numbered_pieces(source):
                write_bytes(escape_invisible(encode_line(piece_json(number, piece))))
            return
        if not source.size:
            print_error(f"{os.path.basename(file.path)} is empty")
        lines = (line for number, piece in numbered_pieces(source) for line in piece_line(number, piece, screen.width))
        print_paged(screen, lines, use_pager=not options.no_pager)


def _print_session(name: str, folders: tuple[str, ...] | None, screen: Screen, options: _ShowOptions) -> None:
    file = find(name, folders)
    if screen.is_terminal:
        options.show_command += f" {_session_argument(name, file, folders)}"
    if file.place.role == "agent" and options.view in (None, "turns") and options.raw is None:
        owner = _owner_of_agent(file, folders)
        options.agent = options.agent or (file.place.agent_id if owner else None)
        file = owner or file
    session = open_file_session(file)
    if options.raw is not None:
        _print_raw_record(session.record(options.raw, as_written=True).raw, screen)
    elif options.view == "as_resumed":
        client = options.client or _LATEST_VERSION
        messages = session.as_resumed(client, prompt=options.prompt)
        _print_messages(messages, file, session, screen, options)
    elif options.view == "messages":
        _print_messages(session.messages(), file, session, screen, options)
    elif options.view == "graph":
        _print_record_tree(file, session, screen, options)
    else:
        _print_transcript(file, session, screen, options)


def _check_has_records(file: DiscoveredFile, session: Session) -> None:
    if session.transcript.nodes:
        return
    reason = "The file is empty."
    if session.transcript.gaps:
        reason = f"The file has {humanize.size(file.size)} of other data. Use `--records` to list the gaps."
    raise NotFound(f"no records in {os.path.basename(file.path)}", hint=reason)


def _print_record_tree(file: DiscoveredFile, session: Session, screen: Screen, options: _ShowOptions) -> None:
    from steno.cli.output.record_views import graph_json, graph_lines

    _check_has_records(file, session)
    if options.as_json:
        write_json(list(graph_json(session)))
    else:
        print_paged(screen, graph_lines(session, screen.width), use_pager=not options.no_pager)


def _owner_of_agent(agent: DiscoveredFile, folders: tuple[str, ...] | None) -> DiscoveredFile | None:
    """Return the session that started a sub-agent, or None."""
    from steno.store.discovery import Discovery

    discovery = Discovery("")
    for file in sessions_newest_first(folders, archived=True):
        if any(agent_file.path == agent.path for agent_file in discovery.agents(file)):
            return file
    return None


def _print_transcript(file: DiscoveredFile, session: Session, screen: Screen, options: _ShowOptions) -> None:
    from steno.cli.output.transcript import SessionTranscript

    transcript = SessionTranscript(file, session, screen)
    _check_has_records(file, session)
    if options.at is not None:
        _print_record_context(transcript, session, screen, options, options.at)
        return
    if options.as_json:
        data = transcript.as_json(options.turn, options.branch, options.agent, show_all=options.everything)
        write_json(data)
        return
    render_options = transcript.render_options(thinking=options.thinking, show_all=options.everything)
    lines = transcript.lines(render_options, options.turn, options.branch, options.agent)
    print_paged(screen, lines, use_pager=not options.no_pager)
    _print_next_steps(screen, f"{options.show_command} --turn N")


def _print_record_context(
    transcript: "SessionTranscript", session: Session, screen: Screen, options: _ShowOptions, record_reference: str
) -> None:
    from steno.cli.output.record_views import locate_record, record_context_lines

    location = locate_record(session, record_reference, options.agent)
    render_options = transcript.render_options(thinking=options.thinking, show_all=options.everything)
    print_paged(screen, record_context_lines(transcript, location, render_options), use_pager=not options.no_pager)
    if location.turn is not None:
        agent = f" --agent {location.agent}" if location.agent else ""
        branch = f" --branch {location.branch}" if location.branch else ""
        screen.print_next_steps([f"{options.show_command}{agent}{branch} --turn {location.turn.number}"])


def _print_next_steps(screen: Screen, line: str) -> None:
    for option in ("--thinking", "--all", "--graph", "--records"):
        longer = f"{line}   {option}"
        line = longer if width_of(longer) <= screen.width else line
    screen.print_next_steps([line])


def _session_argument(name: str, file: DiscoveredFile, folders: tuple[str, ...] | None) -> str:
    """Return a shell argument that keeps naming this session; `last` becomes its ID."""
    from shlex import quote

    if name != "last":
        return quote(f"./{name}" if name.startswith("-") else name)
    stem = os.path.basename(file.path).removesuffix(JSONL_SUFFIX)
    other_stems = [os.path.basename(other_stem.path) for other_stem in sessions_newest_first(folders, archived=True)]
    is_unique = sum(other.startswith(stem[:SHORT_ID_LENGTH]) for other in other_stems) <= 1
    return quote(stem[:SHORT_ID_LENGTH] if is_unique else stem)


def _print_raw_record(data: bytes, screen: Screen) -> None:
    if screen.is_terminal:
        sys.stdout.write(clean(data.decode("utf-8", "replace"), newlines=True))
    else:
        write_bytes(data)


def _print_messages(
    messages: list[dict[str, Any]], file: DiscoveredFile, session: Session, screen: Screen, options: _ShowOptions
) -> None:
    if messages:
        from steno.cli.output.record_views import warn_of_unsent_summary

        name = os.path.basename(file.path).removesuffix(JSONL_SUFFIX)
        warn_of_unsent_summary(session.transcript, name)
    if not messages and options.view == "as_resumed":
        print_error(f"Claude Code {options.client or _LATEST_VERSION} would reject this file", "No messages to send.")
    elif not messages:
        print_error("no messages in this file")
    if options.as_json:
        write_json(messages)
        return
    from steno.cli.output.record_views import message_lines

    lines = message_lines(messages, screen.width, show_all=options.everything)
    print_paged(screen, lines, use_pager=not options.no_pager)
