"""What the protocol schema (001) says beyond fields, on files of its own examples."""

import json
from itertools import pairwise

import pytest
from tests.notation import notation
from tests.published.client_form import ClientForm
from tests.published.documented import Check, Json, Open, messages, pieces_of, steno_findings, steps, text_of, uuids
from tests.published.examples import EXAMPLES
from tests.published.test_client_fields import drifts, records_of

from steno.format.paths import slug_for_path
from steno.format.source import BytesSource
from steno.session.resume.replay import valid_messages
from steno.session.session import Session
from steno.session.transcript import load


def appended_lines(_: Open) -> bool:
    """A file that grows is read on from where it ended."""
    lines = EXAMPLES["skill_and_response"].data.splitlines(keepends=True)
    halves = [load(BytesSource(b"".join(lines[:count]))) for count in (3, len(lines))]
    return [len(each.nodes) for each in halves] == [3, len(lines)]


def main_file(opened: Open) -> bool:
    session = opened("skill_and_response")
    return session.id == EXAMPLES["skill_and_response"].name


def agent_file(opened: Open) -> bool:
    (agent,) = opened("sub_agent").all_agents
    return agent.agent_id == "ab97f57"


def project_of_slug(opened: Open) -> bool:
    cwd = "/Users/ada/work/mtools"
    return slug_for_path(cwd) == "-Users-ada-work-mtools" and opened("compacted").project == cwd


def graph(opened: Open) -> bool:
    transcript = opened("parallel_results").transcript
    return all(node.parent in transcript.by_uuid for node in transcript.nodes[1:])


def line_per_block(_: Open) -> bool:
    blocks = [len(each["content"]) for each in messages("skill_and_response") if each["role"] == "a"]
    lines = uuids("skill_and_response", "assistant")
    return blocks == [] and len(lines) == 4


def results_are_user_messages(_: Open) -> bool:
    roles = [
        each["role"]
        for each in messages("tool_metadata")
        if isinstance(each["content"], list) and any(block["type"] == "tool_result" for block in each["content"])
    ]
    return roles == ["user"] * 9


def typed_prompt(opened: Open) -> bool:
    (turn,) = opened("skill_and_response").turns()
    return turn.prompt is not None and turn.prompt.origin == "human"


def skill_is_no_turn_and_is_sent(opened: Open) -> bool:
    session = opened("skill_and_response")
    return len(session.turns()) == 1 and "Execute the" in text_of("skill_and_response")


def detail_is_not_sent(opened: Open) -> bool:
    return "totalToolUseCount" not in text_of("sub_agent") and len(steps(opened("sub_agent"))) == 1


def thinking_is_signed(opened: Open) -> bool:
    thoughts = [each.line for each in pieces_of("skill_and_response") if each.thinking]
    shown = steps(opened("skill_and_response"), "thought")
    return b"EpMCCkYICxgCKkDguxdb" in thoughts[0] and len(shown) == 1


def boundary(opened: Open) -> bool:
    (seam,) = opened("compacted").compactions
    return (seam.kind, seam.trigger, seam.pre_tokens) == ("full", "auto", 167503)


def turn_duration(opened: Open) -> bool:
    return opened("timing_and_commands").turns()[0].duration == 88.947


def local_command(opened: Open) -> bool:
    session = opened("timing_and_commands")
    return any("/agents" in step.verb for step in steps(session)) and len(session.turns()) == 2


def summary_is_a_title(opened: Open) -> bool:
    title = opened("compacted").title
    return (title.text, title.source) == ("Backtest engine implementation spec workflow", "summary")


def several_summaries(_: Open) -> bool:
    made = ClientForm()
    made.user("One")
    (last,) = made.answer("Two")
    for text in ("First title", "Second title"):
        made.put("summary", summary=text, leafUuid=last)
    return Session(load(BytesSource(made.data()))).title.text == "Second title"


def progress_is_not_sent(opened: Open) -> bool:
    said = text_of("progress_of_tools")
    return (
        not any(words in said for words in ("Step 1/12", "hello-from-hook", "socat"))
        and len(steps(opened("progress_of_tools"), "tool", "agent")) == 4
    )


