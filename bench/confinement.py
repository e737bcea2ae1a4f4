"""Measures the time that the sandbox adds to the start of a command: `python bench/confinement.py [ROUNDS]`.

Sandboxed and plain starts of the same program alternate within one run; the result is the difference of the medians. On
a busy machine most of it is waiting for a processor, so the CPU time of a start is printed as well.
"""

import asyncio
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable

from steno.permissions.sandbox.launcher import SandboxLauncher
from steno.permissions.sandbox.mechanisms import find_mechanisms, probe_sandbox
from steno.permissions.sandbox.policy import SandboxPolicy

_ENV = {"PATH": "/usr/bin:/bin"}
_COMMANDS = {"true": ["/bin/true"], "bash": ["/bin/bash", "-c", "ls >/dev/null"]}


async def _timed(start: Callable[[], Awaitable[int]]) -> float:
    began = time.perf_counter()
    code = await start()
    assert code == 0, code
    return (time.perf_counter() - began) * 1000


async def _processor_ms(start: Callable[[], Awaitable[int]], launcher: SandboxLauncher, rounds: int) -> float:
    """Return the CPU time of one start, without that of the launcher."""
    spent: list[float] = []
    for count in (1, rounds + 1):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        for _ in range(count):
            await start()
        await launcher.close()
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spent.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return (spent[1] - spent[0]) / rounds * 1000


async def _compare(choice: str, argv: list[str], policy: SandboxPolicy, rounds: int) -> None:
    launcher = SandboxLauncher(find_mechanisms({"STENO_CONFINEMENT": choice}))
    null = os.open(os.devnull, os.O_RDWR)

    async def confined() -> int:
        process = await launcher.start(argv, policy=policy, env=_ENV, stdout=null, stderr=null)
        return await process.wait()

    async def plain() -> int:
        process = await asyncio.create_subprocess_exec(
            *argv, cwd=policy.cwd, env=_ENV, stdin=null, stdout=null, stderr=null
        )
        return await process.wait()

    await confined()
    times = [(await _timed(plain), await _timed(confined)) for _ in range(rounds)]
    await launcher.close()
    work = [await _processor_ms(start, launcher, rounds) for start in (plain, confined)]
    os.close(null)
    before, after = (statistics.median(column) for column in zip(*times, strict=True))
    name = choice or "both"
    print(
        f"{name:12} {os.path.basename(argv[0]):6} plain {before:6.2f} ms  sandboxed {after:6.2f} ms"
        f"  overhead {after - before:+6.2f} ms ({after / before:.2f} times)"
        f"  CPU {work[1] - work[0]:+5.2f} ms"
    )


def _fill(folder: str) -> SandboxPolicy:
    work, scratch = f"{folder}/work", f"{folder}/scratch"
    os.mkdir(work)
    os.mkdir(scratch)
    for number in range(100):
        with open(f"{work}/file-{number}", "w", encoding="ascii") as file:
            file.write("x")
    return SandboxPolicy(
        cwd=work, readable=(work,), scratch=scratch, denied=(f"{work}/file-7",), programs=("/usr/bin", "/bin")
    )


def main(rounds: int) -> None:
    """Print a line for each mechanism and program."""
    with tempfile.TemporaryDirectory() as folder:
        policy = _fill(folder)
        for choice in ("", "namespaces", "landlock"):
            if not probe_sandbox({"STENO_CONFINEMENT": choice}).usable:
                print(f"{choice or 'both':12} not available")
                continue
            for argv in _COMMANDS.values():
                asyncio.run(_compare(choice, argv, policy, rounds))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 40)
