"""Runs the command line inside the test, as `__main__` would."""

import json
from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec
import pytest

from steno.cli.main import run
from steno.demo.recording import DemoReport, write_demo
from steno.store.environment import demo_dir


class Ran(msgspec.Struct, frozen=True):
    """What a run left behind."""

    code: int
    data: bytes
    err: str

    @property
    def out(self) -> str:
        return self.data.decode()

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def json(self) -> Any:
        return json.loads(self.data)

    @property
    def json_lines(self) -> list[Any]:
        return [json.loads(line) for line in self.data.splitlines()]


Steno: TypeAlias = Callable[..., Ran]


@pytest.fixture
def steno(capsysbinary: pytest.CaptureFixture[bytes]) -> Steno:
    """Return a function that runs `steno` with some arguments."""

    def call(*arguments: object) -> Ran:
        capsysbinary.readouterr()
        with pytest.raises(SystemExit) as left:
            run([str(argument) for argument in arguments])
        out, err = capsysbinary.readouterr()
        return Ran(int(left.value.code or 0), out, err.decode())

    return call


@pytest.fixture
def demo() -> DemoReport:
    """Write the demo where `--demo` looks for it."""
    return write_demo(demo_dir())
