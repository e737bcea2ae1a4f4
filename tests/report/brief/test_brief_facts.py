"""What a brief says of a session: asked, done, decided, gone wrong, left open."""

import pytest
from tests.builders import Json, Session, session, text, tool
from tests.session.open_sessions import opened

from steno.report.brief import Brief, as_markdown, build_brief
from steno.report.brief.brief_document import OpenItem
from steno.session.session import Session as Made

_ROOM = "/home/ada/tidegauge"
_FILE = f"{_ROOM}/src/chart.py"
_REFUSED = (
    "The user doesn't want to proceed with this tool use. The tool use was rejected. To tell you how "
    "to proceed, the user said:\nuse the staging host"
)


def bash(command: str) -> Json:
    return tool("Bash", command=command)


def edit(path: str = _FILE, old: str = "a", new: str = "b") -> Json:
    return tool("Edit", file_path=path, old_string=old, new_string=new, replace_all=False)


def write(path: str, content: str = "x\n") -> Json:
    return tool("Write", file_path=path, content=content)


def did(one: Session, call: Json, result: str | None = None, *, error: bool = False) -> Session:
    return one.assistant(call).result(result, error=error)


def brief(one: Session, last: str = "Done.") -> Brief:
    return build_brief(opened(one.assistant(last).done()))


def opens(told: Brief) -> list[tuple[str, str]]:
    return [(each.kind, each.text) for each in told.open]


# Asked and answered


def test_each_turn_has_what_was_asked_said_meanwhile_and_answered() -> None:
    one = session(seed=1).user("Flip the chart.").assistant(bash("ls")).result("a")
    one.assistant("Flipped.").done().user("And the legend?")
    told = brief(one, "Too.")
    assert [(turn.number, turn.text, turn.answer) for turn in told.turns] == [
        (1, "Flip the chart.", "Flipped."),
        (2, "And the legend?", "Too."),
    ]
    assert told.turns[0].uuid == one.prompts[0]
    assert told.turns[0].work.tools == {"Bash": 1}
    assert told.turns[1].work.tools == {}


def test_only_turns_of_the_time_that_is_asked_for_are_told_and_the_rest_is_counted() -> None:
    one = session(seed=1).user("One.").assistant(write(f"{_ROOM}/a.py")).result()
    one.assistant("1").done().user("Two.").assistant(write(f"{_ROOM}/b.py")).result()
    made = opened(one.assistant("2").done())
    start = made.turns()[1].started
    assert start is not None
    since = build_brief(made, since=start.timestamp())
    until = build_brief(made, until=start.timestamp())
    assert ([turn.text for turn in since.turns], since.elsewhere) == (["Two."], 1)
    assert ([turn.text for turn in until.turns], until.elsewhere) == (["One."], 1)
    assert [each.path for each in since.work.files] == ["b.py"]
    assert [each.path for each in until.work.files] == ["a.py"]


def test_turns_that_are_told_elsewhere_are_left_out() -> None:
    one = session(seed=1).user("One.").assistant("1").done().user("Two.").assistant("2").done()
    told = build_brief(opened(one), skipped_prompts={one.prompts[0]})
    assert ([turn.text for turn in told.turns], told.elsewhere) == (["Two."], 1)


def test_a_title_that_is_a_prompt_of_several_lines_is_told_further() -> None:
    told = brief(session(seed=1).user("Do this:\n\n- flip the chart"))
    assert told.title == "Do this: - flip the chart"


def test_a_session_that_nothing_names_is_called_after_its_first_prompt() -> None:
    one = session(seed=1).user("Look.").assistant(tool("Agent", description="d", prompt="Find it"))
    one.agent(lambda child: child.assistant("Found."))
    (file,) = opened(one.assistant("Done.").done()).agent_files
    told = build_brief(Made(file.transcript, name="agent-a1"))
    assert (told.title, [turn.text for turn in told.turns]) == ("Find it", ["Find it"])


def test_a_shell_command_of_the_user_that_led_to_no_answer_is_idle_and_not_told() -> None:
    command = "<command-name>/flip</command-name><command-args></command-args>"
    one = session(seed=1).user("<bash-input>make it so</bash-input>")
    one.user("<bash-stdout>fine</bash-stdout><bash-stderr></bash-stderr>")
    told = brief(one.user(command), "Flipped.")
    assert [turn.idle for turn in told.turns] == [True, False]
    assert "make it so" not in as_markdown(told).partition("Turns")[2]


