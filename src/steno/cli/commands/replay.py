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
    "prompt": "different prompt",
    "result": "different tool result",
    "order": "different order",
    "tool": "tool not offered",
    "unknown": "no recorded response matches",
}


class _ReplayOptions(msgspec.Struct):
    script: str | None = None
    port: int = 0
    key: str | None = None
    limit: int | None = None
    lenient: bool = False
    unsigned: bool = False
    as_json: bool = False


@click.command("replay", short_help="Serve recorded sessions as a Messages API for tests.")
@click.argument("names", metavar="[SESSION]...", nargs=-1)
@click.option("--script", metavar="FILE", help="Take responses from a JSON or TOML script instead")
@click.option(
    "--port", metavar="N", type=click.IntRange(0, 65535), default=0, help="Port to listen on  [default: any free port]"
)
@click.option("--key", metavar="KEY", help="Accept only this API key  [default: any]")
@click.option("--limit", metavar="N", type=click.IntRange(1), help="Exit after N requests")
@click.option("--lenient", is_flag=True, help="Accept requests that the Messages API would reject")
@click.option("--unsigned", is_flag=True, help="Accept thinking blocks with any signature")
@add_options(ROOT_OPTIONS, JSON, COLOR)
@click.pass_context
def command(
    ctx: click.Context, names: tuple[str, ...], root: tuple[str, ...], color: ColourMode, *, demo: bool, **values: Any
) -> None:
    """Serve recorded sessions as a Messages API, to test agents without a network.

    SESSION is a path, an ID, the first characters of an ID, a title or part of it, or `last`. Each
    request is matched to the recording by its last prompt and its tool results; differences are
    reported as drift. Requests that the Messages API would reject get the same error. With
    --script, responses come from a script file.

    Listens on 127.0.0.1 until Ctrl-C. --json prints one line per event. The exit code is 1
    after drift or a rejected request.
    """
    command_options = _ReplayOptions(**values)
    if bool(names) == bool(command_options.script):
        raise click.UsageError("exactly one of SESSION and --script is required")
    reporter = _JsonReporter() if command_options.as_json else _TextReporter(Screen(color))
    responder = (
        _load_script(command_options.script)
        if command_options.script
        else _load_replay(names, search_roots(root, demo=demo), reporter)
    )
    try:
        asyncio.run(_run_server(responder, command_options, reporter))
    except KeyboardInterrupt:
        # Ctrl-C stops the server.
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
        raise NotFound(
            "these sessions contain no responses", hint="Choose sessions with an answer; run `steno ls --answered`."
        )
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
    """Counts requests, rejected requests and drift; subclasses print them."""

    def __init__(self) -> None:
        self.request_count = 0
        self.refused_count = 0
        self.drift_count = 0

    @property
    def has_problems(self) -> bool:
        """Whether a request drifted or was rejected."""
        return bool(self.refused_count or self.drift_count)

    def announce(self, server: "Server", responder: "ReplayResponder | ScriptedResponder", key: str) -> None:
        """Report the URL of the server."""
        raise NotImplementedError

    def report_request(self, received: "ReceivedRequest") -> None:
        """Report an answered request."""
        self.request_count += 1
        self.refused_count += received.refusal is not None

    def report_drift(self, drift: "ReplayDifference") -> None:
        """Report a difference from the recording."""
        _ = drift
        self.drift_count += 1

    def report_end(self, responder: "ReplayResponder | ScriptedResponder") -> None:
        """Report the totals."""
        raise NotImplementedError


class _TextReporter(_ReplayReporter):
    def __init__(self, screen: Screen) -> None:
        super().__init__()
        self._screen = screen

    def _print_lines(self, *lines: StyledLine) -> None:
        self._screen.print_lines(lines)
        sys.stdout.flush()

    def announce(self, server: "Server", responder: "ReplayResponder | ScriptedResponder", key: str) -> None:
        """Print the URL and the environment variables for a client."""
        self._print_lines(
            [f"{_responder_name(responder)} on ", (server.url, "bold")],
            [],
            [f"  export ANTHROPIC_BASE_URL={server.url}"],
            [f"  export ANTHROPIC_API_KEY={key}"],
            [],
            [("Press Ctrl-C to stop.", "dim")],
        )

    def report_request(self, received: "ReceivedRequest") -> None:
        """Print a request in one line, and the reason if it was rejected."""
        super().report_request(received)
        request_text = one_line(f"{received.method} {received.path}", self._screen.width - 14)
        line: StyledLine = [(f"{self.request_count:>4}  {request_text}  {received.status or 'aborted'}", "dim")]
        if received.refusal is None:
            self._print_lines(line)
            return
        reason = one_line(received.refusal.message, 600)
        self._print_lines(line, ["      ", ("rejected", "bold red"), f"  {reason}"])

    def report_drift(self, drift: "ReplayDifference") -> None:
        """Print the recorded and the received content."""
        super().report_drift(drift)
        width = self._screen.width - 18
        position = f"  {drift.thread[:8]} response {drift.take}" if drift.take else ""
        self._print_lines(
            ["      ", ("drift", "bold yellow"), f"  {_DRIFT_TEXTS[drift.what]}", (position, "dim")],
            [("        recorded  ", "dim"), one_line(drift.expected or "nothing", width)],
            [("        received  ", "dim"), one_line(drift.came or "nothing", width)],
        )

    def report_end(self, responder: "ReplayResponder | ScriptedResponder") -> None:
        """Print the totals."""
        parts = [humanize.count(self.request_count, "request")]
        if (remaining := _unused_answers(responder)) is not None:
            parts.append(f"{humanize.count(remaining, 'recorded response')} unused")
        parts += [f"{self.refused_count:,} rejected"] if self.refused_count else []
        parts += [f"{self.drift_count:,} drifted"] if self.drift_count else []
        self._print_lines([], [", ".join(parts)])


class _JsonReporter(_ReplayReporter):
    """Prints one JSON line per event."""

    def _print_event(self, event: str, **fields: Any) -> None:
        from steno.format.encode import encode_line

        write_bytes(escape_invisible(encode_line(json_encodable({"event": event, **fields}))))
        sys.stdout.buffer.flush()

    def announce(self, server: "Server", responder: "ReplayResponder | ScriptedResponder", key: str) -> None:
        """Print the URL and environment variables."""
        names = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": key}
        self._print_event("listening", url=server.url, env=names, answers=_unused_answers(responder))

    def report_request(self, received: "ReceivedRequest") -> None:
        """Print an answered request."""
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
        """Print a difference from the recording."""
        super().report_drift(drift)
        self._print_event("drift", **msgspec.to_builtins(drift))

    def report_end(self, responder: "ReplayResponder | ScriptedResponder") -> None:
        """Print the totals."""
        self._print_event(
            "ended",
            requests=self.request_count,
            refused=self.refused_count,
            drifts=self.drift_count,
            unused_responses=_unused_answers(responder),
        )


def _unused_answers(responder: "ReplayResponder | ScriptedResponder") -> int | None:
    """Return the number of unused recorded responses; None for a script."""
    remaining = getattr(responder, "unused_replies", None)
    return None if remaining is None else len(remaining)


def _responder_name(responder: "ReplayResponder | ScriptedResponder") -> str:
    remaining = _unused_answers(responder)
    return "Script" if remaining is None else humanize.count(remaining, "recorded response")
