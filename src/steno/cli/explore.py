"""`steno explore`: the explorer in a browser, kept fresh while it is open."""

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from steno.cli.options import COLOR, JSON, WHERE, options, roots
from steno.cli.screen import complain, write_json
from steno.errors import BadRequest, Busy, StenoError, Unreadable
from steno.index.home import Home, index_of
from steno.safe.terminal import ColourMode
from steno.store.discover import discover
from steno.store.found import Problem, peek
from steno.store.places import demo_dir

if TYPE_CHECKING:
    from steno.web.house import House

__all__ = ["command", "explore"]

_HOST: Final = "127.0.0.1"
_SHORTEST: Final = 16
_MOST: Final = 4096
_SMALL: Final = 128_000_000
"""Bytes that are looked at for damage without being asked."""


@click.command("explore", short_help="Look at everything in a browser.")
@options(WHERE)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    help="Where to listen. [default: any that is free]",
)
@click.option(
    "--host",
    metavar="ADDRESS",
    default=_HOST,
    help="Listen on this address; another than this machine's own needs a token.",
)
@click.option(
    "--token-file",
    metavar="FILE",
    type=click.Path(),
    help="A file with the token that lets readers in from elsewhere; or set STENO_TOKEN.",
)
@click.option("--no-open", is_flag=True, help="Do not open a browser; print the address only.")
@options(JSON)
@options(COLOR)
def command(
    root: tuple[str, ...],
    color: ColourMode,
    *,
    demo: bool,
    no_open: bool,
    as_json: bool,
    **asked: Any,
) -> None:
    """Open the explorer: every session, searched, told turn by turn, priced, followed live.

    The index is brought up to date first and kept so while the explorer runs. It listens on this
    machine only; the address that is printed first works once, for the browser that opens it.
    Sessions are never changed. Ctrl-C ends it.

    With --host it can be reached from elsewhere, and only by those who have the token: it is sent
    as a bearer, or given once as `/enter?code=TOKEN`. The way there is not encrypted; a tunnel
    (ssh -L) needs neither option.
    """
    del color
    door = Door(asked["host"], asked["port"], token_of(asked["token_file"]))
    _refuse_strangers(door)
    chosen = _made_up() if demo and not root else roots(root, demo=demo)
    explore(chosen, demo=demo, door=door, opens=not no_open, as_json=as_json)


class Door(msgspec.Struct, frozen=True):
    """Where to listen, and the word that lets readers in from elsewhere."""

    host: str = _HOST
    port: int = 0
    word: str = ""


def token_of(file: str | None) -> str:
    """Return the token that readers from elsewhere need; nothing where none was given.

    Raises:
        BadRequest: it is too short, or others may read the file.
        Unreadable: the file cannot be read.
    """
    # Nobody who is started from here has to know it.
    word = os.environ.pop("STENO_TOKEN", "").strip()
    if file is not None:
        problems: list[Problem] = []
        raw = peek(file, _MOST, problems)
        if raw is None:
            raise Unreadable(f"cannot read {file}: {problems[0].message.lower()}")
        if os.name == "posix" and os.stat(file).st_mode & 0o077:
            raise BadRequest(f"others may read {file}", hint=f"chmod 600 {file}")
        word = raw.decode("utf-8", "replace").strip()
        if not word:
            raise BadRequest(f"there is no token in {file}")
    if word and (len(word) < _SHORTEST or not (word.isascii() and word.isprintable())):
        raise BadRequest(
            f"a token has at least {_SHORTEST} plain letters",
            hint="such as what `openssl rand -hex 32` prints",
        )
    return word


def _refuse_strangers(door: Door) -> None:
    from steno.web.serve import is_loopback

    if not is_loopback(door.host) and not door.word:
        raise BadRequest(
            f"{door.host} can be reached from elsewhere, so a token is needed",
            hint="set STENO_TOKEN or give --token-file; or leave --host out",
        )


def explore(
    root: tuple[str, ...] | None,
    *,
    demo: bool = False,
    door: Door | None = None,
    opens: bool = True,
    as_json: bool = False,
) -> None:
    """Serve the explorer until Ctrl-C; over made-up sessions where there are no others."""
    from steno.web.house import House
    from steno.web.serve import Server, listening

    home = index_of(root)
    if root is None and not _has_sessions(home):
        demo, home = True, index_of(_made_up())
        complain("there are no sessions yet, so these are made up")
    house = House(home, demo=demo)
    door = door or Door()
    with listening(door.host, door.port) as made:
        threading.Thread(target=_keep_fresh, args=(house,), daemon=True).start()
        try:
            server = Server(house, made, again=_again, word=door.word)
            address = server.entrance()
            line = write_json if as_json else _say
            line({"url": address, "port": server.address.port, "roots": list(home.roots)})
            if opens and _has_screen():
                threading.Thread(target=_open, args=(address,), daemon=True).start()
            server.run_here()
        finally:
            house.close()


def _has_sessions(home: Home) -> bool:
    return any(next(iter(discover(each)), None) is not None for each in home.roots)


def _made_up() -> tuple[str, ...]:
    """Write the demo and return where it is."""
    from steno.demo.write import write_demo

    folder = demo_dir()
    try:
        return (write_demo(folder).root,)
    except OSError as error:
        raise Unreadable(f"cannot write {folder}: {error.strerror or error}") from error


def _has_screen() -> bool:
    """Say whether a browser would have a window; one inside this terminal would take it over."""
    if sys.platform in ("darwin", "win32"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def _say(where: dict[str, Any]) -> None:
    sys.stdout.write(f"{where['url']}\n")
    sys.stdout.flush()


def _open(address: str) -> None:
    import webbrowser

    with suppress(webbrowser.Error):
        webbrowser.open(address)


def _again(address: str) -> None:
    complain(f"for another browser: {address}")


def _keep_fresh(house: "House") -> None:
    """Bring the index up to date, and do so again whenever a file changes."""
    from steno.store.watch import Watch
    from steno.web.warm import warm

    house.rebuild = lambda: threading.Thread(target=_rebuild, args=(house,), daemon=True).start()
    with Watch(house.home.roots) as watch:
        for number, changes in enumerate(watch):
            _sync(house, house.home)
            house.news.tell(None if changes.rescan else changes.paths)
            if not number:
                warm(house)
            if not house.ward.round.ended:
                # Where it takes long, it waits until somebody asks.
                house.ward.look(_SMALL)


def _rebuild(house: "House") -> None:
    _sync(house, house.home)
    house.news.tell()


def _sync(house: "House", home: Home) -> None:
    from steno.index.sync import sync

    state = house.state
    state.syncing = True

    def planned(number: int) -> Callable[[int], None]:
        state.planned, state.done = number, 0

        def done(more: int) -> None:
            state.done += more

        return done

    try:
        sync(home, wait=False, planned=planned)
    except Busy:
        pass
    except StenoError as error:
        state.problem = str(error)
    else:
        state.problem = ""
        state.fresh = house.now()
    finally:
        state.syncing = False
