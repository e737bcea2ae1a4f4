"""Two sessions side by side: what they share, and where they part."""

from pathlib import Path

import pytest
from tests.builders.builder import Session as Made
from tests.builders.stories import invoice, tidegauge
from tests.builders.stories.kit import bash, begin
from tests.web.compared_sessions import CWD, PROMPT, first_try, second_try

from steno.format.source import BytesSource
from steno.report.actions.action import SuiteCounts, parse_test_counts
from steno.report.compare import Comparison, IndexedFacts, SessionSide, build_side, compare
from steno.report.compare.comparison import current_action_text
from steno.report.humanize import relative_to_project
from steno.session.session import Session
from steno.session.transcript import load
from steno.session.turns.session_facts import SessionCounts
from steno.store.discovery import discover_file
from steno.store.session_lookup import open_file_session


def _opened(made: Made) -> Session:
    return Session(load(BytesSource(made.bytes())), name=made.session_id)


def _side(made: Made, project: str = CWD, nodes: int = 60_000) -> SessionSide:
    return build_side(_opened(made), IndexedFacts(project=project), nodes=nodes)


@pytest.fixture(scope="module")
def tries() -> Comparison:
    return compare(_side(first_try()), _side(second_try()))


# Sessions


def test_two_tries_of_one_task_part_where_they_do_something_else(tries: Comparison) -> None:
    assert tries.relation == "prompt"
    assert tries.shared is None
    assert tries.divergence is not None
    assert tries.divergence.steps == 4
    assert current_action_text(tries.divergence.a) == "edits papercrane/text/shape.py"
    assert current_action_text(tries.divergence.b) == "runs uv run papercrane glyphs --missing"
    assert tries.common == 5
    assert [part.common for part in tries.prompts.parts] == [True, False]


def test_files_and_commands_are_told_for_both(tries: Comparison) -> None:
    files = {name: (a, b) for name, a, b in tries.files}
    a, b = files["papercrane/text/shape.py"]
    assert a is not None
    assert b is not None
    assert (a.edits, a.added, a.removed, b.edits, b.reads) == (2, 2, 2, 0, 1)
    assert files["tests/fonts/test_subset.py"][0] is None
    commands = {name: (a, b) for name, a, b in tries.commands}
    a, b = commands["uv run pytest -q"]
    assert a is not None
    assert b is not None
    assert (a.times, a.failed, a.tests) == (2, 2, SuiteCounts(118, 3))
    assert (b.times, b.failed, b.tests) == (1, 0, SuiteCounts(121, 0))
    assert [name for name, one, other in tries.files if one and other] == [name for name, *_ in tries.files[:2]]


def test_who_did_better_is_said_where_less_is_better(tries: Comparison) -> None:
    better = {figure.name: figure.better for figure in tries.figures}
    assert better["Failed steps"] == better["Failing tests"] == better["Turns"] == "b"
    assert better["Steps"] == better["Cache hit rate"] == better["Lines added"] == ""


def test_a_fork_shares_its_beginning_record_by_record() -> None:
    storm, fork = tidegauge.stories()[2:4]
    found = compare(_side(storm, storm.cwd), _side(fork, fork.cwd))
    assert (found.relation, found.forked) == ("fork", "b")
    assert found.shared is not None
    assert (found.shared.turns, found.shared.steps) == (3, 9)
    assert found.divergence is not None
    assert found.divergence.a is None
    assert {f.better for f in found.figures if f.unit in ("money", "tokens")} == {""}
    assert compare(_side(fork, fork.cwd), _side(storm, storm.cwd)).forked == "a"


def test_the_same_work_in_another_folder_is_the_same_path() -> None:
    here, there = _side(second_try()), _side(second_try("/srv/wt/2"), "/srv/wt/2")
    found = compare(here, there)
    assert found.divergence is None
    assert found.common == here.steps == 8


def test_a_session_beside_itself_never_parts() -> None:
    side = _side(first_try())
    found = compare(side, side)
    assert found.divergence is None
    assert [part.common for part in found.path.parts] == [True]


def test_of_a_huge_session_the_beginning_is_told_and_the_rest_counted() -> None:
    made = first_try()
    whole, some = _side(made), _side(made, nodes=12)
    assert whole.cut == 0
    assert some.cut > 0
    assert [item.key for item in some.path] == [item.key for item in whole.path][: len(some.path)]
    few = build_side(_opened(made), IndexedFacts(project=CWD), items=3)
    assert (len(few.path), few.cut) == (3, len(whole.path) - 3)
    assert few.steps == whole.steps


