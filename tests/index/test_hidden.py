"""The index leaves out of lists what `steno ls` leaves out."""

from pathlib import Path

import pytest
from tests.builders import session
from tests.corpus import transcripts
from tests.web.sessions import written

from steno.index.database import IndexLocation, open_for_writing
from steno.index.sync.updater import sync
from steno.store.discovery import Discovery
from steno.store.summary import summarize

COMMAND = "<command-name>/init</command-name>\n<command-args></command-args>"
EXIT = "<command-name>/exit</command-name>"


def _hidden(folder: Path, root: Path) -> tuple[dict[str, bool], dict[str, bool]]:
    """Return which sessions are hidden: in lists without an index, and in the index."""
    looks = {found.path: summarize(found, 0.0).hidden for found in Discovery(str(root)).sessions()}
    home = IndexLocation(str(folder / "index"), (str(root),))
    sync(home)
    connection = open_for_writing(home.folder)
    rows = connection.execute(
        "SELECT f.path, s.hidden FROM sessions s JOIN files f ON f.id = s.file WHERE s.agent = ''"
    )
    indexed = {path: bool(hidden) for path, hidden in rows}
    connection.close()
    return looks, indexed


def test_a_command_that_the_model_answers_is_a_prompt(tmp_path: Path) -> None:
    root = tmp_path / "config"
    answered = written(session(seed="1", full=True).user(COMMAND).assistant("Done.").done(), root)
    alone = written(session(seed="2", full=True).user(EXIT), root)
    looks, indexed = _hidden(tmp_path, root)
    assert looks == indexed == {str(answered): False, str(alone): True}


def test_a_command_that_is_answered_later_is_a_prompt(tmp_path: Path) -> None:
    root = tmp_path / "config"
    made = session(seed="1", full=True).user(COMMAND)
    path = written(made, root)
    assert _hidden(tmp_path, root)[1] == {str(path): True}
    written(made.assistant("Done.").done(), root)
    assert _hidden(tmp_path, root)[1] == {str(path): False}


@pytest.mark.corpus
def test_real_sessions_are_hidden_alike(shared: Path, tmp_path: Path) -> None:
    folder = tmp_path / "config" / "projects" / "-home-ada"
    folder.mkdir(parents=True)
    for number, path in enumerate(transcripts(shared)):
        if "resume-cases" not in path.parts:
            name = f"0c9be80c-c704-4d9f-928e-{number:012}.jsonl"
            (folder / name).write_bytes(path.read_bytes())
    looks, indexed = _hidden(tmp_path, tmp_path / "config")
    different = {path for path, hidden in looks.items() if indexed.get(path, hidden) != hidden}
    assert not different
    assert len(looks) > 100
