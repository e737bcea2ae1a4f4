"""The system calls that confine a program, noted instead of made."""

import ctypes
import errno
import os
from pathlib import Path
from typing import Any

import pytest
from tests.permissions.sandbox.noted_calls import Library

from steno.permissions.sandbox import mount_namespace, restricted_exec, syscalls
from steno.permissions.sandbox.path_plan import PathPlan


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    found = Library()
    monkeypatch.setattr(syscalls, "_libc", found)

    def load(_name: None, *, use_errno: bool) -> Library:
        assert use_errno
        return found

    monkeypatch.setattr(ctypes, "CDLL", load)
    return found


# kernel


@pytest.mark.parametrize(("number", "raised"), [(0, errno.EPERM), (errno.ENOENT, errno.ENOENT)])
def test_a_call_that_fails_raises_its_error(number: int, raised: int) -> None:
    assert syscalls._check_result(0, "x") == 0
    assert syscalls._check_result(7, "x") == 7
    ctypes.set_errno(number)
    with pytest.raises(OSError, match=f"what: {os.strerror(raised)}") as caught:
        syscalls._check_result(-1, "what")
    assert caught.value.errno == raised


def test_arguments_of_calls(library: Library) -> None:
    syscalls.prctl(38, 1)
    syscalls.prctl(47, 2, 3)
    syscalls.unshare(5)
    syscalls.mount(None, "/é", None, 4)
    syscalls.mount("a", "b", "tmpfs", 1, "size=1")
    assert library.calls == [
        ("prctl", 38, 1, 0, 0, 0),
        ("prctl", 47, 2, 3, 0, 0),
        ("unshare", 5),
        ("mount", None, os.fsencode("/é"), None, 4, None),
        ("mount", b"a", b"b", b"tmpfs", 1, b"size=1"),
    ]
    library.fails = {"prctl", "unshare", "mount"}
    for call, words in (
        (lambda: syscalls.prctl(9, 1), "prctl 9"),
        (lambda: syscalls.unshare(1), "unshare"),
        (lambda: syscalls.mount(None, "/x", None, 0), "mount '/x'"),
    ):
        with pytest.raises(OSError, match=words):
            call()


@pytest.mark.parametrize(
    ("keep", "closed"),
    [
        (set[int](), [(0, 0xFFFFFFFF)]),
        ({0, 1, 2}, [(3, 0xFFFFFFFF)]),
        ({3, 5}, [(0, 2), (4, 4), (6, 0xFFFFFFFF)]),
        ({1}, [(0, 0), (2, 0xFFFFFFFF)]),
    ],
)
def test_all_descriptors_but_some_are_closed(
    monkeypatch: pytest.MonkeyPatch, keep: set[int], closed: list[tuple[int, int]]
) -> None:
    found: list[tuple[int, int]] = []

    def close(first: int, last: int) -> None:
        found.append((first, last))

    monkeypatch.setattr(syscalls, "_close_range", close)
    syscalls.close_other_descriptors(keep)
    assert found == closed


