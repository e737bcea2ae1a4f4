"""A session as API messages: what a given client would send on resume, and what is valid to send."""

from collections.abc import Iterable
from typing import Any, Final

from steno.session.nodes import Node
from steno.session.resume.clients import LATEST, STENO, Client
from steno.session.resume.entries import Blocks, Entry, entries_of, text_block
from steno.session.resume.gather import gather
from steno.session.resume.leaf import choose_leaf
from steno.session.resume.mend import mend
from steno.session.resume.segments import since_compaction
from steno.session.resume.trims import trims_of
from steno.session.resume.valid import make_valid
from steno.session.resume.walk import Loaded, take_in, walk
from steno.session.transcript import Transcript

__all__ = [
    "ApiMessage",
    "as_resumed",
    "joined_users",
    "resumed_chain",
    "resumed_leaf",
    "valid_messages",
]

ApiMessage = dict[str, Any]

_MISSING: Final = "[Tool result missing due to internal error]"
_NO_CONTENT: Final = "(no content)"
_ORPHANED: Final = "[Orphaned tool result removed due to conversation resume]"


def as_resumed(
    transcript: Transcript,
    client: Client = LATEST,
    *,
    prompt: str | None = None,
    leaf: Node | None = None,
) -> list[ApiMessage] | None:
    """Return the messages the client would send, None when it would refuse the file.

    With `prompt` the new prompt is put behind them, merged as the client merges it. With `leaf`
    they are those up to that record, wherever the client itself would go on from.
    """
    transcript = _read_by(transcript, client)
    chain = resumed_chain(transcript, client, leaf=leaf)
    return None if chain is None else _sent(transcript, chain, client, prompt)


def _sent(
    transcript: Transcript, chain: list[Node], client: Client, prompt: str | None = None
) -> list[ApiMessage]:
    """Return what a client sends of the records it goes by."""
    entries = _place_reminders(entries_of(transcript, chain, client))
    entries = mend(entries, client, ends=_ends_with_message(transcript, chain, client))
    if prompt is not None:
        entries.append(Entry("user", [text_block(prompt)], kind="synthetic"))
    messages = _pair(_join_responses(_join_users(entries, client), client), client)
    return [{"role": entry.role, "content": _content(entry)} for entry in messages]


def _ends_with_message(transcript: Transcript, chain: list[Node], client: Client) -> bool:
    """Whether no event stands behind the last message, as far as the client looks at such."""
    if not chain or not client.answers_only:
        return True
    last = chain[-1]
    if last.type == "system":
        return False
    links = (node for kind in client.links for node in transcript.of_type(kind))
    return all(node.parent is None or node.parent != last.uuid for node in links)


def resumed_chain(
    transcript: Transcript, client: Client = LATEST, *, leaf: Node | None = None
) -> list[Node] | None:
    """Return the records the client would go by, in its order; None when it would refuse."""
    transcript = _read_by(transcript, client)
    loaded = take_in(transcript, client)
    if not any(_speaks(node) and not node.sidechain for node in loaded.nodes.values()):
        return None
    leaf = leaf or choose_leaf(loaded, client)
    if leaf is None:
        return None
    chain = walk(loaded, leaf, client)
    if _gives_up(loaded, chain, client):
        return None
    chain = gather(loaded, chain, first=client.gathered_first) if client.gathers else chain
    return since_compaction(transcript, loaded, chain, client)


def _read_by(transcript: Transcript, client: Client) -> Transcript:
    """Return what a client reads: only steno knows the published dialects."""
    return transcript if client is STENO else transcript.as_written


def _content(entry: Entry) -> Any:
    return entry.blocks[0]["text"] if entry.alone else entry.blocks


def valid_messages(transcript: Transcript, leaf: Node | None = None) -> list[ApiMessage]:
    """Return the conversation as messages the API accepts, as much of it as can be sent.

    With `leaf` it is the one up to that record. Of calls whose output was left out to save room,
    it stays left out.
    """
    chain = resumed_chain(transcript, STENO, leaf=leaf) or []
    return make_valid(_sent(transcript, chain, STENO), trims_of(transcript, chain))


def _gives_up(loaded: Loaded, chain: list[Node], client: Client) -> bool:
    """Whether something on the chain makes this client fail instead of resuming."""
    if not client.refuses:
        return False
    messages = [node for node in chain if node.is_message]
    reasons = {
        "no content": any(not node.has_content for node in messages),
        "no model": any(not node.model for node in messages if node.type == "assistant"),
        "cycle": loaded.parent(chain[0]) is not None and loaded.parent(chain[0]) in loaded.nodes,
        "no time": any(node.timestamp is None for node in messages),
    }
    return any(reasons.get(reason) for reason in client.refuses)


def _speaks(node: Node) -> bool:
    return node.is_message or node.subtype == "local_command"


def resumed_leaf(transcript: Transcript, client: Client = LATEST) -> Node | None:
    """Return the record the client would hang the next prompt on."""
    return choose_leaf(take_in(_read_by(transcript, client), client), client)


