"""Paths with links followed, compared part by part; which of them are protected or secret.

place = ResolvedPath.of("src/../link/file", cwd)
place.real                      # the real path, or what it would be if the file were created
is_inside(place, folders)       # compares parts: /proj does not contain /proj-evil
why_protected(place)            # the reason, when writing needs approval

>>> resolve_path("~/notes", "/srv", "/home/ada")
'/home/ada/notes'
>>> resolve_glob("../x/*.py", "src", "/srv", "/home/ada")
('/srv/x', '/*.py')
"""

import os
import re
import stat
import unicodedata
from contextlib import suppress
from typing import Final

import msgspec

from steno.errors import BadRequest
from steno.permissions.shell.command import word_set
from steno.store.environment import config_dir, home_dir, steno_home

# Names that file systems ignore or change: zero-width characters on some, case on many.
_IGNORED_CHARACTERS: Final = re.compile("[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")
_PROTECTED_FOLDERS: Final = frozenset({".git", ".claude", ".vscode", ".idea", ".husky", ".steno"})
SECRET_FOLDERS: Final = frozenset({".ssh", ".gnupg", ".aws", ".kube", ".docker"})
_PROTECTED_FILES: Final = word_set(
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
_SYSTEM_FOLDERS: Final = frozenset({"proc", "sys", "dev", "etc", "boot"})
STANDARD_DEVICES: Final = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin"})


class ResolvedPath(msgspec.Struct, frozen=True):
    """A path, as it was written and as it really is."""

    path: str
    """Absolute, without `.` and `..`, links not followed."""
    real: str
    """With links followed as far as the path exists."""
    broken: bool = False
    """Whether it is no path that any file can have."""

    @classmethod
    def of(cls, path: str, cwd: str = "") -> "ResolvedPath":
        """Return the place of a path; `~` is the shell's business and not expanded here."""
        joined = path if os.path.isabs(path) else os.path.join(cwd or os.getcwd(), path)
        normalized = os.path.normpath(joined).replace("//", "/")
        try:
            return cls(normalized, os.path.realpath(joined))
        except (OSError, ValueError):
            return cls(normalized, normalized, broken=True)

    @property
    def parts(self) -> tuple[str, ...]:
        """The parts of the path as it was written."""
        return _split_parts(self.path)

    @property
    def real_parts(self) -> tuple[str, ...]:
        """The parts of the path as it is."""
        return _split_parts(self.real)

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


def _split_parts(path: str) -> tuple[str, ...]:
    drive, rest = os.path.splitdrive(path)
    parts = [part for part in re.split(r"[/\\]" if os.name == "nt" else "/", rest) if part]
    return (drive, *parts) if drive else tuple(parts)


def fold_name(name: str) -> str:
    """Return a name as the laxest of file systems compares it."""
    plain = _IGNORED_CHARACTERS.sub("", unicodedata.normalize("NFC", name)).casefold()
    return unicodedata.normalize("NFC", plain).rstrip(" ") or name


def relative_parts(parts: tuple[str, ...], folder: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the parts of a path below a folder; None when it is not below it."""
    return parts[len(folder) :] if parts[: len(folder)] == folder else None


def is_inside(resolved_path: ResolvedPath, folders: tuple[str, ...]) -> bool:
    """Whether a place really is in one of the folders, or is one of them."""
    return not resolved_path.broken and any(
        relative_parts(resolved_path.real_parts, ResolvedPath.of(folder).real_parts) is not None
        for folder in folders
        if os.path.isabs(folder)
    )


def why_protected(resolved_path: ResolvedPath) -> str:
    """Say why a place must not be written without asking; empty when there is no reason."""
    if resolved_path.path in STANDARD_DEVICES:
        return ""
    for parts in resolved_path.all_parts:
        folded_parts = tuple(fold_name(part).rstrip(".") or part for part in parts)
        protected_name = next((name for name in folded_parts if name in _PROTECTED_FOLDERS | SECRET_FOLDERS), "")
        if protected_name:
            return f"{protected_name} decides what programs do or holds secrets"
        if folded_parts and folded_parts[-1] in _PROTECTED_FILES:
            return f"{folded_parts[-1]} decides what programs do"
        if any(re.match(r"(?:git|claude|ssh)~[0-9]", name) for name in folded_parts):
            return "it is a short name of a protected folder"
        if folded_parts and folded_parts[0] in _SYSTEM_FOLDERS:
            return f"/{folded_parts[0]} belongs to the system"
        if _is_in_own_folder(folded_parts):
            return "sessions and settings are kept there"
        if _is_login_file(folded_parts):
            return "it is run or read at every login"
    return ""


def _is_in_own_folder(folded_parts: tuple[str, ...]) -> bool:
    """Whether a path is in the session store or in steno's own folder."""
    for folder in _own_folders():
        for parts in ResolvedPath.of(folder).all_parts:
            if relative_parts(folded_parts, tuple(map(fold_name, parts))) is not None:
                return True
    return False


def _own_folders() -> tuple[str, ...]:
    """Return where the user's sessions, settings and steno's own files are, as far as it is known."""
    folders: list[str] = []
    for location in (config_dir, steno_home):
        with suppress(BadRequest):
            folders.append(os.path.abspath(location()))
    return tuple(folders)


def _home_dir_or_missing() -> str:
    """Return the home folder; nothing that exists when there is none."""
    with suppress(BadRequest):
        return os.path.abspath(home_dir())
    return "/nonexistent"


def _is_login_file(folded_parts: tuple[str, ...]) -> bool:
    for home in ResolvedPath.of(_home_dir_or_missing()).all_parts:
        parts_below_home = relative_parts(folded_parts, tuple(map(fold_name, home)))
        if parts_below_home is not None and any(parts_below_home[: len(prefix)] == prefix for prefix in _HOME_FOLDERS):
            return True
    return False


def why_secret(resolved_path: ResolvedPath) -> str:
    """Say why a place must not be read without asking, even inside the working folders."""
    for parts in resolved_path.all_parts:
        folded_parts = tuple(map(fold_name, parts))
        if folded_parts and folded_parts[0] in {"proc", "sys", "dev"} and resolved_path.path not in STANDARD_DEVICES:
            return f"/{folded_parts[0]} shows what the system and other programs hold"
        secret_folder = next((name for name in folded_parts if name in SECRET_FOLDERS), "")
        if secret_folder or (folded_parts and folded_parts[-1] in SECRET_FILES):
            return f"{secret_folder or folded_parts[-1]} holds secrets"
    return ""


def protected_paths(folder: str) -> tuple[str, ...]:
    """Return the files and folders at the top of a folder that must not be changed without asking."""
    names = sorted({*_PROTECTED_FOLDERS, *SECRET_FOLDERS, *_PROTECTED_FILES})
    return tuple(os.path.join(folder, name) for name in names)


def holds_protected(resolved_path: ResolvedPath, folders: tuple[str, ...]) -> bool:
    """Whether moving or removing a folder would take a protected place or a working folder along."""
    protected_folders = (*folders, _home_dir_or_missing(), *_own_folders())
    for folder in protected_folders:
        for parts in ResolvedPath.of(folder).all_parts:
            if any(relative_parts(parts, names) is not None for names in resolved_path.all_parts):
                return True
    return any(os.path.lexists(os.path.join(resolved_path.real, name)) for name in _PROTECTED_FOLDERS)


_GLOB_CHARACTERS: Final = frozenset("*?[{\\")


def resolve_path(path_text: str, cwd: str, home: str) -> str:
    """Return the absolute path that a call means; links are followed only where `..` needs it."""
    if home and (path_text == "~" or path_text.startswith("~/")):
        path_text = home + path_text[1:]
    path = os.path.join(cwd, path_text)
    if os.pardir not in path.split(os.sep):
        return os.path.normpath(path)
    # Only the file system knows where `..` leads behind a link.
    folder, name = os.path.split(path)
    if name in {"", os.curdir, os.pardir}:
        return os.path.realpath(path)
    return os.path.join(os.path.realpath(folder), name)


def resolve_glob(pattern: str, path: str | None, cwd: str, home: str) -> tuple[str, str]:
    """Return the folder that a pattern of names is looked for in, and what is left of it there."""
    folder = resolve_path(path or ".", cwd, home)
    pattern = pattern.removeprefix("./")
    if not pattern.startswith(("/", "~/")) and ".." not in pattern.split("/"):
        return folder, pattern
    parts = pattern.split("/")
    literal_count = next((index for index, part in enumerate(parts) if _GLOB_CHARACTERS & set(part)), len(parts) - 1)
    literal_count = min(literal_count, len(parts) - 1)
    literal_folder = "/".join(parts[:literal_count]) or "/" * pattern.startswith("/") or "."
    return resolve_path(literal_folder, folder, home), "/" + "/".join(parts[literal_count:])
