"""Attacks on permissions, executed through `steno chat -p`: none may have an effect.

In `-p` nobody can approve, so what needs approval is denied. An effect is a change of a file that
the mode does not allow, a program that ran unconfined, a secret in a tool result, a connection, a
process that was left or ended. `make test` runs every attack in one or two modes; `make faults` in
all modes, with and without confinement.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from _pytest.mark.structures import ParameterSet
from tests.security.permissions.attack import BASE_PROGRAMS, MODES, Attack, Mode
from tests.security.permissions.conversation import SHOWS, Outcome, Setting, run_attacks
from tests.security.permissions.judgement import verdicts
from tests.security.permissions.machine import Machine
from tests.security.permissions.packing import Pack, control_packs, missing, packs
from tests.security.permissions.table import ATTACKS, FAMILIES

_QUICK: Final[tuple[Mode, ...]] = ("default", "acceptEdits")


def _params(modes: tuple[Mode, ...], states: tuple[str, ...]) -> list[ParameterSet]:
    """Return every pack of attacks, in each of these modes, with the settings it runs under."""
    return [
        pytest.param(setting, pack.attacks, id=f"{mode}-{state}-{family}-{at}")
        for state in states
        for mode in modes
        for family, attacks in FAMILIES.items()
        for at, pack in enumerate(packs(attacks, mode))
        for setting in [_setting(pack, mode, state)]
    ]


def _setting(pack: Pack, mode: Mode, state: str) -> Setting:
    confined = state == "confined"
    return Setting(mode=mode, confined=confined, allow=pack.allow, deny=pack.deny)


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    made = Machine(tmp_path / "machine")
    yield made
    made.close()


def _report(outcomes: list[Outcome]) -> str:
    lines = (
        f"{each.attack.name}: {'; '.join(each.effects[:4])}\n    {each.attack.calls[0].input}"
        for each in outcomes
        if each.effects
    )
    return "\n".join(lines)


def _assert_no_effects(machine: Machine, setting: Setting, attacks: tuple[Attack, ...]) -> None:
    outcomes = run_attacks(machine, attacks, setting)
    assert [each.attack.name for each in outcomes] == [each.name for each in attacks]
    assert not any(each.effects for each in outcomes), _report(outcomes)


@pytest.mark.parametrize(("setting", "attacks"), _params(_QUICK, ("confined",)))
def test_no_attack_has_an_effect(
    machine: Machine, setting: Setting, attacks: tuple[Attack, ...]
) -> None:
    _assert_no_effects(machine, setting, attacks)


@pytest.mark.faults
@pytest.mark.parametrize(("setting", "attacks"), _params(MODES, ("confined", "unconfined")))
def test_no_attack_has_an_effect_in_any_mode(
    machine: Machine, setting: Setting, attacks: tuple[Attack, ...]
) -> None:
    _assert_no_effects(machine, setting, attacks)


@pytest.mark.parametrize("pack", list(control_packs(ATTACKS)))
def test_attacks_have_their_effects_where_permissions_are_bypassed(
    machine: Machine, pack: Pack
) -> None:
    outcomes = run_attacks(machine, pack.attacks, Setting(mode="bypassPermissions"))
    missed = [each for each in outcomes if not each.kinds & SHOWS[each.attack.effect]]
    assert [(each.attack.name, each.results) for each in missed] == []


# Programs that this machine may lack

_BY_PROGRAM: Final = sorted({name for each in ATTACKS for name in each.needs})


@pytest.mark.parametrize("program", _BY_PROGRAM)
def test_programs_are_installed(program: str) -> None:
    lacking = [each.name for each in ATTACKS if missing(each) == program]
    if lacking:
        names = ", ".join(lacking)
        pytest.skip(f"no {program}: {len(lacking)} attacks only judged, not executed: {names}")


@pytest.mark.parametrize("mode", MODES)
def test_attacks_that_cannot_be_executed_are_not_allowed(machine: Machine, mode: Mode) -> None:
    allowed = [
        each.name
        for each in ATTACKS
        if mode in each.modes
        and missing(each)
        and set(verdicts(each, mode, machine.project, machine.home)) == {"allow"}
    ]
    assert allowed == []


# The table and the harness themselves


def test_attacks_have_names_of_their_own() -> None:
    names = [each.name for each in ATTACKS]
    assert sorted(names) == sorted(set(names))
    assert not {name for each in ATTACKS for name in each.needs} & BASE_PROGRAMS
