"""Rules that the user grants when asked: for the session, or kept in a settings file.

granted = Granted(project, env)
granted.learn(("Bash(npm test:*)",), "local")       # from now on, and in .claude/settings.local.json

A settings file is somebody else's: one string is added to it, and every other byte stays.
"""

import os
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

from steno.agent.json_splice import with_item
from steno.errors import BadRequest, Busy, Unwritable
from steno.guard.rules import Layer, gather
from steno.store.beneath import Folder
from steno.store.disk import make_folder
from steno.store.lock import Lock
from steno.store.places import config_dir, steno_home

__all__ = ["Granted", "Where", "keep_rule", "settings_file"]

Where: TypeAlias = Literal["session", "local", "project", "user"]
"""Where a rule is kept, and so how long: until the end of the session, or in a settings file."""
_NAMES: Final[Mapping[Where, str]] = {"local": "settings.local.json", "project": "settings.json"}
_BOM: Final = b"\xef\xbb\xbf"
_MOST: Final = 1 << 20
_TRIES: Final = 5


class Granted:
    """The rules that were granted in a session, for all who work in it."""

    def __init__(self, project: str, env: Mapping[str, str]) -> None:
        self.rules: tuple[str, ...] = ()
        self._project = project
        self._env = env

    def learn(self, rules: tuple[str, ...], place: Where) -> None:
        """Take up rules, and keep them where that is wanted.

        Raises:
            BadRequest: one of them is no rule; none is taken up then.
            Unwritable: they hold until the end of the session, but could not be kept.
        """
        for rule in rules:
            _refuse_odd(rule, self._project)
        self.rules = tuple(dict.fromkeys((*self.rules, *rules)))
        if place != "session":
            for rule in rules:
                keep_rule(rule, place, self._project, self._env)


def settings_file(place: Where, project: str, env: Mapping[str, str]) -> str:
    """Return the settings file in which such rules are kept, with links resolved but its own.

    A project does not say by a link which other file of the user's is written.
    """
    if place == "user":
        return os.path.realpath(os.path.join(config_dir(env), "settings.json"))
    return os.path.join(os.path.realpath(project), ".claude", _NAMES[place])


def keep_rule(rule: str, place: Where, project: str, env: Mapping[str, str]) -> str:
    """Add a rule that allows to a settings file, which is made where there is none; return its path.

    Raises:
        BadRequest: it is no rule.
        Unwritable: the file cannot be written, or cannot be read as settings; it stays as it was.
    """
    _refuse_odd(rule, project)
    path = settings_file(place, project, env)
    try:
        make_folder(steno_home(env))
        with (
            Lock(os.path.join(steno_home(env), "rules.lock")),
            Folder(os.path.dirname(path), make=True) as folder,
        ):
            for _ in range(_TRIES):
                if _added(folder, os.path.basename(path), rule):
                    return path
    except (NotADirectoryError, FileExistsError) as error:
        raise Unwritable(f"{path} leads elsewhere by a link, so no rule is kept there") from error
    except ValueError as error:
        raise Unwritable(f"{path} stays as it was: {error}") from error
    except OSError as error:
        if isinstance(error, Unwritable):
            raise
        said = (error.strerror or str(error)).lower()
        raise Unwritable(f"{path} cannot be written: {said}") from error
    raise Unwritable(f"{path} is being written by somebody else")


def _added(folder: Folder, name: str, rule: str) -> bool:
    """Add a rule to a file; False when somebody else has written it meanwhile."""
    raw, status = _content(folder, name)
    bom = _BOM if raw.startswith(_BOM) else b""
    text = raw[len(bom) :].decode("utf-8")
    made = bom + with_item(text, ("permissions", "allow"), rule).encode("utf-8")
    if made == raw and status is not None:
        return True

    def unchanged() -> None:
        if _content(folder, name)[0] != raw:
            raise Busy(f"{name} was written this moment")

    try:
        folder.put(name, made, status, before=unchanged)
    except Busy:
        return False
    return True


def _content(folder: Folder, name: str) -> tuple[bytes, os.stat_result | None]:
    try:
        descriptor = folder.open(name, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        return b"", None
    with os.fdopen(descriptor, "rb") as file:
        raw = file.read(_MOST + 1)
        if len(raw) > _MOST:
            raise ValueError("it is too big")
        return raw, os.fstat(file.fileno())


def _refuse_odd(rule: str, project: str) -> None:
    problems = gather([Layer(allow=(rule,))], root=project, cwd=project, home=project).problems
    if problems or not rule.isprintable():
        raise BadRequest(f"{rule!r} is no rule that can be kept")
