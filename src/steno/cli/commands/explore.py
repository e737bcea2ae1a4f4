"""`steno explore`: serves the web explorer and keeps its index up to date."""

import os
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from steno.cli.command_arguments import search_roots
from steno.cli.options import COLOR, JSON, ROOT_OPTIONS, add_options
from steno.cli.output.screen import write_json
from steno.errors import BadRequest, Busy, StenoError, Unreadable
from steno.index.database import IndexLocation, locate_index
from steno.sanitize.terminal import ColourMode
from steno.store.discovery import Problem, discover, peek
from steno.store.environment import demo_dir

if TYPE_CHECKING:
    from steno.web.state.app_state import AppState


_DEFAULT_HOST: Final = "127.0.0.1"
_MIN_TOKEN_LENGTH: Final = 16
_MAX_TOKEN_FILE_SIZE: Final = 4096
_MAX_UNPROMPTED_CHECK_SIZE: Final = 128_000_000
"""Bytes of session files that are checked for damage at the start."""


@click.command("explore", short_help="Open the web explorer.")
@add_options(ROOT_OPTIONS)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port to listen on  [default: any free port]")
@click.option(
    "--host", metavar="ADDRESS", default=_DEFAULT_HOST, help="Address to listen on; non-loopback addresses need a token"
)
@click.option(
    "--token-file",
    metavar="FILE",
    type=click.Path(),
    help="File with the token for other machines (or set STENO_TOKEN)",
)
@click.option("--no-open", is_flag=True, help="Print the URL without opening a browser")
@add_options(JSON)
@add_options(COLOR)
def command(
    root: tuple[str, ...], color: ColourMode, *, demo: bool, no_open: bool, as_json: bool, **values: Any
) -> None:
    """Open the web explorer: list, search, read, price and follow sessions.

    The index is updated at the start and whenever a session file changes. The explorer listens on
    this machine only; the printed URL works once, for the browser that opens it. Session files are
    never modified. Press Ctrl-C to stop.

    With --host, other machines can connect if they have the token, sent as a bearer token or once
    as `/enter?code=TOKEN`. The connection is not encrypted; an SSH tunnel (ssh -L) needs neither
    --host nor a token.
    """
    del color
    listen_address = ListenAddress(values["host"], values["port"], read_token(values["token_file"]))
    _check_token_required(listen_address)
    roots_to_serve = _write_demo_sessions() if demo and not root else search_roots(root, demo=demo)
    run_explorer(roots_to_serve, demo=demo, listen_address=listen_address, open_browser=not no_open, as_json=as_json)


class ListenAddress(msgspec.Struct, frozen=True):
    """Address to listen on, and the token for other machines."""

    host: str = _DEFAULT_HOST
    port: int = 0
    token: str = ""


def read_token(file: str | None) -> str:
    """Return the token for other machines; "" without one.

    Raises:
        BadRequest: the token is too short, or other users can read the file.
        Unreadable: the file cannot be read.
    """
    # Child processes must not inherit the token.
    token = os.environ.pop("STENO_TOKEN", "").strip()
    if file is not None:
        problems: list[Problem] = []
        raw = peek(file, _MAX_TOKEN_FILE_SIZE, problems)
        if raw is None:
            raise Unreadable(f"cannot read {file}: {problems[0].message.lower()}")
        if os.name == "posix" and os.stat(file).st_mode & 0o077:
            raise BadRequest(f"other users can read {file}", hint=f"Run `chmod 600 {file}`.")
        token = raw.decode("utf-8", "replace").strip()
        if not token:
            raise BadRequest(f"no token in {file}")
    if token and (len(token) < _MIN_TOKEN_LENGTH or not (token.isascii() and token.isprintable())):
        raise BadRequest(
            f"a token needs at least {_MIN_TOKEN_LENGTH} ASCII characters",
            hint="Run `openssl rand -hex 32` to create one.",
        )
    return token


def _check_token_required(listen_address: ListenAddress) -> None:
    from steno.web.http_server import is_loopback

    if not is_loopback(listen_address.host) and not listen_address.token:
        raise BadRequest(
            f"listening on {listen_address.host} needs a token, because other machines can connect",
            hint="Set STENO_TOKEN or use --token-file, or omit --host.",
        )


