"""The chain: the parent of each record, from the first record to the leaf."""

from typing import Final

from steno.check.client_readings import NEWEST_CLIENTS, is_conversation
from steno.check.evidence import Evidence
from steno.check.findings import Location, Rule
from steno.check.record_graph import RecordGraph
from steno.check.rules.compaction import find_missing_summaries
from steno.check.rules.ids import is_agent_file
from steno.format.source import Span
from steno.session.resume.clients import LATEST
from steno.session.transcript import CONVERSATION, Node

EMPTY: Final = Rule(
    "chain.empty",
    "error",
    "there is nothing to resume",
    "the file has no message of a conversation; there is nothing to mend",
    "A client resumes a file that has a message of the main conversation: a `user` or `assistant` "
    "record, or the output of a local command. Without one all of them say that no conversation "
    "was found. Files that hold nothing but a title, and empty files, are left behind by clients "
    "that never got to a first prompt.",
)
DANGLING: Final = Rule(
    "chain.dangling",
    "warning",
    "the parent is not in the file",
    "clients guess where it belongs, older ones begin here; `steno repair` hangs it on the record before",
    "A record names a parent that was never written, or was lost with a damaged line. 2.1.200 and "
    "2.1.325 go on from the record that is nearest before it in time, if that is within five "
    "seconds; otherwise, and in all older clients, the conversation begins here and everything "
    "before it is lost. Repair names the parent that the order and the times of the file suggest.",
)
DANGLING_NOTE: Final = Rule(
    "chain.dangling-note",
    "info",
    "the parent of a note is not in the file",
    "no message hangs on it, so nothing is lost",
    "The same as a dangling parent, on a record that is no message and leads to none, such as the "
    "progress of a hook. Clients do not come by it when they resume.",
)
SELF_PARENT: Final = Rule(
    "chain.self-parent",
    "error",
    "the record names itself as its parent",
    "older clients lose what is before it; `steno repair` hangs it on the record before",
    "Clients from 2.1.200 on notice that they have been here and go on from the record that is "
    "nearest before it in time; 2.1.42 begins the conversation here. 2.0.76 and older hang. "
    "Repair names the parent that the order and the times of the file suggest.",
)
CYCLE: Final = Rule(
    "chain.cycle",
    "error",
    "the parents lead round in a circle",
    "2.0.76 and older hang on it; `steno repair` opens the circle at its first record",
    "Following the parents from the end of the session comes back to a record that was passed "
    "already. Newer clients stop there, 2.0.76 never does. Where the circle does not hold the "
    "whole session, what hangs on neither end of it is lost. Repair opens it at the record that "
    "stands first in the file.",
)
FORWARD: Final = Rule(
    "chain.forward",
    "info",
    "records stand before their parents",
    "clients go by ids, not by order; 2.1.200 may go on from the wrong record",
    "The client writes a record after its parent, so another order comes from tools that sort or "
    "join files, and now and then from clients that write in parallel. Clients follow ids, and "
    "2.1.325 finds the end of a file in any order. 2.1.200 goes on from the last record in the "
    "file, even if that is the first of the conversation.",
)
SEVERAL_ROOTS: Final = Rule(
    "chain.several-roots",
    "info",
    "several records have no parent",
    "the session began more than once; clients go on with one of the beginnings",
    "After the first record only a compaction begins anew without a parent. Taking back the very "
    "first prompt, or joining files, leaves several beginnings. Each is a conversation of its "
    "own, and clients resume the one that the last record, or `last-prompt`, belongs to.",
)
LOST_PARENT: Final = Rule(
    "chain.lost-parent",
    "error",
    "an answer has no parent",
    "every client begins the conversation here, and loses what is before; `steno repair` hangs it on the record before",
    "An answer, or the result of a tool call, always follows something. Where its `parentUuid` is "
    "null or missing, the link was lost, and no client tries to find it: for all of them the "
    "conversation begins here. Repair names the parent that the order of the file and the ids of "
    "tool calls suggest.",
)
HEADLESS: Final = Rule(
    "chain.headless",
    "warning",
    "the conversation begins with an answer",
    "the API wants the user to speak first; `steno repair` puts a prompt before it that says so",
    "The first prompt was lost, with a damaged line or by cutting the file. What clients put before "
    "the conversation may save the request, or not. Repair adds a prompt that says that the "
    "beginning is missing; it invents nothing else.",
)
UNREACHABLE: Final = Rule(
    "chain.unreachable",
    "error",
    "messages cannot be reached",
    "the newest client does not send them; `steno repair` mends the links that were lost",
    "The parents of the record that the newest client goes on from do not lead to these messages, "
    "and they are no branch that was taken back: a link was lost on the way, or leads through a "
    "record that the client does not know. It neither shows nor sends them. All are out of reach "
    "when `last-prompt` tells it to go on from a sub-agent's record. Repair mends the links, where "
    "the file still says how.",
)
LEAF: Final = Rule(
    "chain.leaf",
    "info",
    "clients go on from different messages",
    "which branch is resumed depends on the client",
    "2.1.42 and older go on from the record with the latest time, 2.1.200 from what `last-prompt` "
    "names or the last record of the file, 2.1.325 from what `last-prompt` names or the last end "
    "of a branch. In a file with branches these can be different messages.",
)
UNKNOWN_LINK: Final = Rule(
    "chain.unknown-link",
    "info",
    "a record of an unknown type is a link of the conversation",
    "2.1.42 and older lose what is before it",
    "A message hangs on a record whose type no client knows. 2.1.200 and 2.1.325 walk through it; "
    "older ones stop, so that the conversation begins behind it.",
)
RULES: Final[tuple[Rule, ...]] = (
    EMPTY,
    DANGLING,
    DANGLING_NOTE,
    SELF_PARENT,
    CYCLE,
    FORWARD,
    SEVERAL_ROOTS,
    LOST_PARENT,
    HEADLESS,
    UNREACHABLE,
    LEAF,
    UNKNOWN_LINK,
)

