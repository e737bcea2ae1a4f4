"""The environment of the programs that an agent runs: without secrets, and with git kept in check.

confined_environment(env, scratch)      a short list of variables, for what nobody approved
approved_environment(env)               everything but secrets, for what the user approved
git_settings(folders)                   variables that stop git from running programs
work_tree(folder)                       the folder whose files git compares and writes there
remote_settings(folder)                 the addresses and programs of its remote repositories
"""

import os
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Final

from steno.errors import StenoError
from steno.guard.paths import Place, is_inside
from steno.guard.words import names

__all__ = [
    "approved_environment",
    "confined_environment",
    "git_settings",
    "program_folders",
    "program_trees",
    "remote_settings",
    "work_tree",
]

_PASSED: Final = "STENO_PASS_ENV"
"""Names of variables, separated by commas, that approved programs get although they look secret."""
_CONFINED: Final = names(
    "USER LOGNAME SHELL HOME LANG LANGUAGE LC_ALL LC_CTYPE LC_COLLATE LC_MESSAGES LC_NUMERIC LC_TIME"
    " TZ TERM COLORTERM COLUMNS LINES NO_COLOR FORCE_COLOR CLICOLOR CLICOLOR_FORCE CI"
)
_SECRET: Final = re.compile(
    r"(?:^|[_-])(?:(?:API|ACCESS|PRIVATE|SIGNING|ENCRYPTION|MASTER|LICENSE|SERVICE|ACCOUNT|SHARED)?KEYS?"
    r"|APIKEYS?|TOKENS?|SECRETS?|SECRETKEY|ACCESSKEY|ACCESSTOKEN|PASS|PASSWD|PASSWORDS?|PASSPHRASE|PWD"
    r"|CREDENTIALS?|CREDS?|AUTH|AUTHORIZATION|COOKIES?|JWT|PAT|BEARER|DSN|SALT|SESSION|CONNECTION_STRING"
    r"|CONNSTR|HEADERS|WEBHOOKS?)(?:$|[_-])|(?:TOKEN|SECRET|PASSWORD|PASSWD|APIKEY|[A-Z]PASS)S?$",
    re.IGNORECASE,
)
# Their names look like secrets, but they hold a number, a name or the place of something.
_NOT_SECRET: Final = names(
    "PWD OLDPWD SSH_AUTH_SOCK XAUTHORITY GPG_TTY SSH_ASKPASS SUDO_ASKPASS GIT_ASKPASS SESSION_MANAGER"
    " DESKTOP_SESSION GDMSESSION XDG_SESSION_ID XDG_SESSION_TYPE XDG_SESSION_CLASS XDG_SESSION_DESKTOP"
    " DBUS_SESSION_BUS_ADDRESS TERM_SESSION_ID SECURITYSESSIONID STY"
)
_HARMLESS_VALUE: Final = re.compile(r"/[^:@\s]*|[0-9]{0,6}|true|false|yes|no|on|off", re.IGNORECASE)
# `scheme://user:password@host`
_URL_WITH_PASSWORD: Final = re.compile(
    r"[a-z][a-z0-9+.-]{1,30}://[^/\s:@]{0,200}:[^/\s@]{1,200}@", re.IGNORECASE
)

