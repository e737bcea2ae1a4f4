"""Environment of the programs that an agent runs: without secrets, and with git running no programs.

sandbox_environment(env, scratch_dir)   a short list of variables, for commands without approval
approved_environment(env)               all variables except secrets, for approved commands
git_settings(folders)                   variables that keep git from running programs
work_tree(folder)                       the work tree of a repository
remote_settings(folder)                 addresses and programs of the remote repositories
scrub_environment(names)                overwrites secrets in the environment of this process

Linux shows the initial environment of a process to every program of the same user (`/proc/PID/environ`). Programs that
the agent starts could read it, so it is overwritten in memory.
"""

import os
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from steno.errors import StenoError
from steno.permissions.paths import ResolvedPath, is_inside
from steno.permissions.shell.command import word_set

_STAT_FILE: Final = "/proc/self/stat"
_START_FIELD: Final = 50 - 3
_END_FIELD: Final = 51 - 3
"""Indexes of the start and end of the environment: fields 50 and 51, counted without the first two fields."""


def scrub_environment(names: Iterable[str]) -> None:
    """Remove variables from the environment of this process, after they have been read."""
    removed = [name for name in names if os.environ.pop(name, None) is not None]
    start, end = _environment_range() if removed else (0, 0)
    if not start:
        return
    import ctypes

    block = ctypes.string_at(start, end - start)
    for name in map(os.fsencode, removed):
        offset = 0
        for entry in block.split(b"\0"):
            if entry.startswith(name + b"="):
                value_start = offset + len(name) + 1
                ctypes.memset(start + value_start, ord("-"), len(entry) - len(name) - 1)
            offset += len(entry) + 1


def _environment_range() -> tuple[int, int]:
    """Return the address range of the environment in memory; zeros if it is unknown."""
    try:
        with open(_STAT_FILE, "rb") as file:
            # The second field is the program name in brackets, which may contain blanks and brackets.
            fields = file.read().rpartition(b")")[2].split()
        return int(fields[_START_FIELD]), int(fields[_END_FIELD])
    except (OSError, ValueError, IndexError):
        return 0, 0


_EXTRA_VARIABLES_NAME: Final = "STENO_PASS_ENV"
"""Comma-separated names of variables that approved programs get although they look secret."""
_SANDBOX_VARIABLES: Final = word_set(
    "USER LOGNAME SHELL HOME LANG LANGUAGE LC_ALL LC_CTYPE LC_COLLATE LC_MESSAGES LC_NUMERIC LC_TIME"
    " TZ TERM COLORTERM COLUMNS LINES NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE CI"
)
_SECRET_NAME: Final = re.compile(
    r"(?:^|[_-])(?:(?:API|ACCESS|PRIVATE|SIGNING|ENCRYPTION|MASTER|LICENSE|SERVICE|ACCOUNT|SHARED)?KEYS?"
    r"|APIKEYS?|TOKENS?|SECRETS?|SECRETKEY|ACCESSKEY|ACCESSTOKEN|PASS|PASSWD|PASSWORDS?|PASSPHRASE|PWD"
    r"|CREDENTIALS?|CREDS?|AUTH|AUTHORIZATION|COOKIES?|JWT|PAT|BEARER|DSN|SALT|SESSION|CONNECTION_STRING"
    r"|CONNSTR|HEADERS|WEBHOOKS?)(?:$|[_-])|(?:TOKEN|SECRET|PASSWORD|PASSWD|APIKEY|[A-Z]PASS)S?$",
    re.IGNORECASE,
)
# Names that look secret, but hold a number, a name or a path.
_NOT_SECRET: Final = word_set(
    "PWD OLDPWD SSH_AUTH_SOCK XAUTHORITY GPG_TTY SSH_ASKPASS SUDO_ASKPASS GIT_ASKPASS SESSION_MANAGER"
    " DESKTOP_SESSION GDMSESSION XDG_SESSION_ID XDG_SESSION_TYPE XDG_SESSION_CLASS XDG_SESSION_DESKTOP"
    " DBUS_SESSION_BUS_ADDRESS TERM_SESSION_ID SECURITYSESSIONID STY"
)
_HARMLESS_VALUE: Final = re.compile(r"/[^:@\s]*|[0-9]{0,6}|true|false|yes|no|on|off", re.IGNORECASE)
# `scheme://user:password@host`
_URL_WITH_PASSWORD: Final = re.compile(r"[a-z][a-z0-9+.-]{1,30}://[^/\s:@]{0,200}:[^/\s@]{1,200}@", re.IGNORECASE)

