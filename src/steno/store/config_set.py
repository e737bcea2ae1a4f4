"""Writes one thing down in `config.toml`; everything else in it stays as it was, letter by letter."""

import re
from typing import Any

import msgspec

from steno.errors import Unwritable
from steno.store.config import CONFIG_FILE, Config, parse_config, read_config
from steno.store.kept import write_private

__all__ = ["set_config"]


def set_config(table: str, key: str, value: str) -> Config:
    """Set a key of a table to some words; return what the file says now.

    Raises:
        BadRequest: the file is broken, or would be.
        Unreadable: it cannot be read.
        Unwritable: it cannot be written.
    """
    before = read_config()
    text = _with(before.text, table, key, value)
    # What it is to say is known: where it would say anything else, it is left alone.
    wanted = _decoded(before.text)
    held: Any = wanted.setdefault(table, {})
    held[key] = value
    after = parse_config(before.path, text)
    if _decoded(text) != wanted:
        raise Unwritable(f"{before.path} is written in a way that is left alone; set {table}.{key}")
    if text != before.text and not write_private(CONFIG_FILE, text.encode()):
        raise Unwritable(f"{before.path} cannot be written")
    return after


def _decoded(text: str) -> dict[str, Any]:
    import tomllib

    return tomllib.loads(text)


def _with(text: str, table: str, key: str, value: str) -> str:
    line = f"{key} = {msgspec.json.encode(value).decode()}"
    lines = text.split("\n")
    head = next((at for at, each in enumerate(lines) if _is_head(each, table)), None)
    if head is None:
        above = text if not text or text.endswith("\n") else f"{text}\n"
        return f"{above}{chr(10) if above else ''}[{table}]\n{line}\n"
    for at in range(head + 1, len(lines)):
        if lines[at].lstrip().startswith("["):
            break
        if re.match(rf"\s*{re.escape(key)}\s*=", lines[at]):
            lines[at] = line
            return "\n".join(lines)
    lines.insert(head + 1, line)
    return "\n".join(lines)


def _is_head(line: str, table: str) -> bool:
    return re.fullmatch(rf"\s*\[\s*{re.escape(table)}\s*\]\s*(#.*)?", line) is not None
