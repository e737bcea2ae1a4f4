"""The steps of the comparison of search engines: `python bench/engine_steps.py STEP ARGUMENTS…`."""

import json
import sys
import time
from itertools import islice
from pathlib import Path

from engine_fts5 import Fts5
from engine_tantivy import Tantivy
from texts import CLASSES, documents, percentiles, words

Engine = Fts5 | Tantivy
ORDERS = ("ranked", "newest", "last in")
BATCH = 200
PARTS = 10


def engine(name: str, folder: Path, *, new: bool = False) -> Engine:
    """Open or create an index."""
    if name == "fts5":
        return Fts5(folder, new=new)
    return Tantivy(folder, new=new, threads=1 + name.endswith("-2"), parts=name.endswith("-parts"))


def read(texts: Path) -> None:
    """Only read the documents, as the baseline of every build."""
    for _ in documents(texts):
        pass
    print(time.thread_time())


def build(name: str, folder: Path, texts: Path, step: int = 1) -> None:
    """Build an index of every `step`-th document; print the CPU seconds of the calling thread."""
    made = engine(name, folder, new=True)
    made.build(islice(documents(texts), 0, None, step))
    made.close()
    print(time.thread_time())


def ask(name: str, folder: Path, texts: Path) -> None:
    """Search for the words of all classes in all orders; print times and results."""
    made, chosen = engine(name, folder), words(texts)
    taken, found = dict[str, tuple[float, float]](), dict[str, list[list[int]]]()
    for order in ORDERS:
        for kind in CLASSES:
            key = f"{order}, {kind}"
            for each in chosen[kind][:20]:
                made.find(kind, each, order)
            taken[key], found[key] = _timed(made, kind, chosen[kind], order)
    parts = [word[1:-1] for word in chosen["mid"] if len(word) > len("abcdef")][:PARTS]
    for order in ORDERS[:2]:
        key = f"{order}, contains"
        taken[key], found[key] = _timed(made, "contains", parts, order)
    print(json.dumps({"taken": taken, "found": found}))


def _timed(made: Engine, kind: str, chosen: list[str], order: str) -> tuple[tuple[float, float], list[list[int]]]:
    times, found = list[float](), list[list[int]]()
    for each in chosen:
        begun = time.perf_counter()
        hits = made.contains(each, order) if kind == "contains" else made.find(kind, each, order)
        times.append((time.perf_counter() - begun) * 1000)
        found.append(hits)
    return percentiles(times), found


def append(name: str, folder: Path, number: int) -> None:
    """Open a built index, add one document and commit; print wall and CPU seconds."""
    wall, cpu = time.perf_counter(), time.process_time()
    made = engine(name, folder)
    made.add([(10_000_000 + number, 1, f"appended word{number} to what was there")])
    made.close()
    print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu]))


def go_on(name: str, folder: Path, start: int) -> None:
    """Add batches indefinitely; print when each one starts and is committed."""
    made = engine(name, folder, new=not start)
    filler = " ".join(f"filler{number}" for number in range(200))
    for batch in range(start, start + 1000):
        print(f"begin {batch}", flush=True)
        first = batch * BATCH
        made.add([(first + each, each, f"batch{batch} {filler}") for each in range(BATCH)])
        print(f"done {batch}", flush=True)


def main(arguments: list[str]) -> None:
    """Run one step."""
    match arguments:
        case ["read", texts]:
            read(Path(texts))
        case ["build", name, folder, texts, every]:
            build(name, Path(folder), Path(texts), int(every))
        case ["ask", name, folder, texts]:
            ask(name, Path(folder), Path(texts))
        case ["append", name, folder, number]:
            append(name, Path(folder), int(number))
        case ["go_on", name, folder, start]:
            go_on(name, Path(folder), int(start))
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main(sys.argv[1:])
