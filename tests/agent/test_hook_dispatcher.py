"""Hooks: real programs that hear of events and step in."""

import asyncio
import json
import os
from pathlib import Path
from typing import Any, Final

import pytest

from steno.agent.hooks.dispatcher import HookContext, HookDispatcher, HookOutcome, matches
from steno.agent.hooks.hook_events import HOOK_EVENTS, HookEvent
from steno.format.client_settings import HookCommand, SettingsLayer

READ = {"tool_name": "Read", "tool_input": {"file_path": "/x"}, "tool_use_id": "toolu_1"}
STOP_FEEDBACK: Final[dict[str, str]] = dict.fromkeys(("Stop", "SubagentStop"), "Stop hook feedback:\n{}")


def hook(event: str, command: str, **more: Any) -> HookCommand:
    return HookCommand(event=event, command=command, **more)


def scene(tmp_path: Path, **more: Any) -> HookContext:
    given: dict[str, Any] = {
        "session_id": "s-1",
        "transcript_path": "/t.jsonl",
        "cwd": str(tmp_path),
        "project": str(tmp_path),
        "env": {"PATH": os.environ["PATH"]},
    }
    return HookContext(**{**given, **more})


def dispatcher(tmp_path: Path, *hooks: HookCommand, trusted: bool = True, **more: Any) -> HookDispatcher:
    return HookDispatcher(hooks, lambda: scene(tmp_path, **more), trusted=trusted)


def run(
    tmp_path: Path, hooks: HookCommand | list[HookCommand], fields: dict[str, Any] | None = None, **more: Any
) -> HookOutcome:
    hooks = hooks if isinstance(hooks, list) else [hooks]
    event = HookEvent(hooks[0].event, READ if fields is None else fields)
    return asyncio.run(dispatcher(tmp_path, *hooks, **more).dispatch(event))


def contexts(outcome: HookOutcome) -> list[str]:
    """What the model reads, of events that are recorded and of others."""
    read = [one.model_text for one in outcome.runs if one.model_text]
    recorded = [each.text for each in outcome.records if each.text]
    assert list(outcome.context) == ([] if outcome.runs[0].event.spec.is_recorded else read)
    assert all(any(text in each for each in recorded) for text in read if not outcome.context)
    return read


def says(value: dict[str, Any]) -> str:
    return f"cat <<'END'\n{json.dumps(value)}\nEND"


def own(event: str, **value: Any) -> str:
    return says({"hookSpecificOutput": {"hookEventName": event, **value}})


def gone(number: int) -> bool:
    """Return whether a process has ended, be it that nobody has asked after it yet."""
    try:
        words = Path(f"/proc/{number}/stat").read_text("utf-8").rsplit(")", 1)[1].split()
    except (FileNotFoundError, ProcessLookupError):
        return True
    return words[0] in {"Z", "X"}


# Which hooks run


@pytest.mark.parametrize(
    ("matcher", "value", "fit"),
    [
        ("", "Read", True),
        ("*", "Read", True),
        ("Read", "Read", True),
        ("Read", "ReadMore", False),
        ("read", "Read", False),
        ("Edit|Write", "Write", True),
        ("Edit, Write", "Write", True),
        ("Edit|Write", "NotebookEdit", False),
        ("mcp__lab", "mcp__lab__add", False),
        ("mcp__lab__.*", "mcp__lab__add", True),
        ("^Notebook", "NotebookEdit", True),
        ("Edit.*", "NotebookEdit", True),
        ("^Edit$", "NotebookEdit", False),
        ("Task", "Agent", True),
        ("Agent", "Task", True),
        ("(", "Read", False),
        (".*", "", True),
    ],
)
def test_a_matcher_names_values(matcher: str, value: str, *, fit: bool) -> None:
    assert matches(matcher, value) is fit


@pytest.mark.parametrize(("event", "field"), sorted((name, spec.match_field) for name, spec in HOOK_EVENTS.items()))
def test_each_event_is_matched_by_its_own_field(tmp_path: Path, event: str, field: str) -> None:
    hooks = dispatcher(tmp_path, hook(event, "x", matcher="yes"))
    assert len(hooks.matching_hooks(HookEvent(event, {field: "yes"} if field else {}))) == 1
    # An event with nothing to match runs all of its hooks.
    assert len(hooks.matching_hooks(HookEvent(event, {field: "no"}))) == (0 if field else 1)
    assert not hooks.matching_hooks(HookEvent("Other", {field: "yes"}))


