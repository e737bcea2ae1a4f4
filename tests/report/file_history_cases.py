"""Sessions that touch one file, and the file's history from them."""

from pathlib import Path

from tests.builders import Session, tool

from steno.format.source import BytesSource
from steno.index.database import IndexLocation
from steno.index.sync.updater import sync
from steno.report.file_history.file_versions import History
from steno.report.file_history.history import history
from steno.session.transcript import Transcript, load
from steno.web.state.app_state import AppState

PATH = "/home/ada/tidegauge/notes.txt"


def history_of(folder: Path, root: Path, path: str = PATH) -> History:
    """Index a root and return what is known of a file."""
    home = IndexLocation(str(folder / "index"), (str(root),))
    sync(home)
    house = AppState(home)
    try:
        with house.index() as index:
            found = history(index.connection, path, house.session_cache.open)
    finally:
        house.close()
    assert found is not None
    return found


def told(found: History) -> list[tuple[str, str, str | None]]:
    """Return what happened to a file: verbs, how each is known, texts."""
    return [(each.verb, each.known, each.text) for each in found.versions]


def transcript_of(made: Session) -> Transcript:
    """Return the main transcript of a session."""
    return load(BytesSource(made.bytes()))


def write(made: Session, content: str) -> Session:
    """Let a session write the file."""
    return made.assistant(tool("Write", file_path=PATH, content=content)).result()


def edit(made: Session, old: str, new: str, *, every: bool = False) -> Session:
    """Let it edit the file."""
    call = tool("Edit", file_path=PATH, old_string=old, new_string=new, replace_all=every)
    return made.assistant(call).result()


def read(made: Session) -> Session:
    """Let it read the file."""
    return made.assistant(tool("Read", file_path=PATH)).result()


def command(made: Session, words: str) -> Session:
    """Let it run a command."""
    return made.assistant(tool("Bash", command=words)).result("")
