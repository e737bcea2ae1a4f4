"""The seccomp filter, run by a small interpreter: for both architectures, without a kernel."""

import errno
import re
import struct
from pathlib import Path

import pytest
from tests.permissions.sandbox.seccomp_verdicts import ALLOW, AUDIT, TABLE, run_filter, verdicts

from steno.permissions.sandbox.seccomp import _SYSCALL_NUMBERS, FilterOptions, build_filter

STRICT = FilterOptions(metadata=True, touch=False, signals=True, processes=True, truncation=True)
LAX = FilterOptions(metadata=False, touch=False, signals=False, processes=False, truncation=False)
both = pytest.mark.parametrize("architecture", AUDIT)


def _number(name: str, architecture: str) -> int:
    number = _SYSCALL_NUMBERS[name][list(AUDIT).index(architecture)]
    assert number is not None
    return number


def _verdict(
    options: FilterOptions, architecture: str, call: str | int, *arguments: int, audit: int | None = None
) -> int | None:
    """Return the error number of a call; None when it is allowed."""
    number = _number(call, architecture) if isinstance(call, str) else call
    padded = [*arguments, *([0] * (6 - len(arguments)))]
    data = struct.pack("<IIQ6Q", number, audit or AUDIT[architecture], 0, *(each % (1 << 64) for each in padded))
    result = run_filter(build_filter(options, architecture), data)
    assert result == ALLOW or result >> 16 == 5
    return None if result == ALLOW else result & 0xFFFF


@both
def test_sockets_are_closed_but_for_pairs(architecture: str) -> None:
    for family in (1, 2, 10, 16, 17, 38, 40, 44):
        assert _verdict(LAX, architecture, "socket", family, 1, 0) == errno.EACCES
    cloexec = 0o2000000
    assert _verdict(LAX, architecture, "socketpair", 1, 1 | cloexec) is None
    assert _verdict(LAX, architecture, "socketpair", 1, 5) is None
    assert _verdict(LAX, architecture, "socketpair", 1, 2 | cloexec) == errno.EACCES
    assert _verdict(LAX, architecture, "socketpair", 2, 1) == errno.EACCES
    for call in ("connect", "bind", "listen", "accept", "accept4"):
        assert _verdict(LAX, architecture, call) == errno.EACCES


@both
def test_processes_start_but_namespaces_do_not(architecture: str) -> None:
    assert _verdict(LAX, architecture, "clone", 0x01200011) is None
    assert _verdict(LAX, architecture, "clone", 0x003D0F00) is None
    for flag in (0x20000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000, 0x2000000):
        assert _verdict(LAX, architecture, "clone", flag | 17) == errno.EPERM
    assert _verdict(LAX, architecture, "clone3") == errno.ENOSYS
    assert _verdict(LAX, architecture, "unshare", 0x400) == errno.EPERM


@both
def test_other_architectures_and_unknown_calls_are_denied(architecture: str) -> None:
    other = next(value for name, value in AUDIT.items() if name != architecture)
    for audit in (other, 0x40000003, 0x40000028):
        assert _verdict(LAX, architecture, 0, audit=audit) == errno.EPERM
    assert _verdict(LAX, architecture, 0x40000000 + 41) == errno.EPERM
    assert _verdict(LAX, architecture, 470) == errno.ENOSYS
    assert _verdict(LAX, architecture, 436) is None


@both
def test_what_mounts_and_landlock_cannot_hold_is_denied_only_without_them(architecture: str) -> None:
    for call in ("fchmod", "fchmodat", "fchownat", "fsetxattr", "setxattrat", "file_setattr"):
        assert _verdict(STRICT, architecture, call) == errno.EPERM
        assert _verdict(LAX, architecture, call) is None
    for call in ("tgkill", "pidfd_send_signal", "rt_sigqueueinfo"):
        assert _verdict(STRICT, architecture, call) == errno.EPERM
        assert _verdict(LAX, architecture, call) is None
    assert _verdict(STRICT, architecture, "kill", 0, 15) is None
    for pid in (1, -1, -2):
        assert _verdict(STRICT, architecture, "kill", pid, 15) == errno.EPERM
    assert _verdict(STRICT, architecture, "truncate") == errno.ENOSYS
    truncate, write, both_ways = 0o1000, 1, 2
    for access, allowed in ((0, False), (write, True), (both_ways, True), (3, False)):
        verdict = _verdict(STRICT, architecture, "openat", -100, 8, truncate | access)
        assert (verdict is None) is allowed
    assert _verdict(STRICT, architecture, "openat", -100, 8, 0) is None
    for call in ("prlimit64", "sched_setaffinity"):
        assert _verdict(STRICT, architecture, call, 0) is None
        assert _verdict(STRICT, architecture, call, 7) == errno.EPERM
        assert _verdict(LAX, architecture, call, 7) is None


