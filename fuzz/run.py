"""Fuzzes one target with atheris, which is guided by the coverage of new inputs.

    python -m fuzz.run lines --seconds 60

The corpus is kept under `build/fuzz/`, and failing inputs under `fuzz/regressions/`, where an ordinary test runs them
again. The exit code is 1 if an input fails. If atheris is not installed, the run is skipped with exit code 0: atheris
has no packages for Python 3.14 and newer, nor for every system.
"""

import argparse
import importlib
import os
import sys
from pathlib import Path
from typing import Final

from fuzz.targets import TARGETS

ROOT: Final = Path(__file__).resolve().parent.parent
REGRESSIONS: Final = ROOT / "fuzz" / "regressions"
_LONGEST: Final = {"lines": 8192, "decode": 4096}
_PACKAGES: Final = ("steno.format", "steno.permissions", "steno.web.render", "steno.llm.stream_decoder")


def main() -> int:
    """Fuzz a target; return 1 if an input fails."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.run", description=__doc__)
    parser.add_argument("target", choices=sorted(TARGETS))
    parser.add_argument("--seconds", type=int, default=60)
    options = parser.parse_args()
    try:
        atheris = importlib.import_module("atheris")
    except ImportError:
        print("skipped: atheris is not installed; `make fuzz` installs it where it is available")
        return 0
    with atheris.instrument_imports(include=list(_PACKAGES)):
        _load()
    kept = REGRESSIONS / options.target
    corpus = ROOT / "build" / "fuzz" / options.target
    corpus.mkdir(parents=True, exist_ok=True)
    kept.mkdir(parents=True, exist_ok=True)
    _plant(options.target, corpus)
    child = os.fork()
    if not child:
        arguments = [sys.argv[0], str(corpus), f"-max_total_time={options.seconds}"]
        arguments += [f"-artifact_prefix={kept}/", "-rss_limit_mb=3000", "-timeout=20"]
        arguments += [f"-max_len={_LONGEST.get(options.target, 1024)}", "-print_final_stats=1"]
        atheris.Setup(arguments, TARGETS[options.target])
        atheris.Fuzz()
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if not any(kept.iterdir()):
        kept.rmdir()
    return int(code != 0)


def _load() -> None:
    """Import the fuzzed modules while atheris instruments them."""
    for target in TARGETS.values():
        target(b"")


def _plant(target: str, corpus: Path) -> None:
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    from fuzz.seeds import seeds

    for number, data in enumerate(seeds(target)):
        (corpus / f"seed-{number}").write_bytes(data)


if __name__ == "__main__":
    sys.exit(main())