@pytest.mark.parametrize("layer", ["project", "local"])
def test_nothing_runs_from_a_project_that_is_not_trusted(tmp_path: Path, layer: SettingsLayer) -> None:
    mark = tmp_path / "ran"
    both = (hook("Stop", f"touch {mark}", layer=layer), hook("Stop", "echo mine", layer="user"))
    verdict = asyncio.run(dispatcher(tmp_path, *both, trusted=False).dispatch(HookEvent("Stop")))
    assert [one.command for one in verdict.runs] == ["echo mine"]
    assert not mark.exists()


def test_the_same_command_runs_once(tmp_path: Path) -> None:
    verdict = run(tmp_path, [hook("Stop", "echo a"), hook("Stop", "echo a"), hook("Stop", "echo b")])
    assert [one.command for one in verdict.runs] == ["echo a", "echo b"]


def test_a_condition_is_asked_of_the_guard_and_only_for_tools(tmp_path: Path) -> None:
    both = (hook("PreToolUse", "a", condition="Bash(git *)"), hook("Stop", "b", condition="Bash"))
    asked: list[str] = []

    def fitting(rule: str, tool: str, given: dict[str, Any]) -> bool:
        asked.append(rule)
        return tool == "Bash" and given == {}

    hooks = HookDispatcher(both, lambda: scene(tmp_path), trusted=True, matches_rule=fitting)
    assert hooks.matching_hooks(HookEvent("PreToolUse", {"tool_name": "Bash"}))
    assert not hooks.matching_hooks(HookEvent("PreToolUse", READ))
    assert not hooks.matching_hooks(HookEvent("Stop"))
    assert asked == ["Bash(git *)", "Bash(git *)"]
    assert dispatcher(tmp_path, *both).matching_hooks(HookEvent("PreToolUse", READ))


# What they get


def test_a_hook_gets_the_facts_as_json_and_its_place(tmp_path: Path) -> None:
    command = 'cat > given.json; echo "$CLAUDE_PROJECT_DIR" > place; pwd > cwd'
    run(tmp_path, hook("PreToolUse", command), permission_mode="plan")
    assert json.loads((tmp_path / "given.json").read_text("utf-8")) == {
        "session_id": "s-1",
        "transcript_path": "/t.jsonl",
        "cwd": str(tmp_path),
        "permission_mode": "plan",
        "hook_event_name": "PreToolUse",
        **READ,
    }
    assert (tmp_path / "place").read_text("utf-8").strip() == str(tmp_path)
    assert (tmp_path / "cwd").read_text("utf-8").strip() == str(tmp_path)


def test_a_hook_in_a_sub_agent_is_told_which(tmp_path: Path) -> None:
    agent = {"agent_id": "a1", "agent_type": "Explore"}
    run(tmp_path, hook("PreToolUse", "cat > given.json"), agent=agent)
    given = json.loads((tmp_path / "given.json").read_text("utf-8"))
    assert given["agent_id"] == "a1"


def test_only_some_events_get_a_file_for_the_environment(tmp_path: Path) -> None:
    command = 'echo "<$CLAUDE_ENV_FILE>"'
    at_start = run(tmp_path, hook("SessionStart", command), {"source": "startup"}, env_file="/e")
    assert contexts(at_start) == ["</e>"]
    later = run(tmp_path, hook("UserPromptSubmit", command), {"prompt": "hi"}, env_file="/e")
    assert contexts(later) == ["<>"]


def test_a_hook_that_reads_nothing_is_no_trouble_even_with_much_to_read(tmp_path: Path) -> None:
    facts = {**READ, "tool_response": "x" * 5_000_000}
    assert run(tmp_path, hook("PostToolUse", "true"), facts).runs[0].status == "success"
    counted = run(tmp_path, hook("PostToolUse", "wc -c"), facts)
    assert int(counted.runs[0].stdout) > 5_000_000


