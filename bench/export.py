"""Measures the cost of exporting every session as HTML, compared with claude-code-transcripts.

    python bench/export.py [--mb 100] [--data FOLDER]

Both programs write all sessions of a generated corpus, including sub-agents, into a directory of pages, in
alternation; the result is the median of the ratios, as machines vary in speed. steno masks secrets by default; it is
also measured without masking, because the other program does not mask.
"""

import argparse
import os
import shutil
import sys
import tempfile
from pathlib import Path
from statistics import median

from measure import Failed, Run, run
from peers import Unavailable, transcripts
from table import Row, passed, row, show

STENO = Path(sys.executable).with_name("steno")
LIMIT = 0.25
ROUNDS = 5


def ours(corpus: Path, scratch: Path, *options: str) -> Run:
    """Write all sessions as pages."""
    env = {
        "PATH": os.defpath,
        "HOME": str(scratch),
        "CLAUDE_CONFIG_DIR": str(corpus / ".claude"),
        "STENO_HOME": str(scratch / "steno"),
    }
    out = scratch / "pages"
    shutil.rmtree(out, ignore_errors=True)
    return run([str(STENO), "export", "--project", "/", "-o", f"{out}/", *options], env)


def measured(folder: Path, corpus: Path, *, with_peers: bool = True) -> list[Row]:
    """Return the cost of exporting, compared with the peer if requested."""
    what = "HTML of all sessions, CPU ÷ claude-code-transcripts"
    with tempfile.TemporaryDirectory(prefix="steno-export-") as made:
        scratch = Path(made)
        # The first run caches prices and templates for later runs.
        ours(corpus, scratch)
        problem = ""
        rounds: list[tuple[float, float, float]] = []
        for _ in range(ROUNDS):
            theirs = 0.0
            if with_peers and not problem:
                try:
                    theirs = _theirs(folder, corpus, scratch)
                except (Unavailable, Failed) as error:
                    problem = f"; peer not available: {error}"
            masked, bare = ours(corpus, scratch), ours(corpus, scratch, "--no-redact")
            rounds.append((masked.cpu, bare.cpu, theirs))
    masked, bare, theirs = (median(each) for each in zip(*rounds, strict=True))
    cost = f"{masked:.1f} s CPU masked, {bare:.1f} s unmasked"
    if problem or not with_peers:
        return [row(what, None, LIMIT, f"{cost}{problem}")]
    against = f"{cost}, theirs {theirs:.1f} s"
    return [
        row(f"{what}, masked", median(m / t for m, _, t in rounds), LIMIT, against),
        row(f"{what}, unmasked", median(b / t for _, b, t in rounds), LIMIT, against),
    ]


def _theirs(folder: Path, corpus: Path, scratch: Path) -> float:
    out = scratch / "theirs"
    shutil.rmtree(out, ignore_errors=True)
    return transcripts(folder).pages(scratch, corpus / ".claude", out).cpu


def main() -> None:
    """Measure the export alone."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mb", type=int, default=100, help="size of the corpus")
    parser.add_argument("--data", type=Path, help="directory for the corpus (default: temporary)")
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