def test_turns_that_overlap_are_worked_on_once() -> None:
    one = session(seed=1).user("One.").assistant("1").turn_duration(60_000)
    one.user("Two.").assistant("2").turn_duration(60_000).done()
    made = opened(one)
    first, second = made.turns()
    assert first.started is not None
    assert second.started is not None
    apart = (second.started - first.started).total_seconds()
    assert 0 < apart < 60
    assert build_brief(made).seconds == pytest.approx(60 + apart, abs=0.01)


# Done


def test_changed_files_have_their_lines_and_are_named_from_the_project_on() -> None:
    one = session(seed=1).user("Go.")
    did(one, write(_FILE, "a\nb\nc\n"))
    did(one, edit(_FILE, "b\n", "B\nBB\n"))
    did(one, edit("/etc/hosts", "x", "y"), "no", error=True)
    files = brief(one).work.files
    assert [(each.path, each.edits, each.added, each.removed) for each in files] == [("src/chart.py", 2, 5, 1)]


def test_commands_are_told_with_their_outcome_and_mere_looks_are_only_counted() -> None:
    one = session(seed=1).user("Go.")
    did(one, bash("ls -la && git status | head"), "x")
    did(one, bash(f"cd {_ROOM} && npm install 2>&1 | tail -5"), "added 3")
    did(one, bash("npm install"), "added 0")
    did(one, bash("docker compose up"), "Exit code 125\nno daemon", error=True)
    work = brief(one).work
    assert [(each.command, each.state, each.times) for each in work.commands] == [
        ("npm install", "ok", 2),
        ("docker compose up", "failed", 1),
    ]
    assert work.looks == 1


def test_tests_are_told_with_their_last_result_and_how_often_they_failed() -> None:
    one = session(seed=1).user("Go.")
    did(one, bash("pytest -q"), "Exit code 1\n2 failed, 5 passed in 0.1s", error=True)
    did(one, edit())
    did(one, bash("pytest -q"), "7 passed in 0.1s")
    tests = brief(one).work.tests
    assert [(each.command, each.ok, each.passed, each.failed) for each in tests] == [("pytest -q", True, 7, 0)]
    assert (tests[0].times, tests[0].bad) == (2, 1)


def test_tests_behind_a_pipe_that_ends_well_are_still_seen_to_fail() -> None:
    one = session(seed=1).user("Go.")
    did(one, bash("go test ./... 2>&1 | tail -20"), "--- FAIL: TestTide (0.00s)\nFAIL\texample/tide")
    tests = brief(one).work.tests
    assert [(each.command, each.ok, each.failed) for each in tests] == [("go test ./...", False, 1)]


@pytest.mark.parametrize(
    ("command", "printed", "passed"),
    [
        ("go test ./... | grep -A 3 Tide", "", None),
        ("go test ./... | tail -2", "ok  \ttide/chart\t0.4s", True),
        ("mise run test | tail", "mise ERROR no tasks defined", False),
        ("make test", "", True),
    ],
)
def test_tests_whose_output_says_nothing_are_not_said_to_have_passed(
    command: str, printed: str, *, passed: bool | None
) -> None:
    one = session(seed=1).user("Go.")
    work = brief(did(one, bash(command), printed)).work
    assert [each.ok for each in work.tests] == ([] if passed is None else [passed])
    assert len(work.commands) == (passed is None)


@pytest.mark.parametrize(
    ("command", "printed", "numbers"),
    [
        ("mvn test", "Tests run: 12, Failures: 2, Errors: 1, Skipped: 0", (False, 9, 3)),
        ("phpunit", "OK (12 tests, 30 assertions)", (True, 12, 0)),
        ("phpunit", "Tests: 12, Assertions: 30, Failures: 2.", (False, 10, 2)),
        ("bundle exec rspec", "10 examples, 2 failures", (False, 8, 2)),
        ("dotnet test", "Passed!  - Failed:     0, Passed:    12, Skipped:", (True, 12, 0)),
        ("python -m unittest", "Ran 12 tests in 0.1s\n\nFAILED (errors=1)", (False, 11, 1)),
        ("deno test", "ok | 12 passed | 0 failed (3s)", (True, 12, 0)),
        ("node --test", "# tests 3\n# pass 2\n# fail 1", (False, 2, 1)),
        ("npx playwright test", "  2 failed\n    a\n    b\n  10 passed (3s)", (False, 10, 2)),
        ("npx playwright test", "  10 passed (3s)", (True, 10, 0)),
    ],
)
def test_the_numbers_of_many_runners_are_read(command: str, printed: str, numbers: tuple[bool, int, int]) -> None:
    one = did(session(seed=1).user("Go."), bash(command), printed, error=not numbers[0])
    (found,) = brief(one).work.tests
    assert (found.ok, found.passed, found.failed) == numbers


