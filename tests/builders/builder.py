"""Sessions made to order, in the shape of any version of the real client.

>>> made = session("2.1.42").user("What is the tide?").assistant(text("High at noon."))
>>> [record["type"] for record in made.records()]
['user', 'assistant']

A bare session holds only what it was told. `full=True` adds all that the real client writes
around a conversation: reminders, snapshots, requests, states, durations.
"""

import copy
from typing import Final, Self, Unpack

from tests.builders.blocks import (
    Answer,
    Json,
    answer,
    document,
    image,
    pdf,
    png,
    raw,
    redacted_thinking,
    server_tool,
    text,
    thinking,
    tool,
    tool_reference,
)
from tests.builders.core import BASE, START, ZERO, Options
from tests.builders.dialects import DIALECTS
from tests.builders.generations import generation
from tests.builders.ids import Ids
from tests.builders.output import Output

from steno.errors import BadRequest
from steno.format.paths import plan_path, tool_result_path

__all__ = [
    "START",
    "VERSION",
    "ZERO",
    "Answer",
    "Json",
    "Session",
    "answer",
    "document",
    "image",
    "pdf",
    "png",
    "raw",
    "redacted_thinking",
    "server_tool",
    "session",
    "text",
    "thinking",
    "tool",
    "tool_reference",
]

VERSION: Final = "2.1.325"
_PREVIEW: Final = 400


def session(version: str = VERSION, **options: Unpack[Options]) -> "Session":
    """Begin a session; see `Options` for what it may be told."""
    dialect = options.get("dialect", "")
    if dialect and dialect not in DIALECTS:
        raise BadRequest(f"no such dialect: {dialect}", hint=f"known: {', '.join(DIALECTS)}")
    return Session("1.0.128" if dialect else version, options)


class Session(Output):
    """A session in the making; every method returns it, but for those that ask for the result."""

    def bytes(self) -> bytes:
        """Return the file."""
        return self._data()

    def saved(self, output: str, *, of: int | None = None) -> Self:
        """Answer a call with so much that the client keeps it in a file of its own."""
        waiting = [call for call in self.calls if not call.answered]
        call = waiting[0] if of is None else self.calls[of]
        short = self.gen.tail and call.name == "Bash"
        name = self.ids.task() if short else call.id
        path = tool_result_path(self.folder, self.session_id, f"{name}.txt")
        self.extra_files[path] = output.encode()
        place_of = f"/home/ada/.claude/{path}"
        size = f"{len(output.encode()) / 1024:.1f}KB"
        shown = (
            f"<persisted-output>\nOutput too large ({size}). Full output saved to: {place_of}\n\n"
            f"Preview:\n{output[:_PREVIEW]}\n...\n</persisted-output>"
        )
        detail: Json = {"stdout": output, "stderr": "", "interrupted": False, "isImage": False}
        if short:
            detail["stdout"] = output[:_PREVIEW]
            detail |= {"noOutputExpected": False, "persistedOutputPath": place_of}
            detail["persistedOutputSize"] = len(output.encode())
        return self.result(shown, of=of, detail=detail)

    def plan(self, words: str) -> Self:
        """Keep a plan under the session's plan name."""
        self.slug = self.slug or self.ids.words()
        self.extra_files[plan_path(self.slug)] = words.encode()
        return self

    def resume(self, version: str = "", *, hours: float = 14) -> Self:
        """Go on later, in the same file, perhaps with a newer client."""
        self.done()
        self.wait(hours * 3600)
        if version:
            self.version, self.gen = version, generation(version)
            self.model = self.gen.model
            self.reset_requests()
        return self

    def fork(self, seed: str = "fork", *, traced: bool = False) -> "Session":
        """Return a new session that begins with a copy of this chain, uuids and all.

        `traced` is the form the terminal's branch command writes, with `forkedFrom`.
        """
        other = self._successor(seed)
        for record in self.records():
            if "uuid" not in record:
                continue
            source = {"sessionId": self.session_id, "messageUuid": record["uuid"]}
            trace = {"forkedFrom": source} if traced and self.gen.tail else {}
            other.side({**record, "sessionId": other.session_id, **trace})
        other.tip = self.tip
        return other

    def clear(self, seed: str = "clear") -> "Session":
        """Return the new session that `/clear` begins; this one is just left."""
        self.done()
        other = self._successor(seed)
        other.tip, other.lineage = None, self.session_id
        other.prompts, other.turns, other.prompt_id, other.slug = [], 0, "", ""
        other.context = BASE
        other.reset_requests()
        return other.command("clear")

    def _successor(self, seed: str) -> "Session":
        other = copy.copy(self)
        other.ids = Ids(f"steno/{self.seed}/{seed}")
        other.clock = copy.copy(self.clock)
        other.room = copy.deepcopy(self.room)
        other.session_id = other.ids.uuid("session")
        other.started = other.clock.ms
        other.calls, other.spent, other.history = [], list(self.spent), []
        other.prompts = list(self.prompts)
        other.extra_files, other.transcripts = {}, []
        other.tracked, other.notes = dict(self.tracked), dict(self.notes)
        other.changed = set(self.changed)
        other.replace_records()
        other.heal()
        other.turn_open = False
        return other