def hook_is_shown(opened: Open) -> bool:
    (step,) = steps(opened("progress_of_tools"), "hook")
    return (step.verb, step.subject) == ("SessionStart:startup", "echo hello-from-hook")


def web_search(opened: Open) -> bool:
    (step,) = [each for each in steps(opened("progress_of_tools")) if each.verb == "WebSearch"]
    return step.subject == "Claude Code hooks feature 2026" and step.state == "ok"


def first_snapshot(opened: Open) -> bool:
    (first, second) = [each for each in records_of("text_in_snapshot") if each["type"] == "file-history-snapshot"]
    kinds = {each.kind for each in pieces_of("text_in_snapshot")}
    return (
        (first["isSnapshotUpdate"], second["isSnapshotUpdate"]) == (False, True)
        and "file-history-snapshot" in kinds
        and len(opened("text_in_snapshot").turns()) == 1
    )


def text_backup_is_reported(_: Open) -> bool:
    said = drifts(records_of("text_in_snapshot")) | {(each, "", "", 0) for each in steno_findings("text_in_snapshot")}
    return any("ackup" in str(each) for each in said)


def queue_is_no_turn(opened: Open) -> bool:
    first = pieces_of("queue_and_pull_request")[0]
    turns = opened("queue_and_pull_request").turns()
    return first.kind == "queue-operation/dequeue" and len(turns) == 1


def first_has_no_parent(opened: Open) -> bool:
    nodes = opened("skill_and_response").transcript.nodes
    return nodes[0].parent is None and nodes[0].type == "user"


def each_follows_the_one_before(opened: Open) -> bool:
    """Documented links are walked whole: nothing is off the conversation."""
    names = ("skill_and_response", "parallel_results", "tool_metadata", "thread_of_turns")
    return all(not opened(name).branches for name in names)


def blocks_are_chained(_: Open) -> bool:
    lines = uuids("skill_and_response", "assistant")
    chained = [parent == before for (_, before), (parent, _) in pairwise(lines)]
    assistant = [each for each in messages("skill_and_response") if each["role"] == "assistant"]
    return chained[:2] == [True, True] and len(assistant) == 2


def results_follow_the_last_block(opened: Open) -> bool:
    lines = uuids("parallel_results", "assistant")
    results = uuids("parallel_results", "user")[2:]
    hung = (results[0][0], results[1][0]) == (lines[1][1], results[0][1])
    return hung and {step.state for step in steps(opened("parallel_results"), "tool")} == {"ok"}


def results_are_one_message(_: Open) -> bool:
    (both,) = [
        each
        for each in messages("parallel_results")
        if isinstance(each["content"], list) and sum(block["type"] == "tool_result" for block in each["content"]) == 2
    ]
    return both["role"] == "user"


def sub_agents_share_the_session(opened: Open) -> bool:
    session = opened("sub_agent")
    (agent,) = session.all_agents
    return {node.session for node in agent.nodes} == {session.id} and all(node.sidechain for node in agent.nodes)


def turn_lifecycle(opened: Open) -> bool:
    (turn,) = opened("skill_and_response").turns()
    kinds = [step.kind for step in turn.steps]
    return kinds == ["note", "thought", "words", "tool"] and turn.done and bool(turn.answer)


def pairs_by_id(opened: Open) -> bool:
    every = steps(opened("tool_metadata"), "tool")
    return len(every) == 9 and all(step.call and step.result for step in every)


_OUTCOMES = {
    "Read": "473 lines",
    "Glob": "2 files",
    "Bash": "2 lines",
    "Write": "+1",
    "Edit": "+1 \u22121",
    "TodoWrite": "0 of 2 done",
    "Grep": "1 file",
}


def outcome_of(tool: str) -> Check:
    def check(opened: Open) -> bool:
        (step,) = [each for each in steps(opened("tool_metadata")) if each.verb == tool]
        return step.outcome == _OUTCOMES[tool]

    return check


def task_outcome(opened: Open) -> bool:
    (step,) = steps(opened("sub_agent"), "agent")
    return step.state == "ok" and step.agent is not None and step.agent.agent_id == "ab97f57"


