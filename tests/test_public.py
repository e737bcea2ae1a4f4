"""The public surface is what it says it is."""

import ast
import doctest
import subprocess
import sys
from pathlib import Path

import steno

STUB = Path(steno.__file__).with_suffix(".pyi")


def stubbed() -> tuple[list[str], set[str]]:
    """Return the names the stub lists, and those it imports."""
    listed: list[str] = []
    imported: set[str] = set()
    for node in ast.parse(STUB.read_text()).body:
        if isinstance(node, ast.ImportFrom):
            imported.update(name.asname or name.name for name in node.names)
        elif isinstance(node, ast.Assign):
            listed = ast.literal_eval(node.value)
    return listed, imported


def test_all_names_are_sorted_and_there() -> None:
    assert steno.__all__ == sorted(steno.__all__)
    assert all(getattr(steno, name) is not None for name in steno.__all__)
    assert set(steno.__all__) <= set(dir(steno))


def test_types_and_run_time_agree() -> None:
    listed, imported = stubbed()
    assert listed == steno.__all__
    assert imported == set(steno.__all__)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    assert not hasattr(steno, "explode")


def test_importing_costs_nothing() -> None:
    code = "import sys, steno; print(steno.__version__, *sys.modules)"
    source = str(Path(steno.__file__).parent.parent)
    ran = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {source!r})\n{code}"],
        capture_output=True,
        text=True,
        check=True,
    )
    version, *modules = ran.stdout.split()
    assert version == steno.__version__
    assert not {"typing", "msgspec", "click", "rich", "json", "steno.errors"} & set(modules)


def test_the_examples_in_the_map_hold() -> None:
    assert doctest.testmod(steno).attempted > 5
    assert doctest.testmod(steno).failed == 0


def test_the_map_names_every_package() -> None:
    packages = {path.parent.name for path in Path(steno.__file__).parent.glob("*/__init__.py")}
    assert steno.__doc__ is not None
    assert {name for name in packages if f"\n    {name} " not in steno.__doc__} == set()
