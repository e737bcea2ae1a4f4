"""Paths as the file system sees them: links followed, compared part by part.

place = Place.of("src/../link/file", cwd)
place.real                      # where it really is, or would be if it were made
is_inside(place, folders)       # never fooled by /proj and /proj-evil
why_protected(place)            # words, when nobody may write there without being asked
"""

import os
import re
import stat
import unicodedata
from contextlib import suppress
from typing import Final

import msgspec

from steno.errors import BadRequest
from steno.guard.words import names
from steno.store.places import config_dir, home_dir, steno_home

__all__ = [
    "SECRET_FILES",
    "SECRET_FOLDERS",
    "Place",
    "folded",
    "holds_protected",
    "inside_parts",
    "is_inside",
    "protected_paths",
    "why_protected",
    "why_secret",
]

# Names that file systems ignore or change: zero-width characters on some, case on many.
_IGNORED: Final = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
_FOLDERS: Final = frozenset({".git", ".claude", ".vscode", ".idea", ".husky", ".steno"})
SECRET_FOLDERS: Final = frozenset({".ssh", ".gnupg", ".aws", ".kube", ".docker"})
_FILES: Final = names(
    ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile .zshrc .zshenv"
    " .zprofile .zlogin .zlogout .kshrc .mkshrc .cshrc .tcshrc .login .inputrc .gitconfig"
    " .gitmodules .ripgreprc .mcp.json .claude.json .envrc .npmrc .yarnrc"
    " .yarnrc.yml .pypirc .netrc .vimrc .exrc .tmux.conf .screenrc .xprofile .xinitrc .pam_environment"
    " authorized_keys crontab sudoers .pre-commit-config.yaml"
)
SECRET_FILES: Final = frozenset({".credentials.json", ".netrc", ".pypirc", ".git-credentials"})
_HOME_FOLDERS: Final = (
    (".config", "git"),
    (".config", "fish"),
    (".config", "autostart"),
    (".config", "systemd"),
    (".config", "environment.d"),
    (".local", "bin"),
    ("library", "launchagents"),
    ("bin",),
)
_SYSTEM: Final = frozenset({"proc", "sys", "dev", "etc", "boot"})
_HARMLESS_DEVICES: Final = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin"})


class Place(msgspec.Struct, frozen=True):
    """A path, as it was written and as it really is."""

    path: str
    """Absolute, without `.` and `..`, links not followed."""
    real: str
    """With links followed as far as the path exists."""
    broken: bool = False
    """Whether it is no path that any file can have."""

    @classmethod
    def of(cls, path: str, cwd: str = "") -> "Place":
        """Return the place of a path; `~` is the shell's business and not expanded here."""
        joined = path if os.path.isabs(path) else os.path.join(cwd or os.getcwd(), path)
        plain = os.path.normpath(joined).replace("//", "/")
        try:
            return cls(plain, os.path.realpath(joined))
        except (OSError, ValueError):
            return cls(plain, plain, broken=True)

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the path as it was written."""
        return _parts(self.path)

    @property
    def real_parts(self) -> tuple[str, ...]:
        """The parts of the path as it is."""
        return _parts(self.real)

    @property
    def all_parts(self) -> tuple[tuple[str, ...], ...]:
        """Both, for rules that forbid; one when they are the same."""
        return (self.parts,) if self.path == self.real else (self.parts, self.real_parts)

    @property
    def is_shared(self) -> bool:
        """Whether it is a file that has another name somewhere: a hard link."""
        try:
            status = os.lstat(self.real)
        except (OSError, ValueError):
            return False
        return stat.S_ISREG(status.st_mode) and status.st_nlink > 1


def _parts(path: str) -> tuple[str, ...]:
    drive, rest = os.path.splitdrive(path)
    named = [part for part in re.split(r"[/\\]" if os.name == "nt" else "/", rest) if part]
    return (drive, *named) if drive else tuple(named)


def folded(name: str) -> str:
    """Return a name as the laxest of file systems compares it."""
    plain = _IGNORED.sub("", unicodedata.normalize("NFC", name)).casefold()
    return unicodedata.normalize("NFC", plain).rstrip(" ") or name


def inside_parts(parts: tuple[str, ...], folder: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the parts of a path below a folder; None when it is not below it."""
    return parts[len(folder) :] if parts[: len(folder)] == folder else None


