"""Compare two search engines, FTS5 and tantivy, on the text of a generated corpus.

    python bench/engines.py --data FOLDER [--mb 1000] [--rounds 2] [--json]

Not part of `make bench`: the measurements are those of docs/decisions/0009-the-search-engine.md. Each step runs in
a separate process, alternating between the engines.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from engine_steps import BATCH, engine
from engine_tantivy import Tantivy
from measure import MB, Run, run
from texts import CLASSES, extracted, words

STEPS = str(Path(__file__).with_name("engine_steps.py"))
BUILDS = ("fts5", "tantivy-1", "tantivy-2")
MAIN = ("fts5", "tantivy-1")
KILLS = 20
NAMES = (
    ("getUserName", "getUserName"),
    ("getUserName", "username"),
    ("getUserName", "user"),
    ("get_user_name", "get_user_name"),
    ("get_user_name", "user"),
    ("get_user_name", "getUserName"),
    ("UserName", "name"),
    ("app/auth/login.py", "app/auth/login.py"),
    ("app/auth/login.py", "login.py"),
    ("app/auth/login.py", "auth/log"),
    ("app/auth/login.py", "ogin.py"),
    ("ERR_CONN_RESET", "ERR_CONN_RESET"),
    ("ERR_CONN_RESET", "conn"),
    ("v2.1.42", "v2.1.42"),
    ("v2.1.42", "2.1.42"),
    ("v2.1.42", "v2.1"),
    ("3f2a9c81d04be7", "3f2a9c"),
    ("3f2a9c81d04be7", "81d04b"),
    ("会话记录", "会话记录"),
    ("会话记录", "会话"),
    ("会话记录", "记录"),
)


def killed(name: str, scratch: Path) -> str:
    """Kill a writer 20 times at different moments of a batch; return the state of the index afterwards."""
    folder = scratch / f"killed-{name}"
    folder.mkdir()
    done, torn, whole = set[int](), 0, 0
    start = 0
    for trial in range(KILLS):
        begun, finished = _kill(name, folder, start, trial / KILLS)
        done |= set(range(start, finished + 1))
        made = engine(name, folder)
        assert all(made.count(f"batch{each}") == BATCH for each in done), "committed text lost"
        left = made.count(f"batch{begun}")
        whole += left == BATCH
        torn += left not in {0, BATCH}
        made.close()
        done |= {begun} if left else set[int]()
        start = begun + 1
    return (
        f"opened {KILLS} of {KILLS} times, all {len(done)} committed batches complete;"
        f" interrupted batch: {whole} complete, {KILLS - whole - torn} missing, {torn} partial"
    )


def _kill(name: str, folder: Path, start: int, share: float) -> tuple[int, int]:
    """Run a writer for three batches and kill it in the fourth; return the numbers of the started and finished batch."""
    command = [sys.executable, STEPS, "go_on", name, str(folder), str(start)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        assert writer.stdout is not None
        begun, took, finished = 0.0, 0.0, start - 1
        for line in writer.stdout:
            word, number = line.split()
            if word == "done":
                took, finished = time.perf_counter() - begun, int(number)
                continue
            begun = time.perf_counter()
            if int(number) == start + 3:
                # The duration of a batch is known from those before.
                time.sleep(took * share)
                writer.send_signal(signal.SIGKILL)
                rest = writer.stdout.read()
                # The writer may have continued before the signal arrived.
                said = [int(each.split()[1]) for each in rest.splitlines() if "done" in each]
                return (start + 3 + len(said), max([finished, *said]))
    raise AssertionError("the writer exited before it was killed")


def handled(scratch: Path) -> list[list[str]]:
    """Return a table with the search methods by which each engine finds a name: word or phrase, prefix, part."""
    table = list[list[str]]()
    made = {name: scratch / f"names-{name}" for name in ("fts5", "tantivy-1", "tantivy-parts")}
    for number, (text, looked_for) in enumerate(NAMES):
        cells = list[str]()
        for name, base in made.items():
            folder = base / str(number)
            folder.mkdir(parents=True)
            one = engine(name, folder, new=True)
            one.add([(1, 1, f"see {text} here")])
            if isinstance(one, Tantivy):
                one.reload()
            ways = {
                "word": one.find("word", looked_for, "newest"),
                "prefix": one.find("prefix", looked_for, "newest"),
                "part": one.contains(looked_for, "newest"),
            }
            one.close()
            cells.append(", ".join(way for way, hits in ways.items() if hits) or "-")
        table.append([text, looked_for, *cells])
    return table


def size(folder: Path) -> float:
    """Return the size of an index in MB."""
    return sum(file.stat().st_size for file in folder.iterdir()) / MB


def step(*arguments: str | Path, memory: bool = False) -> Run:
    """Run a step in a separate process."""
    command = [sys.executable, STEPS, *map(str, arguments)]
    return run(command, os.environ, memory=memory)


def built(scratch: Path, texts: Path, rounds: int) -> dict[str, Any]:
    """Build all indexes in alternation; return the minimum of each measurement."""
    runs: dict[str, list[Run]] = {}
    for _ in range(rounds):
        runs.setdefault("read only", []).append(step("read", texts, memory=True))
        for name in BUILDS:
            runs.setdefault(name, []).append(_build(scratch / name, name, texts, 1))
        for name in ("fts5", "tantivy-1", "tantivy-parts"):
            some = scratch / f"{name}-tenth"
            runs.setdefault(f"{name}, a tenth", []).append(_build(some, name, texts, 10))
    return {
        name: {
            "cpu": min(each.cpu for each in some),
            "wall": min(each.wall for each in some),
            "caller": min(float(each.output) for each in some),
            "peak": max(each.peak for each in some),
            "size": 0 if name == "read only" else size(scratch / name.replace(", a ", "-")),
        }
        for name, some in runs.items()
    }


def _build(folder: Path, name: str, texts: Path, every: int) -> Run:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    return step("build", name, folder, texts, str(every), memory=True)


def appended(scratch: Path) -> dict[str, list[float]]:
    """Append one document five times to each index in alternation; return the minimum wall and CPU seconds."""
    taken: dict[str, list[list[float]]] = {}
    for number in range(5):
        for name in MAIN:
            done = step("append", name, scratch / name, str(number))
            taken.setdefault(name, []).append(json.loads(done.output))
    return {name: [min(each) for each in zip(*some, strict=True)] for name, some in taken.items()}


def asked(scratch: Path, texts: Path, rounds: int) -> dict[str, Any]:
    """Search both indexes in alternation; return the best latencies and the share of equal results."""
    answers: dict[str, list[dict[str, Any]]] = {name: [] for name in MAIN}
    for _ in range(rounds):
        for name in MAIN:
            answers[name].append(json.loads(step("ask", name, scratch / name, texts).output))
    taken: dict[str, dict[str, list[float]]] = {
        name: {key: [min(each["taken"][key][place] for each in some) for place in (0, 1)] for key in some[0]["taken"]}
        for name, some in answers.items()
    }
    same = dict[str, tuple[float, int]]()
    for kind in (*CLASSES, "contains"):
        found = [answers[name][0]["found"][f"newest, {kind}"] for name in MAIN]
        equal = [set(one) == set(other) for one, other in zip(*found, strict=True)]
        same[kind] = sum(equal) / len(equal), sum(map(len, found[0]))
    return {"taken": taken, "same": same}


def show(result: dict[str, Any]) -> Iterator[str]:
    """Yield the tables as Markdown."""
    yield "| build | CPU s | caller CPU s | wall s | peak MB | size MB |\n|---|---|---|---|---|---|"
    for name, each in result["built"].items():
        seconds = " | ".join(f"{each[key]:.1f}" for key in ("cpu", "caller", "wall"))
        yield f"| {name} | {seconds} | {each['peak']:.0f} | {each['size']:.0f} |"
    yield f"\n| p50 / p99 ms | {' | '.join(MAIN)} |\n|---|---|---|"
    for key in result["asked"]["taken"][MAIN[0]]:
        both = (result["asked"]["taken"][name][key] for name in MAIN)
        yield f"| {key} | " + " | ".join(f"{half:.2f} / {most:.2f}" for half, most in both) + " |"
    same = result["asked"]["same"].items()
    told = ", ".join(f"{kind} {share:.0%} of {hits} hits" for kind, (share, hits) in same)
    yield f"\nEqual newest documents: {told}\n"
    for name, (wall, cpu) in result["appended"].items():
        yield f"append to {name}: {wall * 1000:.0f} ms wall, {cpu * 1000:.0f} ms CPU"
    for name, said in result["killed"].items():
        yield f"killed, {name}: {said}"
    yield "\n| text | query | FTS5 | tantivy | tantivy, parts |\n|---|---|---|---|---|"
    for line in result["handled"]:
        yield f"| {' | '.join(line)} |"


def main() -> None:
    """Compare and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=1000, help="size of the corpus")
    parser.add_argument("--data", type=Path, required=True, help="directory for corpus and text")
    parser.add_argument("--rounds", type=int, default=2, help="number of rounds")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    from run import generated

    options.data.mkdir(parents=True, exist_ok=True)
    texts = extracted(options.data, generated(options.data, options.mb)).resolve()
    words(texts)
    with tempfile.TemporaryDirectory(dir=options.data, prefix="engines-") as place:
        scratch = Path(place).resolve()
        result = {
            "built": built(scratch, texts, options.rounds),
            "asked": asked(scratch, texts, options.rounds),
            "appended": appended(scratch),
            "killed": {name: killed(name, scratch) for name in MAIN},
            "handled": handled(scratch),
        }
    print(json.dumps(result, indent=1) if options.json else "\n".join(show(result)))


if __name__ == "__main__":
    main()
