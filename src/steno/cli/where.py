"""Which folders a command looks at, and how to say so in another command.

Without click: a sync that only looks must not wait for it.
"""

import os
import sys

from steno.errors import NotFound, Unreadable
from steno.store.places import demo_dir

__all__ = ["is_folder_name", "program", "roots", "where_to_look"]


def roots(root: tuple[str, ...], *, demo: bool) -> tuple[str, ...] | None:
    """Return the folders to look in; None is the client's own.

    Raises:
        NotFound: the demo was asked for but is not there.
        Unreadable: a folder is not there or cannot be read.
    """
    for folder in root:
        _look_into(folder)
    if not demo:
        return root or None
    folder = demo_dir()
    if not os.path.isdir(folder):
        raise NotFound("there is no demo yet", hint=f"`{program()} demo` writes it")
    return (*root, folder)


def _look_into(folder: str) -> None:
    try:
        if os.path.isdir(folder):
            os.scandir(folder).close()
        else:
            os.stat(folder)
    except FileNotFoundError as error:
        raise Unreadable(f"{folder}: no such folder") from error
    except (OSError, ValueError) as error:
        said = error.strerror if isinstance(error, OSError) else ""
        raise Unreadable(f"cannot read {folder}: {(said or str(error)).lower()}") from error


def is_folder_name(name: str) -> bool:
    """Return whether an argument names a folder, there or to be made, and not a session."""
    if name.endswith((".jsonl", "\0")):
        return False
    separators = tuple(each for each in (os.sep, os.altsep) if each)
    return (
        name.endswith(separators)
        or os.path.isdir(name)
        or (any(each in name for each in separators) and not os.path.lexists(name))
    )


def where_to_look(root: tuple[str, ...], *, demo: bool) -> str:
    """Return the options that make another command look at the same folders, for a shell."""
    from shlex import quote

    return (" --demo" if demo else "") + "".join(f" --root {quote(folder)}" for folder in root)


def program() -> str:
    """Return how to call steno here: by its name if the shell finds it, else as it was called."""
    from shlex import quote
    from shutil import which

    called = sys.argv[0]
    if which("steno") or not called:
        return "steno"
    if os.path.basename(called) == "__main__.py":
        here = os.path.join(os.getcwd(), "")
        return f"{quote(sys.executable.removeprefix(here))} -m steno"
    return quote(called) if os.path.basename(called).startswith("steno") else "steno"
