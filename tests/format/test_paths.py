"""How folders and files are named, forwards and backwards."""

import json
import re
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders.paths import agent_path, dialect_session_path, file_history_path, task_path, todo_name

from steno.format import paths
from steno.format.paths import CONFIG_FOLDERS, PathInfo, classify_path, classify_transcript

SID = "62ecc684-5437-43ff-95cf-5c331fca7ea1"
# The folder in which the real client made the two hashes below.
WORK = str(PurePosixPath("/", "tmp", "oracle", "work"))
LONG = "/".join((WORK, *(f"longcomponent{n:02d}" for n in range(16))))
ANY_PATH = st.text(st.characters(), max_size=300)


@pytest.mark.parametrize(
    ("path", "slug"),
    [
        ("/home/ada/work", "-home-ada-work"),
        ("/home/ada/work/dot.dir/under_score/sp ace", "-home-ada-work-dot-dir-under-score-sp-ace"),
        ("/home/ada/work/ünï/日本", "-home-ada-work--n----"),
        ("/home/ada/work/A@b+c~d,e", "-home-ada-work-A-b-c-d-e"),
        ("C:\\Users\\ada", "C--Users-ada"),
        ("/a/\N{GRINNING FACE}", "-a---"),
        ("", ""),
    ],
)
def test_a_slug_has_one_dash_for_each_character_that_is_no_letter_or_digit(path: str, slug: str) -> None:
    assert paths.slug_for_path(path) == slug


def test_a_long_slug_is_cut_and_ends_in_the_hash_that_the_real_client_computed() -> None:
    slug = paths.slug_for_path(LONG)
    assert slug.endswith("-longcomponent10-longcom-7lz9xt")
    assert len(slug) == 200 + len("-7lz9xt")


def test_a_path_of_exactly_two_hundred_characters_is_not_cut() -> None:
    assert len(paths.slug_for_path("/" + "a" * 199)) == 200
    assert len(paths.slug_for_path("/" + "a" * 200)) > 200


def test_the_hash_counts_astral_characters_as_two_code_units() -> None:
    # Computed with charCodeAt and 32-bit arithmetic, as the client's language does it.
    assert paths.slug_for_path("/" + "\N{GRINNING FACE}" * 150) == "-" * 200 + "-cmv0xd"


@given(ANY_PATH)
def test_a_slug_is_always_a_plain_and_bounded_name(path: str) -> None:
    slug = paths.slug_for_path(path)
    assert re.fullmatch(r"[A-Za-z0-9-]*", slug)
    assert len(slug) <= 200 + 1 + len("zik0zj")


@given(ANY_PATH)
def test_a_slug_of_a_short_slug_is_itself(path: str) -> None:
    slug = paths.slug_for_path(path)
    if len(slug) <= 200:
        assert paths.slug_for_path(slug) == slug


@given(st.text(st.characters(max_codepoint=0xFFFF), max_size=200))
def test_a_short_slug_is_as_long_as_its_path(path: str) -> None:
    assert len(paths.slug_for_path(path)) == len(path)


@given(ANY_PATH)
def test_the_first_candidate_is_the_slug_and_none_stands_twice(path: str) -> None:
    candidates = paths.slug_candidates(path)
    assert len(set(candidates)) == len(candidates)
    assert candidates[:1] == ((paths.slug_for_path(path),) if path else ())


def test_candidates_hold_every_published_rule() -> None:
    assert paths.slug_candidates("/home/ada/my.work") == (
        "-home-ada-my-work",
        "-home-ada-my.work",
        "home-ada-my-work",
        "home-ada-my.work",
        "_home_ada_my.work",
    )


def test_candidates_of_a_long_path_hold_the_unshortened_name_of_older_clients() -> None:
    assert LONG.replace("/", "-") in paths.slug_candidates(LONG)


@pytest.mark.parametrize(
    ("slug", "guess"),
    [
        ("-home-ada-work", "/home/ada/work"),
        ("-home-ada--claude-worktrees-wt9", "/home/ada/.claude/worktrees/wt9"),
        ("C--Users-ada", "C:\\Users\\ada"),
        ("home-ada-work", "/home/ada/work"),
        ("_home_ada_my-work", "/home/ada/my-work"),
        ("sample-project", "sample-project"),
        ("", ""),
    ],
)
def test_a_project_is_guessed_from_its_slug(slug: str, guess: str) -> None:
    assert paths.guess_project(slug) == guess


def test_the_guess_for_a_cut_slug_says_that_it_is_cut() -> None:
    guess = paths.guess_project(paths.slug_for_path(LONG))
    assert guess.endswith("/longcomponent10/longcom…")


