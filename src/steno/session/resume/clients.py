"""How each generation of the real client reads a session back, as data.

Every field was observed in experiments with that client; `steno` is steno's own reading, which
keeps everything it can.
"""

from typing import Final, Literal

import msgspec

from steno.errors import BadRequest
from steno.session.transcript import Node


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """One client's habits when it resumes a file. The defaults are those of the newest."""

    version: str

    # What it takes in
    splits_glued: bool = True
    """Reads the first of two records that stand on one line."""
    needs_time_as_text: bool = True
    """Leaves out a message whose time is not an ISO string."""
    links: frozenset[str] = frozenset(("progress",))
    """Types that are passed over: their children hang on their parents."""
    keeps_unknown: bool = False
    """Takes in records of every other type that have an id."""
    refuses: frozenset[str] = frozenset()
    """What makes it give up: `no content`, `no model`, `no time`, `cycle`."""

    # Which way it goes
    leaf: Literal["file order", "last record", "timestamp"] = "file order"
    """What it goes on from, when `last-prompt` does not say."""
    obeys_last_prompt: bool = True
    refuses_agents_leaf: bool = True
    """Gives up when `last-prompt` names a sub-agent's record."""
    bridge_seconds: float | None = 5.0
    """How far back in time a missing parent is looked for; None: not at all."""
    gathers: bool = True
    """Pulls in sibling calls and results that are off the chain."""
    gathered_first: bool = False
    """Puts results that were pulled in before those on the chain."""
    honours_preserved: bool = True
    ignores_last_boundary: bool = True

    # What it sends
    sends_rendered: bool = True
    tells_reads_apart: bool = True
    """Lets what tells of a file that was mentioned begin a message of its own."""
    system_turns: bool = True
    """Sends reminders as messages of the system, in sessions that it began so."""
    sends_local_commands: bool = True
    answers_interrupted: bool = True
    """Answers a last tool call without a result with an error; otherwise the call is dropped."""
    answers_prompts: bool = True
    """Puts an answer of its own behind a last prompt that the model never got to."""
    asks_to_continue: bool = False
    """Puts a prompt of its own behind a last tool result."""
    answers_only: Literal["", "last record", "last record or result"] = ""
    """Does so only where the prompt is the very last record, without a note or an event behind it;
    a tool result with such records behind it counts as the last one, or does not."""
    merges_nameless: bool = False
    """Takes lines with neither id nor model for one response."""
    joins_with_newline: bool = True
    calls_last: bool = True
    """Moves tool calls behind the words of a message."""
    drops_orphans: bool = True
    answers_reused_ids: bool = False
    """Lets a call with the id of an earlier one have a result of its own."""
    default_model: str = "claude-opus-5-5"
    """Where requests go when the model of the last answer is not to be had any more. Thinking of
    any other model than the request's is left out; nothing here: all of it is sent."""
    gone_models: tuple[str, ...] = ("claude-3-7-", "claude-opus-4-1", "claude-opus-4-2", "claude-sonnet-4-2")
    """How the names of models begin that it does not ask any more, or not yet."""

    def model_for(self, last: str) -> str:
        """Return the model that a session goes on with, by that of its last answer."""
        known = last.startswith("claude-") and not last.startswith(self.gone_models)
        return last if known else self.default_model

    def can_parse(self, node: Node) -> bool:
        """Whether the client, which reads line by line, gets this record at all."""
        return node.whole and (node.ends_line or self.splits_glued)

    def accepts(self, node: Node) -> bool:
        """Whether a record has what this client needs to load it."""
        if not node.is_message:
            return True
        if self.needs_time_as_text and not isinstance(node.timestamp, str):
            return False
        return node.has_message


LATEST: Final = Client(version="2.1.325")
_V2_1_200: Final = Client(
    version="2.1.200",
    splits_glued=False,
    refuses=frozenset(("no content", "no model")),
    leaf="last record",
    gathered_first=True,
    sends_rendered=False,
    answers_interrupted=False,
    asks_to_continue=True,
    default_model="claude-opus-4-8",
    gone_models=(*LATEST.gone_models, "claude-opus-5"),
)
_V2_1_42: Final = Client(
    version="2.1.42",
    splits_glued=False,
    needs_time_as_text=False,
    refuses=frozenset(("no content",)),
    leaf="timestamp",
    obeys_last_prompt=False,
    bridge_seconds=None,
    gathers=False,
    honours_preserved=False,
    ignores_last_boundary=False,
    sends_rendered=False,
    sends_local_commands=False,
    answers_interrupted=False,
    asks_to_continue=True,
    answers_only="last record or result",
    merges_nameless=True,
    joins_with_newline=False,
    calls_last=False,
    drops_orphans=False,
    default_model="",
)
_V2_0_76: Final = msgspec.structs.replace(
    _V2_1_42,
    answers_only="last record",
    version="2.0.76",
    links=frozenset(),
    refuses=frozenset(("no content", "no time", "cycle")),
)
_V1_0_128: Final = msgspec.structs.replace(_V2_0_76, version="1.0.128")
_V2_1_29: Final = msgspec.structs.replace(_V2_1_42, version="2.1.29", answers_only="last record")
CLIENTS: Final[tuple[Client, ...]] = (_V1_0_128, _V2_0_76, _V2_1_29, _V2_1_42, _V2_1_200, LATEST)
"""The clients that were studied, oldest first."""
STENO: Final = Client(
    version="steno",
    refuses_agents_leaf=False,
    bridge_seconds=float("inf"),
    links=frozenset(),
    keeps_unknown=True,
    tells_reads_apart=False,
    system_turns=False,
    answers_prompts=False,
    answers_reused_ids=True,
    default_model="",
)
"""Our own reading of a conversation."""


def client_for(version: str) -> Client:
    """Return the habits of a client: the studied one, or the newest studied before it.

    >>> client_for("2.1.250").version
    '2.1.200'
    """
    try:
        numbers = _version_numbers(version)
    except ValueError:
        raise BadRequest(f"not a client version: {version!r}", hint=_studied_hint()) from None
    older = [client for client in CLIENTS if _version_numbers(client.version) <= numbers]
    if not older:
        raise BadRequest(f"no client as old as {version} was studied", hint=_studied_hint())
    return older[-1]


def _version_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _studied_hint() -> str:
    return f"studied: {', '.join(client.version for client in CLIENTS)}"