def test_a_look_at_what_tests_said_is_no_test() -> None:
    one = did(session(seed=1).user("Go."), bash("cat log.txt"), "3 failed, 12 passed in 2s")
    told = brief(one)
    assert (told.work.tests, told.open) == ((), ())


def test_a_rehearsed_push_is_none() -> None:
    printed = "[main abcdef1] Flip it\n 1 file changed, 1 insertion(+)"
    one = did(session(seed=1).user("Go."), bash("git commit -m x && git push --dry-run"), printed)
    assert [each.pushed for each in brief(one).work.commits] == [False]


def test_commits_come_from_what_git_printed_and_know_of_a_push_behind_them() -> None:
    one = session(seed=1).user("Go.")
    did(one, write(_FILE))
    said = "[main 1a2b3c4] Flip the chart\n 1 file changed, 2 insertions(+), 1 deletion(-)"
    did(one, bash("git add -A && git commit -m 'Flip the chart'"), said)
    did(one, bash("git push origin main"), "To example.com\n   0..1  main -> main")
    did(one, bash("git commit -qm 'Second thoughts' --allow-empty"), "")
    made = brief(one).work.commits
    assert [(c.hash, c.subject, c.files, c.added, c.removed, c.pushed) for c in made] == [
        ("1a2b3c4", "Flip the chart", 1, 2, 1, True),
        ("", "Second thoughts", 0, 0, 0, False),
    ]


def test_an_amended_commit_counts_once_and_a_rejected_push_is_none() -> None:
    one = session(seed=1).user("Go.")
    did(one, bash("git commit -m One"), "[main 1a2b3c4] One\n 1 file changed, 1 insertion(+)")
    did(one, bash("git commit --amend -m Two"), "[main 5d6e7f8] Two\n 1 file changed")
    did(one, bash("git push || true"), " ! [rejected] main -> main (fetch first)")
    made = brief(one).work.commits
    assert [(each.hash, each.subject, each.pushed) for each in made] == [("5d6e7f8", "Two", False)]


def test_an_amended_commit_has_its_size() -> None:
    one = session(seed=1).user("Go.")
    printed = "[main 1234abc] Flip it\n Date: Fri Sep 19 16:32:38 2025 -0700\n 6 files changed, 8 insertions(+)"
    did(one, bash("git commit --amend --no-edit"), printed)
    (found,) = brief(one).work.commits
    assert (found.hash, found.files, found.added) == ("1234abc", 6, 8)


def test_a_line_like_a_commit_that_another_program_printed_is_none() -> None:
    one = session(seed=1).user("Go.")
    did(one, bash("cat log.txt"), "[main 1a2b3c4] Flip the chart")
    assert brief(one).work.commits == ()


def test_pull_requests_are_found_where_they_are_made_and_where_the_client_links_them() -> None:
    one = session(seed=1).user("Go.")
    url = "https://example.com/ada/tidegauge/pull/7"
    did(one, bash("gh pr view 3"), "https://example.com/ada/tidegauge/pull/3")
    did(one, bash("gh pr create --title 'Flip it' --body x"), f"Creating…\n{url}")
    one.pr_link(7, "ada/tidegauge").pr_link(8, "ada/tidegauge")
    made = brief(one).work.pulls
    assert [(each.url, each.title) for each in made] == [
        (url, "Flip it"),
        ("https://example.com/ada/tidegauge/pull/8", ""),
    ]


