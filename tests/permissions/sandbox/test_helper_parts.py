"""Parts of the helper and the supervisor that can be called without confining anything."""

import errno
import json
import os
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from steno.permissions.sandbox import helper, mechanisms, mount_namespace
from steno.permissions.sandbox.path_plan import SandboxSetupError
from steno.permissions.sandbox.policy import SandboxError, SandboxPolicy
from steno.permissions.sandbox.seccomp import FilterOptions


def _memory(text: bytes) -> int:
    memory = os.memfd_create("test")
    os.write(memory, text)
    return memory


def _fields(**more: Any) -> bytes:
    fields = {"argv": ["a", 1], "env": {"A": "b"}, "policy": {"cwd": "/"}, "fds": []}
    return json.dumps({**fields, **more}).encode()


def _read(body: bytes, *, length: int | None = None, more: tuple[int, ...] = ()) -> Any:
    reading, writing = os.pipe()
    memory = _memory(body)
    try:
        size = len(body) if length is None else length
        return helper._read_request(7, size, [memory, reading, writing, *more])
    finally:
        for descriptor in (memory, reading, writing):
            os.close(descriptor)


def test_a_request_is_read_as_it_was_sent() -> None:
    request = _read(_fields())
    assert (request.number, request.argv, request.env) == (7, ["a", "1"], {"A": "b"})
    assert request.policy == {"cwd": "/"}
    assert list(request.descriptors) == [1, 2]
    # The number of the message counts, and not one in its text.
    assert _read(_fields(id=9)).number == 7


def test_descriptors_get_the_numbers_that_were_asked_for(tmp_path: Path) -> None:
    passed = os.open(tmp_path / "x", os.O_CREAT | os.O_WRONLY)
    folder = os.open(tmp_path, os.O_RDONLY)
    try:
        request = _read(_fields(fds=[5]), more=(passed,))
        assert list(request.descriptors) == [1, 2, 5]
        assert request.descriptors[5] == passed
        with pytest.raises(ValueError, match="zip"):
            _read(_fields(fds=[]), more=(passed,))
        with pytest.raises(SandboxSetupError, match="a directory cannot be passed"):
            _read(_fields(fds=[5]), more=(folder,))
    finally:
        os.close(passed)
        os.close(folder)


def test_requests_that_are_too_long_or_cut_off_are_refused() -> None:
    with pytest.raises(SandboxSetupError, match="incomplete"):
        _read(_fields(), length=len(_fields()) + 1)
    with pytest.raises(SandboxSetupError, match="too long"):
        _read(b"", length=(16 << 20) + 1)
    with pytest.raises(SandboxSetupError, match="incomplete"):
        _read(b"", length=16 << 20)
    with pytest.raises(KeyError):
        _read(b"{}")


