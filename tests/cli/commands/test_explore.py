"""`steno explore`, as a process of its own."""

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from urllib.parse import urlsplit

import pytest
from tests.builders import session
from tests.cli.conftest import Steno
from tests.conftest import WriteConfig


@contextmanager
def running(*arguments: str) -> Generator[tuple[str, "subprocess.Popen[str]"]]:
    """Give the first line that it prints, and the process; it is ended as Ctrl-C would."""
    process = subprocess.Popen(
        [sys.executable, "-m", "steno", *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip(), process
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


@contextmanager
def visiting(address: str) -> Generator[Callable[[str], tuple[int, str]]]:
    """Swap the code of an address for a cookie, and give what asks for pages with it."""
    parts = urlsplit(address)
    with closing(http.client.HTTPConnection(parts.netloc, timeout=30)) as connection:
        connection.request("GET", f"{parts.path}?{parts.query}")
        entered = connection.getresponse()
        entered.read()
        cookie = (entered.getheader("set-cookie") or "").partition(";")[0]

        def look(way: str) -> tuple[int, str]:
            connection.request("GET", way, headers={"cookie": cookie})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()

        yield look


@pytest.mark.parametrize("arguments", [(), ("explore", "--no-open"), ("explore", "--demo")])
def test_without_sessions_the_demo_opens_and_says_so(arguments: tuple[str, ...]) -> None:
    with running(*arguments) as (address, process):
        assert address.startswith("http://127.0.0.1:")
        with visiting(address) as look:
            status, text = look("/")
            while status == 503:
                assert "Indexing sessions" in text
                status, text = look("/")
        assert status == 200
        assert "Demo sessions" in text
    assert process.returncode == 0


def test_the_status_follows_the_address(config: WriteConfig) -> None:
    with running("explore", "--no-open") as (address, process):
        assert address.startswith("http://")
        assert process.stderr is not None
        lines = [process.stderr.readline().strip() for _ in range(4)]
    assert lines == [
        "No sessions found. Showing demo sessions.",
        "Open the address in a browser. Press Ctrl+C to stop.",
        "Updating the index ...",
        "The index is up to date.",
    ]
    config(session().turn("The first one", "Yes."))
    with running("explore", "--no-open") as (_, process):
        assert process.stderr is not None
        assert process.stderr.readline() == f"Sessions: {os.environ['CLAUDE_CONFIG_DIR']}\n"


def test_with_json_no_status_is_printed(config: WriteConfig) -> None:
    config(session().turn("The first one", "Yes."))
    process = subprocess.Popen(
        [sys.executable, "-m", "steno", "explore", "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    line = json.loads("".join(iter(process.stdout.readline, "}\n")) + "}")
    with visiting(line["url"]) as look:
        look("/")
    process.send_signal(signal.SIGINT)
    notes = process.communicate(timeout=30)[1]
    assert all(note.startswith("URL for another browser") for note in notes.splitlines())


def test_a_session_that_is_written_later_appears(config: WriteConfig) -> None:
    config(session().turn("The first one", "Yes."))
    with running("explore", "--no-open", "--json") as (first, process):
        assert process.stdout is not None
        said = first + "".join(iter(process.stdout.readline, "}\n")) + "}"
        with visiting(json.loads(said)["url"]) as look:
            while "The first one" not in look("/")[1]:
                pass
            config(session(seed="two").turn("The second one", "Yes."))
            while "The second one" not in look("/")[1]:
                pass


def test_a_port_that_is_taken_is_said_so(steno: Steno) -> None:
    with running("explore", "--no-open") as (address, _):
        ran = steno("explore", "--no-open", "--port", str(urlsplit(address).port))
        assert ran.code == 2
        assert "cannot listen" in ran.err
