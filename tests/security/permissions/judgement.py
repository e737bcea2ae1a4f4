"""The decision on an attack alone, for programs that this machine does not have."""

import json

from tests.security.permissions.attack import Attack, Mode
from tests.security.permissions.machine import Machine

from steno.permissions.permission_checker import PermissionChecker
from steno.permissions.permission_rules import RuleSource, parse_rules


def verdicts(attack: Attack, mode: Mode, machine: Machine) -> list[str]:
    """Return `allow`, `ask` or `deny` for each call of an attack."""
    place, home = str(machine.project), str(machine.home)
    layer = RuleSource(allow=attack.allow, deny=attack.deny)
    guard = PermissionChecker(parse_rules([layer], root=place, cwd=place, home=home), mode, place, (place,), home=home)
    inputs = [(call.tool, json.loads(machine.fill(json.dumps(call.input)))) for call in attack.calls]
    return [guard.judge(tool, given, cwd=place).verdict for tool, given in inputs]