def joined_users(entries: Iterable[Entry], client: Client) -> list[Entry]:
    """Return what users said since an answer as the client joins it; mostly that is one message."""
    placed = _place_reminders(
        Entry(e.role, list(e.blocks), kind=e.kind, error=e.error) for e in entries
    )
    return _join_users([entry for entry in placed if not entry.error], client)


def _place_reminders(entries: Iterable[Entry]) -> list[Entry]:
    """Move reminders up to the answer or result they follow, the system's behind the prompt."""
    placed: list[Entry] = []
    lifted: list[Entry] = []
    passed: list[Entry] = []
    system: list[str] = []
    for entry in entries:
        if entry.role == "system":
            system.extend(str(block.get("text", "")) for block in entry.blocks)
        elif entry.kind == "reminder":
            lifted.append(entry)
        elif entry.role == "user" and not entry.brings_results:
            passed.append(entry)
        else:
            placed += [*lifted, *passed]
            lifted, passed = [], []
            if entry.role == "assistant":
                placed += _system_turn(system)
                system = []
            placed.append(entry)
    return [*placed, *lifted, *passed, *_system_turn(system)]


def _system_turn(texts: list[str]) -> list[Entry]:
    return [Entry("system", [text_block("\n\n".join(texts))], kind="reminder")] if texts else []


def _join_users(entries: list[Entry], client: Client) -> list[Entry]:
    """Merge neighbouring user entries; reminders are folded into the result before them."""
    joined: list[Entry] = []
    for entry in entries:
        last = joined[-1] if joined else None
        if last is None or last.alone or not entry.role == last.role == "user":
            joined.append(entry)
        elif entry.kind == "reminder" and last.brings_results:
            last.blocks = _folded(last.blocks, entry.blocks)
        else:
            newline = client.joins_with_newline and entry.kind != "reminder"
            last.take_in(entry.blocks, newline=newline)
            last.kind = entry.kind
    return joined


def _folded(blocks: Blocks, reminder: Blocks) -> Blocks:
    """Return the blocks with the reminder's text inside the last tool result."""
    last = max(i for i, block in enumerate(blocks) if block.get("type") == "tool_result")
    content: Any = blocks[last].get("content")
    if isinstance(content, str) or content is None:
        words = [content or "", *(str(block.get("text", "")) for block in reminder)]
        folded: Any = "\n\n".join(word for word in words if word)
    else:
        inner = Entry("user", list(content))
        inner.take_in(reminder, newline=True)
        folded = inner.blocks
    return [*blocks[:last], {**blocks[last], "content": folded}, *blocks[last + 1 :]]


def _join_responses(entries: list[Entry], client: Client) -> list[Entry]:
    """Merge the lines of one response, also when results of its own calls stand between them."""
    messages: list[Entry] = []
    since_prompt: dict[object, Entry] = {}
    for entry in entries:
        if entry.role == "assistant":
            earlier = since_prompt.setdefault(entry.group, entry)
            if earlier is entry:
                messages.append(entry)
            else:
                earlier.blocks.extend(entry.blocks)
        elif messages and entry.role == messages[-1].role == "user" and not messages[-1].alone:
            messages[-1].take_in(entry.blocks, newline=False)
        else:
            messages.append(entry)
        if messages[-1].role == "user" and not messages[-1].brings_results:
            since_prompt.clear()
    if client.calls_last:
        for message in messages:
            if message.role == "assistant":
                message.blocks.sort(key=lambda block: block.get("type") == "tool_use")
    return messages


def _pair(messages: list[Entry], client: Client) -> list[Entry]:
    """Make every call be followed by its result, and every result follow its call."""
    if not client.drops_orphans:
        return messages
    paired: list[Entry] = []
    answered: set[str] = set()
    for place, message in enumerate(messages):
        before = messages[place - 1].calls if place and message.role == "user" else []
        if message.role == "user":
            message.blocks = _matching(message.blocks, before, answered)
            if not message.blocks and place == len(messages) - 1:
                break
            if not message.blocks:
                message.blocks = [text_block(_NO_CONTENT if place else _ORPHANED)]
        paired.append(message)
        if client.answers_reused_ids:
            answered.difference_update(message.calls)
        last = place + 1 == len(messages)
        unanswered = not client.answers_prompts if last else messages[place + 1].role == "assistant"
        if message.calls and unanswered:
            answered.update(message.calls)
            paired.append(Entry("user", [_missing(call) for call in message.calls]))
    return paired


def _matching(blocks: Blocks, calls: list[str], answered: set[str]) -> Blocks:
    kept: Blocks = []
    wanted = set(calls)
    for block in blocks:
        if block.get("type") == "tool_result":
            call = str(block.get("tool_use_id"))
            if call not in wanted or call in answered:
                continue
            answered.add(call)
        kept.append(block)
    return [*(_missing(call) for call in calls if call not in answered), *kept]


def _missing(call: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call, "content": _MISSING, "is_error": True}
