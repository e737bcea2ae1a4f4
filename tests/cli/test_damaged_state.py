"""Every file that steno keeps, damaged in every way: no command fails for good, nothing is lost.

The files are found by running commands, so that a new kind of state file is covered as well.
"""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.cli.conftest import Steno
from tests.web.hostile_queries import App

from steno.cli.main import run
from steno.demo.recording import write_demo
from steno.index.database import locate_index
from steno.web.state.app_state import AppState

_COMMANDS: tuple[tuple[str, ...], ...] = (("ls",), ("search", "the"), ("usage",), ("sync",), ("doctor",))
_CACHES = ("index", "templates", "prices.json", "abandoned.json")
"""What can be made again; everything else is the user's."""
_LOCKS = ("lock", "sync.lock", ".tantivy-meta.lock", ".tantivy-writer.lock")
_CONFIG = "[index]\nroots = []\n"


def _flip(path: Path, place: float) -> None:
    data = bytearray(path.read_bytes())
    if data:
        data[min(len(data) - 1, int(len(data) * place))] ^= 0xFF
    path.write_bytes(data)


def _replace_by_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


_DAMAGES: dict[str, Callable[[Path], object]] = {
    "first byte": lambda path: _flip(path, 0.0),
    "early byte": lambda path: _flip(path, 0.1),
    "middle byte": lambda path: _flip(path, 0.5),
    "last byte": lambda path: _flip(path, 1.0),
    "cut": lambda path: os.truncate(path, path.stat().st_size // 2),
    "empty": lambda path: os.truncate(path, 0),
    "garbage": lambda path: path.write_bytes(b"\x00\xff garbage {[\n" * 300),
    "folder": _replace_by_folder,
    "no permission": lambda path: path.chmod(0),
}


def _make_state() -> dict[str, bytes]:
    """Run commands in a new home, and return every file they left, by its path."""
    write_demo(os.environ["CLAUDE_CONFIG_DIR"])
    home = Path(os.environ["STENO_HOME"])
    home.mkdir(parents=True)
    (home / "config.toml").write_text(_CONFIG)
    for command in (("sync",), ("usage",), ("search", "the"), ("archive",)):
        with pytest.raises(SystemExit):
            run(list(command))
    _explore()
    return {str(path.relative_to(home)): path.read_bytes() for path in sorted(home.rglob("*")) if path.is_file()}


def _explore() -> int:
    """Return the status of the first page; an index that is being made anew is waited for."""
    from steno.index.sync.updater import sync

    home = locate_index()
    sync(home)
    house = AppState(home)
    app = App(house)
    try:
        return app.get("/").status
    finally:
        app.close()
        house.close()


@pytest.fixture(scope="module")
def state(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Every file of a home in use, and the sessions of its client beside it."""
    folder = tmp_path_factory.mktemp("state")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder))
        patch.setenv("CLAUDE_CONFIG_DIR", str(folder / ".claude"))
        patch.setenv("STENO_HOME", str(folder / "steno"))
        return _make_state()


def _kinds(state: dict[str, bytes]) -> dict[str, str]:
    """Return one file of each kind: of those that differ in ids and numbers alone the first."""
    kinds: dict[str, str] = {}
    for name in state:
        kinds.setdefault(re.sub(r"[0-9a-f]{4,}|[0-9]+", "#", name), name)
    first: dict[str, str] = {}
    for kind, name in kinds.items():
        # What is packed in an archive differs in what it was called.
        is_packed = kind.startswith("archive/sessions/") and kind.endswith(".zst")
        first.setdefault("archive/packed" if is_packed else kind, name)
    return first


@pytest.mark.parametrize("damage", _DAMAGES)
def test_a_damaged_state_file_does_not_make_commands_fail(
    state: dict[str, bytes], steno: Steno, damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each file is damaged in one way; in every way by `make faults`."""
    kinds = _kinds(state)
    assert len(kinds) >= 12, kinds
    turn = list(_DAMAGES).index(damage)
    _damage_all(list(kinds.values())[turn :: len(_DAMAGES)], state, steno, damage, tmp_path, monkeypatch)


@pytest.mark.faults
@pytest.mark.timeout(900)
@pytest.mark.parametrize("damage", _DAMAGES)
def test_no_damaged_state_file_makes_a_command_fail_for_good(
    state: dict[str, bytes], steno: Steno, damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _damage_all(list(_kinds(state).values()), state, steno, damage, tmp_path, monkeypatch)


def _damage_all(
    names: list[str],
    state: dict[str, bytes],
    steno: Steno,
    damage: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / ".claude"))
    write_demo(str(tmp_path / ".claude"))
    problems: list[str] = []
    for number, name in enumerate(names):
        home = tmp_path / f"steno{number}"
        for each, data in state.items():
            (home / each).parent.mkdir(parents=True, exist_ok=True)
            (home / each).write_bytes(data)
        monkeypatch.setenv("STENO_HOME", str(home))
        # The index of other sessions lies elsewhere: make this one's the one that is damaged.
        _move_index(home)
        path = home / name if (home / name).exists() else _same_name(home, name)
        _DAMAGES[damage](path)
        left = path.read_bytes() if path.is_file() and os.access(path, os.R_OK) else None
        problems += _problems(steno, name, path, left)
        shutil.rmtree(home, ignore_errors=True)
    assert not problems, "\n".join(problems)


def _move_index(home: Path) -> None:
    (old,) = (home / "index").iterdir()
    old.rename(locate_index().folder)


def _same_name(home: Path, name: str) -> Path:
    return next(path for path in home.rglob(Path(name).name) if path.is_file())


def _problems(steno: Steno, name: str, path: Path, left: bytes | None) -> list[str]:
    """Run every command twice over a damaged file, and return what is not as it should be."""
    cache = name.startswith(_CACHES) or path.name in _LOCKS
    found: list[str] = []
    for turn in (1, 2):
        for command in _COMMANDS:
            ran = steno(*command)
            faults = [
                ("Traceback" in ran.err, "traceback"),
                ("internal error" in ran.err, "internal error"),
                (cache and ran.code > (command == ("doctor",)), f"exit {ran.code}"),
                (cache and ran.err.count("\n") > (turn == 1), "too much said"),
                (not cache and ran.code > 1 and not ran.err.strip(), "nothing said"),
            ]
            found += [
                f"{name}: {' '.join(command)} ({turn}): {what}: {ran.err.strip()}" for is_so, what in faults if is_so
            ]
    if cache and _explore() == 503:
        # A page that loads itself again: the index was set aside, and is read anew.
        steno("sync")
    if cache and (status := _explore()) != 200:
        found.append(f"{name}: explorer answers {status}")
    if not cache and left is not None and path.read_bytes() != left:
        found.append(f"{name}: changed")
    return found