@pytest.mark.parametrize(
    ("user", "group", "passwd", "groups"),
    [
        (0, 0, "root:x:0:0:root:/:/bin/sh\n", "root:x:0:\n"),
        (
            4_000_001,
            4_000_002,
            "root:x:0:0:root:/:/bin/sh\nuser:x:4000001:4000002::/:/bin/sh\n",
            "root:x:0:\nuser:x:4000002:\n",
        ),
        (4_000_001, 0, "root:x:0:0:root:/:/bin/sh\nuser:x:4000001:0::/:/bin/sh\n", "root:x:0:\n"),
        (0, 4_000_002, "root:x:0:0:root:/:/bin/sh\n", "root:x:0:\nroot:x:4000002:\n"),
    ],
)
def test_accounts_hold_the_user_alone(
    monkeypatch: pytest.MonkeyPatch, user: int, group: int, passwd: str, groups: str
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(os, "getegid", lambda: group)
    assert helper._account_files() == {
        "passwd": passwd,
        "group": groups,
        "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
        "hosts": "127.0.0.1 localhost\n::1 localhost\n",
    }


def test_names_of_accounts_are_found_by_number(tmp_path: Path) -> None:
    path = tmp_path / "passwd"
    path.write_bytes(b"root:x:0:0\nbad\nada:x:1000\nbob:x:100:5:::\n\xe9x:x:7\n")
    assert helper._account_name(str(path), 0) == "root"
    assert helper._account_name(str(path), 1000) == "ada"
    assert helper._account_name(str(path), 100) == "bob"
    assert helper._account_name(str(path), 7) == "\ufffdx"
    assert helper._account_name(str(path), 10) == ""
    assert helper._account_name(str(tmp_path / "none"), 0) == ""


@pytest.mark.parametrize(
    ("landlock", "namespaces", "signals", "truncation"),
    [
        (0, True, False, False),
        (1, True, False, False),
        (1, False, True, True),
        (2, False, True, True),
        (3, False, True, False),
        (5, False, True, False),
        (6, False, False, False),
        (6, True, False, False),
    ],
)
def test_the_filter_does_what_the_other_mechanisms_leave(
    landlock: int, *, namespaces: bool, signals: bool, truncation: bool
) -> None:
    found = helper.ActiveMechanisms(landlock=landlock, namespaces=namespaces, accounts={"a": "b"})
    assert found.accounts == {"a": "b"}
    for writes in (False, True):
        assert found.filter_options(writes=writes) == FilterOptions(
            metadata=not namespaces, touch=writes, signals=signals, processes=not namespaces, truncation=truncation
        )
    assert ("/etc/passwd" in found.system_plan.readable) is not namespaces
    assert "/usr" in found.system_plan.readable


def test_errors_are_told_in_words_of_bounded_length() -> None:
    assert helper._error_text(OSError(errno.ENOENT, "No such file")) == "No such file"
    assert helper._error_text(OSError("plain")) == "plain"
    assert helper._error_text(ValueError("x" * 1001)) == "x" * 1000
    assert helper._error_text(ValueError()) == "ValueError"


def test_a_started_command_is_known_by_its_credentials() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    with ours, theirs:
        theirs.send(b"\0")
        theirs.shutdown(socket.SHUT_WR)
        assert helper._receive_pid(ours) == os.getpid()


@pytest.mark.parametrize(("sent", "words"), [(b"no such file", "no such file"), (b"", "ended during sandbox setup")])
def test_a_command_that_was_not_started_says_why(sent: bytes, words: str) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        if sent:
            theirs.send(sent)
        theirs.shutdown(socket.SHUT_WR)
        with pytest.raises(SandboxSetupError, match=words):
            helper._receive_pid(ours)


def test_a_placeholder_is_known_by_its_file_and_not_its_name(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    lock = os.open(tmp_path / "a", os.O_RDONLY)
    try:
        assert helper._is_same_file(lock, str(tmp_path / "a"))
        assert not helper._is_same_file(lock, str(tmp_path / "none"))
        (tmp_path / "a").rename(tmp_path / "b")
        (tmp_path / "a").mkdir()
        assert not helper._is_same_file(lock, str(tmp_path / "a"))
    finally:
        os.close(lock)


def test_signals_of_this_process_are_not_isolated() -> None:
    assert helper._signals_are_isolated() is False


def test_only_descendants_that_are_not_spared_are_ended() -> None:
    sleep = ["sleep", "60"]
    with subprocess.Popen(sleep) as spared, subprocess.Popen(sleep) as doomed:
        try:
            helper.end_children(_children() - {doomed.pid})
            assert doomed.wait() == -signal.SIGKILL
            assert spared.poll() is None
        finally:
            spared.kill()
            doomed.kill()


def _children() -> set[int]:
    found: set[int] = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == os.getpid():
            found.add(int(path.parent.name))
    return found


def test_users_are_mapped_to_themselves(tmp_path: Path) -> None:
    path = tmp_path / "uid_map"
    path.write_text("         0          0 4294967295\n", encoding="ascii")
    assert mount_namespace._identity_map(str(path)) == "0 0 4294967295\n"
    path.write_text("0 1000 1\n1 100000 65536\n", encoding="ascii")
    assert mount_namespace._identity_map(str(path)) == "0 0 1\n1 1 65536\n"


def test_files_of_the_private_root_are_new_and_have_their_mode(tmp_path: Path) -> None:
    path = str(tmp_path / "x")
    mount_namespace._create_file(path, "text", mode=0o600)
    assert Path(path).read_text(encoding="utf-8") == "text"
    assert Path(path).stat().st_mode & 0o777 == 0o600
    with pytest.raises(FileExistsError):
        mount_namespace._create_file(path)
    mount_namespace._write_file(path, "TE")
    assert Path(path).read_text(encoding="utf-8") == "TExt"


# The protocol


def test_the_first_message_says_whether_programs_can_be_confined() -> None:
    mechanisms.check_helper_greeting({"landlock": 0})
    for reply, words in (({"error": "no Landlock"}, "on this machine: no Landlock"), ({}, "helper ended")):
        with pytest.raises(SandboxError, match=words):
            mechanisms.check_helper_greeting(reply)
    assert mechanisms.decode_helper_reply(b"") == {}
    assert mechanisms.decode_helper_reply(b'{"id": 1}') == {"id": 1}


def _command(tmp_path: Path, **more: Any) -> mechanisms.SandboxCommand:
    policy = SandboxPolicy(cwd="/", readable=("/a", "/\udce9"), scratch=str(tmp_path))
    given: dict[str, Any] = {"argv": ["a"], "env": {"B": "\udce9"}, "stdout": 1, "stderr": 2}
    return mechanisms.SandboxCommand(policy=policy, **{**given, **more})


def test_a_command_is_sent_whole(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        mechanisms.send_command(ours, 3, _command(tmp_path))
        header, descriptors, _, _ = socket.recv_fds(theirs, 100, 10)
        number, length = mechanisms.HEADER.unpack(header)
        body = os.pread(descriptors[0], length + 1, 0)
        for descriptor in descriptors:
            os.close(descriptor)
    assert (number, length, len(descriptors)) == (3, len(body), 3)
    assert json.loads(body) == {
        "argv": ["a"],
        "env": {"B": "\udce9", "TMPDIR": str(tmp_path)},
        "policy": {
            "cwd": "/",
            "readable": ["/a", "/\udce9"],
            "scratch": str(tmp_path),
            "writable": [],
            "read_only": [],
            "denied": [],
            "programs": [],
            "list_denied_names": False,
        },
        "fds": [],
    }


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"argv": []}, "empty"),
        ({"argv": ["a\0"]}, "NUL"),
        ({"env": {"A\0": "b"}}, "NUL"),
        ({"env": {"A": "\0"}}, "NUL"),
        ({"pass_fds": [2]}, "above 2"),
        ({"pass_fds": [3, 0]}, "above 2"),
        ({"argv": ["a" * (16 << 20)]}, "too long"),
    ],
)
def test_a_command_that_cannot_be_sent_is_refused(tmp_path: Path, more: dict[str, Any], words: str) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs, pytest.raises(SandboxError, match=words):
        mechanisms.send_command(ours, 1, _command(tmp_path, **more))


def test_a_helper_that_ended_is_told_apart(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    theirs.close()
    with ours, pytest.raises(mechanisms.HelperExited, match="Cannot reach the sandbox helper"):
        mechanisms.send_command(ours, 1, _command(tmp_path))
