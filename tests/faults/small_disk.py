"""Lets an agent talk in a file system that has only so many pages left, then frees it.

    unshare --mount python small_disk.py FOLDER PAGES,PAGES,…

Prints, as JSON, how the turn ended for each number of free pages. Exits with 77 where nothing can
be mounted.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.agent.loop_harness import Stage
from tests.faults.test_full_disk import check_file, script

_PAGE: Final = 4096
_ROOM: Final = 256 * _PAGE
_UNMOUNTABLE: Final = 77


def _free(disk: Path) -> int:
    return os.statvfs(disk).f_bavail * os.statvfs(disk).f_frsize


def _fill(disk: Path, left: int) -> Path:
    """Fill a file system but for some pages."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        while (room := _free(disk) - left * _PAGE) > 0:
            file.write(b"\0" * min(room, _PAGE))
    return ballast


def _talk(disk: Path, left: int) -> str:
    stage = Stage(disk, script())
    stage.say("hello")
    ballast = _fill(disk, left)
    (ended,) = stage.say("look at it")
    check_file(stage)
    if ended.reason == "not_saved":
        expected = "Disk full: the last message was not saved; free space and continue"
        assert ended.problem == expected, ended.problem
    ballast.unlink()
    assert [each.reason for each in stage.say("look at it", "and this")] == ["done", "done"]
    stage.check()
    stage.resume()
    assert [each.reason for each in stage.say("and on")] == ["done"]
    stage.check()
    stage.talk.recorder.close()
    return ended.reason


def main() -> None:
    """Talk once for each number of pages."""
    reasons: dict[str, str] = {}
    for left in map(int, sys.argv[2].split(",")):
        disk = Path(sys.argv[1], f"disk{left}")
        disk.mkdir()
        mount = ["mount", "-t", "tmpfs", "-o", f"size={_ROOM}", "none", str(disk)]
        if subprocess.run(mount, check=False, capture_output=True).returncode:
            sys.stderr.write("no file system can be mounted here")
            sys.exit(_UNMOUNTABLE)
        reasons[str(left)] = _talk(disk, left)
        subprocess.run(["umount", str(disk)], check=True)
    sys.stdout.write(json.dumps(reasons))


if __name__ == "__main__":
    main()
