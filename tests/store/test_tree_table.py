"""A folder with something of every kind: what is found, what is skipped, and by which names."""

import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest
from tests.index.transcripts import TRANSCRIPTS, Script
from tests.recorded_answers import assert_recorded, plain

from steno.errors import StenoError
from steno.store.client_folders import (
    ConfigFolder,
    cleanup_days,
    find_copies,
    find_leftovers,
    is_config_folder,
    tool_result_path,
)
from steno.store.discovery import (
    MAX_DEPTH,
    DiscoveredFile,
    Discovery,
    Problem,
    config_folder_of,
    discover,
    discover_agents,
    discover_file,
    files_below,
    is_transcript,
    list_folder,
    path_context,
    peek,
    problem_from_error,
    session_id_in,
    watched_folders,
)
from steno.store.session_lookup import (
    find,
    foreign_titles,
    open_session,
    resolve_roots,
    sessions,
    sessions_newest_first,
)
from steno.store.summary import SessionSummary

if TYPE_CHECKING:
    from collections.abc import Callable

ANSWERS: Final = Path(__file__).with_name("answers")
ONE: Final = "11111111-0000-4000-8000-000000000001"
TWO: Final = "22222222-0000-4000-8000-000000000002"
GONE: Final = "99999999-0000-4000-8000-000000000009"


def _talk(name: str, words: str) -> bytes:
    return Script().user(words, sessionId=name).bot("x", sessionId=name).bytes()


def _agent(session: str, name: str) -> bytes:
    made = Script().user("Look", isSidechain=True, agentId=name, sessionId=session)
    return made.bot("x", isSidechain=True, agentId=name, sessionId=session).bytes()


