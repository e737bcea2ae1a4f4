"""Seatbelt profiles: the same policy for `sandbox-exec` on macOS.

The text is tested; it has not been tried on a Mac.
"""

import os
import subprocess
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final

from steno.guard.confinement.policy import Confinement, ConfinementError

if TYPE_CHECKING:
    from steno.guard.confinement.probe import Support

PROGRAM: Final = "/usr/bin/sandbox-exec"
_SYSTEM: Final = (
    "/System",
    "/Library/Apple",
    "/Library/Developer/CommandLineTools",
    "/bin",
    "/sbin",
    "/usr/bin",
    "/usr/lib",
    "/usr/libexec",
    "/usr/sbin",
    "/usr/share",
    "/nix/store",
    "/private/etc/localtime",
    "/private/etc/protocols",
    "/private/var/db/dyld",
    "/private/var/db/timezone",
    "/private/var/select",
)
_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/fd")
_TRIAL_SECONDS: Final = 10


def build_profile(policy: Confinement) -> str:
    """Return the profile text of a policy; the last rule that matches an access decides.

    Raises:
        ConfinementError: a path cannot be written in a profile.
    """
    return "\n".join(_rules(policy)) + "\n"


def confined_argv(argv: Iterable[str], policy: Confinement) -> list[str]:
    """Return the arguments that run a program under a policy."""
    return [PROGRAM, "-p", build_profile(policy), *argv]


def probe_seatbelt() -> "Support":
    """Try a confined program."""
    from steno.guard.confinement.probe import Support

    policy = Confinement(cwd="/usr", readable=("/usr",), scratch="/private/var/empty")
    try:
        done = subprocess.run(
            confined_argv(["/usr/bin/true"], policy),
            capture_output=True,
            timeout=_TRIAL_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        code = 1
    else:
        code = done.returncode
    if code:
        return Support("none", (), "Agent commands cannot be confined: sandbox-exec failed.", False)
    summary = "Agent commands without approval are confined by Seatbelt: no network, no writes outside the scratch folder."
    return Support("macos", ("seatbelt",), summary, usable=True)


def _rules(policy: Confinement) -> Iterator[str]:
    read = [*_SYSTEM, *policy.programs, *policy.readable, *policy.writable, policy.scratch]
    write = [*policy.writable, policy.scratch]
    yield "(version 1)"
    yield "(deny default)"
    yield "(allow process-fork)"
    yield "(allow sysctl-read)"
    yield "(allow process-info* (target self))"
    yield "(allow signal (target same-sandbox))"
    yield from _rule("allow file-read-metadata", "literal", _above(read))
    yield from _rule("allow file-read* process-exec*", "subpath", _both(read))
    yield from _rule("allow file-read* file-write-data", "literal", _DEVICES)
    yield '(allow file-read* file-write-data (subpath "/dev/fd"))'
    yield from _rule("allow file-write*", "subpath", _both(write))
    yield from _rule("deny file-write*", "subpath", _both(policy.read_only))
    # Renaming a folder above would move a protected path away.
    yield from _rule("deny file-write-unlink", "literal", _between(policy))
    yield from _rule("deny file-read* file-write* process-exec*", "subpath", _both(policy.denied))
    # A scratch folder inside a read-only folder stays writable.
    yield from _rule("allow file-read* file-write*", "subpath", _both([policy.scratch]))
    yield "(deny network*)"
    yield "(deny file-write-setugid)"


def _rule(action: str, kind: str, paths: Iterable[str]) -> Iterator[str]:
    filters = " ".join(f"({kind} {quote(path)})" for path in dict.fromkeys(paths))
    if filters:
        yield f"({action} {filters})"


def _both(paths: Iterable[str]) -> list[str]:
    """Return paths as written and as they are: profiles are matched against real paths."""
    return [name for path in paths for name in (os.path.normpath(path), os.path.realpath(path))]


def _above(paths: Iterable[str]) -> Iterator[str]:
    for path in _both(paths):
        folder = path
        while folder != os.path.dirname(folder):
            folder = os.path.dirname(folder)
            yield folder


def _between(policy: Confinement) -> Iterator[str]:
    roots = set(_both(policy.writable))
    for path in _both((*policy.read_only, *policy.denied)):
        folder = os.path.dirname(path)
        while folder != os.path.dirname(folder) and folder not in roots:
            yield folder
            folder = os.path.dirname(folder)


def quote(path: str) -> str:
    """Return a path as a string of the profile language.

    Raises:
        ConfinementError: it has a NUL or is not valid Unicode, so no file on a Mac has that name.
    """
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise ConfinementError(f"Not a valid path: {path!r}") from error
    if "\0" in path:
        raise ConfinementError(f"Not a valid path: {path!r}")
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
