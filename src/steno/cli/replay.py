"""`steno replay`: recorded sessions, or a script, as a model on loopback."""

import asyncio
import sys
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from steno.cli.names import encodable
from steno.cli.options import COLOR, JSON, WHERE, options, roots
from steno.cli.screen import Screen, harmless, write_bytes
from steno.errors import NotFound, Unreadable
from steno.report import words
from steno.safe.terminal import ColourMode, Line, one_line

if TYPE_CHECKING:
    from steno.model.server.app import Received, Server
    from steno.model.server.replay import Drift, Replay
    from steno.model.server.script import Script

__all__ = ["command"]

_KEY: Final = "steno"
_MOST_SCRIPT: Final = 16 << 20
_SAYS: Final = {
    "prompt": "another prompt",
    "result": "another result",
    "order": "another order",
    "tool": "a tool that is not offered",
    "unknown": "nothing recorded answers",
}


class _Asked(msgspec.Struct):
    """What was asked for, beside the sessions' names."""

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
@options(WHERE, JSON, COLOR)
@click.pass_context
def command(
    ctx: click.Context,
    names: tuple[str, ...],
    root: tuple[str, ...],
    color: ColourMode,
    *,
    demo: bool,
    **asked: Any,
) -> None:
    """Serve sessions as a model that says again what it said, to test an agent without a network.

    SESSION is a path, an id, the first letters of one, a title or part of one, or `last`. Each
    request is matched to the record by what the user said last and by the results of tool calls;
    what differs from the record is told as drift. Requests that the Messages API would refuse are
    refused in its words. With --script the answers come from a file instead.

    It listens on 127.0.0.1 only and goes on until Ctrl-C. With --json each event is one line. The
    exit code is 1 when anything drifted or was refused.
    """
    wanted = _Asked(**asked)
    if bool(names) == bool(wanted.script):
        raise click.UsageError("name sessions to replay, or a script with --script")
    voice = _Json() if wanted.as_json else _Text(Screen(color))
    mind = (
        _script(wanted.script) if wanted.script else _replay(names, roots(root, demo=demo), voice)
    )
    try:
        asyncio.run(_serve(mind, wanted, voice))
    except KeyboardInterrupt:
        # The usual way to leave.
        sys.stdout.flush()
    voice.ended(mind)
    if voice.trouble:
        ctx.exit(1)


def _script(path: str) -> "Script":
    from steno.model.server.script_file import read_script

    try:
        with open(path, "rb") as file:
            data = file.read(_MOST_SCRIPT)
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else ""
        raise Unreadable(f"cannot read {path}: {(said or str(error)).lower()}") from error
    return read_script(data, path)


def _replay(names: tuple[str, ...], where: tuple[str, ...] | None, voice: "_Voice") -> "Replay":
    from steno.model.server.replay import Replay
    from steno.store.library import open_session

    sessions = [open_session(name, where) for name in names]
    replay = Replay(sessions, voice.drift)
    for session in sessions:
        session.close()
    if not replay.takes:
        raise NotFound("no answer of a model is recorded there", hint="there is nothing to serve")
    return replay


async def _serve(mind: "Replay | Script", wanted: _Asked, voice: "_Voice") -> None:
    from steno.model.server.app import Server

    enough = asyncio.Event()

    def told(received: "Received") -> None:
        voice.request(received)
        if wanted.limit is not None and voice.requests >= wanted.limit:
            enough.set()

    server = Server(
        mind,
        strict=not wanted.lenient,
        signed=not wanted.unsigned,
        key=wanted.key or "",
        port=wanted.port,
        on_request=told,
        keep=1,
    )
    async with server:
        voice.listening(server, mind, wanted.key or _KEY)
        await enough.wait()


class _Voice:
    """Counts what happens; how it is told is up to those below."""

    def __init__(self) -> None:
        self.requests = 0
        self.refused = 0
        self.drifts = 0

    @property
    def trouble(self) -> bool:
        """Whether anything drifted or was refused."""
        return bool(self.refused or self.drifts)

    def listening(self, server: "Server", mind: "Replay | Script", key: str) -> None:
        """Say where the server is."""
        raise NotImplementedError

    def request(self, received: "Received") -> None:
        """Tell of a request that was answered."""
        self.requests += 1
        self.refused += received.refusal is not None

    def drift(self, drift: "Drift") -> None:
        """Tell what came otherwise than it was recorded."""
        _ = drift
        self.drifts += 1

    def ended(self, mind: "Replay | Script") -> None:
        """Tell how it went."""
        raise NotImplementedError


