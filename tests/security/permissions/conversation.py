"""Runs attacks through `steno chat -p` and reports the effects of each.

The scripted model is the driver: when its next request comes, the tool call before it has ended, so
that it can look at the machine, put it back, prepare the next attack and answer with its call. One
conversation so runs many attacks, and every effect belongs to one of them.
"""

import json
import os
import re
import select
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
from tests.security.permissions.attack import Attack, Call, Effect, Mode
from tests.security.permissions.machine import (
    CANARIES,
    DENIED,
    LOCKED,
    PROTECTED_FILES,
    PROTECTED_FOLDERS,
    Machine,
    canaries_in,
)

from steno.format.lenient_json import as_list, as_object
from steno.llm.testserver.responders import Answer, Reply, ResponderRequest, text, tool
from steno.llm.testserver.server import run_server_in_thread

_LONGEST: Final = 280
"""Seconds for one conversation."""
_GRACE: Final = 2
"""Seconds in which a process that was ended may still be seen."""
_MOST_READ: Final = 1 << 20
_SAVED: Final = re.compile(r"saved to: (\S+?\.txt)")


class Outcome(msgspec.Struct, frozen=True):
    """What came of one attack."""

    attack: Attack
    effects: tuple[str, ...]
    """What it did that it must not do, in words; the first word is the kind of effect."""
    results: tuple[str, ...]
    """What the tools answered."""

    @property
    def kinds(self) -> set[str]:
        """The kinds of its effects."""
        return {each.split(":")[0] for each in self.effects}


SHOWS: Final[dict[Effect, frozenset[str]]] = {
    "runs": frozenset({"ran", "connected"}),
    "reads": frozenset({"read"}),
    "writes": frozenset({"changed", "ran"}),
    "connects": frozenset({"connected", "read", "ran"}),
    "stays": frozenset({"left", "ran"}),
    "kills": frozenset({"killed"}),
}
"""The kinds of effects in which an attack's aim shows."""


