"""The helper, and that nothing outlives a command, its helper or steno."""

import asyncio
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from steno.permissions.sandbox.launcher import SandboxLauncher
from steno.permissions.sandbox.mechanisms import Mechanisms, find_mechanisms, probe_sandbox
from steno.permissions.sandbox.policy import SandboxError, SandboxPolicy

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Linux only")
ENV = {"PATH": "/usr/bin:/bin"}
_CHOICES = ("", "namespaces", "landlock", "landlock-4")


@pytest.fixture(params=_CHOICES, ids=lambda choice: choice or "both")
def choice(request: pytest.FixtureRequest) -> str:
    support = probe_sandbox({"STENO_CONFINEMENT": request.param})
    if not support.usable:
        pytest.skip(support.summary)
    return request.param


@pytest.fixture
def mechanisms(choice: str) -> Mechanisms:
    found = find_mechanisms({"STENO_CONFINEMENT": choice})
    assert found is not None
    return found


@pytest.fixture
def policy(tmp_path: Path) -> SandboxPolicy:
    for name in ("work", "scratch"):
        (tmp_path / name).mkdir()
    return SandboxPolicy(
        cwd=str(tmp_path / "work"), readable=(str(tmp_path / "work"),), scratch=str(tmp_path / "scratch")
    )


class Canary:
    """A pipe that stays open as long as any process of a command lives."""

    def __init__(self) -> None:
        self.reading, self.writing = os.pipe()

    def close_writing(self) -> None:
        os.close(self.writing)

    def is_silent(self) -> bool:
        """Whether every holder of the other end is gone, after waiting for that."""
        while select.select([self.reading], [], [], 30)[0]:
            # A shell may say that its child was killed.
            if not os.read(self.reading, 4096):
                return True
        return False

    def is_held(self) -> bool:
        while select.select([self.reading], [], [], 0)[0]:
            if not os.read(self.reading, 4096):
                return False
        return True


@pytest.fixture
def canary() -> Iterator[Canary]:
    made = Canary()
    yield made
    os.close(made.reading)


# A descendant in a session of its own, which ignores what can be ignored.
_ESCAPING = (
    "trap '' HUP TERM INT; (setsid bash -c 'trap \"\" HUP TERM INT; sleep 600 & sleep 600 & wait' &)"
    ' ; echo ready > "$TMPDIR/ready"; '
)


def _wait_for(path: Path) -> None:
    for _ in range(3000):
        if path.exists():
            return
        select.select([], [], [], 0.01)
    raise AssertionError(path)


@pytest.mark.parametrize("ending", ["exits", "is killed", "is closed"])
def test_everything_ends_with_the_command(
    mechanisms: Mechanisms, policy: SandboxPolicy, canary: Canary, ending: str
) -> None:
    async def main() -> int:
        launcher = SandboxLauncher(mechanisms)
        script = _ESCAPING + ("exit 4" if ending == "exits" else "sleep 600")
        process = await launcher.start(
            ["bash", "-c", script], policy=policy, env=ENV, stdout=canary.writing, stderr=canary.writing
        )
        canary.close_writing()
        if ending != "exits":
            # It is still there.
            assert process.returncode is None
            assert os.getsid(process.pid) == process.pid
            assert os.getpgid(process.pid) == process.pid
        await asyncio.to_thread(_wait_for, Path(policy.scratch) / "ready")
        if ending == "is killed":
            os.kill(process.pid, signal.SIGKILL)
        if ending == "is closed":
            assert canary.is_held()
            await launcher.close()
        code = await process.wait()
        assert process.returncode == code
        # Not only soon: when the end is reported, everything has ended.
        if ending != "is closed":
            assert not canary.is_held()
        await launcher.close()
        return code

    assert asyncio.run(main()) == (4 if ending == "exits" else -9)
    assert canary.is_silent()


_STENO = """
import asyncio, os, sys, json
from steno.permissions.sandbox.launcher import SandboxLauncher
from steno.permissions.sandbox.policy import SandboxPolicy
async def main():
    launcher = SandboxLauncher()
    fields = json.loads(sys.argv[1])
    policy = SandboxPolicy(cwd=fields["cwd"], readable=(fields["cwd"],), scratch=fields["scratch"],
        writable=(fields["cwd"],), read_only=(fields["cwd"] + "/.claude",))
    canary = int(sys.argv[2])
    process = await launcher.start(["bash", "-c", sys.argv[3]], policy=policy,
        env={"PATH": "/usr/bin:/bin"}, stdout=canary, stderr=canary)
    os.close(canary)
    print(json.dumps({"helper": launcher._helper.process.pid, "command": process.pid}), flush=True)
    await process.wait()
asyncio.run(main())
"""


