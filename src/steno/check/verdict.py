"""The verdict: what each generation of the client would resume of a file, in plain words."""

from collections.abc import Iterable, Sequence
from typing import Final, Literal, TypeAlias

import msgspec

from steno.check.evidence import Evidence
from steno.check.pairs import Pairs, pair_up
from steno.check.readings import GENERATIONS, NEWEST
from steno.check.rules.compaction import TITLE_FORM
from steno.check.rules.ids import is_agent_file, misnamed
from steno.format.dialects.detection import is_converted
from steno.session.nodes import Node
from steno.session.resume.clients import Client
from steno.session.resume.replay import as_resumed
from steno.session.resume.rules import breaches

__all__ = ["Outcome", "Stretch", "Verdict", "verdicts"]

Outcome: TypeAlias = Literal["fully", "partly", "not at all"]

_MISNAMED: Final = "misnamed"
_REASONS: Final = {
    _MISNAMED: "the file is named by an id that is no UUID",
    "no message": "the file has no message that it takes in",
    "no leaf": "it finds no message to go on from",
    "no content": "it fails on a message without content",
    "no model": "it hangs on an answer that names no model",
    "no time": "it fails on a message without a time",
    "cycle": "it hangs, as the parents lead round in a circle",
}
_EMPTY: Final = "the file has no message"
_ONLY_AGENTS: Final = "every message is a sub-agent's"
_NOT_READ: Final = "no message is of a form that clients take in"
# Clients put a reminder of their own before a conversation that an answer begins.
_HARMLESS: Final = frozenset(("role.first",))
_REPLAYED: Final = ("tools", "message")
# What every client passes on as it is, and what only older ones do.
_REFUSED: Final = frozenset(
    (
        "message.image",
        "message.unsigned-thinking",
        "message.unknown-block",
        "tools.input",
        "tools.duplicate-use",
    )
)
# Of an answer clients leave empty text out themselves.
_CERTAIN: Final = frozenset(("message.image", "message.unknown-block"))
"""Errors that every client passes on to the API with the record they are in."""
_REFUSED_OF_USERS: Final = "message.empty-text"
_REFUSED_AS_ORPHANS: Final = frozenset(("tools.orphan-result", "tools.duplicate-result"))
_UNSENT: Final = "; the summary of what was compacted is not sent"
_LARGE: Final = 64 << 20
_LISTED: Final = 2


class Stretch(msgspec.Struct, frozen=True):
    """Lines from one to another, both included."""

    first: int
    last: int


class Verdict(msgspec.Struct, frozen=True):
    """What one generation of the client makes of a session."""

    clients: tuple[str, ...]
    """The versions that were studied and do the same."""
    outcome: Outcome
    sent: int
    """How many messages of the conversation it sends."""
    there: int
    """How many there are: since the last compaction, branches left out."""
    lost: tuple[Stretch, ...] = ()
    """Where the others lie; between two messages of a stretch none is sent."""
    refused: str = ""
    """Why it does not resume the file at all."""
    rejected: str = ""
    """Why the API would not take what it sends, as far as that was looked at."""
    words: str = ""
    """All of it in a sentence."""

    @property
    def client(self) -> str:
        """The newest version it holds for."""
        return self.clients[-1]


def verdicts(evidence: Evidence, *, replayed: int = _LARGE) -> tuple[Verdict, ...]:
    """Return what becomes of a file in each generation of the client, the oldest first.

    None for a sub-agent's own file, which no client resumes by itself. To know for certain whether
    the API takes it, the requests are put together where there is doubt. That takes long: for a
    file of more than `replayed` bytes the findings have to do.
    """
    if is_agent_file(evidence):
        return ()
    if evidence.is_converted:
        return _converted(evidence, replayed)
    case = _Case(evidence, replayed)
    found = [case.judge(versions) for versions in GENERATIONS]
    reason = found[0].refused
    return _agreeing(found, _for_all(evidence, reason) if reason else "")


def _agreeing(found: list[Verdict], reason: str = "") -> tuple[Verdict, ...]:
    """Return verdicts in the same words where no generation resumes the file."""
    refused = {verdict.refused for verdict in found}
    if len(refused) == 1 and (same := refused.pop()):
        reason = reason or same
        words = f"no client resumes it: {reason}"
        found = [msgspec.structs.replace(each, refused=reason, words=words) for each in found]
    return tuple(found)


