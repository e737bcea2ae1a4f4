"""Records which tests run which lines, and the time of each test.

As a pytest plugin (`-p tools.mutation.coverage_map`) it labels the data of coverage.py with the ID of the running test;
`collect` starts such a run and returns its data.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Generator
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Final

import pytest
from tools.mutation.operators import Mutant

ROOT: Final = Path(__file__).resolve().parent.parent.parent
_FOLDER: Final = "STENO_MUTATION_RECORDS"
_SOURCE: Final = "STENO_MUTATION_SOURCE"


def near_folder(mutant: Mutant) -> str:
    """Return the directory of the tests of a mutant's package."""
    return f"tests/{mutant.path.split('/')[2]}/"


@dataclass(slots=True)
class CoverageMap:
    """The tests of each line, the CPU seconds of each test, and the digests of the recorded files."""

    source: str = ""
    files: dict[str, str] = field(default_factory=dict[str, str])
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    tests: dict[str, dict[int, list[str]]] = field(default_factory=dict[str, dict[int, list[str]]])

    def forget(self, files: list[str]) -> None:
        """Drop the data of the tests in files."""
        gone = tuple(f"{name}::" for name in files)
        for lines in self.tests.values():
            for line, tests in lines.items():
                lines[line] = [test for test in tests if not test.startswith(gone)]
        self.seconds = {test: seconds for test, seconds in self.seconds.items() if not test.startswith(gone)}

    def of_mutant(self, mutant: Mutant) -> set[str]:
        """Return the tests that run a changed line.

        Code that runs on import is not assigned to a test: for such code, all tests that run any line of the module and
        all tests of the package are returned.
        """
        lines = self.tests.get(mutant.path, {})
        if not mutant.in_function:
            near = {test for test in self.seconds if test.startswith(near_folder(mutant))}
            return near.union(*lines.values())
        return set(lines.get(mutant.line, ())) or set(lines.get(mutant.statement, ()))


def collect(made: CoverageMap, files: list[str], source: str, environment: dict[str, str]) -> None:
    """Run test files once, and add the lines of a package that each test runs."""
    with tempfile.TemporaryDirectory() as records:
        command = [sys.executable, "-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider"]
        command += ["-p", "tools.mutation.coverage_map", "--no-header", "--timeout=300", *files]
        given = {_FOLDER: records, _SOURCE: str(ROOT / source)}
        ran = subprocess.run(
            command,
            cwd=ROOT,
            env={**environment, **given, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
            check=False,
        )
        if ran.returncode:
            sys.exit(f"the tests must pass before mutation testing:\n{ran.stdout[-4000:]}")
        _add(made, Path(records))


def _add(made: CoverageMap, records: Path) -> None:
    coverage = import_module("coverage")
    for times in records.glob("seconds-*.json"):
        made.seconds.update(json.loads(times.read_text()))
    for name in records.glob("lines-*"):
        data = coverage.CoverageData(str(name))
        data.read()
        for measured in data.measured_files():
            lines = made.tests.setdefault(str(Path(measured).relative_to(ROOT)), {})
            for line, contexts in data.contexts_by_lineno(measured).items():
                lines.setdefault(line, []).extend(name for name in contexts if name)


class _Recorder:
    """Labels the coverage data with the running test."""

    def __init__(self, records: Path, source: str) -> None:
        self._name = f"{os.getpid()}"
        self._records = records
        self._seconds: dict[str, float] = {}
        self._coverage = import_module("coverage").Coverage(
            data_file=str(records / f"lines-{self._name}"), source=[source], config_file=False
        )
        self._coverage.start()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Record the lines and the CPU time of a test.

        CPU time includes child processes. Wall time would be several times longer on a busy machine, and the budget of
        a mutant would include only a part of the tests.
        """
        self._coverage.switch_context(item.nodeid)
        began = _processor_seconds()
        try:
            return (yield)
        finally:
            self._seconds[item.nodeid] = _processor_seconds() - began
            self._coverage.switch_context("")

    def pytest_unconfigure(self) -> None:
        """Write the recorded data."""
        self._coverage.stop()
        self._coverage.save()
        (self._records / f"seconds-{self._name}.json").write_text(json.dumps(self._seconds))


def _processor_seconds() -> float:
    """Return the CPU time of this process so far, including child processes that it waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def pytest_configure(config: pytest.Config) -> None:
    """Record in every process that runs tests."""
    records = os.environ.get(_FOLDER)
    is_controller = config.getoption("numprocesses", None) and not hasattr(config, "workerinput")
    if records and not is_controller:
        config.pluginmanager.register(_Recorder(Path(records), os.environ[_SOURCE]))
