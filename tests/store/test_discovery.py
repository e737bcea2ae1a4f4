"""Finding sessions, sub-agents and sidecars, in every kind of folder and among every kind of trap."""

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.builders.paths import agent_path, todo_name

from steno.errors import Unreadable
from steno.format.paths import meta_path, session_path
from steno.store.discovery import (
    MAX_DEPTH,
    DiscoveredFile,
    Discovery,
    Problem,
    config_folder_of,
    discover,
    discover_agents,
    discover_file,
    is_transcript,
    session_id_in,
)

ONE = "11111111-2222-4333-8444-555555555555"
TWO = "22222222-2222-4333-8444-555555555555"
posix_only = pytest.mark.skipif(os.name == "nt", reason="needs links, pipes and modes of POSIX")


def line(**fields: object) -> bytes:
    return json.dumps({"parentUuid": None, "type": "user", **fields}).encode() + b"\n"


def put(path: Path, data: bytes = b"") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def names(found: Iterator[DiscoveredFile] | list[DiscoveredFile], root: Path) -> list[str]:
    return [Path(one.path).relative_to(root).as_posix() for one in found]


def kinds(problems: list[Problem]) -> list[tuple[str, str]]:
    return sorted((problem.kind, Path(problem.path).name) for problem in problems)


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """Make a config folder with two projects, all three layouts of agents, and sidecars."""
    folder = tmp_path / ".claude"
    put(folder / session_path("-p", ONE), line(sessionId=ONE))
    put(folder / session_path("-q", TWO), line(sessionId=TWO))
    for path in (
        agent_path("-p", ONE, "aaaaaaa", next_to_session=True),
        agent_path("-p", ONE, "a1111111111111111"),
        agent_path("-p", ONE, "abbbbbb", workflow="wf_1"),
    ):
        put(folder / path, line(sessionId=ONE, isSidechain=True))
    put(folder / agent_path("-p", TWO, "accccccc", next_to_session=True), line(sessionId=TWO))
    put(folder / meta_path(agent_path("-p", ONE, "a1111111111111111")), b"{}")
    put(folder / f"projects/-p/{ONE}/subagents/workflows/wf_1/journal.jsonl", b"{}\n")
    put(folder / f"projects/-p/{ONE}/tool-results/toolu_01.txt", b"big")
    put(folder / f"projects/-p/{ONE}/custom-title.json", b'{"customTitle":"t"}')
    put(folder / f"file-history/{ONE}/094de626321f00d3@v1", b"old")
    put(folder / "todos" / todo_name(ONE), b"[]")
    put(folder / "todos" / todo_name(TWO), b"[]")
    put(folder / f"tasks/{ONE}/1.json", b"{}")
    put(folder / "history.jsonl", b'{"display":"x","pastedContents":{},"sessionId":"s"}\n')
    put(folder / f"plugins/repo/{TWO}.jsonl", line())
    return folder


def test_a_config_folder_gives_its_sessions_and_nothing_else(home: Path) -> None:
    assert names(discover(str(home)), home) == [session_path("-p", ONE), session_path("-q", TWO)]


def test_what_is_found_says_what_and_how_big_and_how_old_it_is(home: Path) -> None:
    path = home / session_path("-p", ONE)
    os.utime(path, ns=(5, 1_700_000_000_123_456_700))
    found = next(discover(str(home)))
    assert found.path == str(path)
    assert found.size == path.stat().st_size
    assert found.mtime_ns == path.stat().st_mtime_ns
    assert (found.place.role, found.place.slug) == ("session", "-p")
    assert (found.place.session_id, found.root) == (ONE, str(home))


@pytest.mark.parametrize("below", ["projects", "projects/-p", f"projects/-p/{ONE}.jsonl"])
def test_a_part_of_a_config_folder_gives_the_same_session(home: Path, below: str) -> None:
    found = next(discover(str(home / below)))
    assert found.path == str(home / session_path("-p", ONE))
    assert (found.place.slug, found.place.session_id) == ("-p", ONE)