_LINK_TYPES: Final = CONVERSATION | {"progress"}
_KNOWN_TYPES: Final = _LINK_TYPES | {""}
_FIRST_TYPES: Final = frozenset(("", "user", "assistant", "attachment"))


def on_end(evidence: Evidence) -> None:
    """Follow the parents."""
    _check_parents(evidence)
    _check_cycles(evidence)
    _check_roots(evidence)
    if is_agent_file(evidence):
        return
    _check_messages(evidence)
    _check_beginning(evidence)
    _check_unreachable(evidence)
    _check_links(evidence)
    _check_leaves(evidence)


def _check_messages(evidence: Evidence) -> None:
    nodes = evidence.transcript.nodes
    # Files in which only sub-agents speak have a rule of their own.
    if any(is_conversation(node) for node in nodes):
        return
    message = "no record of the file is a message" if nodes else "the file has no record"
    evidence.findings.add(EMPTY, Location(1, Span(0, 0)), message)


def _check_parents(evidence: Evidence) -> None:
    graph = evidence.graph
    if graph.dangling or graph.self_parents:
        leading = {graph.top_ancestors[node.index] for node in graph.members if node.is_message}
        needed = {graph.top_ancestors[node.index] for node in graph.unreachable} | graph.sent
        for node in graph.dangling:
            rule = DANGLING if node.index in leading else DANGLING_NOTE
            message = f"the parent {node.parent!r} is not in the file"
            mild = node.index not in needed
            evidence.findings.add(rule, evidence.location(node), message, mild=mild)
        for node in graph.self_parents:
            mild = node.index not in needed
            evidence.findings.add(SELF_PARENT, evidence.location(node), mild=mild)
    if graph.forward:
        message = f"{len(graph.forward):,} of {len(graph.members):,} records stand before their parents"
        evidence.add_finding(FORWARD, graph.forward[0], message)


