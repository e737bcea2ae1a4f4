"""The sandbox: what is there is found, said and applied."""

import subprocess
import sys
from pathlib import Path

import pytest

from steno.errors import BadRequest
from steno.guard import sandbox as sandboxes
from steno.guard.confine import main
from steno.guard.landlock import abi
from steno.guard.sandbox import Policy, Sandbox, find_sandbox, wrap

_LANDLOCK = Sandbox("landlock", "")
needs_landlock = pytest.mark.skipif(abi() == 0, reason="this kernel has no Landlock")
needs_bwrap = pytest.mark.skipif(
    find_sandbox().kind != "bwrap", reason="there is no bubblewrap here, or it may not be used"
)


def _run(argv: list[str], folder: Path, *, network: bool = False, kind: Sandbox = _LANDLOCK) -> int:
    project = folder / "proj"
    project.mkdir(exist_ok=True)
    tmp = folder / "tmp"
    tmp.mkdir(exist_ok=True)
    made = wrap(argv, Policy(project=str(project), tmp=str(tmp), network=network), kind)
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
@pytest.mark.skipif(abi() < 4, reason="this kernel's Landlock knows nothing of the network")
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


def test_nothing_runs_that_cannot_be_confined(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # A folder that is not there cannot be given, so nothing may run.
    gone = str(tmp_path / "gone")
    assert main(["--write", gone, "--", "sh", "-c", f"echo x > {tmp_path}/out"]) == 126
    assert "cannot be confined" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    assert main(["sh"]) == 126
    assert main(["--"]) == 126


def test_the_projects_modules_are_not_taken_for_ours(tmp_path: Path) -> None:
    made = wrap(["true"], Policy(project=str(tmp_path)), _LANDLOCK)
    assert made is not None
    assert made[:2] == [sys.executable, "-I"]


@needs_bwrap
def test_bubblewrap_lets_write_in_the_project_and_nowhere_else(tmp_path: Path) -> None:
    kind = find_sandbox()
    (tmp_path / "proj" / ".git").mkdir(parents=True)
    assert _run(["sh", "-c", "echo x > in"], tmp_path, kind=kind) == 0
    assert _run(["sh", "-c", f"echo x > {tmp_path}/out"], tmp_path, kind=kind) != 0
    assert _run(["sh", "-c", "echo x > .git/hooks/pre-commit"], tmp_path, kind=kind) != 0
    assert _run(
        ["sh", "-c", "mkdir -p .claude; echo x > .claude/settings.json"], tmp_path, kind=kind
    )


def test_cve_2026_25725_settings_that_are_not_there_yet_are_kept_from_being_made(
    tmp_path: Path,
) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "config").write_text("", encoding="utf-8")
    argv = wrap(["true"], Policy(project=str(tmp_path)), Sandbox("bwrap", "", "bwrap")) or []
    real = str(tmp_path.resolve())
    made = argv.index(f"{real}/.claude")
    assert argv[made - 3 : made] == ["--perms", "0555", "--tmpfs"]
    assert argv.index(f"{real}/.git/hooks") > argv.index("--bind")
    config = argv.index(f"{real}/.git/config")
    assert argv[config - 1] == "--ro-bind"


def test_bubblewrap_is_told_what_the_policy_says(tmp_path: Path) -> None:
    kind = Sandbox("bwrap", "", "/usr/bin/bwrap")
    more = tmp_path / "more"
    more.mkdir()
    policy = Policy(project=str(tmp_path), writable=(str(more),), tmp=str(more))
    argv = wrap(["ls", "-l"], policy, kind) or []
    assert argv[:4] == ["/usr/bin/bwrap", "--ro-bind", "/", "/"]
    assert argv[-3:] == ["--", "ls", "-l"]
    assert "--unshare-net" in argv
    open_policy = Policy(project=str(tmp_path), network=True)
    assert "--unshare-net" not in (wrap(["ls"], open_policy, kind) or [])


def test_that_there_is_no_sandbox_is_said_plainly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandboxes, "_PLACES", ())
    monkeypatch.setattr("steno.guard.landlock.abi", lambda: 0)
    found = find_sandbox()
    assert found.kind is None
    assert "no sandbox" in found.words
    assert wrap(["ls"], Policy(project=str(tmp_path))) is None


def test_a_policy_for_no_folder_is_refused(tmp_path: Path) -> None:
    for folder in ("relative", str(tmp_path / "gone")):
        with pytest.raises(BadRequest, match="no folder"):
            wrap(["ls"], Policy(project=folder), _LANDLOCK)


def test_landlock_says_what_it_does_not_hold_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandboxes, "_PLACES", ())
    monkeypatch.setattr("steno.guard.landlock.abi", lambda: 3)
    found = find_sandbox()
    assert found.kind == "landlock"
    assert "with network" in found.words
    assert "not held back" in found.words
