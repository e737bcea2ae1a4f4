"""Whatever is done to a session, it is read, checked and repaired, and every byte is accounted for."""

import os

import pytest
from tests.campaign.mutants import STORIES, STRUCTURAL, byte_mutant, changed, dice, holds, structural_mutant
from tests.campaign.size import report, rounds

SEED = os.environ.get("STENO_SEED", "7")


def test_whole_sessions_hold() -> None:
    for data in STORIES:
        holds(data)


@pytest.mark.parametrize("name", STRUCTURAL)
def test_each_structural_change_is_survived(name: str) -> None:
    for seed in range(4):
        holds(changed(name, dice(f"{name} {seed}")))


@pytest.mark.parametrize(
    "seed",
    [
        "7 structure 171",  # messages below a state record that got an id
        "901 structure 47",  # a call under the id of one before the compaction
        "1794846914157839417 structure 79",  # a compaction that hangs on a result behind it
        "901 structure 162",  # a boundary without summary, whose logical parent comes after it
        "901 structure 313",  # a result before the compaction with the id of a call after it
        "1794847934346106771 structure 552",  # the same, where no result hangs on the call
        "s15 structure 525",  # a result below its call, beside the way, by a call with the same id
    ],
)
def test_what_was_once_not_repaired_is_repaired(seed: str) -> None:
    holds(structural_mutant(dice(seed))[1])


@pytest.mark.faults
@pytest.mark.timeout(0)
def test_byte_mutants_are_survived() -> None:
    tried = 0
    for number in rounds(least=100):
        data = byte_mutant(dice(f"{SEED} bytes {number}"))
        try:
            holds(data)
        except Exception as error:
            raise AssertionError(f"STENO_SEED={SEED}, byte mutant {number}: {error!r}") from error
        tried += 1
    report("C1", f"{tried:,} byte mutants, no failure")


@pytest.mark.faults
@pytest.mark.timeout(0)
def test_structural_mutants_are_survived() -> None:
    tried = 0
    for number in rounds(least=100):
        names, data = structural_mutant(dice(f"{SEED} structure {number}"))
        try:
            holds(data)
        except Exception as error:
            said = f"STENO_SEED={SEED}, structural mutant {number} ({', '.join(names)})"
            raise AssertionError(f"{said}: {error!r}") from error
        tried += 1
    report("C2", f"{tried:,} structural mutants, no failure")
