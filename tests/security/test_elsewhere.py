"""The explorer for readers on other machines: only on purpose, and only with a token."""

import http.client
import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import closing, contextmanager
from ipaddress import ip_address
from pathlib import Path
from socket import INADDR_ANY

import pytest
from tests.cli.conftest import Steno, steno

from steno.web.auth import LoginKeys
from steno.web.http_server import ServerAddress, is_loopback

__all__ = ["steno"]

_EVERY = str(ip_address(INADDR_ANY))
"""Every address that a machine has. No test listens there."""
_WORD = "0123456789abcdef0123456789abcdef"


@pytest.mark.parametrize("host", [_EVERY, "::", "192.0.2.7", "example.test"])
def test_an_address_that_others_reach_needs_a_token(steno: Steno, host: str) -> None:
    ran = steno("explore", "--no-open", "--host", host)
    assert ran.code == 2
    assert "needs a token" in ran.err
    assert ran.out == ""


@pytest.mark.parametrize("word", ["short", "é" * 20, "a\x00" * 20])
def test_a_token_that_can_be_guessed_is_refused(steno: Steno, tmp_path: Path, word: str) -> None:
    file = tmp_path / "token"
    file.write_text(word)
    file.chmod(0o600)
    ran = steno("explore", "--no-open", "--host", _EVERY, "--token-file", file)
    assert ran.code == 2
    assert "at least 16 ASCII characters" in ran.err


def test_a_token_that_others_may_read_is_refused(steno: Steno, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(_WORD)
    file.chmod(0o644)
    ran = steno("explore", "--no-open", "--token-file", file)
    assert ran.code == 2
    assert "other users can read" in ran.err
    assert steno("explore", "--no-open", "--token-file", tmp_path / "none").code == 3
    file.write_text("\n")
    file.chmod(0o600)
    assert "no token in" in steno("explore", "--no-open", "--token-file", file).err


@pytest.mark.parametrize(
    ("host", "own"),
    [("127.0.0.1", True), ("::1", True), ("localhost", True), ("127.9.9.9", True)]
    + [(each, False) for each in (_EVERY, "::", "10.0.0.1", "localhost.evil.test", "")],
)
def test_which_addresses_are_this_machine_s_own(host: str, *, own: bool) -> None:
    assert is_loopback(host) == own


def test_what_an_explorer_may_be_called() -> None:
    here = ServerAddress(80, "127.0.0.1").hosts
    assert "127.0.0.1:80" in here
    assert "10.0.0.1:80" not in here
    one = ServerAddress(80, "10.0.0.1").hosts
    assert "10.0.0.1:80" in one
    assert "10.0.0.2:80" not in one
    every = ServerAddress(80, _EVERY).hosts
    assert {"10.0.0.1:80", "[fe80::1]:80", "localhost:80"} <= {
        each for each in ("10.0.0.1:80", "[fe80::1]:80", "localhost:80") if each in every
    }
    for name in ("evil.test:80", "10.0.0.1:81", "10.0.0.1", "fe80::1:80", "[10.0.0.1]:80", ":80"):
        assert name not in every


def test_a_word_opens_as_often_as_it_is_said() -> None:
    keys = LoginKeys(1, user_token=_WORD)
    assert keys.redeem(_WORD)
    assert keys.redeem(_WORD)
    assert keys.is_authenticated("", f"Bearer {_WORD}")
    for wrong in ("", "Bearer", "Bearer ", f"Basic {_WORD}", _WORD, f"Bearer {_WORD}x"):
        assert not keys.is_authenticated("", wrong)
    assert not LoginKeys(1).is_authenticated("", "Bearer ")
    assert not LoginKeys(1).redeem("")


@contextmanager
def _running(environment: Mapping[str, str], *more: str) -> Generator[dict[str, object]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "steno", "explore", "--demo", "--no-open", "--json", *more],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **environment},
    )
    assert process.stdout is not None
    try:
        yield json.loads("".join(iter(process.stdout.readline, "}\n")) + "}")
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)


def test_a_token_lets_readers_in_and_is_never_told(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(f"{_WORD}\n")
    file.chmod(0o600)
    ways = (({"STENO_TOKEN": _WORD}, ()), ({}, ("--token-file", str(file))))
    for environment, more in ways:
        with _running(environment, "--host", "127.0.0.1", *more) as said:
            port = int(str(said["port"]))
            assert _WORD not in str(said["url"])
            for headers, status in (
                ({}, 401),
                ({"Authorization": f"Bearer {_WORD}"}, 200),
                ({"Authorization": "Bearer wrong"}, 401),
                ({"Authorization": f"Bearer {_WORD}", "Host": f"evil.test:{port}"}, 421),
            ):
                assert _status(port, "/favicon.ico", headers) == status
            assert _status(port, f"/enter?code={_WORD}", {}) == 200


def _status(port: int, way: str, headers: dict[str, str]) -> int:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
        connection.request("GET", way, headers=headers)
        return connection.getresponse().status
