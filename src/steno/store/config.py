"""What people set down for steno: `config.toml` in steno's own folder.

[check]
silence = ["time.backwards", "usage.*"]

[check.severity]
"tools.unanswered" = "warning"

[index]
roots = ["~/laptop/.claude"]

[archive]
on = true
level = 3

[console]
theme = "plain"
keys = "vi"
model = "sonnet"
"""

import os
import re
from typing import Any, Final, cast

import msgspec

from steno.errors import BadRequest, Unreadable
from steno.store.found import Problem, peek
from steno.store.places import steno_home

__all__ = [
    "ARCHIVE_LEVEL",
    "CONFIG_FILE",
    "EDITING",
    "KEYS",
    "THEMES",
    "Config",
    "parse_config",
    "read_config",
]

CONFIG_FILE: Final = "config.toml"
ARCHIVE_LEVEL: Final = 3
THEMES: Final = ("colour", "plain", "reader")
EDITING: Final = ("emacs", "vi")
KEYS: Final = {
    "check.silence": "a list of rule ids that say nothing; `family.*` is all of a family",
    "check.severity": "a table of rule ids and what they weigh: error, warning or info",
    "index.roots": "a list of folders to index beside the client's own: other machines' copies",
    "archive.on": "true to have every `steno sync` also archive; false without it",
    "archive.level": "how hard the archive packs, 1 (fast) to 19 (small); 3 without it",
    "usage.prices": "a file with prices of your own, in this folder or by its path",
    "console.theme": "how the console looks: colour, plain or reader; `/theme` writes it",
    "console.keys": "the keys of the console's prompt: emacs or vi; `/vim` writes it",
    "console.model": "the model that new sessions of the console ask; `/model` writes it",
}
"""Every key there is, and what it holds."""
_MOST: Final = 1 << 20
_LEVELS: Final = range(1, 20)


class Config(msgspec.Struct, frozen=True):
    """What the file says; all of it empty where there is no file."""

    path: str = ""
    silence: tuple[str, ...] = ()
    severity: dict[str, str] = {}
    text: str = ""
    roots: tuple[str, ...] = ()
    archive_on: bool = False
    archive_level: int = ARCHIVE_LEVEL
    prices: str = ""
    theme: str = ""
    keys: str = ""
    model: str = ""

    def line(self, word: str) -> int:
        """Return the first line that a word stands in, counted from one; 1 when it does not."""
        return _line(self.text, word)

    def complaint(self, word: str, about: str, hint: str = "") -> BadRequest:
        """Return the error about a word of the file, with its line."""
        return BadRequest(f"{self.path}, line {self.line(word)}: {about}", hint=hint)


def read_config(path: str | None = None) -> Config:
    """Return what the config file says; no file says nothing.

    Raises:
        BadRequest: it is not TOML, or says something that means nothing; the line is named.
        Unreadable: it is there and cannot be read.
    """
    path = os.path.join(steno_home(), CONFIG_FILE) if path is None else path
    problems: list[Problem] = []
    raw = peek(path, _MOST + 1, problems)
    if raw is None:
        if all(problem.kind == "missing" for problem in problems):
            return Config(path)
        raise Unreadable(f"cannot read {path}: {problems[0].message.lower()}")
    if len(raw) > _MOST:
        raise BadRequest(f"{path} is too big for a config file")
    return parse_config(path, _text(path, raw))


def parse_config(path: str, text: str) -> Config:
    """Return what a config file says whose text this is.

    Raises:
        BadRequest: it is not TOML, or says something that means nothing; the line is named.
    """
    return _config(Config(path, text=text), _parsed(path, text))


