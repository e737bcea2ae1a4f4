"""Which files of the system a confined program sees, and which it never does, name by name."""

import io
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from steno.permissions.sandbox import path_plan
from steno.permissions.sandbox.path_plan import PathPlan, SandboxSetupError
from steno.permissions.shell.command import word_set

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the folders are those of Linux")
_KERNEL = word_set(
    "binfmt_misc bpf cgroup cgroup2 configfs debugfs devpts devtmpfs efivarfs fusectl mqueue nsfs"
    " proc pstore rpc_pipefs securityfs selinuxfs sysfs tracefs"
)
_HIDDEN = word_set("boot dev etc home lost+found media mnt proc root run sys tmp var")
_PROGRAMS = word_set("/usr /bin /sbin /lib /lib32 /lib64 /libx32 /nix/store /gnu/store")
_SETTINGS = word_set(
    "ld.so.cache ld.so.conf ld.so.conf.d localtime timezone alternatives terminfo locale.alias"
    " locale.conf magic magic.mime mime.types perl ssl/openssl.cnf pki/tls/openssl.cnf"
    " crypto-policies/back-ends python3 python3.11"
)


@pytest.fixture
def every_path(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take every path for one that exists and is no link."""

    def same(_: PathPlan, path: str) -> str:
        return path

    monkeypatch.setattr(PathPlan, "resolve", same)


def _mounted(monkeypatch: pytest.MonkeyPatch, *mounts: tuple[str, str]) -> None:
    lines = [f"1 2 0:1 / {at} rw shared:1 - {kind} x rw\n" for at, kind in mounts]
    text = "".join(lines).encode()

    def opened(path: str, mode: str) -> io.BytesIO:
        assert (path, mode) == ("/proc/self/mountinfo", "rb")
        return io.BytesIO(text)

    monkeypatch.setattr(path_plan, "open", opened, raising=False)


@pytest.mark.parametrize("kind", sorted(_KERNEL))
def test_file_systems_of_the_kernel_are_denied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    at = tmp_path / "a b"
    at.mkdir()
    shown = str(at).replace(" ", "\\040")
    _mounted(monkeypatch, (shown, kind), (shown, "ext4"), ("/other", kind))
    assert list(path_plan._kernel_mounts({str(tmp_path)})) == [str(at)]
    assert list(path_plan._kernel_mounts({str(at), str(tmp_path / "c")})) == []


def test_other_file_systems_and_missing_places_are_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").mkdir()
    kinds = ("ext4", "tmpfs", "overlay", "fuse.proc", "procx", "")
    mounts = [(str(tmp_path / "a"), kind) for kind in kinds]
    _mounted(monkeypatch, *mounts, (str(tmp_path / "none"), "proc"))
    assert list(path_plan._kernel_mounts({str(tmp_path)})) == []


@pytest.mark.usefixtures("every_path")
@pytest.mark.parametrize("accounts", [False, True])
def test_the_files_that_every_program_may_read(monkeypatch: pytest.MonkeyPatch, *, accounts: bool) -> None:
    listed = {"/etc": ["python3", "python3.11", "python2", "shadow", "x-python3"]}
    monkeypatch.setattr(os, "listdir", listed.__getitem__)
    users = {"/etc/passwd", "/etc/group", "/etc/nsswitch.conf"} if accounts else set[str]()
    found = path_plan.system_paths(accounts=accounts)
    assert found.readable == {*_PROGRAMS, *(f"/etc/{name}" for name in _SETTINGS), *users}
    assert not (found.writable | found.denied | found.read_only | found.missing)


def _policy(folder: Path, **more: list[str]) -> dict[str, Any]:
    lists = ("readable", "writable", "read_only", "denied", "programs")
    policy: dict[str, Any] = {name: [] for name in lists}
    return {**policy, "cwd": str(folder), "scratch": str(folder), **more}


@pytest.mark.usefixtures("every_path")
def test_the_root_folder_stands_for_the_rest_of_the_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "listdir", {"/": [*_HIDDEN, "srv", "data", "opt"]}.__getitem__)
    _mounted(monkeypatch)
    found = path_plan.plan_paths(_policy(tmp_path, readable=["/"]), PathPlan())
    assert found.readable == {"/srv", "/data", "/opt"}
    with pytest.raises(SandboxSetupError, match="the root directory cannot be writable"):
        path_plan.plan_paths(_policy(tmp_path, writable=["/"]), PathPlan())


@pytest.mark.usefixtures("every_path")
@pytest.mark.parametrize("path", ["/proc", "/sys", "/dev", "/proc/1", "/sys/kernel", "/dev/pts"])
def test_folders_of_the_kernel_are_no_working_folders(tmp_path: Path, path: str) -> None:
    with pytest.raises(SandboxSetupError) as caught:
        path_plan.plan_paths(_policy(tmp_path, readable=[path]), PathPlan())
    assert str(caught.value) == f"{path!r} exposes data of the kernel and of other processes"


@pytest.mark.usefixtures("every_path")
def test_a_program_of_opt_brings_its_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _mounted(monkeypatch)
    programs = ["/opt/tool/bin", "/opt//other/./x", "/usr/opt/no/bin", "/opt"]
    found = path_plan.plan_paths(_policy(tmp_path, programs=programs), PathPlan())
    assert found.readable == {*programs, "/opt/tool", "/opt/other"}
