"""`steno show`: one session, as a story, as a tree, as records or as API messages."""

import os
import sys
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from steno.cli.options import COLOR, JSON, SESSION, WHERE, WIDTH, options, roots, where_to_look
from steno.cli.pager import page
from steno.cli.screen import Screen, complain, harmless, write_bytes, write_json
from steno.errors import NotFound
from steno.report import words
from steno.safe.terminal import ColourMode, clean
from steno.safe.terminal import width as width_of
from steno.session.session import Session
from steno.store.found import Found
from steno.store.library import find, newest_first, open_found

if TYPE_CHECKING:
    from steno.cli.story import Story

__all__ = ["command"]

_LATEST: Final = "2.1.325"
_SHORT: Final = 8
_ABOUT: Final = {
    "turns": ("turn", "at", "branch", "agent", "thinking", "all", "json"),
    "graph": ("json",),
    "records": ("json",),
    "messages": ("all", "json"),
    "as_resumed": ("client", "prompt", "all", "json"),
    "raw": (),
}
"""The views, and the options that say something about each."""


class _Asked(msgspec.Struct):
    """What was asked for, beside the session's name."""

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
    again: str = ""
    """How to show the same session once more."""


class _Show(click.Command):
    """The command; of several views click would silently take the last."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Refuse more than one view."""
        views = [view for view in _ABOUT if _flag(view) in args]
        if len(views) > 1:
            flags = " and ".join(_flag(view) for view in views)
            raise click.UsageError(f"{flags} exclude each other", ctx)
        return super().parse_args(ctx, args)


def _flag(view: str) -> str:
    return "--" + view.replace("_", "-")


@click.command("show", cls=_Show, short_help="Read one session.")
@SESSION
@click.option("--turns", "view", flag_value="turns", help="The story, turn by turn (the default).")
@click.option("--graph", "view", flag_value="graph", help="The tree of records.")
@click.option("--records", "view", flag_value="records", help="Every record and gap of the file.")
@click.option("--messages", "view", flag_value="messages", help="The whole talk as API messages.")
@click.option(
    "--as-resumed", "view", flag_value="as_resumed", help="What a client would send on resume."
)
@click.option("--client", metavar="V", help=f"Which client resumes.  [default: {_LATEST}]")
@click.option("--prompt", metavar="TEXT", help="The prompt it is resumed with.")
@click.option("--turn", metavar="N", type=click.IntRange(1), help="Only this turn.")
@click.option("--at", metavar="WHERE", help="Around one record: its id, or its byte in the file.")
@click.option("--branch", metavar="N", type=click.IntRange(1), help="An abandoned branch instead.")
@click.option("--agent", metavar="ID", help="A sub-agent's own story.")
@click.option("--thinking", is_flag=True, help="Show thoughts in full.")
@click.option("--raw", metavar="UUID", help="The exact bytes of one record.")
@click.option(
    "--all", "everything", is_flag=True, help="Notes, hooks, summaries and long output too."
)
@options(WHERE, JSON)
@click.option("--no-pager", is_flag=True, help="Never page.")
@WIDTH
@options(COLOR)
def command(
    name: str,
    root: tuple[str, ...],
    color: ColourMode,
    width: int | None,
    *,
    demo: bool,
    **asked: Any,
) -> None:
    """Read one session: what was asked, what was done, what was answered.

    SESSION is a path, an id, the first letters of one, a sub-agent's id, a title or part of one,
    or `last`.
    """
    wanted = _Asked(**asked)
    _refuse_what_would_be_ignored(wanted)
    where = roots(root, demo=demo)
    wanted.again = f"steno show{where_to_look(root, demo=demo)}"
    screen = Screen(color, width)
    if wanted.view == "records":
        _records(find(name, where), screen, wanted)
        return
    _show(name, where, screen, wanted)


def _refuse_what_would_be_ignored(wanted: _Asked) -> None:
    """Refuse options that say nothing about the view that was asked for."""
    view = "raw" if wanted.raw is not None else wanted.view or "turns"
    told = {
        "turn": wanted.turn is not None,
        "at": wanted.at is not None,
        "branch": wanted.branch is not None,
        "agent": wanted.agent is not None,
        "thinking": wanted.thinking,
        "client": wanted.client is not None,
        "prompt": wanted.prompt is not None,
        "all": wanted.everything,
        "json": wanted.as_json,
    }
    for option in (name for name, is_told in told.items() if is_told):
        if option not in _ABOUT[view]:
            raise click.UsageError(f"--{option} says nothing about {_flag(view)}")
    if wanted.branch is not None and wanted.agent is not None:
        raise click.UsageError("--branch and --agent exclude each other")
    for option in ("turn", "branch", "json"):
        if wanted.at is not None and told[option]:
            raise click.UsageError(f"--at and --{option} exclude each other")


def _records(found: Found, screen: Screen, wanted: _Asked) -> None:
    from steno.cli.records import numbered, piece_json, piece_line
    from steno.format.encode import encode_line
    from steno.store.archive.opened import opened

    with opened(found) as source:
        if wanted.as_json:
            for number, piece in numbered(source):
                write_bytes(harmless(encode_line(piece_json(number, piece))))
            return
        if not source.size:
            complain(f"{os.path.basename(found.path)} is empty")
        lines = (
            line
            for number, piece in numbered(source)
            for line in piece_line(number, piece, screen.width)
        )
        page(screen, lines, wanted=not wanted.no_pager)


