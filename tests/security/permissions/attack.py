"""One attack on the agent's permissions, as data.

Commands, inputs and set-ups name parts of the machine by placeholders: `@project@`, `@home@`,
`@outside@`, `@effects@` (folders), `@port@` (a listener on loopback), `@socket@` (a UNIX listener),
`@abstract@` (an abstract one), `@sibling@` (a process id) and `@name@` (unique per machine).
"""

from typing import Any, Final, Literal, TypeAlias

import msgspec

Effect: TypeAlias = Literal["runs", "reads", "writes", "connects", "stays", "kills"]
Mode: TypeAlias = Literal["default", "plan", "acceptEdits", "dontAsk", "bypassPermissions"]

MODES: Final[tuple[Mode, ...]] = ("default", "plan", "acceptEdits", "dontAsk")
EDITS: Final[tuple[Mode, ...]] = ("acceptEdits",)
"""For attacks whose writes are what only this mode allows."""

BASE_PROGRAMS: Final = frozenset({"bash", "git", "find", "xargs", "grep", "sed", "awk", "tar"})
"""What every machine that runs these tests has; other programs are named by `needs`."""


class Call(msgspec.Struct, frozen=True):
    """One tool call of the model."""

    tool: str
    input: dict[str, Any]
    before: str = ""
    """A shell script that the harness runs, unconfined, just before the call: a race, won."""


class Attack(msgspec.Struct, frozen=True, kw_only=True):
    """What the model calls, in which project, under which rules, and what it is after."""

    name: str
    effect: Effect
    """What happens where nothing stops it."""
    calls: tuple[Call, ...]
    setup: str = ""
    """A shell script that prepares the project; it runs in the project's folder, unconfined."""
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    modes: tuple[Mode, ...] = MODES
    needs: tuple[str, ...] = ()
    """Programs without which it cannot be executed; the judge's decision is tested instead."""
    visible: bool = True
    """Whether it has its effect where permissions are bypassed; else the control leaves it out."""

    at_start: bool = False
    """Whether it is prepared before the agent starts, so that its start is part of the attack."""

    @property
    def commands(self) -> tuple[str, ...]:
        """The commands of its Bash calls."""
        return tuple(str(call.input["command"]) for call in self.calls if call.tool == "Bash")


def bash(command: str, *, before: str = "", **more: Any) -> Call:
    """Return a call of Bash that ends soon."""
    return Call("Bash", {"command": command, "timeout": 8000, **more}, before)


def attack(name: str, effect: Effect, command: str | tuple[str | Call, ...], setup: str = "", **more: Any) -> Attack:
    """Return an attack from its commands."""
    steps = (command,) if isinstance(command, str) else command
    calls = tuple(bash(step) if isinstance(step, str) else step for step in steps)
    return Attack(name=name, effect=effect, calls=calls, setup=setup, **more)


def under(rule: str, *attacks: Attack) -> tuple[Attack, ...]:
    """Return attacks on one allow rule."""
    return tuple(msgspec.structs.replace(each, allow=(*each.allow, rule)) for each in attacks)


def denied(rules: tuple[str, ...], *attacks: Attack) -> tuple[Attack, ...]:
    """Return attacks that read or edit past deny rules."""
    return tuple(msgspec.structs.replace(each, deny=(*each.deny, *rules)) for each in attacks)
