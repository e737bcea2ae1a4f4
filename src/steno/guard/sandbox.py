"""Confines what commands can do: bubblewrap where it is, else Landlock, else nothing, and said so.

found = find_sandbox()
found.words                                  # what it holds back and what not
argv = wrap(["bash", "-c", "…"], Policy(project="/home/me/project"))
"""

import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Final, Literal, TypeAlias

import msgspec

from steno.errors import BadRequest

__all__ = ["Policy", "Sandbox", "find_sandbox", "replaceable", "wrap"]

Kind: TypeAlias = Literal["bwrap", "landlock"]
# Folders of a project that say what programs do there; those that are missing count as well.
_KEPT_FOLDERS: Final = (".claude", ".git/hooks", ".vscode", ".idea", ".husky", ".steno")
_KEPT_FILES: Final = (
    ".git/config",
    ".mcp.json",
    ".gitmodules",
    ".envrc",
    ".npmrc",
    ".ripgreprc",
    ".pre-commit-config.yaml",
)
_MADE_IF_MISSING: Final = frozenset({".claude", ".git/hooks"})
# Through these, others run what they are told to, outside of any sandbox.
_SERVICES: Final = (
    "/run/docker.sock",
    "/run/podman/podman.sock",
    "/run/containerd/containerd.sock",
    "/run/dbus/system_bus_socket",
    "/run/systemd/private",
)
_PLACES: Final = ("/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap")
_TCP_FROM: Final = 4


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """What a confined program may do."""

    project: str
    """The folder it may write in."""
    cwd: str = ""
    """Where it begins; in the project when this is empty."""
    writable: tuple[str, ...] = ()
    """Further files and folders that it may write."""
    kept: tuple[str, ...] = ()
    """What it may not change all the same, besides the project's own rules."""
    hidden: tuple[str, ...] = ()
    """What it may not read; what is not there is left out."""
    shown: tuple[str, ...] = ()
    """What it may read of that all the same."""
    network: bool = False
    tmp: str = ""
    """The folder for temporary files; the system's own when it is empty."""


class Sandbox(msgspec.Struct, frozen=True):
    """A way to confine programs that works on this machine."""

    kind: Kind | None
    words: str
    """What it holds back and what not, in plain words."""
    program: str = ""
    apart: bool = False
    """For Landlock: whether programs get files and a network of their own besides."""

    @property
    def keeps(self) -> bool:
        """Whether a project's own rules, which others act on, are kept from being changed."""
        return self.kind == "bwrap" or self.apart


def find_sandbox() -> Sandbox:
    """Look for a way to confine programs, and try it."""
    # Never one that the project or the path of the moment brings along.
    program = next((path for path in _PLACES if os.access(path, os.X_OK)), "")
    if program and _runs([program, "--ro-bind", "/", "/", "--unshare-net", "--unshare-pid", "--"]):
        words = "commands run under bubblewrap: they write only in the project, without network"
        return Sandbox("bwrap", words, program)
    from steno.guard.landlock import abi

    version = abi()
    if version and _runs([*_CONFINE, "--apart", "--"]):
        words = (
            f"commands run under Landlock (version {version}) with files and a network of their"
            " own: they write only in the project, without network"
        )
        return Sandbox("landlock", words, apart=True)
    if version and _runs([*_CONFINE, "--"]):
        net = "no TCP connections, but other network" if version >= _TCP_FROM else "with network"
        words = (
            f"commands run under Landlock (version {version}): they write only in the project,"
            f" {net}; protected files inside the project are not held back"
        )
        return Sandbox("landlock", words)
    return Sandbox(None, "there is no sandbox here: commands can do all that you can do")


# Isolated, so that no module of the project is taken for one of ours.
_CONFINE: Final = (sys.executable, "-I", "-m", "steno.guard.confine")


def _runs(argv: list[str]) -> bool:
    """Whether a way to confine works: many containers forbid what it needs."""
    import shutil
    import subprocess

    true = shutil.which("true", path="/usr/bin:/bin")
    if true is None:
        return False
    try:
        done = subprocess.run([*argv, true], capture_output=True, timeout=5, check=False, cwd="/")
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


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
        return [*_CONFINE, *_landlock(policy, folders, apart=found.apart), "--", *argv]
    return None


def replaceable(project: str) -> str:
    """Return a name of the project's own rules that cannot be kept from changes, if there is one.

    What a link leads to is kept, but the link itself is a name like any other.
    """
    names = (".git", *_KEPT_FOLDERS, *_KEPT_FILES)
    return next((name for name in names if os.path.islink(os.path.join(project, name))), "")


