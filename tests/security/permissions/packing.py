"""Puts attacks together that one conversation can run without one changing what another may do."""

import re
import shutil
from collections.abc import Iterable, Iterator

import msgspec
from tests.security.permissions.attack import Attack, Mode
from tests.security.permissions.machine import PATH

SIZE = 30
"""Attacks in one conversation at most."""
_WORD = re.compile(r"[\w.-]+")


class Pack(msgspec.Struct, frozen=True):
    """Attacks under one set of rules."""

    allow: tuple[str, ...]
    deny: tuple[str, ...]
    attacks: tuple[Attack, ...]


def missing(attack: Attack) -> str:
    """Return a program that an attack needs and this machine lacks; empty if there is none."""
    return next((name for name in attack.needs if shutil.which(name, path=PATH) is None), "")


def packs(attacks: Iterable[Attack], mode: Mode, size: int = SIZE) -> list[Pack]:
    """Return packs of the attacks that can be executed in a mode."""
    mine = [each for each in attacks if mode in each.modes and not missing(each)]
    made: list[list[Attack]] = []
    for each in mine:
        fits = (pack for pack in made if len(pack) < size and _go_together(pack, each))
        pack = next(fits, None)
        if pack is None:
            made.append([each])
        else:
            pack.append(each)
    return [_packed(pack) for pack in made]


def control_packs(attacks: Iterable[Attack], size: int = SIZE) -> Iterator[Pack]:
    """Yield packs of all attacks that can be executed, without any rules."""
    mine = [each for each in attacks if each.visible and not missing(each)]
    later = [each for each in mine if not each.at_start]
    for at in range(0, len(later), size):
        yield Pack((), (), tuple(later[at : at + size]))
    yield from (Pack((), (), (each,)) for each in mine if each.at_start)


def _packed(pack: list[Attack]) -> Pack:
    allow = dict.fromkeys(rule for each in pack for rule in each.allow)
    return Pack(tuple(allow), pack[0].deny, tuple(pack))


def _go_together(pack: list[Attack], other: Attack) -> bool:
    """Whether no rule of one attack can be about a program that another one runs."""
    first = pack[0]
    if first.at_start or other.at_start or first.deny != other.deny or bool(first.allow) != bool(other.allow):
        return False
    return all(
        each.allow == other.allow or not (_programs(each) & _words(other) or _programs(other) & _words(each))
        for each in pack
    )


def _programs(attack: Attack) -> set[str]:
    """Return the programs that its rules name."""
    inside = (rule.partition("(")[2] for rule in attack.allow)
    return {found[0] for text in inside if (found := _WORD.search(text))}


def _words(attack: Attack) -> set[str]:
    return {word for command in attack.commands for word in _WORD.findall(command)}
