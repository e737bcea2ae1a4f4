"""What it costs to write every session as HTML, against a program made for that.

    python bench/export.py [--mb 100] [--data FOLDER]

Both write all sessions of a generated corpus, sub-agents included, into a folder of pages, one after
the other in one run, each as often, and the cheapest counts. Ours are masked, as they are by default;
beside it stands what they cost as they are, because the other program masks nothing.
"""

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path

from measure import Failed, Run, run
from peers import Unavailable, transcripts
from table import Row, passed, row, show

STENO = Path(sys.executable).with_name("steno")
LIMIT = 0.25
TIMES = 2


def ours(corpus: Path, scratch: Path, *options: str) -> Run:
    """Write all sessions as pages; return the cheapest of a few runs."""
    env = {
        "PATH": os.defpath,
        "HOME": str(scratch),
        "CLAUDE_CONFIG_DIR": str(corpus / ".claude"),
        "STENO_HOME": str(scratch / "steno"),
    }
    out = scratch / "pages"
    command = [str(STENO), "export", "--project", "/", "-o", f"{out}/", *options]
    runs: list[Run] = []
    for _ in range(TIMES):
        shutil.rmtree(out, ignore_errors=True)
        runs.append(run(command, env))
    return min(runs, key=lambda each: each.cpu)


def measured(folder: Path, corpus: Path, *, with_peers: bool = True) -> list[Row]:
    """Return what exporting costs, against the peer where it is wanted."""
    what = "HTML of all sessions, CPU ÷ claude-code-transcripts"
    with tempfile.TemporaryDirectory(prefix="steno-export-") as made:
        scratch = Path(made)
        masked, bare = ours(corpus, scratch), ours(corpus, scratch, "--no-redact")
        cost = f"{masked.cpu:.1f} s CPU masked, {bare.cpu:.1f} s as they are"
        if not with_peers:
            return [row(what, None, LIMIT, cost)]
        try:
            peer = transcripts(folder)
            theirs = min(
                (peer.pages(scratch, corpus / ".claude", scratch / "theirs") for _ in range(TIMES)),
                key=lambda each: each.cpu,
            )
        except (Unavailable, Failed) as problem:
            return [row(what, None, LIMIT, f"{cost}; no peer: {problem}")]
        against = f"{cost}, {peer.version} {theirs.cpu:.1f} s"
        return [
            row(f"{what}, masked", masked.cpu / theirs.cpu, LIMIT, against),
            row(f"{what}, as they are", bare.cpu / theirs.cpu, LIMIT, against),
        ]


def main() -> None:
    """Measure it alone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=100, help="size of the corpus")
    parser.add_argument("--data", type=Path, help="where to keep the corpus (default: temporary)")
    options = parser.parse_args()
    from run import generated

    with tempfile.TemporaryDirectory(prefix="steno-bench-") as scratch:
        folder = options.data or Path(scratch)
        folder.mkdir(parents=True, exist_ok=True)
        rows = measured(folder, generated(folder, options.mb))
    show(rows)
    sys.exit(any(map(passed, rows)))


if __name__ == "__main__":
    main()
