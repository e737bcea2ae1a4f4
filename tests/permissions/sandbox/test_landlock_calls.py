"""The Landlock rules that confine a program, noted instead of made."""

import ctypes
import os
from pathlib import Path
from typing import Any

import pytest
from tests.permissions.sandbox.noted_calls import LandlockCalls, Library

from steno.permissions.sandbox import landlock_rules, restricted_exec, syscalls
from steno.permissions.sandbox.landlock_rules import LandlockRuleset
from steno.permissions.sandbox.path_plan import PathPlan, SandboxSetupError


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Library:
    found = Library()

    def load(_name: None, *, use_errno: bool) -> Library:
        assert use_errno
        return found

    monkeypatch.setattr(ctypes, "CDLL", load)
    return found


_VERSIONS = [
    (1, 0x1FFF, 0, 0, 8),
    (2, 0x3FFF, 0, 0, 8),
    (3, 0x7FFF, 0, 0, 8),
    (4, 0x7FFF, 3, 0, 16),
    (5, 0xFFFF, 3, 0, 16),
    (6, 0xFFFF, 3, 3, 24),
    (7, 0xFFFF, 3, 3, 24),
]


@pytest.mark.parametrize(("abi", "files", "network", "scopes", "size"), _VERSIONS)
def test_rights_of_each_version(
    monkeypatch: pytest.MonkeyPatch, abi: int, files: int, network: int, scopes: int, size: int
) -> None:
    found = LandlockCalls(abi)
    monkeypatch.setattr(syscalls, "syscall", found.call)
    ruleset, handled = landlock_rules._create_ruleset(abi)
    os.close(ruleset)
    assert handled == files
    # The kernel ignores what lies beyond the size.
    assert found.made == [(files, 3, scopes, size, 0)]
    assert network in (0, 3)
    assert landlock_rules.abi_version() == abi


def test_sockets_are_handled_where_the_kernel_knows_them(monkeypatch: pytest.MonkeyPatch) -> None:
    found = LandlockCalls(9)
    monkeypatch.setattr(syscalls, "syscall", found.call)
    ruleset, handled = landlock_rules._create_ruleset(9)
    os.close(ruleset)
    assert handled == 0x1FFFF
    assert [each[0] for each in found.made] == [0x1FFFF]
    refused: list[int] = []

    def refuse(_number: int, rules: Any, *_: Any) -> int:
        refused.append(rules._obj.files)
        return -1

    monkeypatch.setattr(syscalls, "syscall", refuse)
    with pytest.raises(SandboxSetupError, match="refused a Landlock ruleset"):
        landlock_rules._create_ruleset(9)
    assert refused == [0x1FFFF, 0xFFFF]


def test_signals_are_isolated(monkeypatch: pytest.MonkeyPatch) -> None:
    found = LandlockCalls(6)
    monkeypatch.setattr(syscalls, "syscall", found.call)
    landlock_rules.limit_signals()
    assert found.made == [(0, 0, 2, 24, 0)]
    assert found.restricted == 1


def _world(tmp_path: Path) -> PathPlan:
    base = Path(os.path.realpath(tmp_path))
    for name in ("r/a/deep", "r/b", "w/x/deep", "w/y", "scratch"):
        (base / name).mkdir(parents=True)
    for name in ("r/file", "r/a/secret", "r/a/plain", "w/file", "w/x/kept", "w/x/other"):
        (base / name).write_text("x", encoding="utf-8")
    wanted = PathPlan()
    wanted.readable = {str(base / "r")}
    wanted.writable = {str(base / "w"), str(base / "scratch")}
    wanted.scratch = str(base / "scratch")
    return wanted


def _filled(
    monkeypatch: pytest.MonkeyPatch, wanted: PathPlan, *, mounted: bool, list_denied: bool = False
) -> dict[str, int]:
    found = LandlockCalls(6)
    monkeypatch.setattr(syscalls, "syscall", _opening(found))
    rules = LandlockRuleset(6)
    rules.add_rules(wanted, has_mounts=mounted, list_denied=list_denied)
    rules.apply()
    assert found.restricted == 1
    base = str(Path(wanted.scratch).parent)
    return {
        path.removeprefix(f"{base}/"): allowed
        for path, allowed in found.rules.items()
        if path.startswith(f"{base}/") or mounted
    }


def _opening(found: LandlockCalls) -> Any:
    real = syscalls.syscall

    def call(number: int, *arguments: Any) -> int:
        return real(number, *arguments) if number == 437 else found.call(number, *arguments)

    return call


_READ, _READ_FILE, _LIST = 0b1101, 0b101, 0b1000
_WRITE = 0xFFFF & ~(1 << 6 | 1 << 9 | 1 << 11 | 1 << 15)
_WRITE_FILE = 0b111 | 1 << 14


