"""Tool calls and their results: the API requires one result directly after each call."""

from typing import Any, Final

from steno.check.evidence import Evidence, RecordShape, RecordView
from steno.check.findings import Findings, Rule
from steno.check.record_graph import ToolBlock

ORPHAN_RESULT: Final = Rule(
    "tools.orphan-result",
    "error",
    "a tool result belongs to no call of the conversation",
    "2.1.200 and newer leave it out, older clients send it and the API refuses; `steno repair` leaves it out",
    "The call was lost with a damaged line, compacted away, or lies on another branch. The API "
    "refuses a request with a result whose call is not in the message before. 2.1.200 and 2.1.325 "
    "leave such results out, 2.1.42 and older send them. Repair takes the record off the chain.",
)
UNANSWERED: Final = Rule(
    "tools.unanswered",
    "error",
    "a tool call has no result, and the conversation went on",
    "clients leave the call out; `steno repair` adds a result that says so",
    "The client was killed while the tool ran, or the result was lost with a damaged line. The "
    "API refuses a request with an unanswered call, so every client leaves the call out on "
    "resume, and the model does not know that it was made. Repair adds a result that says that "
    "none was recorded.",
)
INTERRUPTED: Final = Rule(
    "tools.interrupted",
    "warning",
    "the session ends in a tool call without a result",
    "2.1.325 answers it with an error, older clients leave it out; a running session looks the same",
    "The session ended, or was killed, while a tool ran; while a client is at work every session "
    "looks like this for a moment. 2.1.325 writes a result that says that the call was "
    "interrupted. Older clients leave the call out. Repair adds such a result.",
)
DUPLICATE_RESULT: Final = Rule(
    "tools.duplicate-result",
    "error",
    "a tool call has a second result",
    "2.1.200 and newer send the first only, older clients both and the API refuses; `steno repair` leaves it out",
    "The API takes one result per call. 2.1.200 and 2.1.325 leave out all but the first, 2.1.42 "
    "and older send them all. Repair takes the second record off the chain.",
)
RESULT_BEFORE_USE: Final = Rule(
    "tools.result-before-use",
    "warning",
    "a tool result stands before its call",
    "clients have to guess; `steno repair` puts it behind the call",
    "By its parents the result comes before the call it answers, which the API refuses. Clients "
    "that leave out results without a call leave this one out, and with it the call. Repair hangs "
    "the result on the call.",
)
RESULT_LATE: Final = Rule(
    "tools.result-late",
    "error",
    "a tool result stands behind another response",
    "2.1.200 and newer send an error in its place; `steno repair` puts it behind the call",
    "The API wants results right behind the response that called. Where another response comes "
    "between, 2.1.200 and 2.1.325 say that the result is missing, though it is in the file, and "
    "2.1.42 and older send what the API refuses. A lost or wrong parent does this. Repair hangs "
    "the result on the call.",
)
INPUT: Final = Rule(
    "tools.input",
    "error",
    "the input of a tool call is no object",
    "the API refuses the request; `steno repair` puts an object in its place",
    "Clients pass the input of a call on as it is, and the API refuses anything but an object. "
    "Converters write it as text, and a response that was cut off leaves half of it. Repair reads "
    "the object out of text that holds one, and keeps any other value inside an object.",
)
DUPLICATE_USE: Final = Rule(
    "tools.duplicate-use",
    "error",
    "two tool calls have one id",
    "the API refuses the request; `steno repair` gives the second an id of its own",
    "Ids of tool calls are unique in a conversation. Gateways to other models that count them "
    "from one, and copied turns or lines, break this. Clients send them as they are, and match "
    "results with either call.",
)
RULES: Final[tuple[Rule, ...]] = (
    ORPHAN_RESULT,
    UNANSWERED,
    INTERRUPTED,
    DUPLICATE_RESULT,
    RESULT_BEFORE_USE,
    RESULT_LATE,
    INPUT,
    DUPLICATE_USE,
)


def applies_to(kind: str, _shape: RecordShape | None) -> bool:
    """Say whether such a record is an answer."""
    return kind == "assistant"


def on_record(view: RecordView, findings: Findings) -> None:
    """Look at the input of calls."""
    if not view.node.uses:
        return
    content: Any = view.message.get("content") if view.message else None
    for block in content if content.__class__ is list else ():
        if block.__class__ is not dict or block.get("type") != "tool_use":
            continue
        if block.get("input").__class__ is not dict:
            flaw = "missing" if "input" not in block else "no object"
            message = f"the input of call {block.get('id')!r} is {flaw}"
            findings.defer(INPUT, view.location, message, view.node.index)


def on_end(evidence: Evidence) -> None:
    """Pair calls and results along the conversation."""
    pairs = evidence.graph.pairs
    if pairs.is_complete:
        return
    _add_findings(evidence, UNANSWERED, pairs.open, "call {} has no result")
    _add_findings(evidence, INTERRUPTED, pairs.interrupted, "call {} has no result yet")
    _add_findings(evidence, ORPHAN_RESULT, pairs.orphans, "the result of {} has no call")
    _add_findings(evidence, DUPLICATE_RESULT, pairs.repeated, "call {} has a result already")
    _add_findings(evidence, RESULT_BEFORE_USE, pairs.early, "the result of {} stands before the call")
    _add_findings(evidence, RESULT_LATE, pairs.late, "the result of {} stands behind another response")
    _add_findings(evidence, DUPLICATE_USE, pairs.reused, "an earlier call has the id {}")


def _add_findings(evidence: Evidence, rule: Rule, blocks: tuple[ToolBlock, ...], template: str) -> None:
    for block in blocks:
        evidence.add_finding(rule, block.node, template.format(repr(block.id)))
