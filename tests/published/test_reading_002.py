"""What the reader's notes on 2.0.76 (002) say beyond fields, on files of their own examples."""

import pytest
from tests.published.client_form import ClientForm
from tests.published.documented import Check, Json, Open, pieces_of, steps, text_of
from tests.published.examples import EXAMPLES
from tests.published.test_client_fields import drifts, records_of

from steno.format.message import Image
from steno.format.paths import slug_for_path
from steno.format.records import PUBLISHED_FORMS
from steno.format.source import BytesSource
from steno.report.export.steps_format import session_steps
from steno.session.session import Session
from steno.session.session_status import StepCounts, is_listed
from steno.session.transcript import load


def skipped_types(opened: Open) -> bool:
    kinds = {each["raw_uuid"] for each in session_steps(opened("command_turn"))}
    own = {each["uuid"] for each in records_of("command_turn") if "uuid" in each}
    return kinds == own


def _steps(opened: Open, name: str) -> list[Json]:
    return session_steps(opened(name))


def step_types(opened: Open) -> bool:
    return [each["type"] for each in _steps(opened, "command_turn")] == [
        "USER_MESSAGE", "ASSISTANT_MESSAGE", "TOOL_CALL", "TOOL_RESULT", "ASSISTANT_MESSAGE"
    ]  # fmt: skip


def step_fields(opened: Open) -> bool:
    first, *_, last = _steps(opened, "command_turn")
    raw = [each for each in records_of("command_turn") if "uuid" in each]
    return (
        (first["raw_uuid"], last["raw_uuid"]) == (raw[0]["uuid"], raw[-1]["uuid"])
        and last["parent_uuid"] == raw[-1]["parentUuid"]
        and first["timestamp"] == raw[0]["timestamp"]
        and first["session_id"] == EXAMPLES["command_turn"].name
    )


def step_summary(_: Open) -> bool:
    made = ClientForm(EXAMPLES["command_turn"].name)
    made.user("word " * 100)
    (step,) = session_steps(Session(load(BytesSource(made.data())), name=made.session))
    return len(step["content_summary"]) == 200


def step_discards(opened: Open) -> bool:
    keys = {key for each in _steps(opened, "command_turn") for key in each}
    return not keys & {"model", "usage", "requestId", "cwd", "gitBranch", "version"}


def step_call_record(opened: Open) -> bool:
    call, result = _steps(opened, "command_turn")[2:4]
    return (
        call["tool_calls"][0]["tool_name"] == "Bash"
        and result["tool_results"][0]["tool_call_id"] == call["tool_calls"][0]["tool_call_id"]
        and result["tool_results"][0]["status"] == "success"
    )


def system_is_skipped(opened: Open) -> bool:
    return len(_steps(opened, "system_error")) == 2


def summary_is_skipped(opened: Open) -> bool:
    return len(_steps(opened, "summary_at_the_end")) == 2


def snapshot_is_skipped(opened: Open) -> bool:
    return len(_steps(opened, "snapshot_of_session")) == 2


def sidechains_are_skipped(opened: Open) -> bool:
    session = opened("sidechain_file")
    return len(session.all_agents) == 1 and len(session_steps(session)) == 4


def odd_names_are_skipped(opened: Open) -> bool:
    session = opened("sub_agent")
    (agent,) = session.all_agents
    alone = Session(agent.transcript, name="agent-ab97f57")
    return session_steps(alone) == [] and session_steps(session) != []


def empty_files_are_skipped(_: Open) -> bool:
    name = EXAMPLES["command_turn"].name
    return session_steps(Session(load(BytesSource(b"")), name=name)) == []


def listed(status: str, count: int, *, answered: bool, shown: bool) -> Check:
    def check(_: Open) -> bool:
        return is_listed(StepCounts(count, answered), running=status == "RUNNING") is shown

    return check


def text_of_error(opened: Open) -> bool:
    (step,) = steps(opened("failed_command"), "tool")
    return step.state == "failed"


def content_is_text_or_list(opened: Open) -> bool:
    first = opened("command_turn").turns()[0].prompt
    other = opened("blocks_of_content").turns()[0].prompt
    return (
        first is not None
        and other is not None
        and (first.images, other.images) == (0, 1)
        and other.text == "What is in this picture?"
    )


def result_is_text_or_list(_: Open) -> bool:
    images = [
        block
        for record in pieces_of("blocks_of_content")
        for result in record.tool_results
        for block in result.blocks
        if isinstance(block, Image)
    ]
    return len(images) == 1 and "A pixel." in text_of("blocks_of_content")


def unsigned_thinking(opened: Open) -> bool:
    """It is shown; the API refuses it, so it is not sent and `check` says so."""
    shown = steps(opened("blocks_of_content"), "thought")
    return len(shown) == 1 and "Internal reasoning" not in text_of("blocks_of_content")


def meta_of_skill(opened: Open) -> bool:
    session = opened("expanded_skill")
    return len(session.turns()) == 1 and "Research Explorer" in text_of("expanded_skill")


def usage_is_counted(opened: Open) -> bool:
    used = opened("command_turn").usage
    return (used.output, used.context) == (512, 2 * (2 + 38543))


def retry_event_is_explained(_: Open) -> bool:
    """`drift` says that it is a form of the description, and what the client writes."""
    told = {(code, kind) for code, kind, _, _ in drifts(records_of("system_error"))}
    return ("PUBLISHED_FORM", "system/error") in told and "api_error" in PUBLISHED_FORMS["system/error"]


def encoded_path(opened: Open) -> bool:
    return slug_for_path("/Users/bob/Repos/frago") == "-Users-bob-Repos-frago" and (
        opened("command_turn").project == "/Users/bob/Repos/frago"
    )


CHECKS: dict[str, Check] = {
    "002.0.path": encoded_path,
    "002.1.skipped": skipped_types,
    "002.2.text-or-list": content_is_text_or_list,
    "002.2.error-text": text_of_error,
    "002.2.result-text-or-list": result_is_text_or_list,
    "002.2.types": step_types,
    "002.4.skipped": system_is_skipped,
    "002.4.retry": retry_event_is_explained,
    "002.5.skipped": summary_is_skipped,
    "002.6.skipped": snapshot_is_skipped,
    "002.7.thinking": unsigned_thinking,
    "002.8.usage": usage_is_counted,
    "002.9.skill": meta_of_skill,
    "002.9.sidechain": sidechains_are_skipped,
    "002.10.fields": step_fields,
    "002.10.summary": step_summary,
    "002.10.discarded": step_discards,
    "002.10.calls": step_call_record,
    "002.11.empty": empty_files_are_skipped,
    "002.11.names": odd_names_are_skipped,
    "002.11.running": listed("RUNNING", 1, answered=False, shown=True),
    "002.11.many": listed("COMPLETED", 10, answered=False, shown=True),
    "002.11.few": listed("COMPLETED", 4, answered=True, shown=False),
    "002.11.unanswered": listed("COMPLETED", 9, answered=False, shown=False),
}


@pytest.mark.parametrize("item", CHECKS)
def test_a_file_is_read_as_the_reader_of_2_0_76_means(opened: Open, item: str) -> None:
    assert CHECKS[item](opened)