def test_half_a_character_in_the_facts_is_no_trouble(tmp_path: Path) -> None:
    facts = {**READ, "tool_input": {"x": "\ud800", "n": 10**40}}
    verdict = run(tmp_path, hook("PreToolUse", "cat"), facts)
    assert json.loads(verdict.runs[0].stdout)["tool_input"]["n"] == 10**40


def test_arguments_of_their_own_are_never_seen_by_a_shell(tmp_path: Path) -> None:
    verdict = run(tmp_path, hook("Stop", "printf", args=("%s", "$HOME;ls")), {})
    assert verdict.runs[0].stdout == "$HOME;ls"


# Exit codes


def test_exit_0_is_recorded_as_sessions_do(tmp_path: Path) -> None:
    verdict = run(tmp_path, hook("PreToolUse", "echo hi; echo aside >&2"))
    (ran,) = verdict.runs
    assert (ran.name, ran.status, ran.exit_code) == ("PreToolUse:Read", "success", 0)
    assert (ran.stdout, ran.stderr, ran.stdout_text) == ("hi\n", "aside\n", "hi")
    assert ran.duration_ms >= 0
    assert not verdict.blocked
    # Plain words before a tool call are not for the model.
    assert contexts(verdict) == []


@pytest.mark.parametrize(
    ("event", "facts", "name"),
    [
        ("SessionStart", {"source": "startup"}, "SessionStart:startup"),
        ("UserPromptSubmit", {"prompt": "x"}, "UserPromptSubmit"),
        ("Stop", {"stop_hook_active": False}, "Stop"),
        ("SubagentStart", {"agent_type": "Explore"}, "SubagentStart:Explore"),
        ("SubagentStop", {"agent_type": "Explore"}, "SubagentStop"),
        ("PostToolUseFailure", READ, "PostToolUseFailure:Read"),
    ],
)
def test_a_hook_has_the_name_that_sessions_give_it(
    tmp_path: Path, event: str, facts: dict[str, Any], name: str
) -> None:
    assert run(tmp_path, hook(event, "true"), facts).runs[0].name == name


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit"])
def test_plain_words_at_the_start_and_at_a_prompt_are_for_the_model(tmp_path: Path, event: str) -> None:
    assert contexts(run(tmp_path, hook(event, "echo know this"), {})) == ["know this"]


@pytest.mark.parametrize("event", ["PreToolUse", "UserPromptSubmit", "Stop", "PreCompact"])
def test_exit_2_blocks_and_says_why(tmp_path: Path, event: str) -> None:
    verdict = run(tmp_path, hook(event, "echo '{}'; echo no-bash >&2; exit 2"), {})
    assert verdict.blocked
    assert verdict.reason == STOP_FEEDBACK.get(event, "{}").format("no-bash")
    assert verdict.runs[0].status == "blocked"
    assert verdict.runs[0].exit_code == 2


def test_exit_2_without_words_still_has_a_reason(tmp_path: Path) -> None:
    assert "exit 2" in run(tmp_path, hook("PreToolUse", "exit 2")).reason


@pytest.mark.parametrize("event", ["SessionStart", "SessionEnd", "Notification", "PostCompact"])
def test_exit_2_stops_nothing_where_nothing_can_be_stopped(tmp_path: Path, event: str) -> None:
    verdict = run(tmp_path, hook(event, "echo oh >&2; exit 2"), {})
    assert not verdict.blocked
    assert verdict.notices == ("oh",)


@pytest.mark.parametrize("code", [1, 3, 127])
def test_any_other_exit_code_is_told_to_the_user_and_stops_nothing(tmp_path: Path, code: int) -> None:
    verdict = run(tmp_path, hook("PreToolUse", f"echo broken >&2; exit {code}"))
    assert not verdict.blocked
    assert verdict.runs[0].status == "failed"
    assert verdict.runs[0].exit_code == code
    assert "broken" in verdict.notices[0]


def test_a_program_that_is_not_there_is_a_fault_and_no_error(tmp_path: Path) -> None:
    verdict = run(tmp_path, hook("Stop", "/no/such/program", args=()), {})
    assert verdict.runs[0].exit_code == 127
    gone = run(tmp_path, hook("Stop", "true"), {}, cwd=str(tmp_path / "gone"))
    assert gone.runs[0].status == "failed"
    assert "cannot start" in gone.notices[0]