def _converted(evidence: Evidence, replayed: int) -> tuple[Verdict, ...]:
    """Return the verdicts on a file with records in a dialect: what clients send of it as it is."""
    case = _Case(evidence.as_written, replayed)
    source = evidence.transcript.source
    nodes = {node.index: node for node in (*evidence.graph.messages, *evidence.graph.unreachable)}
    there = [nodes[index] for index in sorted(nodes)]
    if is_converted(source):
        there = [node for node in there if not source.inserted(node.offset)]
    return _agreeing([_unconverted(evidence, case, versions, there) for versions in GENERATIONS])


def _unconverted(
    evidence: Evidence, case: "_Case", versions: tuple[str, ...], there: list[Node]
) -> Verdict:
    found = case.judge(versions)
    if found.refused:
        return msgspec.structs.replace(found, there=len(there))
    chain = evidence.as_written.graph.readings.of(NEWEST[versions]).chain or []
    names = {node.uuid for node in chain if node.is_message}
    names -= case.dropped_names(NEWEST[versions], chain)
    lost = {node.index for node in there if node.uuid not in names}
    sent = len(there) - len(lost)
    stretches = case.stretches(there, lost, evidence.lines)
    if evidence.dialect == "claude":
        words = _words(versions[-1], sent, len(there), stretches, found.rejected)
    else:
        words = (
            f"{versions[-1]} reads {sent:,} of {len(there):,} messages of the dialect "
            f"{evidence.dialect}; `steno repair` converts it"
        )
    outcome = "partly" if lost or evidence.dialect != "claude" else "fully"
    return Verdict(
        versions, outcome, sent, len(there), stretches, rejected=found.rejected, words=words
    )


def _for_all(evidence: Evidence, reason: str) -> str:
    """Return the reason that no client resumes a file, which may be plainer than that of one."""
    if reason != _REASONS["no message"]:
        return reason
    messages = [node for node in evidence.transcript.nodes if node.is_message]
    if not messages:
        return _EMPTY
    return _ONLY_AGENTS if all(node.sidechain for node in messages) else _NOT_READ


