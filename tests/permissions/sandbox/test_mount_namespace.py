"""The mounts of the private root as a confined command sees them: none has a right too many."""

import sys
from pathlib import Path

import pytest
from tests.permissions.sandbox.boxes import Box, World

from steno.permissions.sandbox.policy import SandboxPolicy

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux only")
_WRITABLE = {"rw", "nosuid", "nodev"}
_READ_ONLY = {"ro", "nosuid", "nodev"}
_NOTHING = {"ro", "nosuid", "nodev", "noexec"}
_DEVICE = {"ro", "nosuid", "noexec"}
_ACCESS_TIMES = {"relatime", "noatime", "nodiratime", "strictatime", "lazytime"}


@pytest.fixture
def policy(world: World) -> SandboxPolicy:
    work = world.work
    return SandboxPolicy(
        cwd=str(work),
        readable=(str(work), str(world.outside)),
        scratch=str(world.scratch),
        writable=(str(work),),
        read_only=(str(work / "sub"),),
        denied=(str(work / "secret.txt"), str(work / "hidden")),
    )


def _mounts(box: Box, policy: SandboxPolicy) -> dict[str, tuple[set[str], str, set[str]]]:
    """Return the options, the type and the options of the file system of each mount."""
    done = box.bash("cat /proc/self/mountinfo", policy)
    if box.landlock_alone or done.code:
        pytest.skip("there is no private root, or no /proc in it")
    found: dict[str, tuple[set[str], str, set[str]]] = {}
    for line in done.out.splitlines():
        mount, _, system = line.partition(" - ")
        fields, kind = mount.split(" "), system.split(" ")
        options = set(fields[5].split(",")) - _ACCESS_TIMES
        found[fields[4]] = (options, kind[0], set(kind[2].split(",")))
    return found


def test_every_mount_has_the_rights_of_its_tree_alone(box: Box, world: World, policy: SandboxPolicy) -> None:
    mounts = _mounts(box, policy)
    work = str(world.work)
    expected = {
        "/": _READ_ONLY,
        "/usr": _READ_ONLY,
        "/proc": _NOTHING,
        str(world.scratch): _WRITABLE,
        str(world.outside): _READ_ONLY,
        work: _WRITABLE,
        f"{work}/sub": _READ_ONLY,
        f"{work}/secret.txt": _NOTHING,
        f"{work}/hidden": _NOTHING,
        **{f"/dev/{name}": _DEVICE for name in ("null", "zero", "full", "random", "urandom")},
    }
    assert {path: mounts[path][0] for path in expected} == expected
    assert {tuple(sorted(each[0])) for each in mounts.values()} == {tuple(sorted(each)) for each in expected.values()}
    assert [path for path in mounts if path.startswith("/dev")] == [
        path for path in expected if path.startswith("/dev")
    ]
    assert mounts["/"][1:] == ("tmpfs", mounts["/"][2] | {"size=4096k", "mode=755"})
    assert mounts["/proc"][1:] == ("proc", {"ro", "subset=pid"})


def test_the_private_root_holds_links_accounts_and_nothing_else(box: Box, world: World, policy: SandboxPolicy) -> None:
    _mounts(box, policy)
    script = (
        "stat -c '%n %a %F' / /dev /dev/.denied /etc /etc/passwd /etc/hosts /proc;"
        " readlink /dev/fd /dev/stdin /dev/stdout /dev/stderr /bin;"
        " ls -A / | sort; cat /etc/nsswitch.conf /etc/hosts; head -n 1 /etc/passwd /etc/group"
    )
    done = box.bash(script, policy)
    top = {"dev", "etc", "proc", "usr", Path(world.base).parts[1]}
    links = {name for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32") if _links(name)}
    temporary = {"tmp"}
    expected = [
        "/ 755 directory",
        "/dev 755 directory",
        "/dev/.denied 700 directory",
        "/etc 755 directory",
        "/etc/passwd 644 regular file",
        "/etc/hosts 644 regular file",
        "/proc 555 directory",
        *("/proc/self/fd", "/proc/self/fd/0", "/proc/self/fd/1", "/proc/self/fd/2"),
        str(Path("/bin").readlink()),
        *sorted(top | links | temporary),
        *("passwd: files", "group: files", "hosts: files"),
        *("127.0.0.1 localhost", "::1 localhost"),
        *("==> /etc/passwd <==", "root:x:0:0:root:/:/bin/sh", ""),
        *("==> /etc/group <==", "root:x:0:"),
    ]
    assert done.out.splitlines() == expected, done.err


def _links(name: str) -> bool:
    return Path("/", name).is_symlink()
