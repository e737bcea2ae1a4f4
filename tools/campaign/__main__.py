"""Runs the campaign: tests every promise at a size that fits the time, and records the figures.

    python -m tools.campaign --budget 20              all items within 20 minutes
    python -m tools.campaign --only A9,B11 --budget 5 selected items
    python -m tools.campaign --list                   list the items with their last figures

Items with the oldest figures are run first; an item for which no time is left is not run and keeps its figure.
`docs/reference/promises.md` is generated from all figures. The exit code is 1 if a promise is broken.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from fuzz.targets import TARGETS
from tools.campaign.items import FUZZ, ITEMS, Item
from tools.campaign.page import write_page
from tools.campaign.results import ROOT, Figure, load, record

_SMOKE: Final = 0.02
_BUSY: Final = 1.5
_RATE: Final = re.compile(r"stat::number_of_executed_units: (\d+)")
_PASSED: Final = re.compile(r"(\d+) passed")


def main() -> int:
    """Run the selected items and print the results."""
    options = _options()
    chosen = _chosen(options.only)
    if options.list:
        _list(chosen)
        return 0
    end = time.monotonic() + 60 * options.budget
    broken: list[str] = []
    not_run: list[str] = []
    waiting = sorted(chosen, key=lambda item: load().get(item.id, {"date": ""})["date"])
    fresh: set[str] = set()
    for number, item in enumerate(waiting, 1):
        if item.id in fresh:
            continue
        left = end - time.monotonic()
        if left <= 0:
            not_run.append(item.id)
            continue
        share = _share(item, waiting[number - 1 :], left)
        print(f"[{number}/{len(waiting)}] {item.id} {item.promise} ({share:.0f} s)", flush=True)
        figures = dict(_run(item, share))
        record(figures)
        fresh |= set(figures)
        broken += [name for name, figure in figures.items() if not figure.passed]
        for name, figure in figures.items():
            print(f"    {name}: {'' if figure.passed else 'BROKEN: '}{figure.text}", flush=True)
        if not figures:
            not_run.append(item.id)
    write_page()
    print(f"{len(fresh)} of {len(chosen)} items run, {len(broken)} broken: {_named(broken)}")
    if not_run:
        print(f"not run: {_named(not_run)}")
    return int(bool(broken))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.campaign", description=__doc__)
    parser.add_argument("--budget", type=float, default=20, help="minutes")
    parser.add_argument("--only", default="", help="comma-separated item IDs")
    parser.add_argument("--list", action="store_true", help="list the items with their figures")
    return parser.parse_args()


def _chosen(only: str) -> list[Item]:
    wanted = [name.strip() for name in only.split(",") if name.strip()]
    unknown = set(wanted) - {item.id for item in ITEMS}
    if unknown:
        sys.exit(f"unknown items: {_named(sorted(unknown))}; --list shows all items")
    return [item for item in ITEMS if not wanted or item.id in wanted]


def _list(items: list[Item]) -> None:
    known = load()
    for item in items:
        kept = known.get(item.id)
        last = f"{kept['date']}  {kept['figure']}" if kept else "never run"
        print(f"{item.id:4} {item.kind:5} {item.promise}\n          {last}")


def _named(names: list[str]) -> str:
    return ", ".join(names) or "none"


def _share(item: Item, waiting: list[Item], left: float) -> float:
    """Return the seconds for an item: fixed items are served first, the rest is divided by weight."""
    whole = sum(other.seconds for other in waiting if other.kind == "plain")
    if item.kind == "plain":
        return item.seconds
    weights = sum(other.seconds for other in waiting if other.kind != "plain")
    return min(item.seconds, max(left - whole, left / 4) * item.seconds / weights)


def _run(item: Item, seconds: float) -> Iterator[tuple[str, Figure]]:
    """Run an item and yield its figures, and those of other items that it measures."""
    if item.tests == (FUZZ,):
        yield from _fuzz(item, seconds)
        return
    tests = [name for name in item.tests if (ROOT / name.partition("::")[0]).exists()]
    if len(tests) < len(item.tests):
        print(f"    missing tests: {_named([*(set(item.tests) - set(tests))])}")
        return
    size = min(1.0, max(_SMOKE, seconds / item.seconds))
    with tempfile.TemporaryDirectory(prefix="steno-campaign-") as home:
        figures = Path(home) / "figures"
        ran = _pytest(item, tests, size, seconds, home, figures)
        yield from _judged(item, ran, figures)


def _pytest(
    item: Item, tests: list[str], size: float, seconds: float, home: str, figures: Path
) -> subprocess.CompletedProcess[str]:
    selected = "hypothesis and not interop and not faults" if item.id == "C3" else "not interop"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--no-header", "-o"]
    # On a busy machine tests are slow, which is not a failure: use a long timeout.
    command += ["timeout=900", "-m", selected, *(["-k", item.only] if item.only else []), *tests]
    command += ["-n", "2"] if item.id == "C3" else []
    environment = {
        **os.environ,
        "HOME": home,
        "CLAUDE_CONFIG_DIR": f"{home}/.claude",
        "STENO_HOME": f"{home}/steno",
        "STENO_SIZE": f"{size:.4f}",
        "STENO_SECONDS": f"{seconds:.1f}",
        "STENO_SEED": str(time.time_ns()),
        "STENO_FIGURES": str(figures),
        **{name: str(max(20, round(full * size))) for name, full in item.environment},
    }
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def _judged(item: Item, ran: subprocess.CompletedProcess[str], figures: Path) -> Iterator[tuple[str, Figure]]:
    lines = ran.stdout.rstrip().splitlines() or [""]
    if ran.returncode not in (0, 5):
        failed = [line for line in lines if line.startswith(("FAILED", "ERROR"))] or lines[-1:]
        print("\n".join(line for line in lines[-60:]))
        yield item.id, Figure(f"{len(failed)} failed: {failed[0][:200]}", passed=False)
        return
    passed = _PASSED.search(lines[-1])
    if passed is None:
        print(f"    skipped: {lines[-1]}")
        return
    texts: dict[str, list[str]] = {}
    if figures.exists():
        for line in figures.read_text(encoding="utf-8").splitlines():
            said = json.loads(line)
            texts.setdefault(said["item"], []).append(said["text"])
    texts.setdefault(item.id, [f"{int(passed[1]):,} tests passed"])
    for name, some in texts.items():
        yield name, Figure("; ".join(some) + _busy(name), passed=True)


def _busy(name: str) -> str:
    """Return a remark for time measurements on a busy machine."""
    waiting = os.getloadavg()[0] / (os.cpu_count() or 1)
    if not name.startswith("A") or waiting < _BUSY:
        return ""
    return f" (on a busy machine: {waiting:.0f} processes per core)"


def _fuzz(item: Item, seconds: float) -> Iterator[tuple[str, Figure]]:
    each = max(5, int(seconds / len(TARGETS)))
    tried: dict[str, int] = {}
    broken: list[str] = []
    for target in TARGETS:
        ran = subprocess.run(
            [sys.executable, "-m", "fuzz.run", target, "--seconds", str(each)],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        if "atheris is not installed" in ran.stdout:
            print(f"    {ran.stdout.strip()}")
            return
        rate = _RATE.search(ran.stderr)
        tried[target] = int(rate[1]) if rate else 0
        if ran.returncode:
            broken.append(target)
            print(ran.stderr[-3000:])
    said = ", ".join(f"{target} {number:,}" for target, number in tried.items())
    held = not broken
    text = f"inputs tried in {each} s each: {said}"
    yield item.id, Figure(text if held else f"broken: {_named(broken)}; {text}", passed=held)


if __name__ == "__main__":
    sys.exit(main())
