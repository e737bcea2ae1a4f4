"""The environment of the programs that an agent runs: without secrets, and with git kept in check.

confined_environment(env, scratch)      a short list of variables, for what nobody approved
approved_environment(env)               everything but secrets, for what the user approved
git_settings(folders)                   variables that stop git from running programs
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

from steno.guard.paths import Place, is_inside
from steno.guard.words import names

__all__ = [
    "approved_environment",
    "confined_environment",
    "git_settings",
    "program_folders",
    "program_trees",
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
    r"|CONNSTR|HEADERS)(?:$|[_-])|(?:TOKEN|SECRET|PASSWORD|PASSWD|APIKEY)S?$",
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
    if name in _NOT_SECRET or not _SECRET.search(name):
        return False
    return not _HARMLESS_VALUE.fullmatch(value)


def git_settings(folders: Iterable[str], *, alone: bool = False) -> dict[str, str]:
    """Return variables under which git runs no program that a repository's settings name.

    Args:
        folders: Where git may be run; names in the settings of their repositories are read.
        alone: Whether the settings of user and system are left out as well, but for the folders
            that they call safe.
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
    pairs += {pair: None for folder in dict.fromkeys(folders) for pair in _of_repository(folder)}
    found["GIT_CONFIG_COUNT"] = str(len(pairs))
    for at, (name, value) in enumerate(pairs):
        found[f"GIT_CONFIG_KEY_{at}"] = name
        found[f"GIT_CONFIG_VALUE_{at}"] = value
    return found


def _of_repository(folder: str) -> Iterator[tuple[str, str]]:
    """Yield the settings of a folder's repository that name a program, with harmless values."""
    said = _git_config(folder, "--list", "--show-scope", "--name-only", "-z").split(b"\0")
    count = 0
    for scope, entry in zip(said[::2], said[1::2], strict=False):
        name = entry.decode("utf-8", "surrogateescape")
        value = next((value for form, value in _PROGRAMS if form.fullmatch(name)), None)
        if scope not in _OF_USER and value is not None:
            count += 1
            if count > _MOST_NAMES:
                return
            yield name, value


_OF_USER: Final = frozenset({b"system", b"global"})


@lru_cache(maxsize=1)
def _safe_folders() -> tuple[str, ...]:
    """Return the folders whose repositories the user trusts although they belong to others."""
    said = _git_config(os.sep, "--get-all", "-z", "safe.directory")
    return tuple(each.decode("utf-8", "surrogateescape") for each in said.split(b"\0") if each)


def _git_config(folder: str, *words: str) -> bytes:
    """Return what `git config` says, which runs no program; nothing where it fails."""
    import shutil
    import subprocess

    path = os.pathsep.join(program_folders(os.environ, (folder,) if folder != os.sep else ()))
    program = shutil.which("git", path=path)
    if program is None:
        return b""
    env = {name: os.environ[name] for name in ("HOME", "XDG_CONFIG_HOME") if name in os.environ}
    try:
        done = subprocess.run(
            [program, "config", *words],
            cwd=folder,
            env={**env, "PATH": path},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return b""
    return done.stdout if done.returncode == 0 else b""
