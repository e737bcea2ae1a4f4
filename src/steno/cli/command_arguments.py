"""Arguments of the current command and of suggested commands: search roots and the program name."""

import os
import sys

from steno.errors import NotFound, Unreadable
from steno.format.paths import JSONL_SUFFIX
from steno.store.environment import demo_dir


def search_roots(root: tuple[str, ...], *, demo: bool) -> tuple[str, ...] | None:
    """Return the directories to search; None for the default config directory.

    Raises:
        NotFound: `demo` without demo sessions on disk.
        Unreadable: a directory does not exist or cannot be read.
    """
    for folder in root:
        _check_readable(folder)
    if not demo:
        return root or None
    folder = demo_dir()
    if not os.path.isdir(folder):
        raise NotFound("no demo sessions yet", hint=f"Run `{program_name()} demo` to write them.")
    return (*root, folder)


def _check_readable(folder: str) -> None:
    try:
        if os.path.isdir(folder):
            os.scandir(folder).close()
        else:
            os.stat(folder)
    except FileNotFoundError as error:
        raise Unreadable(f"no such directory: {folder}") from error
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else ""
        raise Unreadable(f"cannot read {folder}: {(reason or str(error)).lower()}") from error


def is_folder_argument(name: str) -> bool:
    """Return whether an argument names a directory, existing or new, and not a session."""
    if name.endswith((JSONL_SUFFIX, "\0")):
        return False
    separators = tuple(separator for separator in (os.sep, os.altsep) if separator)
    return (
        name.endswith(separators)
        or os.path.isdir(name)
        or (any(each in name for each in separators) and not os.path.lexists(name))
    )


def root_arguments(root: tuple[str, ...], *, demo: bool) -> str:
    """Return the shell-quoted options that make another command search the same directories."""
    from shlex import quote

    return (" --demo" if demo else "") + "".join(f" --root {quote(folder)}" for folder in root)


def program_name() -> str:
    """Return the shell command for steno: `steno` if it is on PATH, else as it was called."""
    from shlex import quote
    from shutil import which

    program_path = sys.argv[0]
    if which("steno") or not program_path:
        return "steno"
    if os.path.basename(program_path) == "__main__.py":
        cwd_prefix = os.path.join(os.getcwd(), "")
        return f"{quote(sys.executable.removeprefix(cwd_prefix))} -m steno"
    return quote(program_path) if os.path.basename(program_path).startswith("steno") else "steno"
