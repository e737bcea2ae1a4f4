"""Environment of the programs that an agent runs: without secrets, git running no programs.

sandbox_environment(env, scratch_dir)   a short list of variables, for commands nobody approved
approved_environment(env)               everything but secrets, for commands the user approved
git_settings(folders)                   variables that stop git from running programs
work_tree(folder)                       the folder whose files git compares and writes
remote_settings(folder)                 the addresses and programs of its remote repositories
scrub_environment(names)                overwrites secrets in the environment of this process

Programs that the agent starts could look at the environment of the process that started them,
which Linux shows to every program of the same user as it was at the start (`/proc/PID/environ`).
So it is overwritten in memory.
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
"""Where the environment begins and ends: fields 50 and 51, of which the first two are cut off."""


def scrub_environment(names: Iterable[str]) -> None:
    """Take variables out of the environment of this process; whoever needs them has read them."""
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
    """Return where the environment lies in memory; zeros where the system does not say."""
    try:
        with open(_STAT_FILE, "rb") as file:
            # The second field is a name in brackets, which may hold blanks and brackets itself.
            fields = file.read().rpartition(b")")[2].split()
        return int(fields[_START_FIELD]), int(fields[_END_FIELD])
    except (OSError, ValueError, IndexError):
        return 0, 0


_EXTRA_VARIABLES_NAME: Final = "STENO_PASS_ENV"
"""Names of variables, separated by commas, that approved programs get although they look secret."""
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
# Their names look like secrets, but they hold a number, a name or the place of something.
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
    # The repositories of submodules have settings of their own.
    ("diff.ignoreSubmodules", "dirty"),
    ("diff.submodule", "short"),
    ("push.recurseSubmodules", "no"),
    ("status.submoduleSummary", "false"),
    ("submodule.recurse", "false"),
    ("fetch.recurseSubmodules", "false"),
    ("gc.auto", "0"),
    ("maintenance.auto", "false"),
)
# Compares two files as git would; git runs it in place of the program that a repository names.
_PLAIN_DIFF: Final = (
    """f() { echo "diff --git a/$1 b/$1"; """
    """diff -u --label "a/$1" --label "b/$1" "$2" "$5"; true; }; f"""
)
# Settings that name a program, and what is put in their place where a repository has them.
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
# Settings that name a file, which git may show or write.
_FILE_SETTING: Final = re.compile(r".*(?:file|template|path|list|dir)", re.IGNORECASE | re.DOTALL)
# A list of files: another value is added to it and replaces none.
_LIST_SETTING: Final = "blame.ignorerevsfile"
_MAX_SETTINGS: Final = 2000
_GIT_TIMEOUT: Final = 5.0


def sandbox_environment(env: Mapping[str, str], *, scratch: str = "", folders: tuple[str, ...] = ()) -> dict[str, str]:
    """Return a short list of variables: no key, token, socket, or setting that runs a program.

    PATH is left with its absolute folders outside the working folders.

    >>> sandbox_environment({"PATH": "bin:/usr/bin", "LANG": "C", "GH_TOKEN": "x", "LD_PRELOAD": "y"})
    {'LANG': 'C', 'PATH': '/usr/bin'}
    """
    variables = {name: value for name, value in env.items() if name in _SANDBOX_VARIABLES}
    variables["PATH"] = os.pathsep.join(program_folders(env, folders))
    if scratch:
        # Programs look for settings of the user there, which they could not read.
        variables |= {"TMPDIR": scratch, "XDG_CONFIG_HOME": scratch, "XDG_CACHE_HOME": scratch}
    return variables


def program_and_library_folders(env: Mapping[str, str], folders: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the folders of PATH, and the libraries that lie next to a `bin` among them."""
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
    """Return the absolute folders of PATH that are not inside the given folders."""
    path = env.get("PATH") or os.defpath
    absolute = [entry for entry in dict.fromkeys(path.split(os.pathsep)) if os.path.isabs(entry)]
    return [each for each in absolute if not is_inside(ResolvedPath.of(each), folders)] or ["/usr/bin", "/bin"]


