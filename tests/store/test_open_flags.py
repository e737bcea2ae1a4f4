"""How files are opened: never through a link where that matters, never waiting, never inherited."""

import os
import sys
from typing import Final

import pytest

from steno.store import append, beneath, disk, found, project, read, scratch

pytestmark: Final = pytest.mark.skipif(sys.platform != "linux", reason="the flags of Linux")


def test_every_file_is_opened_with_the_flags_that_keep_it_safe() -> None:
    closed, no_link, no_wait = os.O_CLOEXEC, os.O_NOFOLLOW, os.O_NONBLOCK
    flags = {
        "append": (vars(append)["_FLAGS"], os.O_RDWR | os.O_APPEND | closed),
        "found": (vars(found)["_FLAGS"], os.O_RDONLY | no_wait | os.O_NOCTTY),
        "read": (vars(read)["_FLAGS"], os.O_RDONLY | no_wait | os.O_NOCTTY | closed),
        "project": (vars(project)["_FLAGS"], os.O_RDONLY | no_link | no_wait),
        "scratch": (vars(scratch)["_FLAGS"], os.O_RDWR | os.O_CREAT | os.O_EXCL | no_link | closed),
        "disk": (vars(disk)["_ALWAYS"], closed | no_link),
        "closed": (vars(beneath)["_CLOSED"], closed),
        "no link": (vars(beneath)["_NO_LINK"], no_link),
        "through": (vars(beneath)["_THROUGH"], os.O_PATH | os.O_DIRECTORY),
        "new": (vars(beneath)["_NEW"], os.O_WRONLY | os.O_CREAT | os.O_EXCL),
    }
    assert {name: have for name, (have, _) in flags.items()} == {
        name: wanted for name, (_, wanted) in flags.items()
    }
