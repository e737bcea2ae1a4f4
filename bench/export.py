"""What it costs to write every session as HTML, against a program made for that.

    python bench/export.py [--mb 100] [--data FOLDER]

Both write all sessions of a generated corpus, sub-agents included, into a folder of pages, by turns and
each as often; the cheapest counts. Ours are masked, as they are by default; beside it stands what they
cost as they are, because the other program masks nothing.
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
ROUNDS = 3


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
    """Return what exporting costs, against the peer where it is wanted."""
    what = "HTML of all sessions, CPU ÷ claude-code-transcripts"
    masked: list[float] = []
    bare: list[float] = []
    theirs: list[float] = []
    missing = version = ""
    with tempfile.TemporaryDirectory(prefix="steno-export-") as made:
        scratch = Path(made)
        for _ in range(ROUNDS):
            masked.append(ours(corpus, scratch).cpu)
            bare.append(ours(corpus, scratch, "--no-redact").cpu)
            if not with_peers or missing:
                continue
            try:
                peer = transcripts(folder)
                theirs.append(peer.pages(scratch, corpus / ".claude", scratch / "theirs").cpu)
                version = peer.version
            except (Unavailable, Failed) as problem:
                missing = f"; no peer: {problem}"
    cost = f"{min(masked):.1f} s CPU masked, {min(bare):.1f} s as they are"
    if not theirs:
        return [row(what, None, LIMIT, f"{cost}{missing}")]
    against = f"{cost}, {version} {min(theirs):.1f} s"
    return [
        row(f"{what}, masked", min(masked) / min(theirs), LIMIT, against),
        row(f"{what}, as they are", min(bare) / min(theirs), LIMIT, against),
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
