"""Sessions by name."""

import shutil
from pathlib import Path

import pytest
from tests.builders import Session, session, tool
from tests.conftest import WriteConfig

from steno.demo.recording import write_demo
from steno.errors import Ambiguous, BadRequest, NotFound, Unreadable
from steno.session.session import Session as Opened
from steno.session.transcript import load
from steno.store.config import CONFIG_FILE
from steno.store.environment import demo_dir, steno_home
from steno.store.file_source import FileSource
from steno.store.session_lookup import find, open_session, read, resolve_roots, sessions, sessions_newest_first

ONE = "abcd1111-0000-4000-8000-000000000000"
TWO = "abcd2222-0000-4000-8000-000000000000"


def talk(name: str, title: str, hour: int) -> Session:
    start = f"2026-11-14T{hour:02}:00:00.000Z"
    return session(seed=name, session_id=name, start=start).turn("Hi", "Ho").title(title)


@pytest.fixture
def folder(config: WriteConfig) -> Path:
    return config(talk(ONE, "Tide tables", 8), talk(TWO, "Storm tides", 9))


def test_every_kind_of_name(folder: Path) -> None:
    path = sessions_newest_first()[1].path
    for name in (ONE, ONE.upper(), "abcd1", path, "Tide tables", "TABLES"):
        assert find(name).path == path
    assert find("last").place.session_id == TWO
    assert find(Path(path).name, cwd=str(Path(path).parent)).path == path
    assert folder


def test_a_file_of_another_name_goes_by_the_id_that_its_records_name(tmp_path: Path) -> None:
    made = [session(seed=name).user("Go.").assistant("Done.") for name in "ab"]
    for number, each in enumerate(made):
        path = tmp_path / str(number) / "full.jsonl"
        path.parent.mkdir()
        path.write_bytes(each.bytes())
    wanted = made[1].session_id
    assert find(wanted, str(tmp_path)).path == str(tmp_path / "1" / "full.jsonl")
    assert find(wanted[:8], str(tmp_path)).path == str(tmp_path / "1" / "full.jsonl")
    with pytest.raises(NotFound):
        find(wanted[:3], str(tmp_path))


def test_an_exact_title_wins_over_a_part_of_another(config: WriteConfig) -> None:
    config(talk(ONE, "Tide", 8), talk(TWO, "Tide and storm", 9))
    assert find("Tide").place.session_id == ONE


def test_names_that_fit_several_list_them(folder: Path) -> None:
    assert folder
    with pytest.raises(Ambiguous) as raised:
        find("abcd")
    assert set(raised.value.candidates) == {ONE, TWO}
    assert ONE in raised.value.hint
    with pytest.raises(Ambiguous):
        find("tide")


def test_one_id_in_two_folders_is_told_apart_by_path(tmp_path: Path) -> None:
    for name in ("a", "b"):
        place = tmp_path / "projects" / name
        place.mkdir(parents=True)
        (place / f"{ONE}.jsonl").write_bytes(talk(ONE, name, 8).bytes())
    with pytest.raises(Ambiguous) as raised:
        find(ONE, str(tmp_path))
    assert all(candidate.endswith(".jsonl") for candidate in raised.value.candidates)


def test_names_that_fit_nothing(folder: Path) -> None:
    assert folder
    for name in ("abc", "ffff0000", "no such title", ""):
        with pytest.raises(NotFound):
            find(name)


def test_last_passes_over_what_listings_hide(config: WriteConfig) -> None:
    config(talk(ONE, "Real", 8), session(seed="x", start="2026-11-14T23:00:00.000Z").command("exit"))
    assert find("last").place.session_id == ONE


