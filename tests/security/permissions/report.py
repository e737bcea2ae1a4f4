"""Prints which attacks have effects, by mode.

    python -m tests.security.permissions.report [--mode default …] [--family git …] [--unconfined]

With `--mode bypassPermissions` it prints the attacks that do not have their effect there.
"""

import argparse
import sys
import tempfile
from pathlib import Path

from tests.security.permissions.attack import MODES, Mode
from tests.security.permissions.conversation import SHOWS, Outcome, Setting, run_attacks
from tests.security.permissions.machine import Machine
from tests.security.permissions.packing import control_packs, missing, packs
from tests.security.permissions.table import FAMILIES

_EVERY: tuple[Mode, ...] = (*MODES, "bypassPermissions")


def main() -> None:
    """Run the attacks and print the effects and their number."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mode", action="append", choices=_EVERY)
    parser.add_argument("--family", action="append", choices=list(FAMILIES))
    parser.add_argument("--unconfined", action="store_true", help="set STENO_CONFINEMENT=off")
    chosen = parser.parse_args()
    modes: list[Mode] = chosen.mode or list(MODES)
    for mode in modes:
        ran = effects = lacking = 0
        for family in chosen.family or FAMILIES:
            outcomes = _outcomes(family, mode, confined=not chosen.unconfined)
            lacking += sum(bool(missing(each)) for each in FAMILIES[family])
            ran += len(outcomes)
            effects += sum(bool(each.effects) for each in outcomes)
            for each in outcomes:
                if _is_news(each, mode):
                    words = "; ".join(each.effects[:3]) or "no effect"
                    _print(f"{mode}\t{family}\t{each.attack.name}\t{words}")
        _print(f"{mode}: {effects} of {ran} attacks had an effect; {lacking} lack a program")


def _outcomes(family: str, mode: Mode, *, confined: bool) -> list[Outcome]:
    found: list[Outcome] = []
    attacks = FAMILIES[family]
    made = control_packs(attacks) if mode == "bypassPermissions" else packs(attacks, mode)
    for pack in made:
        with tempfile.TemporaryDirectory() as folder:
            machine = Machine(Path(folder) / "machine")
            setting = Setting(
                mode=mode, confined=confined, allow=pack.allow, deny=pack.deny, trusted=mode == "bypassPermissions"
            )
            try:
                found += run_attacks(machine, pack.attacks, setting)
            finally:
                machine.close()
    return found


def _is_news(outcome: Outcome, mode: Mode) -> bool:
    if mode == "bypassPermissions":
        return not outcome.kinds & SHOWS[outcome.attack.effect]
    return bool(outcome.effects)


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