# JSON


@pytest.mark.parametrize("decision", ["allow", "deny", "ask"])
def test_a_hook_decides_about_a_call(tmp_path: Path, decision: str) -> None:
    command = own("PreToolUse", permissionDecision=decision, permissionDecisionReason="because")
    verdict = run(tmp_path, hook("PreToolUse", command))
    assert (verdict.verdict, verdict.reason) == (decision, "because")


@pytest.mark.parametrize(("older", "decision"), [("approve", "allow"), ("block", "deny")])
def test_the_older_words_for_a_decision_still_count(tmp_path: Path, older: str, decision: str) -> None:
    verdict = run(tmp_path, hook("PreToolUse", says({"decision": older, "reason": "r"})))
    assert (verdict.verdict, verdict.reason) == (decision, "r")


def test_the_strictest_decision_counts(tmp_path: Path) -> None:
    def decide(what: str) -> HookCommand:
        return hook("PreToolUse", own("PreToolUse", permissionDecision=what))

    assert run(tmp_path, [decide("allow"), decide("ask")]).verdict == "ask"
    assert run(tmp_path, [decide("deny"), decide("allow"), decide("ask")]).verdict == "deny"
    assert run(tmp_path, [decide("allow"), hook("PreToolUse", "exit 2")]).verdict == "deny"


def test_a_hook_changes_the_input_unless_another_denies(tmp_path: Path) -> None:
    change = hook("PreToolUse", own("PreToolUse", updatedInput={"file_path": "/y"}))
    assert run(tmp_path, change).tool_input == {"file_path": "/y"}
    assert run(tmp_path, [change, hook("PreToolUse", "exit 2")]).tool_input is None


@pytest.mark.parametrize("event", ["PreToolUse", "PostToolUse", "SessionStart", "SubagentStart"])
def test_a_hook_adds_what_the_model_should_know(tmp_path: Path, event: str) -> None:
    verdict = run(tmp_path, hook(event, own(event, additionalContext="extra")), {})
    assert contexts(verdict) == ["extra"]
    assert verdict.runs[0].context == "extra"
    assert verdict.runs[0].stdout_text == ""


@pytest.mark.parametrize("event", ["UserPromptSubmit", "Stop", "SubagentStop", "PostToolUse"])
def test_block_is_a_no_with_a_reason(tmp_path: Path, event: str) -> None:
    verdict = run(tmp_path, hook(event, says({"decision": "block", "reason": "go on"})), {})
    assert verdict.blocked
    assert verdict.reason == STOP_FEEDBACK.get(event, "{}").format("go on")


def test_a_hook_may_end_everything(tmp_path: Path) -> None:
    value = {"continue": False, "stopReason": "enough", "systemMessage": "hear"}
    verdict = run(tmp_path, hook("PostToolUse", says(value)))
    assert verdict.ends_turn
    assert verdict.reason == "enough"
    assert verdict.notices == ("hear",)


def test_a_hook_answers_a_question_about_a_permission(tmp_path: Path) -> None:
    decision = {"behavior": "deny", "message": "never", "interrupt": True}
    verdict = run(tmp_path, hook("PermissionRequest", own("PermissionRequest", decision=decision)))
    assert (verdict.verdict, verdict.reason) == ("deny", "never")
    assert verdict.ends_turn
    decision = {"behavior": "allow", "updatedInput": {"a": 1}}
    verdict = run(tmp_path, hook("PermissionRequest", own("PermissionRequest", decision=decision)))
    assert (verdict.verdict, verdict.tool_input) == ("allow", {"a": 1})


def test_a_hook_replaces_the_output_of_a_tool(tmp_path: Path) -> None:
    verdict = run(tmp_path, hook("PostToolUse", own("PostToolUse", updatedToolOutput="clean")))
    assert verdict.output == "clean"


def test_json_with_exit_2_is_not_looked_at(tmp_path: Path) -> None:
    command = own("PreToolUse", permissionDecision="allow") + "\nexit 2"
    verdict = run(tmp_path, hook("PreToolUse", command))
    assert verdict.blocked
    assert verdict.verdict == "deny"


