"""What confinement adds to the start of a command: `python bench/confinement.py [ROUNDS]`.

Confined and unconfined starts of the same program alternate within one run, so that both see the
same machine; the figure is the difference of the medians.
"""

import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable

from steno.guard.confinement.launcher import Launcher
from steno.guard.confinement.policy import Confinement
from steno.guard.confinement.probe import find_mechanisms, probe_confinement

_ENV = {"PATH": "/usr/bin:/bin"}
_COMMANDS = {"true": ["/bin/true"], "bash": ["/bin/bash", "-c", "ls >/dev/null"]}


async def _timed(start: Callable[[], Awaitable[int]]) -> float:
    began = time.perf_counter()
    code = await start()
    assert code == 0, code
    return (time.perf_counter() - began) * 1000


async def _compare(choice: str, argv: list[str], policy: Confinement, rounds: int) -> None:
    launcher = Launcher(find_mechanisms({"STENO_CONFINEMENT": choice}))
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
    os.close(null)
    before, after = (statistics.median(column) for column in zip(*times, strict=True))
    name = choice or "both"
    print(
        f"{name:12} {os.path.basename(argv[0]):6} plain {before:6.2f} ms  confined {after:6.2f} ms"
        f"  overhead {after - before:+6.2f} ms ({after / before:.2f} times)"
    )


async def _main(rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        work, scratch = f"{folder}/work", f"{folder}/scratch"
        os.mkdir(scratch)
        os.makedirs(f"{work}/secrets")
        for number in range(100):
            with open(f"{work}/file-{number}", "w", encoding="ascii") as file:
                file.write("x")
        policy = Confinement(
            cwd=work,
            readable=(work,),
            scratch=scratch,
            denied=(f"{work}/file-7",),
            programs=("/usr/bin", "/bin"),
        )
        for choice in ("", "namespaces", "landlock"):
            if not probe_confinement({"STENO_CONFINEMENT": choice}).usable:
                print(f"{choice or 'both':12} cannot be used here")
                continue
            for argv in _COMMANDS.values():
                await _compare(choice, argv, policy, rounds)


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1]) if len(sys.argv) > 1 else 40))