_GIT: Final = {
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "false",
    "GIT_SEQUENCE_EDITOR": "false",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_ASKPASS": "",
    "SSH_ASKPASS": "",
}
_ALWAYS: Final = (
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
_COMPARE: Final = (
    """f() { echo "diff --git a/$1 b/$1"; """
    """diff -u --label "a/$1" --label "b/$1" "$2" "$5"; true; }; f"""
)
# Settings that name a program, and what is put in their place where a repository has them.
_PROGRAMS: Final = tuple(
    (re.compile(form, re.IGNORECASE | re.DOTALL), value)
    for form, value in (
        (r"diff\.(?:.+\.command|external)", _COMPARE),
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
_NAMES_FILE: Final = re.compile(r".*(?:file|template|path|list|dir)", re.IGNORECASE | re.DOTALL)
# A list of files: another value is added to it and replaces none.
_ADDED_TO: Final = "blame.ignorerevsfile"
_MOST_NAMES: Final = 2000
_SECONDS: Final = 5.0


def confined_environment(
    env: Mapping[str, str], *, scratch: str = "", folders: tuple[str, ...] = ()
) -> dict[str, str]:
    """Return a short list of variables: no key, token, socket, or setting that runs a program.

    PATH is left with its absolute folders outside the working folders.

    >>> confined_environment({"PATH": "bin:/usr/bin", "LANG": "C", "GH_TOKEN": "x", "LD_PRELOAD": "y"})
    {'LANG': 'C', 'PATH': '/usr/bin'}
    """
    found = {name: value for name, value in env.items() if name in _CONFINED}
    found["PATH"] = os.pathsep.join(program_folders(env, folders))
    if scratch:
        # Programs look for settings of the user there, which they could not read.
        found |= {"TMPDIR": scratch, "XDG_CONFIG_HOME": scratch, "XDG_CACHE_HOME": scratch}
    return found


def program_trees(env: Mapping[str, str], folders: tuple[str, ...] = ()) -> tuple[str, ...]:
    """Return the folders of PATH, and the libraries that lie next to a `bin` among them."""
    found = program_folders(env, folders)
    beside = [
        os.path.join(os.path.dirname(path), name)
        for path in found
        if os.path.basename(path) == "bin"
        for name in _LIBRARIES
    ]
    return (*found, *filter(os.path.isdir, beside))


_LIBRARIES: Final = ("lib", "lib64", "libexec", "Cellar", "opt")


def program_folders(env: Mapping[str, str], folders: tuple[str, ...] = ()) -> list[str]:
    """Return the absolute folders of PATH that are not inside the given folders."""
    path = env.get("PATH") or os.defpath
    kept = [each for each in dict.fromkeys(path.split(os.pathsep)) if os.path.isabs(each)]
    return [each for each in kept if not is_inside(Place.of(each), folders)] or ["/usr/bin", "/bin"]


def approved_environment(env: Mapping[str, str], passed: Iterable[str] = ()) -> dict[str, str]:
    """Return an environment without what looks like a key, a token or a password.

    `passed` are variables that the user gave to programs on purpose.

    >>> approved_environment({"GH_TOKEN": "gho_x", "EDITOR": "vi", "DB": "pg://ada:pw@host/db"})
    {'EDITOR': 'vi'}
    >>> approved_environment({"GH_TOKEN": "gho_x", "STENO_PASS_ENV": "GH_TOKEN"})["GH_TOKEN"]
    'gho_x'
    """
    wanted = {*passed, *(name.strip() for name in env.get(_PASSED, "").split(","))}
    return {
        name: value for name, value in env.items() if name in wanted or not _is_secret(name, value)
    }


def _is_secret(name: str, value: str) -> bool:
    if _URL_WITH_PASSWORD.search(value):
        return True
    # `API_KEY2` is one key of several.
    if name in _NOT_SECRET or not _SECRET.search(name.rstrip("0123456789")):
        return False
    return not _HARMLESS_VALUE.fullmatch(value)


def git_settings(
    folders: Iterable[str], *, alone: bool = False, strict: bool = False, pushes: bool = False
) -> dict[str, str]:
    """Return variables under which git runs no program that a repository's settings name.

    Args:
        folders: Where git may be run; names in the settings of their repositories are read.
        alone: Whether the settings of user and system are left out as well, but for the folders
            that they call safe.
        strict: Whether nothing else keeps git in check, so that settings which cannot be read are
            an error.
        pushes: Whether it pushes: git runs the hooks of a repository on this machine without these
            variables, so pushing to one is not possible.

    Raises:
        StenoError: the settings of a repository cannot be read, or there are too many.
    """
    pairs = [*_ALWAYS]
    found = dict(_GIT)
    if alone:
        found |= {
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
        }
        pairs += [("safe.directory", folder) for folder in _safe_folders()]
    if pushes:
        pairs.append(("protocol.file.allow", "never"))
    named: dict[str, str] = {}
    for folder in dict.fromkeys(folders):
        named |= _of_repository(folder, strict=strict)
    if strict and len(named) > _MOST_NAMES:
        raise StenoError(f"the repository has more than {_MOST_NAMES} settings that name programs")
    if strict and _ADDED_TO in named:
        raise StenoError(f"the setting {_ADDED_TO} names a file outside the working folder")
    pairs += list(named.items())[:_MOST_NAMES]
    found["GIT_CONFIG_COUNT"] = str(len(pairs))
    for at, (name, value) in enumerate(pairs):
        found[f"GIT_CONFIG_KEY_{at}"] = name
        found[f"GIT_CONFIG_VALUE_{at}"] = value
    return found


def work_tree(folder: str) -> str:
    """Return the real path of the folder whose files git compares and writes; empty if none."""
    said = _git_says(folder, "-c", "core.fsmonitor=false", "rev-parse", "--show-toplevel")
    text = os.fsdecode((said or b"").removesuffix(b"\n"))
    return os.path.realpath(text) if text else ""


def remote_settings(folder: str) -> tuple[list[str], list[str]] | None:
    """Return the addresses of remote repositories, and the settings that name their programs.

    None where the settings of the folder's repository cannot be read.
    """
    said = _git_says(folder, "config", "--list", "-z")
    if said is None:
        return None
    addresses: list[str] = []
    programs: list[str] = []
    for entry in filter(None, said.split(b"\0")):
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


def _of_repository(folder: str, *, strict: bool) -> dict[str, str]:
    """Return the settings of a folder's repository that name a program, with harmless values."""
    found: dict[str, str] = {}
    said = _git_says(folder, "config", "--list", "--show-scope", "-z")
    if said is None and strict:
        raise StenoError(f"the settings of the repository of {folder} cannot be read")
    entries = (said or b"").split(b"\0")
    for scope, entry in zip(entries[::2], entries[1::2], strict=False):
        if scope not in _OF_USER:
            found |= _neutral(entry, folder)
    # What it says of submodules holds as if it stood in the settings.
    listed = os.path.join(work_tree(folder), ".gitmodules")
    if os.path.isfile(listed):
        said = _git_says(folder, "config", "-f", listed, "--list", "-z")
        for entry in (said or b"").split(b"\0"):
            found |= _neutral(entry, folder)
    return found


def _neutral(entry: bytes, folder: str) -> dict[str, str]:
    """Return a harmless value for a setting that names a program, or a file outside the folder."""
    name, _, given = os.fsdecode(entry).partition("\n")
    value = next((value for form, value in _PROGRAMS if form.fullmatch(name)), None)
    if value is None and _NAMES_FILE.fullmatch(name):
        place = Place.of(os.path.expanduser(given), folder)
        value = None if is_inside(place, (folder,)) else os.devnull
    return {} if value is None else {name: value}


_OF_USER: Final = frozenset({b"system", b"global"})


@lru_cache(maxsize=1)
def _safe_folders() -> tuple[str, ...]:
    """Return the folders whose repositories the user trusts although they belong to others."""
    said = _git_says(os.sep, "config", "--get-all", "-z", "safe.directory") or b""
    return tuple(os.fsdecode(each) for each in said.split(b"\0") if each)


def _git_says(folder: str, *words: str) -> bytes | None:
    """Return what git prints for words that run no program; None where it fails."""
    import shutil
    import subprocess

    path = os.pathsep.join(program_folders(os.environ, (folder,) if folder != os.sep else ()))
    program = shutil.which("git", path=path)
    if program is None:
        return None
    env = {name: os.environ[name] for name in ("HOME", "XDG_CONFIG_HOME") if name in os.environ}
    try:
        done = subprocess.run(
            [program, *words],
            cwd=folder,
            env={**env, "PATH": path},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None
