"""`steno replay`: serves recorded sessions or a script as a Messages API on loopback."""

import asyncio
import sys
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from steno.cli.command_arguments import search_roots
from steno.cli.options import COLOR, JSON, ROOT_OPTIONS, add_options
from steno.cli.output.screen import Screen, escape_invisible, write_bytes
from steno.errors import NotFound, Unreadable
from steno.report import humanize
from steno.report.session_references import json_encodable
from steno.sanitize.terminal import ColourMode, StyledLine, one_line

if TYPE_CHECKING:
    from steno.llm.testserver.replay_responder import ReplayDifference, ReplayResponder
    from steno.llm.testserver.request_handler import ReceivedRequest
    from steno.llm.testserver.scripted_responder import ScriptedResponder
    from steno.llm.testserver.server import Server


_DEFAULT_KEY: Final = "steno"
_MAX_SCRIPT_SIZE: Final = 16 << 20
_DRIFT_TEXTS: Final = {
    "prompt": "another prompt",
    "result": "another result",
    "order": "another order",
    "tool": "a tool that is not offered",
    "unknown": "nothing recorded answers",
}


class _ReplayOptions(msgspec.Struct):
    script: str | None = None
    port: int = 0
    key: str | None = None
    limit: int | None = None
    lenient: bool = False
    unsigned: bool = False
    as_json: bool = False


@click.command("replay", short_help="Serve recorded sessions as a model on loopback.")
@click.argument("names", metavar="[SESSION]...", nargs=-1)
@click.option("--script", metavar="FILE", help="Answer by a script, JSON or TOML, instead.")
@click.option(
    "--port",
    metavar="N",
    type=click.IntRange(0, 65535),
    default=0,
    help="Listen on this port.  [default: any that is free]",
)
@click.option("--key", metavar="KEY", help="Take only requests with this key.  [default: any]")
@click.option("--limit", metavar="N", type=click.IntRange(1), help="Leave after so many requests.")
@click.option("--lenient", is_flag=True, help="Refuse nothing that can be understood.")
@click.option("--unsigned", is_flag=True, help="Take thinking whoever signed it.")
@add_options(ROOT_OPTIONS, JSON, COLOR)
@click.pass_context
def command(
    ctx: click.Context, names: tuple[str, ...], root: tuple[str, ...], color: ColourMode, *, demo: bool, **values: Any
) -> None:
    """Serve sessions as a model that says again what it said, to test an agent without a network.

    SESSION is a path, an id, the first letters of one, a title or part of one, or `last`. Each
    request is matched to the record by what the user said last and by the results of tool calls;
    what differs from the record is told as drift. Requests that the Messages API would refuse are
    refused in its words. With --script the answers come from a file instead.

    It listens on 127.0.0.1 only and goes on until Ctrl-C. With --json each event is one line. The
    exit code is 1 when anything drifted or was refused.
    """
    command_options = _ReplayOptions(**values)
    if bool(names) == bool(command_options.script):
        raise click.UsageError("name sessions to replay, or a script with --script")
    reporter = _JsonReporter() if command_options.as_json else _TextReporter(Screen(color))
    responder = (
        _load_script(command_options.script)
        if command_options.script
        else _load_replay(names, search_roots(root, demo=demo), reporter)
    )
    try:
        asyncio.run(_run_server(responder, command_options, reporter))
    except KeyboardInterrupt:
        # The usual way to leave.
        sys.stdout.flush()
    reporter.report_end(responder)
    if reporter.has_problems:
        ctx.exit(1)


def _load_script(path: str) -> "ScriptedResponder":
    from steno.llm.testserver.scripted_responder import parse_script_file

    try:
        with open(path, "rb") as file:
            data = file.read(_MAX_SCRIPT_SIZE)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else ""
        raise Unreadable(f"cannot read {path}: {(reason or str(error)).lower()}") from error
    return parse_script_file(data, path)


def _load_replay(
    names: tuple[str, ...], folders: tuple[str, ...] | None, reporter: "_ReplayReporter"
) -> "ReplayResponder":
    from steno.llm.testserver.replay_responder import ReplayResponder
    from steno.store.session_lookup import open_session

    sessions = [open_session(name, folders) for name in names]
    replay = ReplayResponder(sessions, reporter.report_drift)
    for session in sessions:
        session.close()
    if not replay.replies:
        raise NotFound("no answer of a model is recorded there", hint="there is nothing to serve")
    return replay


async def _run_server(
    responder: "ReplayResponder | ScriptedResponder", options: _ReplayOptions, reporter: "_ReplayReporter"
) -> None:
    from steno.llm.testserver.server import Server

    limit_reached = asyncio.Event()

    def on_request(received: "ReceivedRequest") -> None:
        reporter.report_request(received)
        if options.limit is not None and reporter.request_count >= options.limit:
            limit_reached.set()

    server = Server(
        responder,
        strict=not options.lenient,
        signed=not options.unsigned,
        key=options.key or "",
        port=options.port,
        on_request=on_request,
        keep=1,
    )
    async with server:
        reporter.announce(server, responder, options.key or _DEFAULT_KEY)
        await limit_reached.wait()


