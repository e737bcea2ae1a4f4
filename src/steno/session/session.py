"""A session: its transcript, the transcripts of its sub-agents, and its public API."""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from functools import cached_property
from typing import Any, Final, Self

from steno.errors import Ambiguous, NotFound
from steno.format.paths import is_uuid, project_from_slug
from steno.format.records import Piece, Record
from steno.session.resume.clients import LATEST, Client, client_for
from steno.session.resume.record_chain import LoadedRecords
from steno.session.resume.replay import ApiMessage, as_resumed, valid_messages
from steno.session.session_status import Status, status_of
from steno.session.transcript import Node, Transcript
from steno.session.turns.branches import (
    Branch,
    ConversationLayout,
    build_layout,
    conversation_leaf,
    full_conversation,
    load_all_records,
)
from steno.session.turns.compactions import Compaction, compactions_of
from steno.session.turns.prompts import Title, title_of
from steno.session.turns.session_facts import SessionMetadata, read_metadata
from steno.session.turns.steps import FileTouch, Step
from steno.session.turns.subagents import SubagentFile, SubagentSet, Thread, find_subagents, subagent_nodes
from steno.session.turns.turn_builder import Turn, TurnReader, build_turns
from steno.session.turns.usage import Totals, UsageCounter

_MAX_CANDIDATES: Final = 3