def test_a_relative_root_works_and_gives_relative_paths(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home / "projects" / "-p")
    found = list(discover("."))
    assert [(one.path, one.place.slug) for one in found] == [(f"./{ONE}.jsonl", "-p")]
    assert len(discover_agents(f"{ONE}.jsonl")) == 3


def test_every_transcript_can_be_asked_for(home: Path) -> None:
    found = list(Discovery(str(home)).transcripts())
    assert sorted((one.place.role, one.place.agent_id) for one in found) == [
        ("agent", "a1111111111111111"),
        ("agent", "aaaaaaa"),
        ("agent", "abbbbbb"),
        ("agent", "accccccc"),
        ("session", ""),
        ("session", ""),
    ]


def test_agents_are_found_in_every_layout_and_only_those_of_the_session(home: Path) -> None:
    agents = discover_agents(str(home / session_path("-p", ONE)))
    assert [(one.place.agent_id, one.place.session_id, one.place.workflow) for one in agents] == [
        ("aaaaaaa", ONE, ""),
        ("a1111111111111111", ONE, ""),
        ("abbbbbb", ONE, "wf_1"),
    ]


def test_agents_can_be_filled_in(home: Path) -> None:
    discovery = Discovery(str(home))
    session = next(discovery.sessions())
    assert session.agents == ()
    assert discovery.with_agents(session).agents == tuple(discovery.agents(session))


def test_an_agent_beside_is_known_by_its_first_record_however_long(tmp_path: Path) -> None:
    put(tmp_path / f"{ONE}.jsonl", line(sessionId=ONE))
    long = line(sessionId=ONE, message={"content": '"sessionId":"not me" ' * 10_000})
    put(tmp_path / "agent-aaaaaaa.jsonl", long)
    late = line() + line(sessionId=ONE)
    put(tmp_path / "agent-abbbbbb.jsonl", late)
    put(tmp_path / "agent-accccccc.jsonl", b"{torn\n")
    found = discover_agents(str(tmp_path / f"{ONE}.jsonl"))
    assert [one.place.agent_id for one in found] == ["aaaaaaa", "abbbbbb"]


def test_a_session_with_an_odd_name_finds_its_agents_by_the_id_inside(tmp_path: Path) -> None:
    put(tmp_path / "full.jsonl", line(sessionId=ONE))
    put(tmp_path / "agent-aaaaaaa.jsonl", line(sessionId=ONE))
    put(tmp_path / "full" / "subagents" / "agent-abbbbbb.jsonl", line(sessionId=ONE))
    found = discover_agents(next(discover(str(tmp_path))))
    assert [one.place.agent_id for one in found] == ["aaaaaaa", "abbbbbb"]


def test_sidecars_are_those_of_the_session_alone(home: Path) -> None:
    discovery = Discovery("")
    found = discovery.sidecars(discover_file(str(home / session_path("-p", ONE))))
    assert sorted((one.place.role, one.place.session_id) for one in found) == [
        ("agent-meta", ONE),
        ("custom-title", ONE),
        ("file-history", ONE),
        ("journal", ONE),
        ("task", ONE),
        ("todo", ONE),
        ("tool-result", ONE),
    ]
    lonely = discovery.sidecars(discover_file(str(home / session_path("-q", TWO))))
    assert [one.place.role for one in lonely] == ["todo"]


def test_the_config_folder_around_a_transcript_is_known(home: Path) -> None:
    assert config_folder_of(str(home / session_path("-p", ONE))) == str(home)
    assert config_folder_of(str(home / agent_path("-p", ONE, "aaaaaaa", workflow="w"))) == str(home)
    assert config_folder_of(str(home.parent / "x.jsonl")) == ""


