"""Wraps commands in a sandbox: bubblewrap if installed, else Landlock, else reports none.

backend = find_backend()
backend.summary                              # what it restricts and what not
argv = wrap_command(["bash", "-c", "…"], WrapperPolicy(project="/home/me/project"))
"""

import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from typing import Final, Literal, TypeAlias

import msgspec

from steno.errors import BadRequest

BackendKind: TypeAlias = Literal["bwrap", "landlock"]
# Folders of a project that say what programs do there; those that are missing count as well.
_PROTECTED_FOLDERS: Final = (".claude", ".git/hooks", ".vscode", ".idea", ".husky", ".steno")
_PROTECTED_FILES: Final = (
    ".git/config",
    ".mcp.json",
    ".gitmodules",
    ".envrc",
    ".npmrc",
    ".ripgreprc",
    ".pre-commit-config.yaml",
)
_CREATED_FOLDERS: Final = frozenset({".claude", ".git/hooks"})
# Through these, others run what they are told to, outside of any sandbox.
_SERVICE_SOCKETS: Final = (
    "/run/docker.sock",
    "/run/podman/podman.sock",
    "/run/containerd/containerd.sock",
    "/run/dbus/system_bus_socket",
    "/run/systemd/private",
)
_BWRAP_PATHS: Final = ("/usr/bin/bwrap", "/bin/bwrap", "/usr/local/bin/bwrap")
_TCP_VERSION: Final = 4


class WrapperPolicy(msgspec.Struct, frozen=True, kw_only=True):
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


class SandboxBackend(msgspec.Struct, frozen=True):
    """A way to confine programs that works on this machine."""

    kind: BackendKind | None
    summary: str
    """What it holds back and what not, in plain words."""
    program: str = ""
    apart: bool = False
    """For Landlock: whether programs get files and a network of their own besides."""

    @property
    def protects_project_rules(self) -> bool:
        """Whether a project's own rules, which others act on, are kept from being changed."""
        return self.kind == "bwrap" or self.apart


def find_backend() -> SandboxBackend:
    """Look for a way to confine programs, and try it."""
    # Never one that the project or the path of the moment brings along.
    program = next((path for path in _BWRAP_PATHS if os.access(path, os.X_OK)), "")
    if program and _works([program, "--ro-bind", "/", "/", "--unshare-net", "--unshare-pid", "--"]):
        summary = "commands run under bubblewrap: they write only in the project, without network"
        return SandboxBackend("bwrap", summary, program)
    version = _landlock_version()
    if version and _works([*_RESTRICTED_EXEC, "--apart", "--"]):
        summary = (
            f"commands run under Landlock (version {version}) with files and a network of their"
            " own: they write only in the project, without network"
        )
        return SandboxBackend("landlock", summary, apart=True)
    if version and _works([*_RESTRICTED_EXEC, "--"]):
        network_note = "no TCP connections, but other network" if version >= _TCP_VERSION else "with network"
        summary = (
            f"commands run under Landlock (version {version}): they write only in the project,"
            f" {network_note}; protected files inside the project are not held back"
        )
        return SandboxBackend("landlock", summary)
    return SandboxBackend(None, "there is no sandbox here: commands can do all that you can do")


def _landlock_version() -> int:
    """Return the version of Landlock that this system has; 0 when it has none."""
    if sys.platform != "linux":
        return 0
    from steno.permissions.sandbox.landlock_rules import abi_version

    return abi_version()


# Isolated, so that no module of the project is taken for one of ours.
_RESTRICTED_EXEC: Final = (sys.executable, "-I", "-m", "steno.permissions.sandbox.restricted_exec")


def _works(argv: list[str]) -> bool:
    """Whether a way to confine works: many containers forbid what it needs."""
    import shutil
    import subprocess

    true_program = shutil.which("true", path="/usr/bin:/bin")
    if true_program is None:
        return False
    try:
        process = subprocess.run([*argv, true_program], capture_output=True, timeout=5, check=False, cwd="/")
    except (OSError, subprocess.TimeoutExpired):
        return False
    return process.returncode == 0


def wrap_command(argv: list[str], policy: WrapperPolicy, sandbox: SandboxBackend | None = None) -> list[str] | None:
    """Return the arguments that run a program confined; None when nothing here can confine it.

    Raises:
        BadRequest: a folder of the policy is not absolute, or not there.
    """
    backend = find_backend() if sandbox is None else sandbox
    folders = _writable_folders(policy)
    if backend.kind == "bwrap":
        return [*_bwrap_arguments(backend.program, policy, folders), "--", *argv]
    if backend.kind == "landlock":
        return [*_RESTRICTED_EXEC, *_landlock_options(policy, folders, isolated=backend.apart), "--", *argv]
    return None


def find_replaceable_link(project: str) -> str:
    """Return a name of the project's own rules that cannot be kept from changes, if there is one.

    What a link leads to is kept, but the link itself is a name like any other.
    """
    names = (".git", *_PROTECTED_FOLDERS, *_PROTECTED_FILES)
    return next((name for name in names if os.path.islink(os.path.join(project, name))), "")