def test_a_huge_session_is_counted_by_the_index_and_stands_as_its_end_says() -> None:
    known = IndexedFacts(project=CWD, counted=SessionCounts(turns=77, steps=500, failed=9))
    some = build_side(_opened(first_try()), known, nodes=12)
    assert (some.turns, some.steps, some.failed) == (77, 500, 9)
    assert some.standing == _side(first_try()).standing == "finished"
    whole = build_side(_opened(first_try()), known)
    assert (whole.turns, whole.steps, whole.failed) == (2, 8, 2)


def test_sub_agents_that_did_too_much_are_counted_and_not_read(tmp_path: Path) -> None:
    story = next(each for each in invoice.stories() if len(each.transcripts) == 3)
    for name, data in story.files().items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    session = open_file_session(discover_file(str(tmp_path / story.file)))
    with session:
        agents = sum(len(thread.nodes) for thread in session.all_agents)
        whole = build_side(session, IndexedFacts(project=story.cwd))
        some = build_side(session, IndexedFacts(project=story.cwd), nodes=agents - 1)
    assert whole.agents == some.agents == 3
    assert (whole.unheard, some.unheard) == (0, 1)


def test_prompts_belong_together_on_the_path_as_they_do_in_their_list() -> None:
    made = [begin(seed=f"order-{number}", cwd=CWD) for number in range(2)]
    for each, prompts in zip(made, (("First.", "Then."), ("Then.",)), strict=True):
        for place, prompt in enumerate(prompts):
            each.user(prompt)
            if not place:
                for word in ("one", "two", "three"):
                    each.assistant(bash(f"echo {word}", "Say it")).result(word)
            each.assistant("Done.")
    a, b = (_side(each.exit()) for each in made)
    found = compare(a, b)
    pairs = [
        (a.path[one].subject, b.path[other].subject)
        for part in found.path.parts
        if part.common
        for one, other in zip(part.a, part.b, strict=True)
        if a.path[one].is_prompt
    ]
    assert pairs == [("Then.", "Then.")]


def test_an_empty_session_can_be_compared() -> None:
    nothing = build_side(Session(load(BytesSource(b"")), name="x"), IndexedFacts())
    found = compare(nothing, _side(second_try()))
    assert found.common == 0
    assert found.divergence is not None
    assert found.divergence.a is None
    assert compare(nothing, nothing).divergence is None


@pytest.mark.parametrize(
    ("outcome", "numbers"),
    [
        ("43 passed", (43, 0)),
        ("exit 1, 3 failed, 118 passed", (118, 3)),
        ("Ran 7 tests, OK", (7, 0)),
        ("Ran 7 tests, FAILED (failures=2, errors=1)", (4, 3)),
        ("12 passing", (12, 0)),
        ("43 lines", None),
        ("", None),
    ],
)
def test_what_a_test_runner_says_is_read_as_numbers(outcome: str, numbers: tuple[int, int] | None) -> None:
    found = parse_test_counts(outcome)
    assert (None if found is None else (found.passed, found.failed)) == numbers


@pytest.mark.parametrize(
    ("command", "printed", "said", "failing"),
    [
        ("go test ./...", "ok  \tgravel/mesh\t0.21s", "passed", 0),
        ("go test ./...", "--- FAIL: TestMesh (0.00s)\nFAIL\tgravel/mesh\t0.02s", "1 failed", 1),
        ("mvn -q test", "Tests run: 12, Failures: 2, Errors: 1, Skipped: 0", "3 failed, 9 passed", 3),
        ("cat notes.md", "43 passed", None, None),
    ],
)
def test_what_tests_came_to_at_the_end_is_read_from_what_they_printed(
    command: str, printed: str, said: str | None, failing: int | None
) -> None:
    made = begin().user("Go.")
    made.assistant(bash("python -m pytest", "Test")).result("1 failed, 7 passed in 0.1s")
    if said is None:
        made = begin().user("Go.")
    made.assistant(bash(command, "Test")).result(printed)
    tests = _side(made).last_tests
    assert (None if tests is None else str(tests)) == said
    assert (None if tests is None else tests.failing) == failing


def test_a_path_is_told_from_the_project_on() -> None:
    assert relative_to_project("C:\\work\\a\\b.py", "C:\\work\\a") == "b.py"
    assert relative_to_project("/home/ada/other", "") == "/home/ada/other"


def test_every_real_session_can_be_laid_beside_the_next(shared: Path) -> None:
    files = sorted((shared / "corpus").rglob("*.jsonl"))
    files = [path for path in files if 0 < path.stat().st_size < 400_000][:120]
    assert files
    before: SessionSide | None = None
    for path in files:
        session = open_file_session(discover_file(str(path)))
        with session:
            side = build_side(session, IndexedFacts(project=session.project))
        found = compare(side, before or side)
        assert [place for part in found.path.parts for place in part.a] == [*range(len(side.path))]
        before = side


def test_the_first_words_are_what_was_asked() -> None:
    assert _side(first_try()).path[0].subject == PROMPT