def test_descriptors_are_closed_without_close_range(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[tuple[int, int]] = []

    def close(first: int, last: int) -> None:
        found.append((first, last))

    monkeypatch.setattr(os, "closerange", close)
    syscalls._close_range(3, 5)
    assert found == []
    assert library.calls == [("syscall", 436, 3, 5, 0)]
    library.fails = {"syscall"}
    syscalls._close_range(3, 5)
    syscalls._close_range(6, 0xFFFFFFFF)
    assert found == [(3, 6), (6, os.sysconf("SC_OPEN_MAX"))]


@pytest.mark.parametrize("keep", [frozenset[int](), frozenset({1, 2, 3}), frozenset({1, 35})])
def test_capabilities_are_dropped_but_for_some(
    library: Library, monkeypatch: pytest.MonkeyPatch, keep: frozenset[int]
) -> None:
    made: list[tuple[int, ...]] = []

    def syscall(number: int, header: Any, data: Any) -> int:
        version, pid = header._obj.version, header._obj.pid
        if number == 90:
            # The process may have all of them but number 2.
            data._obj[0].permitted = 0xFFFFFFFB
            data._obj[1].permitted = 0xFFFFFFFF
            made.append((number, version, pid))
        else:
            words = [(each.effective, each.permitted, each.inheritable) for each in data._obj]
            made.append((number, version, pid, *sum(words, ())))
        return 0

    monkeypatch.setattr(syscalls, "machine", lambda: "aarch64")
    monkeypatch.setattr(syscalls, "syscall", syscall)
    syscalls.drop_capabilities(keep)
    dropped = {call[2] for call in library.calls if call[:2] == ("prctl", 24)}
    assert dropped == set(range(64)) - keep
    assert library.calls[-1] == ("prctl", 47, 4, 0, 0, 0)
    mask = sum(1 << number for number in keep - {2})
    low, high = mask & 0xFFFFFFFF, mask >> 32
    assert made == [(90, 0x20080522, 0), (91, 0x20080522, 0, low, low, 0, high, high, 0)]


@pytest.mark.parametrize(
    ("name", "machine"), [("x86_64", "x86_64"), ("amd64", "x86_64"), ("arm64", "aarch64"), ("riscv64", "riscv64")]
)
def test_machines_go_by_the_kernels_name(monkeypatch: pytest.MonkeyPatch, name: str, machine: str) -> None:
    class _Names:
        machine = name

    monkeypatch.setattr(os, "uname", _Names)
    assert syscalls.machine() == machine


# namespaces


def test_mounts_of_a_program_apart(library: Library, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ups: list[str] = []
    monkeypatch.setattr(restricted_exec, "_enable_loopback", lambda: ups.append("up"))

    class _Flags:
        f_flag = 2 | 8 | 4096

    def statvfs(path: str) -> type[_Flags]:
        assert path == str(tmp_path / "kept")
        return _Flags

    monkeypatch.setattr(os, "statvfs", statvfs)
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("x", encoding="utf-8")
    covered = [str(tmp_path / name) for name in ("folder", "file", "none")]
    kept = str(tmp_path / "kept")
    restricted_exec.enter_namespaces(["/pin"], [kept], covered, network=False)
    folder, file = (os.fsencode(each) for each in covered[:2])
    assert library.calls == [
        ("unshare", 0x40020000),
        ("mount", None, b"/", None, 0x44000, None),
        ("mount", b"tmpfs", folder, b"tmpfs", 1, None),
        ("mount", b"/dev/null", file, None, 0x1000, None),
        ("mount", b"/pin", b"/pin", None, 0x5000, None),
        ("mount", kept.encode(), kept.encode(), None, 0x5000, None),
        ("mount", None, kept.encode(), None, 0x1021 | 2 | 8 | 1 << 21, None),
    ]
    assert ups == ["up"]
    library.calls.clear()
    restricted_exec.enter_namespaces([], [], [], network=True)
    assert library.calls[0] == ("unshare", 0x20000)
    assert ups == ["up"]


def test_users_of_a_program_apart(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[tuple[str, str]] = []
    answers = iter([-1, 0])

    def unshare(flags: int) -> int:
        library.calls.append(("unshare", flags))
        return next(answers)

    def write(path: str, text: str) -> None:
        written.append((path, text))

    monkeypatch.setattr(library, "unshare", unshare, raising=False)
    monkeypatch.setattr(restricted_exec, "_write_file", write)
    restricted_exec._unshare(ctypes.CDLL(None, use_errno=True), 5)
    assert library.calls == [("unshare", 5), ("unshare", 5 | 0x10000000)]
    user, group = os.geteuid(), os.getegid()
    assert written == [
        ("/proc/self/setgroups", "deny"),
        ("/proc/self/uid_map", f"{user} {user} 1"),
        ("/proc/self/gid_map", f"{group} {group} 1"),
    ]


def test_refusals_of_namespaces_are_told(library: Library) -> None:
    library.fails = {"unshare"}
    ctypes.set_errno(errno.EPERM)
    with pytest.raises(restricted_exec.RestrictionError, match="refused namespaces: operation not perm"):
        restricted_exec._unshare(ctypes.CDLL(None, use_errno=True), 1)
    library.fails = {"mount"}
    ctypes.set_errno(errno.EACCES)
    with pytest.raises(restricted_exec.RestrictionError, match="cannot mount /x: permission denied"):
        restricted_exec._mount(ctypes.CDLL(None, use_errno=True), None, "/x", None, 0)


# The private root


def test_the_private_root_is_filled(tmp_path: Path) -> None:
    new = str(tmp_path / "new")
    for name in ("dev", "has"):
        (tmp_path / "new" / name).mkdir(parents=True)
    wanted = PathPlan()
    wanted.scratch = "/scratch"
    wanted.links = {"/bin": "usr/bin", "/deep/link": "../x", "/has": "y"}
    mount_namespace._fill_root(new, wanted, {"passwd": "p\n", "group": "g\n"})
    links = {str(path.relative_to(new)): str(path.readlink()) for path in Path(new).rglob("*") if path.is_symlink()}
    assert links == {
        "dev/fd": "/proc/self/fd",
        "dev/stdin": "/proc/self/fd/0",
        "dev/stdout": "/proc/self/fd/1",
        "dev/stderr": "/proc/self/fd/2",
        "bin": "usr/bin",
        "deep/link": "../x",
        "tmp": "/scratch",
    }
    assert (tmp_path / "new/etc/passwd").read_text(encoding="utf-8") == "p\n"
    assert (tmp_path / "new/etc/group").read_text(encoding="utf-8") == "g\n"


@pytest.mark.parametrize("kind", ["readable", "writable"])
def test_an_etc_of_the_policy_is_left_as_it_is(tmp_path: Path, kind: str) -> None:
    new = str(tmp_path / "new")
    (tmp_path / "new" / "dev").mkdir(parents=True)
    (tmp_path / "new" / "tmp").mkdir()
    wanted = PathPlan()
    getattr(wanted, kind).add("/etc")
    mount_namespace._fill_root(new, wanted, {"passwd": "p\n"})
    assert list((tmp_path / "new" / "etc").iterdir()) == []
    assert not (tmp_path / "new" / "tmp").is_symlink()
