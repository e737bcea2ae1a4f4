"""The sandbox: what is there is found, said and applied."""

import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from steno.errors import BadRequest
from steno.permissions.sandbox import command_wrapper as sandboxes
from steno.permissions.sandbox.command_wrapper import (
    _RESTRICTED_EXEC,
    SandboxBackend,
    WrapperPolicy,
    _works,
    find_backend,
    find_replaceable_link,
    wrap_command,
)
from steno.permissions.sandbox.landlock_rules import abi_version
from steno.permissions.sandbox.restricted_exec import main

_LANDLOCK = SandboxBackend("landlock", "")
_APART = SandboxBackend("landlock", "", apart=True)
needs_landlock = pytest.mark.skipif(abi_version() == 0, reason="this kernel has no Landlock")
needs_namespaces = pytest.mark.skipif(
    not _works([*_RESTRICTED_EXEC, "--apart", "--"]), reason="this kernel gives us no namespaces"
)
needs_bwrap = pytest.mark.skipif(
    find_backend().kind != "bwrap",
    reason="bubblewrap is not installed or not permitted; `make test` prints how to install it",
)


def _run(argv: list[str], folder: Path, *, network: bool = False, kind: SandboxBackend = _LANDLOCK) -> int:
    project = folder / "proj"
    project.mkdir(exist_ok=True)
    tmp = folder / "tmp"
    tmp.mkdir(exist_ok=True)
    policy = WrapperPolicy(
        project=str(project),
        tmp=str(tmp),
        network=network,
        kept=(str(project / "kept"),),
        hidden=(str(folder / "secret"), str(folder / "cards" / "one"), str(folder / "gone")),
        shown=(str(folder / "secret" / "open"),),
    )
    made = wrap_command(argv, policy, kind)
    assert made is not None
    return subprocess.run(made, cwd=project, capture_output=True, check=False).returncode


