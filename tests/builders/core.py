"""The bottom layer of the builder: where it stands, and how a record is written."""

from typing import Final, Self, TypedDict

from tests.builders.blocks import Json
from tests.builders.clock import Clock
from tests.builders.generations import Generation, generation
from tests.builders.ids import Ids
from tests.builders.outcomes import Call, Room
from tests.builders.shapes import Tokens, record

from steno.format.paths import slug_for_path

__all__ = ["BASE", "START", "ZERO", "Core", "Options"]

START: Final = "2026-11-02T09:00:00.000Z"
ZERO: Final = "00000000-0000-0000-0000-000000000000"
TIP: Final = "(tip)"
BASE: Final = 14_000
"""Tokens that every request begins with: the system's words and the tools."""


class Options(TypedDict, total=False):
    """What `session()` may be told; everything has a quiet default."""

    seed: int | str
    cwd: str
    branch: str
    start: str
    # "cli" is the terminal, "sdk-cli" is `-p`.
    entrypoint: str
    session_id: str
    model: str
    permission: str
    # "spec-000" or "spec-004": published dialects that no real client writes.
    dialect: str
    # Write everything that the real client writes around the conversation, too.
    full: bool
    # How many times slower than at once everything happens.
    pace: int


class Core:
    """A session in the making: ids, clock, pretend folder, and the records so far."""

    def __init__(self, version: str, options: Options) -> None:
        self.seed = str(options.get("seed", 0))
        self.ids = Ids(f"steno/{self.seed}")
        self.clock = Clock(options.get("start", START))
        self.version = version
        self.gen: Generation = generation(version)
        self.cwd = options.get("cwd", "/home/ada/tidegauge")
        self.branch = options.get("branch", "main")
        self.entrypoint = options.get("entrypoint", "cli")
        self.permission = options.get("permission", "default")
        self.model = options.get("model", "") or self.gen.model
        self.dialect = options.get("dialect", "")
        self.full = options.get("full", False)
        self.pace = options.get("pace", 1)
        self.session_id = options.get("session_id", "") or self.ids.uuid("session")
        self.started = self.clock.ms
        self.room = Room()
        self.tip: str | None = None
        self.agent_id = ""
        self.agent_type = ""
        self.depth = 0
        self.slug = ""
        self.lineage = ""
        self.prompt_id = ""
        self.prompt_uuid = ""
        self.prompt_text = ""
        self.prompts: list[str] = []
        self.turns: int = 0
        self.turn_open = False
        self.turn_began = self.clock.ms
        self.context = BASE
        self.unwritten = 0
        """Tokens that the next request is longer by than what stands in the session."""
        self.calls: list[Call] = []
        self.answered: Call | None = None
        self.spent: list[tuple[str, Tokens]] = []
        self.history: list[Json] = []
        self.extra_files: dict[str, bytes] = {}
        self._records: list[Json] = []
        self._marks: dict[str, str | None] = {}
        self.tracked: dict[str, int] = {}
        self.notes: Json = {}
        self.changed: set[str] = set()
        self.compacted = False

    @property
    def terminal(self) -> bool:
        """Whether the session is had in the terminal, by a person."""
        return self.entrypoint == "cli"

    @property
    def folder(self) -> str:
        """The project's folder under `projects/`."""
        return slug_for_path(self.cwd)

    def much(self, tokens: int) -> Self:
        """Say that so many tokens were read which are too many to write down here."""
        self.unwritten += tokens
        return self

    def have(self, path: str, content: str) -> Self:
        """Put a file into the pretend folder; a relative path is below the working directory."""
        self.room.files[self.path(path)] = content
        return self

    def path(self, name: str) -> str:
        """Return a path in the working directory."""
        return name if name.startswith("/") else f"{self.cwd}/{name}"

    def wait(self, seconds: float) -> Self:
        """Let time pass."""
        self.clock.step(round(seconds * 1000))
        return self

    def step(self, ms: int) -> str:
        """Let the moment pass that something takes, at the session's pace."""
        return self.clock.step(ms * self.pace)

    def mark(self, name: str) -> Self:
        """Remember this point of the chain for a later `rewind`."""
        self._marks[name] = self.tip
        return self

    def side(self, record: Json) -> Self:
        """Append a record that is no part of the chain, just as given."""
        self._records.append(record)
        return self

    def link(self, body: Json, *, parent: str | None = TIP, **head: object) -> str:
        """Append a record to the chain and return its uuid.

        `body` holds the record's own fields in order; an empty `uuid` or `timestamp` is filled.
        `head` may hold `promptId`, `logicalParentUuid`, `session_id`, `forkedFrom`.
        """
        uuid = str(body.get("uuid") or self.ids.uuid())
        stamp = str(body.get("timestamp") or self.step(37))
        made = {"uuid": uuid, "timestamp": stamp}
        filled = {key: made.get(key, value) for key, value in body.items()}
        links: Json = {"parentUuid": self.tip if parent == TIP else parent}
        links |= {"isSidechain": self.depth > 0, **head}
        if self.agent_id:
            links["agentId"] = self.agent_id
        if self.slug:
            links["slug"] = self.slug
        self._records.append(record(self.gen, links, filled, self._place()))
        self.tip = uuid
        return uuid

    def replace_records(self) -> None:
        """Start an empty file."""
        self._records = []

    def record(self, kind: str, /, *, move: bool = True, **fields: object) -> Self:
        """Append a chain record of any type, known or not; `move=False` leaves it a dead end."""
        before = self.tip
        self.link({"type": kind, **fields, "uuid": "", "timestamp": ""})
        if not move:
            self.tip = before
        return self

    def _place(self) -> Json:
        entry = {"entrypoint": self.entrypoint} if self.gen.tail else {}
        return {
            "userType": "external",
            **entry,
            "cwd": self.cwd,
            "sessionId": self.session_id,
            "version": self.version,
            "gitBranch": self.branch,
        }

    def _prompted(self) -> dict[str, str]:
        """The prompt a record belongs to, where the generation says so."""
        return {"promptId": self.prompt_id} if self.gen.tail and self.prompt_id else {}

    def _descent(self) -> dict[str, str]:
        """The session that was cleared for this one, where the generation says so."""
        return {"session_id": self.lineage} if self.gen.latest and self.lineage else {}
