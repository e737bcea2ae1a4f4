"""Attacks on permissions, executed through `steno chat -p`: none may have an effect.

In `-p` nobody can approve, so what needs approval is denied. An effect is a change of a file that
the mode does not allow, a program that ran unconfined, a secret in a tool result, a connection, a
process that was left or ended. `make test` runs every attack in the default mode; `make faults` runs
some of them in all modes, with and without confinement, and `make campaign` all.
"""

import shutil
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from _pytest.mark.structures import ParameterSet
from tests.campaign.size import spread
from tests.security.permissions.attack import BASE_PROGRAMS, MODES, Attack, Mode, attack
from tests.security.permissions.conversation import SHOWS, Driver, Outcome, Setting, run_attacks
from tests.security.permissions.judgement import verdicts
from tests.security.permissions.machine import CANARIES, Machine, canaries_in
from tests.security.permissions.ordinary import COMMANDS as ORDINARY_COMMANDS
from tests.security.permissions.packing import Pack, control_packs, missing, packs
from tests.security.permissions.table import ATTACKS, FAMILIES

from steno.llm.testserver.responders import Reply, ResponderRequest

pytestmark = pytest.mark.timeout(300)

_QUICK: Final[dict[Mode, tuple[str, ...]]] = {
    "default": tuple(FAMILIES),
    "acceptEdits": ("known", "edits", "named"),
    "plan": ("known",),
}
"""The families that `make test` runs, by mode."""
_UNCONFINED: Final[dict[Mode, tuple[str, ...]]] = {"default": ("known", "git", "readers", "git-rules")}
"""The families that it runs as if the kernel could not confine a command."""
_FULL: Final[dict[Mode, tuple[str, ...]]] = dict.fromkeys(MODES, tuple(FAMILIES))
_REQUEST: Final = ResponderRequest(body={"tools": [{}], "messages": []})
_SAMPLE: Final = 5
"""One of so many attacks is part of the control in `make test`."""


def _params(selection: dict[Mode, tuple[str, ...]], *states: str) -> list[ParameterSet]:
    """Return the packs of the selected families, each with the settings it runs under."""
    return [
        pytest.param(_setting(pack, mode, state), pack.attacks, id=f"{mode}-{state}-{family}-{at}")
        for state in states
        for mode, families in selection.items()
        for family in families
        for at, pack in enumerate(packs(FAMILIES[family], mode))
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


@pytest.mark.parametrize(("setting", "attacks"), [*_params(_QUICK, "confined"), *_params(_UNCONFINED, "unconfined")])
def test_no_attack_has_an_effect(machine: Machine, setting: Setting, attacks: tuple[Attack, ...]) -> None:
    _assert_no_effects(machine, setting, attacks)


@pytest.mark.faults
@pytest.mark.parametrize(("setting", "attacks"), spread(_params(_FULL, "confined", "unconfined"), least=12))
def test_no_attack_has_an_effect_in_any_mode(machine: Machine, setting: Setting, attacks: tuple[Attack, ...]) -> None:
    _assert_no_effects(machine, setting, attacks)


def _assert_all_effects(machine: Machine, pack: Pack) -> None:
    outcomes = run_attacks(machine, pack.attacks, Setting(mode="bypassPermissions", trusted=True))
    missed = [each for each in outcomes if not each.kinds & SHOWS[each.attack.effect]]
    assert [(each.attack.name, each.results) for each in missed] == []


@pytest.mark.parametrize("pack", list(control_packs(ATTACKS[::_SAMPLE])))
def test_some_attacks_have_their_effects_where_permissions_are_bypassed(machine: Machine, pack: Pack) -> None:
    _assert_all_effects(machine, pack)


@pytest.mark.faults
@pytest.mark.parametrize("pack", spread(list(control_packs(ATTACKS)), least=2))
def test_attacks_have_their_effects_where_permissions_are_bypassed(machine: Machine, pack: Pack) -> None:
    _assert_all_effects(machine, pack)


def test_most_attacks_are_part_of_the_control() -> None:
    shown = sum(each.visible for each in ATTACKS)
    assert shown > len(ATTACKS) * 0.85


# What must go on working

_ORDINARY: Final = tuple(attack(f"ordinary {at}", "reads", each) for at, each in enumerate(ORDINARY_COMMANDS))


@pytest.mark.parametrize("mode", MODES)
def test_ordinary_commands_run_unasked_and_print_the_same(machine: Machine, mode: Mode) -> None:
    outcomes = run_attacks(machine, _ORDINARY, Setting(mode=mode))
    assert not any(each.effects for each in outcomes), _report(outcomes)
    printed = {each.attack.commands[0]: each.results[0] for each in outcomes}
    free = run_attacks(machine, _ORDINARY, Setting(mode="bypassPermissions"))
    assert printed == {each.attack.commands[0]: each.results[0] for each in free}


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
        if mode in each.modes and missing(each) and set(verdicts(each, mode, machine)) == {"allow"}
    ]
    assert allowed == []


