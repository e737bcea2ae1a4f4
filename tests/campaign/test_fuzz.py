"""Every target of the fuzzer holds for its seeds and for all inputs that once broke one."""

from pathlib import Path

import pytest
from fuzz.seeds import seeds
from fuzz.targets import TARGETS

REGRESSIONS = Path(__file__).parent.parent.parent / "fuzz" / "regressions"
KNOWN = sorted(path for path in REGRESSIONS.glob("*/*") if path.is_file())


@pytest.mark.parametrize("target", TARGETS)
def test_the_seeds_break_nothing(target: str) -> None:
    assert len(seeds(target)) >= 4
    for data in (b"", b"\0", *seeds(target)):
        TARGETS[target](data)


@pytest.mark.parametrize("path", KNOWN, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_what_once_broke_a_target_breaks_it_no_more(path: Path) -> None:
    TARGETS[path.parent.name](path.read_bytes())


def test_every_regression_belongs_to_a_target() -> None:
    assert {path.parent.name for path in KNOWN} <= set(TARGETS)
