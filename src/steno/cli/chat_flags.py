"""What the options of `steno chat` name must be there: whoever asks for something is to get it.

What lies about in folders is left out with a warning where it is broken; what was asked for by name
is not.
"""

import math
import os
from typing import TYPE_CHECKING, Final

from steno.errors import BadRequest, Unreadable

if TYPE_CHECKING:
    from steno.agent.around_files import Note
    from steno.agent.options import Options

__all__ = ["finite", "micro_dollars", "refuse_unreadable", "rules_in", "working_folder"]

_MICRO: Final = 1_000_000


def refuse_unreadable(options: "Options") -> None:
    """Let nothing start with less than was asked for.

    Raises:
        BadRequest: a file or a folder is not there, is not JSON, or a tool is not known.
    """
    _refuse_json("--settings", options.settings)
    for each in options.mcp_config:
        _refuse_json("--mcp-config", each, inner="mcpServers")
    if options.agents.strip():
        _refuse_text("--agents", options.agents)
    for folder in options.folders:
        if not os.path.isdir(os.path.join(options.cwd, os.path.expanduser(folder))):
            raise BadRequest(f"{folder} is no folder", hint="see --add-dir")
    _refuse_tools(options.tools or ())


def _refuse_json(option: str, given: str, *, inner: str = "") -> None:
    """Refuse what is neither a JSON object nor a file that holds one; nothing is fine.

    Where an `inner` key must be in it, that is an object too.
    """
    if not given.strip():
        return
    if given.lstrip().startswith("{"):
        _refuse_text(option, given, inner=inner)
        return
    from pathlib import Path

    from steno.agent.around_files import read_text

    notes: list[Note] = []
    text = read_text(Path(given), notes)
    if text is None:
        why = notes[0].message if notes else "is not there"
        raise BadRequest(f"{given} {why}", hint=f"see {option}")
    _refuse_text(option, text, given, inner=inner)


def _refuse_text(option: str, text: str, path: str = "", *, inner: str = "") -> None:
    from steno.agent.around_files import parse_json
    from steno.format.values import as_object

    notes: list[Note] = []
    found = parse_json(text, path or option, notes)
    if notes:
        raise BadRequest(str(notes[0]), hint=f"see {option}")
    if inner and as_object(found.get(inner)) is None:
        raise BadRequest(f"{path or option}: `{inner}` is no object", hint=f"see {option}")


def _refuse_tools(names: tuple[str, ...]) -> None:
    if not names:
        return
    from steno.guard.rules import tool_of
    from steno.tools.registry import own_names

    known = own_names()
    for name in names:
        # What servers will offer is not known yet.
        if not name.startswith("mcp__") and name not in known and tool_of(name) not in known:
            there = ", ".join(sorted(known))
            raise BadRequest(f"there is no tool {name}", hint=f"there are {there}")


def working_folder() -> str:
    """Return the folder that an agent works in.

    Raises:
        Unreadable: it is not there any more.
        BadRequest: its name cannot be written down.
    """
    try:
        here = os.getcwd()
    except FileNotFoundError:
        raise Unreadable("this folder is not there any more", hint="go to another one") from None
    try:
        here.encode("utf-8")
    except UnicodeEncodeError:
        # It stands on every record, and in what the model is told.
        raise BadRequest("the name of this folder is not UTF-8", hint="give it another") from None
    return here


def finite(seconds: float | None) -> float | None:
    """Return a number of seconds.

    Raises:
        BadRequest: it is no number.
    """
    if seconds is not None and not math.isfinite(seconds):
        raise BadRequest("the time is no number of seconds", hint="such as --max-time 90")
    return seconds


def micro_dollars(dollars: float | None) -> int | None:
    """Return what may be spent.

    Raises:
        BadRequest: it is no number.
    """
    if dollars is None:
        return None
    if not math.isfinite(dollars):
        raise BadRequest("the budget is no number of dollars", hint="such as --max-budget-usd 1.50")
    return round(dollars * _MICRO)


def rules_in(given: tuple[str, ...]) -> tuple[str, ...]:
    """Return rules one by one: several may stand in one argument, apart by commas or spaces."""
    found: list[str] = []
    for text in given:
        start = depth = 0
        for at, letter in enumerate(f"{text},"):
            depth += (letter == "(") - (letter == ")")
            if letter in ", " and depth <= 0:
                found.append(text[start:at].strip())
                start = at + 1
    return tuple(rule for rule in found if rule)
