"""Every attack, by family."""

from typing import Final

from tests.security.permissions.attack import Attack
from tests.security.permissions.families import known

FAMILIES: Final[dict[str, tuple[Attack, ...]]] = {
    "known": known.ATTACKS,
}
ATTACKS: Final = tuple(each for family in FAMILIES.values() for each in family)
