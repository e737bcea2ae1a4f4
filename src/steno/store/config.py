"""What people set down for steno: `config.toml` in steno's own folder.

[check]
silence = ["time.backwards", "usage.*"]

[check.severity]
"tools.unanswered" = "warning"
"""

import os
import re
from typing import Any, Final, cast

import msgspec

from steno.errors import BadRequest, Unreadable
from steno.store.found import Problem, peek
from steno.store.places import steno_home

__all__ = ["CONFIG_FILE", "KEYS", "Config", "read_config"]

CONFIG_FILE: Final = "config.toml"
KEYS: Final = {
    "check.silence": "a list of rule ids that say nothing; `family.*` is all of a family",
    "check.severity": "a table of rule ids and what they weigh: error, warning or info",
}
"""Every key there is, and what it holds."""
_MOST: Final = 1 << 20


class Config(msgspec.Struct, frozen=True):
    """What the file says; all of it empty where there is no file."""

    path: str = ""
    silence: tuple[str, ...] = ()
    severity: dict[str, str] = {}
    text: str = ""

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
    text = _text(path, raw)
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
    _refuse_others(config, top, ("check",), "")
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
    return msgspec.structs.replace(config, silence=tuple(silence), severity=severity)


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
