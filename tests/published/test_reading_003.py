"""What the reader's notes on 2.1.42 (003) say beyond fields, on files of their own examples."""

from typing import Any

import pytest
from tests.published.documented import Check, Open, steps
from tests.published.test_client_fields import drifts, records_of

from steno.report.brief.brief_builder import build_brief


def turns_are_prompts(opened: Open) -> bool:
    return [turn.prompt.text for turn in opened("no_prompts").turns() if turn.prompt] == ["Fix the login bug", "Go on"]


def interrupted(opened: Open) -> bool:
    return opened("no_prompts").turns()[0].interrupted


def whole_answers(opened: Open) -> bool:
    first = opened("thread_of_turns").turns()[0]
    words = [step.subject for step in first.steps if step.kind == "words"]
    return words == ["Here's my analysis."] and first.answer == "It is fixed."


def turn_composition(opened: Open) -> bool:
    first, second = opened("thread_of_turns").turns()
    types = [node.type for node in first.nodes]
    return types == ["user", *["assistant"] * 3, "user", "assistant", "user", "assistant"] and len(second.nodes) == 2


def progress_of_turn(opened: Open) -> bool:
    (turn,) = opened("progress_with_sizes").turns()
    return len([step for step in turn.steps if step.is_work]) == 2


def microcompaction(opened: Open) -> bool:
    (seam,) = opened("system_events").compactions
    return (seam.kind, seam.pre_tokens, seam.post_tokens) == ("micro", 150000, 105000)


def api_error(opened: Open) -> bool:
    (step,) = steps(opened("system_events"), "error")
    return step.subject == "529" or "529" in f"{step.verb} {step.subject} {step.outcome}"


def stop_hook(opened: Open) -> bool:
    return [step.subject for step in steps(opened("system_events"), "hook")] == ["callback"]


def duration(opened: Open) -> bool:
    return opened("system_events").turns()[0].duration == 1.2


def agent_folder(opened: Open) -> bool:
    (agent,) = opened("sub_agents_folder").all_agents
    return agent.agent_id == "ab5e7cc" and agent.prompt == "Search for the caller."


def complete_is_known(_: Open) -> bool:
    new = {(code, kind) for code, kind, _, _ in drifts(records_of("queue_of_tasks"))}
    return ("UNKNOWN_TYPE", "queue-operation/complete") not in new


def brief_intent(opened: Open) -> bool:
    brief = build_brief(opened("thread_of_turns"))
    return [each.text for each in brief.turns] == ["Fix the login bug", "Thanks"]


def _turn(opened: Open, name: str) -> Any:
    return build_brief(opened(name)).turns[0]


def brief_texts(opened: Open) -> bool:
    said = [each.text for each in _turn(opened, "thread_of_turns").texts]
    return said == ["Here's my analysis.", "It is fixed."]


def brief_calls(opened: Open) -> bool:
    made = _turn(opened, "thread_of_turns").calls
    return [each.tool for each in made] == ["Read", "Edit"] and (made[1].input["new_string"] == "def new():")


def brief_files(opened: Open) -> bool:
    files = _turn(opened, "thread_of_turns").work.files
    return [each.path for each in files] == ["main.py"]


def brief_commands(opened: Open) -> bool:
    work = _turn(opened, "progress_with_sizes").work
    return "make test" in [each.command for each in (*work.commands, *work.tests)]


def brief_agents(opened: Open) -> bool:
    (agent,) = _turn(opened, "progress_with_sizes").agents
    (other,) = _turn(opened, "sub_agents_folder").agents
    return agent.prompt == other.prompt == "Search for the caller." and agent.updates == 1


def brief_snapshots(opened: Open) -> bool:
    (backup,) = _turn(opened, "backup_of_file").backups
    return backup.path == "main.py" and backup.backup_file == "094de626321f00d3@v1"


def brief_compaction(opened: Open) -> bool:
    (seam,) = _turn(opened, "system_events").compactions
    return (seam.tokens_saved, seam.compacted_tool_ids) == (45000, ("toolu_01", "toolu_02"))


def brief_skips(opened: Open) -> bool:
    import msgspec

    skipped = ("latest partial", "complete accumulated", "Let me analyze this.", "#!/usr/bin/env")
    names = ("progress_with_sizes", "thread_of_turns", "queue_of_tasks")
    said = "".join(str(msgspec.to_builtins(_turn(opened, name).work)) for name in names)
    return not any(words in said for words in skipped)


CHECKS: dict[str, Check] = {
    "003.1.filter": turns_are_prompts,
    "003.1.interrupt": interrupted,
    "003.2.streaming": whole_answers,
    "003.3.progress": progress_of_turn,
    "003.4.microcompact": microcompaction,
    "003.4.api_error": api_error,
    "003.4.stop_hook": stop_hook,
    "003.4.duration": duration,
    "003.6.complete": complete_is_known,
    "003.7.composition": turn_composition,
    "003.7.sidechains": agent_folder,
    "003.9.intent": brief_intent,
    "003.9.texts": brief_texts,
    "003.9.calls": brief_calls,
    "003.9.files": brief_files,
    "003.9.commands": brief_commands,
    "003.9.agents": brief_agents,
    "003.9.snapshots": brief_snapshots,
    "003.9.microcompact": brief_compaction,
    "003.9.skip": brief_skips,
}


@pytest.mark.parametrize("item", CHECKS)
def test_a_file_is_read_as_the_reader_of_2_1_42_means(opened: Open, item: str) -> None:
    assert CHECKS[item](opened)
