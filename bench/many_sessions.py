"""Measure the explorer with many small sessions whose files were all just written.

    python bench/many_sessions.py [--sessions 50000] [--data FOLDER] [--json]

Writes the sessions to FOLDER (default: a temporary directory), indexes them while the explorer already
answers, then requests every list page. Times are measured in process, from receiving the request to the
complete answer: median and maximum of 20. The exit code is 1 if the first page exceeds 150 ms or 200 kB.
"""

import argparse
import asyncio
import json
import os
import resource
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any
from uuid import UUID

PAGES = (
    "/",
    "/?part=rows&after=1700000000000_25000",
    "/?status=live",
    "/?status=finished",
    "/?view=project",
    "/?sort=largest",
    "/?open=branch",
    "/?open=project",
    "/?q=parser",
    "/?q=zzz",
    "/?q=pars*",
    "/?q=parser&open=titles",
    "/usage",
    "/usage/sessions",
    "/usage/lines",
    "/usage/calls",
    "/usage/table.csv",
    "/files",
    "/health",
    "/palette",
    "/palette?q=parser",
    "/compare",
)
MOST_MILLISECONDS = 150
MOST_BYTES = 200_000
ROUNDS = 20
_WORDS = ["parser", "token", "index", "cache", "retry", "socket", "schema", "branch", "deploy", "query"]


def write_sessions(root: Path, number: int, *, projects: int = 400) -> None:
    """Write small sessions with records of the past year and current modification times."""
    newest = time.time() - 7 * 86_400
    for place in range(number):
        project = f"/home/dev/work/project-{place * 7919 % projects:03d}"
        folder = root / "projects" / project.replace("/", "-")
        if place < projects:
            folder.mkdir(parents=True, exist_ok=True)
        name = str(UUID(int=0x5E55_0000_0000_4000_8000_0000_0000_0000 + place))
        records = session_records(place, name, project, newest - place * 600.0)
        data = "".join(json.dumps(each, separators=(",", ":")) + "\n" for each in records)
        (folder / f"{name}.jsonl").write_text(data)


def session_records(place: int, name: str, project: str, start: float) -> list[dict[str, Any]]:
    """Return the records of one session: a prompt, a call with its result, an answer."""
    from datetime import UTC, datetime

    words = f"{_WORDS[place % 10]} {_WORDS[place // 10 % 10]} number {place}"
    usage = {"input_tokens": 20, "output_tokens": 90, "cache_read_input_tokens": 9000}
    answer = {"model": "claude-opus-4-5", "type": "message", "usage": usage}
    call = f"toolu_{place}"
    command = {"command": f"pytest tests/{place}"}
    use = {"type": "tool_use", "id": call, "name": "Bash", "input": command}
    result = {"type": "tool_result", "tool_use_id": call, "content": "1 passed"}
    text = {"type": "text", "text": f"The {words} is fixed."}
    messages: list[dict[str, Any]] = [
        {"role": "user", "content": f"Fix the {words}"},
        {"role": "assistant", "content": [use], "id": f"msg_{place}a", **answer},
        {"role": "user", "content": [result]},
        {"role": "assistant", "content": [text], "id": f"msg_{place}b", **answer},
    ]
    uuids = [str(UUID(int=(place << 8) + step)) for step in range(len(messages))]
    stamps = [datetime.fromtimestamp(start + step * 7, UTC) for step in range(len(messages))]
    return [
        {
            "parentUuid": uuids[step - 1] if step else None,
            "isSidechain": False,
            "userType": "external",
            "cwd": project,
            "sessionId": name,
            "version": "2.1.40",
            "gitBranch": f"feature-{place % 997}",
            "type": message["role"],
            "message": message,
            "uuid": uuids[step],
            "timestamp": stamps[step].isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        }
        for step, message in enumerate(messages)
    ]


def request(app: Any, host: str, cookie: str, address: str) -> tuple[int, float, int]:
    """Return status, milliseconds and bytes of one request, handled in this process."""
    path, _, query = address.partition("?")
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(b"host", host.encode()), (b"cookie", cookie.encode())],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 1),
    }
    status, size = 0, 0

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        nonlocal status, size
        status = message.get("status", status)
        size += len(message.get("body", b""))

    async def answer() -> None:
        await app(scope, receive, send)

    begun = time.perf_counter()
    asyncio.run(answer())
    return status, (time.perf_counter() - begun) * 1000, size


def memory() -> float:
    """Return the resident memory of this process in MB."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def measure(folder: Path, number: int) -> dict[str, Any]:
    """Return the measurements for a number of sessions."""
    from steno.index.database import IndexLocation
    from steno.index.sync.updater import sync
    from steno.web.app import make_app
    from steno.web.auth import LoginKeys
    from steno.web.state.app_state import AppState

    root = folder / f"sessions-{number}"
    if not root.exists():
        write_sessions(root, number)
    house = AppState(IndexLocation(str(folder / f"index-{number}"), (str(root),)))
    keys = LoginKeys(1)
    host, cookie = "127.0.0.1:1", f"{keys.cookie}={keys.token}"
    app = make_app(house, keys, frozenset((host,)))
    before = memory()

    during: list[float] = []
    work = threading.Thread(target=sync, args=(house.home,))
    begun = time.perf_counter()
    work.start()
    while work.is_alive():
        _, took, _ = request(app, host, cookie, "/")
        during.append(took)
        work.join(0.05)
    indexed = time.perf_counter() - begun
    house.index_status.syncing = False

    pages: dict[str, dict[str, float]] = {}
    for address in PAGES:
        answers = [request(app, host, cookie, address) for _ in range(ROUNDS)]
        times = [took for _, took, _ in answers]
        pages[address] = {
            "status": answers[-1][0],
            "p50_ms": round(statistics.median(times), 1),
            "first_ms": round(times[0], 1),
            "max_ms": round(max(times), 1),
            "bytes": max(size for _, _, size in answers),
        }
        print(address, pages[address], file=sys.stderr, flush=True)
    report = {
        "sessions": number,
        "index_seconds": round(indexed, 1),
        "requests_while_indexing": len(during),
        "p50_ms_while_indexing": round(statistics.median(during), 1) if during else 0.0,
        "max_ms_while_indexing": round(max(during, default=0.0), 1),
        "memory_mb_before": round(before, 1),
        "memory_mb_after": round(memory(), 1),
        "memory_mb_peak": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
        "pages": pages,
    }
    house.close()
    return report


def main() -> int:
    """Measure, print, and return the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sessions", type=int, default=50_000)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        home = Path(temporary)
        os.environ["HOME"] = os.environ["CLAUDE_CONFIG_DIR"] = str(home)
        os.environ["STENO_HOME"] = str(home / "steno")
        folder = options.data or home
        folder.mkdir(parents=True, exist_ok=True)
        report = measure(folder, options.sessions)
    if options.json:
        print(json.dumps(report, indent=1))
    else:
        pages = report.pop("pages")
        for name, value in report.items():
            print(f"{name:28} {value}")
        for address, figures in pages.items():
            print(f"{address:40} {figures}")
        report["pages"] = pages
    first = report["pages"]["/"]
    return int(first["p50_ms"] > MOST_MILLISECONDS or first["bytes"] > MOST_BYTES)


if __name__ == "__main__":
    raise SystemExit(main())
