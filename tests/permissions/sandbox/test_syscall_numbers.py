"""The numbers of the kernel's interface are those of its headers."""

import re
from pathlib import Path
from typing import Final

import pytest

from steno.permissions.sandbox import helper, landlock_rules, restricted_exec, syscalls

_HEADERS: Final = Path("/usr/include")
_CALLS: Final = {"x86_64": "x86_64-linux-gnu/asm/unistd_64.h", "aarch64": "asm-generic/unistd.h"}
_DEFINITION: Final = re.compile(r"#\s*define\s+(\w+)\s+\(?(0x[0-9a-fA-F]+|[0-9]+)U?L*\)?\s*(?:/\*|$)")
_SHIFT: Final = re.compile(r"#\s*define\s+(\w+)\s+\(1U?L*\s*<<\s*([0-9]+)\)")
_ENUM: Final = re.compile(r"\b(MS_\w+)\s*=\s*(0x[0-9a-fA-F]+|[0-9]+|1 << [0-9]+)")


def _defined(*names: str) -> dict[str, int]:
    found: dict[str, int] = {}
    for name in names:
        path = _HEADERS / name
        if not path.exists():
            pytest.skip("the kernel's headers are not installed")
        text = path.read_text(encoding="utf-8")
        for line in text.splitlines():
            if match := _DEFINITION.match(line):
                found[match[1]] = int(match[2], 0)
            elif match := _SHIFT.match(line):
                found[match[1]] = 1 << int(match[2])
        for name_of, value in _ENUM.findall(text):
            first, _, shift = value.partition(" << ")
            found.setdefault(name_of, int(first, 0) << int(shift or 0))
    return found


@pytest.mark.parametrize(
    ("name", "header", "defined"),
    [
        *(
            (name, "linux/sched.h", name)
            for name in vars(syscalls)
            if name.startswith("CLONE_")
        ),
        *((name, "linux/mount.h", name) for name in vars(syscalls) if name.startswith("MS_")),
        *((name, "linux/prctl.h", name) for name in vars(syscalls) if name.startswith("PR_CAP")),
        *((name, "linux/prctl.h", name) for name in vars(syscalls) if name.startswith("PR_SET")),
        *(
            (name, "linux/mount.h", f"MOUNT_{name}")
            for name in vars(syscalls)
            if name.startswith("ATTR_")
        ),
        ("_AT_EMPTY_PATH", "linux/fcntl.h", "AT_EMPTY_PATH"),
        ("_AT_RECURSIVE", "linux/fcntl.h", "AT_RECURSIVE"),
        ("_OPEN_TREE_CLONE", "linux/mount.h", "OPEN_TREE_CLONE"),
        ("_MOVE_FROM_EMPTY", "linux/mount.h", "MOVE_MOUNT_F_EMPTY_PATH"),
        ("_MOVE_TO_EMPTY", "linux/mount.h", "MOVE_MOUNT_T_EMPTY_PATH"),
        ("_RESOLVE_NO_MAGICLINKS", "linux/openat2.h", "RESOLVE_NO_MAGICLINKS"),
        ("_RESOLVE_NO_SYMLINKS", "linux/openat2.h", "RESOLVE_NO_SYMLINKS"),
        ("_RESOLVE_IN_ROOT", "linux/openat2.h", "RESOLVE_IN_ROOT"),
        ("_CAPABILITY_VERSION", "linux/capability.h", "_LINUX_CAPABILITY_VERSION_3"),
    ],
)  # fmt: skip
def test_flags_are_those_of_the_headers(name: str, header: str, defined: str) -> None:
    assert getattr(syscalls, name) == _defined(header)[defined]


@pytest.mark.parametrize("machine", _CALLS)
def test_system_calls_have_the_numbers_of_the_headers(machine: str) -> None:
    numbers = _defined(_CALLS[machine])
    found = {
        "open_tree": syscalls._OPEN_TREE,
        "move_mount": syscalls._MOVE_MOUNT,
        "close_range": syscalls._CLOSE_RANGE,
        "openat2": syscalls._OPENAT2,
        "mount_setattr": syscalls._MOUNT_SETATTR,
        "pivot_root": syscalls._PIVOT_ROOT[machine],
        "capset": syscalls._CAPSET[machine],
        "capget": syscalls._CAPSET[machine] - 1,
        "socket": helper._AF_INET_SOCKET[machine],
    }
    found |= {
        "landlock_create_ruleset": landlock_rules._CREATE_RULESET,
        "landlock_add_rule": landlock_rules._ADD_RULE,
        "landlock_restrict_self": landlock_rules._RESTRICT_SELF,
    }
    assert {name: numbers[f"__NR_{name}"] for name in found} == found
    assert syscalls.MNT_DETACH == 2
    assert syscalls._LAST_CAPABILITY == 63


