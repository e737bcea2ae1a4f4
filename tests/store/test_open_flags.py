"""How files are opened: never through a link where that matters, never waiting, never inherited."""

import os
import sys
from typing import Final

import pytest

from steno.store import append, atomic, client_folders, dirfd, discovery, file_source

pytestmark: Final = pytest.mark.skipif(sys.platform != "linux", reason="the flags of Linux")


def test_every_file_is_opened_with_the_flags_that_keep_it_safe() -> None:
    closed, no_link, no_wait = os.O_CLOEXEC, os.O_NOFOLLOW, os.O_NONBLOCK
    flags = {
        "append": (vars(append)["_FLAGS"], os.O_RDWR | os.O_APPEND | closed),
        "found": (vars(discovery)["_PEEK_FLAGS"], os.O_RDONLY | no_wait | os.O_NOCTTY),
        "read": (vars(file_source)["_FLAGS"], os.O_RDONLY | no_wait | os.O_NOCTTY | closed),
        "project": (vars(client_folders)["_READ_FLAGS"], os.O_RDONLY | no_link | no_wait),
        "scratch": (vars(atomic)["_CREATE_FLAGS"], os.O_RDWR | os.O_CREAT | os.O_EXCL | no_link | closed),
        "disk": (vars(atomic)["_OPEN_FLAGS"], closed | no_link),
        "closed": (vars(dirfd)["_CLOSE_ON_EXEC"], closed),
        "no link": (vars(dirfd)["_NOFOLLOW"], no_link),
        "through": (vars(dirfd)["_TRAVERSE_FLAGS"], os.O_PATH | os.O_DIRECTORY),
        "new": (vars(dirfd)["_CREATE_FLAGS"], os.O_WRONLY | os.O_CREAT | os.O_EXCL),
    }
    assert {name: have for name, (have, _) in flags.items()} == {name: wanted for name, (_, wanted) in flags.items()}