def test_a_session_with_an_odd_name_is_known_by_its_first_bytes(tmp_path: Path) -> None:
    put(tmp_path / "a" / "b" / "full.jsonl", line(sessionId=ONE))
    put(tmp_path / "a" / "titles.jsonl", b'{"type":"summary","summary":"x","leafUuid":"y"}\n')
    put(tmp_path / "a" / "torn.jsonl", b'arentUuid":null}\n' + line())
    put(tmp_path / "a" / "history.jsonl", line())
    put(tmp_path / "a" / "prompts.jsonl", b'{"display":"","pastedContents":{},"sessionId":"s"}\n')
    put(tmp_path / "a" / "data.jsonl", b'{"text":"one"}\n')
    put(tmp_path / "a" / "quoted.jsonl", json.dumps({"before": line().decode()}).encode())
    put(tmp_path / "a" / "empty.jsonl")
    put(tmp_path / "a" / "packed.jsonl", b"\x1f\x8b\x08\x00")
    problems: list[Problem] = []
    assert names(discover(str(tmp_path), problems), tmp_path) == ["a/titles.jsonl", "a/torn.jsonl", "a/b/full.jsonl"]
    assert problems == []


def test_a_session_named_by_its_id_is_listed_even_when_empty(tmp_path: Path) -> None:
    put(tmp_path / f"{ONE}.jsonl")
    assert names(discover(str(tmp_path)), tmp_path) == [f"{ONE}.jsonl"]


def test_the_dialect_with_conversations_is_listed(tmp_path: Path) -> None:
    put(tmp_path / "conversations" / "_home_ada" / "2025-01-29.jsonl", b"{}")
    found = next(discover(str(tmp_path)))
    assert (found.place.role, found.place.slug) == ("session", "_home_ada")


def test_a_single_file_of_any_name_is_a_session(tmp_path: Path) -> None:
    path = put(tmp_path / "notes.txt", b"?")
    assert [one.place.role for one in discover(str(path))] == ["session"]
    agent = put(tmp_path / "agent-aaaaaaa.jsonl", b"?")
    assert [one.place.role for one in discover(str(agent))] == ["agent"]


def test_a_root_that_is_not_there_is_a_problem_and_no_error(tmp_path: Path) -> None:
    for root in (str(tmp_path / "gone"), "nul\0byte"):
        problems: list[Problem] = []
        assert list(discover(root, problems)) == []
        assert [problem.kind for problem in problems] == ["missing"]


def test_asking_for_the_agents_of_nothing_is_an_error(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "gone.jsonl"):
        with pytest.raises(Unreadable):
            discover_file(str(path))


def test_an_orphaned_side_folder_is_no_session(tmp_path: Path) -> None:
    put(tmp_path / "projects" / "-p" / ONE / "subagents" / "agent-aaaaaaa.jsonl", line())
    assert list(discover(str(tmp_path))) == []
    assert len(list(Discovery(str(tmp_path)).transcripts())) == 1


def test_looking_changes_nothing(home: Path) -> None:
    def state() -> list[tuple[str, int, int]]:
        return sorted((str(path), path.stat().st_mtime_ns, path.stat().st_size) for path in home.rglob("*"))

    before = state()
    discovery = Discovery(str(home))
    for session in discovery.sessions():
        discovery.agents(session)
        discovery.sidecars(session)
    assert state() == before


@posix_only
def test_links_in_circles_end(tmp_path: Path) -> None:
    put(tmp_path / "a" / f"{ONE}.jsonl")
    (tmp_path / "a" / "up").symlink_to(tmp_path)
    (tmp_path / "a" / "here").symlink_to(".")
    (tmp_path / "a" / "root").symlink_to("/")
    (tmp_path / "self").symlink_to("self")
    (tmp_path / "self.jsonl").symlink_to("self.jsonl")
    problems: list[Problem] = []
    assert names(discover(str(tmp_path), problems), tmp_path) == [f"a/{ONE}.jsonl"]
    assert kinds(problems) == [
        ("loop", "here"),
        ("loop", "root"),
        ("loop", "self"),
        ("loop", "self.jsonl"),
        ("loop", "up"),
    ]


