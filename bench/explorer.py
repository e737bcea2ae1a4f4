"""Measures page times of the explorer, compared with agentsview serving the same sessions.

    python bench/explorer.py --data FOLDER [--corpus FOLDER] [--streams 50] [--minutes 10]

Both serve a corpus of 1 GB that includes a session of 150 MB. agentsview sends JSON that a browser has to render; the
explorer sends the page. Times are measured at the client, with sequential requests over an open connection. The limit
is the ratio to the time for a static file of the same server, so that load on the machine has little effect.
"""

import argparse
import contextlib
import http
import http.client
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from urllib.parse import urlsplit

from measure import Failed
from peers import Agentsview, Unavailable, agentsview
from table import Row, row, show

STENO = Path(sys.executable).with_name("steno")
BIG = "b1600000-0000-4000-8000-000000000000"
LIVE = "11fe0000-0000-4000-8000-000000000000"
_SAID = [{"type": "text", "text": "A paragraph with **bold** words and `code`.\n\n" * 20}]
TIMES = 40
MB = 1 << 20


class Site:
    """A server, accessed with one connection at a time."""

    def __init__(self, address: str, headers: Mapping[str, str]) -> None:
        self.netloc = urlsplit(address).netloc
        self.headers = headers

    def get(self, way: str) -> tuple[float, bytes]:
        """Return the milliseconds of a request, and the response body."""
        connection = http.client.HTTPConnection(self.netloc, timeout=120)
        with contextlib.closing(connection):
            connection.connect()
            begun = time.perf_counter()
            connection.request("GET", way, headers=dict(self.headers))
            answer = connection.getresponse()
            body = answer.read()
            took = (time.perf_counter() - begun) * 1000
        if answer.status != http.HTTPStatus.OK:
            raise Failed(f"{way}: {answer.status}")
        return took, body

    def times(self, ways: list[str]) -> list[float]:
        """Return the times of requests that cycle through pages, after one warm-up request each."""
        for way in ways:
            self.get(way)
        return sorted(self.get(ways[turn % len(ways)])[0] for turn in range(TIMES))


def config(folder: Path, corpus: Path, big: Path) -> Path:
    """Return a config directory with the corpus and the large session, made of hard links."""
    made = folder / "explorer-config"
    if not made.exists():
        shutil.copytree(corpus / ".claude", made, copy_function=os.link)
        project = made / "projects" / "-home-ada-big"
        project.mkdir(parents=True)
        own = BIG.encode()
        with big.open("rb") as source, (project / f"{BIG}.jsonl").open("wb") as out:
            for line in source:
                out.write(line.replace(line[line.find(b'"sessionId":"') + 13 :][:36], own, 1))
    return made


@contextlib.contextmanager
def served(command: list[str], env: Mapping[str, str], log: Path) -> "Generator[subprocess.Popen[bytes]]":
    """Run a server within the context."""
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=dict(env), stdout=out, stderr=subprocess.STDOUT)
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@contextlib.contextmanager
def steno(state: Path, where: Path) -> Generator[tuple[Site, int]]:
    """Serve a config directory with an updated index; yield the site and the process ID."""
    env = {**os.environ, "CLAUDE_CONFIG_DIR": str(where), "STENO_HOME": str(state / "steno")}
    env["HOME"] = str(state)
    subprocess.run([str(STENO), "sync"], env=env, check=True, capture_output=True)
    log = state / "steno.log"
    with served([str(STENO), "explore", "--no-open"], env, log) as process:
        address = _said(log, "http://")
        parts = urlsplit(address)
        connection = http.client.HTTPConnection(parts.netloc, timeout=60)
        connection.request("GET", f"{parts.path}?{parts.query}")
        cookie = (connection.getresponse().getheader("set-cookie") or "").partition(";")[0]
        connection.close()
        yield Site(address, {"cookie": cookie}), process.pid


@contextlib.contextmanager
def other(peer: Agentsview, state: Path, where: Path) -> Generator[Site]:
    """Serve the same directory with agentsview and an updated database."""
    peer.sync(state, where)
    env = peer.env(state, where) | {
        "CLAUDE_PROJECTS_DIR": str(where / "projects"),
        "AGENTSVIEW_DATA_DIR": str(state / "data"),
        "AGENTSVIEW_NO_DAEMON": "1",
        "AGENTSVIEW_TELEMETRY_ENABLED": "false",
        "AGENTSVIEW_DISABLE_UPDATE_CHECK": "1",
        "AGENTSVIEW_NO_BROWSER": "1",
    }
    log = state / "agentsview.log"
    command = [str(peer.binary), "serve", "--no-sync", "--no-browser", "--port", "0"]
    with served(command, env, log):
        yield Site(_said(log, "http://"), {})


def _said(log: Path, begin: str) -> str:
    """Wait for a URL in the output of a server."""
    for _ in range(600):
        for word in log.read_text(errors="replace").split():
            if word.startswith(begin):
                return word
        time.sleep(0.1)
    raise Failed(f"{log.name}: no address in {log.read_text(errors='replace')[-200:]!r}")


def _figures(times: list[float]) -> str:
    return f"{statistics.median(times):.0f}/{times[-1]:.0f} ms"


LIMITS = {"list": 40, "search": 120, "usage": 15, "open a session": 40, "open a session of 150 MB": 60}
"""Maximum ratio of each page to the time of a stylesheet."""
PAGES = {
    "list": (["/"], ["/api/v1/sessions?limit=50"]),
    "search": (
        ["/?q=error", "/?q=connection+reset", "/?q=retry"],
        ["/api/v1/search?q=error", "/api/v1/search?q=connection+reset", "/api/v1/search?q=retry"],
    ),
    "usage": (["/usage"], ["/api/v1/usage/summary"]),
    "open a session of 150 MB": ([f"/s/{BIG}"], [f"/api/v1/sessions/{BIG}/messages?limit=1000"]),
}


