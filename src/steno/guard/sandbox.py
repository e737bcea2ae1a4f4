"""Confines what commands can do: bubblewrap where it is, else Landlock, else nothing, and said so.

found = find_sandbox()
found.words                                  # what it holds back and what not
argv = wrap(["bash", "-c", "…"], Policy(project="/home/me/project"))
"""

import os
import shutil
import sys
from typing import Final, Literal, TypeAlias

import msgspec

from steno.errors import BadRequest

__all__ = ["Policy", "Sandbox", "find_sandbox", "wrap"]

Kind: TypeAlias = Literal["bwrap", "landlock"]
# Folders of a project that say what programs do there; those that are missing count as well.
_KEPT_FOLDERS: Final = (".claude", ".git/hooks", ".vscode", ".idea", ".husky")
_KEPT_FILES: Final = (".git/config", ".mcp.json", ".gitmodules", ".envrc")
_MADE_IF_MISSING: Final = frozenset({".claude", ".git/hooks"})
_PLACES: Final = ("/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap")


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """What a confined program may do besides reading."""

    project: str
    """The folder it may write in."""
    writable: tuple[str, ...] = ()
    """Further folders that it may write in."""
    network: bool = False
    cwd: str = ""
    """Where it begins; in the project's folder when it is empty."""
    tmp: str = ""
    """The folder for temporary files; the system's own when it is empty."""


class Sandbox(msgspec.Struct, frozen=True):
    """A way to confine programs that works on this machine."""

    kind: Kind | None
    words: str
    """What it holds back and what not, in plain words."""
    program: str = ""


def find_sandbox() -> Sandbox:
    """Look for a way to confine programs."""
    # Never one that the project or the path of the moment brings along.
    program = next((path for path in _PLACES if os.access(path, os.X_OK)), "")
    if program and _works(program):
        words = "commands run under bubblewrap: they write only in the project, without network"
        return Sandbox("bwrap", words, program)
    from steno.guard.landlock import abi

    version = abi()
    if version:
        net = "no TCP connections, but other network" if version >= _TCP_FROM else "with network"
        words = (
            f"commands run under Landlock (version {version}): they write only in the project,"
            f" {net}; protected files inside the project are not held back"
        )
        return Sandbox("landlock", words)
    return Sandbox(None, "there is no sandbox here: commands can do all that you can do")


_TCP_FROM: Final = 4


def _works(program: str) -> bool:
    """Whether bubblewrap may make the namespaces it needs; many containers forbid it."""
    import subprocess

    true = shutil.which("true", path="/usr/bin:/bin")
    if true is None:
        return False
    argv = [program, "--ro-bind", "/", "/", "--unshare-net", "--unshare-pid", "--", true]
    try:
        return subprocess.run(argv, capture_output=True, timeout=5, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def wrap(argv: list[str], policy: Policy, sandbox: Sandbox | None = None) -> list[str] | None:
    """Return the arguments that run a program confined; None when nothing here can confine it.

    Raises:
        BadRequest: a folder of the policy is not absolute, or not there.
    """
    found = find_sandbox() if sandbox is None else sandbox
    folders = _folders(policy)
    if found.kind == "bwrap":
        return [*_bwrap(found.program, policy, folders), "--", *argv]
    if found.kind == "landlock":
        options = ["--network"] if policy.network else []
        for folder in folders:
            options += ["--write", folder]
        # Isolated, so that no module of the project is taken for one of ours.
        return [sys.executable, "-I", "-m", "steno.guard.confine", *options, "--", *argv]
    return None


def _folders(policy: Policy) -> tuple[str, ...]:
    import tempfile

    named = (policy.project, *policy.writable, policy.tmp or tempfile.gettempdir())
    for folder in named:
        if not os.path.isabs(folder) or not os.path.isdir(folder):
            raise BadRequest(f"{folder} is no folder that a program can be confined to")
    return tuple(dict.fromkeys(map(os.path.realpath, named)))


def _bwrap(program: str, policy: Policy, folders: tuple[str, ...]) -> list[str]:
    argv = [program, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    for folder in folders:
        argv += ["--bind", folder, folder]
    # After the folders they lie in, or those would cover them again.
    for folder in folders[: 1 + len(policy.writable)]:
        argv += _kept(folder)
    argv += ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--new-session"]
    argv += [] if policy.network else ["--unshare-net"]
    return [*argv, "--die-with-parent", "--chdir", os.path.realpath(policy.cwd or policy.project)]


def _kept(folder: str) -> list[str]:
    """Return what keeps a project's own rules from being written, even where there are none yet."""
    argv: list[str] = []
    for name in (*_KEPT_FOLDERS, *_KEPT_FILES):
        path = os.path.join(folder, name)
        if os.path.lexists(path):
            argv += ["--ro-bind", os.path.realpath(path), path]
        elif name in _MADE_IF_MISSING and os.path.isdir(os.path.dirname(path)):
            argv += ["--perms", "0555", "--tmpfs", path, "--remount-ro", path]
    return argv
