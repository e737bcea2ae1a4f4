"""Runs inside the network namespace: lets the real client resume sessions, against our server.

    python runner.py [--alone] < jobs.json > results.json

Every resume has a home, a config folder, a temp folder, a project and a server of its own, and
nothing of this machine's environment.
"""

import base64
import contextlib
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from tests.interop.server import Server

from steno.format.paths import slug_for_path

__all__ = ["SETTINGS", "asked_of", "loopback_up", "run", "run_client", "stop"]

_SECONDS: Final = 40
_SET_FLAGS: Final = 0x8914
_UP: Final = 0x1
SETTINGS: Final = {
    "ANTHROPIC_API_KEY": "dummy-key",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "DISABLE_AUTOUPDATER": "1",
    "DISABLE_BUG_COMMAND": "1",
    "DISABLE_ERROR_REPORTING": "1",
    "DISABLE_TELEMETRY": "1",
    "IS_SANDBOX": "1",
    "LANG": "C.UTF-8",
    "TERM": "dumb",
}
_running: set[int] = set()
_homes: set[Path] = set()
_lock: Final = threading.Lock()

__all__ = ["SETTINGS", "loopback_up", "run", "stop"]


def main() -> None:
    """Run all jobs, as many at a time as there are processors."""
    signal.signal(signal.SIGTERM, stop)
    if "--alone" in sys.argv:
        loopback_up()
    jobs: list[dict[str, Any]] = json.load(sys.stdin)
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        results = list(pool.map(_resume, jobs))
    json.dump(results, sys.stdout)


def stop(*_: object) -> None:
    """End every client that runs, and leave nothing behind."""
    with _lock:
        for group in _running:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(group, signal.SIGKILL)
    for home in tuple(_homes):
        shutil.rmtree(home, ignore_errors=True)
    os._exit(1)


def loopback_up() -> None:
    """Let a new namespace reach itself: it has a loopback interface that is not up yet."""
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = struct.pack("16sh", b"lo", _UP)
        fcntl.ioctl(any_socket, _SET_FLAGS, request + bytes(40 - len(request)))


def _resume(job: dict[str, Any]) -> dict[str, Any]:
    # Short and without links, as the client makes the project's name from it.
    home = Path(os.path.realpath(tempfile.mkdtemp(prefix="steno-")))
    _homes.add(home)
    try:
        with Server() as server:
            return _in_home(home, job, server)
    finally:
        shutil.rmtree(home, ignore_errors=True)
        _homes.discard(home)


def _in_home(home: Path, job: dict[str, Any], server: Server) -> dict[str, Any]:
    project, config = home / "project", home / "config"
    folder = config / "projects" / slug_for_path(str(project))
    for each in (project, folder, home / "tmp"):
        each.mkdir(parents=True)
    path = folder / f"{job['name']}.jsonl"
    path.write_bytes(base64.b64decode(job["data"]))
    names = {
        **SETTINGS,
        "ANTHROPIC_BASE_URL": server.url,
        "CLAUDE_CODE_TMPDIR": str(home / "tmp"),
        "CLAUDE_CONFIG_DIR": str(config),
        "HOME": str(home),
        "PATH": job["path"],
        "TMPDIR": str(home / "tmp"),
    }
    arguments = ["-p", "--output-format", "json", job["prompt"], "--resume", job["name"]]
    code, error, _ = run_client([job["client"], *arguments], names, project)
    after = path.read_bytes()
    return {
        "rc": code,
        "err": error[:400],
        "messages": asked_of(server, job["prompt"]),
        "new_parent": _new_parent(after, job["prompt"]),
        "after": base64.b64encode(after).decode(),
    }


def run_client(command: list[str], names: dict[str, str], folder: Path) -> tuple[int, str, str]:
    """Run the client; return how it ended, what went wrong, and what it wrote."""
    code, out, error = run(command, names, folder)
    return code, error.strip() or (out.strip() if code else ""), out


def run(command: list[str], names: dict[str, str], folder: Path) -> tuple[int, str, str]:
    """Run a client; return how it ended and what it printed. Nothing of it is left running."""
    with subprocess.Popen(
        command,
        env=names,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as client:
        with _lock:
            _running.add(client.pid)
        try:
            out, error = client.communicate(timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            out, error = "", "took too long"
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(client.pid, signal.SIGKILL)
            with _lock:
                _running.discard(client.pid)
    return client.returncode, out, error


def asked_of(server: Server, prompt: str) -> list[dict[str, Any]] | None:
    """Return the conversation of the first real request: one with tools and the prompt in it."""
    for path, body in server.requests:
        if path == "/v1/messages" and body.get("tools") and prompt in json.dumps(body["messages"]):
            return body["messages"]
    return None


def _new_parent(after: bytes, prompt: str) -> str | None:
    """Return what the client hung the new prompt on."""
    found = None
    for line in after.split(b"\n"):
        try:
            record: Any = json.loads(line)
        except ValueError:
            continue
        if isinstance(record, dict) and record.get("type") == "user":
            message = record.get("message")
            if isinstance(message, dict) and prompt in json.dumps(message.get("content")):
                found = record.get("parentUuid")
    return found


if __name__ == "__main__":
    main()