@given(st.text())
def test_guessing_takes_any_name(name: str) -> None:
    assert isinstance(paths.guess_project(name), str)


@pytest.mark.parametrize(
    ("text", "yes"),
    [
        (SID, True),
        (SID.upper(), True),
        (SID + "\n", False),
        (SID[:-1], False),
        (SID.replace("-", ""), False),
        (SID.replace("6", "\N{FULLWIDTH DIGIT SIX}"), False),
        ("agent-a318043", False),
        ("", False),
    ],
)
def test_a_uuid_is_told_from_what_is_none(text: str, *, yes: bool) -> None:
    assert paths.is_uuid(text) is yes


@pytest.mark.parametrize(
    ("text", "yes"),
    [
        ("a318043", True),
        ("a200bfc76bb10d13c", True),
        ("0200bfc76bb10d13c", True),
        ("acode-review-200bfc76bb10d13c", True),
        ("test-hash-456", False),
        ("a31804", False),
    ],
)
def test_an_agent_id_is_told_from_what_is_none(text: str, *, yes: bool) -> None:
    assert paths.is_agent_id(text) is yes


def test_the_name_of_a_backup_is_the_one_the_real_client_gave() -> None:
    assert paths.file_history_name(f"{WORK}/new.txt", 2) == "015610783682da44@v2"


def place(role: paths.Role, **said: str) -> PathInfo:
    return PathInfo(role, **said)


SIDE = f"projects/-p/{SID}"
PLACES = {
    f"projects/-p/{SID}.jsonl": place("session", name=f"{SID}.jsonl", slug="-p", session_id=SID),
    "projects/-p/agent-a318043.jsonl": place("agent", name="agent-a318043.jsonl", slug="-p", agent_id="a318043"),
    f"{SIDE}/subagents/agent-acode-review-200bfc76bb10d13c.jsonl": place(
        "agent",
        name="agent-acode-review-200bfc76bb10d13c.jsonl",
        slug="-p",
        session_id=SID,
        agent_id="acode-review-200bfc76bb10d13c",
    ),
    f"{SIDE}/subagents/agent-a200bfc76bb10d13c.meta.json": place(
        "agent-meta", name="agent-a200bfc76bb10d13c.meta.json", slug="-p", session_id=SID, agent_id="a200bfc76bb10d13c"
    ),
    f"{SIDE}/subagents/workflows/wf_1/agent-a318043.jsonl": place(
        "agent", name="agent-a318043.jsonl", slug="-p", session_id=SID, agent_id="a318043", workflow="wf_1"
    ),
    f"{SIDE}/subagents/workflows/wf_1/journal.jsonl": place(
        "journal", name="journal.jsonl", slug="-p", session_id=SID, workflow="wf_1"
    ),
    f"{SIDE}/workflows/wf_1.json": place("workflow", name="wf_1.json", slug="-p", session_id=SID, workflow="wf_1"),
    f"{SIDE}/tool-results/toolu_01.txt": place("tool-result", name="toolu_01.txt", slug="-p", session_id=SID),
    f"{SIDE}/tool-results/br4kt0ka7.txt": place("tool-result", name="br4kt0ka7.txt", slug="-p", session_id=SID),
    f"{SIDE}/tool-results/mcp-ora-blob-1794724893339-x1.png": place(
        "tool-result", name="mcp-ora-blob-1794724893339-x1.png", slug="-p", session_id=SID
    ),
    f"{SIDE}/custom-title.json": place("custom-title", name="custom-title.json", slug="-p", session_id=SID),
    "projects/-p/memory/MEMORY.md": place("memory", name="MEMORY.md", slug="-p"),
    "projects/-p/memory/deep/x.md": place("memory", name="deep/x.md", slug="-p"),
    "projects/-p/sessions-index.json": place("sessions-index", name="sessions-index.json", slug="-p"),
    "conversations/_home_ada/2025-01-29T10-15-30.jsonl": place(
        "session", name="2025-01-29T10-15-30.jsonl", slug="_home_ada"
    ),
    f"file-history/{SID}/094de626321f00d3@v1": place("file-history", name="094de626321f00d3@v1", session_id=SID),
    "history.jsonl": place("history", name="history.jsonl"),
    f"todos/{SID}-agent-{SID}.json": place("todo", name=f"{SID}-agent-{SID}.json", session_id=SID),
    f"todos/{SID}-agent-a318043.json": place(
        "todo", name=f"{SID}-agent-a318043.json", session_id=SID, agent_id="a318043"
    ),
    f"tasks/{SID}/12.json": place("task", name="12", session_id=SID),
    f"tasks/{SID}/.lock": place("lock", name=".lock", session_id=SID),
    "plans/calm-brown-fox.md": place("plan", name="calm-brown-fox"),
    "paste-cache/0123456789abcdef.txt": place("paste", name="0123456789abcdef.txt"),
    "shell-snapshots/snapshot-bash-1.sh": place("shell-snapshot", name="snapshot-bash-1.sh"),
    "sessions/4711.json": place("live", name="4711"),
    "sessions/4711.key": place("credentials", name="4711.key"),
    ".credentials.json": place("credentials", name=".credentials.json"),
    f"debug/{SID}.txt": place("debug", name=f"{SID}.txt", session_id=SID),
    "debug/latest": place("debug", name="latest"),
    f"session-env/{SID}/hook-0.sh": place("session-env", name="hook-0.sh", session_id=SID),
    "settings.json": place("settings", name="settings.json"),
    "settings.local.json": place("settings", name="settings.local.json"),
    "CLAUDE.md": place("claude-md", name="CLAUDE.md"),
    "agents/review.md": place("agent-def", name="review"),
    "skills/pdf/SKILL.md": place("skill", name="pdf"),
    "commands/git/commit.md": place("command", name="git/commit"),
    "hooks/stop.sh": place("hook", name="stop.sh"),
    "jobs/j1/adopt.json": place("job", name="j1/adopt.json"),
    "plugins/config.json": place("plugin", name="config.json"),
    "telemetry/x.json": place("telemetry", name="x.json"),
    "cache/changelog.md": place("cache", name="changelog.md"),
    "todos/notes.txt": place("unknown", name="notes.txt"),
    "": place("unknown"),
}


