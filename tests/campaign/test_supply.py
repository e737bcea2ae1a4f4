"""What steno needs is declared and pinned to one version."""

import re
import tomllib
from pathlib import Path

from tests.campaign.size import report

ROOT = Path(__file__).parent.parent.parent
PIN = re.compile(r"[A-Za-z0-9_.-]+==[0-9][\w.+!-]*")


def test_everything_that_is_needed_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    lines = (ROOT / "requirements" / "base.txt").read_text(encoding="utf-8").splitlines()
    pins = [line.strip() for line in lines if line.strip() and not line.startswith(("#", " ", "-"))]
    names = {_plain(pin.partition("==")[0]) for pin in pins}
    needed = {_plain(re.split(r"[<>=!~\[; ]", one)[0]) for one in project["dependencies"]}
    report("D15", f"{len(needed)} direct dependencies, all pinned (the goal is at most 6)")
    assert [pin for pin in pins if not PIN.match(pin)] == []
    assert needed - names == set()


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