@pytest.mark.parametrize(
    "value",
    [
        {"decision": "maybe"},
        {"decision": 5},
        {"hookSpecificOutput": "x"},
        {"hookSpecificOutput": {"hookEventName": "Stop"}},
        {"hookSpecificOutput": {"permissionDecision": "yes"}},
    ],
)
def test_json_that_means_nothing_is_a_fault(tmp_path: Path, value: dict[str, Any]) -> None:
    verdict = run(tmp_path, hook("PreToolUse", says(value)))
    assert verdict.runs[0].status == "failed"
    assert verdict.notices
    assert verdict.verdict is None


@pytest.mark.parametrize("text", ["{not json", "[1]", "{} and more", "null"])
def test_what_is_no_json_object_is_plain_words(tmp_path: Path, text: str) -> None:
    verdict = run(tmp_path, hook("UserPromptSubmit", f"echo '{text}'"), {})
    assert contexts(verdict) == [text]


# What a session keeps


def kept(tmp_path: Path, one: HookCommand) -> list[dict[str, Any]]:
    found = run(tmp_path, one).runs[0].attachments("toolu_1")
    return [{**entry, "durationMs": 1} if "durationMs" in entry else entry for entry in found]


PLACE: Final = {"hookName": "PostToolUse:Read", "toolUseID": "toolu_1", "hookEvent": "PostToolUse"}


def test_a_session_keeps_what_a_hook_did(tmp_path: Path) -> None:
    end = {"exitCode": 0, "command": "echo hi", "durationMs": 1}
    said = {"content": "hi", "stdout": "hi\n", "stderr": ""}
    (entry,) = kept(tmp_path, hook("PostToolUse", "echo hi"))
    assert entry == {"type": "hook_success", **PLACE, **said, **end}
    command = "echo oh >&2; exit 1"
    (entry,) = kept(tmp_path, hook("PostToolUse", command))
    end = {"exitCode": 1, "command": command, "durationMs": 1}
    told = {"stderr": "oh\n", "stdout": ""}
    assert entry == {"type": "hook_non_blocking_error", **PLACE, **told, **end}


def test_a_session_keeps_why_a_hook_said_no_and_what_it_added(tmp_path: Path) -> None:
    (entry,) = kept(tmp_path, hook("PostToolUse", "echo no >&2; exit 2"))
    error = {"blockingError": "no", "command": "echo no >&2; exit 2"}
    assert entry == {"type": "hook_blocking_error", **PLACE, "blockingError": error}
    own_words = {"hookEventName": "PostToolUse", "additionalContext": "extra"}
    value = {"systemMessage": "hear", "decision": "block", "hookSpecificOutput": own_words}
    entries = kept(tmp_path, hook("PostToolUse", says(value)))
    assert [one["type"] for one in entries] == ["hook_blocking_error", "hook_system_message", "hook_additional_context"]
    assert entries[1]["content"] == "hear"
    assert entries[2]["content"] == ["extra"]


@pytest.mark.corpus
def test_what_is_kept_has_the_form_of_real_sessions(tmp_path: Path, shared: Path) -> None:
    (path,) = (shared / "corpus/real-client/2.1.325/hooks/projects").glob("*/*.jsonl")
    compared = 0
    for line in path.read_text("utf-8").splitlines():
        record = json.loads(line)
        real = record.get("attachment", {})
        if real.get("type") != "hook_success":
            continue
        event = real["hookEvent"]
        fields = {HOOK_EVENTS[event].match_field: real["hookName"].partition(":")[2]}
        ran = run(tmp_path, hook(event, real["command"]), fields).runs[0]
        (ours,) = ran.attachments(real["toolUseID"])
        assert list(ours) == list(real)
        assert {**ours, "durationMs": 0} == {**real, "durationMs": 0}
        words = [one["content"] for one in record.get("rendered") or ()]
        reminder = f"<system-reminder>\n{ran.reminder}\n</system-reminder>"
        assert words == ([reminder] if ran.reminder else [])
        compared += 1
    assert compared > 5


# Time and size