def _text(path: str, raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise BadRequest(f"{path}, line {line}: not UTF-8") from error


def _parsed(path: str, text: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        said = re.fullmatch(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", str(error))
        line = said[2] if said and said[2] else str(text.count("\n") + 1)
        about = (said[1] if said else str(error)).lower()
        raise BadRequest(f"{path}, line {line}: {about}") from error
    except RecursionError as error:
        raise BadRequest(f"{path}, line 1: lists inside lists without end") from error


def _config(config: Config, top: dict[str, Any]) -> Config:
    _refuse_others(config, top, ("check", "index", "archive", "usage", "console"), "")
    check = _table(config, "check", top.get("check", {}))
    _refuse_others(config, check, ("silence", "severity"), "check.")
    silence = check.get("silence", [])
    if not _is_names(silence):
        raise config.complaint("silence", "silence must be a list of rule ids")
    severity = _table(config, "severity", check.get("severity", {}))
    for name, level in severity.items():
        if not isinstance(level, str):
            about = f"{name} must be error, warning or info"
            raise config.complaint(name, about, 'ids stand in quotes: "tools.unanswered" = "info"')
    config = msgspec.structs.replace(config, silence=tuple(silence), severity=severity)
    config = _with_index(config, _table(config, "index", top.get("index", {})))
    config = _with_archive(config, _table(config, "archive", top.get("archive", {})))
    config = _with_usage(config, _table(config, "usage", top.get("usage", {})))
    return _with_console(config, _table(config, "console", top.get("console", {})))


def _with_index(config: Config, index: dict[str, Any]) -> Config:
    _refuse_others(config, index, ("roots",), "index.")
    given = index.get("roots", [])
    roots = cast("list[Any]", given) if isinstance(given, list) else [None]
    if not all(isinstance(each, str) for each in roots):
        raise config.complaint("roots", "roots must be a list of folders")
    return msgspec.structs.replace(config, roots=tuple(roots))


def _with_archive(config: Config, archive: dict[str, Any]) -> Config:
    _refuse_others(config, archive, ("on", "level"), "archive.")
    wanted, level = archive.get("on", False), archive.get("level", ARCHIVE_LEVEL)
    if not isinstance(wanted, bool):
        raise config.complaint("on", "on must be true or false")
    if isinstance(level, bool) or not isinstance(level, int) or level not in _LEVELS:
        raise config.complaint("level", f"level must be a number from 1 to {_LEVELS[-1]}")
    return msgspec.structs.replace(config, archive_on=wanted, archive_level=level)


def _with_usage(config: Config, usage: dict[str, Any]) -> Config:
    _refuse_others(config, usage, ("prices",), "usage.")
    prices = usage.get("prices", "")
    if not isinstance(prices, str):
        raise config.complaint("prices", "prices must be the name of a file")
    if prices:
        folder = os.path.dirname(config.path)
        prices = os.path.join(folder, os.path.expanduser(prices))
    return msgspec.structs.replace(config, prices=prices)


def _with_console(config: Config, console: dict[str, Any]) -> Config:
    _refuse_others(config, console, ("theme", "keys", "model"), "console.")
    for name, known in (("theme", THEMES), ("keys", EDITING), ("model", ())):
        value = console.get(name, "")
        if not isinstance(value, str) or (known and value not in ("", *known)):
            about = f"one of {', '.join(known)}" if known else "the name of a model"
            raise config.complaint(name, f"{name} must be {about}")
    said = {name: str(console.get(name, "")) for name in ("theme", "keys", "model")}
    return msgspec.structs.replace(config, **said)


def _table(config: Config, name: str, value: object) -> dict[str, Any]:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)
    raise config.complaint(name, f"{name} must be a table")


def _is_names(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(each, str) for each in cast("list[object]", value)
    )


def _refuse_others(config: Config, table: dict[str, Any], known: tuple[str, ...], at: str) -> None:
    for name in table:
        if name not in known:
            hint = f"there is {', '.join(at + each for each in known)}"
            raise config.complaint(name, f"{at}{name} means nothing", hint)


def _line(text: str, word: str) -> int:
    for number, line in enumerate(text.split("\n"), 1):
        if re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", line.partition("#")[0]):
            return number
    return 1