def approved_environment(env: Mapping[str, str], passed: Iterable[str] = ()) -> dict[str, str]:
    """Return an environment without what looks like a key, a token or a password.

    `passed` are variables that the user gave to programs on purpose.

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
    # `API_KEY2` is one key of several.
    if name in _NOT_SECRET or not _SECRET_NAME.search(name.rstrip("0123456789")):
        return False
    return not _HARMLESS_VALUE.fullmatch(value)


def git_settings(
    folders: Iterable[str], *, isolated: bool = False, strict: bool = False, pushes: bool = False
) -> dict[str, str]:
    """Return variables under which git runs no program that a repository's settings name.

    Args:
        folders: Where git may be run; names in the settings of their repositories are read.
        isolated: Whether the settings of user and system are left out as well, but for the folders
            that they call safe.
        strict: Whether nothing else keeps git in check, so that settings which cannot be read are
            an error.
        pushes: Whether it pushes: git runs the hooks of a repository on this machine without these
            variables, so pushing to one is not possible.

    Raises:
        StenoError: the settings of a repository cannot be read, or there are too many.
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
        raise StenoError(f"the setting {_LIST_SETTING} names a file outside the working folder")
    pairs += list(overrides.items())[:_MAX_SETTINGS]
    variables["GIT_CONFIG_COUNT"] = str(len(pairs))
    for index, (name, value) in enumerate(pairs):
        variables[f"GIT_CONFIG_KEY_{index}"] = name
        variables[f"GIT_CONFIG_VALUE_{index}"] = value
    return variables


def work_tree(folder: str) -> str:
    """Return the real path of the folder whose files git compares and writes; empty if none."""
    output = _run_git(folder, "-c", "core.fsmonitor=false", "rev-parse", "--show-toplevel")
    text = os.fsdecode((output or b"").removesuffix(b"\n"))
    return os.path.realpath(text) if text else ""


def remote_settings(folder: str) -> tuple[list[str], list[str]] | None:
    """Return the addresses of remote repositories, and the settings that name their programs.

    None where the settings of the folder's repository cannot be read.
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
    """Return the settings of a folder's repository that name a program, with harmless values."""
    settings: dict[str, str] = {}
    output = _run_git(folder, "config", "--list", "--show-scope", "-z")
    if output is None and strict:
        raise StenoError(f"the settings of the repository of {folder} cannot be read")
    entries = (output or b"").split(b"\0")
    for scope, entry in zip(entries[::2], entries[1::2], strict=False):
        if scope not in _USER_SCOPES:
            settings |= _neutralize(entry, folder)
    # What it says of submodules holds as if it stood in the settings.
    gitmodules = os.path.join(work_tree(folder), ".gitmodules")
    if os.path.isfile(gitmodules):
        output = _run_git(folder, "config", "-f", gitmodules, "--list", "-z")
        for entry in (output or b"").split(b"\0"):
            settings |= _neutralize(entry, folder)
    return settings


def _neutralize(entry: bytes, folder: str) -> dict[str, str]:
    """Return a harmless value for a setting that names a program, or a file outside the folder."""
    name, _, path_text = os.fsdecode(entry).partition("\n")
    value = next((value for pattern, value in _PROGRAM_SETTINGS if pattern.fullmatch(name)), None)
    if value is None and _FILE_SETTING.fullmatch(name):
        resolved_path = ResolvedPath.of(os.path.expanduser(path_text), folder)
        value = None if is_inside(resolved_path, (folder,)) else os.devnull
    return {} if value is None else {name: value}


_USER_SCOPES: Final = frozenset({b"system", b"global"})


@lru_cache(maxsize=1)
def _safe_folders() -> tuple[str, ...]:
    """Return the folders whose repositories the user trusts although they belong to others."""
    output = _run_git(os.sep, "config", "--get-all", "-z", "safe.directory") or b""
    return tuple(os.fsdecode(entry) for entry in output.split(b"\0") if entry)


def _run_git(folder: str, *arguments: str) -> bytes | None:
    """Return what git prints for words that run no program; None where it fails."""
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
