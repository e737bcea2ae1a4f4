"""Every test runs alone: own home, own folder, fixed time, and never near the real sessions."""

import os
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final, TypeAlias

import pytest
from hypothesis import settings
from tests.builders import Session

NOW: Final = "2026-11-15T12:00:00Z"
_ROOT: Final = Path(__file__).resolve().parent.parent
_WATCHED: Final = frozenset(
    {
        "open",
        "os.chdir",
        "os.listdir",
        "os.mkdir",
        "os.remove",
        "os.rename",
        "os.rmdir",
        "os.scandir",
        "os.truncate",
        "os.utime",
        "sqlite3.connect",
    }
)

# A slow machine is no failure, and what one run finds is not kept in somebody's folder.
# The same examples every time, so that a run says something about the change and not about luck;
# STENO_EXPLORE=1 looks for new ones.
settings.register_profile("steno", deadline=None, database=None, derandomize=True)
settings.register_profile("explore", deadline=None, database=None, print_blob=True)
# STENO_EXAMPLES is how many new ones to look for, where a test does not say so itself.
settings.register_profile(
    "campaign", deadline=None, database=None, print_blob=True, max_examples=int(os.environ.get("STENO_EXAMPLES", "100"))
)
if os.environ.get("STENO_EXAMPLES"):
    settings.load_profile("campaign")
else:
    settings.load_profile("explore" if os.environ.get("STENO_EXPLORE") else "steno")


def _real_folders() -> tuple[str, ...]:
    """Return where this machine's own sessions lie, read before any test changes the names."""
    named = os.environ.get("CLAUDE_CONFIG_DIR", "")
    folders = [str(Path.home() / ".claude"), named and str(Path(named).absolute())]
    return tuple(folder for folder in folders if folder)


_REAL: Final = _real_folders()
_trespasses: list[str] = []


def trespass(event: str, arguments: tuple[Any, ...]) -> str:
    """Return the real folder's path that an audit event is about, or nothing."""
    if event not in _WATCHED:
        return ""
    for argument in arguments[:2]:
        if not isinstance(argument, str | bytes | os.PathLike):
            continue
        path = os.path.normpath(Path(os.fsdecode(argument)).absolute())
        for folder in _REAL:
            if path == folder or path.startswith(folder + os.sep):
                return path
    return ""


def _guard(event: str, arguments: tuple[Any, ...]) -> None:
    path = trespass(event, arguments)
    if path:
        _trespasses.append(f"{event} {path}")
        raise RuntimeError(f"a test went for the real sessions: {event} {path}")


sys.addaudithook(_guard)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail the run when anything went for the real sessions, whoever caught the error."""
    if _trespasses:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what went for the real sessions."""
    for line in _trespasses:
        terminalreporter.write_line(f"TRESPASS {line}", red=True)


@pytest.fixture(autouse=True)
def isolated(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """Give each test a home, a folder, a time and a terminal of its own."""
    home = tmp_path_factory.mktemp("home")
    for name, value in {
        "HOME": home,
        "USERPROFILE": home,
        "CLAUDE_CONFIG_DIR": home / ".claude",
        "STENO_HOME": home / "steno",
        "STENO_NOW": NOW,
        "XDG_CACHE_HOME": home / "cache",
        "XDG_CONFIG_HOME": home / "settings",
        "XDG_DATA_HOME": home / "data",
        "COLUMNS": 100,
        "LINES": 40,
        "NO_COLOR": 1,
        "TZ": "UTC",
    }.items():
        monkeypatch.setenv(name, str(value))
    for name in ("FORCE_COLOR", "CLICOLOR_FORCE", "PAGER", "TERM_PROGRAM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)
    if hasattr(time, "tzset"):
        time.tzset()
    before = len(_trespasses)
    yield
    assert _trespasses[before:] == []


@pytest.fixture(scope="session")
def shared() -> Path:
    """The corpus of real session files beside the repository; without it the test is skipped."""
    named = os.environ.get("STENO_SHARED", "")
    folder = Path(named) if named else _ROOT.parent / "shared"
    if not (folder / "corpus").is_dir():
        pytest.skip(f"shared corpus not found in {folder}; set STENO_SHARED to its folder")
    return folder


WriteConfig: TypeAlias = Callable[..., Path]


@pytest.fixture
def config() -> WriteConfig:
    """Return a function that writes built sessions into the test's configuration folder."""

    def write(*sessions: Session) -> Path:
        folder = Path(os.environ["CLAUDE_CONFIG_DIR"])
        folder.mkdir(mode=0o700, exist_ok=True)
        for made in sessions:
            for name, data in made.files().items():
                path = folder / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
                os.utime(path, (made.clock.ms / 1000, made.clock.ms / 1000))
        return folder

    return write