_GIT_VARIABLES: Final = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "false",
    "GIT_SEQUENCE_EDITOR": "false",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ASKPASS": "",
    "SSH_ASKPASS": "",
}
_GIT_DEFAULTS: Final = (
    ("core.fsmonitor", "false"),
    ("core.hooksPath", os.devnull),
    ("core.pager", "cat"),
    ("safe.bareRepository", "explicit"),
    ("protocol.ext.allow", "never"),
    ("log.showSignature", "false"),
    # Submodule repositories have separate settings.
    ("diff.ignoreSubmodules", "dirty"),
    ("diff.submodule", "short"),
    ("push.recurseSubmodules", "no"),
    ("status.submoduleSummary", "false"),
    ("submodule.recurse", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
)
# Compares two files in git's format; replaces the diff program that a repository names.
_PLAIN_DIFF: Final = (
    """f() { echo "diff --git a/$1 b/$1"; """
    """diff -u --label "a/$1" --label "b/$1" "$2" "$5"; true; }; f"""
)
# Settings that name a program, and the value that replaces them.
_PROGRAM_SETTINGS: Final = tuple(
    (re.compile(form, re.IGNORECASE | re.DOTALL), value)
    for form, value in (
        (r"diff\.(?:.+\.command|external)", _PLAIN_DIFF),
        (r"diff\..+\.textconv", "cat"),
        (r"filter\..+\.required", "false"),
        (r"filter\..+\.(?:clean|smudge|process)", ""),
        (r"pager\..+", "false"),
        (r"submodule\..+\.update", "none"),
        (r"submodule\..+\.ignore", "dirty"),
        (r"core\.sshcommand", "ssh"),
        (r"(?:core|sequence)\.editor|web\.browser|gpg\.(?:.+\.)?program", "false"),
        (r"merge\..+\.driver|remote\..+\.(?:uploadpack|receivepack|vcs|proxy)", "false"),
        (r"core\.(?:askpass|gitproxy|alternaterefscommand|attributesfile)", ""),
        (r"alias\..+|credential\.(?:.+\.)?helper", ""),
        (r"(?:diff|merge|gui)tool\..+\.(?:cmd|path)|(?:browser|man)\..+\.(?:cmd|path)", "false"),
        (r"(?:trailer|hook|tar)\..+\.(?:command|cmd)|sendemail\..*(?:cmd|smtpserver)", ""),
        (r"interactive\.difffilter|gpg\.ssh\.defaultkeycommand|uploadpack\.packobjectshook", ""),
    )
)
# Settings that name a file which git may show or write.
_FILE_SETTING: Final = re.compile(r".*(?:file|template|path|list|dir)", re.IGNORECASE | re.DOTALL)
# A list of files: another value extends the list instead of replacing it.
_LIST_SETTING: Final = "blame.ignorerevsfile"
_MAX_SETTINGS: Final = 2000
_GIT_TIMEOUT: Final = 5.0


def sandbox_environment(env: Mapping[str, str], *, scratch: str = "", folders: tuple[str, ...] = ()) -> dict[str, str]:
    """Return a short list of variables: no keys, tokens, sockets, or settings that run a program.

    PATH keeps only absolute directories outside the working directories.

    >>> sandbox_environment({"PATH": "bin:/usr/bin", "LANG": "C", "GH_TOKEN": "x", "LD_PRELOAD": "y"})
    {'LANG': 'C', 'PATH': '/usr/bin'}
    """
    variables = {name: value for name, value in env.items() if name in _SANDBOX_VARIABLES}
    variables["PATH"] = os.pathsep.join(program_folders(env, folders))
    if scratch:
        # Programs look for user settings there; they could not read the real ones.
        variables |= {"TMPDIR": scratch, "XDG_CONFIG_HOME": scratch, "XDG_CACHE_HOME": scratch}
    return variables


def program_and_library_folders(env: Mapping[str, str], folders: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the directories of PATH, and the library directories next to each `bin`."""
    program_dirs = program_folders(env, folders)
    library_dirs = [
        os.path.join(os.path.dirname(path), name)
        for path in program_dirs
        if os.path.basename(path) == "bin"
        for name in _LIBRARY_FOLDERS
    ]
    return (*program_dirs, *filter(os.path.isdir, library_dirs))


_LIBRARY_FOLDERS: Final = ("lib", "lib64", "libexec", "Cellar", "opt")


def program_folders(env: Mapping[str, str], folders: tuple[str, ...] = ()) -> list[str]:
    """Return the absolute directories of PATH outside the given directories."""
    path = env.get("PATH") or os.defpath
    absolute = [entry for entry in dict.fromkeys(path.split(os.pathsep)) if os.path.isabs(entry)]
    return [each for each in absolute if not is_inside(ResolvedPath.of(each), folders)] or ["/usr/bin", "/bin"]


def approved_environment(env: Mapping[str, str], passed: Iterable[str] = ()) -> dict[str, str]:
    """Return an environment without variables that look like keys, tokens or passwords.

    `passed` names variables that the user passes to programs on purpose.

    >>> approved_environment({"GH_TOKEN": "gho_x", "EDITOR": "vi", "DB": "pg://ada:pw@host/db"})
    {'EDITOR': 'vi'}
    >>> approved_environment({"GH_TOKEN": "gho_x", "STENO_PASS_ENV": "GH_TOKEN"})["GH_TOKEN"]
    'gho_x'
    """
    allowed_names = {*passed, *(name.strip() for name in env.get(_EXTRA_VARIABLES_NAME, "").split(","))}
    return {name: value for name, value in env.items() if name in allowed_names or not _is_secret(name, value)}


def _is_secret(name: str, value: str) -> bool:
    if _URL_WITH_PASSWORD.search(value):
        return True
    # `API_KEY2`: ignore a trailing number.
    if name in _NOT_SECRET or not _SECRET_NAME.search(name.rstrip("0123456789")):
        return False
    return not _HARMLESS_VALUE.fullmatch(value)


def git_settings(
    folders: Iterable[str], *, isolated: bool = False, strict: bool = False, pushes: bool = False
) -> dict[str, str]:
    """Return variables that keep git from running programs named in repository settings.

    Args:
        folders: Directories that git may run in; the settings of their repositories are read.
        isolated: Whether to ignore user and system settings as well, except their safe directories.
        strict: Whether settings that cannot be read are an error, because git runs without a sandbox.
        pushes: Whether the command pushes. Git runs hooks of a local target repository without these
            variables, so pushing to a local repository is disabled.

    Raises:
        StenoError: the settings of a repository cannot be read, or are too many.
    """
    pairs = [*_GIT_DEFAULTS]
    variables = dict(_GIT_VARIABLES)
    if isolated:
        variables |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_ATTR_NOSYSTEM": "1"}
        pairs += [("safe.directory", folder) for folder in _safe_folders()]
    if pushes:
        pairs.append(("protocol.file.allow", "never"))
    overrides: dict[str, str] = {}
    for folder in dict.fromkeys(folders):
        overrides |= _repository_settings(folder, strict=strict)
    if strict and len(overrides) > _MAX_SETTINGS:
        raise StenoError(f"the repository has more than {_MAX_SETTINGS} settings that name programs")
    if strict and _LIST_SETTING in overrides:
        raise StenoError(f"the setting {_LIST_SETTING} names a file outside the working directory")
    pairs += list(overrides.items())[:_MAX_SETTINGS]
    variables["GIT_CONFIG_COUNT"] = str(len(pairs))
    for index, (name, value) in enumerate(pairs):
        variables[f"GIT_CONFIG_KEY_{index}"] = name
        variables[f"GIT_CONFIG_VALUE_{index}"] = value
    return variables


def work_tree(folder: str) -> str:
    """Return the real path of the work tree; empty if there is none."""
    output = _run_git(folder, "-c", "core.fsmonitor=false", "rev-parse", "--show-toplevel")
    text = os.fsdecode((output or b"").removesuffix(b"\n"))
    return os.path.realpath(text) if text else ""


def remote_settings(folder: str) -> tuple[list[str], list[str]] | None:
    """Return the addresses of remote repositories, and the settings that name their programs.

    Return None if the settings cannot be read.
    """
    output = _run_git(folder, "config", "--list", "-z")
    if output is None:
        return None
    addresses: list[str] = []
    programs: list[str] = []
    for entry in filter(None, output.split(b"\0")):
        name, _, value = os.fsdecode(entry).partition("\n")
        if re.fullmatch(r"remote\..+\.(?:push)?url", name, re.DOTALL):
            addresses.append(value)
        elif re.fullmatch(r"url\..+\.(?:push)?insteadof", name, re.DOTALL):
            addresses.append(name[len("url.") :].rpartition(".")[0])
        elif re.fullmatch(r"branch\..+\.(?:push)?remote|remote\.pushdefault", name, re.DOTALL):
            addresses += [value] if "/" in value else []
        elif re.fullmatch(r"remote\..+\.(?:upload|receive)pack", name, re.DOTALL):
            programs.append(name)
    return addresses, programs


def _repository_settings(folder: str, *, strict: bool) -> dict[str, str]:
    """Return harmless values for the repository settings that name a program."""
    settings: dict[str, str] = {}
    output = _run_git(folder, "config", "--list", "--show-scope", "-z")
    if output is None and strict:
        raise StenoError(f"cannot read the git settings of {folder}")
    entries = (output or b"").split(b"\0")
    for scope, entry in zip(entries[::2], entries[1::2], strict=False):
        if scope not in _USER_SCOPES:
            settings |= _neutralize(entry, folder)
    # git merges `.gitmodules` into the settings of submodules.
    gitmodules = os.path.join(work_tree(folder), ".gitmodules")
    if os.path.isfile(gitmodules):
        output = _run_git(folder, "config", "-f", gitmodules, "--list", "-z")
        for entry in (output or b"").split(b"\0"):
            settings |= _neutralize(entry, folder)
    return settings


def _neutralize(entry: bytes, folder: str) -> dict[str, str]:
    """Return a harmless value for a setting that names a program or a file outside the directory."""
    name, _, path_text = os.fsdecode(entry).partition("\n")
    value = next((value for pattern, value in _PROGRAM_SETTINGS if pattern.fullmatch(name)), None)
    if value is None and _FILE_SETTING.fullmatch(name):
        resolved_path = ResolvedPath.of(os.path.expanduser(path_text), folder)
        value = None if is_inside(resolved_path, (folder,)) else os.devnull
    return {} if value is None else {name: value}


_USER_SCOPES: Final = frozenset({b"system", b"global"})


@lru_cache(maxsize=1)
def _safe_folders() -> tuple[str, ...]:
    """Return the directories in the user's `safe.directory` setting."""
    output = _run_git(os.sep, "config", "--get-all", "-z", "safe.directory") or b""
    return tuple(os.fsdecode(entry) for entry in output.split(b"\0") if entry)


def _run_git(folder: str, *arguments: str) -> bytes | None:
    """Return the output of git; None if it fails."""
    import shutil
    import subprocess

    path = os.pathsep.join(program_folders(os.environ, (folder,) if folder != os.sep else ()))
    program = shutil.which("git", path=path)
    if program is None:
        return None
    env = {name: os.environ[name] for name in ("HOME", "XDG_CONFIG_HOME") if name in os.environ}
    try:
        process = subprocess.run(
            [program, *arguments],
            cwd=folder,
            env={**env, "PATH": path},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_GIT_TIMEOUT,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return process.stdout if process.returncode == 0 else None