@needs_landlock
def test_landlock_lets_write_in_the_project_and_nowhere_else(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    assert _run(["sh", "-c", "echo x > in"], tmp_path) == 0
    assert (tmp_path / "proj" / "in").read_text(encoding="utf-8") == "x\n"
    assert _run(["sh", "-c", f"echo x > {outside}/out"], tmp_path) != 0
    assert _run(["sh", "-c", f"ln -s {outside} link; echo x > link/out"], tmp_path) != 0
    assert _run(["sh", "-c", f"mv in {outside}/in"], tmp_path) != 0
    assert _run(["sh", "-c", f"mkdir {outside}/d"], tmp_path) != 0
    assert list(outside.iterdir()) == []
    assert _run(["sh", "-c", "cat in > /dev/null"], tmp_path) == 0


@needs_landlock
@pytest.mark.skipif(abi_version() < 4, reason="this kernel's Landlock knows nothing of the network")
def test_landlock_lets_no_tcp_connection_out_unless_told(tmp_path: Path) -> None:
    code = "import socket,errno,sys\ntry: socket.create_connection(('127.0.0.1', 9), 1)\n"
    code += "except OSError as e: sys.exit(e.errno in (errno.EACCES, errno.EPERM))"
    argv = [sys.executable, "-c", code]
    assert _run(argv, tmp_path) == 1
    assert _run(argv, tmp_path, network=True) == 0


@needs_landlock
def test_what_was_given_up_is_not_had_by_children(tmp_path: Path) -> None:
    script = f"sh -c 'sh -c \"echo x > {tmp_path}/out\"'"
    assert _run(["sh", "-c", script], tmp_path) != 0
    assert not (tmp_path / "out").exists()


@needs_landlock
def test_the_exit_code_is_the_programs_own(tmp_path: Path) -> None:
    assert _run(["sh", "-c", "exit 7"], tmp_path) == 7
    assert _run(["no-such-program"], tmp_path) == 127


def test_nothing_runs_that_cannot_be_confined(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    # A folder that is not there cannot be given, so nothing may run.
    gone = str(tmp_path / "gone")
    assert main(["--write", gone, "--", "sh", "-c", f"echo x > {tmp_path}/out"]) == 126
    assert "cannot be sandboxed" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert main(["sh"]) == 126
    assert main(["--"]) == 126


def test_the_projects_modules_are_not_taken_for_ours(tmp_path: Path) -> None:
    made = wrap_command(["true"], WrapperPolicy(project=str(tmp_path)), _LANDLOCK)
    assert made is not None
    assert made[:2] == [sys.executable, "-I"]


@needs_bwrap
def test_bubblewrap_lets_write_in_the_project_and_nowhere_else(tmp_path: Path) -> None:
    kind = find_backend()
    (tmp_path / "proj" / ".git").mkdir(parents=True)
    assert _run(["sh", "-c", "echo x > in"], tmp_path, kind=kind) == 0
    assert _run(["sh", "-c", f"echo x > {tmp_path}/out"], tmp_path, kind=kind) != 0
    assert _run(["sh", "-c", "echo x > .git/hooks/pre-commit"], tmp_path, kind=kind) != 0
    assert _run(["sh", "-c", "mkdir -p .claude; echo x > .claude/settings.json"], tmp_path, kind=kind)


def test_cve_2026_25725_settings_that_are_not_there_yet_are_kept_from_being_made(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("", encoding="utf-8")
    argv = wrap_command(["true"], WrapperPolicy(project=str(tmp_path)), SandboxBackend("bwrap", "", "bwrap")) or []
    real = str(tmp_path.resolve())
    made = argv.index(f"{real}/.claude")
    assert argv[made - 1] == "--ro-bind"
    assert argv.index(f"{real}/.git/hooks") > argv.index("--bind")
    git = argv.index(f"{real}/.git")
    assert argv[git - 1] == "--bind"
    assert git < argv.index(f"{real}/.git/hooks")
    config = argv.index(f"{real}/.git/config")
    assert argv[config - 1] == "--ro-bind"


def test_bubblewrap_is_told_what_the_policy_says(tmp_path: Path) -> None:
    kind = SandboxBackend("bwrap", "", "/usr/bin/bwrap")
    more = tmp_path / "more"
    more.mkdir()
    policy = WrapperPolicy(project=str(tmp_path), writable=(str(more),), tmp=str(more))
    argv = wrap_command(["ls", "-l"], policy, kind) or []
    assert argv[:4] == ["/usr/bin/bwrap", "--ro-bind", "/", "/"]
    assert argv[-3:] == ["--", "ls", "-l"]
    assert "--unshare-net" in argv
    open_policy = WrapperPolicy(project=str(tmp_path), network=True)
    assert "--unshare-net" not in (wrap_command(["ls"], open_policy, kind) or [])


def test_that_there_is_no_sandbox_is_said_plainly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxes, "_BWRAP_PATHS", ())
    monkeypatch.setattr("steno.permissions.sandbox.command_wrapper._landlock_version", lambda: 0)
    found = find_backend()
    assert found.kind is None
    assert "no sandbox" in found.summary
    assert wrap_command(["ls"], WrapperPolicy(project=str(tmp_path))) is None


def test_a_policy_for_no_folder_is_refused(tmp_path: Path) -> None:
    for folder in ("relative", str(tmp_path / "gone")):
        with pytest.raises(BadRequest, match="is not an absolute path"):
            wrap_command(["ls"], WrapperPolicy(project=folder), _LANDLOCK)


def _plain(argv: list[str]) -> bool:
    return "--apart" not in argv


def test_landlock_says_what_it_does_not_hold_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxes, "_BWRAP_PATHS", ())
    monkeypatch.setattr("steno.permissions.sandbox.command_wrapper._landlock_version", lambda: 3)
    monkeypatch.setattr(sandboxes, "_works", _plain)
    found = find_backend()
    assert found.kind == "landlock"
    assert not found.protects_project_rules
    assert "network access allowed" in found.summary
    assert "protected files in the project are writable" in found.summary


# What holds for every way to confine


def _ways() -> list[Any]:
    found = find_backend()
    return [
        pytest.param(_LANDLOCK, id="landlock", marks=needs_landlock),
        pytest.param(_APART, id="apart", marks=(needs_landlock, needs_namespaces)),
        pytest.param(found, id="bwrap", marks=needs_bwrap),
    ]


every_way = pytest.mark.parametrize("way", _ways())
keeping_ways = pytest.mark.parametrize("way", _ways()[1:])


def _secrets(folder: Path) -> None:
    for name in ("secret/open", "secret/deep", "cards"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    for name in ("secret/key", "secret/deep/key", "secret/open/word", "cards/one", "cards/two"):
        (folder / name).write_text("canary", encoding="utf-8")


@every_way
def test_what_is_hidden_is_not_read_and_what_is_beside_it_is(tmp_path: Path, way: SandboxBackend) -> None:
    _secrets(tmp_path)
    (tmp_path / "proj").mkdir()
    (tmp_path / "proj" / "link").symlink_to(tmp_path / "secret")
    for path in ("../secret/key", "../secret/deep/key", "../cards/one", "link/key"):
        assert _run(["grep", "-q", "canary", path], tmp_path, kind=way) != 0, path
    for path in ("../secret/open/word", "../cards/two", "link/open/word"):
        assert _run(["grep", "-q", "canary", path], tmp_path, kind=way) == 0, path
    assert _run(["sh", "-c", "cat /etc/passwd && ls / && echo x > in && cat in"], tmp_path, kind=way) == 0


@every_way
def test_nobody_reads_what_the_program_that_started_it_was_given(tmp_path: Path, way: SandboxBackend) -> None:
    keeper = subprocess.Popen(["sleep", "60"], env={"SECRET": "canary"})
    try:
        look = f"tr '\\0' '\\n' < /proc/{keeper.pid}/environ | grep -q canary"
        assert subprocess.run(["sh", "-c", look], check=False).returncode == 0
        assert _run(["sh", "-c", look], tmp_path, kind=way) != 0
        assert _run(["kill", str(keeper.pid)], tmp_path, kind=way) != 0
        assert keeper.poll() is None
    finally:
        keeper.kill()
        keeper.wait()


@every_way
def test_no_raw_device_is_written_or_made(tmp_path: Path, way: SandboxBackend) -> None:
    assert _run(["sh", "-c", "mknod disk b 1 0"], tmp_path, kind=way) != 0
    assert _run(["sh", "-c", "echo x > /dev/null; head -c 8 /dev/urandom | wc -c"], tmp_path, kind=way) == 0


@keeping_ways
def test_the_projects_own_rules_are_kept(tmp_path: Path, way: SandboxBackend) -> None:
    project = tmp_path / "proj"
    (project / ".git").mkdir(parents=True)
    (project / ".mcp.json").write_text("{}", encoding="utf-8")
    (project / "kept").write_text("as it was", encoding="utf-8")
    (project / ".git" / "config").write_text("", encoding="utf-8")
    for attempt in (
        "echo x > .claude/settings.json",
        "mkdir -p .claude/hooks",
        "rm -rf .claude && mkdir .claude && echo x > .claude/settings.json",
        "mv .claude other",
        "echo x > .git/hooks/pre-commit",
        "mv .git other && cp -r other .git && echo x > .git/hooks/pre-commit",
        "echo x > .git/config",
        "ln -sf /etc/passwd .git/config",
        "echo x > .mcp.json",
        "rm -f .mcp.json",
        "echo x > kept",
        "umount .claude",
        "mount -o remount,rw .claude && echo x > .claude/settings.json",
        "unshare -rm sh -c 'umount .claude && echo x > .claude/settings.json'",
    ):
        assert _run(["sh", "-c", attempt], tmp_path, kind=way) != 0, attempt
    assert list((project / ".claude").iterdir()) == []
    assert list((project / ".git" / "hooks").iterdir()) == []
    assert (project / ".mcp.json").read_text(encoding="utf-8") == "{}"
    assert _run(["sh", "-c", "echo x > .git/HEAD && echo x > in"], tmp_path, kind=way) == 0


@keeping_ways
def test_there_is_no_network_at_all_but_to_itself(tmp_path: Path, way: SandboxBackend) -> None:
    with socket.socket() as served, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as heard:
        served.bind(("127.0.0.1", 0))
        served.listen()
        heard.bind(("127.0.0.1", 0))
        heard.setblocking(False)
        tcp = f"import socket; socket.create_connection({served.getsockname()!r}, 2)"
        udp = (
            "import socket; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM);"
            f"s.sendto(b'x', {heard.getsockname()!r})"
        )
        own = (
            "import socket; s = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen();"
            "socket.create_connection(s.getsockname(), 2)"
        )
        assert _run([sys.executable, "-c", tcp], tmp_path, kind=way) != 0
        assert _run([sys.executable, "-c", tcp], tmp_path, kind=way, network=True) == 0
        _run([sys.executable, "-c", udp], tmp_path, kind=way)
        with pytest.raises(BlockingIOError):
            heard.recv(1)
        assert _run([sys.executable, "-c", udp], tmp_path, kind=way, network=True) == 0
        assert heard.recv(1) == b"x"
        assert _run([sys.executable, "-c", own], tmp_path, kind=way) == 0


def test_a_rule_that_is_a_link_is_told_apart(tmp_path: Path) -> None:
    assert not find_replaceable_link(str(tmp_path))
    (tmp_path / ".claude").symlink_to(tmp_path)
    assert find_replaceable_link(str(tmp_path)) == ".claude"
