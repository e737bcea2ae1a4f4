"""Collects which tests run which lines, with the time each test takes.

As a pytest plugin (`-p tools.mutation.coverage_map`) it labels what coverage.py records with the
id of the test that runs; `collect` starts such a run and returns what it recorded.
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
    """Return where the tests of a mutant's package are."""
    return f"tests/{mutant.path.split('/')[2]}/"


@dataclass(slots=True)
class CoverageMap:
    """The tests of each line, the processor seconds of each test, and what was recorded."""

    source: str = ""
    files: dict[str, str] = field(default_factory=dict[str, str])
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    tests: dict[str, dict[int, list[str]]] = field(default_factory=dict[str, dict[int, list[str]]])

    def forget(self, files: list[str]) -> None:
        """Drop what was recorded of the tests in some files."""
        gone = tuple(f"{name}::" for name in files)
        for lines in self.tests.values():
            for line, tests in lines.items():
                lines[line] = [test for test in tests if not test.startswith(gone)]
        self.seconds = {test: seconds for test, seconds in self.seconds.items() if not test.startswith(gone)}

    def of_mutant(self, mutant: Mutant) -> set[str]:
        """Return the tests that run what is changed.

        What a module does when it is imported is run by no test of its own: there, all tests count
        that run anything of the module, and all of the package's own.
        """
        lines = self.tests.get(mutant.path, {})
        if not mutant.in_function:
            near = {test for test in self.seconds if test.startswith(near_folder(mutant))}
            return near.union(*lines.values())
        return set(lines.get(mutant.line, ())) or set(lines.get(mutant.statement, ()))


def collect(made: CoverageMap, files: list[str], source: str, environment: dict[str, str]) -> None:
    """Run some test files once, and add what each of their tests runs of a package."""
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
            sys.exit(f"the tests must pass before mutants mean anything:\n{ran.stdout[-4000:]}")
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
    """Switches the label of what is recorded from test to test."""

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
        """Record a test under its id, and the processor time that it takes.

        Processor time, its programs included: on a busy machine the time on the clock is several
        times that, and the budget of a mutant would hold only a part of the tests.
        """
        self._coverage.switch_context(item.nodeid)
        began = _processor_seconds()
        try:
            return (yield)
        finally:
            self._seconds[item.nodeid] = _processor_seconds() - began
            self._coverage.switch_context("")

    def pytest_unconfigure(self) -> None:
        """Write what was recorded."""
        self._coverage.stop()
        self._coverage.save()
        (self._records / f"seconds-{self._name}.json").write_text(json.dumps(self._seconds))


def _processor_seconds() -> float:
    """Return the processor time of this process so far, and of programs that it waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def pytest_configure(config: pytest.Config) -> None:
    """Record in every process that runs tests."""
    records = os.environ.get(_FOLDER)
    is_controller = config.getoption("numprocesses", None) and not hasattr(config, "workerinput")
    if records and not is_controller:
        config.pluginmanager.register(_Recorder(Path(records), os.environ[_SOURCE]))
