"""Measures how many small changes to a package its tests detect.

    python -m tools.mutation format --sample 60 --seed 1

A deterministic random sample of the package's mutants (see `operators`) is tested. For each mutant, the tests that run
the changed line, in the directories named in `PACKAGES`, run in order of duration until one fails. The score is the
share of mutants that made a test fail; a mutant survives if no test runs it, or if no test fails within `BUDGET`
seconds.

Why not mutmut or cosmic-ray: both start one pytest per mutant and run all given tests (mutmut restricts them only by
function), and neither can sample by seed. Here a process that has pytest and the third-party packages loaded forks for
each mutant and runs only the tests of the line, in a copy of `src` that processes started by tests import as well.

The record of which tests run a line does not include code that runs only in processes started by tests: the sandbox
helper is an isolated Python, into which coverage.py cannot be loaded. For the modules in `IN_CHILD_PROCESSES`, the
tests named there run after those of the record, in the same order and within the same budget. The helper finds the
changed copy because its launcher passes it the directory that the launcher was imported from. Isolated Pythons that
import the installed package (`python -I -m steno.permissions.sandbox.restricted_exec`) find it because the tests run
with a virtual environment of the copy as `sys.executable`.

Tests that compare with tables of recorded answers (`TABLES`) detect most changes of a package, so they run first.

Mutants without an observable effect are listed in `equivalent.toml`, each with the reason, and excluded from the
score.
"""

import argparse
import hashlib
import os
import pickle
import random
import resource
import shutil
import signal
import sys
import sysconfig
import tempfile
import time
import tomllib
import traceback
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest
from tools.campaign.results import Figure, record
from tools.mutation.coverage_map import ROOT, CoverageMap, collect, near_folder
from tools.mutation.operators import Mutant, mutants