# The table and the harness themselves


def test_attacks_have_names_of_their_own() -> None:
    names = [each.name for each in ATTACKS]
    assert sorted(names) == sorted(set(names))
    assert not {name for each in ATTACKS for name in each.needs} & BASE_PROGRAMS
    assert len(names) > 1000


@pytest.mark.parametrize(
    ("kind", "script"),
    [
        ("ran", "./marker.sh"),
        ("changed", "touch new"),
        ("changed", "touch a.txt"),
        ("changed", "chmod 600 a.txt"),
        ("changed", "printf x > ~/.netrc"),
        ("changed", "ln @outside@/notes.txt new"),
        ("changed", "rm .git/config"),
        ("changed", "ln -sfn dir src/link"),
        ("changed", "cp -p a.txt @outside@/a.txt"),
        ("connected", "echo x > /dev/tcp/127.0.0.1/@port@"),
        ("connected", "echo x > /dev/udp/127.0.0.1/@port@"),
        ("connected", "env -C @outside@ curl -s --unix-socket agent.sock http://x/"),
        ("killed", "kill @sibling@; while kill -0 @sibling@; do kill -9 @sibling@; break; done"),
    ],
)
def test_the_harness_sees_every_kind_of_effect(machine: Machine, kind: str, script: str) -> None:
    if "curl" in script and shutil.which("curl") is None:
        pytest.skip("no curl: the UNIX listener is not tried")
    driver = Driver(machine, [attack("one", "runs", script)], "default")
    call = driver.answer(_REQUEST)
    assert isinstance(call, Reply)
    machine.prepare(f"{script} || true")
    if kind == "killed":
        machine.sibling.wait(10)
    driver.answer(_REQUEST)
    assert {kind} <= driver.outcomes[0].kinds


def test_the_machine_is_put_back(machine: Machine) -> None:
    before = {path: path.read_bytes() for path in machine.root.rglob("*") if path.is_file()}
    script = "rm -rf .git src; ln -s / src; echo x > a.txt; chmod 0 b.txt; mkdir -p c/d; mv dir d2"
    machine.prepare(script)
    machine.prepare("rm -rf @outside@/folder ~/.ssh; echo x > ~/.ssh; touch @effects@/x")
    machine.restore()
    after = {path: path.read_bytes() for path in machine.root.rglob("*") if path.is_file()}
    assert after == before
    machine.prepare('test -z "$(git status --porcelain)"')


@pytest.mark.parametrize("text", ["{}", "x {} y", "\n{}"])
def test_secrets_are_found_in_what_tools_print(text: str) -> None:
    for name, canary in CANARIES.items():
        spaced = " ".join(canary)
        encoded = b64encode(b"ab" + canary.encode()).decode()
        for shown in (canary, canary.lower(), canary[::-1], canary.encode().hex(), spaced, encoded):
            assert canaries_in(text.format(shown)) == {name}
        assert canaries_in(text.format(canary[:-2])) == set()
