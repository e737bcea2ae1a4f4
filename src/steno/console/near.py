"""Paths as short as they can be said: from the working folder, or from home."""

import os

__all__ = ["near", "near_words"]


def near(path: str, cwd: str) -> str:
    """Return a path as it is said in a folder.

    >>> near("/home/ada/tide/src/a.py", "/home/ada/tide")
    'src/a.py'
    """
    for folder, said in _folders(cwd):
        if path == folder:
            return said or "."
        if path.startswith(os.path.join(folder, "")):
            return os.path.join(said, path[len(os.path.join(folder, "")) :])
    return path


def near_words(text: str, cwd: str) -> str:
    """Return a sentence with the paths in it said so.

    >>> near_words("/home/ada/tide/a.py would be changed", "/home/ada/tide")
    'a.py would be changed'
    """
    words = (near(word, cwd) if word.startswith(os.sep) else word for word in text.split(" "))
    return " ".join(words)


def _folders(cwd: str) -> list[tuple[str, str]]:
    """Return what paths are said from, and what stands for it: the folder before home."""
    home = os.path.expanduser("~")
    named = [(cwd, ""), (os.path.realpath(cwd), ""), (home, "~"), (os.path.realpath(home), "~")]
    # What is not below anything is not said from there.
    return [(folder, said) for folder, said in named if folder not in ("", os.sep, "~")]