@pytest.mark.parametrize("victim", ["steno", "helper", "supervisor"])
def test_nothing_is_left_when_a_process_is_killed(
    choice: str, policy: SandboxPolicy, canary: Canary, victim: str
) -> None:
    fields = json.dumps({"cwd": policy.cwd, "scratch": policy.scratch})
    steno = subprocess.Popen(
        [sys.executable, "-c", _STENO, fields, str(canary.writing), f"{_ESCAPING} sleep 600"],
        stdout=subprocess.PIPE,
        pass_fds=(canary.writing,),
        env={**os.environ, "STENO_CONFINEMENT": choice},
    )
    canary.close_writing()
    assert steno.stdout is not None
    try:
        pids = json.loads(steno.stdout.readline())
        _wait_for(Path(policy.scratch) / "ready")
        assert canary.is_held()
        supervisor = _children(pids["helper"])[0]
        os.kill({"steno": steno.pid, "helper": pids["helper"], "supervisor": supervisor}[victim], 9)
        assert canary.is_silent()
    finally:
        steno.kill()
        steno.wait()
        steno.stdout.close()
    if victim == "steno":
        for pid in (pids["helper"], pids["command"], supervisor):
            _wait_until_gone(pid)
        # The folder that stood for a missing rule is removed as well.
        assert list(Path(policy.cwd).iterdir()) == []


def _children(pid: int) -> list[int]:
    found: list[int] = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == pid:
            found.append(int(path.parent.name))
    return found


def _wait_until_gone(pid: int) -> None:
    for _ in range(3000):
        try:
            state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
        except (FileNotFoundError, ProcessLookupError):
            return
        if state == b"Z":
            return
        select.select([], [], [], 0.01)
    raise AssertionError(pid)


def test_a_helper_that_died_is_started_again(mechanisms: Mechanisms, policy: SandboxPolicy) -> None:
    async def main() -> list[int]:
        launcher = SandboxLauncher(mechanisms)
        codes: list[int] = []
        for _ in range(2):
            codes.append(await _run(launcher, policy, "exit 3"))
            helper = launcher._helper
            assert helper is not None
            helper.process.kill()
            helper.process.wait()
        codes.append(await _run(launcher, policy, "exit 5"))
        await launcher.close()
        return codes

    assert asyncio.run(main()) == [3, 3, 5]


async def _run(launcher: SandboxLauncher, policy: SandboxPolicy, script: str) -> int:
    null = os.open(os.devnull, os.O_RDWR)
    try:
        process = await launcher.start(["bash", "-c", script], policy=policy, env=ENV, stdout=null, stderr=null)
    finally:
        os.close(null)
    return await process.wait()


def test_many_commands_at_once_and_one_launcher_in_several_loops(mechanisms: Mechanisms, policy: SandboxPolicy) -> None:
    launcher = SandboxLauncher(mechanisms)

    async def main() -> list[int]:
        scripts = [f"exit {number}" for number in range(20)]
        return await asyncio.gather(*(_run(launcher, policy, script) for script in scripts))

    async def close() -> None:
        await launcher.close()

    assert asyncio.run(main()) == list(range(20))
    assert asyncio.run(main()) == list(range(20))
    asyncio.run(close())


def test_a_cancelled_start_leaves_no_command(mechanisms: Mechanisms, policy: SandboxPolicy, canary: Canary) -> None:
    async def main() -> None:
        launcher = SandboxLauncher(mechanisms)
        await _run(launcher, policy, "true")
        start = asyncio.ensure_future(
            launcher.start(["sleep", "600"], policy=policy, env=ENV, stdout=canary.writing, stderr=canary.writing)
        )
        await asyncio.sleep(0)
        start.cancel()
        with pytest.raises(asyncio.CancelledError):
            await start
        canary.close_writing()
        assert await asyncio.to_thread(canary.is_silent)
        await launcher.close()

    asyncio.run(main())