@posix_only
def test_two_folders_that_link_to_each_other_are_each_read_once(tmp_path: Path) -> None:
    put(tmp_path / "a" / f"{ONE}.jsonl")
    put(tmp_path / "b" / f"{TWO}.jsonl")
    (tmp_path / "a" / "b").symlink_to(tmp_path / "b")
    (tmp_path / "b" / "a").symlink_to(tmp_path / "a")
    assert names(discover(str(tmp_path)), tmp_path) == [f"a/{ONE}.jsonl", f"b/{TWO}.jsonl"]


@posix_only
def test_a_folder_outside_is_followed_once_however_many_links_there_are(tmp_path: Path) -> None:
    put(tmp_path / "outside" / f"{ONE}.jsonl")
    inside = tmp_path / "inside"
    inside.mkdir()
    for number in range(20):
        (inside / f"link{number:02d}").symlink_to(tmp_path / "outside")
    assert names(discover(str(inside)), inside) == [f"link00/{ONE}.jsonl"]


@posix_only
def test_a_farm_of_links_does_not_multiply(tmp_path: Path) -> None:
    for level in range(20):
        folder = tmp_path / f"level{level}"
        put(folder / f"{ONE}.jsonl")
        for name in "xyz":
            (folder / name).symlink_to(tmp_path / f"level{level + 1}")
    start = tmp_path / "level0"
    assert len(list(discover(str(start)))) == 20


@posix_only
def test_a_linked_projects_folder_is_followed(tmp_path: Path) -> None:
    put(tmp_path / "elsewhere" / "-p" / f"{ONE}.jsonl")
    config = tmp_path / ".claude"
    config.mkdir()
    (config / "projects").symlink_to(tmp_path / "elsewhere")
    found = next(discover(str(config)))
    assert found.place.slug == "-p"
    assert config_folder_of(found.path) == str(config)


@posix_only
def test_a_linked_session_is_found_and_a_dangling_one_reported(tmp_path: Path) -> None:
    real = put(tmp_path / "store" / "x.bin", line())
    folder = tmp_path / "projects" / "-p"
    folder.mkdir(parents=True)
    (folder / f"{ONE}.jsonl").symlink_to(real)
    (folder / f"{TWO}.jsonl").symlink_to(tmp_path / "gone")
    (tmp_path / "projects" / "-gone").symlink_to(tmp_path / "gone")
    problems: list[Problem] = []
    found = list(discover(str(tmp_path), problems))
    assert [(one.place.session_id, one.size) for one in found] == [(ONE, len(line()))]
    assert kinds(problems) == [("dangling", "-gone"), ("dangling", f"{TWO}.jsonl")]


@posix_only
def test_pipes_sockets_and_devices_are_reported_and_never_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / f"{ONE}.jsonl")
    os.mkfifo(tmp_path / "odd.jsonl")
    (tmp_path / "zero.jsonl").symlink_to("/dev/zero")
    (tmp_path / f"{TWO}.jsonl").mkdir()
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket.jsonl")
        problems: list[Problem] = []
        assert list(discover(str(tmp_path), problems)) == []
    assert kinds(problems) == [
        ("not-a-file", f"{TWO}.jsonl"),
        ("special", f"{ONE}.jsonl"),
        ("special", "odd.jsonl"),
        ("special", "socket.jsonl"),
        ("special", "zero.jsonl"),
    ]


@posix_only
def test_a_pipe_as_root_or_as_agent_does_not_hold_us_up(tmp_path: Path) -> None:
    pipe = tmp_path / "agent-aaaaaaa.jsonl"
    os.mkfifo(pipe)
    put(tmp_path / f"{ONE}.jsonl", line(sessionId=ONE))
    problems: list[Problem] = []
    assert list(discover(str(pipe), problems)) == []
    assert discover_agents(str(tmp_path / f"{ONE}.jsonl"), problems) == []
    assert [problem.kind for problem in problems] == ["special", "special"]


