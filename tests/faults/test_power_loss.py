"""After a power cut at any moment: what was promised is there, and nothing is half of two files."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.agent.loop_harness import Stage
from tests.faults.power_loss import Recording, State, crash_states
from tests.faults.test_full_disk import script

from steno.agent.loop import Agent
from steno.agent.writable_session import resume_session
from steno.check.checkup import check
from steno.errors import NotFound
from steno.format.source import BytesSource
from steno.store.archive.archive import Archive
from steno.store.atomic import TempFile, file_identity
from steno.store.discovery import discover_file
from steno.store.replace import exchange, place_new, swap, undo

SMOKE = 60
STATES = int(os.environ.get("STENO_POWER_LOSS", "500"))
"""How many power cuts `make faults` tries of each kind; a release tries 50,000."""
NAME = "5f0e1d2c-0000-4000-8000-000000000001.jsonl"
OLD = b'{"type":"user","text":"old"}\n' * 900 + b'{"type":"assis'
NEW = b'{"type":"user","text":"new"}\n' * 700
TEMPORARY = ".steno-tmp"
EXPECTED = frozenset(
    {
        "chain.dangling",
        "chain.empty",
        "chain.headless",
        "chain.unreachable",
        "line.glued",
        "line.nul-run",
        "line.spliced",
        "line.torn",
        "message.thinking-only",
        "tools.interrupted",
        "tools.orphan-result",
        "tools.unanswered",
    }
)
"""What the checker may find after a cut: records of a turn that was not over are damaged or lost."""

pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def each_state(recording: Recording, count: int, folder: Path, look: Callable[[State, Path], None]) -> None:
    """Lay out every state in a folder of its own, and look at it."""
    for number, state in enumerate(crash_states(recording, count)):
        place = folder / f"state{number}"
        place.mkdir()
        state.write(place)
        look(state, place)
        shutil.rmtree(place)


# Sessions being written


def talked(folder: Path) -> tuple[Recording, Stage]:
    """Let an agent talk; what a turn that is over has written was promised."""
    projects = folder / "config" / "projects"
    projects.mkdir(parents=True)
    stage = Stage(folder, script())

    async def talk(agent: Agent) -> None:
        with recording:
            for prompt in ("hello", "look at it", "and this", "and that"):
                assert (await agent.run_turn(prompt)).reason == "done"
                recording.acknowledge(str(len(stage.data)))

    recording = Recording(projects)
    stage.play(talk)
    stage.talk.recorder.close()
    return recording, stage


def check_talk(folder: Path, count: int) -> None:
    recording, stage = talked(folder)
    data = stage.data
    name = str(Path(stage.path).relative_to(folder / "config" / "projects"))
    found: set[str] = set()

    def look(state: State, place: Path) -> None:
        promised = data[: int(state.acknowledged or 0)]
        path = place / name
        if not path.exists():
            assert not promised, state.cut
            return
        left = path.read_bytes()
        assert left.startswith(promised), state.cut
        evidence = check(BytesSource(left), name=path.stem)
        problems = [each for each in evidence.findings if each.severity != "info"]
        bad = {each.id for each in problems}
        # Whatever is wrong is wrong behind what was promised.
        assert all(each.location.span.offset >= len(promised) for each in problems), state.cut
        if left == promised:
            assert bad == (set() if left else {"chain.empty"}), (state.cut, bad)
        found.update(bad)
        try:
            work = resume_session(str(path), stage.cwd)
        except NotFound:
            assert not promised
            return
        # What was lost of the last turn is lost; what comes now is not.
        work.conversation.add_prompt("and on")
        work.conversation.end_turn()
        work.conversation.recorder.close()
        assert path.read_bytes().startswith(left)
        again = resume_session(str(path), stage.cwd)
        assert again.conversation.messages()[-1]["content"][-1]["text"].endswith("and on")
        again.conversation.recorder.close()

    each_state(recording, count, folder, look)
    assert found <= EXPECTED, found


def test_a_session_survives_a_power_cut(tmp_path: Path) -> None:
    check_talk(tmp_path, SMOKE)


@pytest.mark.faults
@pytest.mark.timeout(3600)
def test_a_session_survives_many_power_cuts(tmp_path: Path) -> None:
    check_talk(tmp_path, STATES)


# Files that are exchanged


def recorded(operation: str, folder: Path) -> Recording:
    """Exchange a file in some way, and promise it."""
    root = folder / "sessions"
    root.mkdir()
    path = root / NAME
    if operation != "keep_new":
        path.write_bytes(OLD)
    if operation == "undo":
        with TempFile(str(path)) as scratch:
            swap(scratch.write([NEW]), str(path), file_identity(str(path)))
    recording = Recording(root)
    with recording:
        if operation == "undo":
            undo(str(path))
        else:
            seen = file_identity(str(path)) if operation != "keep_new" else None
            with TempFile(str(path)) as scratch:
                scratch.write(NEW[at : at + 8192] for at in range(0, len(NEW), 8192))
                if seen is None:
                    place_new(scratch, str(path))
                else:
                    {"swap": swap, "exchange": exchange}[operation](scratch, str(path), seen)
        recording.acknowledge("done")
    return recording


def check_exchange(operation: str, folder: Path, count: int) -> None:
    def look(state: State, place: Path) -> None:
        files = contents(place)
        there = files.get(NAME)
        kept = {data for name, data in files.items() if not name.endswith(TEMPORARY)}
        if operation == "keep_new":
            assert there in ((NEW,) if state.acknowledged else (None, NEW)), state.cut
            return
        assert there in (OLD, NEW), state.cut
        if state.acknowledged:
            assert there == (OLD if operation == "undo" else NEW), state.cut
        if operation == "exchange":
            return
        # The old file is there, whatever happened, and so is the new one once it was.
        assert OLD in kept, state.cut
        if operation == "undo":
            assert NEW in kept, state.cut
        elif there == NEW:
            undo(str(place / NAME))
            assert (place / NAME).read_bytes() == OLD, state.cut

    each_state(recorded(operation, folder), count, folder, look)


OPERATIONS = ("swap", "exchange", "undo", "keep_new")


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_exchange_is_the_old_file_or_the_new_one(tmp_path: Path, operation: str) -> None:
    check_exchange(operation, tmp_path, SMOKE)


@pytest.mark.faults
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_exchange_survives_many_power_cuts(tmp_path: Path, operation: str) -> None:
    check_exchange(operation, tmp_path, STATES)


# The archive


def check_archive(folder: Path, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    home = folder / "home"
    home.mkdir()
    monkeypatch.setenv("STENO_HOME", str(home))
    path = folder / "config" / "projects" / "-p" / NAME
    path.parent.mkdir(parents=True)
    line = b'{"type":"user","n":%07d,"x":"' + b"y" * 970 + b'"}\n'
    parts = [b"".join(line % (part * 1000 + n) for n in range(40)) for part in range(4)]
    recording = Recording(home)
    with recording:
        for part in range(len(parts)):
            path.write_bytes(b"".join(parts[: part + 1]))
            archive = Archive()
            archive.keep(discover_file(str(path)))
            archive.compact()
            recording.acknowledge(str(part + 1))

    def look(state: State, place: Path) -> None:
        monkeypatch.setenv("STENO_HOME", str(place))
        promised = b"".join(parts[: int(state.acknowledged or 0)])
        archive = Archive()
        if promised:
            entry = archive.entry(str(path))
            index = archive.journal(entry)
            file = index.latest(str(path))
            assert file is not None, state.cut
            there = b"".join(archive.source(entry, file).chunks())
            assert there.startswith(promised), state.cut
            assert b"".join(parts).startswith(there), state.cut
        # The next run makes it whole, whatever was left.
        archive.keep(discover_file(str(path)))
        entry = archive.entry(str(path))
        file = archive.journal(entry).latest(str(path))
        assert file is not None
        assert b"".join(archive.source(entry, file).chunks()) == b"".join(parts), state.cut

    each_state(recording, count, folder, look)


def test_the_archive_survives_a_power_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_archive(tmp_path, SMOKE, monkeypatch)


@pytest.mark.faults
@pytest.mark.timeout(3600)
def test_the_archive_survives_many_power_cuts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    check_archive(tmp_path, STATES, monkeypatch)