FILES: Final[dict[str, bytes]] = {
    f"projects/-p/{ONE}.jsonl": _talk(ONE, "One tide"),
    f"projects/-p/{ONE}/subagents/agent-aaaa1111.jsonl": _agent(ONE, "aaaa1111"),
    f"projects/-p/{ONE}/subagents/agent-aaaa1111.meta.json": b'{"agentType":"Explore"}',
    f"projects/-p/{ONE}/subagents/notes.txt": b"x",
    f"projects/-p/{ONE}/tool-results/r1.txt": b"result",
    f"projects/-p/{ONE}/custom-title.json": b'{"customTitle":"The tide"}',
    f"projects/-p/{ONE}/odd.jsonl": _talk("odd", "Odd"),
    f"projects/-p/{TWO}.jsonl": _talk(TWO, "Two storms"),
    "projects/-p/agent-bbbb2222.jsonl": _agent(TWO, "bbbb2222"),
    "projects/-p/agent-cccc3333.jsonl": _agent(ONE, "cccc3333"),
    "projects/-p/agent-dddd4444.jsonl": _agent("nobody", "dddd4444"),
    "projects/-p/named.jsonl": _talk("named-session", "Three named"),
    "projects/-p/empty.jsonl": b"",
    "projects/-p/other.jsonl": b'{"a":1}\n',
    "projects/-p/sessions-index.json": b'{"version":1,"entries":[]}',
    "projects/-p/memory/MEMORY.md": b"remember",
    "projects/-p/node_modules/x.jsonl": _talk("x", "Never"),
    "projects/-q/.git/y.jsonl": _talk("y", "Never"),
    f"projects/-q/{GONE}/subagents/agent-eeee5555.jsonl": _agent(GONE, "eeee5555"),
    "history.jsonl": b'{"display":"hello","pastedContents":{},"timestamp":1,"project":"/p"}\nbad\n',
    f"todos/{ONE}-agent-{ONE}.json": b'[{"content":"a","status":"pending","activeForm":"b"}]',
    f"todos/{GONE}-agent-{GONE}.json": b'[{"content":"c","status":"pending","activeForm":"d"}]',
    f"todos/{TWO}-agent-{TWO}.json": b"[]",
    f"tasks/{ONE}/10.json": b'{"id":"10","subject":"ten","description":"d","status":"pending"}',
    f"tasks/{ONE}/2.json": b'{"id":"2","subject":"two","description":"d","status":"pending"}',
    f"tasks/{ONE}/bad.json": b"{",
    f"tasks/{GONE}/1.json": b"{}",
    f"file-history/{ONE}/0123456789abcdef@v1": b"before",
    f"file-history/{ONE}/other": b"x",
    f"file-history/{GONE}/0123456789abcdef@v1": b"before that",
    f"session-env/{ONE}/env.sh": b"export A=1",
    f"debug/{ONE}.txt": b"log of one",
    f"debug/{GONE}.txt": b"log of the gone",
    "sessions/12.json": b'{"pid":12,"sessionId":"s","cwd":"/p","startedAt":1}',
    "sessions/13.json": b"{",
    "settings.json": b'{"cleanupPeriodDays":9,"env":{"A_TOKEN":"x"}}',
    "settings.local.json": b"[]",
    "CLAUDE.md": b"Be kind.",
    "plans/a-plan.md": b"plan",
    "plans/x.txt": b"x",
    "agents/helper.md": b"agent",
    "commands/do/it.md": b"command",
    "skills/tide/SKILL.md": b"skill",
    "skills/tide/more.md": b"more",
    "hooks/h.sh": b"hook",
    "jobs/j/log.txt": b"job",
    "paste-cache/0123456789abcdef.txt": b"paste",
    "shell-snapshots/snapshot-bash-1.sh": b"snap",
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree") / "config"
    for number, (name, data) in enumerate(FILES.items()):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        os.utime(path, (1_790_000_000 + number, 1_790_000_000 + number))
    project = root / "projects" / "-p"
    (project / "33333333-0000-4000-8000-000000000003.jsonl").mkdir()
    os.mkfifo(project / "44444444-0000-4000-8000-000000000004.jsonl")
    (project / "55555555-0000-4000-8000-000000000005.jsonl").symlink_to("nowhere")
    (project / "66666666-0000-4000-8000-000000000006.jsonl").symlink_to(f"{TWO}.jsonl")
    (project / "up").symlink_to("..")
    (project / "linked").symlink_to(root.parent / "outside")
    (project / "lost").symlink_to("nowhere")
    (root / "skills" / "linked").symlink_to(root.parent / "skill")
    (root.parent / "outside").mkdir()
    (root.parent / "outside" / "z.jsonl").write_bytes(_talk("outside", "Outside"))
    (root.parent / "skill").mkdir()
    (root.parent / "skill" / "SKILL.md").write_bytes(b"linked skill")
    with socket.socket(socket.AF_UNIX) as made:
        here = Path.cwd()
        os.chdir(project)
        try:
            made.bind("77777777-0000-4000-8000-000000000007.jsonl")
        finally:
            os.chdir(here)
    deep = root / "projects" / "-deep"
    for number in range(MAX_DEPTH + 2):
        deep = deep / str(number)
    deep.mkdir(parents=True)
    return root


def _shown(tree: Path, value: Any) -> Any:
    """Return values with paths from the tree on, and without times."""
    made = plain(value)
    return _without(made, str(tree.parent))


def _without(value: Any, top: str) -> Any:
    if isinstance(value, str):
        return value.replace(top, "")
    if isinstance(value, list):
        return [_without(each, top) for each in value]
    if isinstance(value, dict):
        if value.get("") == "DiscoveredFile":
            place = value["place"]
            place = " ".join(str(place[k]) for k in place if k and place[k])
            agents = [_without(each, top) for each in value["agents"]]
            root = _without(value["root"], top)
            found = [_without(value["path"], top), value["size"], place, root]
            return [*found, agents] if agents else found
        return {name: _without(each, top) for name, each in value.items()}
    return value


def test_a_walk_finds_exactly_what_is_recorded(tree: Path) -> None:
    answers: dict[str, object] = {}
    for start in ("", "projects", "projects/-p", f"projects/-p/{ONE}", f"projects/-p/{ONE}.jsonl",
                  "projects/-p/other.jsonl", "projects/-p/agent-bbbb2222.jsonl", "nowhere",
                  "CLAUDE.md", "projects/-p/44444444-0000-4000-8000-000000000004.jsonl",
                  "../outside", "projects/-p/linked"):  # fmt: skip
        root = str(tree / start) if start else str(tree)
        first, second = Discovery(root), Discovery(root)
        answers[start or "all"] = _shown(tree, {
            "sessions": list(first.sessions()),
            "transcripts": list(second.transcripts()),
            "problems": sorted(set(map(repr, first.problems + second.problems))),
            "walked": watched_folders(root),
        })  # fmt: skip
    assert_recorded(ANSWERS / "tree_walk.json", answers)


def test_what_belongs_to_each_session_is_as_recorded(tree: Path) -> None:
    answers: dict[str, object] = {}
    discovery = Discovery(str(tree))
    for found in list(discovery.sessions()):
        answers[Path(found.path).name] = _shown(tree, {
            "agents": discovery.with_agents(found).agents,
            "sidecars": discovery.sidecars(found),
        })  # fmt: skip
        alone = [each.path for each in discover_agents(found.path)]
        assert alone == [each.path for each in discovery.agents(found)]
        assert discover_agents(found) == discovery.agents(found)
    assert_recorded(ANSWERS / "tree_belongs.json", answers)


def test_every_part_of_a_config_folder_is_read_as_recorded(tree: Path) -> None:
    made = ConfigFolder(str(tree))
    answers: dict[str, object] = {"projects": made.projects()}
    parts: dict[str, Callable[[], object]] = {
        "history": made.history, "todos": made.todos, "todos of one": lambda: made.todos(ONE),
        "todos of none": lambda: made.todos("zz"), "tasks": lambda: made.tasks(ONE),
        "tasks outside": lambda: made.tasks(".."), "backups": lambda: made.backups(ONE),
        "backup folder": lambda: made.file_history_dir(ONE),
        "no backup folder": lambda: made.file_history_dir(TWO),
        "backup folder outside": lambda: made.file_history_dir("../projects"),
        "backup": lambda: made.backup_path(ONE, "0123456789abcdef@v1"),
        "other backup": lambda: made.backup_path(ONE, "other"),
        "missing backup": lambda: made.backup_path(ONE, "0123456789abcdef@v2"),
        "backup of none": lambda: made.backup_path(TWO, "0123456789abcdef@v1"),
        "live": made.live_processes, "memory": lambda: made.memory("-p"), "no memory": lambda: made.memory("-q"),
        "memory outside": lambda: made.memory("../x"),
        "index": lambda: made.sessions_index("-p"), "no index": lambda: made.sessions_index("-q"),
        "index outside": lambda: made.sessions_index("a/b"),
        "instructions": made.instructions, "plans": made.plans, "agents": made.agent_defs,
        "commands": made.commands, "skills": made.skills, "hooks": made.hooks, "jobs": made.jobs,
        "pastes": made.pastes,
        "settings": made.settings, "local settings": lambda: made.settings(local=True),
        "title": lambda: made.custom_title(discover_file(str(tree / f"projects/-p/{ONE}.jsonl"))),
        "no title": lambda: made.custom_title(discover_file(str(tree / f"projects/-p/{TWO}.jsonl"))),
        "meta": lambda: made.agent_meta(discover_agents(str(tree / f"projects/-p/{ONE}.jsonl"))[-1]),
        "no meta": lambda: made.agent_meta(discover_agents(str(tree / f"projects/-p/{ONE}.jsonl"))[0]),
        "text of a folder": lambda: made.text(str(tree / "projects")),
        "missing text": lambda: made.text(str(tree / "none")),
    }  # fmt: skip
    for name, ask in parts.items():
        answers[name] = _shown(tree, ask())
    answers["problems"] = _shown(tree, made.problems)
    answers["damage"] = _shown(tree, made.damage)
    assert [found.path for found in made.sessions()] == [f.path for f in discover(str(tree))]
    assert_recorded(ANSWERS / "tree_config.json", answers)
    around = ConfigFolder.containing(str(tree / f"projects/-p/{ONE}.jsonl"))
    assert around is not None
    assert around.path == str(tree)
    assert ConfigFolder.containing("/x/y.jsonl") is None
    assert ConfigFolder(str(tree / "nowhere")).projects() == []


def test_saved_results_are_looked_up_in_the_sessions_own_folder(tree: Path) -> None:
    session = str(tree / f"projects/-p/{ONE}.jsonl")
    there = str(tree / f"projects/-p/{ONE}/tool-results/r1.txt")
    for recorded in ("/other/machine/r1.txt", "C:\\x\\r1.txt", "r1.txt", "a/b\\r1.txt"):
        assert tool_result_path(session, recorded) == there
    for recorded in ("", "/", "..", "/x/..", ".", "r2.txt", "r1.txt/", "\0"):
        assert tool_result_path(session, recorded) is None
    assert tool_result_path(session.removesuffix(".jsonl"), "r1.txt") is None


NAMES: Final = (
    *("last", "", " ", ONE, ONE.upper(), "1111", "111", "11", "2222", "22222222", "zzzz", "z"),
    *("The tide", "the TIDE", "tide", "storms", "storm", "o", "x", "Three named", "named"),
    *("named-session", "named-s", "nam", "aaaa1111", "agent-aaaa1111", "aaaa", "aaa", "bbbb", "BBBB2222"),
    *("cccc3333", "dddd4444", "eeee5555", "ffff", "agent-", "odd", "outside", "..", "./none", "none.jsonl"),
    *(f"projects/-p/{ONE}.jsonl", "projects/-p", "projects/-p/named.jsonl", f"{ONE}.jsonl"),
    *("projects/-p/44444444-0000-4000-8000-000000000004.jsonl", "6666", "projects/-p/other.jsonl"),
)  # fmt: skip


def test_every_name_finds_the_recorded_session(tree: Path) -> None:
    def storms(look: SessionSummary) -> bool:
        return "storm" in look.title

    answers: dict[str, object] = {}
    for name in NAMES:
        for way in ("", " among the storms"):
            options: dict[str, Any] = {"session_filter": storms} if way else {}
            try:
                made: Any = find(name, str(tree), cwd=str(tree), **options).path
            except StenoError as error:
                made = plain(error)
                made["candidates"] = getattr(error, "candidates", ())
            answers[name + way] = _shown(tree, made)
    assert_recorded(ANSWERS / "tree_names.json", answers)


def test_sessions_are_listed_newest_first_with_their_titles(tree: Path) -> None:
    problems: list[Problem] = []
    found = sessions_newest_first(str(tree), problems)
    times = [each.mtime_ns for each in found]
    assert times == sorted(times, reverse=True)
    assert {problem.kind for problem in problems} >= {"dangling", "not-a-file", "special", "loop"}
    both = sessions_newest_first([str(tree), str(tree / "projects")])
    assert [each.path for each in both] == [each.path for each in found]
    shown = [(each.id, each.title, each.turns) for each in sessions(str(tree))]
    hidden = [(each.id, each.title) for each in sessions(str(tree), hidden=True)]
    assert_recorded(ANSWERS / "tree_sessions.json", {"shown": shown, "hidden": hidden})
    with open_session(ONE, str(tree)) as session:
        assert [agent.path for agent in session.agent_files]
    assert resolve_roots(["/a", "/b"]) == ("/a", "/b")
    assert resolve_roots("/a") == ("/a",)


def test_old_titles_are_lent_by_the_sessions_beside(tmp_path: Path) -> None:
    lender = Script().raw({"type": "summary", "summary": "Lent", "leafUuid": "u2"})
    (tmp_path / "a.jsonl").write_bytes(lender.bytes() + TRANSCRIPTS["rewind"]().bytes().replace(b"u", b"v"))
    for version, lent in (("1.0.5", [("u2", "Lent")]), ("2.0.9", [("u2", "Lent")]), ("0.9", [("u2", "Lent")]),
                          ("2.1.0", []), ("10.0", []), ("", [])):  # fmt: skip
        path = tmp_path / "b.jsonl"
        path.write_bytes(Script().user("One", version=version).bot("x", version=version).bytes())
        assert foreign_titles(discover_file(str(path))) == lent, version
        assert foreign_titles(discover_file(str(path)), version) == lent
    assert find("Lent", str(tmp_path)).path == str(tmp_path / "b.jsonl")


def test_leftovers_and_copies_are_as_recorded(tree: Path) -> None:
    problems: list[Problem] = []
    left = find_leftovers(str(tree), [ONE.upper()], problems)
    more = find_leftovers(str(tree), [ONE, GONE], [])
    read: list[int] = []
    files = list(Discovery(str(tree)).transcripts())
    same = find_copies(files, problems, read.append)
    assert_recorded(
        ANSWERS / "tree_upkeep.json",
        _shown(tree, {"left": left, "more": more, "copies": same, "read": read, "problems": problems}),
    )
    assert is_config_folder(str(tree))
    assert not is_config_folder(str(tree / "projects"))


def test_copies_are_told_by_size_ends_and_all_their_bytes(tmp_path: Path) -> None:
    edge = 1 << 16
    data = b"a" * edge + b"b" * edge + b"c" * edge
    cases = {"one": data, "two": data, "middle": data[:edge] + b"x" + data[edge + 1 :],
             "start": b"x" + data[1:], "end": data[:-1] + b"x", "short": data[:-1], "none": b"",
             "none too": b"", "small": b"s", "small too": b"s"}  # fmt: skip
    found: list[DiscoveredFile] = []
    for name, content in cases.items():
        path = tmp_path / f"{name}.jsonl"
        path.write_bytes(content)
        found.append(discover_file(str(path)))
    os.link(tmp_path / "one.jsonl", tmp_path / "linked.jsonl")
    found.append(discover_file(str(tmp_path / "linked.jsonl")))
    groups = [[Path(each.path).stem for each in group] for group in find_copies(found, [])]
    assert groups == [["one", "two"], ["small", "small too"]]
    (tmp_path / "small.jsonl").unlink()
    problems: list[Problem] = []
    assert len(find_copies(found, problems)) == 1
    assert [problem.kind for problem in problems] == ["unreadable"]


def test_the_days_of_the_clients_cleanup(tmp_path: Path) -> None:
    assert cleanup_days(str(tmp_path)) == 30
    for text, days in ((b"{}", 30), (b'{"cleanupPeriodDays":9}', 9), (b'{"cleanupPeriodDays":0}', 0),
                       (b'{"cleanupPeriodDays":-1}', 30), (b'{"cleanupPeriodDays":"9"}', 30),
                       (b'{"cleanupPeriodDays":1.5}', 1.5), (b"{", 30), (b"[]", 30), (b"", 30)):  # fmt: skip
        (tmp_path / "settings.json").write_bytes(text)
        assert cleanup_days(str(tmp_path)) == days, text


def test_first_bytes_say_whether_and_of_whom_a_transcript_is() -> None:
    heads = (
        b"", b"x", b'{"parentUuid":null}', b'{"isSidechain" : true}', b'{"type":"x"}', b'{"sessionId":"s"}',
        b'{"type":"x","sessionId":"s"}', b'{"type":"x","leafUuid":"s"}', b'{"type":"x","messageId":"s"}',
        b'{"parentUuid":1,"pastedContents":{}}', b'{"a":"\\"parentUuid\\":"}', b'bad\n{"sessionId":"t"}\n',
        b'{"sessionId":""}\n{"sessionId":"u"}', b'{"sessionId":7}', b'{"sessionId":"cut","x":"' + b"y" * 99,
        b'{"sessionId" : "a\xff","x":"', b'{"sessionId":"' + b"z" * 201 + b'","x":"', b"[" * 9999,
    )  # fmt: skip
    answers = {repr(head)[:70]: [is_transcript(head), session_id_in(head)] for head in heads}
    assert_recorded(ANSWERS / "heads.json", answers)


def test_files_and_errors_are_looked_at_without_harm(tree: Path, tmp_path: Path) -> None:
    problems: list[Problem] = []
    path = tmp_path / "a"
    path.write_bytes(b"x" * ((1 << 20) + 5))
    sizes = [len(peek(str(path), limit, problems) or b"") for limit in (0, 1, 1 << 20, 2 << 20)]
    assert sizes == [0, 1, 1 << 20, (1 << 20) + 5]
    assert problems == []
    assert peek(str(tmp_path), 9, problems) is None
    assert peek(str(tmp_path / "b"), 9, problems) is None
    assert peek("a\0b", 9, problems) is None
    assert [(each.kind, each.message) for each in problems] == [
        ("special", "not a regular file"),
        ("missing", "No such file or directory"),
        ("missing", "invalid file name"),
    ]
    problems.clear()
    assert list_folder(str(path), problems) == []
    kinds = [problem_from_error("/x", OSError(code, "said")).kind for code in (2, 13, 1, 40, 5)]
    assert kinds == ["missing", "denied", "denied", "loop", "unreadable"]
    assert problem_from_error("/x", OSError()) == Problem("unreadable", "/x", "")
    assert [entry.name for entry in list_folder(str(tree / "plans"), [])] == ["a-plan.md", "x.txt"]
    below = list(files_below(str(tree / "plans"), [], prefix="plans", name_prefix="a"))
    assert [Path(each.path).name for each in below] == ["a-plan.md"]
    assert list(files_below(str(tree / "none"), problems, prefix="x")) == []


def test_folders_and_their_names() -> None:
    assert path_context("/a/b/c/d/e/f/g/h") == ("c", "d", "e", "f", "g", "h")
    assert path_context("/a") == ("a",)
    assert path_context("/") == ()
    for path, config in (("/h/.claude/projects/p/s.jsonl", "/h/.claude"), ("/projects/p/s.jsonl", "/"),
                         ("/h/projects/s.jsonl", ""), ("/h/conversations/p/s.jsonl", "/h"), ("/h/x/y/s", ""),
                         ("/a/projects/b/projects/c/s.jsonl", "/a/projects/b")):  # fmt: skip
        assert config_folder_of(path) == config, path
