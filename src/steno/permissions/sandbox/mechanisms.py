"""Sandbox mechanisms of this machine: the protocol of the Linux helper, Seatbelt, and a probe.

The text of Seatbelt profiles is tested, but not on a Mac.
"""

import json
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, cast

import msgspec

from steno.permissions.sandbox.helper_protocol import HEADER, MAX_REQUEST_BYTES
from steno.permissions.sandbox.path_plan import parent_folders
from steno.permissions.sandbox.policy import SandboxError, SandboxPolicy

_STANDARD_ERROR: Final = 2
MAX_REPLY: Final = 65536
# The package is searched last, and the current directory not at all.
_HELPER_CODE: Final = (
    "import sys; sys.path.append({root!r});from steno.permissions.sandbox.helper import main; main(sys.argv[1:])"
)


class HelperExited(SandboxError):
    """The helper ended before it received the command."""


class Mechanisms(msgspec.Struct, frozen=True):
    """The mechanisms of the helper, in addition to seccomp."""

    landlock: int
    """Highest Landlock version to use; 0 for none."""
    namespaces: bool


def start_helper(mechanisms: Mechanisms) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start the helper and return the process and a socket to it.

    Raises:
        SandboxError: the helper cannot be started.
    """
    connection, helper_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    root = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", ".."))
    number = str(helper_end.fileno())
    try:
        process = subprocess.Popen(
            [
                sys.executable,
                *("-I", "-S", "-X", "utf8", "-c", _HELPER_CODE.format(root=root)),
                *(number, str(mechanisms.landlock), str(int(mechanisms.namespaces))),
            ],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(helper_end.fileno(),),
            env={},
            cwd="/",
            start_new_session=True,
        )
    except OSError as error:
        connection.close()
        raise SandboxError(f"Cannot start the sandbox helper: {error}") from error
    finally:
        helper_end.close()
    return process, connection


def check_helper_greeting(reply: Mapping[str, Any]) -> None:
    """Check the first message of the helper.

    Raises:
        SandboxError: it cannot sandbox programs.
    """
    if "landlock" not in reply:
        reason = reply.get("error", "the helper ended")
        raise SandboxError(f"Cannot sandbox programs on this machine: {reason}")


def decode_helper_reply(text: bytes) -> dict[str, Any]:
    """Return a message of the helper; empty if it ended."""
    return json.loads(text) if text else {}


class SandboxCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A command for the helper."""

    argv: Sequence[str]
    policy: SandboxPolicy
    env: Mapping[str, str]
    stdout: int
    stderr: int
    pass_fds: Sequence[int] = ()


def send_command(connection: socket.socket, number: int, command: SandboxCommand) -> None:
    """Send a command with its descriptors.

    Raises:
        HelperExited: the helper ended.
        SandboxError: the command is invalid or too long.
    """
    env = {**command.env, "TMPDIR": command.policy.scratch}
    words = (*command.argv, *env, *env.values())
    if not command.argv or any("\0" in word for word in words):
        raise SandboxError("The command is empty or contains a NUL character")
    if any(number <= _STANDARD_ERROR for number in command.pass_fds):
        raise SandboxError("Only descriptors above 2 can be passed")
    body = json.dumps(
        {
            "argv": [_to_utf8(word) for word in command.argv],
            "env": {_to_utf8(name): _to_utf8(env[name]) for name in env},
            "policy": {name: _to_utf8_value(value) for name, value in msgspec.structs.asdict(command.policy).items()},
            "fds": list(command.pass_fds),
        }
    ).encode()
    if len(body) > MAX_REQUEST_BYTES:
        raise SandboxError("The command is too long for the sandbox")
    memory = os.memfd_create("steno-command")
    try:
        view = memoryview(body)
        while view:
            view = view[os.write(memory, view) :]
        descriptors = [memory, command.stdout, command.stderr, *command.pass_fds]
        socket.send_fds(connection, [HEADER.pack(number, len(body))], descriptors)
    except OSError as error:
        raise HelperExited(f"Cannot reach the sandbox helper: {error}") from error
    finally:
        os.close(memory)