def _writable_folders(policy: WrapperPolicy) -> tuple[str, ...]:
    import tempfile

    for folder in (policy.project, policy.tmp or tempfile.gettempdir()):
        if not os.path.isabs(folder) or not os.path.isdir(folder):
            raise BadRequest(f"{folder} is no folder that a program can be confined to")
    for path in (*policy.writable, *policy.kept, *policy.hidden, *policy.shown):
        if not os.path.isabs(path):
            raise BadRequest(f"{path} is no path that a program can be confined by")
    # What is not there could be made by nobody, but for the folders above.
    existing = (path for path in policy.writable if os.path.exists(path))
    writable = (policy.project, *existing, policy.tmp or tempfile.gettempdir())
    return tuple(dict.fromkeys(map(os.path.realpath, writable)))


def _existing_real_paths(paths: tuple[str, ...]) -> list[str]:
    return [path for path in dict.fromkeys(map(os.path.realpath, paths)) if os.path.exists(path)]


def _service_paths() -> list[str]:
    user_runtime = f"/run/user/{os.getuid()}"
    return _existing_real_paths((*_SERVICE_SOCKETS, user_runtime))


def _landlock_options(policy: WrapperPolicy, folders: tuple[str, ...], *, isolated: bool) -> list[str]:
    options = ["--network"] if policy.network else []
    for flag, paths in (
        ("--write", folders),
        ("--hide", _existing_real_paths(policy.hidden)),
        ("--show", _existing_real_paths(policy.shown)),
    ):
        for path in paths:
            options += [flag, path]
    if not isolated:
        return options
    options += ["--apart"]
    covered = [path for path in _service_paths() if not _contains_any(path, folders)]
    for path in covered:
        options += ["--cover", path]
    for folder in _used_folders(policy, folders):
        pins, protected = _protected_paths(folder, create_missing=folder == os.path.realpath(policy.project))
        for path in pins:
            options += ["--pin", path]
        for path in protected:
            options += ["--keep", path]
    for path in _existing_real_paths(policy.kept):
        options += ["--keep", path]
    return options


def _contains_any(path: str, folders: Iterable[str]) -> bool:
    """Whether one of the folders is a path, or in it."""
    return any(f"{folder}/".startswith(f"{path}/") for folder in folders)


def _bwrap_arguments(program: str, policy: WrapperPolicy, folders: tuple[str, ...]) -> list[str]:
    argv = [program, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    hidden = _existing_real_paths(policy.hidden)
    covered = [path for path in _service_paths() if not _contains_any(path, folders)]
    hidden_parents = [path for path in hidden if _contains_any(path, folders)]
    # What lies in another must come after it, or would be covered by it again.
    for path in sorted((*hidden_parents, *covered)):
        argv += _cover_arguments(path)
    for folder in folders:
        argv += ["--bind", folder, folder]
    for folder in _used_folders(policy, folders):
        pins, protected = _protected_paths(folder, create_missing=folder == os.path.realpath(policy.project))
        for path in pins:
            argv += ["--bind", path, path]
        for path in protected:
            argv += ["--ro-bind", path, path]
    for path in _existing_real_paths(policy.kept):
        argv += ["--ro-bind", path, path]
    for path in sorted(set(hidden) - set(hidden_parents)):
        argv += _cover_arguments(path)
    for path in _existing_real_paths(policy.shown):
        argv += ["--ro-bind", path, path]
    # At last: until then, what is shown inside of them gets a place there.
    for path in filter(os.path.isdir, (*covered, *hidden)):
        argv += ["--remount-ro", path]
    argv += ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--new-session"]
    argv += [] if policy.network else ["--unshare-net"]
    # As an administrator it would keep powers that lead out again.
    argv += ["--cap-drop", "ALL", "--die-with-parent"]
    return [*argv, "--chdir", os.path.realpath(policy.cwd or policy.project)]


def _cover_arguments(path: str) -> list[str]:
    if os.path.isdir(path):
        return ["--perms", "0555", "--tmpfs", path]
    return ["--ro-bind", "/dev/null", path]


def _used_folders(policy: WrapperPolicy, folders: tuple[str, ...]) -> list[str]:
    """Return the folders that are worked in; in the one for temporary files nobody reads rules."""
    candidates = (policy.project, *policy.writable)
    real = dict.fromkeys(map(os.path.realpath, candidates))
    return [folder for folder in real if folder in folders and os.path.isdir(folder)]


def _protected_paths(folder: str, *, create_missing: bool) -> tuple[list[str], list[str]]:
    """Return what must not be moved away, and what must not be changed: a project's own rules.

    With `create_missing`, some folders that are missing are created, so that nobody else does.
    """
    git = os.path.join(folder, ".git")
    pins = [git] if os.path.isdir(git) and not os.path.islink(git) else []
    protected: list[str] = [git] if os.path.isfile(git) else []
    for name in (*_PROTECTED_FOLDERS, *_PROTECTED_FILES):
        path = os.path.join(folder, name)
        if create_missing and name in _CREATED_FOLDERS and not os.path.lexists(path):
            # Without a repository there is no place for hooks.
            with suppress(OSError):
                os.mkdir(path)
        if os.path.exists(path):
            protected.append(os.path.realpath(path))
    return pins, list(dict.fromkeys(protected))
