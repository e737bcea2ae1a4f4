"""The user's settings for steno: `config.toml` in steno's home directory, read and changed key by key.

[check] silence = ["time.backwards", "usage.*"]

[check.severity] "tools.unanswered" = "warning"

[index] roots = ["~/laptop/.claude"]

[archive] on = true level = 3

[console] theme = "plain" keys = "vi" model = "sonnet"
"""

import os
import re
from typing import Any, Final, cast

import msgspec

from steno.errors import BadRequest, Unreadable, Unwritable
from steno.store.atomic import write_private
from steno.store.discovery import Problem, peek
from steno.store.environment import CONFIG_FILE, steno_home

ARCHIVE_LEVEL: Final = 3
THEMES: Final = ("colour", "plain", "reader")
EDITING_MODES: Final = ("emacs", "vi")
CONFIG_KEYS: Final = {
    "check.silence": "list of rule IDs to silence; `family.*` matches a whole family",
    "check.severity": "table of rule IDs and their severity: error, warning or info",
    "index.roots": "list of additional directories to index, such as copies from other machines",
    "archive.on": "whether `steno sync` also archives; default false",
    "archive.level": "compression level of the archive, 1 (fast) to 19 (small); default 3",
    "usage.prices": "file with custom prices; a relative path starts at steno's home directory",
    "console.theme": "theme of the console: colour, plain or reader; set by `/theme`",
    "console.keys": "key bindings of the console's prompt: emacs or vi; set by `/vim`",
    "console.model": "model of new console sessions; set by `/model`",
}
"""All configuration keys with their descriptions."""
_MAX_CONFIG_SIZE: Final = 1 << 20
_ARCHIVE_LEVELS: Final = range(1, 20)


class Config(msgspec.Struct, frozen=True):
    """The content of the configuration file; all fields empty without one."""

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

    def line_of(self, word: str) -> int:
        """Return the number of the first line that contains a word; 1 if none does."""
        return _line_number(self.text, word)

    def error_at(self, word: str, message: str, hint: str = "") -> BadRequest:
        """Return the error about a word in the file, with its line number."""
        return BadRequest(f"{self.path}, line {self.line_of(word)}: {message}", hint=hint)


def read_config(path: str | None = None) -> Config:
    """Return the configuration; empty if the file does not exist.

    Raises:
        BadRequest: the file is not TOML or has an invalid value; the message names the line.
        Unreadable: the file exists and cannot be read.
    """
    path = os.path.join(steno_home(), CONFIG_FILE) if path is None else path
    problems: list[Problem] = []
    raw = peek(path, _MAX_CONFIG_SIZE + 1, problems)
    if raw is None:
        if all(problem.kind == "missing" for problem in problems):
            return Config(path)
        raise Unreadable(f"cannot read {path}: {problems[0].message.lower()}")
    if len(raw) > _MAX_CONFIG_SIZE:
        raise BadRequest(f"{path} is larger than {_MAX_CONFIG_SIZE >> 20} MB")
    return parse_config(path, _decode_text(path, raw))


def parse_config(path: str, text: str) -> Config:
    """Parse the text of a configuration file.

    Raises:
        BadRequest: the text is not TOML or has an invalid value; the message names the line.
    """
    return _apply_tables(Config(path, text=text), _parse_toml(path, text))


