"""The decision on an attack alone, for programs that this machine does not have."""

from pathlib import Path

from tests.security.permissions.attack import Attack, Mode

from steno.guard.judge import Guard
from steno.guard.rules import Layer, gather


def verdicts(attack: Attack, mode: Mode, project: Path, home: Path) -> list[str]:
    """Return `allow`, `ask` or `deny` for each call of an attack."""
    place, layer = str(project), Layer(allow=attack.allow, deny=attack.deny)
    rules = gather([layer], root=place, cwd=place, home=str(home))
    guard = Guard(rules, mode, place, (place,), home=str(home))
    return [guard.judge(call.tool, call.input, cwd=place).verdict for call in attack.calls]
