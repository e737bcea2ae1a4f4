"""The policy of a sandboxed program, and the well-known secrets that are denied by default."""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

import msgspec

from steno.errors import BadRequest, StenoError
from steno.permissions.paths import SECRET_FILES, SECRET_FOLDERS, ResolvedPath, relative_parts
from steno.store.environment import config_dir, home_dir


class SandboxError(StenoError):
    """The program could not be sandboxed and was not run."""


class SandboxPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What a sandboxed program may read and write; everything else is denied."""

    cwd: str
    readable: tuple[str, ...]
    """Working directories: absolute, as the user wrote them; symbolic links are allowed."""
    scratch: str
    """An existing private directory: writable, and the value of `TMPDIR`."""
    writable: tuple[str, ...] = ()
    """Further directories that may be read and written."""
    read_only: tuple[str, ...] = ()
    """Paths inside `writable` that must not be changed or created."""
    denied: tuple[str, ...] = ()
    """Files and directories that must not be read, listed or written."""
    programs: tuple[str, ...] = ()
    """Directories with programs that may be run."""
    list_denied_names: bool = False
    """Allow listing the names (not the contents) inside denied directories with Landlock alone.

    Landlock grants rights over whole trees: without this option, a directory that contains a denied directory cannot be
    listed either. It has no effect with namespaces.
    """

    def check(self) -> None:
        """Reject paths that are not absolute or not valid.

        Raises:
            SandboxError: a path is invalid, or `cwd` or `scratch` is not a directory.
        """
        paths = (self.cwd, self.scratch, *self.readable, *self.writable)
        for path in (*paths, *self.read_only, *self.denied, *self.programs):
            if not os.path.isabs(path) or "\0" in path:
                raise SandboxError(f"Not an absolute path: {path!r}")
        for path in (self.cwd, self.scratch):
            if not os.path.isdir(path):
                raise SandboxError(f"Not a directory: {path!r}")


# Relative to a home directory.
_SECRETS_IN_HOME: Final = (
    ".azure",
    ".bash_history",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".claude.json",
    ".claude/.credentials.json",
    ".config/age",
    ".config/chromium",
    ".config/doctl",
    ".config/gcloud",
    ".config/gh",
    ".config/git/credentials",
    ".config/glab-cli",
    ".config/google-chrome",
    ".config/hub",
    ".config/op",
    ".config/rclone",
    ".config/sops",
    ".gem/credentials",
    ".gradle/gradle.properties",
    ".local/share/keyrings",
    ".m2/settings.xml",
    ".mozilla",
    ".my.cnf",
    ".node_repl_history",
    ".npmrc",
    ".password-store",
    ".pgpass",
    ".psql_history",
    ".python_history",
    ".terraform.d/credentials.tfrc.json",
    ".thunderbird",
    ".vault-token",
    ".yarnrc.yml",
    ".zsh_history",
    "Library/Keychains",
)
_SYSTEM_SECRETS: Final = (
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/krb5.keytab",
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/ssh",
    "/etc/ssl/private",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/run/credentials",
    "/run/secrets",
    "/run/user",
    "/var/lib/docker",
    "/var/lib/kubelet",
    "/var/lib/private",
    "/var/run/secrets",
    "/var/spool/cron",
)


def deny_secrets(policy: SandboxPolicy) -> SandboxPolicy:
    """Return a policy that also denies well-known locations of secrets.

    Raises:
        SandboxError: a working directory is inside such a location.
    """
    roots = {root: ResolvedPath.of(root) for root in (*policy.readable, *policy.writable)}
    for root, resolved_path in roots.items():
        for parts in resolved_path.all_parts:
            name = next((part for part in parts if part in SECRET_FOLDERS), "")
            if name:
                raise SandboxError(f"{root!r} is inside {name}, which contains secrets")
    denied = dict.fromkeys(policy.denied)
    for path in (*_secret_candidates(roots), *_secrets_in_programs(policy.programs)):
        if os.path.lexists(path):
            denied[path] = None
    return msgspec.structs.replace(policy, denied=tuple(denied))


def _secret_candidates(roots: dict[str, ResolvedPath]) -> Iterator[str]:
    """Yield locations of secrets that may be inside the working directories."""
    for root in roots:
        for name in sorted(SECRET_FOLDERS | SECRET_FILES):
            yield os.path.join(root, name)
    for home in dict.fromkeys(_home_folders(roots.values())):
        resolved_path = ResolvedPath.of(home)
        if any(_paths_overlap(resolved_path, root) for root in roots.values()):
            for name in sorted({*SECRET_FOLDERS, *SECRET_FILES, *_SECRETS_IN_HOME}):
                yield os.path.join(home, name)
    with suppress(BadRequest):
        yield os.path.join(config_dir(), ".credentials.json")
    yield from _SYSTEM_SECRETS


def _secrets_in_programs(programs: tuple[str, ...]) -> Iterator[str]:
    for folder in programs:
        for name in sorted(SECRET_FOLDERS | SECRET_FILES):
            yield os.path.join(folder, name)


def _paths_overlap(path: ResolvedPath, other_path: ResolvedPath) -> bool:
    return (
        relative_parts(path.real_parts, other_path.real_parts) is not None
        or relative_parts(other_path.real_parts, path.real_parts) is not None
    )


def _home_folders(roots: Iterable[ResolvedPath]) -> Iterator[str]:
    """Yield the home directories that may overlap the working directories."""
    with suppress(BadRequest):
        yield home_dir()
    yield "/root"
    for folder in ("/home", "/Users"):
        top = ResolvedPath.of(folder).real_parts
        for root in roots:
            parts = relative_parts(root.real_parts, top)
            if parts:
                yield os.path.join(folder, parts[0])
            elif parts is not None or relative_parts(top, root.real_parts) is not None:
                with suppress(OSError):
                    yield from (os.path.join(folder, name) for name in os.listdir(folder))