def test_a_sub_agent_has_its_task_steps_and_report_and_its_files_count() -> None:
    def work(child: Session) -> None:
        child.assistant(write(f"{_ROOM}/agent.py")).result()
        child.assistant(bash("pytest -q")).result("3 passed in 0.1s")
        child.assistant("Wrote agent.py.")

    one = session(seed=1).user("Go.")
    call = tool("Agent", description="Write it", prompt="Write agent.py", subagent_type="writer")
    told = brief(one.assistant(call).agent(work))
    (helper,) = told.work.helpers
    assert (helper.kind, helper.task, helper.steps, helper.changed) == ("writer", "Write it", 2, 1)
    assert helper.report == "Wrote agent.py."
    assert [each.path for each in told.work.files] == ["agent.py"]
    assert [each.passed for each in told.work.tests] == [3]
    assert told.work.tools == {"Agent": 1}


# Decided


def test_an_approved_plan_answers_and_refusals_are_decisions() -> None:
    one = session(seed=1).user("Go.")
    did(one, tool("ExitPlanMode", plan="# Plan\n1. Flip"), "User has approved your plan.")
    ask = {"question": "Which colour?", "header": "Colour", "options": [], "multiSelect": False}
    answers = {"questions": [ask], "answers": {"Which colour?": "Red"}, "annotations": {}}
    one.assistant(tool("AskUserQuestion", questions=[ask])).result("answered", detail=answers)
    did(one, bash("curl https://prod.example.com"), _REFUSED, error=True)
    found = brief(one).work.decisions
    assert [(each.kind, each.about, each.text) for each in found] == [
        ("plan", "", "# Plan\n1. Flip"),
        ("answer", "Which colour?", "Red"),
        ("refused", "Bash curl https://prod.example.com", "use the staging host"),
    ]


def test_a_plan_that_was_turned_down_is_no_decision() -> None:
    one = session(seed=1).user("Go.")
    did(one, tool("ExitPlanMode", plan="# Plan"), "Exit plan mode?", error=True)
    assert brief(one).work.decisions == ()


def test_answers_of_old_clients_are_read_from_their_words() -> None:
    one = session("2.0.76", seed=1).user("Go.")
    ask = {"question": "Which colour?", "header": "Colour", "options": [], "multiSelect": False}
    said = 'User has answered your questions: "Which colour?"="Red". You can now continue.'
    one.assistant(tool("AskUserQuestion", questions=[ask])).result(said, detail=said)
    (found,) = brief(one).work.decisions
    assert (found.about, found.text) == ("Which colour?", "Red")


def test_sentences_that_state_a_decision_are_kept_and_questions_and_code_are_not() -> None:
    one = session(seed=1).user("Go.")
    one.assistant(text("Let me look.\n```\nI decided to be code, and nothing else.\n```"), bash("ls"))
    one.result("x").assistant(text("I decided to keep SQLite, since it is there."), bash("ls"))
    told = brief(one.result("x"), "Should we go with Postgres instead of SQLite? I decided nothing?")
    assert [(each.kind, each.text) for each in told.work.decisions] == [
        ("said", "I decided to keep SQLite, since it is there.")
    ]


@pytest.mark.parametrize(
    "said",
    [
        "I went with SQLite rather than Postgres.",
        "Ich habe mich für SQLite entschieden, weil es schon da ist.",
        "J'ai choisi de garder SQLite, car il est déjà là.",
        "He decidido usar SQLite en lugar de Postgres.",
        "Decidi manter o SQLite, porque já está lá.",
        "Ho deciso di usare SQLite invece di Postgres.",
        "We hebben besloten SQLite te houden.",
        "Мы решили оставить SQLite, он уже есть.",
        "我决定使用 SQLite 而不是 Postgres。",
        "SQLite を採用しました。",
        "SQLite를 사용하기로 결정했습니다.",
    ],
)
def test_decisions_are_understood_in_many_languages(said: str) -> None:
    told = brief(session(seed=1).user("Go."), f"1\\. ok\n\n- {said}")
    assert [each.text for each in told.work.decisions] == [said]


@pytest.mark.parametrize(
    "said",
    [
        "Wenn du möchtest, verwende ich SQLite, weil es da ist.",
        "Soll ich mich für SQLite entschieden haben?",
        "Si vous voulez, on va garder SQLite, car il est là.",
        "Quizás voy a usar SQLite porque está ahí.",
        "如果需要,我决定使用 SQLite 数据库。",
        "SQLite を採用しますか\uff1f はい。",
    ],
)
def test_what_is_only_weighed_is_no_decision(said: str) -> None:
    assert brief(session(seed=1).user("Go."), said).work.decisions == ()