def run_explorer(
    root: tuple[str, ...] | None,
    *,
    demo: bool = False,
    listen_address: ListenAddress | None = None,
    open_browser: bool = True,
    as_json: bool = False,
) -> None:
    """Serve the explorer until Ctrl-C; without sessions, serve the demo sessions."""
    from steno.web.http_server import Server, open_socket
    from steno.web.state.app_state import AppState

    home, is_empty = locate_index(root), False
    if root is None and not _has_sessions(home):
        is_empty, demo, home = True, True, locate_index(_write_demo_sessions())
    app_state = AppState(home, demo=demo)
    listen_address = listen_address or ListenAddress()
    show_status = _ignore_status if as_json else _print_status
    is_status_printed = threading.Event()

    def show_first_sync() -> None:
        is_status_printed.wait()
        show_status(app_state.index_status.problem or "The index is up to date.")

    with open_socket(listen_address.host, listen_address.port) as listening_socket:
        threading.Thread(target=_sync_on_changes, args=(app_state, show_first_sync), daemon=True).start()
        try:
            server = Server(app_state, listening_socket, on_new_url=_print_new_address, user_token=listen_address.token)
            url = server.login_url()
            print_line = write_json if as_json else _print_address
            print_line({"url": url, "port": server.address.port, "roots": list(home.roots)})
            show_status(
                "No sessions found. Showing demo sessions." if is_empty else f"Sessions: {', '.join(home.roots)}"
            )
            opens_browser = open_browser and _can_open_browser()
            action = "Opening a browser." if opens_browser else "Open the address in a browser."
            show_status(f"{action} Press Ctrl+C to stop.")
            show_status("Updating the index ...")
            is_status_printed.set()
            if opens_browser:
                threading.Thread(target=_open_browser, args=(url,), daemon=True).start()
            server.run_until_stopped()
        finally:
            app_state.close()


def _has_sessions(home: IndexLocation) -> bool:
    return any(next(iter(discover(root)), None) is not None for root in home.roots)


def _write_demo_sessions() -> tuple[str, ...]:
    from steno.demo.recording import write_demo

    folder = demo_dir()
    try:
        return (write_demo(folder).root,)
    except OSError as error:
        raise Unreadable(f"cannot write {folder}: {error.strerror or error}") from error


def _can_open_browser() -> bool:
    """Return whether a browser has a window; a text browser would take over this terminal."""
    if sys.platform in ("darwin", "win32"):
        return True
    return any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))


def _print_address(where: dict[str, Any]) -> None:
    sys.stdout.write(f"{where['url']}\n")
    sys.stdout.flush()


def _print_status(text: str) -> None:
    from steno.sanitize.terminal import clean

    sys.stderr.write(f"{clean(text)}\n")
    sys.stderr.flush()


def _ignore_status(_text: str) -> None:
    """Print nothing: with --json the only output is the JSON line."""


def _open_browser(url: str) -> None:
    import webbrowser

    with suppress(webbrowser.Error):
        webbrowser.open(url)


def _print_new_address(url: str) -> None:
    _print_status(f"URL for another browser: {url}")


def _sync_on_changes(app_state: "AppState", show_first_sync: Callable[[], None]) -> None:
    """Update the index now and whenever a file changes."""
    from steno.store.watch.watcher import FileWatcher
    from steno.web.http_server import preload

    app_state.rebuild = lambda: threading.Thread(target=_sync_and_publish, args=(app_state,), daemon=True).start()
    with FileWatcher(app_state.home.roots) as watch:
        for number, changes in enumerate(watch):
            _sync_index(app_state, app_state.home)
            if not number:
                show_first_sync()
            app_state.pubsub.publish(None if changes.rescan else changes.paths)
            if not number:
                preload(app_state)
            if not app_state.health_monitor.progress.last_ended:
                # Larger checks wait until the user starts them.
                app_state.health_monitor.start_check(_MAX_UNPROMPTED_CHECK_SIZE)


def _sync_and_publish(app_state: "AppState") -> None:
    _sync_index(app_state, app_state.home)
    app_state.pubsub.publish()


def _sync_index(app_state: "AppState", home: IndexLocation) -> None:
    from steno.index.sync.updater import sync

    state = app_state.index_status
    state.syncing = True

    def start_progress(number: int) -> Callable[[int], None]:
        state.planned, state.done = number, 0

        def advance(size: int) -> None:
            state.done += size

        return advance

    try:
        sync(home, wait=False, start_progress=start_progress)
    except Busy:
        pass
    except StenoError as error:
        state.problem = str(error)
    else:
        state.problem = ""
        state.updated = app_state.now()
    finally:
        state.syncing = False
