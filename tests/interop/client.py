"""The real client: found or installed, and asked to resume sessions.

It is a tool of the tests, kept outside the repository: in the folder STENO_REAL_CLIENTS names, or
in one of our own under the system's temp folder. Where it cannot be had, tests are skipped.
"""

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest
from tests.notation import PROMPT

import steno

__all__ = [
    "LIMIT",
    "QUICK",
    "SID",
    "Job",
    "Resumed",
    "Talk",
    "Talked",
    "client_of",
    "namespace",
    "path_for",
    "resume",
    "resume_all",
    "talk_all",
]

SID: Final = "aaaaaaaa-0000-4000-8000-000000000001"
QUICK: Final = os.environ.get("STENO_INTEROP") == "quick"
_ROOT: Final = Path(__file__).resolve().parent.parent.parent
_RUNNER: Final = Path(__file__).with_name("runner.py")
_TALKER: Final = Path(__file__).with_name("talker.py")
_PACKAGE: Final = "@anthropic-ai/claude-code"
LIMIT: Final = 150 if QUICK else 1800
"""How many seconds a test may take."""
_INSTALL_SECONDS: Final = 60 if QUICK else 300
_SECONDS_EACH: Final = 45


class Job(msgspec.Struct, frozen=True):
    """A session file to be resumed."""

    data: bytes
    name: str = SID


class Resumed(msgspec.Struct, frozen=True):
    """What the client did: how it ended, what it sent, where it went on, what the file is now."""

    rc: int
    err: str
    messages: list[dict[str, Any]] | None
    new_parent: str | None
    after: bytes


class Talk(msgspec.Struct, frozen=True):
    """A conversation to be had: what a client is told, and what lies about it."""

    arguments: list[str]
    script: dict[str, Any]
    """What the model answers, as a script in a file says it; `{project}` is the folder."""
    files: dict[str, str] = {}
    config: dict[str, str] = {}


class Talked(msgspec.Struct, frozen=True):
    """What came of it."""

    rc: int
    err: str
    lines: list[dict[str, Any]]
    """What it printed, where that is JSON."""
    records: list[dict[str, Any]]
    requests: list[dict[str, Any]]
    refused: list[str]


def talk_all(version: str, talks: Iterable[Talk]) -> list[Talked]:
    """Let a version of the client, or with `steno` our own, have conversations, each alone."""
    ours = [sys.executable, "-m", "steno", "chat"]
    command = ours if version == "steno" else [str(client_of(version))]
    asked = [{**msgspec.to_builtins(each), "command": command, "path": path_for()} for each in talks]
    alone = namespace()
    program = [*alone, sys.executable, str(_TALKER), *(["--alone"] if alone else [])]
    return msgspec.json.decode(_run(program, json.dumps(asked), len(asked)), type=list[Talked])


def resume(version: str, data: bytes, name: str = SID) -> Resumed:
    """Let a version of the client resume one session."""
    return resume_all(version, [Job(data, name)])[0]


def resume_all(version: str, jobs: Iterable[Job]) -> list[Resumed]:
    """Let a version of the client resume many sessions, each alone; the answers are in order."""
    client = client_of(version)
    asked = [
        {
            "client": str(client),
            "data": base64.b64encode(job.data).decode(),
            "name": job.name,
            "path": path_for(),
            "prompt": PROMPT,
        }
        for job in jobs
    ]
    alone = namespace()
    command = [*alone, sys.executable, str(_RUNNER), *(["--alone"] if alone else [])]
    results: list[dict[str, Any]] = json.loads(_run(command, json.dumps(asked), len(asked)))
    return [
        Resumed(
            result["rc"], result["err"], result["messages"], result["new_parent"], base64.b64decode(result["after"])
        )
        for result in results
    ]


def _run(command: list[str], jobs: str, count: int) -> str:
    places = [str(_ROOT), str(Path(steno.__file__).parent.parent)]
    with subprocess.Popen(
        command,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(places), "TMPDIR": tempfile.gettempdir()},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as runner:
        try:
            out = runner.communicate(jobs, timeout=_SECONDS_EACH * (count + 1))[0]
        finally:
            if runner.poll() is None:
                # It ends the clients it has started before it goes.
                os.killpg(runner.pid, signal.SIGTERM)
    assert runner.returncode == 0
    return out


@cache
def namespace() -> list[str]:
    """Return the command that shuts the network out, or nothing where that is not allowed."""
    for command in (["unshare", "-n"], ["unshare", "-r", "-n"]):
        if _works([*command, "true"]):
            return command
    return []


def _works(command: list[str], names: dict[str, str] | None = None) -> bool:
    try:
        ran = subprocess.run(
            command, env=names, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS_EACH, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return ran.returncode == 0


def path_for() -> str:
    """Return where the client finds programs: node's folder and the system's."""
    node = shutil.which("node")
    folders = [str(Path(node).parent)] if node else []
    return os.pathsep.join([*folders, "/usr/local/bin", "/usr/bin", "/bin"])


# Finding and installing


@cache
def client_of(version: str) -> Path:
    """Return the client's program, installed if need be; skips the test where it cannot be had."""
    folder = _cache() / version
    program = folder / "node_modules" / ".bin" / "claude"
    if not program.exists():
        _install(version, folder)
    with tempfile.TemporaryDirectory() as home:
        names = {"HOME": home, "CLAUDE_CONFIG_DIR": home, "TMPDIR": home, "PATH": path_for()}
        if not _works([*namespace(), str(program), "--version"], names):
            pytest.skip(f"the client {version} cannot be run on this machine")
    return program


def _cache() -> Path:
    named = os.environ.get("STENO_REAL_CLIENTS", "")
    if named:
        return Path(named).absolute()
    folder = Path(tempfile.gettempdir()) / f"steno-real-clients-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    # What lies there is run: nobody else may have put it there.
    if folder.is_symlink() or folder.stat().st_uid != os.getuid() or folder.stat().st_mode & 0o022:
        pytest.skip(f"{folder} is not ours alone; set STENO_REAL_CLIENTS to another folder")
    return folder


_unreachable: list[str] = []


def _install(version: str, folder: Path) -> None:
    """Install into a folder beside the right one, and rename it when all is there."""
    npm = shutil.which("npm")
    if npm is None or not shutil.which("node"):
        pytest.skip("the real client needs node and npm")
    if _unreachable:
        pytest.skip(_unreachable[0])
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".installing-") as place:
        made = Path(place) / version
        said = _npm(npm, made, version)
        if said:
            _unreachable.append(f"the client {version} could not be installed: {said}")
            pytest.skip(_unreachable[0])
        if not folder.exists():
            made.rename(folder)


def _npm(npm: str, folder: Path, version: str) -> str:
    """Install a version; return what went wrong."""
    folder.mkdir()
    quiet = ["--no-audit", "--no-fund", "--no-update-notifier", "--loglevel=error"]
    patience = ["--fetch-retries=1", "--fetch-timeout=30000"]
    command = [npm, "install", "--prefix", str(folder), *quiet, *patience]
    try:
        ran = subprocess.run(
            [*command, f"{_PACKAGE}@{version}"],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_INSTALL_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"npm took more than {_INSTALL_SECONDS} s"
    first = next(iter(ran.stderr.strip().splitlines()), "npm failed")
    return first[:120] if ran.returncode else ""