def pages(ours: Site, theirs: Site | None, small: str) -> Iterator[Row]:
    """Measure every page of both servers."""
    ways = {"open a session": ([f"/s/{small}"], [f"/api/v1/sessions/{small}/messages?limit=1000"])}
    floor = statistics.median(ours.times([_stylesheet(ours)]))
    for name, (own, peers) in (PAGES | ways).items():
        what = f"explorer: {name}, p50 ÷ stylesheet"
        try:
            first, _ = ours.get(own[0])
            mine = ours.times(own)
        except Failed as problem:
            yield row(what, None, None, str(problem))
            continue
        said = f"p50/max {_figures(mine)}, first {first:.0f} ms, stylesheet {floor:.1f} ms"
        if theirs is not None:
            try:
                said += f"; agentsview {_figures(theirs.times(peers))} (JSON, not a page)"
            except Failed as problem:
                said += f"; agentsview: {problem}"
        yield row(what, statistics.median(mine) / floor, LIMITS[name], said)


def _stylesheet(ours: Site) -> str:
    """Return the URL of a file that every page needs."""
    _, page = ours.get("/")
    return page.decode().partition('rel="stylesheet" href="')[2].partition('"')[0]


def _write_turn(path: Path, turn: int) -> None:
    """Append a prompt and its answer to a session, as an agent does."""
    ids = [f"00000000-0000-4000-8000-{number:012d}" for number in range(2 * turn, 2 * turn + 3)]
    when = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime())
    said = {"role": "assistant", "model": "claude-opus-5-5", "id": f"msg_{turn}", "content": _SAID}
    messages = {"user": {"role": "user", "content": "go on"}, "assistant": said}
    with path.open("ab", buffering=0) as file:
        for place, (kind, message) in enumerate(messages.items()):
            record = {
                "parentUuid": ids[place] if turn or place else None,
                "isSidechain": False,
                "userType": "external",
                "cwd": "/home/ada/big",
                "sessionId": path.stem,
                "version": "2.1.325",
                "gitBranch": "main",
                "type": kind,
                "message": message,
                "uuid": ids[place + 1],
                "timestamp": when,
            }
            file.write(json.dumps(record).encode() + b"\n")


def streams(ours: Site, pid: int, number: int, minutes: float, live: Path) -> Row:
    """Keep streams open while a session is written, and measure the growth of the server."""
    stop = threading.Event()
    heard = [0] * number

    def listen(which: int) -> None:
        connection = http.client.HTTPConnection(ours.netloc, timeout=30)
        connection.request("GET", f"/s/{live.stem}/live", headers=dict(ours.headers))
        answer = connection.getresponse()
        while not stop.is_set():
            try:
                heard[which] += len(answer.readline())
            except TimeoutError:
                continue
        connection.close()

    threads = [threading.Thread(target=listen, args=(each,), daemon=True) for each in range(number)]
    for thread in threads:
        thread.start()
    sizes: list[float] = []
    for turn in range(1, max(20, round(minutes * 60))):
        time.sleep(1)
        _write_turn(live, turn)
        sizes.append(_resident(pid))
    stop.set()
    early = statistics.median(sizes[: max(1, len(sizes) // 4)])
    late = statistics.median(sizes[-max(1, len(sizes) // 4) :])
    detail = f"{early:.0f} MB early, {late:.0f} MB late; {number} streams, {min(heard)} to {max(heard)} bytes"
    return row(f"explorer: memory after {minutes:g} minutes of streams ÷ before", late / early, 1.1, detail)


def streamed(folder: Path, where: Path, number: int, minutes: float) -> Row:
    """Measure the memory of open live pages, using a temporary session."""
    live = where / "projects" / "-home-ada-big" / f"{LIVE}.jsonl"
    live.write_bytes(b"")
    _write_turn(live, 0)
    try:
        with (
            tempfile.TemporaryDirectory(dir=folder, prefix="state-") as state,
            steno(Path(state), where) as (ours, pid),
        ):
            return streams(ours, pid, number, minutes, live)
    finally:
        live.unlink()


def _resident(pid: int) -> float:
    pages_held = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages_held * os.sysconf("SC_PAGE_SIZE") / MB


def measured(folder: Path, corpus: Path, big: Path, *, with_peers: bool = True) -> list[Row]:
    """Return all measurements of the explorer."""
    where = config(folder, corpus, big)
    sessions = sorted((where / "projects").glob("*/*.jsonl"), key=lambda path: path.stat().st_size)
    own = [path for path in sessions if not path.name.startswith("agent-")]
    small = own[len(own) // 2].stem
    with contextlib.ExitStack() as stack:
        state = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=folder, prefix="state-")))
        ours, _ = stack.enter_context(steno(state, where))
        theirs = None
        if with_peers:
            try:
                theirs = stack.enter_context(other(agentsview(folder), state, where))
            except (Unavailable, Failed) as problem:
                print(f"agentsview: {problem}", file=sys.stderr)
        return list(pages(ours, theirs, small))


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--corpus", type=Path)
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--streams", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    corpus = options.corpus or options.data / "corpus-1000"
    if options.streams:
        where = config(options.data, corpus, options.data / "big.jsonl")
        rows = [streamed(options.data, where, options.streams, options.minutes)]
    else:
        rows = measured(options.data, corpus, options.data / "big.jsonl", with_peers=not options.no_peers)
    print(json.dumps(rows, indent=1)) if options.json else show(rows)


if __name__ == "__main__":
    main()