class _ReplayReporter:
    """Counts what happens; how it is told is up to those below."""

    def __init__(self) -> None:
        self.request_count = 0
        self.refused_count = 0
        self.drift_count = 0

    @property
    def has_problems(self) -> bool:
        """Whether anything drifted or was refused."""
        return bool(self.refused_count or self.drift_count)

    def announce(self, server: "Server", responder: "ReplayResponder | ScriptedResponder", key: str) -> None:
        """Say where the server is."""
        raise NotImplementedError

    def report_request(self, received: "ReceivedRequest") -> None:
        """Tell of a request that was answered."""
        self.request_count += 1
        self.refused_count += received.refusal is not None

    def report_drift(self, drift: "ReplayDifference") -> None:
        """Tell what came otherwise than it was recorded."""
        _ = drift
        self.drift_count += 1

    def report_end(self, responder: "ReplayResponder | ScriptedResponder") -> None:
        """Tell how it went."""
        raise NotImplementedError


class _TextReporter(_ReplayReporter):
    def __init__(self, screen: Screen) -> None:
        super().__init__()
        self._screen = screen

    def _print_lines(self, *lines: StyledLine) -> None:
        self._screen.print_lines(lines)
        sys.stdout.flush()

    def announce(self, server: "Server", responder: "ReplayResponder | ScriptedResponder", key: str) -> None:
        """Say where the server is and how to make a client use it."""
        self._print_lines(
            [f"{_responder_name(responder)} on ", (server.url, "bold")],
            [],
            [f"  export ANTHROPIC_BASE_URL={server.url}"],
            [f"  export ANTHROPIC_API_KEY={key}"],
            [],
            [("Ctrl-C ends.", "dim")],
        )

    def report_request(self, received: "ReceivedRequest") -> None:
        """Tell of a request in a line; of a refusal with its reason."""
        super().report_request(received)
        request_text = one_line(f"{received.method} {received.path}", self._screen.width - 14)
        line: StyledLine = [(f"{self.request_count:>4}  {request_text}  {received.status or 'cut'}", "dim")]
        if received.refusal is None:
            self._print_lines(line)
            return
        reason = one_line(received.refusal.message, 600)
        self._print_lines(line, ["      ", ("refused", "bold red"), f"  {reason}"])

    def report_drift(self, drift: "ReplayDifference") -> None:
        """Tell what came otherwise than it was recorded."""
        super().report_drift(drift)
        width = self._screen.width - 18
        position = f"  {drift.thread[:8]} answer {drift.take}" if drift.take else ""
        self._print_lines(
            ["      ", ("drift", "bold yellow"), f"  {_DRIFT_TEXTS[drift.what]}", (position, "dim")],
            [("        recorded  ", "dim"), one_line(drift.expected or "nothing", width)],
            [("        came      ", "dim"), one_line(drift.came or "nothing", width)],
        )

    def report_end(self, responder: "ReplayResponder | ScriptedResponder") -> None:
        """Tell how it went."""
        parts = [humanize.count(self.request_count, "request")]
        if (remaining := _unused_answers(responder)) is not None:
            parts.append(f"{humanize.count(remaining, 'recorded answer')} not asked for")
        parts += [f"{self.refused_count:,} refused"] if self.refused_count else []
        parts += [humanize.count(self.drift_count, "drift")] if self.drift_count else []
        self._print_lines([], [", ".join(parts)])


class _JsonReporter(_ReplayReporter):
    """Tells it to programs: one line an event."""

    def _print_event(self, event: str, **fields: Any) -> None:
        from steno.format.encode import encode_line

        write_bytes(escape_invisible(encode_line(json_encodable({"event": event, **fields}))))
        sys.stdout.buffer.flush()

    def announce(self, server: "Server", responder: "ReplayResponder | ScriptedResponder", key: str) -> None:
        """Write where the server is."""
        names = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": key}
        self._print_event("listening", url=server.url, env=names, answers=_unused_answers(responder))

    def report_request(self, received: "ReceivedRequest") -> None:
        """Write how a request was answered."""
        super().report_request(received)
        refused = received.refusal.message if received.refusal else None
        self._print_event(
            "request",
            number=self.request_count,
            method=received.method,
            path=received.path,
            status=received.status,
            request_id=received.request_id,
            finished=received.finished,
            refused=refused,
        )

    def report_drift(self, drift: "ReplayDifference") -> None:
        """Write what came otherwise than it was recorded."""
        super().report_drift(drift)
        self._print_event("drift", **msgspec.to_builtins(drift))

    def report_end(self, responder: "ReplayResponder | ScriptedResponder") -> None:
        """Write how it went."""
        self._print_event(
            "ended",
            requests=self.request_count,
            refused=self.refused_count,
            drifts=self.drift_count,
            left=_unused_answers(responder),
        )


def _unused_answers(responder: "ReplayResponder | ScriptedResponder") -> int | None:
    """Return how many recorded answers were not asked for; None for a script."""
    remaining = getattr(responder, "unused_replies", None)
    return None if remaining is None else len(remaining)


def _responder_name(responder: "ReplayResponder | ScriptedResponder") -> str:
    remaining = _unused_answers(responder)
    return "A script" if remaining is None else humanize.count(remaining, "recorded answer")
