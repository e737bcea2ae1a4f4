"""What is declared rather than computed: names, patterns, and what a field or option is when left out.

File names and patterns are what other runs and other programs wrote; a default is what callers rely
on when they say nothing. They change only on purpose.
"""

import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final, cast

import msgspec
import pytest
from tests.recorded_answers import assert_recorded, plain

import steno.store

ANSWERS: Final = Path(__file__).with_name("answers")
pytestmark: Final = pytest.mark.skipif(sys.platform != "linux", reason="the numbers of Linux")
_PLAIN: Final = (str, bytes, int, float, bool, type(None))


def _modules() -> Iterator[tuple[str, ModuleType]]:
    for module in pkgutil.walk_packages(steno.store.__path__, "steno.store."):
        yield module.name.removeprefix("steno."), importlib.import_module(module.name)


def _shown(value: Any) -> Any:
    """Return what can be recorded of a value; `...` for what is made anew by each run."""
    if isinstance(value, re.Pattern):
        pattern = cast("re.Pattern[Any]", value)
        return [plain(pattern.pattern), pattern.flags]
    if isinstance(value, tuple | list | set | frozenset):
        members = [_shown(each) for each in cast("tuple[Any, ...]", value)]
        return sorted(members, key=str) if isinstance(value, set | frozenset) else members
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return {str(name): _shown(each) for name, each in items}
    return plain(value) if isinstance(value, _PLAIN) else "..."


def _says_something(shown: Any) -> bool:
    return shown != "..." and not isinstance(shown, int | float)


def test_names_and_patterns_are_as_recorded() -> None:
    found: dict[str, object] = {}
    for name, module in _modules():
        constants = {
            constant: _shown(value)
            for constant, value in vars(module).items()
            if constant.lstrip("_").isupper()
        }
        constants = {key: shown for key, shown in constants.items() if _says_something(shown)}
        if constants:
            found[name] = constants
    assert_recorded(ANSWERS / "constants.json", found)


def _fields(kind: type[msgspec.Struct]) -> dict[str, Any]:
    config = kind.__struct_config__
    found: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        default = field.default
        if field.default_factory is not msgspec.NODEFAULT:
            default = cast("Callable[[], Any]", field.default_factory)()
        told = "required" if default is msgspec.NODEFAULT else _shown(default)
        found[field.name if field.encode_name == field.name else f"{field.name} as {field.encode_name}"] = told  # fmt: skip
    settings = [
        config.frozen,
        config.omit_defaults,
        config.forbid_unknown_fields,
        config.array_like,
    ]
    return {"": [*settings, config.tag_field, plain(config.tag)], **found}


def test_fields_that_are_left_out_are_as_recorded() -> None:
    found: dict[str, object] = {}
    for name, module in _modules():
        for kind in vars(module).values():
            if not isinstance(kind, type) or kind.__module__ != module.__name__:
                continue
            if issubclass(kind, msgspec.Struct):
                found[f"{name}.{kind.__name__}"] = _fields(kind)
    assert_recorded(ANSWERS / "fields.json", found)


def _functions(module: ModuleType) -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, value in vars(module).items():
        if getattr(value, "__module__", "") != module.__name__:
            continue
        if inspect.isfunction(value):
            yield name, value
        elif isinstance(value, type):
            for method, each in vars(cast("type[Any]", value)).items():
                function = getattr(each, "__func__", each)
                if inspect.isfunction(function) and function.__module__ == module.__name__:
                    yield f"{name}.{method}", function


def test_options_that_are_left_out_are_as_recorded() -> None:
    found: dict[str, object] = {}
    for name, module in _modules():
        for function, value in _functions(module):
            options = {
                each.name: _shown(each.default)
                for each in inspect.signature(value).parameters.values()
                if each.default is not inspect.Parameter.empty
            }
            if options:
                found[f"{name}.{function}"] = options
    assert_recorded(ANSWERS / "options.json", found)
