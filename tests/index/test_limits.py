"""The limits that keep memory, time and waiting bounded: they change only on purpose."""

import importlib
import pkgutil
from pathlib import Path
from typing import Any, Final, cast

from tests.recorded_answers import assert_recorded

import steno.index

ANSWERS: Final = Path(__file__).with_name("answers")
# Numbers of the system, which are not the same everywhere.
_SYSTEM: Final = (
    *("_FLAGS", "_PEEK_FLAGS", "_READ_FLAGS", "_CREATE_FLAGS", "_TRAVERSE_FLAGS", "_OPEN_FLAGS"),
    *("_CLOSE_ON_EXEC", "_NOFOLLOW", "_HAS_DIR_FD"),
)


def _is_limit(value: Any) -> bool:
    if isinstance(value, tuple | range):
        members = cast("tuple[Any, ...]", tuple(value))
        return bool(members) and all(isinstance(each, int | float | tuple) for each in members)
    return isinstance(value, int | float) and not isinstance(value, bool)


def test_every_limit_is_as_recorded() -> None:
    found: dict[str, object] = {}
    for module in pkgutil.walk_packages(steno.index.__path__, "steno.index."):
        names = vars(importlib.import_module(module.name))
        limits = {
            name: value if not isinstance(value, range) else [value.start, value.stop]
            for name, value in names.items()
            if name.lstrip("_").isupper() and name not in _SYSTEM and _is_limit(value)
        }
        if limits:
            found[module.name.removeprefix("steno.")] = limits
    assert_recorded(ANSWERS / "limits.json", found)