@both
def test_no_file_gets_a_set_user_bit(architecture: str) -> None:
    create, temporary = 0o101, 0o20200002
    for mode, allowed in ((0o755, True), (0o4755, False), (0o2755, False), (0o1755, True)):
        verdicts = [
            _verdict(LAX, architecture, "fchmod", 3, mode),
            _verdict(LAX, architecture, "fchmodat", -100, 8, mode),
            _verdict(LAX, architecture, "fchmodat2", -100, 8, mode),
            _verdict(LAX, architecture, "mknodat", -100, 8, 0o100000 | mode),
            _verdict(LAX, architecture, "openat", -100, 8, create, mode),
            _verdict(STRICT, architecture, "openat", -100, 8, create, mode),
            _verdict(LAX, architecture, "openat", -100, 8, temporary, mode),
        ]
        assert {verdict is None for verdict in verdicts} == {allowed}, oct(mode)
    # Without O_CREAT the register of the mode holds anything.
    assert _verdict(LAX, architecture, "openat", -100, 8, 0, 0o4755) is None
    assert _verdict(LAX, architecture, "openat2") == errno.ENOSYS


@both
def test_times_change_only_by_touching_an_open_file(architecture: str) -> None:
    touching = STRICT._replace(touch=True)
    assert _verdict(touching, architecture, "utimensat", 3, 0, 0) is None
    assert _verdict(STRICT, architecture, "utimensat", 3, 0, 0) == 0
    for path, times in ((8, 0), (0, 8), (1 << 32, 0), (0, 1 << 32)):
        assert _verdict(touching, architecture, "utimensat", 3, path, times) == errno.EPERM


@both
def test_only_known_ioctls_are_allowed(architecture: str) -> None:
    for command in (0x5401, 0x5413, 0x541B):
        assert _verdict(LAX, architecture, "ioctl", 1, command) is None
    for command in (0x5412, 0x541C, 0x8901, 0x40086602, 0xC0189436):
        assert _verdict(LAX, architecture, "ioctl", 1, command) == errno.ENOTTY
    for command in (8, 10, 15):
        assert _verdict(LAX, architecture, "fcntl", 1, command) == errno.EPERM
    assert _verdict(LAX, architecture, "fcntl", 1, 3) is None


def test_an_unknown_architecture_has_no_filter() -> None:
    with pytest.raises(OSError, match="riscv64"):
        build_filter(LAX, "riscv64")


@pytest.mark.parametrize(
    ("path", "column"), [("/usr/include/x86_64-linux-gnu/asm/unistd_64.h", 0), ("/usr/include/asm-generic/unistd.h", 1)]
)
def test_the_numbers_are_those_of_the_kernels_headers(path: str, column: int) -> None:
    if not Path(path).exists():
        pytest.skip("the kernel's headers are not installed")
    text = Path(path).read_text(encoding="utf-8")
    numbers = {name: int(number) for name, number in re.findall(r"#define __NR(?:3264)?_(\w+)\s+(\d+)", text)}
    common = {name for name in _SYSCALL_NUMBERS if name in numbers}
    assert len(common) > 90
    assert {name: _SYSCALL_NUMBERS[name][column] for name in common} == {name: numbers[name] for name in common}


def test_the_answer_to_every_system_call_is_as_recorded() -> None:
    """To record a change that is meant: `python -m tests.permissions.sandbox.seccomp_verdicts`."""
    recorded = TABLE.read_text(encoding="utf-8").splitlines()
    found = list(verdicts())
    differing = [pair for pair in zip(recorded, found, strict=False) if pair[0] != pair[1]]
    assert not differing[:3]
    assert len(recorded) == len(found)