class _Case:
    """One file before the judges."""

    def __init__(self, evidence: Evidence, replayed: int) -> None:
        self.evidence = evidence
        self.replay = evidence.transcript.source.size <= replayed
        self.misnamed = misnamed(evidence)
        self.taken: dict[int, tuple[set[int], Pairs]] = {}
        graph = evidence.graph
        nameless = (
            node
            for node in evidence.transcript.nodes
            if not node.uuid and node.is_message and not node.sidechain
        )
        there = {node.index: node for node in (*graph.messages, *graph.unreachable, *nameless)}
        self.there = [there[index] for index in sorted(there)]
        errors = {rule for rule, level in evidence.findings.counts if level == "error"}
        self.certain = bool(errors & _CERTAIN)
        self.unsent = _UNSENT if TITLE_FORM.id in errors else ""
        self.suspect = any(rule.startswith(_REPLAYED) for rule in errors - _CERTAIN)

    def judge(self, versions: tuple[str, ...]) -> Verdict:
        """Return what becomes of the file in one generation."""
        client = NEWEST[versions]
        if self.misnamed:
            return self._refused(versions, _MISNAMED)
        reading = self.evidence.graph.readings.of(client)
        if reading.refused:
            return self._refused(versions, reading.refused)
        lost = self._lost(client, reading.chain or [])
        sent = len(self.there) - len(lost)
        rejected = self._rejected(client, reading.chain or [])
        stretches = self._stretches(lost)
        return Verdict(
            versions,
            "partly" if lost else "fully",
            sent,
            len(self.there),
            stretches,
            rejected=rejected,
            words=_words(client.version, sent, len(self.there), stretches, rejected) + self.unsent,
        )

    def _refused(self, versions: tuple[str, ...], reason: str) -> Verdict:
        why = _REASONS[reason]
        return Verdict(
            versions,
            "not at all",
            0,
            len(self.there),
            self._stretches({node.index for node in self.there}),
            refused=why,
            words=f"{versions[-1]} does not resume it: {why}",
        )

    def _lost(self, client: Client, chain: list[Node]) -> set[int]:
        """Return the places of the messages that the client does not send."""
        if id(chain) not in self.taken:
            graph = self.evidence.graph
            pairs = graph.pairs if chain == graph.conversation else pair_up(chain)
            names = {node.uuid or node.index for node in chain}
            lost = {node.index for node in self.there if (node.uuid or node.index) not in names}
            self.taken[id(chain)] = lost, pairs
        lost, pairs = self.taken[id(chain)]
        if pairs.sound:
            return lost
        return lost | (_dropped(client, pairs) & {node.index for node in self.there})

    def dropped_names(self, client: Client, chain: list[Node]) -> set[str | None]:
        """Return the ids of messages on a chain that the client does not send."""
        lost = self._lost(client, chain)
        return {node.uuid for node in self.there if node.index in lost}

    def _stretches(self, lost: set[int]) -> tuple[Stretch, ...]:
        return self.stretches(self.there, lost, self.evidence.lines)

    @staticmethod
    def stretches(
        there: Sequence[Node], lost: set[int], lines: Sequence[int]
    ) -> tuple[Stretch, ...]:
        """Return where the messages lie that are lost, of those that there are."""
        found: list[Stretch] = []
        if not lost:
            return ()
        before = False
        for node in there:
            line = lines[node.index]
            gone = node.index in lost
            if gone and before:
                found[-1] = Stretch(found[-1].first, line)
            elif gone:
                found.append(Stretch(line, line))
            before = gone
        return tuple(found)

    def _rejected(self, client: Client, chain: list[Node]) -> str:
        """Return why the API would not take what the client sends, or nothing.

        To put a request together takes long: only where something was found that may, or may not,
        be part of it.
        """
        certain = self._found_on(chain, _CERTAIN) if self.certain else ""
        if certain or not self.suspect:
            return certain
        if not self.replay:
            orphans = _REFUSED_AS_ORPHANS if not client.drops_orphans else frozenset[str]()
            return self._found_on(chain, _REFUSED | orphans)
        messages = as_resumed(self.evidence.transcript, client, prompt="…") or []
        found = (breach for breach in breaches(messages) if breach.rule not in _HARMLESS)
        first = next(found, None)
        return f"{first.rule}: {first.detail}" if first is not None else ""

    def _found_on(self, chain: list[Node], refused: frozenset[str]) -> str:
        """Return the first error of these on a client's chain, or nothing."""
        types = {node.offset: node.type for node in chain}
        for found in self.evidence.findings:
            spoken = types.get(found.place.span.offset)
            if found.severity != "error" or spoken is None:
                continue
            spoken_by_user = found.id == _REFUSED_OF_USERS and spoken == "user"
            if found.id in refused or (spoken_by_user and refused is not _CERTAIN):
                return f"{found.id}: {found.message}"
        return ""


def _dropped(client: Client, pairs: Pairs) -> set[int]:
    """Return the places of what a client takes in, then leaves out for want of a call or result."""
    blocks = pairs.open
    if not client.answers_interrupted:
        blocks += pairs.interrupted
    if client.drops_orphans:
        blocks += pairs.orphans + pairs.repeated + pairs.late
    return {block.node.index for block in blocks}


def _words(version: str, sent: int, there: int, lost: Sequence[Stretch], rejected: str) -> str:
    if lost:
        are = "is" if len(lost) == 1 and lost[0].first == lost[0].last else "are"
        said = f"{version} resumes {sent:,} of {there:,} messages: {_lines(lost)} {are} lost"
    else:
        said = f"{version} resumes it fully"
    return f"{said}, but the API would refuse it" if rejected else said


def _lines(stretches: Sequence[Stretch]) -> str:
    shown = [_line(each) for each in stretches[:_LISTED]]
    more = len(stretches) - len(shown)
    if more:
        shown.append(f"{more:,} more up to line {stretches[-1].last:,}")
    return _listed(shown)


def _line(stretch: Stretch) -> str:
    if stretch.first == stretch.last:
        return f"line {stretch.first:,}"
    return f"lines {stretch.first:,} to {stretch.last:,}"


def _listed(parts: Iterable[str]) -> str:
    *first, last = parts
    return f"{', '.join(first)} and {last}" if first else last
