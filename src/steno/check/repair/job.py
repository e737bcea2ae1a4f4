"""A repair from diagnosis to proof: look, mend on a workbench, look again with the same eyes."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Final

import msgspec

from steno.check.checkup import check
from steno.check.evidence import Evidence
from steno.check.findings import SEVERITIES, Severity
from steno.check.repair.conversion import convert
from steno.check.repair.edits import Edit, Left
from steno.check.repair.lines import mend_lines
from steno.check.repair.parts import keep_session, keep_until, named
from steno.check.repair.repair import Stage, repair, stages_for
from steno.check.repair.slim import slim
from steno.check.rules.ids import is_agent_file
from steno.check.verdict import Verdict, verdicts
from steno.format.source import Source
from steno.session.resume.clients import LATEST, Client
from steno.session.resume.replay import as_resumed, resumed_chain
from steno.session.resume.rules import Breach, breaches
from steno.store.workbench import Workbench

__all__ = ["STEPS", "Job", "State", "Wish", "mend"]

STEPS: Final = 12
"""How often a file is gone through at least: two checks, and ten stages between them."""
_PROMPT: Final = "Go on."


class Wish(msgspec.Struct, frozen=True, kw_only=True):
    """What a repair is to come to."""

    client: Client = LATEST
    until: str = ""
    """The record to end with, by its id or the beginning of it."""
    name: str = ""
    """The name that the mended file will have, if not the one it has."""
    slim: bool = False
    session: str = ""
    """Of a file with several sessions, the one to keep."""
    written: float = 0.0
    """When the file was last written: the time of messages in a file without any."""


class State(msgspec.Struct, frozen=True):
    """How a file stands: what the checker and the API's rules say of it."""

    size: int
    counts: dict[Severity, int]
    verdicts: tuple[Verdict, ...]
    breaches: tuple[Breach, ...]
    wayward: bool = False
    """Whether the client goes another way than to the record that was asked for."""

    @property
    def errors(self) -> int:
        """How many errors the checker finds."""
        return self.counts.get("error", 0)


class Job(msgspec.Struct):
    """A repair, done but not yet put anywhere."""

    wish: Wish
    before: State
    after: State
    edits: list[Edit]
    source: Source
    """The mended file."""
    settled: bool
    is_agent: bool = False
    """Whether it is a sub-agent's own file, of which only the lines are mended."""
    left: tuple[Left, ...] = ()
    """Messages that stay in the file, but not in the conversation."""
    endless: bool = False
    """Whether the repair was given up for its length."""

    @property
    def changed(self) -> bool:
        """Whether anything was to be done."""
        return bool(self.edits) or self.renamed

    @property
    def renamed(self) -> bool:
        """Whether a name of its own mends the file."""
        return bool(self.wish.name) and self.before.errors > self.after.errors

    @property
    def lost(self) -> list[str]:
        """What the mended file no longer holds, each once, in words."""
        return list(dict.fromkeys(edit.lost for edit in self.edits if edit.lost))

    @property
    def hopeless(self) -> bool:
        """Whether there is no conversation in it, mended or not, that any client could resume."""
        judged = self.after.verdicts
        return bool(judged) and all(verdict.outcome == "not at all" for verdict in judged)

    @property
    def proven(self) -> bool:
        """Whether the client resumes all of the mended file, and the API takes what it sends.

        No client resumes a sub-agent's file: that one only has to be free of errors.
        """
        if self.is_agent:
            return self.settled and not self.after.errors
        ours = next((v for v in self.after.verdicts if self.wish.client.version in v.clients), None)
        whole = ours is not None and ours.outcome == "fully"
        sound = not self.after.errors and not self.after.breaches and not self.after.wayward
        return self.settled and whole and sound

    def chunks(self) -> Iterator[bytes]:
        """Yield the bytes of the mended file."""
        return iter(self.source.chunks())


def mend(
    source: Source, name: str, wish: Wish, bench: Workbench, done: Callable[[], None] = lambda: None
) -> Job:
    """Diagnose a file, mend it on the workbench, and judge what came out.

    `done` is called behind each of the steps; there are at least `STEPS` of them.
    """
    evidence = check(source, name=name)
    before = _state(evidence, wish.client, proof=False)
    done()
    agent = is_agent_file(evidence)
    goal = _goal(evidence, wish)
    written = datetime.fromtimestamp(wish.written, UTC)
    stages = (mend_lines,) if agent else stages_for(goal, wish.client, written)
    result = repair(
        evidence.graph,
        stages,
        bench.put,
        client=wish.client,
        first=_wanted(wish, evidence),
        done=done,
    )
    if result.edits or wish.name:
        evidence = check(result.transcript.source, name=wish.name or name)
        after = _state(evidence, wish.client, proof=True)
        done()
    else:
        after = _proven(evidence, before, wish.client)
    if wish.until and not agent:
        after = msgspec.structs.replace(after, wayward=not _reaches(evidence, wish.client, goal))
    return Job(
        wish=wish,
        before=before,
        after=after,
        edits=result.edits,
        source=result.transcript.source,
        settled=result.settled,
        is_agent=agent,
        left=result.left,
        endless=result.endless,
    )


def _goal(evidence: Evidence, wish: Wish) -> str | None:
    """Return the record that the session is to go on from: the one asked for, or as it was."""
    if wish.until:
        return named(evidence.transcript, wish.until).uuid
    leaf = evidence.graph.leaf if not wish.session else None
    return leaf.uuid if leaf is not None else None


def _reaches(evidence: Evidence, client: Client, goal: str | None) -> bool:
    """Whether the client's way through a file leads to a record."""
    chain = evidence.graph.readings.of(client).chain or []
    if any(node.uuid == goal for node in chain):
        return True
    # A reading may leave out notes that lead nowhere; the record may be one.
    return any(node.uuid == goal for node in resumed_chain(evidence.transcript, client) or ())


def _wanted(wish: Wish, evidence: Evidence) -> Iterator[Stage]:
    if evidence.is_converted:
        yield convert
    if wish.session:
        yield lambda drafts: keep_session(drafts, name=wish.session)
    if wish.until:
        yield lambda drafts: keep_until(drafts, uuid=wish.until)
    if wish.slim:
        yield slim


def _state(evidence: Evidence, client: Client, *, proof: bool) -> State:
    """Return how a file stands; without `proof` its messages are put together only if in doubt."""
    counts: dict[Severity, int] = dict.fromkeys(SEVERITIES, 0)
    for (_, severity), number in evidence.findings.counts.items():
        counts[severity] += number
    state = State(evidence.transcript.source.size, counts, verdicts(evidence), ())
    rejected = any(each.rejected for each in state.verdicts if client.version in each.clients)
    return _proven(evidence, state, client) if proof or rejected else state


def _proven(evidence: Evidence, state: State, client: Client) -> State:
    """Return a state with what the API would refuse of the messages that the client sends."""
    sent = as_resumed(evidence.transcript, client, prompt=_PROMPT) or []
    return msgspec.structs.replace(state, breaches=tuple(breaches(sent)))