def _folders(policy: Policy) -> tuple[str, ...]:
    import tempfile

    for folder in (policy.project, policy.tmp or tempfile.gettempdir()):
        if not os.path.isabs(folder) or not os.path.isdir(folder):
            raise BadRequest(f"{folder} is no folder that a program can be confined to")
    for path in (*policy.writable, *policy.kept, *policy.hidden, *policy.shown):
        if not os.path.isabs(path):
            raise BadRequest(f"{path} is no path that a program can be confined by")
    # What is not there could be made by nobody, but for the folders above.
    more = (path for path in policy.writable if os.path.exists(path))
    named = (policy.project, *more, policy.tmp or tempfile.gettempdir())
    return tuple(dict.fromkeys(map(os.path.realpath, named)))


def _real(paths: tuple[str, ...]) -> list[str]:
    return [path for path in dict.fromkeys(map(os.path.realpath, paths)) if os.path.exists(path)]


def _services() -> list[str]:
    own = f"/run/user/{os.getuid()}"
    return _real((*_SERVICES, own))


def _landlock(policy: Policy, folders: tuple[str, ...], *, apart: bool) -> list[str]:
    options = ["--network"] if policy.network else []
    for flag, paths in (
        ("--write", folders),
        ("--hide", _real(policy.hidden)),
        ("--show", _real(policy.shown)),
    ):
        for path in paths:
            options += [flag, path]
    if not apart:
        return options
    options += ["--apart"]
    inside = [path for path in _services() if not _holds(path, folders)]
    for path in inside:
        options += ["--cover", path]
    for folder in _in_use(policy, folders):
        pins, kept = _kept(folder, made=folder == os.path.realpath(policy.project))
        for path in pins:
            options += ["--pin", path]
        for path in kept:
            options += ["--keep", path]
    for path in _real(policy.kept):
        options += ["--keep", path]
    return options


def _holds(path: str, folders: Iterable[str]) -> bool:
    """Whether one of the folders is a path, or in it."""
    return any(f"{folder}/".startswith(f"{path}/") for folder in folders)


def _bwrap(program: str, policy: Policy, folders: tuple[str, ...]) -> list[str]:
    argv = [program, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    hidden = _real(policy.hidden)
    covered = [path for path in _services() if not _holds(path, folders)]
    outer = [path for path in hidden if _holds(path, folders)]
    # What lies in another must come after it, or would be covered by it again.
    for path in sorted((*outer, *covered)):
        argv += _covered(path)
    for folder in folders:
        argv += ["--bind", folder, folder]
    for folder in _in_use(policy, folders):
        pins, kept = _kept(folder, made=folder == os.path.realpath(policy.project))
        for path in pins:
            argv += ["--bind", path, path]
        for path in kept:
            argv += ["--ro-bind", path, path]
    for path in _real(policy.kept):
        argv += ["--ro-bind", path, path]
    for path in sorted(set(hidden) - set(outer)):
        argv += _covered(path)
    for path in _real(policy.shown):
        argv += ["--ro-bind", path, path]
    # At last: until then, what is shown inside of them gets a place there.
    for path in filter(os.path.isdir, (*covered, *hidden)):
        argv += ["--remount-ro", path]
    argv += ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--new-session"]
    argv += [] if policy.network else ["--unshare-net"]
    # As an administrator it would keep powers that lead out again.
    argv += ["--cap-drop", "ALL", "--die-with-parent"]
    return [*argv, "--chdir", os.path.realpath(policy.cwd or policy.project)]


def _covered(path: str) -> list[str]:
    if os.path.isdir(path):
        return ["--perms", "0555", "--tmpfs", path]
    return ["--ro-bind", "/dev/null", path]


def _in_use(policy: Policy, folders: tuple[str, ...]) -> list[str]:
    """Return the folders that are worked in; in the one for temporary files nobody reads rules."""
    used = (policy.project, *policy.writable)
    real = dict.fromkeys(map(os.path.realpath, used))
    return [folder for folder in real if folder in folders and os.path.isdir(folder)]


def _kept(folder: str, *, made: bool) -> tuple[list[str], list[str]]:
    """Return what must not be moved away, and what must not be changed: a project's own rules.

    Some are `made` where there are none yet, so that nobody else makes them.
    """
    git = os.path.join(folder, ".git")
    pins = [git] if os.path.isdir(git) and not os.path.islink(git) else []
    found: list[str] = [git] if os.path.isfile(git) else []
    for name in (*_KEPT_FOLDERS, *_KEPT_FILES):
        path = os.path.join(folder, name)
        if made and name in _MADE_IF_MISSING and not os.path.lexists(path):
            # Without a repository there is no place for hooks.
            with suppress(OSError):
                os.mkdir(path)
        if os.path.exists(path):
            found.append(os.path.realpath(path))
    return pins, list(dict.fromkeys(found))