def _decode_text(path: str, raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise BadRequest(f"{path}, line {line}: not UTF-8") from error


def _parse_toml(path: str, text: str) -> dict[str, Any]:
    import tomllib

    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = re.fullmatch(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", str(error))
        line = match[2] if match and match[2] else str(text.count("\n") + 1)
        message = (match[1] if match else str(error)).lower()
        raise BadRequest(f"{path}, line {line}: {message}") from error
    except RecursionError as error:
        raise BadRequest(f"{path}, line 1: nested too deeply") from error


def _apply_tables(config: Config, tables: dict[str, Any]) -> Config:
    _refuse_unknown_keys(config, tables, ("check", "index", "archive", "usage", "console"), "")
    check = _require_table(config, "check", tables.get("check", {}))
    _refuse_unknown_keys(config, check, ("silence", "severity"), "check.")
    silence = check.get("silence", [])
    if not _is_string_list(silence):
        raise config.error_at("silence", "silence must be a list of rule IDs")
    severity = _require_table(config, "severity", check.get("severity", {}))
    for name, level in severity.items():
        if not isinstance(level, str):
            message = f"{name} must be error, warning or info"
            raise config.error_at(name, message, 'Put IDs in quotes: "tools.unanswered" = "info"')
    config = msgspec.structs.replace(config, silence=tuple(silence), severity=severity)
    config = _with_index(config, _require_table(config, "index", tables.get("index", {})))
    config = _with_archive(config, _require_table(config, "archive", tables.get("archive", {})))
    config = _with_usage(config, _require_table(config, "usage", tables.get("usage", {})))
    return _with_console(config, _require_table(config, "console", tables.get("console", {})))


def _with_index(config: Config, index: dict[str, Any]) -> Config:
    _refuse_unknown_keys(config, index, ("roots",), "index.")
    value = index.get("roots", [])
    roots = cast("list[Any]", value) if isinstance(value, list) else [None]
    if not all(isinstance(root, str) for root in roots):
        raise config.error_at("roots", "roots must be a list of directories")
    return msgspec.structs.replace(config, roots=tuple(roots))


def _with_archive(config: Config, archive: dict[str, Any]) -> Config:
    _refuse_unknown_keys(config, archive, ("on", "level"), "archive.")
    enabled, level = archive.get("on", False), archive.get("level", ARCHIVE_LEVEL)
    if not isinstance(enabled, bool):
        raise config.error_at("on", "on must be true or false")
    if isinstance(level, bool) or not isinstance(level, int) or level not in _ARCHIVE_LEVELS:
        raise config.error_at("level", f"level must be a number from 1 to {_ARCHIVE_LEVELS[-1]}")
    return msgspec.structs.replace(config, archive_on=enabled, archive_level=level)


def _with_usage(config: Config, usage: dict[str, Any]) -> Config:
    _refuse_unknown_keys(config, usage, ("prices",), "usage.")
    prices = usage.get("prices", "")
    if not isinstance(prices, str):
        raise config.error_at("prices", "prices must be a file path")
    if prices:
        folder = os.path.dirname(config.path)
        prices = os.path.join(folder, os.path.expanduser(prices))
    return msgspec.structs.replace(config, prices=prices)


def _with_console(config: Config, console: dict[str, Any]) -> Config:
    _refuse_unknown_keys(config, console, ("theme", "keys", "model"), "console.")
    for name, choices in (("theme", THEMES), ("keys", EDITING_MODES), ("model", ())):
        value = console.get(name, "")
        if not isinstance(value, str) or (choices and value not in ("", *choices)):
            message = f"one of {', '.join(choices)}" if choices else "a model name"
            raise config.error_at(name, f"{name} must be {message}")
    values = {name: str(console.get(name, "")) for name in ("theme", "keys", "model")}
    return msgspec.structs.replace(config, **values)


def _require_table(config: Config, name: str, value: object) -> dict[str, Any]:
    if isinstance(value, dict):
        return cast("dict[str, Any]", value)
    raise config.error_at(name, f"{name} must be a table")


def _is_string_list(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(name, str) for name in cast("list[object]", value))


def _refuse_unknown_keys(config: Config, table: dict[str, Any], allowed: tuple[str, ...], prefix: str) -> None:
    for name in table:
        if name not in allowed:
            hint = f"Known keys: {', '.join(prefix + key for key in allowed)}"
            raise config.error_at(name, f"unknown key {prefix}{name}", hint)


def _line_number(text: str, word: str) -> int:
    for number, line in enumerate(text.split("\n"), 1):
        if re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", line.partition("#")[0]):
            return number
    return 1


def set_config(table: str, key: str, value: str) -> Config:
    """Set a key of a table to a string and return the new configuration.

    Raises:
        BadRequest: the file is invalid, or would be after the change.
        Unreadable: the file cannot be read.
        Unwritable: the file cannot be written.
    """
    before = read_config()
    text = _set_key(before.text, table, key, value)
    # The expected result is known; if the edited text would parse to anything else, the file is not changed.
    expected = _decode_toml(before.text)
    section: Any = expected.setdefault(table, {})
    section[key] = value
    after = parse_config(before.path, text)
    if _decode_toml(text) != expected:
        raise Unwritable(f"cannot edit {before.path} automatically; set {table}.{key} by hand")
    if text != before.text and not write_private(CONFIG_FILE, text.encode()):
        raise Unwritable(f"cannot write {before.path}")
    return after


def _decode_toml(text: str) -> dict[str, Any]:
    import tomllib

    return tomllib.loads(text)


# Not tomlkit: it would rewrite 11 of the 17 files in the tests differently, including files that are refused here
# because the key is dotted or in an inline table, and it would be a dependency for setting one key.
def _set_key(text: str, table: str, key: str, value: str) -> str:
    line = f"{key} = {msgspec.json.encode(value).decode()}"
    lines = text.split("\n")
    header_index = next((index for index, candidate in enumerate(lines) if _is_table_header(candidate, table)), None)
    if header_index is None:
        prefix = text if not text or text.endswith("\n") else f"{text}\n"
        return f"{prefix}{chr(10) if prefix else ''}[{table}]\n{line}\n"
    for at in range(header_index + 1, len(lines)):
        if lines[at].lstrip().startswith("["):
            break
        if re.match(rf"\s*{re.escape(key)}\s*=", lines[at]):
            lines[at] = line
            return "\n".join(lines)
    lines.insert(header_index + 1, line)
    return "\n".join(lines)


def _is_table_header(line: str, table: str) -> bool:
    return re.fullmatch(rf"\s*\[\s*{re.escape(table)}\s*\]\s*(#.*)?", line) is not None
