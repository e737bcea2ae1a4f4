"""What the launcher does with messages of the helper, and what the probe says."""

import asyncio
import json
import os
import socket
import subprocess
from pathlib import Path

import pytest

from steno.permissions.sandbox import launcher
from steno.permissions.sandbox import mechanisms as mechanisms_module
from steno.permissions.sandbox.launcher import SandboxedProcess, _HelperConnection
from steno.permissions.sandbox.mechanisms import Mechanisms, SandboxSupport
from steno.permissions.sandbox.policy import SandboxError, SandboxPolicy


class _Wire:
    """A helper as the launcher sees it, with this test at the other end of the socket."""

    def __init__(self) -> None:
        ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.process = subprocess.Popen(["true"])
        self.helper = _HelperConnection(self.process, ours, b"mounts")

    async def say(self, **message: object) -> None:
        self.theirs.send(json.dumps(message).encode())
        for _ in range(3):
            await asyncio.sleep(0)

    def expect(self, number: int) -> tuple["asyncio.Future[int]", "asyncio.Future[int]"]:
        loop = asyncio.get_running_loop()
        started: asyncio.Future[int] = loop.create_future()
        ended: asyncio.Future[int] = loop.create_future()
        self.helper.start_futures[number], self.helper.exit_futures[number] = started, ended
        return started, ended

    async def greeted(self) -> None:
        await self.say(landlock=1)
        await self.helper.greeting

    def close(self) -> None:
        self.helper.stop()
        self.theirs.close()
        self.process.wait()


async def _until(future: "asyncio.Future[int]") -> object:
    try:
        return await asyncio.wait_for(future, 10)
    except SandboxError as error:
        return str(error)


def test_messages_reach_the_command_that_they_are_about() -> None:
    async def main() -> list[object]:
        wire = _Wire()
        await wire.greeted()
        one, two = wire.expect(1), wire.expect(2)
        await wire.say(id=1, pid=77)
        await wire.say(id=9, pid=1)
        found = [await _until(one[0]), two[0].done(), one[1].done()]
        await wire.say(id=1, status=3)
        found += [await _until(one[1]), two[1].done(), 1 in wire.helper.exit_futures]
        await wire.say(id=1, ended=True)
        found += [sorted(wire.helper.start_futures), sorted(wire.helper.exit_futures), wire.helper.mounts]
        wire.close()
        return found

    assert asyncio.run(main()) == [77, False, False, 3, False, True, [2], [2], b"mounts"]


@pytest.mark.parametrize(
    ("messages", "started", "ended"),
    [
        ([{"id": 1, "error": "no"}], "Not run: no", None),
        ([{"id": 1, "ended": True}], "Not run: the supervisor ended", -9),
        ([{"id": 1, "pid": 5}, {"id": 1, "ended": True}], 5, -9),
        ([{"id": 1, "pid": 5}, {"id": 1, "status": 0}, {"id": 1, "ended": True}], 5, 0),
        ([{"id": 1, "pid": 5}, {"id": 1, "pid": 6}], 5, None),
    ],
)
def test_every_end_of_a_command_is_told(messages: list[dict[str, object]], started: object, ended: object) -> None:
    async def main() -> tuple[object, object]:
        wire = _Wire()
        await wire.greeted()
        begun, over = wire.expect(1)
        for message in messages:
            await wire.say(**message)
        first = await _until(begun)
        last = await _until(over) if over.done() else None
        wire.close()
        return first, last

    assert asyncio.run(main()) == (started, ended)


def test_the_end_of_the_helper_ends_all_who_wait() -> None:
    async def main() -> list[object]:
        wire = _Wire()
        await wire.greeted()
        started, ended = wire.expect(1)
        wire.theirs.close()
        found = [await _until(started), await _until(ended), wire.helper.is_stopped]
        wire.helper.stop()
        wire.process.wait()
        return found

    assert asyncio.run(main()) == ["Not run: the sandbox helper ended", -9, True]