def test_rights_of_landlock_are_those_of_the_headers() -> None:
    defined = _defined("linux/landlock.h")
    rights = {
        name.removeprefix("LANDLOCK_ACCESS_FS_"): value
        for name, value in defined.items()
        if name.startswith("LANDLOCK_ACCESS_FS_")
    }
    named = {
        "EXECUTE": landlock_rules._EXECUTE,
        "WRITE_FILE": landlock_rules.WRITE_FILE,
        "READ_FILE": landlock_rules._READ_FILE,
        "READ_DIR": landlock_rules.READ_DIR,
        "MAKE_CHAR": landlock_rules.MAKE_CHAR,
        "MAKE_SOCK": landlock_rules._MAKE_SOCK,
        "MAKE_BLOCK": landlock_rules.MAKE_BLOCK,
        "TRUNCATE": landlock_rules._TRUNCATE,
        "IOCTL_DEV": landlock_rules.IOCTL_DEV,
    }
    named = {name: value for name, value in named.items() if name in rights}
    assert len(named) >= 7
    assert {name: rights[name] for name in named} == named
    assert landlock_rules.READ_RIGHTS == 0b1101
    assert landlock_rules.FILE_RIGHTS == 0b1100_0000_0000_0111
    assert landlock_rules._NEVER_GRANTED == 0b1_1000_1010_0100_0000
    assert landlock_rules.MAKE_CHAR | landlock_rules.MAKE_BLOCK == 0b1000_0100_0000
    assert landlock_rules.READ_DIR == 0b1000
    assert landlock_rules.WRITE_FILE == 0b10
    assert landlock_rules.IOCTL_DEV == 1 << 15
    assert landlock_rules._RESOLVE_UNIX == 1 << 16
    assert landlock_rules._RIGHTS_BY_VERSION == {1: 13, 2: 14, 3: 15, 4: 15}
    assert landlock_rules.file_rights(5) == (1 << 16) - 1
    assert (landlock_rules.TCP, landlock_rules.SCOPES) == (0b11, 0b11)
    assert (landlock_rules._VERSION_FLAG, landlock_rules._PATH_BENEATH) == (1, 1)
    assert landlock_rules._SCOPE_SIGNAL == 0b10
    assert (landlock_rules.NETWORK_VERSION, landlock_rules.SCOPES_VERSION) == (4, 6)
    assert landlock_rules.TRUNCATION_VERSION == 3


def test_numbers_of_namespaces_are_those_of_the_headers() -> None:
    defined = _defined("linux/sched.h", "linux/mount.h", "linux/prctl.h")
    # ST_NOSUID, ST_NODEV, ST_NOEXEC, ST_NOATIME, ST_NODIRATIME, ST_RELATIME of statvfs.
    assert {
        2: defined["MS_NOSUID"],
        4: defined["MS_NODEV"],
        8: defined["MS_NOEXEC"],
        1024: defined["MS_NOATIME"],
        2048: defined["MS_NODIRATIME"],
        4096: defined["MS_RELATIME"],
    } == restricted_exec._LOCKED_MOUNT_FLAGS


def test_powers_that_are_given_up_leave_those_over_files() -> None:
    assert restricted_exec._CAPABILITY_COUNT == 64
    kept = "CHOWN DAC_OVERRIDE FOWNER FSETID KILL SETGID SETUID"
    defined = _defined("linux/capability.h")
    assert {defined[f"CAP_{name}"] for name in kept.split()} == restricted_exec._KEPT_CAPABILITIES
    over_files = (helper._DAC_OVERRIDE, helper._DAC_READ_SEARCH, helper._FOWNER)
    assert over_files == tuple(defined[f"CAP_{name}"] for name in ("DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER"))