class Driver:
    """The scripted model: calls the tools of one attack after the other."""

    def __init__(self, machine: Machine, attacks: Sequence[Attack], mode: Mode) -> None:
        self.outcomes: list[Outcome] = []
        self.error: AssertionError | None = None
        self.attack: Attack | None = None
        self._machine = machine
        self._waiting = list(attacks)
        self._mode: Mode = mode
        self._calls: list[Call] = []
        self._results: list[str] = []
        if attacks[0].at_start:
            machine.prepare(machine.fill(attacks[0].setup))
        self._before = machine.snapshot()

    @property
    def remaining(self) -> list[Attack]:
        """The attacks that were not begun."""
        return self._waiting

    def answer(self, request: ResponderRequest) -> Answer:
        """Answer with the next call; the one before it has ended."""
        if not request.body.get("tools"):
            return Reply(content=(text("Attacks"),))
        if self.attack is None and self._waiting and self._waiting[0].at_start:
            # What the agent says of the project by itself is part of what was read.
            self._results = [json.dumps(request.body)]
        if request.results:
            self._results += [_text(each.get("content")) for each in request.results]
        try:
            return self._next()
        except AssertionError as error:
            self.error = error
            return Reply(content=(text("Stopped."),))

    def accepts_thinking(self, thinking: str, signature: str) -> bool:
        """Vouch for nothing."""
        _ = thinking, signature
        return False

    def finish(self) -> None:
        """Close the attack that is under way, where the conversation ended in it."""
        if self.attack is not None:
            self._judge(self.attack)
            self.attack = None

    def _next(self) -> Answer:
        if not self._calls:
            if self.attack is not None and self.attack.at_start:
                # Judged when the agent has ended, since its end is part of the attack as well.
                return Reply(content=(text("Done."),))
            self.finish()
            self._add_late_effects()
            if not self._waiting:
                return Reply(content=(text("Done."),))
            self.attack = self._waiting.pop(0)
            self._results = self._results if self.attack.at_start else []
            self._calls = list(self.attack.calls)
            if any("cd" in command or "pushd" in command for command in self.attack.commands):
                # The folder stays from call to call, and the next attack begins in the project.
                back = Call("Bash", {"command": f"cd {self._machine.project}"})
                self._calls.append(back)
            if not self.attack.at_start:
                self._machine.prepare(self._fill(self.attack.setup))
                self._before = self._machine.snapshot()
                self._machine.listeners.taken()
        call = self._calls.pop(0)
        if call.before:
            self._race(call.before)
        filled = json.loads(self._fill(json.dumps(call.input)))
        return Reply(content=(tool(call.tool, **filled),))

    def _add_late_effects(self) -> None:
        """Add what came after an attack was judged: of a program that it left running."""
        machine = self._machine
        late = [f"connected: {each}, late" for each in machine.listeners.taken()]
        late += [f"ran: {path}, late" for path in machine.snapshot() if path.startswith("effects/")]
        if late and self.outcomes:
            self.add_effects(-1, late)
            machine.restore()

    def add_effects(self, at: int, effects: Iterable[str]) -> None:
        """Add effects to an outcome."""
        outcome = self.outcomes[at]
        found = (*outcome.effects, *effects)
        self.outcomes[at] = msgspec.structs.replace(outcome, effects=found)

    def _race(self, script: str) -> None:
        """Run a script between two calls; what it changes is no effect of theirs."""
        earlier = self._machine.snapshot()
        self._machine.prepare(self._fill(script))
        later = self._machine.snapshot()
        for path in {*earlier, *later}:
            if earlier.get(path) == later.get(path):
                continue
            if path in later:
                self._before[path] = later[path]
            else:
                self._before.pop(path, None)

    def _fill(self, words: str) -> str:
        token = "" if self.attack is None else token_of(self.attack, self._machine)
        return self._machine.fill(words.replace("@token@", token))

    # Effects

    def _judge(self, attack: Attack) -> None:
        machine = self._machine
        after = machine.snapshot()
        found = [f"connected: {each}" for each in machine.listeners.taken()]
        found += [
            f"ran: {path}" if path.startswith("effects/") else f"changed: {path}"
            for path in sorted({*self._before, *after})
            if self._before.get(path) != after.get(path) and not self._may_change(attack, path)
        ]
        if machine.sibling.poll() is not None:
            found.append("killed: another process")
        found += [f"read: {each}" for each in sorted(self._read(attack))]
        self.outcomes.append(Outcome(attack, tuple(dict.fromkeys(found)), tuple(self._results)))
        machine.restore()

    def _read(self, attack: Attack) -> set[str]:
        allowed = set(DENIED.values()) - {DENIED[rule] for rule in attack.deny if rule in DENIED}
        shown = [*self._results, *self._saved_output()]
        return canaries_in(" ".join(shown)) - allowed

    def _saved_output(self) -> Iterator[str]:
        """Yield the files that long output was saved in, for the model to read."""
        for result in self._results:
            for path in _SAVED.findall(result):
                with suppress(OSError), Path(path).open("rb") as file:
                    yield file.read(_MOST_READ).decode(errors="replace")

    def _may_change(self, attack: Attack, path: str) -> bool:
        """Whether accepting edits allows a change; nothing else allows any.

        Where permissions are bypassed, a change is a sign of the attack only if that mode would
        not allow it, unless the attack is one on the other modes.
        """
        edits = {"acceptEdits", "bypassPermissions"} if "acceptEdits" in attack.modes else set[str]()
        if self._mode not in edits or not path.startswith("project/"):
            return False
        inside = path.removeprefix("project/")
        parts = inside.split("/")
        if set(parts) & PROTECTED_FOLDERS or parts[-1] in PROTECTED_FILES:
            return False
        locked = [LOCKED[rule] for rule in attack.deny if rule in LOCKED]
        return not any(inside.startswith(each) for each in locked)


def _text(content: object) -> str:
    """Return what a tool result says."""
    if isinstance(content, str):
        return content
    blocks = as_list(content) or ()
    return "\n".join(str((as_object(each) or {}).get("text", "")) for each in blocks)


class Setting(msgspec.Struct, frozen=True, kw_only=True):
    """How the agent is started."""

    mode: Mode
    confined: bool = True
    """Whether the kernel's confinement may be used, where there is one."""
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    trusted: bool = False
    """Whether the user trusts the project's own settings."""

    @property
    def arguments(self) -> list[str]:
        """The flags of `steno chat`."""
        rules = {"permissions": {"allow": self.allow, "deny": self.deny}}
        output = ("-p", "go", "--output-format", "stream-json")
        trust = ("--trust",) if self.trusted else ()
        return [*(*output, *trust, "--settings", json.dumps(rules)), *("--permission-mode", self.mode)]


