"""Measure what is promised about speed and memory, as ratios within one run.

    python bench/run.py [--mb 1000] [--turns 5000] [--data FOLDER] [--no-peers] [--json]

The corpus comes from the generator beside the shared corpus (STENO_SHARED; it needs numpy and
orjson). The index is compared with other programs, which are installed below the folder
(bench/peers.py): seven minutes with a folder that is kept, twelve the first time. Exit code 1 when a
limit is passed.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import explorer
import export
from table import Row, passed, row, show

import agent
import console
import index

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
SHARED = Path(os.environ.get("STENO_SHARED") or ROOT.parent / "shared")
STENO = Path(sys.executable).with_name("steno")
MB = 1 << 20


def child(name: str, argument: Path) -> tuple[str, float, float]:
    """Run a measured program; return what it found, its CPU seconds and its peak memory in MB."""
    command = [sys.executable, str(HERE / "child.py"), name, str(argument)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found, seconds, megabytes = done.stdout.strip().split("\t")
    return found, float(seconds), float(megabytes)


def cpu(command: list[str], times: int, **env: str) -> float:
    """Return the least CPU seconds a command took, start and end included."""
    import resource

    least = float("inf")
    for _ in range(times):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, check=True, capture_output=True, env={**os.environ, **env})
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        least = min(least, used)
    return least


def generated(folder: Path, megabytes: int) -> Path:
    """Return a corpus of that size, made once."""
    made = folder / f"corpus-{megabytes}"
    if not (made / "truth.json").exists():
        script = SHARED / "bench" / "gen.py"
        if not script.exists():
            sys.exit(f"no generator at {script}; set STENO_SHARED")
        command = [sys.executable, str(script), "--mb", str(megabytes), "--out", str(made)]
        subprocess.run(command, check=True, stdout=sys.stderr)
    return made


def reading(corpus: Path) -> Row:
    """All records with envelope and text, against a bare typed loop."""
    rounds = [(child("bare", corpus), child("read", corpus)) for _ in range(5)]
    ratio = min(ours[1] for _, ours in rounds) / min(floor[1] for floor, _ in rounds)
    return row("read all records, CPU ÷ bare msgspec loop", ratio, 1.5, rounds[0][1][0])


def checking(corpus: Path) -> Row:
    """All files checked and judged, against a bare typed loop over the same bytes."""
    below = corpus / ".claude"
    rounds = [(child("bare", below), child("check", below)) for _ in range(3)]
    ratio = min(ours[1] for _, ours in rounds) / min(floor[1] for floor, _ in rounds)
    megabytes = max(ours[2] for _, ours in rounds)
    detail = f"{rounds[0][1][0]}, peak {megabytes:.0f} MB"
    return row("check all records, CPU ÷ bare msgspec loop", ratio, 4, detail)


def big_file(folder: Path, corpus: Path) -> Path:
    """Return a session of 150 MB, made once."""
    path = folder / "big.jsonl"
    if not path.exists():
        with path.open("wb") as out:
            for source in sorted(corpus.rglob(".claude/projects/*/*.jsonl")):
                if out.tell() >= 150 * MB:
                    break
                out.write(source.read_bytes())
    return path


def one_big_file(name: str, what: str, limit: float, path: Path) -> Row:
    """A 150 MB session opened, or checked, whole."""
    found, seconds, megabytes = child(name, path)
    detail = f"{path.stat().st_size / MB:.0f} MB, {found}, {seconds:.1f} s"
    return row(f"{what} a 150 MB session, peak MB", megabytes, limit, detail)


def few_huge_lines(folder: Path) -> Row:
    """A 150 MB session of 20 records: memory goes by the longest line, not by the file."""
    path = folder / "huge.jsonl"
    line = b'{"type":"user","uuid":"%d","parentUuid":null,"timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"%s"}}\n'
    with path.open("wb") as out:
        for number in range(20):
            out.write(line % (number, b"x" * (150 * MB // 20)))
    found, seconds, megabytes = child("check", path)
    path.unlink()
    detail = f"{found}, {seconds:.1f} s"
    return row("check 150 MB of 20 records, peak MB", megabytes, 200, detail)


def sparse_file(name: str, what: str, folder: Path) -> Row:
    """A 4 GB file that is mostly a hole: what stands before and behind it is found."""
    path = folder / "sparse.jsonl"
    line = b'{"type":"user","uuid":"%d","parentUuid":null,"timestamp":"2026-01-01T00:00:00Z","message":{"role":"user","content":"hi"}}\n'
    with path.open("wb") as out:
        out.write(line % 1)
        out.truncate(4 << 30)
        out.seek(4 << 30)
        out.write(line % 2)
    found, seconds, megabytes = child(name, path)
    path.unlink()
    assert found.startswith("2 records"), found
    return row(f"{what} a 4 GB sparse file, peak MB", megabytes, 200, f"{found}, {seconds:.1f} s")


def starting() -> Row:
    """The cheapest thing the command can be asked."""
    floor = cpu([sys.executable, "-c", "pass"], 20)
    ours = cpu([str(STENO), "--version"], 20)
    detail = f"{ours * 1000:.0f} ms against {floor * 1000:.0f} ms"
    return row("steno --version, CPU ÷ python -c pass", ours / floor, 2.5, detail)


def listing(folder: Path, corpus: Path) -> Row:
    """`steno ls` over 2,700 files."""
    home = folder / "many"
    project = home / "projects" / "-home-ada-many"
    if not project.exists():
        project.mkdir(parents=True)
        sources = sorted(corpus.rglob(".claude/projects/*/*.jsonl"))
        sources = [path for path in sources if not path.name.startswith("agent-")]
        for number in range(2700):
            source = sources[number % len(sources)]
            name = f"{number:08x}-0000-4000-8000-000000000000.jsonl"
            os.link(source, project / name) if number < len(sources) else shutil.copyfile(source, project / name)
    floor = cpu([sys.executable, "-c", "pass"], 20)
    ours = cpu([str(STENO), "ls"], 5, CLAUDE_CONFIG_DIR=str(home))
    detail = f"{ours * 1000:.0f} ms against {floor * 1000:.0f} ms"
    return row("steno ls on 2,700 files, CPU ÷ python -c pass", ours / floor, 15, detail)


def main() -> None:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=1000, help="size of the corpus")
    parser.add_argument("--turns", type=int, default=agent.TURNS, help="turns of the agent")
    parser.add_argument("--data", type=Path, help="where to keep the corpus (default: temporary)")
    parser.add_argument("--no-peers", action="store_true", help="compare with no other program")
    parser.add_argument("--json", action="store_true", help="print JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="steno-bench-") as scratch:
        os.environ.update(HOME=scratch, CLAUDE_CONFIG_DIR=f"{scratch}/.claude", STENO_HOME=scratch)
        folder = options.data or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        corpus = generated(folder, options.mb)
        big = big_file(folder, corpus)
        rows = [reading(corpus), one_big_file("load", "open", 200, big)]
        rows += [sparse_file("load", "open", folder), starting(), listing(folder, corpus)]
        rows += [checking(corpus), one_big_file("check", "check", 300, big)]
        rows += [few_huge_lines(folder), sparse_file("check", "check", folder)]
        rows += agent.measured(options.turns)
        rows += console.measured(options.turns * 2 // 5)
        rows += export.measured(folder, generated(folder, 100), with_peers=not options.no_peers)
        rows += index.measured(folder, corpus, with_peers=not options.no_peers)
        rows += explorer.measured(folder, corpus, big, with_peers=not options.no_peers)
    if options.json:
        print(json.dumps(rows, indent=1))
    else:
        show(rows)
    sys.exit(any(map(passed, rows)))


if __name__ == "__main__":
    main()
