"""Resolved paths, compared component by component; checks for protected and secret paths.

resolved_path = ResolvedPath.of("src/../link/file", cwd)
resolved_path.real                      # the real path, or the future one of a new file
is_inside(resolved_path, folders)       # compares components: /proj does not contain /proj-evil
why_protected(resolved_path)            # why writing needs approval; empty if it does not

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

# Characters that some file systems ignore in names. Many also ignore case.
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
    """A path as written and as resolved."""

    path: str
    """Absolute, without `.` and `..`; symbolic links are not followed."""
    real: str
    """With symbolic links followed as far as the path exists."""
    broken: bool = False
    """Whether no file can have this path."""

    @classmethod
    def of(cls, path: str, cwd: str = "") -> "ResolvedPath":
        """Resolve a path. `~` is not expanded here."""
        joined = path if os.path.isabs(path) else os.path.join(cwd or os.getcwd(), path)
        normalized = os.path.normpath(joined).replace("//", "/")
        try:
            return cls(normalized, os.path.realpath(joined))
        except (OSError, ValueError):
            return cls(normalized, normalized, broken=True)

    @property
    def parts(self) -> tuple[str, ...]:
        """The components of the path as written."""
        return _split_parts(self.path)

    @property
    def real_parts(self) -> tuple[str, ...]:
        """The components of the real path."""
        return _split_parts(self.real)

    @property
    def all_parts(self) -> tuple[tuple[str, ...], ...]:
        """Components of both paths, for deny rules; one entry if they are equal."""
        return (self.parts,) if self.path == self.real else (self.parts, self.real_parts)

    @property
    def is_shared(self) -> bool:
        """Whether the path is a file with more than one hard link."""
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
    """Return a name folded as on the most permissive file system, for comparison."""
    plain = _IGNORED_CHARACTERS.sub("", unicodedata.normalize("NFC", name)).casefold()
    return unicodedata.normalize("NFC", plain).rstrip(" ") or name


def relative_parts(parts: tuple[str, ...], folder: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the components below a directory; None if the path is not below it."""
    return parts[len(folder) :] if parts[: len(folder)] == folder else None


def is_inside(resolved_path: ResolvedPath, folders: tuple[str, ...]) -> bool:
    """Whether the real path is one of the directories or below one."""
    return not resolved_path.broken and any(
        relative_parts(resolved_path.real_parts, ResolvedPath.of(folder).real_parts) is not None
        for folder in folders
        if os.path.isabs(folder)
    )


def why_protected(resolved_path: ResolvedPath) -> str:
    """Return why writing a path needs approval; empty if it does not."""
    if resolved_path.path in STANDARD_DEVICES:
        return ""
    for parts in resolved_path.all_parts:
        folded_parts = tuple(fold_name(part).rstrip(".") or part for part in parts)
        protected_name = next((name for name in folded_parts if name in _PROTECTED_FOLDERS | SECRET_FOLDERS), "")
        if protected_name:
            return f"{protected_name} controls programs or contains secrets"
        if folded_parts and folded_parts[-1] in _PROTECTED_FILES:
            return f"{folded_parts[-1]} controls programs"
        if any(re.match(r"(?:git|claude|ssh)~[0-9]", name) for name in folded_parts):
            return "a short name of a protected directory"
        if folded_parts and folded_parts[0] in _SYSTEM_FOLDERS:
            return f"/{folded_parts[0]} is a system directory"
        if _is_in_own_folder(folded_parts):
            return "it contains sessions or settings"
        if _is_login_file(folded_parts):
            return "it is used at every login"
    return ""


def _is_in_own_folder(folded_parts: tuple[str, ...]) -> bool:
    """Whether a path is in the config directory or in steno's directory."""
    for folder in _own_folders():
        for parts in ResolvedPath.of(folder).all_parts:
            if relative_parts(folded_parts, tuple(map(fold_name, parts))) is not None:
                return True
    return False


def _own_folders() -> tuple[str, ...]:
    """Return the config directory and steno's directory, as far as they are known."""
    folders: list[str] = []
    for location in (config_dir, steno_home):
        with suppress(BadRequest):
            folders.append(os.path.abspath(location()))
    return tuple(folders)


def _home_dir_or_missing() -> str:
    """Return the home directory, or a path that does not exist."""
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
    """Return why reading a path needs approval even inside the working directories; empty if it does not."""
    for parts in resolved_path.all_parts:
        folded_parts = tuple(map(fold_name, parts))
        if folded_parts and folded_parts[0] in {"proc", "sys", "dev"} and resolved_path.path not in STANDARD_DEVICES:
            return f"/{folded_parts[0]} exposes data of the system and of other processes"
        secret_folder = next((name for name in folded_parts if name in SECRET_FOLDERS), "")
        if secret_folder or (folded_parts and folded_parts[-1] in SECRET_FILES):
            return f"{secret_folder or folded_parts[-1]} contains secrets"
    return ""


def protected_paths(folder: str) -> tuple[str, ...]:
    """Return the protected paths directly inside a directory."""
    names = sorted({*_PROTECTED_FOLDERS, *SECRET_FOLDERS, *_PROTECTED_FILES})
    return tuple(os.path.join(folder, name) for name in names)


def holds_protected(resolved_path: ResolvedPath, folders: tuple[str, ...]) -> bool:
    """Whether moving or removing a directory would affect a protected path or a working directory."""
    protected_folders = (*folders, _home_dir_or_missing(), *_own_folders())
    for folder in protected_folders:
        for parts in ResolvedPath.of(folder).all_parts:
            if any(relative_parts(parts, names) is not None for names in resolved_path.all_parts):
                return True
    return any(os.path.lexists(os.path.join(resolved_path.real, name)) for name in _PROTECTED_FOLDERS)


_GLOB_CHARACTERS: Final = frozenset("*?[{\\")


def resolve_path(path_text: str, cwd: str, home: str) -> str:
    """Return the absolute path of a tool input; links are only followed if `..` requires it."""
    if home and (path_text == "~" or path_text.startswith("~/")):
        path_text = home + path_text[1:]
    path = os.path.join(cwd, path_text)
    if os.pardir not in path.split(os.sep):
        return os.path.normpath(path)
    # Only the file system can resolve `..` after a symbolic link.
    folder, name = os.path.split(path)
    if name in {"", os.curdir, os.pardir}:
        return os.path.realpath(path)
    return os.path.join(os.path.realpath(folder), name)


def resolve_glob(pattern: str, path: str | None, cwd: str, home: str) -> tuple[str, str]:
    """Return the directory to search for a glob pattern, and the rest of the pattern."""
    folder = resolve_path(path or ".", cwd, home)
    pattern = pattern.removeprefix("./")
    if not pattern.startswith(("/", "~/")) and ".." not in pattern.split("/"):
        return folder, pattern
    parts = pattern.split("/")
    literal_count = next((index for index, part in enumerate(parts) if _GLOB_CHARACTERS & set(part)), len(parts) - 1)
    literal_count = min(literal_count, len(parts) - 1)
    literal_folder = "/".join(parts[:literal_count]) or "/" * pattern.startswith("/") or "."
    return resolve_path(literal_folder, folder, home), "/" + "/".join(parts[literal_count:])