def is_inside(place: Place, folders: tuple[str, ...]) -> bool:
    """Whether a place really is in one of the folders, or is one of them."""
    return not place.broken and any(
        inside_parts(place.real_parts, Place.of(folder).real_parts) is not None
        for folder in folders
        if os.path.isabs(folder)
    )


def why_protected(place: Place) -> str:
    """Say why a place must not be written without asking; empty when there is no reason."""
    if place.path in _HARMLESS_DEVICES:
        return ""
    for parts in place.all_parts:
        names = tuple(folded(part).rstrip(".") or part for part in parts)
        short = next((name for name in names if name in _FOLDERS | SECRET_FOLDERS), "")
        if short:
            return f"{short} decides what programs do or holds secrets"
        if names and names[-1] in _FILES:
            return f"{names[-1]} decides what programs do"
        if any(re.match(r"(?:git|claude|ssh)~[0-9]", name) for name in names):
            return "it is a short name of a protected folder"
        if names and names[0] in _SYSTEM:
            return f"/{names[0]} belongs to the system"
        if _own(names):
            return "sessions and settings are kept there"
        if _in_home(names):
            return "it is run or read at every login"
    return ""


def _own(names: tuple[str, ...]) -> bool:
    """Whether a path is in the session store or in steno's own folder."""
    for folder in _own_folders():
        for parts in Place.of(folder).all_parts:
            if inside_parts(names, tuple(map(folded, parts))) is not None:
                return True
    return False


def _own_folders() -> tuple[str, ...]:
    """Return where the user's sessions, settings and steno's own files are, as far as it is known."""
    found: list[str] = []
    for place in (config_dir, steno_home):
        with suppress(BadRequest):
            found.append(os.path.abspath(place()))
    return tuple(found)


def _home() -> str:
    """Return the home folder; nothing that exists when there is none."""
    with suppress(BadRequest):
        return os.path.abspath(home_dir())
    return "/nonexistent"


def _in_home(names: tuple[str, ...]) -> bool:
    for home in Place.of(_home()).all_parts:
        rest = inside_parts(names, tuple(map(folded, home)))
        if rest is not None and any(rest[: len(each)] == each for each in _HOME_FOLDERS):
            return True
    return False


def why_secret(place: Place) -> str:
    """Say why a place must not be read without asking, even inside the working folders."""
    for parts in place.all_parts:
        names = tuple(map(folded, parts))
        if names and names[0] in {"proc", "sys", "dev"} and place.path not in _HARMLESS_DEVICES:
            return f"/{names[0]} shows what the system and other programs hold"
        found = next((name for name in names if name in SECRET_FOLDERS), "")
        if found or (names and names[-1] in SECRET_FILES):
            return f"{found or names[-1]} holds secrets"
    return ""


def protected_paths(folder: str) -> tuple[str, ...]:
    """Return the files and folders at the top of a folder that must not be changed without asking."""
    names = sorted({*_FOLDERS, *SECRET_FOLDERS, *_FILES})
    return tuple(os.path.join(folder, name) for name in names)


def holds_protected(place: Place, folders: tuple[str, ...]) -> bool:
    """Whether moving or removing a folder would take a protected place or a working folder along."""
    kept = (*folders, _home(), *_own_folders())
    for folder in kept:
        for parts in Place.of(folder).all_parts:
            if any(inside_parts(parts, names) is not None for names in place.all_parts):
                return True
    return any(os.path.lexists(os.path.join(place.real, name)) for name in _FOLDERS)