@pytest.mark.skipif(os.name != "posix", reason="Linux alone")
def test_rules_without_exceptions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = _filled(monkeypatch, _world(tmp_path), mounted=False)
    assert found == {"r": _READ, "w": _WRITE, "scratch": _WRITE}


def test_rules_of_devices_and_of_the_private_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = _filled(monkeypatch, _world(tmp_path), mounted=True)
    devices = {path: found[path] for path in found if path.startswith("/dev/")}
    assert devices == dict.fromkeys(
        (f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom")), 0b110 | 1 << 14
    )
    assert (found["/"], found["/proc"], found["/etc"]) == (_LIST, 0b1100, 0b1100)


def test_rules_around_what_is_denied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = _world(tmp_path)
    base = str(Path(wanted.scratch).parent)
    wanted.denied = {f"{base}/r/a/secret"}
    found = _filled(monkeypatch, wanted, mounted=False)
    assert found == {
        "r": _LIST,
        "r/a": _LIST,
        "r/a/deep": _READ,
        "r/a/plain": _READ_FILE,
        "r/b": _READ,
        "r/file": _READ_FILE,
        "w": _WRITE,
        "scratch": _WRITE,
    }
    wanted.denied = {f"{base}/r/a/deep"}
    hidden = _filled(monkeypatch, wanted, mounted=False)
    assert "r" not in hidden
    assert "r/a" not in hidden
    assert hidden["r/a/secret"] == _READ_FILE
    listed = _filled(monkeypatch, wanted, mounted=False, list_denied=True)
    assert (listed["r"], listed["r/a"]) == (_LIST, _LIST)


def test_rules_around_what_is_read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = _world(tmp_path)
    base = str(Path(wanted.scratch).parent)
    wanted.read_only = {f"{base}/w/x/kept"}
    wanted.missing = {f"{base}/w/y/new"}
    found = _filled(monkeypatch, wanted, mounted=False)
    assert found == {
        "r": _READ,
        "w": _LIST,
        "w/x": _LIST,
        "w/y": _LIST,
        "w/x/kept": _READ_FILE,
        "w/x/other": _WRITE_FILE,
        "w/x/deep": _WRITE,
        "w/file": _WRITE_FILE,
        "scratch": _WRITE,
    }
    # Mounts hold what is read-only, and a right for the whole is enough.
    mounted = _filled(monkeypatch, wanted, mounted=True)
    assert mounted["w"] == _WRITE
    assert "w/file" not in mounted


def test_a_folder_that_cannot_be_opened_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = _world(tmp_path)
    wanted.readable = {str(tmp_path / "none")}
    with pytest.raises(SandboxSetupError, match="cannot open"):
        _filled(monkeypatch, wanted, mounted=False)


@pytest.mark.parametrize(("abi", "expected"), [(abi, rest) for abi, *rest in _VERSIONS])
def test_rules_of_the_sandbox(
    library: Library, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, abi: int, expected: tuple[int, int, int, int]
) -> None:
    files, network, scopes, size = expected
    found = LandlockCalls(abi)
    monkeypatch.setattr(syscalls, "syscall", found.call)
    base = os.path.realpath(tmp_path)
    (tmp_path / "write").mkdir()
    (tmp_path / "file").write_text("x", encoding="utf-8")
    restricted_exec.restrict_process([f"{base}/write", f"{base}/file"], network=False)
    restricted_exec.restrict_process([], network=True)
    assert found.made == [(files, network, scopes, size, 0), (files, 0, scopes, size, 0)]
    assert found.restricted == 2
    given = files & ~(1 << 6 | 1 << 11)
    on_files = 0b111 | 1 << 14 | 1 << 15
    assert found.rules["/"] == _READ
    assert found.rules[f"{base}/write"] == given
    assert found.rules[f"{base}/file"] == given & on_files
    assert found.rules["/dev/null"] == (0b111 | 1 << 15) & files
    dropped = [call[2] for call in library.calls if call[:2] == ("prctl", 24)]
    assert dropped[: len(dropped) // 2] == [each for each in range(64) if each not in {0, 1, *range(3, 8)}]
    assert library.calls[-1] == ("prctl", 38, 1, 0, 0, 0)


def test_what_the_sandbox_hides_is_not_named(library: Library, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert library.calls == []
    found = LandlockCalls(6)
    monkeypatch.setattr(syscalls, "syscall", found.call)
    base = os.path.realpath(tmp_path)
    for name in ("hidden", "open", "hidden/shown"):
        (tmp_path / name).mkdir()
    (tmp_path / "file").write_text("x", encoding="utf-8")
    restricted_exec.restrict_process([], network=True, hidden=[f"{base}/hidden"], readable=[f"{base}/hidden/shown"])
    assert found.rules["/"] == _LIST
    assert found.rules[f"{base}/open"] == _READ
    assert found.rules[f"{base}/file"] == _READ_FILE
    assert found.rules[f"{base}/hidden/shown"] == _READ
    assert f"{base}/hidden" not in found.rules
    assert base not in found.rules