# Gone wrong


def test_a_failure_is_solved_when_the_same_program_works_later_and_after_which_changes() -> None:
    one = session(seed=1).user("Go.")
    did(one, bash("npm run build"), "Exit code 1\nsrc/a.ts(1,2): error TS2322: no", error=True)
    did(one, bash("npm run build -- -v"), "Exit code 1\nsrc/a.ts(1,2): error TS1: no", error=True)
    did(one, edit(f"{_ROOM}/src/a.ts"))
    did(one, bash("npm run build"), "ok")
    (found,) = brief(one).work.troubles
    assert (found.what, found.times, found.solved) == ("npm run build", 2, True)
    assert found.said == "src/a.ts(1,2): error TS1: no"
    assert found.after == ("src/a.ts",)


def test_another_script_of_the_same_runner_that_works_solves_nothing() -> None:
    one = session(seed=1).user("Go.")
    did(one, bash("npm run build"), "Exit code 1\nerror: no", error=True)
    did(one, bash("npm run lint"), "ok")
    did(one, bash("python a.py"), "Exit code 1\nKeyError: 'a'", error=True)
    did(one, bash("python b.py"), "ok")
    assert [each.solved for each in brief(one).work.troubles] == [False, False]


def test_of_several_commands_in_one_each_must_be_seen_to_work() -> None:
    one = session(seed=1).user("Go.")
    did(one, bash("make fmt && make lint"), "Exit code 1\nerror: no", error=True)
    did(one, bash("make fmt"), "ok")
    assert [each.solved for each in brief(one).work.troubles] == [False]
    did(one, bash("make lint && make build"), "ok")
    (found,) = brief(one).work.troubles
    assert (found.times, found.solved) == (1, True)


def test_the_part_that_failed_alone_is_the_same_failure() -> None:
    one = session(seed=1).user("Go.")
    did(one, bash("make fmt && make lint"), "Exit code 1\nerror: no", error=True)
    did(one, bash("make lint"), "Exit code 1\nerror: still", error=True)
    did(one, bash("make lint"), "ok")
    (found,) = brief(one).work.troubles
    assert (found.times, found.said, found.solved) == (2, "error: still", True)


@pytest.mark.parametrize(
    ("later", "solved"),
    [
        ("pytest tests/b.py", False),
        ("pytest tests/a.py -k low", False),
        ("pytest tests/a.py", True),
        ("pytest -x", True),
        ("make test", True),
        ("npm test", False),
    ],
)
def test_tests_that_failed_are_solved_only_where_no_fewer_of_them_pass(later: str, *, solved: bool) -> None:
    one = session(seed=1).user("Go.")
    did(one, bash("pytest tests/a.py"), "Exit code 1\n1 failed, 5 passed in 0.1s", error=True)
    did(one, bash(later), "6 passed in 0.1s")
    assert [each.solved for each in brief(one).work.troubles] == [solved]


def test_a_failure_that_nobody_came_back_to_is_not_solved_and_left_open() -> None:
    one = session(seed=1).user("Go.")
    did(one, bash("make deploy"), "Exit code 2\nmake: *** [deploy] Error 2", error=True)
    told = brief(one)
    assert [(each.what, each.solved) for each in told.work.troubles] == [("make deploy", False)]
    assert opens(told) == [("error", "make deploy")]


def test_what_a_call_was_made_wrongly_for_is_only_counted() -> None:
    one = session(seed=1).user("Go.")
    did(one, edit(), "<tool_use_error>File has not been read yet.</tool_use_error>", error=True)
    did(one, tool("Read", file_path=_FILE), "File does not exist.", error=True)
    did(one, bash("grep -r tide src"), "Exit code 1", error=True)
    work = brief(one).work
    assert (work.troubles, work.slips) == ((), 3)


def test_an_api_error_that_was_got_over_is_solved_and_one_at_the_end_is_open() -> None:
    fine = brief(session(seed=1).user("Go.").api_error(529, "Overloaded"))
    assert fine.open == ()
    cut = build_brief(opened(session(seed=1).user("Go.").fatal("API Error: 500 no").done()))
    assert [each.kind for each in cut.open] == ["error"]


