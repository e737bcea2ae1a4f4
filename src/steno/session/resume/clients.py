"""How each generation of Claude Code reads a session, as data.

Every field was observed in experiments with that version. `STENO` is steno's own reading, which keeps as much as
possible.
"""

from typing import Final, Literal

import msgspec

from steno.errors import BadRequest
from steno.session.transcript import Node


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """Behaviour of one client version when it resumes a file. Defaults are those of the newest."""

    version: str

    # Loading
    splits_glued: bool = True
    """Reads the first of two records on one line."""
    needs_time_as_text: bool = True
    """Drops messages whose timestamp is not an ISO string."""
    links: frozenset[str] = frozenset(("progress",))
    """Record types that are skipped; their children are linked to their parents."""
    keeps_unknown: bool = False
    """Loads records of any other type that have an ID."""
    refuses: frozenset[str] = frozenset()
    """Conditions for refusing a file: `no content`, `no model`, `no time`, `cycle`."""

    # Chain
    leaf: Literal["file order", "last record", "timestamp"] = "file order"
    """How the leaf is chosen without a `last-prompt` record."""
    obeys_last_prompt: bool = True
    refuses_agents_leaf: bool = True
    """Refuses the file if `last-prompt` names a sub-agent record."""
    bridge_seconds: float | None = 5.0
    """Maximum age in seconds of the record that replaces a missing parent; None disables bridging."""
    gathers: bool = True
    """Gathers sibling calls and results that are off the chain."""
    gathered_first: bool = False
    """Puts gathered results before those on the chain."""
    honours_preserved: bool = True
    ignores_last_boundary: bool = True

    # Sending
    sends_rendered: bool = True
    tells_reads_apart: bool = True
    """Starts a new message with the content of a mentioned file."""
    system_turns: bool = True
    """Sends reminders as system messages in sessions that started with them."""
    sends_local_commands: bool = True
    answers_interrupted: bool = True
    """Answers a last tool call without a result with an error; otherwise the call is dropped."""
    answers_prompts: bool = True
    """Appends a synthetic answer to a last prompt without one."""
    asks_to_continue: bool = False
    """Appends a synthetic prompt after a last tool result."""
    answers_only: Literal["", "last record", "last record or result"] = ""
    """Restricts `answers_prompts` to a prompt that is the very last record, without notes or events after it. With
    `last record or result`, such records may follow a tool result."""
    merges_nameless: bool = False
    """Treats records without ID and model as one response."""
    joins_with_newline: bool = True
    calls_last: bool = True
    """Moves tool calls after the text of a message."""
    drops_orphans: bool = True
    answers_reused_ids: bool = False
    """Allows a separate result for a call with the ID of an earlier one."""
    default_model: str = "claude-opus-5-5"
    """Model used if the model of the last answer is no longer available. Thinking of any other model is dropped; if
    empty, all thinking is sent."""
    gone_models: tuple[str, ...] = ("claude-3-7-", "claude-opus-4-1", "claude-opus-4-2", "claude-sonnet-4-2")
    """Name prefixes of models that this version does not support any more, or not yet."""

    def model_for(self, last: str) -> str:
        """Return the model that continues a session, given the model of its last answer."""
        known = last.startswith("claude-") and not last.startswith(self.gone_models)
        return last if known else self.default_model

    def can_parse(self, node: Node) -> bool:
        """Return whether the client version, which reads line by line, can parse this record."""
        return node.whole and (node.ends_line or self.splits_glued)

    def accepts(self, node: Node) -> bool:
        """Return whether a record has the fields that this client version requires."""
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
"""Studied client versions, oldest first."""
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
"""steno's own reading of a conversation."""


def client_for(version: str) -> Client:
    """Return the behaviour of a client version: the studied one, or the newest studied before it.

    >>> client_for("2.1.250").version
    '2.1.200'
    """
    try:
        numbers = _version_numbers(version)
    except ValueError:
        raise BadRequest(f"invalid client version: {version!r}", hint=_studied_hint()) from None
    older = [client for client in CLIENTS if _version_numbers(client.version) <= numbers]
    if not older:
        raise BadRequest(f"Claude Code {version} is older than the versions that were studied", hint=_studied_hint())
    return older[-1]


def _version_numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split("."))


def _studied_hint() -> str:
    return f"Studied versions: {', '.join(client.version for client in CLIENTS)}."