@pytest.mark.parametrize(
    ("message", "words"),
    [({"error": "no Landlock"}, "on this machine: no Landlock"), (None, "the sandbox helper ended")],
)
def test_a_helper_that_cannot_confine_says_so(message: dict[str, str] | None, words: str) -> None:
    async def main() -> None:
        wire = _Wire()
        if message is None:
            wire.theirs.close()
        else:
            await wire.say(**message)
        try:
            await asyncio.wait_for(wire.helper.greeting, 10)
        finally:
            wire.helper.stop()
            wire.process.wait()
            wire.theirs.close()

    with pytest.raises(SandboxError, match=words):
        asyncio.run(main())


def test_a_process_has_its_exit_code_when_it_ended() -> None:
    async def main() -> list[object]:
        ended: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        process = SandboxedProcess(9, ended)
        found: list[object] = [process.pid, process.returncode]
        ended.set_result(4)
        found += [await process.wait(), process.returncode]
        cancelled: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        other = SandboxedProcess(9, cancelled)
        cancelled.cancel()
        await asyncio.sleep(0)
        return [*found, other.returncode]

    assert asyncio.run(main()) == [9, None, 4, 4, None]


def test_only_mounts_of_the_policy_make_a_new_helper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    base = os.path.realpath(tmp_path)
    policy = SandboxPolicy(cwd=base, readable=(base,), scratch="/s", writable=("/w",), programs=("/p",))
    line = "1 2 0:1 / {} rw - ext4 x rw\n"

    def differ(before: str, now: str) -> bool:
        monkeypatch.setattr(launcher, "_read_mounts", now.encode)
        return launcher._mounts_differ(before.encode(), policy)

    plain = line.format("/other")
    assert not differ(plain, plain)
    assert not differ(plain, line.format("/another"))
    assert not differ(plain, "")
    for place in (base, f"{base}/x", "/s", "/w/x", "/p", "/"):
        assert differ(plain, plain + line.format(place)), place
        assert differ(plain + line.format(place), plain), place


@pytest.mark.parametrize(
    ("mechanisms", "support"),
    [
        (
            Mechanisms(6, namespaces=True),
            SandboxSupport(
                "linux",
                ("landlock-6", "seccomp", "user", "mount", "pid", "net", "ipc"),
                "Agent commands without approval are sandboxed by Landlock 6, namespaces and seccomp: no network,"
                " no writes outside the scratch directory.",
                usable=True,
            ),
        ),
        (
            Mechanisms(0, namespaces=True),
            SandboxSupport(
                "linux",
                ("seccomp", "user", "mount", "pid", "net", "ipc"),
                "Agent commands without approval are sandboxed by namespaces and seccomp: no network,"
                " no writes outside the scratch directory.",
                usable=True,
            ),
        ),
        (
            Mechanisms(1, namespaces=False),
            SandboxSupport(
                "linux",
                ("landlock-1", "seccomp"),
                "Agent commands without approval are sandboxed by Landlock 1 and seccomp: no network, no writes"
                " outside the scratch directory; names and sizes of other files stay visible, and"
                " directories that contain protected files cannot get new files.",
                usable=True,
            ),
        ),
    ],
)
def test_support_says_what_confines(mechanisms: Mechanisms, support: SandboxSupport) -> None:
    assert mechanisms_module._linux_support(mechanisms) == support


@pytest.mark.parametrize(
    ("choice", "candidates"),
    [
        ("", [(99, True), (0, True), (99, False)]),
        ("namespaces", [(0, True)]),
        ("landlock", [(99, False)]),
        ("landlock-4", [(4, False)]),
        ("landlock-x", [(99, False)]),
        ("other", []),
    ],
)
def test_mechanisms_are_tried_in_order(choice: str, candidates: list[tuple[int, bool]]) -> None:
    found = [(each.landlock, each.namespaces) for each in mechanisms_module._candidate_mechanisms(choice)]
    assert found == candidates
    if not candidates:
        support, mechanisms = mechanisms_module._probe_choice(choice)
        assert mechanisms is None
        assert support == SandboxSupport(
            "none",
            (),
            f"Agent commands cannot be sandboxed: STENO_CONFINEMENT={choice} is not a known mechanism.",
            usable=False,
        )