PACKAGES: Final = {
    "format": ("format", "demo", "property/test_sessions.py", "session/test_transcript.py"),
    "session/resume": ("session", "property/test_sessions.py", "check/test_cases.py"),
    "check": (
        "check",
        "property",
        "cli/commands/maintenance/test_check.py",
        "cli/commands/maintenance/test_repair.py",
        "cli/commands/maintenance/test_doctor.py",
    ),
    "store": (
        *(
            "store",
            "agent/test_writable_session.py",
            "report/test_retention.py",
            "cli/commands/maintenance/test_archive.py",
        ),
        *("cli/commands/maintenance/test_relocate.py", "cli/commands/test_ls.py", "cli/commands/test_tail.py"),
    ),
    "index": (
        "index",
        "property/test_index.py",
        "cli/commands/test_search.py",
        "cli/commands/maintenance/test_sync.py",
    ),
    "sanitize": (
        "sanitize",
        "report/test_export_formats.py",
        "sanitize/test_markdown.py",
        "cli/commands/test_export.py",
    ),
    "permissions": ("permissions", "agent/test_confined_commands.py", "agent/test_command_sandbox.py"),
}
IN_CHILD_PROCESSES: Final = {
    "src/steno/permissions/sandbox/": ("tests/permissions/sandbox/", "tests/agent/test_confined_commands.py"),
    **dict.fromkeys(
        ("src/steno/permissions/sandbox/restricted_exec.py",),
        ("tests/permissions/test_command_wrapper.py", "tests/agent/test_command_sandbox.py"),
    ),
}
TABLES: Final = (
    "tests/permissions/test_recorded_answers.py",
    "tests/permissions/sandbox/test_seccomp.py",
    "tests/permissions/sandbox/test_syscall_numbers.py",
    *(f"tests/{name}/test_{kind}.py" for name in ("index", "store") for kind in ("declarations", "limits")),
)
BUDGET: Final = 40.0
MOST_TESTS: Final = 1500
_QUIET: Final = "ignore::pytest.PytestAssertRewriteWarning"
_MEMORY: Final = 6 * 2**30
_GENERATED: Final = b"do not edit"
_ENVIRONMENT: Final = "environment"
_SURVIVED, _KILLED, _TIMEOUT, _UNCOVERED, _ERROR = ("survived", "killed", "timeout", "uncovered", "error")
_LOADED: Final = (
    "hypothesis", "msgspec", "markdown_it", "pygments", "rich.console", "click", "zstandard",
    "tantivy", "sqlite3", "starlette.applications", "jinja2", "asyncio", "tree_sitter_bash",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Verdict:
    """Outcome of a mutant, and its duration in seconds."""

    mutant: Mutant
    outcome: str
    tests: int
    seconds: float


def main() -> int:
    """Test a sample and print the survivors."""
    options = _options()
    sources = {path: (ROOT / path).read_bytes() for path in _modules(options.package)}
    with _home() as environment:
        coverage = _coverage(options.package, environment)
        chosen = _sample(options.package, sources, options.sample, options.seed, options.only)
        verdicts = list(_try_all(chosen, coverage, sources, environment, options.processes))
    return _report(options, verdicts)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.mutation", description=__doc__)
    parser.add_argument("package", choices=sorted(PACKAGES))
    parser.add_argument("--sample", type=int, default=60, help="number of mutants to try")
    parser.add_argument("--seed", type=int, default=1, help="seed of the sample")
    parser.add_argument("--only", default="", help="only modules whose path contains this")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--record", action="store_true", help="store the score with the promises")
    parser.add_argument("--below", type=float, default=0.0, help="exit 1 below this score (0 to 1)")
    return parser.parse_args()


def _modules(package: str) -> list[str]:
    folder = ROOT / "src" / "steno" / package
    found = [path for path in sorted(folder.rglob("*.py")) if _GENERATED not in path.read_bytes()[:400]]
    return [str(path.relative_to(ROOT)) for path in found]


def _sample(package: str, sources: dict[str, bytes], size: int, seed: int, only: str) -> list[Mutant]:
    every = [mutant for path, source in sources.items() if only in path for mutant in mutants(path, source)]
    equivalent = _equivalent()
    every = [mutant for mutant in every if _key(mutant, sources[mutant.path]) not in equivalent]
    print(f"{package}: {len(every)} mutants in {len(sources)} modules, trying {min(size, len(every))}")
    return random.Random(f"{seed} {package}").sample(every, min(size, len(every)))


def _key(mutant: Mutant, source: bytes) -> tuple[str, str, str, str]:
    line = source.split(b"\n")[mutant.line - 1].decode().strip()
    return mutant.path, line, mutant.before, mutant.after


def _equivalent() -> set[tuple[str, str, str, str]]:
    listed = tomllib.loads((Path(__file__).parent / "equivalent.toml").read_text())
    return {(one["path"], one["line"], one["before"], one["after"]) for one in listed.get("mutant", [])}


@contextmanager
def _home() -> Generator[dict[str, str]]:
    """Yield the environment of the tests, with a temporary home."""
    with tempfile.TemporaryDirectory(prefix="steno-mutation-") as home:
        own = {"HOME": home, "CLAUDE_CONFIG_DIR": f"{home}/.claude", "STENO_HOME": f"{home}/steno"}
        own["STENO_SHARED"] = os.environ.get("STENO_SHARED", str(ROOT.parent / "shared"))
        yield {**os.environ, **own}


def _coverage(package: str, environment: dict[str, str]) -> CoverageMap:
    """Return which tests run which line; only changed tests are run again."""
    folders = [f"tests/{name}" for name in PACKAGES[package]]
    kept = ROOT / "build" / "mutation" / package.replace("/", "-")
    source = _digest(sorted((ROOT / "src" / "steno" / package).rglob("*.py")))
    made = pickle.loads(kept.read_bytes()) if kept.exists() else CoverageMap()
    if made.source != source:
        made = CoverageMap(source=source)
    files = {str(path.relative_to(ROOT)): _digest([path]) for path in _test_files(folders)}
    changed = [path for path, digest in files.items() if made.files.get(path) != digest]
    if changed:
        began = time.monotonic()
        made.forget(changed)
        collect(made, changed, f"src/steno/{package}/", environment)
        made.files = files
        print(f"recorded {len(changed)} test files in {time.monotonic() - began:.0f} s", flush=True)
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(pickle.dumps(made))
    return made


def _digest(files: list[Path]) -> str:
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()


def _test_files(folders: list[str]) -> Iterator[Path]:
    for name in folders:
        path = ROOT / name
        yield from sorted(path.rglob("test_*.py")) if path.is_dir() else [path]


def _try_all(
    chosen: list[Mutant], coverage: CoverageMap, sources: dict[str, bytes], environment: dict[str, str], processes: int
) -> Iterator[Verdict]:
    """Test mutants in parallel, each in a fork of this process and a copy of the source."""
    for name in _LOADED:
        __import__(name)
    os.environ.update(environment)
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.dont_write_bytecode = True
    with tempfile.TemporaryDirectory(prefix="steno-mutants-") as folder:
        # Some tests run as another user, who must be able to import the copy.
        Path(folder).chmod(0o755)
        free = [_Slot(Path(folder) / str(number)) for number in range(processes)]
        busy: dict[int, _Slot] = {}
        waiting = list(reversed(chosen))
        done = 0
        while waiting or busy:
            while waiting and free:
                mutant = waiting.pop()
                tests = _chosen(mutant, coverage)
                if not tests:
                    done += 1
                    yield _said(Verdict(mutant, _UNCOVERED, 0, 0), done, len(chosen))
                    continue
                slot = free.pop()
                expected = sum(coverage.seconds.get(test, 0) for test in tests)
                busy[slot.start(mutant, tests, sources[mutant.path], expected)] = slot
            for pid in [pid for pid, slot in busy.items() if slot.is_over(pid)]:
                slot = busy.pop(pid)
                done += 1
                yield _said(slot.verdict(), done, len(chosen))
                free.append(slot)
            time.sleep(0.02)


def _chosen(mutant: Mutant, coverage: CoverageMap) -> list[str]:
    """Return the tests for a mutant, in the order in which they run."""
    recorded = coverage.of_mutant(mutant)
    started = {
        test
        for module, tests in IN_CHILD_PROCESSES.items()
        if mutant.path.startswith(module)
        for test in coverage.seconds
        if test.startswith(tests)
    }
    near = near_folder(mutant)
    # Code that runs on import is best tested by tests that run the rest of the module.
    own = set[str]().union(*coverage.tests.get(mutant.path, {}).values())

    def rank(test: str) -> tuple[bool, bool, bool, bool, float, str]:
        return (
            test not in recorded,
            not test.startswith(TABLES),
            test not in own,
            not test.startswith(near),
            coverage.seconds.get(test, 0),
            test,
        )

    chosen: list[str] = []
    left = BUDGET
    for test in sorted(recorded | started, key=rank)[:MOST_TESTS]:
        left -= coverage.seconds.get(test, 0)
        if left < 0 and chosen:
            continue
        chosen.append(test)
    return chosen


def _said(verdict: Verdict, done: int, total: int) -> Verdict:
    if verdict.outcome not in (_KILLED, _TIMEOUT):
        mutant = verdict.mutant
        place = f"{mutant.path}:{mutant.line}"
        print(f"[{done}/{total}] {verdict.outcome} {place} {mutant.operator} ({verdict.tests} tests)")
        print(f"    - {mutant.before!r}\n    + {mutant.after!r}", flush=True)
    return verdict


class _Slot:
    """A copy of the source in which one mutant at a time is tested."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        shutil.copytree(ROOT / "src", folder / "src")
        _make_environment(folder)
        self._code = 0
        self._limit = self._began = 0.0
        self._mutant: Mutant | None = None
        self._tests = 0
        self._source = b""
        self._late = False

    def start(self, mutant: Mutant, tests: list[str], source: bytes, expected: float) -> int:
        """Apply the change and run tests in a fork; return the process ID."""
        self._mutant, self._tests, self._source = mutant, len(tests), source
        target = self._folder / mutant.path
        target.write_bytes(mutant.apply(source))
        for compiled in (target.parent / "__pycache__").glob(f"{target.stem}.*.pyc"):
            compiled.unlink()
        self._began, self._late = time.monotonic(), False
        processor = int(3 * expected + 20)
        self._limit = self._began + 6 * processor
        pid = os.fork()
        if not pid:
            _run(self._folder, tests, processor)
        return pid

    def is_over(self, pid: int) -> bool:
        """Return whether the run has ended; kill it after a time limit."""
        ended, status = os.waitpid(pid, os.WNOHANG)
        if not ended:
            if time.monotonic() > self._limit:
                self._late = True
                os.killpg(pid, signal.SIGKILL)
            return False
        # Kill the remaining processes of the tests; the group belongs to the child.
        _quietly(lambda: os.killpg(pid, signal.SIGKILL))
        self._code = os.waitstatus_to_exitcode(status)
        if self._mutant is not None:
            (self._folder / self._mutant.path).write_bytes(self._source)
        shutil.rmtree(self._folder / "base", ignore_errors=True)
        return True

    def _log(self) -> str:
        return (self._folder / "log").read_text(errors="replace")[-600:]

    def verdict(self) -> Verdict:
        """Return the verdict for the ended run."""
        if self._mutant is None:
            raise RuntimeError("no run was started")
        outcome = {0: _SURVIVED, 1: _KILLED, 2: _KILLED}.get(self._code, _ERROR)
        if self._late or self._code in (-signal.SIGXCPU, -signal.SIGKILL):
            outcome = _TIMEOUT
        elif self._code < 0:
            outcome = _KILLED
        elif outcome == _ERROR:
            print(f"pytest ended with {self._code}: {self._log()}")
        return Verdict(self._mutant, outcome, self._tests, time.monotonic() - self._began)


def _make_environment(folder: Path) -> None:
    """Create a virtual environment with the copy of the source and the packages of this environment."""
    real = Path(os.path.realpath(sys.executable))
    site = folder / _ENVIRONMENT / sysconfig.get_path("purelib").removeprefix(f"{sys.prefix}/")
    site.mkdir(parents=True)
    (site / "copy.pth").write_text(f"{folder / 'src'}\n{sysconfig.get_path('purelib')}\n")
    (folder / _ENVIRONMENT / "bin").mkdir()
    (folder / _ENVIRONMENT / "bin" / "python").symlink_to(real)
    settings = f"home = {real.parent}\ninclude-system-site-packages = false\n"
    (folder / _ENVIRONMENT / "pyvenv.cfg").write_text(settings)


def _quietly(act: Callable[[], object]) -> None:
    with suppress(ProcessLookupError):
        act()


class _Watcher:
    """Makes Hypothesis stop at the first failing example, and records tests that cannot be imported."""

    def __init__(self) -> None:
        self.broken = False

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Record a module that cannot be imported."""
        self.broken |= report.failed

    def pytest_sessionstart(self) -> None:
        """Load the profile of the tests without its shrinking phase."""
        from hypothesis import Phase, settings

        phases = [Phase.explicit, Phase.reuse, Phase.generate]
        settings.register_profile("mutation", parent=settings(), phases=phases)
        settings.load_profile("mutation")


def _run(folder: Path, tests: list[str], processor: int) -> None:
    """Run tests on the changed copy, and exit with pytest's exit code."""
    code = 70
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_CPU, (processor, processor + 5))
        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        log = os.open(folder / "log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        os.chdir(ROOT)
        os.environ["PYTHONPATH"] = f"{folder / 'src'}{os.pathsep}{ROOT}"
        sys.executable = str(folder / _ENVIRONMENT / "bin" / "python")
        watcher = _Watcher()
        command = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "--no-header", "-W", _QUIET]
        command += ["-o", f"pythonpath={ROOT} {folder / 'src'}", f"--basetemp={folder / 'base'}"]
        code = int(pytest.main([*command, *tests], plugins=[watcher]))
        code = 1 if watcher.broken else code
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(code)


def _report(options: argparse.Namespace, verdicts: list[Verdict]) -> int:
    counted = [verdict for verdict in verdicts if verdict.outcome != _ERROR]
    noticed = sum(verdict.outcome in (_KILLED, _TIMEOUT) for verdict in counted)
    low, high = wilson(noticed, len(counted))
    score = noticed / len(counted) if counted else 0.0
    figure = f"{noticed} of {len(counted)} noticed, {score:.0%} (95 % between {low:.0%} and {high:.0%})"
    print(f"{options.package}: {figure}; sample by seed {options.seed}")
    if options.record and not options.only:
        name = f"mutation {options.package}"
        record({name: Figure(f"{figure}, seed {options.seed}", score >= options.below)})
    return int(score < options.below)


def wilson(hits: int, tries: int) -> tuple[float, float]:
    """Return the 95 % Wilson interval of a share."""
    if not tries:
        return 0.0, 1.0
    z = 1.96
    share, square = hits / tries, z * z
    middle = share + square / (2 * tries)
    spread = z * ((share * (1 - share) + square / (4 * tries)) / tries) ** 0.5
    return (middle - spread) / (1 + square / tries), (middle + spread) / (1 + square / tries)


if __name__ == "__main__":
    sys.exit(main())