def test_hooks_run_side_by_side(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    # Each needs the other to get on.
    pair = [hook("Stop", "echo x > pipe", timeout=20), hook("Stop", "cat pipe", timeout=20)]
    verdict = run(tmp_path, pair, {})
    assert [one.status for one in verdict.runs] == ["success", "success"]


def test_a_hook_that_takes_too_long_is_ended_with_all_it_started(tmp_path: Path) -> None:
    child = 'trap "" TERM; echo $$ > child; while :; do sleep 1; done'
    command = f"sh -c '{child}' & echo early; wait"
    verdict = run(tmp_path, hook("PreToolUse", command, timeout=0.5))
    assert not verdict.blocked
    (ran,) = verdict.runs
    assert ran.status == "timeout"
    assert ran.stdout == "early\n"
    assert "0.5 s" in verdict.notices[0]
    assert gone(int((tmp_path / "child").read_text("utf-8")))


def test_a_hook_that_will_not_go_is_ended_all_the_same(tmp_path: Path) -> None:
    verdict = run(tmp_path, hook("Stop", "trap '' TERM; while :; do :; done", timeout=0.3), {})
    assert verdict.runs[0].status == "timeout"
    assert verdict.runs[0].exit_code == -9


def test_something_left_in_the_background_holds_nobody_up(tmp_path: Path) -> None:
    verdict = run(tmp_path, hook("Stop", "sleep 600 & echo $! > child; echo done"), {})
    assert verdict.runs[0].stdout == "done\n"
    assert verdict.runs[0].status == "success"
    os.kill(int((tmp_path / "child").read_text("utf-8")), 9)


def test_output_is_kept_up_to_a_cap_and_context_up_to_a_smaller_one(tmp_path: Path) -> None:
    verdict = run(tmp_path, hook("UserPromptSubmit", "yes | head -c 3000000"), {})
    assert verdict.runs[0].status == "success"
    assert len(verdict.runs[0].stdout) == 1 << 20
    assert len(contexts(verdict)[0]) < 10_100
    assert "omitted" in contexts(verdict)[0]


def test_output_that_is_no_text_is_no_trouble(tmp_path: Path) -> None:
    verdict = run(tmp_path, hook("UserPromptSubmit", r"printf '\377ok\000'"), {})
    assert "ok" in contexts(verdict)[0]


def test_a_cancel_ends_the_hooks(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "started")

    async def main() -> int:
        hooks = dispatcher(tmp_path, hook("Stop", "echo $$ > started; exec sleep 600"))
        task = asyncio.create_task(hooks.dispatch(HookEvent("Stop")))
        number = await asyncio.to_thread((tmp_path / "started").read_text, "utf-8")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return int(number)

    assert gone(asyncio.run(main()))


def test_nobody_waits_for_a_hook_in_the_background_and_closing_ends_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "started")

    async def main() -> int:
        background = hook("Stop", "echo $$ > started; exec sleep 600", background=True)
        hooks = dispatcher(tmp_path, background)
        verdict = await hooks.for_agent(lambda: scene(tmp_path)).dispatch(HookEvent("Stop"))
        assert verdict.runs == ()
        number = await asyncio.to_thread((tmp_path / "started").read_text, "utf-8")
        await hooks.close()
        return int(number)

    assert gone(asyncio.run(main()))


def test_each_agent_of_a_session_has_its_own_place(tmp_path: Path) -> None:
    async def main() -> None:
        hooks = dispatcher(tmp_path, hook("PreToolUse", "pwd >&2; exit 2"))
        (tmp_path / "sub").mkdir()
        sub_agent = hooks.for_agent(lambda: scene(tmp_path / "sub"))
        assert (await hooks.dispatch(HookEvent("PreToolUse", READ))).reason == str(tmp_path)
        assert (await sub_agent.dispatch(HookEvent("PreToolUse", READ))).reason == str(tmp_path / "sub")
        assert not (await hooks.dispatch(HookEvent("PostToolUse", READ))).blocked

    asyncio.run(main())


def _open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_no_file_stays_open_after_many_hooks(tmp_path: Path) -> None:
    async def main() -> int:
        hooks = dispatcher(tmp_path, hook("Stop", "true"))
        await hooks.dispatch(HookEvent("Stop"))
        before = _open_files()
        for _ in range(10):
            await hooks.dispatch(HookEvent("Stop"))
        return _open_files() - before

    assert asyncio.run(main()) <= 1