def _show(name: str, where: tuple[str, ...] | None, screen: Screen, wanted: _Asked) -> None:
    found = find(name, where)
    if screen.tty:
        wanted.again += f" {_again(name, found, where)}"
    if found.place.role == "agent" and wanted.view in (None, "turns") and wanted.raw is None:
        owner = _owner(found, where)
        wanted.agent = wanted.agent or (found.place.agent_id if owner else None)
        found = owner or found
    session = open_found(found)
    if wanted.raw is not None:
        _raw(session.record(wanted.raw, as_written=True).raw, screen)
    elif wanted.view == "as_resumed":
        client = wanted.client or _LATEST
        messages = session.as_resumed(client, prompt=wanted.prompt)
        _messages(messages, found, session, screen, wanted)
    elif wanted.view == "messages":
        _messages(session.messages(), found, session, screen, wanted)
    elif wanted.view == "graph":
        _graph(found, session, screen, wanted)
    else:
        _story(found, session, screen, wanted)


def _refuse_what_is_no_session(found: Found, session: Session) -> None:
    if session.transcript.nodes:
        return
    why = "the file is empty"
    if session.transcript.gaps:
        why = f"{words.size(found.size)} that are no session; `--records` shows the gaps"
    raise NotFound(f"{os.path.basename(found.path)} holds no record", hint=why)


def _graph(found: Found, session: Session, screen: Screen, wanted: _Asked) -> None:
    from steno.cli.graph import graph_json, graph_lines

    _refuse_what_is_no_session(found, session)
    if wanted.as_json:
        write_json(list(graph_json(session)))
    else:
        page(screen, graph_lines(session, screen.width), wanted=not wanted.no_pager)


def _owner(agent: Found, where: tuple[str, ...] | None) -> Found | None:
    """Return the session a sub-agent worked for, if it is there."""
    from steno.store.discover import Discovery

    discovery = Discovery("")
    for found in newest_first(where, archived=True):
        if any(other.path == agent.path for other in discovery.agents(found)):
            return found
    return None


def _story(found: Found, session: Session, screen: Screen, wanted: _Asked) -> None:
    from steno.cli.story import Story

    story = Story(found, session, screen)
    _refuse_what_is_no_session(found, session)
    if wanted.at is not None:
        _at(story, session, screen, wanted, wanted.at)
        return
    if wanted.as_json:
        told = story.as_json(wanted.turn, wanted.branch, wanted.agent, everything=wanted.everything)
        write_json(told)
        return
    manner = story.manner(thinking=wanted.thinking, everything=wanted.everything)
    lines = story.lines(manner, wanted.turn, wanted.branch, wanted.agent)
    page(screen, lines, wanted=not wanted.no_pager)
    _next_steps(screen, f"{wanted.again} --turn N")


def _at(story: "Story", session: Session, screen: Screen, wanted: _Asked, at: str) -> None:
    from steno.cli.spot import spot_lines, spot_of

    spot = spot_of(session, at, wanted.agent)
    manner = story.manner(thinking=wanted.thinking, everything=wanted.everything)
    page(screen, spot_lines(story, spot, manner), wanted=not wanted.no_pager)
    if spot.turn is not None:
        agent = f" --agent {spot.agent}" if spot.agent else ""
        branch = f" --branch {spot.branch}" if spot.branch else ""
        screen.next_steps([f"{wanted.again}{agent}{branch} --turn {spot.turn.number}"])


def _next_steps(screen: Screen, line: str) -> None:
    for option in ("--thinking", "--all", "--graph", "--records"):
        longer = f"{line}   {option}"
        line = longer if width_of(longer) <= screen.width else line
    screen.next_steps([line])


def _again(name: str, found: Found, where: tuple[str, ...] | None) -> str:
    """Return a name for the same session that still fits it tomorrow, for a shell."""
    from shlex import quote

    if name != "last":
        return quote(f"./{name}" if name.startswith("-") else name)
    stem = os.path.basename(found.path).removesuffix(".jsonl")
    others = [os.path.basename(other.path) for other in newest_first(where, archived=True)]
    alone = sum(other.startswith(stem[:_SHORT]) for other in others) <= 1
    return quote(stem[:_SHORT] if alone else stem)


def _raw(data: bytes, screen: Screen) -> None:
    if screen.tty:
        sys.stdout.write(clean(data.decode("utf-8", "replace"), newlines=True))
    else:
        write_bytes(data)


def _messages(
    messages: list[dict[str, Any]], found: Found, session: Session, screen: Screen, wanted: _Asked
) -> None:
    if messages:
        from steno.cli.unsent import warn_of_unsent_summary

        name = os.path.basename(found.path).removesuffix(".jsonl")
        warn_of_unsent_summary(session.transcript, name)
    if not messages and wanted.view == "as_resumed":
        complain(
            f"client {wanted.client or _LATEST} would refuse this file",
            "there is nothing to resume",
        )
    elif not messages:
        complain("there is no message in this file")
    if wanted.as_json:
        write_json(messages)
        return
    from steno.cli.messages import message_lines

    lines = message_lines(messages, screen.width, everything=wanted.everything)
    page(screen, lines, wanted=not wanted.no_pager)
