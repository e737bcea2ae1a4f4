"""Runs commands confined and unconfined for a test, as the user that the test chose.

One JSON object per line on the input, one on the output.
"""

import asyncio
import json
import os
import subprocess
import sys
from typing import Any

import msgspec

from steno.permissions.sandbox.launcher import SandboxLauncher
from steno.permissions.sandbox.mechanisms import find_mechanisms
from steno.permissions.sandbox.policy import SandboxError, SandboxPolicy


def _plain(asked: dict[str, Any]) -> dict[str, Any]:
    done = subprocess.run(
        asked["argv"],
        cwd=asked["policy"]["cwd"],
        env=asked["env"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    return {"code": done.returncode, "out": os.fsdecode(done.stdout), "err": os.fsdecode(done.stderr)}


async def _confined(launcher: SandboxLauncher, asked: dict[str, Any]) -> dict[str, Any]:
    policy = msgspec.convert(asked["policy"], SandboxPolicy)
    files = [os.memfd_create(name) for name in ("out", "err")]
    extra = [os.memfd_create("extra") for _ in asked["pass_fds"]]
    for number, target in zip(extra, asked["pass_fds"], strict=True):
        os.write(number, b"passed")
        os.lseek(number, 0, os.SEEK_SET)
        os.dup2(number, target)
    try:
        process = await launcher.start(
            asked["argv"], policy=policy, env=asked["env"], stdout=files[0], stderr=files[1], pass_fds=asked["pass_fds"]
        )
        code = await process.wait()
    except SandboxError as error:
        return {"error": str(error)}
    finally:
        texts = [os.fsdecode(os.pread(number, 1 << 24, 0)) for number in files]
        for number in (*files, *extra, *asked["pass_fds"]):
            os.close(number)
    return {"code": code, "out": texts[0], "err": texts[1]}


async def _serve() -> None:
    launcher = SandboxLauncher(find_mechanisms())
    for line in sys.stdin:
        asked = json.loads(line)
        done = await _confined(launcher, asked) if asked["confined"] else _plain(asked)
        sys.stdout.write(json.dumps(done) + "\n")
        sys.stdout.flush()
    await launcher.close()


if __name__ == "__main__":
    asyncio.run(_serve())