@posix_only
@pytest.mark.skipif(os.name != "nt" and os.geteuid() == 0, reason="nothing is denied to root")
def test_what_may_not_be_read_is_reported_and_the_rest_found(tmp_path: Path) -> None:
    put(tmp_path / "open" / f"{ONE}.jsonl")
    put(tmp_path / "shut" / f"{TWO}.jsonl")
    put(tmp_path / "open" / "odd.jsonl", line()).chmod(0)
    (tmp_path / "shut").chmod(0)
    problems: list[Problem] = []
    try:
        assert names(discover(str(tmp_path), problems), tmp_path) == [f"open/{ONE}.jsonl"]
    finally:
        (tmp_path / "shut").chmod(0o700)
    assert kinds(problems) == [("denied", "odd.jsonl"), ("denied", "shut")]


@posix_only
@pytest.mark.parametrize("name", [b"-new\nline", b"-esc\x1b[31m", b"-\xff\xfe", "-日本".encode(), b"-" + b"x" * 200])
def test_a_folder_of_any_name_is_walked_and_its_path_opens(tmp_path: Path, name: bytes) -> None:
    folder = tmp_path / os.fsdecode(name)
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this file system refuses the name")
    put(folder / f"{ONE}.jsonl", line())
    put(folder / f"{folder.name}.jsonl", line())
    found = list(discover(str(tmp_path)))
    assert len(found) == 2
    for one in found:
        assert os.fsencode(one.place.slug) == name
        assert Path(one.path).read_bytes() == line()


def test_folders_inside_each_other_end_at_a_limit(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d"] * (MAX_DEPTH + 1))
    put(deep / f"{ONE}.jsonl")
    put(deep.parent / f"{TWO}.jsonl")
    problems: list[Problem] = []
    assert [one.place.session_id for one in discover(str(tmp_path), problems)] == [TWO]
    assert kinds(problems) == [("too-deep", "d")]


@pytest.mark.parametrize(
    ("head", "session_id"),
    [
        (b"", ""),
        (b'{"sessionId":"a"}\n', "a"),
        (b'{"sessionId":7}\n{"sessionId":"b"}\n', "b"),
        (b'{"x":{"sessionId":"inner"},"sessionId":"outer"}', "outer"),
        (b'{"parentUuid":null,"sessionId": "cut","message":{"con', "cut"),
        (b'{"message":"\\"sessionId\\":\\"quoted\\"', ""),
        (b"\xff\xff", ""),
    ],
)
def test_the_session_id_is_read_from_the_first_bytes(head: bytes, session_id: str) -> None:
    assert session_id_in(head) == session_id


def test_a_quoted_transcript_is_no_transcript() -> None:
    assert is_transcript(line())
    assert not is_transcript(json.dumps({"type": "x", "log": line().decode()}).encode())


@pytest.mark.corpus
def test_the_whole_corpus_is_found_but_for_what_is_no_session(shared: Path) -> None:
    root = shared / "corpus"
    problems: list[Problem] = []
    discovery = Discovery(str(root), problems)
    found = {one.path for one in discovery.transcripts()}
    missed = {str(path) for path in root.rglob("*.jsonl")} - found
    odd = {path for path in missed if Path(path).name != "history.jsonl"}
    assert {Path(path).relative_to(root).as_posix() for path in odd} == {
        "resume-cases/empty_file/before.jsonl",
        "resume-fuzz/2.1.325.jsonl",
    }
    assert problems == []


@pytest.mark.corpus
def test_every_agent_of_the_corpus_belongs_to_a_session(shared: Path) -> None:
    discovery = Discovery(str(shared / "corpus"))
    claimed = [agent.path for one in discovery.sessions() for agent in discovery.agents(one)]
    every = [one.path for one in discovery.transcripts() if one.place.role == "agent"]
    assert len(every) > 90
    assert sorted(claimed) == sorted(every)
