"""Loads one large thing in a process of its own, and prints what it took as JSON.

python loading.py corpus FOLDER NUMBER     many sessions: sync, list, search
python loading.py file FOLDER MEGABYTES    one large session: sync, page, one line more
python loading.py line FOLDER MEGABYTES    one long line: read around it
"""

import json
import os
import resource
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.builders import session, text, tool

_WORDS = [
    "the",
    "tide",
    "gauge",
    "reads",
    "a",
    "level",
    "from",
    "the",
    "harbour",
    "sensor",
    "and",
    "stores",
    "it",
    "every",
    "hour",
]


def _made(number: int) -> bytes:
    made = session(seed=f"load {number}")
    for turn in range(6):
        words = " ".join(_WORDS[(number + turn + at) % len(_WORDS)] for at in range(120))
        made.user(f"{words} {number}").assistant(text(words), tool("Bash", command=f"ls {turn}"))
        made.result("x = 1\n" * 200).assistant(f"Done {turn} {words}").done()
    return made.bytes()


def corpus(folder: Path, number: int) -> dict[str, Any]:
    """Write sessions, sync them, and search them."""
    from tests.index.searching import Searched

    from steno.index.database import IndexLocation
    from steno.index.sync.updater import sync

    root = folder / "config"
    project = root / "projects" / "-home-ada"
    project.mkdir(parents=True)
    base = _made(1)
    old = session(seed="load 1").session_id.encode()
    size = 0
    for at in range(number):
        name = f"5f0e1d2c-0000-4000-8000-{at:012}"
        data = base.replace(old, name.encode())
        (project / f"{name}.jsonl").write_bytes(data)
        size += len(data)
    begun = time.perf_counter()
    sync(IndexLocation(str(folder / "index"), (str(root),)))
    took = time.perf_counter() - begun
    found = Searched(folder, ())
    times: list[float] = []
    for query in ("gauge", "harbour sensor", "tide -none", '"every hour"', "lev*", "ls"):
        for _ in range(20):
            begun = time.perf_counter()
            found.found(query)
            times.append(time.perf_counter() - begun)
    times.sort()
    (held,) = found.index.connection.execute("SELECT count(*) FROM sessions").fetchone()
    return {"sessions": held, "bytes": size, "seconds": took, "p95": times[len(times) * 95 // 100]}


def file(folder: Path, megabytes: int) -> dict[str, Any]:
    """Write one session, show it as a page, and let it grow by a line."""
    from tests.web.explorer import explorer

    root = folder / "config"
    project = root / "projects" / "-home-ada"
    project.mkdir(parents=True)
    made = session(seed="large").turn("first", "ok")
    path = project / f"{made.session_id}.jsonl"
    unit, records, size = made.bytes(), 0, 0
    last = made.records()[-1]["uuid"]
    with path.open("wb") as out:
        size += out.write(unit)
        line = json.loads(next(one for one in unit.splitlines() if b'"assistant"' in one))
        while size < megabytes << 20:
            uuid = f"aaaaaaaa-0000-4000-8000-{records:012}"
            kind = "user" if records % 2 == 0 else "assistant"
            message = (
                {"role": "user", "content": f"ask {records} " + "x" * 8000}
                if kind == "user"
                else {**line["message"], "id": f"msg_{records}", "content": [{"type": "text", "text": "y" * 8000}]}
            )
            record = {**line, "type": kind, "uuid": uuid, "parentUuid": last, "message": message}
            size += out.write(json.dumps(record).encode() + b"\n")
            last, records = uuid, records + 1
    begun = time.perf_counter()
    with explorer(str(folder / "index"), str(root)) as found:
        indexed = time.perf_counter() - begun
        begun = time.perf_counter()
        answer = found.get(f"/s/{made.session_id}")
        first = time.perf_counter() - begun
        with path.open("ab") as out:
            record = {**line, "uuid": "cccccccc-0000-4000-8000-000000000001", "parentUuid": last}
            out.write(json.dumps(record).encode() + b"\n")
        begun = time.perf_counter()
        found.refresh()
        more = time.perf_counter() - begun
    return {
        "status": answer.status, "bytes": size, "records": records, "seconds": indexed,
        "page": first, "more": more,
    }  # fmt: skip


def line(folder: Path, megabytes: int) -> dict[str, Any]:
    """Write a session with one long line among others, and read it."""
    from steno.format.lines import read_pieces
    from steno.format.records import Record
    from steno.store.file_source import FileSource

    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "x.jsonl"
    plain = session(seed="line").turn("one", "ok").bytes()
    with path.open("wb") as out:
        out.write(plain + b'{"type":"user","message":{"content":"')
        for _ in range(megabytes):
            out.write(b"x" * (1 << 20))
        out.write(b'"}}\n' + plain)
    begun = time.perf_counter()
    with FileSource(str(path)) as source:
        records = gaps = place = 0
        for piece in read_pieces(source):
            assert piece.offset == place
            place += piece.length
            records += isinstance(piece, Record)
            gaps += not isinstance(piece, Record)
        assert place == source.size
    return {"records": records, "gaps": gaps, "seconds": time.perf_counter() - begun}


def _most_memory() -> int:
    """Return the most memory that this program held; a figure of its parent's counts otherwise."""
    with suppress(OSError), Path("/proc/self/status").open(encoding="ascii") as file:
        for row in file:
            if row.startswith("VmHWM:"):
                return int(row.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def main() -> None:
    """Do it, and say how much memory it took."""
    act = {"corpus": corpus, "file": file, "line": line}[sys.argv[1]]
    found = act(Path(sys.argv[2]), int(sys.argv[3]))
    found["memory"] = _most_memory()
    sys.stdout.write(json.dumps(found))
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
