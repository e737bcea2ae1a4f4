"""Collects what a package declares rather than computes, for tables of recorded answers.

File names and patterns are what other runs and other programs wrote; a default is what callers rely
on when they say nothing. They change only on purpose.
"""

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, Final, cast

import msgspec
from tests.recorded_answers import plain

__all__ = ["constants_of", "fields_of", "options_of"]

_PLAIN: Final = (str, bytes, int, float, bool, type(None))


def constants_of(package: ModuleType) -> dict[str, object]:
    """Return the names, texts and patterns that the modules of a package declare."""
    found: dict[str, object] = {}
    for name, module in _modules(package):
        constants = {
            constant: _shown(value) for constant, value in vars(module).items() if constant.lstrip("_").isupper()
        }
        constants = {key: shown for key, shown in constants.items() if _says_something(shown)}
        if constants:
            found[name] = constants
    return found


def fields_of(package: ModuleType) -> dict[str, object]:
    """Return the settings and the fields of each record of a package, with their defaults."""
    found: dict[str, object] = {}
    for name, module in _modules(package):
        for kind in vars(module).values():
            if not isinstance(kind, type) or kind.__module__ != module.__name__:
                continue
            if issubclass(kind, msgspec.Struct):
                found[f"{name}.{kind.__name__}"] = _fields(kind)
    return found


def options_of(package: ModuleType) -> dict[str, object]:
    """Return the defaults of each function and method of a package."""
    found: dict[str, object] = {}
    for name, module in _modules(package):
        for function, value in _functions(module):
            options = {
                each.name: _shown(each.default)
                for each in inspect.signature(value).parameters.values()
                if each.default is not inspect.Parameter.empty
            }
            if options:
                found[f"{name}.{function}"] = options
    return found


def _modules(package: ModuleType) -> Iterator[tuple[str, ModuleType]]:
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
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


def _fields(kind: type[msgspec.Struct]) -> dict[str, Any]:
    config = kind.__struct_config__
    found: dict[str, Any] = {}
    for field in msgspec.structs.fields(kind):
        default = field.default
        if field.default_factory is not msgspec.NODEFAULT:
            default = cast("Callable[[], Any]", field.default_factory)()
        told = "required" if default is msgspec.NODEFAULT else _shown(default)
        found[field.name if field.encode_name == field.name else f"{field.name} as {field.encode_name}"] = told  # fmt: skip
    settings = [config.frozen, config.omit_defaults, config.forbid_unknown_fields, config.array_like]
    return {"": [*settings, config.tag_field, plain(config.tag)], **found}


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