class _Text(_Voice):
    """Tells it to people."""

    def __init__(self, screen: Screen) -> None:
        super().__init__()
        self._screen = screen

    def _say(self, *lines: Line) -> None:
        self._screen.lines(lines)
        sys.stdout.flush()

    def listening(self, server: "Server", mind: "Replay | Script", key: str) -> None:
        """Say where the server is and how to make a client use it."""
        self._say(
            [f"{_about(mind)} on ", (server.url, "bold")],
            [],
            [f"  export ANTHROPIC_BASE_URL={server.url}"],
            [f"  export ANTHROPIC_API_KEY={key}"],
            [],
            [("Ctrl-C ends.", "dim")],
        )

    def request(self, received: "Received") -> None:
        """Tell of a request in a line; of a refusal with its reason."""
        super().request(received)
        asked = one_line(f"{received.method} {received.path}", self._screen.width - 14)
        line: Line = [(f"{self.requests:>4}  {asked}  {received.status or 'cut'}", "dim")]
        if received.refusal is None:
            self._say(line)
            return
        reason = one_line(received.refusal.message, 600)
        self._say(line, ["      ", ("refused", "bold red"), f"  {reason}"])

    def drift(self, drift: "Drift") -> None:
        """Tell what came otherwise than it was recorded."""
        super().drift(drift)
        width = self._screen.width - 18
        place = f"  {drift.thread[:8]} answer {drift.take}" if drift.take else ""
        self._say(
            ["      ", ("drift", "bold yellow"), f"  {_SAYS[drift.what]}", (place, "dim")],
            [("        recorded  ", "dim"), one_line(drift.expected or "nothing", width)],
            [("        came      ", "dim"), one_line(drift.came or "nothing", width)],
        )

    def ended(self, mind: "Replay | Script") -> None:
        """Tell how it went."""
        told = [words.count(self.requests, "request")]
        if (left := _left(mind)) is not None:
            told.append(f"{words.count(left, 'recorded answer')} not asked for")
        told += [f"{self.refused:,} refused"] if self.refused else []
        told += [words.count(self.drifts, "drift")] if self.drifts else []
        self._say([], [", ".join(told)])


class _Json(_Voice):
    """Tells it to programs: one line an event."""

    def _say(self, event: str, **fields: Any) -> None:
        from steno.format.encode import encode_line

        write_bytes(harmless(encode_line(encodable({"event": event, **fields}))))
        sys.stdout.buffer.flush()

    def listening(self, server: "Server", mind: "Replay | Script", key: str) -> None:
        """Write where the server is."""
        names = {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": key}
        self._say("listening", url=server.url, env=names, answers=_left(mind))

    def request(self, received: "Received") -> None:
        """Write how a request was answered."""
        super().request(received)
        refused = received.refusal.message if received.refusal else None
        self._say(
            "request",
            number=self.requests,
            method=received.method,
            path=received.path,
            status=received.status,
            request_id=received.request_id,
            finished=received.finished,
            refused=refused,
        )

    def drift(self, drift: "Drift") -> None:
        """Write what came otherwise than it was recorded."""
        super().drift(drift)
        self._say("drift", **msgspec.to_builtins(drift))

    def ended(self, mind: "Replay | Script") -> None:
        """Write how it went."""
        self._say(
            "ended",
            requests=self.requests,
            refused=self.refused,
            drifts=self.drifts,
            left=_left(mind),
        )


def _left(mind: "Replay | Script") -> int | None:
    """Return how many recorded answers were not asked for; None for a script."""
    left = getattr(mind, "left", None)
    return None if left is None else len(left)


def _about(mind: "Replay | Script") -> str:
    left = _left(mind)
    return "A script" if left is None else words.count(left, "recorded answer")