@pytest.mark.parametrize("path", PLACES)
def test_a_path_of_the_config_folder_says_what_it_is(path: str) -> None:
    assert classify_path(path) == PLACES[path]


@pytest.mark.parametrize("path", [p for p in PLACES if p])
def test_folders_above_the_config_folder_change_nothing(path: str) -> None:
    assert classify_path(f"home/ada/.claude/{path}") == PLACES[path]
    assert classify_path(f"./{path}") == PLACES[path]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (f"fixtures/{SID}.jsonl", place("session", slug="fixtures", session_id=SID)),
        (
            f"fixtures/{SID}/subagents/agent-ac47f8c.jsonl",
            place("agent", slug="fixtures", session_id=SID, agent_id="ac47f8c"),
        ),
        (
            f"fixtures/{SID}/subagents/agent-ac47f8c.meta.json",
            place("agent-meta", slug="fixtures", session_id=SID, agent_id="ac47f8c"),
        ),
        ("a/b/agent-test-hash-456.jsonl", place("agent", slug="b", agent_id="test-hash-456")),
        ("a/b/full.jsonl", place("unknown", slug="b")),
        ("a/b/notes.md", place("unknown")),
    ],
)
def test_a_file_in_an_odd_place_is_known_by_its_own_name(path: str, expected: PathInfo) -> None:
    found = classify_path(path)
    assert (found.role, found.slug, found.session_id, found.agent_id) == (
        expected.role,
        expected.slug,
        expected.session_id,
        expected.agent_id,
    )


def test_the_names_of_config_folders_mean_nothing_for_transcripts_that_lie_anywhere() -> None:
    found = paths.classify_transcript(["hooks", f"{SID}.jsonl"])
    assert (found.role, found.slug) == ("session", "hooks")


@given(st.text(max_size=200))
def test_any_text_can_be_classified(path: str) -> None:
    assert isinstance(classify_path(path), PathInfo)
    assert isinstance(paths.classify_transcript([*path.split("/"), "x.jsonl"]), PathInfo)


WORD = st.text(st.characters(exclude_characters="/", exclude_categories=["Cs"]), min_size=1)
NAME = WORD.filter(lambda name: name not in {".", ".."})


@given(project=NAME, session=st.uuids().map(str), agent=NAME, workflow=NAME)
def test_what_is_built_is_what_is_read_back(project: str, session: str, agent: str, workflow: str) -> None:
    found = classify_path(paths.session_path(project, session))
    assert (found.role, found.slug, found.session_id) == ("session", project, session)
    for built in (
        agent_path(project, session, agent),
        agent_path(project, session, agent, workflow=workflow),
        agent_path(project, session, agent, next_to_session=True),
    ):
        assert (classify_path(built).role, classify_path(built).agent_id) == ("agent", agent)
        assert classify_path(paths.meta_path(built)).role == "agent-meta"
    assert classify_path(task_path(session, 3)).name == "3"
    assert classify_path(f"todos/{todo_name(session)}").session_id == session
    assert classify_path(file_history_path(session, "/x", 1)).session_id == session
    assert classify_path(dialect_session_path(project, "2025")).role == "session"
    assert classify_path(paths.tool_result_path(project, session, "x.txt")).role == "tool-result"
    assert classify_path(paths.plan_path("x")).name == "x"