class Session:
    """A session with all its files and branches."""

    def __init__(
        self,
        transcript: Transcript,
        *,
        name: str = "",
        agents: Sequence[SubagentFile] = (),
        custom_title: str = "",
        summaries: Iterable[tuple[str, str]] = (),
        folder: str = "",
    ) -> None:
        self.transcript = transcript
        self.name = name
        self.folder = folder
        """Name of the directory that contains the file."""
        self.agent_files = tuple(agents)
        self._custom_title = custom_title
        self._summaries = tuple(summaries)
        self._previous_agents: SubagentSet | None = None
        self._turn_reader: TurnReader | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the sources of the transcripts. Can be called repeatedly."""
        for transcript in (self.transcript, *(file.transcript for file in self.agent_files)):
            # `vars` avoids loading the transcript of a sub-agent that was not used.
            close: Any = getattr(vars(transcript).get("source"), "close", None)
            if callable(close):
                close()

    def grown(self, transcript: Transcript, agents: Sequence[SubagentFile], *, custom_title: str = "") -> "Session":
        """Return the session after its files have grown, from transcripts read by `load_growth`.

        Turns are not read again if the conversation only continued. The previous object must not be used afterwards.
        """
        session = Session(
            transcript,
            name=self.name,
            agents=agents,
            custom_title=custom_title,
            summaries=self._summaries,
            folder=self.folder,
        )
        cached = vars(self)
        session._previous_agents = cached.get("_subagents", self._previous_agents)
        session._turn_reader = self._turn_reader
        return session

    # Records

    def pieces(self) -> Iterator[Piece]:
        """Yield every record and gap of the main file in order, covering the whole file."""
        return self.transcript.pieces()

    def record(self, uuid: str, *, as_written: bool = False) -> Record:
        """Return the record with an ID or a unique ID prefix.

        In a dialect file, return the converted record, or the original if `as_written`.

        Raises:
            NotFound: no record has that ID.
            Ambiguous: several record IDs have that prefix.
        """
        names = self.transcript.by_uuid
        read = self.transcript.written if as_written else self.transcript.record
        if uuid in names:
            return read(names[uuid])
        matches = [name for name in names if uuid and name.startswith(uuid)]
        if not matches:
            raise NotFound(f"no record matches {uuid!r}", hint="Run `steno show SESSION --records` to list record IDs.")
        if len(matches) > 1:
            raise Ambiguous(
                f"{uuid!r} matches {len(matches)} records",
                candidates=tuple(matches),
                hint=f"Matches include {', '.join(matches[:_MAX_CANDIDATES])}.",
            )
        return read(names[matches[0]])

    @cached_property
    def _recorded_id(self) -> str:
        for node in self.transcript.nodes:
            session_id = self.transcript.record(node).session_id
            if session_id:
                return session_id
        return ""

    @cached_property
    def id(self) -> str:
        """Session ID: the file name if it is a UUID, else the ID in the records."""
        if is_uuid(self.name):
            return self.name
        return self._recorded_id or self.name

    # The conversation

    @cached_property
    def _all_records(self) -> LoadedRecords:
        return load_all_records(self.transcript)

    @cached_property
    def leaf(self) -> Node | None:
        """Leaf of the conversation."""
        return conversation_leaf(self._all_records)

    def conversation(self, leaf: Node | None = None) -> list[Node]:
        """Return the records from the root to `leaf`, with siblings gathered and nothing compacted away."""
        end = leaf or self.leaf
        if end is None:
            return []
        return full_conversation(self.transcript, self._all_records, end)

    @cached_property
    def _layout(self) -> ConversationLayout:
        return build_layout(self.transcript, self._all_records, self.leaf)

    @property
    def branches(self) -> list[Branch]:
        """Abandoned branches, ordered by where they leave the conversation."""
        return self._layout.branches

    @cached_property
    def _compactions(self) -> dict[int, Compaction]:
        return compactions_of(self.transcript, self._all_records, self._layout.nodes)

    @property
    def compactions(self) -> list[Compaction]:
        """Compactions of the conversation."""
        return list(self._compactions.values())

    def turns(self, leaf: Node | None = None) -> list[Turn]:
        """Return the turns of the current conversation, or of the one that ends in `leaf`."""
        if leaf is None or leaf is self.leaf:
            return self._turns
        nodes = build_layout(self.transcript, self._all_records, leaf).nodes
        seams = compactions_of(self.transcript, self._all_records, nodes)
        return build_turns(self.transcript, nodes, agents=self._subagents.by_name, compactions=seams)

    @cached_property
    def _turns(self) -> list[Turn]:
        names = self._subagents.by_name
        if self._is_agent:
            return build_turns(self.transcript, subagent_nodes(self.transcript), agents=names, agent=True)
        if self._turn_reader is None:
            self._turn_reader = TurnReader()
        nodes = self._layout.nodes
        return self._turn_reader.turns(self.transcript, nodes, names, self._compactions)

    @property
    def _is_agent(self) -> bool:
        """Whether this is a sub-agent file: it has no records of a main conversation."""
        return self.leaf is None

    @property
    def human_turns(self) -> int:
        """Number of turns that a user started."""
        return sum(turn.by_person for turn in self._turns)

    @property
    def files(self) -> list[FileTouch]:
        """Files touched by the conversation and its sub-agents, once per file and verb."""
        touches: dict[tuple[str, str], FileTouch] = {}
        for turn in self._all_turns():
            for touch in turn.files:
                key = (touch.path, touch.verb)
                before = touches.get(key, FileTouch(*key))
                sums = (before.added + touch.added, before.removed + touch.removed)
                touches[key] = FileTouch(*key, *sums)
        return list(touches.values())

    @property
    def commands(self) -> list[str]:
        """Shell commands of the conversation and its sub-agents."""
        return [command for turn in self._all_turns() for command in turn.commands]

    def _all_turns(self) -> Iterator[Turn]:
        yield from self._turns
        for thread in self._subagents.all:
            yield from thread.turns

    # Sub-agents

    @cached_property
    def _subagents(self) -> SubagentSet:
        inline = not self._is_agent
        return find_subagents(self.transcript, self.agent_files, inline=inline, before=self._previous_agents)

    @property
    def agents(self) -> tuple[Thread, ...]:
        """Sub-agents started by the session itself; each has its own `children`."""
        return self._subagents.roots

    @property
    def loose_agents(self) -> tuple[Thread, ...]:
        """Sub-agents without a matching call."""
        return self._subagents.loose

    @property
    def all_agents(self) -> tuple[Thread, ...]:
        """All sub-agents, including nested ones."""
        return self._subagents.all

    # Metadata

    @cached_property
    def facts(self) -> SessionMetadata:
        """Metadata from the records, read in one pass."""
        return read_metadata(self.transcript)

    @cached_property
    def title(self) -> Title:
        """Title of the session."""
        return title_of(self.transcript, custom_title=self._custom_title, summaries=self._summaries)

    @property
    def slug(self) -> str:
        """Slug of the session, used to name plans and similar files."""
        return self.facts.slugs[-1] if self.facts.slugs else ""

    @property
    def project(self) -> str:
        """First working directory; `cwds` lists all of them."""
        if self.facts.cwds:
            return self.facts.cwds[0]
        # Dialect records have no working directory, only the directory name.
        return "" if self.transcript.dialect == "claude" else project_from_slug(self.folder)

    @property
    def cwds(self) -> tuple[str, ...]:
        """All working directories."""
        return self.facts.cwds

    @property
    def branch(self) -> str:
        """Last git branch."""
        return self.facts.last_branch

    @property
    def git_branches(self) -> tuple[str, ...]:
        """All git branches."""
        return self.facts.git_branches

    @property
    def models(self) -> tuple[str, ...]:
        """Models that answered."""
        return self.facts.models

    @property
    def versions(self) -> tuple[str, ...]:
        """Client versions that wrote the records."""
        return self.facts.versions

    @property
    def entrypoint(self) -> str:
        """How Claude Code was started, if recorded."""
        return self.facts.entrypoints[0] if self.facts.entrypoints else ""

    @property
    def started(self) -> datetime | None:
        """Time of the first record."""
        return self.facts.started

    @property
    def ended(self) -> datetime | None:
        """Time of the last record."""
        return self.facts.ended

    def status(self, seconds_since_write: float | None = None) -> Status:
        """Return the status; `seconds_since_write` is the age of the file, used to detect running sessions."""
        return status_of(self._turns, seconds_since_write=seconds_since_write, left=self.facts.left)

    @property
    def wake(self) -> Step | None:
        """Step that scheduled a wake-up, if it is still pending."""
        last = self._turns[-1].steps if self._turns else ()
        wakeups = (step for step in reversed(last) if step.verb == "ScheduleWakeup")
        return next((step for step in wakeups if step.state == "ok"), None)

    # Origin

    @property
    def forked_from(self) -> str:
        """Session from which this session was forked, if recorded."""
        return self.facts.forked_from[-1] if self.facts.forked_from else ""

    @property
    def resumed_from(self) -> tuple[str, ...]:
        """Other sessions whose records the file contains."""
        return tuple(name for name in self.facts.session_ids if name != self.id)

    @property
    def continues(self) -> tuple[str, ...]:
        """All other sessions that this session continues: copied, forked, cleared or resumed."""
        facts = self.facts
        names = (*facts.forked_from, *self.resumed_from, *facts.lineage)
        return tuple(dict.fromkeys(name for name in names if name != self.id))

    # Usage

    @cached_property
    def _counter(self) -> UsageCounter:
        counter = UsageCounter()
        counter.add_nodes(self.transcript, self.transcript.nodes)
        for thread in self._subagents.all:
            thread.count(counter)
        return counter

    @property
    def usage(self) -> Totals:
        """Token usage of the conversation, abandoned branches and sub-agents."""
        return self._counter.totals()

    @property
    def usage_by_model(self) -> dict[str, Totals]:
        """Token usage by model."""
        return self._counter.by_model()

    # API messages

    def as_resumed(self, client: str | Client = LATEST, *, prompt: str | None = None) -> list[ApiMessage]:
        """Return the messages that a client version would send on resume; empty if it would refuse."""
        if self._has_invalid_name:
            return []
        client_habits = client_for(client) if isinstance(client, str) else client
        return as_resumed(self.transcript, client_habits, prompt=prompt) or []

    def messages(self) -> list[ApiMessage]:
        """Return the conversation as messages that the API accepts, as complete as possible."""
        return valid_messages(self.transcript)

    @property
    def _has_invalid_name(self) -> bool:
        """Whether the file is named by a session ID that Claude Code rejects."""
        return not is_uuid(self.name) and self.name == self._recorded_id
