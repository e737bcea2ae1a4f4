"""A repair from diagnosis to proof: look, mend on a workbench, look again with the same eyes."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Final

import msgspec

from steno.check.checkup import check
from steno.check.evidence import Evidence
from steno.check.findings import SEVERITIES, Severity
from steno.check.repair.edits import Edit
from steno.check.repair.lines import mend_lines
from steno.check.repair.parts import keep_session, keep_until
from steno.check.repair.repair import Stage, repair, stages_for
from steno.check.repair.slim import slim
from steno.check.rules.ids import is_agent_file
from steno.check.verdict import Verdict, verdicts
from steno.format.source import Source
from steno.session.resume.clients import LATEST, Client
from steno.session.resume.replay import as_resumed
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

    @property
    def changed(self) -> bool:
        """Whether anything was to be done."""
        return bool(self.edits)

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
        return self.settled and whole and not self.after.errors and not self.after.breaches

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
    stages = (mend_lines,) if agent else _stages(evidence, wish)
    result = repair(evidence.graph, stages, bench.put, first=_wanted(wish), done=done)
    if not result.edits:
        after = _proven(evidence, before, wish.client)
        return Job(wish, before, after, [], source, result.settled, agent)
    after = _state(check(result.transcript.source, name=name), wish.client, proof=True)
    done()
    return Job(wish, before, after, result.edits, result.transcript.source, result.settled, agent)


def _stages(evidence: Evidence, wish: Wish) -> tuple[Stage, ...]:
    whole = None if wish.until or wish.session else evidence.graph
    return stages_for(whole, wish.client, datetime.fromtimestamp(wish.written, UTC))


def _wanted(wish: Wish) -> Iterator[Stage]:
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