def _to_utf8(text: str) -> str:
    """Return a file name or argument as Python in UTF-8 mode decodes it."""
    return os.fsencode(text).decode("utf-8", "surrogateescape")


def _to_utf8_value(value: object) -> object:
    if isinstance(value, str):
        return _to_utf8(value)
    if isinstance(value, tuple):
        return [_to_utf8(str(item)) for item in cast("tuple[object, ...]", value)]
    return value


_CHOICE_VARIABLE: Final = "STENO_CONFINEMENT"
_REPLY_TIMEOUT: Final = 20
_NEWEST_LANDLOCK: Final = 99
# The exit codes identify the restriction that does not work.
_TEST_SCRIPT: Final = """
(read -r line < "$1/inside/open") 2>/dev/null || exit 11
(read -r line < "$1/inside/denied") 2>/dev/null && exit 12
(read -r line < "$1/outside") 2>/dev/null && exit 13
(: > "$1/inside/new") 2>/dev/null && exit 14
(: > "$1/outside") 2>/dev/null && exit 15
(: > "$1/scratch/new") 2>/dev/null || exit 16
(: > /dev/null) 2>/dev/null || exit 17
exit 0
"""


class SandboxSupport(msgspec.Struct, frozen=True):
    """How programs can be sandboxed on this machine."""

    kind: Literal["none", "linux", "macos"]
    layers: tuple[str, ...]
    """Some of landlock-N, seccomp, user, mount, pid, net, ipc, seatbelt."""
    summary: str
    """One sentence for the user."""
    usable: bool
    """Whether all restrictions work."""


_probe_results: dict[str, tuple[SandboxSupport, Mechanisms | None]] = {}


def probe_sandbox(env: Mapping[str, str] = os.environ) -> SandboxSupport:
    """Return how programs can be sandboxed; tested once per process.

    `STENO_CONFINEMENT` restricts the mechanisms: `off`, `landlock` (or `landlock-4` for an older version of the
    interface) or `namespaces`.
    """
    return _probe_cached(env.get(_CHOICE_VARIABLE, ""))[0]


def find_mechanisms(env: Mapping[str, str] = os.environ) -> Mechanisms | None:
    """Return the mechanisms for the helper; None if programs cannot be sandboxed."""
    return _probe_cached(env.get(_CHOICE_VARIABLE, ""))[1]


def _probe_cached(choice: str) -> tuple[SandboxSupport, Mechanisms | None]:
    if choice not in _probe_results:
        _probe_results[choice] = _probe_choice(choice)
    return _probe_results[choice]


def _probe_choice(choice: str) -> tuple[SandboxSupport, Mechanisms | None]:
    if choice == "off":
        return _unsupported(f"Agent commands cannot be sandboxed: {_CHOICE_VARIABLE} is off."), None
    if sys.platform == "darwin":
        return probe_seatbelt(), None
    if not sys.platform.startswith("linux"):
        return _unsupported("Agent commands cannot be sandboxed on this system."), None
    reason = f"{_CHOICE_VARIABLE}={choice} is not a known mechanism"
    for mechanisms in _candidate_mechanisms(choice):
        try:
            working_mechanisms = _test_mechanisms(mechanisms)
        except (SandboxError, OSError) as error:
            reason = str(error)
        else:
            return _linux_support(working_mechanisms), working_mechanisms
    return _unsupported(f"Agent commands cannot be sandboxed: {reason}."), None


def _unsupported(summary: str) -> SandboxSupport:
    return SandboxSupport("none", (), summary, usable=False)