def _check_cycles(evidence: Evidence) -> None:
    for cycle in evidence.graph.cycles:
        first = min(cycle, key=lambda node: node.index)
        message = f"the parents of {len(cycle):,} records lead round in a circle"
        mild = not any(evidence.graph.is_relevant(node) for node in cycle)
        evidence.findings.add(CYCLE, evidence.location(first), message, mild=mild)


def _check_roots(evidence: Evidence) -> None:
    graph = evidence.graph
    for node in graph.cut_off:
        subject = "a tool result" if node.is_result else "an answer"
        mild = not graph.is_relevant(node)
        evidence.findings.add(LOST_PARENT, evidence.location(node), f"{subject} has no parent", mild=mild)
    cut_off = {node.index for node in graph.cut_off}
    beginnings = [node for node in graph.roots if not node.is_boundary and node.index not in cut_off]
    if len(beginnings) > 1:
        message = f"{len(beginnings):,} records have no parent, this is the second"
        evidence.add_finding(SEVERAL_ROOTS, beginnings[1], message)


def _check_beginning(evidence: Evidence) -> None:
    graph = evidence.graph
    for node in graph.conversation:
        is_answer = node.type == "assistant" and node not in graph.cut_off
        if is_answer and not _follows_title_compaction(graph, node):
            evidence.add_finding(HEADLESS, node)
        if node.type in _FIRST_TYPES or node.subtype == "local_command":
            return


def _follows_title_compaction(graph: RecordGraph, first: Node) -> bool:
    """Whether what is before an answer was compacted into a title, which has its own finding."""
    return any(
        missing.title is not None and (missing.restart is first if missing.restart else missing.is_relevant)
        for missing in find_missing_summaries(graph)
    )


def _check_unreachable(evidence: Evidence) -> None:
    graph = evidence.graph
    reading = graph.readings.of(LATEST)
    if reading.chain == graph.conversation and not graph.unreachable:
        return
    reached = {node.index for node in reading.chain or ()}
    if all(node.index in reached for node in (*graph.messages, *graph.unreachable)):
        return
    messages = {node.index: node for node in (*graph.messages, *graph.unreachable)}
    not_resumed = [node for index, node in messages.items() if index not in reached]
    unreachable_indexes = {node.index for node in graph.unreachable}
    # What is not sent for another reason, such as a missing time, has a finding of its own.
    refuses = reading.refused not in ("", "no leaf")
    unreachable = {
        node.index: node
        for node in not_resumed
        if node.index in unreachable_indexes or (not refuses and _is_sound(node))
    }
    if not unreachable:
        return
    sent = len(messages) - len(not_resumed)
    message = (
        f"{len(unreachable):,} of {len(messages):,} messages cannot be reached; "
        f"{LATEST.version} would load {sent:,}, {round(100 * sent / len(messages))} %"
    )
    evidence.add_finding(UNREACHABLE, unreachable[min(unreachable)], message)


def _is_sound(node: Node) -> bool:
    return LATEST.can_parse(node) and LATEST.accepts(node) and node.has_content


def _check_links(evidence: Evidence) -> None:
    chain = evidence.graph.chain
    unknown = [node for node in chain if node.type not in _KNOWN_TYPES]
    if not unknown:
        return
    needed = {node.parent for node in chain if node.is_message or node.type in _LINK_TYPES}
    for node in unknown:
        if node.uuid in needed:
            message = f"{node.type!r} is of no known type, and a link of the conversation"
            evidence.add_finding(UNKNOWN_LINK, node, message)


def _check_leaves(evidence: Evidence) -> None:
    readings = evidence.graph.readings
    ends = {
        versions[-1]: last
        for versions, client in NEWEST_CLIENTS.items()
        if (last := readings.of(client).last) is not None
    }
    newest = ends.get(LATEST.version)
    other_ends = {version: node for version, node in ends.items() if node is not newest}
    if newest is not None and other_ends:
        version, node = next(reversed(other_ends.items()))
        line, other = evidence.lines[newest.index], evidence.lines[node.index]
        message = f"{LATEST.version} goes on from line {line}, {version} from line {other}"
        evidence.add_finding(LEAF, newest, message)