def spawned_by_call(opened: Open) -> bool:
    (step,) = steps(opened("sub_agent"), "agent")
    return step.agent is not None and step.agent.prompt.startswith("Implement the following")


def agent_has_own_root(opened: Open) -> bool:
    (agent,) = opened("sub_agent").all_agents
    return agent.nodes[0].parent is None and agent.nodes[0].agent_id == "ab97f57"


def agent_runs_alone(opened: Open) -> bool:
    (agent,) = opened("sub_agent").all_agents
    return [step.verb for turn in agent.turns for step in turn.steps] == ["Read"]


def agent_reports(opened: Open) -> bool:
    (agent,) = opened("sub_agent").all_agents
    return "114 errors" in agent.turns[-1].answer and "114 errors" in text_of("sub_agent")


def compacted_summary(_: Open) -> bool:
    """No client sends a title: the finding says so, and a repair makes a message of it."""
    from steno.check.repair.repair_job import repair_bytes

    done = repair_bytes(EXAMPLES["compacted"].data)
    said = json.dumps(valid_messages(done.transcript))
    return "Backtest engine implementation" in said


def compacted_work_is_told(opened: Open) -> bool:
    turns = opened("compacted").turns()
    return len(turns) == 2 and turns[1].compaction is not None


def split_response(_: Open) -> bool:
    first, *_rest = [each for each in messages("skill_and_response") if each["role"] == "assistant"]
    return [block["type"] for block in first["content"]] == ["thinking", "text", "tool_use"]


def stop_reasons(_: Open) -> bool:
    known = drifts(records_of("full_conversation"))
    for reason in ("end_turn", "tool_use", "stop_sequence", None):
        records = records_of("full_conversation")
        records[4]["message"]["stop_reason"] = reason
        if drifts(records) - known:
            return False
    return True


def documented_reading(_: Open) -> bool:
    """On the document's own example its algorithm and the client's give the same."""
    made: list[Json] = [
        {"role": entry["message"]["role"], "content": entry["message"]["content"]}
        for entry in records_of("full_conversation")
        if entry["type"] in ("user", "assistant")
    ]
    return notation(messages("full_conversation")) == notation(made)


CHECKS: dict[str, Check] = {
    "001.1.1": appended_lines,
    "001.1.2": graph,
    "001.1.3": line_per_block,
    "001.1.4": results_are_user_messages,
    "001.2.1": main_file,
    "001.2.2": agent_file,
    "001.2.3": project_of_slug,
    "001.4.1.1": typed_prompt,
    "001.4.1.2": skill_is_no_turn_and_is_sent,
    "001.4.1.3": detail_is_not_sent,
    "001.4.2.3": thinking_is_signed,
    "001.4.3.1": boundary,
    "001.4.3.2": turn_duration,
    "001.4.3.3": local_command,
    "001.4.4.1": summary_is_a_title,
    "001.4.4.2": several_summaries,
    "001.4.5.0": progress_is_not_sent,
    "001.4.5.3": hook_is_shown,
    "001.4.5.4": web_search,
    "001.4.6.1": first_snapshot,
    "001.4.6.2": text_backup_is_reported,
    "001.4.7.1": queue_is_no_turn,
    "001.5.1": first_has_no_parent,
    "001.5.2": each_follows_the_one_before,
    "001.5.3": blocks_are_chained,
    "001.5.4": results_follow_the_last_block,
    "001.5.5": results_are_one_message,
    "001.5.6": sub_agents_share_the_session,
    "001.6.1": turn_lifecycle,
    "001.7.2": pairs_by_id,
    **{f"001.7.3.{tool}": outcome_of(tool) for tool in _OUTCOMES},
    "001.7.3.Task": task_outcome,
    "001.8.1": spawned_by_call,
    "001.8.3": agent_has_own_root,
    "001.8.4": agent_runs_alone,
    "001.8.5": agent_reports,
    "001.9.1": compacted_summary,
    "001.9.3": compacted_work_is_told,
    "001.10.1": split_response,
    "001.10.2": stop_reasons,
    "001.C": documented_reading,
}


@pytest.mark.parametrize("item", CHECKS)
def test_a_file_is_read_as_the_protocol_schema_means(opened: Open, item: str) -> None:
    assert CHECKS[item](opened)
