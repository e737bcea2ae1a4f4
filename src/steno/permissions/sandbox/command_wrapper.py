"""Wraps commands in a sandbox: bubblewrap if installed, else Landlock, else none.

backend = find_backend()
backend.summary                              # what it restricts
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
# Project directories that configure programs; they are protected even if missing.
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
# Services that run programs outside the sandbox on request.
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
    """Paths that a sandboxed program may read and write."""

    project: str
    """The project directory, which is writable."""
    cwd: str = ""
    """The initial directory; the project if empty."""
    writable: tuple[str, ...] = ()
    """Further writable files and directories."""
    kept: tuple[str, ...] = ()
    """Paths that stay read-only, in addition to the protected files of the project."""
    hidden: tuple[str, ...] = ()
    """Paths that must not be read; missing paths are ignored."""
    shown: tuple[str, ...] = ()
    """Readable paths inside `hidden`."""
    network: bool = False
    tmp: str = ""
    """The directory for temporary files; the system's default if empty."""


class SandboxBackend(msgspec.Struct, frozen=True):
    """A sandbox mechanism that works on this machine."""

    kind: BackendKind | None
    summary: str
    """Description of its restrictions."""
    program: str = ""
    apart: bool = False
    """For Landlock: whether programs also get mount and network namespaces."""

    @property
    def protects_project_rules(self) -> bool:
        """Whether the configuration files of the project are protected from changes."""
        return self.kind == "bwrap" or self.apart


def find_backend() -> SandboxBackend:
    """Find a sandbox mechanism and test it."""
    # Fixed paths, so that neither the project nor PATH can provide the program.
    program = next((path for path in _BWRAP_PATHS if os.access(path, os.X_OK)), "")
    if program and _works([program, "--ro-bind", "/", "/", "--unshare-net", "--unshare-pid", "--"]):
        summary = "commands run under bubblewrap: writes only in the project, no network"
        return SandboxBackend("bwrap", summary, program)
    version = _landlock_version()
    if version and _works([*_RESTRICTED_EXEC, "--apart", "--"]):
        summary = (
            f"commands run under Landlock (version {version}) with mount and network namespaces:"
            " writes only in the project, no network"
        )
        return SandboxBackend("landlock", summary, apart=True)
    if version and _works([*_RESTRICTED_EXEC, "--"]):
        network_note = (
            "no TCP connections, other network access allowed" if version >= _TCP_VERSION else "network access allowed"
        )
        summary = (
            f"commands run under Landlock (version {version}): writes only in the project,"
            f" {network_note}; protected files in the project are writable"
        )
        return SandboxBackend("landlock", summary)
    return SandboxBackend(None, "no sandbox available: commands run with all your permissions")


def _landlock_version() -> int:
    """Return the Landlock version of this system; 0 if it has none."""
    if sys.platform != "linux":
        return 0
    from steno.permissions.sandbox.landlock_rules import abi_version

    return abi_version()


# Isolated mode, so that modules of the project cannot replace steno's.
_RESTRICTED_EXEC: Final = (sys.executable, "-I", "-m", "steno.permissions.sandbox.restricted_exec")


def _works(argv: list[str]) -> bool:
    """Whether a mechanism works; many containers forbid the required system calls."""
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
    """Return the arguments that run a program in the sandbox; None if no mechanism is available.

    Raises:
        BadRequest: a directory of the policy is not absolute or does not exist.
    """
    backend = find_backend() if sandbox is None else sandbox
    folders = _writable_folders(policy)
    if backend.kind == "bwrap":
        return [*_bwrap_arguments(backend.program, policy, folders), "--", *argv]
    if backend.kind == "landlock":
        return [*_RESTRICTED_EXEC, *_landlock_options(policy, folders, isolated=backend.apart), "--", *argv]
    return None


def find_replaceable_link(project: str) -> str:
    """Return the name of a protected file that is a symbolic link, if there is one.

    The target of the link is protected, but the link itself could be replaced.
    """
    names = (".git", *_PROTECTED_FOLDERS, *_PROTECTED_FILES)
    return next((name for name in names if os.path.islink(os.path.join(project, name))), "")


def _writable_folders(policy: WrapperPolicy) -> tuple[str, ...]:
    import tempfile

    for folder in (policy.project, policy.tmp or tempfile.gettempdir()):
        if not os.path.isabs(folder) or not os.path.isdir(folder):
            raise BadRequest(f"{folder} is not an absolute path of a directory")
    for path in (*policy.writable, *policy.kept, *policy.hidden, *policy.shown):
        if not os.path.isabs(path):
            raise BadRequest(f"{path} is not an absolute path")
    # Missing paths are left out: only a writable directory could contain them later.
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
    """Whether a path is one of the directories or contains one."""
    return any(f"{folder}/".startswith(f"{path}/") for folder in folders)


def _bwrap_arguments(program: str, policy: WrapperPolicy, folders: tuple[str, ...]) -> list[str]:
    argv = [program, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    hidden = _existing_real_paths(policy.hidden)
    covered = [path for path in _service_paths() if not _contains_any(path, folders)]
    hidden_parents = [path for path in hidden if _contains_any(path, folders)]
    # Sorted, because the mount of a parent would cover an earlier mount inside it.
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
    # At the end, because mount points for readable paths inside them must be created first.
    for path in filter(os.path.isdir, (*covered, *hidden)):
        argv += ["--remount-ro", path]
    argv += ["--unshare-pid", "--unshare-ipc", "--unshare-uts", "--new-session"]
    argv += [] if policy.network else ["--unshare-net"]
    # A root user would keep capabilities that lead out of the sandbox.
    argv += ["--cap-drop", "ALL", "--die-with-parent"]
    return [*argv, "--chdir", os.path.realpath(policy.cwd or policy.project)]


def _cover_arguments(path: str) -> list[str]:
    if os.path.isdir(path):
        return ["--perms", "0555", "--tmpfs", path]
    return ["--ro-bind", "/dev/null", path]


def _used_folders(policy: WrapperPolicy, folders: tuple[str, ...]) -> list[str]:
    """Return the directories with protected files; temporary directories have none."""
    candidates = (policy.project, *policy.writable)
    real = dict.fromkeys(map(os.path.realpath, candidates))
    return [folder for folder in real if folder in folders and os.path.isdir(folder)]


def _protected_paths(folder: str, *, create_missing: bool) -> tuple[list[str], list[str]]:
    """Return the paths that must not be moved, and the protected paths that must not be changed.

    With `create_missing`, some missing directories are created, so that the program cannot create them.
    """
    git = os.path.join(folder, ".git")
    pins = [git] if os.path.isdir(git) and not os.path.islink(git) else []
    protected: list[str] = [git] if os.path.isfile(git) else []
    for name in (*_PROTECTED_FOLDERS, *_PROTECTED_FILES):
        path = os.path.join(folder, name)
        if create_missing and name in _CREATED_FOLDERS and not os.path.lexists(path):
            # Fails for hooks if there is no repository.
            with suppress(OSError):
                os.mkdir(path)
        if os.path.exists(path):
            protected.append(os.path.realpath(path))
    return pins, list(dict.fromkeys(protected))