def _candidate_mechanisms(choice: str) -> Iterator[Mechanisms]:
    if not choice:
        yield Mechanisms(_NEWEST_LANDLOCK, namespaces=True)
    if choice in {"", "namespaces"}:
        yield Mechanisms(0, namespaces=True)
    name, _, version = choice.partition("-")
    if not choice or name == "landlock":
        yield Mechanisms(int(version) if version.isdecimal() else _NEWEST_LANDLOCK, namespaces=False)


def _linux_support(mechanisms: Mechanisms) -> SandboxSupport:
    layers = (f"landlock-{mechanisms.landlock}",) if mechanisms.landlock else ()
    layers += ("seccomp",)
    if mechanisms.namespaces:
        layers += ("user", "mount", "pid", "net", "ipc")
        description = "namespaces and seccomp"
        description = f"Landlock {mechanisms.landlock}, {description}" if mechanisms.landlock else description
        limitation = ""
    else:
        description = f"Landlock {mechanisms.landlock} and seccomp"
        limitation = (
            "; names and sizes of other files stay visible, and directories that contain protected"
            " files cannot get new files"
        )
    summary = f"Agent commands without approval are sandboxed by {description}: no network, no writes outside the scratch directory{limitation}."
    return SandboxSupport("linux", layers, summary, usable=True)


def _test_mechanisms(mechanisms: Mechanisms) -> Mechanisms:
    """Run a program that attempts forbidden accesses.

    Raises:
        SandboxError: an access succeeded, or the program was not run.
    """
    shell = shutil.which("sh", path="/bin:/usr/bin")
    if shell is None:
        raise SandboxError("cannot test the sandbox: no `sh` found")
    with tempfile.TemporaryDirectory(prefix="steno-probe-") as folder:
        for name in ("inside", "scratch"):
            os.mkdir(f"{folder}/{name}")
        for name in ("inside/open", "inside/denied", "outside"):
            with open(f"{folder}/{name}", "w", encoding="ascii") as file:
                file.write("x\n")
        policy = SandboxPolicy(
            cwd=f"{folder}/inside",
            readable=(f"{folder}/inside",),
            scratch=f"{folder}/scratch",
            denied=(f"{folder}/inside/denied",),
        )
        process, connection = start_helper(mechanisms)
        try:
            return _run_test_command(connection, [shell, "-c", _TEST_SCRIPT, "sh", folder], policy, mechanisms)
        finally:
            connection.close()
            process.wait()


def _run_test_command(
    connection: socket.socket, argv: list[str], policy: SandboxPolicy, mechanisms: Mechanisms
) -> Mechanisms:
    greeting = _read_reply(connection)
    check_helper_greeting(greeting)
    null = os.open(os.devnull, os.O_RDWR)
    try:
        send_command(connection, 1, SandboxCommand(argv=argv, policy=policy, env={}, stdout=null, stderr=null))
    finally:
        os.close(null)
    while True:
        reply = _read_reply(connection)
        if "status" in reply:
            break
        if "pid" not in reply:
            raise SandboxError(reply.get("error", "the helper ended"))
    if reply["status"]:
        raise SandboxError(f"the sandbox test failed ({reply['status']})")
    return Mechanisms(greeting["landlock"], namespaces=mechanisms.namespaces)


def _read_reply(connection: socket.socket) -> dict[str, Any]:
    ready, _, _ = select.select([connection], [], [], _REPLY_TIMEOUT)
    if not ready:
        raise SandboxError("the helper does not respond")
    return decode_helper_reply(connection.recv(MAX_REPLY))