def test_long_commands_and_bad_requests(mechanisms: Mechanisms, policy: SandboxPolicy) -> None:
    async def main() -> None:
        launcher = SandboxLauncher(mechanisms)
        words = ["x" * 100_000] * 10
        null = os.open(os.devnull, os.O_RDWR)
        folder = os.open(policy.cwd, os.O_RDONLY)

        async def start(argv: list[str], *, fds: tuple[int, ...] = ()) -> int:
            process = await launcher.start(argv, policy=policy, env=ENV, stdout=null, stderr=null, pass_fds=fds)
            return await process.wait()

        assert await start(["bash", "-c", "exit $#", "bash", *words]) == 10
        with pytest.raises(SandboxError, match="too long"):
            await start(["echo", "x" * (17 << 20)])
        with pytest.raises(SandboxError, match="Argument list too long"):
            await start(["echo", "x" * (1 << 20)])
        with pytest.raises(SandboxError, match="empty"):
            await start([])
        with pytest.raises(SandboxError, match="NUL"):
            await start(["echo", "a\0b"])
        with pytest.raises(SandboxError, match="above 2"):
            await start(["echo"], fds=(1,))
        with pytest.raises(SandboxError, match="directory cannot be passed"):
            await start(["echo"], fds=(folder,))
        assert await start(["true"]) == 0
        os.close(null)
        os.close(folder)
        await launcher.close()

    asyncio.run(main())


def test_the_helper_knows_nothing_and_is_not_led_astray(
    mechanisms: Mechanisms, policy: SandboxPolicy, monkeypatch: pytest.MonkeyPatch
) -> None:
    (Path(policy.cwd) / "json.py").write_text("raise SystemExit(99)", encoding="utf-8")
    monkeypatch.chdir(policy.cwd)
    monkeypatch.setenv("PYTHONPATH", policy.cwd)
    monkeypatch.setenv("SECRET", "canary")

    def look(pid: int) -> tuple[bytes, bytes]:
        folder = Path(f"/proc/{pid}")
        return (folder / "maps").read_bytes(), (folder / "environ").read_bytes()

    async def main() -> tuple[bytes, bytes]:
        launcher = SandboxLauncher(mechanisms)
        assert await _run(launcher, policy, "exit 0") == 0
        helper = launcher._helper
        assert helper is not None
        found = look(helper.process.pid)
        await launcher.close()
        return found

    loaded, environment = asyncio.run(main())
    assert b"python" in loaded
    assert b"msgspec" not in loaded
    assert environment == b""


def test_a_fork_bomb_ends_with_its_command(mechanisms: Mechanisms, policy: SandboxPolicy, canary: Canary) -> None:
    script = "f() { [ $1 -gt 5 ] && exec sleep 600; f $(($1+1)) & f $(($1+1)) & wait; }; f 0 & sleep 0.2; exit 6"

    async def main() -> int:
        launcher = SandboxLauncher(mechanisms)
        process = await launcher.start(
            ["bash", "-c", script], policy=policy, env=ENV, stdout=canary.writing, stderr=canary.writing
        )
        canary.close_writing()
        code = await process.wait()
        await launcher.close()
        return code

    assert asyncio.run(main()) == 6
    assert not canary.is_held()


def test_off_means_none(monkeypatch: pytest.MonkeyPatch, policy: SandboxPolicy) -> None:
    support = probe_sandbox({"STENO_CONFINEMENT": "off"})
    assert (support.kind, support.layers, support.usable) == ("none", (), False)
    assert "STENO_CONFINEMENT" in support.summary
    assert not probe_sandbox({"STENO_CONFINEMENT": "nonsense"}).usable
    monkeypatch.setenv("STENO_CONFINEMENT", "off")
    with pytest.raises(SandboxError, match="STENO_CONFINEMENT"):
        asyncio.run(_run(SandboxLauncher(), policy, "true"))


def test_what_the_kernel_offers_is_usable() -> None:
    """Without this, an engine that is broken would only skip the other tests."""
    from steno.permissions.sandbox import landlock_rules

    if landlock_rules.abi_version():
        assert probe_sandbox({"STENO_CONFINEMENT": "landlock"}).usable
    trial = ["unshare", "--user", "--map-current-user", "--mount", "--pid", "--fork", "mount"]
    trial += ["-t", "tmpfs", "tmpfs", "/mnt"]
    if subprocess.run(trial, capture_output=True, check=False).returncode == 0:
        assert probe_sandbox({"STENO_CONFINEMENT": "namespaces"}).usable
        assert "mount" in probe_sandbox({}).layers