def test_there_is_no_last_without_sessions(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        find("last", str(tmp_path))


def test_a_folder_named_like_a_title_is_not_in_the_way(folder: Path, tmp_path: Path) -> None:
    assert folder
    (tmp_path / "Storm tides").mkdir()
    assert find("Storm tides").place.session_id == TWO
    (tmp_path / "elsewhere").mkdir()
    for name in ("elsewhere", "./elsewhere", str(tmp_path)):
        with pytest.raises(Unreadable, match="is a directory"):
            find(name)


def with_agent() -> Session:
    call = tool("Agent", description="Look", prompt="Look around.", subagent_type="Explore")
    built = session(seed="agent", session_id=ONE).user("Go").assistant(call)
    return built.agent(lambda agent: agent.assistant("Nothing here.")).assistant("Done.")


def test_sub_agents_are_found_by_id_and_read_when_asked_for(config: WriteConfig) -> None:
    config(with_agent())
    opened = open_session(ONE)
    (agent,) = opened.agent_files
    assert agent.meta is not None
    assert agent.meta.agent_type == "Explore"
    assert "nodes" not in vars(agent.transcript), "nobody has asked yet"
    assert opened.turns()[0].steps[0].agent is not None
    assert "nodes" in vars(agent.transcript)
    assert find(agent.agent_id).path == agent.path
    assert find(f"agent-{agent.agent_id}").path == agent.path
    assert find(agent.agent_id[:8]).path == agent.path


def test_a_sub_agent_that_went_away_does_not_take_the_session_along(config: WriteConfig) -> None:
    config(with_agent())
    opened = open_session(ONE)
    Path(opened.agent_files[0].path).unlink()
    assert opened.turns()[0].answer == "Done."


def test_files_without_a_record_open_as_empty_sessions(tmp_path: Path) -> None:
    for content in (b"", b"\x00\xff" * 50):
        path = tmp_path / "empty.jsonl"
        path.write_bytes(content)
        opened = open_session(str(path))
        assert opened.transcript.nodes == []
        assert opened.turns() == []
        assert opened.as_resumed() == []


def test_titles_left_in_another_file_reach_the_session(config: WriteConfig) -> None:
    first = session("1.0.128", seed="one", session_id=ONE).turn("Hi", "Ho")
    second = session("1.0.128", seed="two", session_id=TWO).summary("Greeting", first.uuids()[-1])
    config(first, second.turn("Next", "Yes."))
    assert open_session(ONE).title.text == "Greeting"
    assert open_session(TWO).title.text == "Next"


def test_sessions_come_newest_first_with_a_glance(folder: Path) -> None:
    assert folder
    listed = list(sessions())
    assert [(each.id, each.title, each.turns) for each in listed] == [(TWO, "Storm tides", 1), (ONE, "Tide tables", 1)]
    assert listed[0].open().id == TWO
    assert listed[0].path.endswith(f"{TWO}.jsonl")


def test_reading_gives_every_byte(folder: Path) -> None:
    for path in folder.rglob("*.jsonl"):
        assert sum(piece.length for piece in read(path)) == path.stat().st_size
    with pytest.raises(Unreadable):
        read(folder / "gone.jsonl")


def test_a_title_that_stands_in_another_file_finds_its_session() -> None:
    write_demo(demo_dir())
    assert find("chart drawn", demo_dir()).path.endswith(".jsonl")


OPEN = Path("/proc/self/fd")


def _open_below(folder: Path) -> list[Path]:
    files = (each.readlink() for each in OPEN.iterdir() if each.is_symlink())
    return [path for path in files if path.is_relative_to(folder)]


@pytest.mark.skipif(not OPEN.is_dir(), reason="the system does not list them")
def test_open_sessions_and_ended_readings_hold_no_file(folder: Path) -> None:
    held = [each.open() for each in sessions()]
    assert [len(each.turns()) for each in held] == [1, 1]
    whole, broken_off = read(sessions_newest_first()[0].path), read(sessions_newest_first()[1].path)
    assert len(list(whole)) > 1
    next(broken_off)
    assert len(_open_below(folder)) == 1
    del broken_off
    assert _open_below(folder) == []


@pytest.mark.usefixtures("folder")
def test_a_path_to_nothing_is_refused_before_the_first_record() -> None:
    with pytest.raises(Unreadable, match="no such file"):
        read("none.jsonl")


def test_a_session_closes_what_it_reads_from(folder: Path) -> None:
    path = sessions_newest_first(str(folder))[0].path
    source = FileSource(path)
    with Opened(load(source)) as opened:
        assert opened.turns()
    with pytest.raises(Unreadable):
        source.read(0, 1)
    opened.close()


# Folders of the config file


def set_down(text: str) -> None:
    home = Path(steno_home())
    home.mkdir(parents=True)
    (home / CONFIG_FILE).write_text(text)


def test_the_folders_of_the_config_file_are_looked_at_too(config: WriteConfig, tmp_path: Path) -> None:
    shutil.move(config(with_agent().title("Tide tables")), tmp_path / "laptop")
    folder = config(talk(TWO, "Storm tides", 9))
    (tmp_path / "link").symlink_to(folder)
    names = ["laptop", "./laptop/projects", str(folder), "link", "~/nothing"]
    set_down(f"[index]\nroots = {names}\n")
    assert resolve_roots() == (
        str(folder),
        str(tmp_path / "laptop"),
        str(tmp_path / "laptop" / "projects"),
        str(folder.parent / "nothing"),
    )
    assert find(ONE).place.session_id == ONE
    assert find(TWO).place.session_id == TWO
    assert open_session("Tide tables").id == ONE
    assert len(list(sessions())) == 2
    (agent,) = {path.stem for path in tmp_path.glob("laptop/projects/*/*/subagents/*.jsonl")}
    assert find(agent).place.role == "agent"
    assert [found.place.session_id for found in sessions_newest_first(str(folder))] == [TWO]


@pytest.mark.parametrize("said", ["[index]\nroots = 7\n", "[index\n"])
def test_a_broken_config_file_is_told_with_its_line(folder: Path, said: str) -> None:
    set_down(said)
    with pytest.raises(BadRequest, match=r"config.toml, line \d"):
        find(ONE)
    with pytest.raises(BadRequest):
        next(sessions())
    # Whoever names a folder does not need it.
    assert find(ONE, str(folder)).place.session_id == ONE


def test_without_a_config_file_none_is_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("steno.store.config.read_config", None)
    assert resolve_roots() == (str(folder),)
    # Not even a place for one is needed.
    for name in ("STENO_HOME", "XDG_DATA_HOME", "HOME", "USERPROFILE", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)
    assert resolve_roots() == (str(folder),)


def test_old_sessions_are_not_running(config: WriteConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    config(session(start="2026-11-15T11:58:00.000Z").user("Go").assistant(tool("Bash")))
    assert [each.summary.status for each in sessions(hidden=True)] == ["running"]
    monkeypatch.setenv("STENO_NOW", "2026-11-20T12:00:00Z")
    assert [each.summary.status for each in sessions(hidden=True)] == ["interrupted"]


def test_a_title_may_begin_like_a_path(config: WriteConfig) -> None:
    config(talk(ONE, "/context", 8), talk(TWO, ".gitignore for tides", 9))
    assert find("/context").place.session_id == ONE
    assert find(".gitignore").place.session_id == TWO
    with pytest.raises(Unreadable, match="/nothing/here"):
        find("/nothing/here")


def test_agent_files_nested_without_end_do_not_stop_a_look(config: WriteConfig) -> None:
    folder = config(talk(ONE, "Tide tables", 8))
    deep = b'{"sessionId":"x","message":' + b"[" * 100_000 + b"\n"
    beside = Path(sessions_newest_first()[0].path).parent / "agent-abcd1234.jsonl"
    beside.write_bytes(deep)
    assert [each.open().title.text for each in sessions(str(folder))] == ["Tide tables"]