# Left open


def test_unfinished_todos_of_either_list_are_open() -> None:
    todos = [
        {"content": "Plot", "status": "completed", "activeForm": "Plotting"},
        {"content": "Label", "status": "in_progress", "activeForm": "Labelling"},
        {"content": "Print", "status": "pending", "activeForm": "Printing"},
    ]
    old = session("2.0.76", seed=1).user("Go.").assistant(tool("TodoWrite", todos=todos)).result()
    assert opens(brief(old)) == [("todo", "Label"), ("todo", "Print")]
    new = session(seed=1).user("Go.")
    for name in ("Plot", "Label"):
        did(new, tool("TaskCreate", subject=name, description=name))
    did(new, tool("TaskUpdate", taskId="1", status="completed"))
    assert opens(brief(new)) == [("todo", "Label")]


def test_a_question_at_the_end_is_open_unless_it_is_mere_politeness() -> None:
    one = session(seed=1).user("Go.")
    assert opens(brief(one, "All green. Shall I push it?")) == [("question", "Shall I push it?")]
    assert opens(brief(session(seed=1).user("Go."), "Fine. Anything else?")) == []


@pytest.mark.parametrize(
    ("answer", "question"),
    [
        ("Fertig. Soll ich es einspielen?", "Soll ich es einspielen?"),
        ("完了しました。マージしてもよろしいでしょうか。", "マージしてもよろしいでしょうか。"),
        ("已完成。要我推送吗\uff1f", "要我推送吗\uff1f"),
        ("Fertig. Kann ich sonst noch helfen?", ""),
        ("已完成。还有什么需要\uff1f", ""),
    ],
)
def test_questions_in_other_languages_are_open_too(answer: str, question: str) -> None:
    told = brief(session(seed=1).user("Go."), answer)
    assert opens(told) == ([("question", question)] if question else [])


def test_a_call_that_asks_and_was_never_answered_is_open() -> None:
    ask = {"question": "Which colour?", "header": "Colour", "options": [], "multiSelect": False}
    one = session(seed=1).user("Go.").assistant(tool("AskUserQuestion", questions=[ask]))
    assert ("question", "Which colour?") in opens(build_brief(opened(one)))


def test_a_turn_that_was_cut_off_is_open() -> None:
    one = session(seed=1).user("Go.").assistant(bash("sleep 900"))
    (found,) = build_brief(opened(one)).open
    assert found == OpenItem(kind="interrupted", text="Bash returned no result", turn=1)


def test_the_last_tests_are_open_when_they_fail() -> None:
    one = session(seed=1).user("Go.")
    did(one, bash("pytest -q"), "Exit code 1\n2 failed, 5 passed in 0.1s", error=True)
    (found,) = brief(one).open
    assert (found.kind, found.text, found.about) == ("tests", "pytest -q", "2 failed")


def test_changed_files_are_open_until_a_commit_takes_them() -> None:
    one = session(seed=1).user("Go.")
    for name in ("a.py", "b.py"):
        did(one, write(f"{_ROOM}/{name}"))
    did(one, write("/srv/outside.py"))
    did(one, bash("git add a.py && git commit -m One"), "[main 1a2b3c4] One\n 1 file changed")
    assert opens(brief(one)) == [("uncommitted", "b.py")]


def test_a_commit_of_everything_leaves_no_file_open() -> None:
    one = session(seed=1).user("Go.")
    did(one, write(f"{_ROOM}/a.py"))
    did(one, bash("git commit -am One"), "[main 1a2b3c4] One\n 1 file changed")
    assert opens(brief(one)) == []
    did(one, write(f"{_ROOM}/a.py"))
    assert opens(brief(one)) == [("uncommitted", "a.py")]


def test_without_git_no_file_is_said_to_be_in_no_commit() -> None:
    one = session(seed=1, branch="").user("Go.")
    did(one, write(f"{_ROOM}/a.py"))
    assert opens(brief(one)) == []


def test_the_same_session_always_gives_the_same_brief() -> None:
    one = session(seed=1, full=True).user("Go.")
    did(one, write(_FILE)).assistant("Done. Shall I go on?").done()
    assert build_brief(opened(one)) == build_brief(opened(one))
