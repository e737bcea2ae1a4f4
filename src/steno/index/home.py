"""Which index belongs to which folders, and where it lies.

There is one index for each config folder of the client's, and one for each set of folders that
somebody names. What was in it once stays in it, also when a file is deleted.
"""

import os
from collections.abc import Sequence
from typing import Final
from zlib import crc32

import msgspec

from steno.store.config import read_config
from steno.store.places import config_dir, steno_home

__all__ = ["Home", "index_of"]

_FOLDER: Final = "index"
_NAME: Final = 24


class Home(msgspec.Struct, frozen=True):
    """An index: where it lies, and the folders whose sessions are in it."""

    folder: str
    roots: tuple[str, ...]


def index_of(root: str | Sequence[str] | None = None) -> Home:
    """Return the index of some folders; else of the client's, and of those in the config file."""
    if root is None:
        own = os.path.abspath(config_dir())
        more = (os.path.abspath(os.path.expanduser(each)) for each in read_config().roots)
        return Home(_folder((own,)), (own, *(each for each in more if each != own)))
    roots = (root,) if isinstance(root, str) else tuple(root)
    named = tuple(dict.fromkeys(os.path.abspath(each) for each in roots))
    return Home(_folder(tuple(sorted(named))), named)


def _folder(roots: tuple[str, ...]) -> str:
    """Return a folder that can be told from others by its name, and is told by a number."""
    letters = os.path.basename(os.path.dirname(roots[0])) + "-" + os.path.basename(roots[0])
    plain = "".join(letter for letter in letters if letter.isalnum() or letter in "-_")[:_NAME]
    number = crc32(b"\0".join(os.fsencode(root) for root in roots))
    return os.path.join(steno_home(), _FOLDER, f"{plain}-{number:08x}")
