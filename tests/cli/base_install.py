"""Runs steno as if only its base dependencies were installed: `python base_install.py ARGUMENTS`.

Every third-party module outside of the base is hidden from the import system, exactly as if it were
not there: `find_spec` returns None and `import` raises ModuleNotFoundError. `STENO_TEST_EXTRAS` names
extras to leave in place.
"""

import os
import re
import sys
import tomllib
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import distribution, packages_distributions
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def normal(name: str) -> str:
    """Return the name of a package as registries compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def closure(requirements: Sequence[str]) -> set[str]:
    """Return the packages that some requirements bring along, by what is installed here."""
    from packaging.requirements import Requirement

    found: set[str] = set()
    waiting = [Requirement(each) for each in requirements]
    while waiting:
        one = waiting.pop()
        if normal(one.name) in found or (one.marker and not one.marker.evaluate({"extra": ""})):
            continue
        found.add(normal(one.name))
        waiting += map(Requirement, distribution(one.name).requires or ())
    return found


def base_requirements() -> list[str]:
    """Return what steno requires without any extra."""
    return list(_project()["dependencies"])


def _project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def hidden_modules(extras: Sequence[str] = ()) -> set[str]:
    """Return the top-level modules that an install with these extras would not have."""
    wanted = base_requirements()
    for extra in extras:
        wanted += _project()["optional-dependencies"][extra]
    there = {*closure(wanted), "steno", "pip"}
    return {module for module, owners in packages_distributions().items() if not there & set(map(normal, owners))}


class HidingFinder(MetaPathFinder):
    """Finds modules on the path, but for some."""

    def __init__(self, hidden: set[str]) -> None:
        self._hidden = hidden

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] in self._hidden:
            return None
        return PathFinder.find_spec(fullname, path, target)


def hide() -> None:
    """Hide what a base install does not have, from here on."""
    hidden = hidden_modules(os.environ.get("STENO_TEST_EXTRAS", "").split())
    for name in [name for name in sys.modules if name.partition(".")[0] in hidden]:
        del sys.modules[name]
    # An editable install may add a finder; what steno itself needs is on the path as well.
    sys.meta_path[:] = [each for each in sys.meta_path if each is not PathFinder]
    sys.meta_path.append(HidingFinder(hidden))


if __name__ == "__main__":
    del sys.path[0]  # this folder
    sys.path.insert(0, str(ROOT / "src"))
    hide()
    from steno.__main__ import main

    main()
