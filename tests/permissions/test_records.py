"""What the guard decides by cannot be changed once it is made."""

import pkgutil
from collections.abc import Iterator
from importlib import import_module

import msgspec

import steno.permissions
from steno.permissions.permission_rules import Decision
from steno.permissions.shell.option_effects import ToolOptions

# A count that goes down as files are looked at.
_CHANGED = {"steno.permissions.file_permissions._Budget"}
_BY_NAME = {
    "steno.permissions.sandbox.mechanisms.SandboxCommand",
    "steno.permissions.sandbox.policy.SandboxPolicy",
    "steno.permissions.sandbox.command_wrapper.WrapperPolicy",
    "steno.permissions.shell.command.Command",
}
_STRICT = {
    "steno.permissions.shell.option_effects.ToolOptions",
    "steno.permissions.shell.option_effects._GenericOptions",
    "steno.permissions.shell.option_effects._OptionTable",
}


def _records() -> Iterator[tuple[str, type[msgspec.Struct]]]:
    for module in pkgutil.walk_packages(steno.permissions.__path__, "steno.permissions."):
        for value in vars(import_module(module.name)).values():
            is_record = isinstance(value, type) and issubclass(value, msgspec.Struct)
            if is_record and value.__module__ == module.name:
                yield f"{module.name}.{value.__name__}", value


def test_records_are_frozen_and_read_strictly() -> None:
    found = {name: record.__struct_config__ for name, record in _records()}
    assert len(found) > 20
    assert {name for name, config in found.items() if not config.frozen} == _CHANGED
    assert {name for name, config in found.items() if config.forbid_unknown_fields} == _STRICT


def test_records_with_many_fields_are_made_by_name() -> None:
    by_name = {name for name, record in _records() if record.__struct_fields__ and not _takes_positions(record)}
    assert by_name == _BY_NAME


def _takes_positions(record: type[msgspec.Struct]) -> bool:
    try:
        record(*(None for _ in record.__struct_fields__))
    except TypeError as error:
        return "positional" not in str(error)
    return True


def test_a_decision_and_an_option_by_default_allow_nothing_more() -> None:
    assert msgspec.structs.asdict(Decision("ask", "why")) == {
        "verdict": "ask",
        "reason": "why",
        "rule": "",
        "paths": (),
        "offers": (),
        "isolation": "",
        "exact": False,
        "together": (),
    }
    assert msgspec.structs.asdict(ToolOptions()) == {
        **dict.fromkeys(("source", "also", "values", "ok", "paths", "settings", "subs"), ""),
        **dict.fromkeys(("module", "alone"), ""),
        **dict.fromkeys(("strict", "harmless", "bundled_first"), False),
        **{key: {} for key in ("void", "operands", "void_values", "void_subs", "sub")},
        **dict.fromkeys(("most", "script", "inner", "stdin"), 0),
        "style": "gnu",
        "short": None,
        "rest": "operands",
        "each": None,
    }