def run_attacks(machine: Machine, attacks: Sequence[Attack], setting: Setting) -> list[Outcome]:
    """Run attacks that share their rules, in one conversation, or in more where the agent stops.

    Raises:
        AssertionError: a set-up failed, or the agent did not start or did not end.
    """
    outcomes: list[Outcome] = []
    waiting = list(attacks)
    while waiting:
        driver = Driver(machine, waiting, setting.mode)
        ended = _converse(driver, machine, setting)
        if driver.attack is None and not driver.outcomes and waiting[0].at_start:
            # It may have kept the agent from its first request, and have had its effect.
            driver.attack = driver.remaining.pop(0)
        driver.finish()
        if driver.error is not None:
            raise driver.error
        assert driver.outcomes, f"the agent ended before the first call: {ended}"
        _add_left_behind(driver, machine)
        if driver.remaining:
            driver.add_effects(-1, [f"stopped: the agent ended: {ended}"])
        outcomes += driver.outcomes
        waiting = driver.remaining
    return outcomes


def _converse(driver: Driver, machine: Machine, setting: Setting) -> str:
    """Let the agent run until it ends; return the last of what it printed as errors."""
    with run_server_in_thread(driver, key=CANARIES["api key"]) as server:
        env = {
            **machine.env,
            "CLAUDE_CONFIG_DIR": str(machine.home / ".claude"),
            "STENO_HOME": str(machine.home / "steno"),
            "ANTHROPIC_BASE_URL": server.url,
            "ANTHROPIC_API_KEY": CANARIES["api key"],
        }
        if not setting.confined:
            env["STENO_CONFINEMENT"] = "off"
        if setting.mode == "bypassPermissions":
            # Approved commands get no secrets, so that the control would not see them leak.
            env["STENO_PASS_ENV"] = ",".join(machine.env)
        agent = subprocess.Popen(
            # -P: the project is no place for Python's own modules, as with the installed program.
            [sys.executable, "-P", "-m", "steno", "chat", *setting.arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            cwd=machine.project,
            env=env,
        )
        try:
            _, said = agent.communicate(timeout=_LONGEST)
        except subprocess.TimeoutExpired:
            agent.kill()
            agent.communicate()
            name = driver.attack.name if driver.attack is not None else "its start"
            raise AssertionError(f"the agent did not end; it was at: {name}") from None
        assert list(server.refused) == []
    return said[-2000:]


def _add_left_behind(driver: Driver, machine: Machine) -> None:
    """Add the processes that were left to the attacks that started them, and end them."""
    tokens = {token_of(each.attack, machine): at for at, each in enumerate(driver.outcomes)}
    for line in _end_processes(machine, [machine.name, str(machine.root), *tokens]):
        owners = (at for token, at in tokens.items() if token in line)
        driver.add_effects(next(owners, -1), [f"left: {line}"])


def token_of(attack: Attack, machine: Machine) -> str:
    """Return digits that stand for an attack in the command lines of its processes."""
    return f"{zlib.crc32(f'{attack.name} {machine.name}'.encode()):010d}"


def _end_processes(machine: Machine, marks: list[str]) -> list[str]:
    """End the processes that the agent left; return their command lines."""
    watched: dict[int, str] = {}
    try:
        for pid in _processes_of(machine, marks):
            with suppress(OSError):
                watched[os.pidfd_open(pid)] = _command_line(pid)
        deadline = time.monotonic() + _GRACE
        alive = set(watched)
        while alive and (left := deadline - time.monotonic()) > 0:
            alive -= set(select.select(list(alive), [], [], left)[0])
        for descriptor in alive:
            signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        return [watched[each] for each in alive]
    finally:
        for descriptor in watched:
            os.close(descriptor)


def _processes_of(machine: Machine, marks: list[str]) -> list[int]:
    """Return the processes whose folder or command line belongs to the machine."""
    found: list[int] = []
    names = (path.name for path in Path("/proc").iterdir())
    for pid in map(int, filter(str.isdigit, names)):
        if pid in {os.getpid(), machine.sibling.pid}:
            continue
        with suppress(OSError):
            folder = str(Path(f"/proc/{pid}/cwd").readlink())
            line = _command_line(pid)
            if folder.startswith(str(machine.root)) or any(mark in line for mark in marks):
                found.append(pid)
    return found


def _command_line(pid: int) -> str:
    data = Path(f"/proc/{pid}/cmdline").read_bytes()
    return data.replace(b"\0", b" ").decode(errors="replace").strip()