SANDBOX_EXEC: Final = "/usr/bin/sandbox-exec"
_SYSTEM_PATHS: Final = (
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
_DEVICE_FILES: Final = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/fd")
_TEST_TIMEOUT: Final = 10


def build_seatbelt_profile(policy: SandboxPolicy) -> str:
    """Return the Seatbelt profile of a policy; the last matching rule decides.

    Raises:
        SandboxError: a path cannot be written in a profile.
    """
    return "\n".join(_profile_rules(policy)) + "\n"


def seatbelt_argv(argv: Iterable[str], policy: SandboxPolicy) -> list[str]:
    """Return the arguments that run a program under a policy."""
    return [SANDBOX_EXEC, "-p", build_seatbelt_profile(policy), *argv]


def probe_seatbelt() -> "SandboxSupport":
    """Test the sandbox with a program."""
    policy = SandboxPolicy(cwd="/usr", readable=("/usr",), scratch="/private/var/empty")
    try:
        process = subprocess.run(
            seatbelt_argv(["/usr/bin/true"], policy), capture_output=True, timeout=_TEST_TIMEOUT, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        code = 1
    else:
        code = process.returncode
    if code:
        return SandboxSupport("none", (), "Agent commands cannot be sandboxed: sandbox-exec failed.", False)
    summary = "Agent commands without approval are sandboxed by Seatbelt: no network, no writes outside the scratch directory."
    return SandboxSupport("macos", ("seatbelt",), summary, usable=True)


def _profile_rules(policy: SandboxPolicy) -> Iterator[str]:
    read = [*_SYSTEM_PATHS, *policy.programs, *policy.readable, *policy.writable, policy.scratch]
    write = [*policy.writable, policy.scratch]
    yield "(version 1)"
    yield "(deny default)"
    yield "(allow process-fork)"
    yield "(allow sysctl-read)"
    yield "(allow process-info* (target self))"
    yield "(allow signal (target same-sandbox))"
    yield from _profile_rule("allow file-read-metadata", "literal", _parent_folders(read))
    yield from _profile_rule("allow file-read* process-exec*", "subpath", _path_and_real_path(read))
    yield from _profile_rule("allow file-read* file-write-data", "literal", _DEVICE_FILES)
    yield '(allow file-read* file-write-data (subpath "/dev/fd"))'
    yield from _profile_rule("allow file-write*", "subpath", _path_and_real_path(write))
    yield from _profile_rule("deny file-write*", "subpath", _path_and_real_path(policy.read_only))
    # Renaming a parent directory would move a protected path.
    yield from _profile_rule("deny file-write-unlink", "literal", _folders_between(policy))
    yield from _profile_rule("deny file-read* file-write* process-exec*", "subpath", _path_and_real_path(policy.denied))
    # A scratch directory inside a read-only directory stays writable.
    yield from _profile_rule("allow file-read* file-write*", "subpath", _path_and_real_path([policy.scratch]))
    yield "(deny network*)"
    yield "(deny file-write-setugid)"


def _profile_rule(action: str, kind: str, paths: Iterable[str]) -> Iterator[str]:
    filters = " ".join(f"({kind} {quote_path(path)})" for path in dict.fromkeys(paths))
    if filters:
        yield f"({action} {filters})"


def _path_and_real_path(paths: Iterable[str]) -> list[str]:
    """Return paths as written and resolved; profiles match real paths."""
    return [name for path in paths for name in (os.path.normpath(path), os.path.realpath(path))]


def _parent_folders(paths: Iterable[str]) -> Iterator[str]:
    for path in _path_and_real_path(paths):
        yield from parent_folders(path, "/")


def _folders_between(policy: SandboxPolicy) -> Iterator[str]:
    roots = set(_path_and_real_path(policy.writable))
    for path in _path_and_real_path((*policy.read_only, *policy.denied)):
        folder = os.path.dirname(path)
        while folder != os.path.dirname(folder) and folder not in roots:
            yield folder
            folder = os.path.dirname(folder)


def quote_path(path: str) -> str:
    """Return a path as a string literal of the profile language.

    Raises:
        SandboxError: it contains NUL or is not valid Unicode, so no file on a Mac has that name.
    """
    try:
        path.encode()
    except UnicodeEncodeError as error:
        raise SandboxError(f"Not a valid path: {path!r}") from error
    if "\0" in path:
        raise SandboxError(f"Not a valid path: {path!r}")
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