@pytest.mark.corpus
def test_real_project_folders_are_named_by_the_cwd_in_their_records(shared: Path) -> None:
    compared = 0
    for file in shared.glob("corpus/real-client/*/*/projects/*/*.jsonl"):
        cwd = first_cwd(file)
        # The corpus was moved to another home after the hash of the long name was made, the
        # picker's sessions are written by hand with a foreign folder in one, and a session in a
        # worktree lies with its repository.
        if not cwd or "longcomponent" in cwd or {"picker", "tui_worktree"} & set(file.parts):
            continue
        compared += 1
        assert file.parent.name == paths.slug_for_path(cwd), file
    assert compared > 200


def first_cwd(file: Path) -> str:
    with file.open("rb") as lines:
        for line in lines:
            cwd = json.loads(line).get("cwd")
            if isinstance(cwd, str):
                return cwd
    return ""


@pytest.mark.corpus
def test_every_file_of_the_real_config_folders_has_a_role(shared: Path) -> None:
    roles: set[str] = set()
    for config in shared.glob("corpus/real-client/*/*"):
        for file in config.rglob("*"):
            if file.is_file():
                found = classify_path(file.relative_to(config).as_posix())
                assert found.role != "unknown", file
                roles.add(found.role)
    assert {"session", "agent", "agent-meta", "todo", "task", "tool-result", "history"} <= roles


@pytest.mark.parametrize(
    ("path", "place"),
    [
        (f"{SID}.jsonl", PathInfo("session", f"{SID}.jsonl", "", SID)),
        (f"p/{SID}.jsonl", PathInfo("session", f"{SID}.jsonl", "p", SID)),
        ("history.jsonl", PathInfo("history", "history.jsonl")),
        ("x/history.jsonl", PathInfo("history", "history.jsonl", "x")),
        ("p/x/history.jsonl", PathInfo("history", "history.jsonl", "x")),
        ("odd.jsonl", PathInfo("unknown", "odd.jsonl")),
        ("conversations/p/odd.jsonl", PathInfo("session", "odd.jsonl", "p")),
        ("a/conversations/p/odd.jsonl", PathInfo("session", "odd.jsonl", "p")),
        ("conversations/odd.jsonl", PathInfo("unknown", "odd.jsonl", "conversations")),
        ("agent-a1.jsonl", PathInfo("agent", "agent-a1.jsonl", agent_id="a1")),
        ("agent-.jsonl", PathInfo("unknown", "agent-.jsonl")),
        ("p/agent-a1.jsonl", PathInfo("agent", "agent-a1.jsonl", "p", agent_id="a1")),
        ("subagents/agent-a1.jsonl", PathInfo("agent", "agent-a1.jsonl", agent_id="a1")),
        ("s/subagents/agent-a1.jsonl", PathInfo("agent", "agent-a1.jsonl", "", "s", "a1")),
        ("p/s/subagents/agent-a1.jsonl", PathInfo("agent", "agent-a1.jsonl", "p", "s", "a1")),
        ("p/s/subagents/workflows/w/agent-a1.jsonl", PathInfo("agent", "agent-a1.jsonl", "p", "s", "a1", "w")),
        ("p/s/subagents/workflows/agent-a1.jsonl", PathInfo("agent", "agent-a1.jsonl", "p", "s", "a1")),
        ("p/s/subagents/other/w/agent-a1.jsonl", PathInfo("agent", "agent-a1.jsonl", "p", "s", "a1")),
        ("p/s/subagents/workflows/w/journal.jsonl", PathInfo("journal", "journal.jsonl", "p", "s", workflow="w")),
        ("p/s/subagents/journal.jsonl", PathInfo("unknown", "journal.jsonl", "p", "s")),
    ],
)
def test_a_transcript_is_known_by_its_name_and_the_folders_around_it(path: str, place: PathInfo) -> None:
    assert classify_transcript(path.split("/")) == place


def test_the_folders_without_transcripts_are_these() -> None:
    assert sorted(CONFIG_FOLDERS) == [
        *("agents", "cache", "commands", "daemon", "debug", "file-history", "hooks", "ide"),
        *("image-cache", "jobs", "logs", "paste-cache", "plans", "plugins", "rules"),
        *("session-env", "sessions", "shell-snapshots", "skills", "statsig", "tasks"),
        *("telemetry", "todos"),
    ]
