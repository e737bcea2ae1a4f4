"""A session as API messages: as a client version would send them on resume, or as the API accepts them.

Valid messages omit content that the API would reject. Old tool output named by a `system/microcompact_boundary` record
is replaced by a short note, and large images are omitted if there are many.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, Final, cast

from steno.format.lenient_json import as_list, as_object
from steno.session.resume.api_rules import (
    IMAGE_NOTE,
    MANY_IMAGES,
    MAX_SIDE_AMONG_MANY,
    NO_CONTENT,
    blocks_of,
    fix_block,
    image_flaw,
    unpaired_server_blocks,
)
from steno.session.resume.clients import LATEST, STENO, Client
from steno.session.resume.entries import Blocks, Entry, entries_of, fix_entries, text_block
from steno.session.resume.record_chain import LoadedRecords, choose_leaf, gather, load_records, since_compaction, walk
from steno.session.transcript import Node, Transcript

MICROCOMPACT_SUBTYPE: Final = "microcompact_boundary"
"""Subtype of the record that names calls whose output is removed."""
_TRIM_NOTE: Final = "[Output of this call ({}) removed to save context. Call the tool again if needed.]"
_MEDIA_CHARACTERS: Final = 6_000
"""Approximate context size of an image or document, in characters."""

_TrimMessage = dict[str, Any]


def trimmed_calls(transcript: Transcript, chain: list[Node]) -> frozenset[str]:
    """Return the calls whose output was removed, according to the records of a conversation."""
    call_ids: set[str] = set()
    for node in chain:
        if node.subtype == MICROCOMPACT_SUBTYPE:
            metadata = as_object(transcript.record(node).fields.get("microcompactMetadata")) or {}
            calls = as_list(metadata.get("compactedToolIds")) or ()
            call_ids.update(call for call in calls if isinstance(call, str))
    return frozenset(call_ids)


def trim_message(message: _TrimMessage, calls: Collection[str]) -> _TrimMessage:
    """Return a message with the output of these calls replaced by a note; unchanged if it has none."""
    blocks = cast("list[dict[str, Any]]", message["content"])
    if not any(_is_result_of(block, calls) for block in blocks):
        return message
    return {**message, "content": [_with_note(block) if _is_result_of(block, calls) else block for block in blocks]}


def _is_result_of(block: dict[str, Any], calls: Collection[str]) -> bool:
    return block.get("type") == "tool_result" and block.get("tool_use_id") in calls


def _with_note(block: dict[str, Any]) -> dict[str, Any]:
    characters, media = _content_size(block.get("content"))
    size = f"{characters:,} characters" + (f" and {media:,} images or documents" * bool(media))
    note = _TRIM_NOTE.format(size)
    # Output shorter than the note is kept.
    return {**block, "content": note} if media or characters > len(note) else block


def output_size(block: dict[str, Any]) -> int:
    """Return the approximate length of a tool result in characters."""
    characters, media = _content_size(block.get("content"))
    return characters + media * _MEDIA_CHARACTERS


def _content_size(content: Any) -> tuple[int, int]:
    if isinstance(content, str):
        return len(content), 0
    inner = [as_object(item) or {} for item in as_list(content) or ()]
    texts = [block.get("text") for block in inner if block.get("type") == "text"]
    return sum(len(text) for text in texts if isinstance(text, str)), len(inner) - len(texts)


_ContentBlock = dict[str, Any]
_RequestMessage = dict[str, Any]


def images_in(blocks: list[_ContentBlock]) -> Iterator[_ContentBlock]:
    """Yield the images among blocks and inside tool results."""
    for block in blocks:
        if block.get("type") == "image":
            yield block
        elif block.get("type") == "tool_result":
            inner = [as_object(item) or {} for item in as_list(block.get("content")) or ()]
            yield from (item for item in inner if item.get("type") == "image")


def without_images(
    blocks: list[_ContentBlock], reason_to_remove: Callable[[_ContentBlock], str]
) -> list[_ContentBlock]:
    """Return blocks with text in place of each image that has a reason to be removed."""

    def replace_image(block: _ContentBlock) -> _ContentBlock:
        if block.get("type") == "image" and (reason := reason_to_remove(block)):
            return {"type": "text", "text": IMAGE_NOTE.format(reason)}
        content = as_list(block.get("content")) if block.get("type") == "tool_result" else None
        if content is None:
            return block
        return {**block, "content": [replace_image(as_object(item) or {}) for item in content]}

    return [replace_image(block) for block in blocks]


def without_large_images(messages: list[_RequestMessage]) -> list[_RequestMessage]:
    """Return messages without large images if there are too many images for them."""
    images = [block for message in messages for block in images_in(message["content"])]
    if len(images) <= MANY_IMAGES or not any(map(flaw_among_many_images, images)):
        return messages
    return [{**each, "content": without_images(each["content"], flaw_among_many_images)} for each in messages]


def flaw_among_many_images(block: _ContentBlock) -> str:
    """Return why the API would reject an image among many others, or an empty string."""
    side = image_flaw(block.get("source"))[1]
    if side <= MAX_SIDE_AMONG_MANY:
        return ""
    return f"{side:,} pixels a side; the limit is {MAX_SIDE_AMONG_MANY:,} with more than {MANY_IMAGES} images"


MISSING_BEGINNING: Final = "(the beginning of this conversation is missing)"
_ID_FIELDS: Final = {"tool_use": "id", "tool_result": "tool_use_id"}

_Block = dict[str, Any]
_Message = dict[str, Any]


def make_valid(messages: list[_Message], calls: Collection[str] = frozenset[str]()) -> list[_Message]:
    """Return the messages without content that the API would reject. Calls and results must be paired.

    The output of `calls` is replaced by notes before images are counted.
    """
    validated = _validated(messages)
    return without_large_images([trim_message(message, calls) for message in validated] if calls else validated)


def _validated(messages: list[_Message]) -> list[_Message]:
    validator = MessageValidator()
    messages_before = [valid for message in messages[:-1] for valid in validator.add(message)]
    return [*messages_before, *(good for message in messages[-1:] for good in validator.preview(message))]


class MessageValidator:
    """State of the validated messages that later messages depend on."""

    def __init__(self) -> None:
        self._begun = False
        self._calls: set[str] = set()
        self._renamed: dict[str, list[str]] = {}

    def add(self, message: _Message) -> list[_Message]:
        """Return the valid form of the next message, which is followed by others."""
        valid, renamed, calls = self._validate(message, followed=True)
        self._begun = True
        self._renamed = renamed
        self._calls |= calls
        return valid

    def preview(self, message: _Message) -> list[_Message]:
        """Return the valid form of the next message as the last one; does not change the state."""
        return self._validate(message, followed=False)[0]

    def _validate(self, message: _Message, *, followed: bool) -> tuple[list[_Message], dict[str, list[str]], set[str]]:
        role = str(message.get("role"))
        renamed, calls = self._renamed, set[str]()
        if role == "assistant":
            renamed, calls = self._unique_call_ids(message)
        blocks = _with_renamed_ids(blocks_of(message), renamed)
        fixed = [replacement for block in blocks if (replacement := fix_block(block, role)) is not None]
        # At the end, a paused server turn continues with its call.
        if role == "assistant" and followed:
            unpaired = unpaired_server_blocks(fixed)
            fixed = [block for index, block in enumerate(fixed) if index not in unpaired]
        if role == "user":
            # The API requires tool results before other blocks.
            fixed.sort(key=lambda block: block.get("type") != "tool_result")
        valid: list[_Message] = []
        if not self._begun and role != "user":
            valid.append({"role": "user", "content": [{"type": "text", "text": MISSING_BEGINNING}]})
        valid.append({"role": role, "content": fixed or [{"type": "text", "text": NO_CONTENT}]})
        return valid, renamed, calls

    def _unique_call_ids(self, message: _Message) -> tuple[dict[str, list[str]], set[str]]:
        """Return the unique IDs under which calls are sent, and all IDs.

        Calls of one message with the same ID get one ID each, in order.
        """
        names: dict[str, list[str]] = {}
        calls: set[str] = set()
        for block in blocks_of(message):
            if block.get("type") != "tool_use":
                continue
            name = new = str(block.get("id"))
            while new in self._calls or new in calls:
                new = f"{new}-again"
            names.setdefault(name, []).append(new)
            calls.add(new)
        return {name: new for name, new in names.items() if new != [name]}, calls


def _with_renamed_ids(blocks: list[_Block], renamed: dict[str, list[str]]) -> list[_Block]:
    """Return blocks with call IDs replaced by their new IDs: the first, the second and so on."""
    counts: Counter[tuple[str, str]] = Counter()
    renamed_blocks: list[_Block] = []
    for block in blocks:
        key = _ID_FIELDS.get(str(block.get("type")), "")
        names = renamed.get(str(block.get(key)), []) if key else []
        if names:
            name = (key, str(block.get(key)))
            renamed_blocks.append({**block, key: names[min(counts[name], len(names) - 1)]})
            counts[name] += 1
        else:
            renamed_blocks.append(block)
    return renamed_blocks


ApiMessage = dict[str, Any]

_MISSING_RESULT_TEXT: Final = "[Tool result missing due to internal error]"
_NO_CONTENT: Final = "(no content)"
_ORPHANED_TEXT: Final = "[Orphaned tool result removed due to conversation resume]"


def as_resumed(
    transcript: Transcript, client: Client = LATEST, *, prompt: str | None = None, leaf: Node | None = None
) -> list[ApiMessage] | None:
    """Return the messages that the client version would send, or None if it refuses the file.

    `prompt` is appended and merged as the client version does. With `leaf`, the conversation ends at that record,
    whatever leaf the client version would choose.
    """
    transcript = _as_read_by(transcript, client)
    chain = resumed_chain(transcript, client, leaf=leaf)
    return None if chain is None else _messages_of_chain(transcript, chain, client, prompt)


def _messages_of_chain(
    transcript: Transcript, chain: list[Node], client: Client, prompt: str | None = None
) -> list[ApiMessage]:
    entries = _place_reminders(entries_of(transcript, chain, client))
    entries = fix_entries(entries, client, ends_with_message=_ends_with_message(transcript, chain, client))
    if prompt is not None:
        entries.append(Entry("user", [text_block(prompt)], kind="synthetic"))
    messages = _pair_calls(_join_responses(_join_users(entries, client), client), client)
    return [{"role": entry.role, "content": _content(entry)} for entry in messages]


def _ends_with_message(transcript: Transcript, chain: list[Node], client: Client) -> bool:
    """Return whether the last record is a message, as far as the client version checks it."""
    if not chain or not client.answers_only:
        return True
    last = chain[-1]
    if last.type == "system":
        return False
    links = (node for kind in client.links for node in transcript.of_type(kind))
    return all(node.parent is None or node.parent != last.uuid for node in links)


def resumed_chain(transcript: Transcript, client: Client = LATEST, *, leaf: Node | None = None) -> list[Node] | None:
    """Return the records that the client version resumes, in its order, or None if it refuses the file."""
    transcript = _as_read_by(transcript, client)
    loaded = load_records(transcript, client)
    if not any(_is_conversation(node) and not node.sidechain for node in loaded.nodes.values()):
        return None
    leaf = leaf or choose_leaf(loaded, client)
    if leaf is None:
        return None
    chain = walk(loaded, leaf, client)
    if _refuses(loaded, chain, client):
        return None
    chain = gather(loaded, chain, first=client.gathered_first) if client.gathers else chain
    return since_compaction(transcript, loaded, chain, client)


def _as_read_by(transcript: Transcript, client: Client) -> Transcript:
    """Return the transcript as the client version reads it: only steno converts published dialects."""
    return transcript if client is STENO else transcript.as_written


def _content(entry: Entry) -> Any:
    return entry.blocks[0]["text"] if entry.alone else entry.blocks


def valid_messages(transcript: Transcript, leaf: Node | None = None) -> list[ApiMessage]:
    """Return the conversation as messages that the API accepts, as complete as possible.

    With `leaf`, the conversation ends at that record. Tool output removed by a microcompaction stays removed.
    """
    chain = resumed_chain(transcript, STENO, leaf=leaf) or []
    return make_valid(_messages_of_chain(transcript, chain, STENO), trimmed_calls(transcript, chain))


def _refuses(loaded: LoadedRecords, chain: list[Node], client: Client) -> bool:
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


def _is_conversation(node: Node) -> bool:
    return node.is_message or node.subtype == "local_command"


def resumed_leaf(transcript: Transcript, client: Client = LATEST) -> Node | None:
    """Return the record that the client version would use as parent of the next prompt."""
    return choose_leaf(load_records(_as_read_by(transcript, client), client), client)


def join_user_entries(entries: Iterable[Entry], client: Client) -> list[Entry]:
    """Return the user entries after an answer as the client version joins them; usually one message."""
    placed = _place_reminders(Entry(e.role, list(e.blocks), kind=e.kind, error=e.error) for e in entries)
    return _join_users([entry for entry in placed if not entry.error], client)


def _place_reminders(entries: Iterable[Entry]) -> list[Entry]:
    """Move reminders up to the answer or result that they follow, and system reminders after the prompt."""
    placed: list[Entry] = []
    reminders: list[Entry] = []
    user_entries: list[Entry] = []
    system_texts: list[str] = []
    for entry in entries:
        if entry.role == "system":
            system_texts.extend(str(block.get("text", "")) for block in entry.blocks)
        elif entry.kind == "reminder":
            reminders.append(entry)
        elif entry.role == "user" and not entry.has_tool_results:
            user_entries.append(entry)
        else:
            placed += [*reminders, *user_entries]
            reminders, user_entries = [], []
            if entry.role == "assistant":
                placed += _system_turn(system_texts)
                system_texts = []
            placed.append(entry)
    return [*placed, *reminders, *user_entries, *_system_turn(system_texts)]


def _system_turn(texts: list[str]) -> list[Entry]:
    return [Entry("system", [text_block("\n\n".join(texts))], kind="reminder")] if texts else []


def _join_users(entries: list[Entry], client: Client) -> list[Entry]:
    """Merge adjacent user entries; reminders are folded into the tool result before them."""
    joined: list[Entry] = []
    for entry in entries:
        last = joined[-1] if joined else None
        if last is None or last.alone or not entry.role == last.role == "user":
            joined.append(entry)
        elif entry.kind == "reminder" and last.has_tool_results:
            last.blocks = _fold_reminder(last.blocks, entry.blocks)
        else:
            newline = client.joins_with_newline and entry.kind != "reminder"
            last.merge(entry.blocks, newline=newline)
            last.kind = entry.kind
    return joined


def _fold_reminder(blocks: Blocks, reminder: Blocks) -> Blocks:
    """Return the blocks with the reminder's text inside the last tool result."""
    last = max(i for i, block in enumerate(blocks) if block.get("type") == "tool_result")
    content: Any = blocks[last].get("content")
    if isinstance(content, str) or content is None:
        texts = [content or "", *(str(block.get("text", "")) for block in reminder)]
        folded: Any = "\n\n".join(word for word in texts if word)
    else:
        inner = Entry("user", list(content))
        inner.merge(reminder, newline=True)
        folded = inner.blocks
    return [*blocks[:last], {**blocks[last], "content": folded}, *blocks[last + 1 :]]


def _join_responses(entries: list[Entry], client: Client) -> list[Entry]:
    """Merge the records of a response, even if results of its own calls are between them."""
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
            messages[-1].merge(entry.blocks, newline=False)
        else:
            messages.append(entry)
        if messages[-1].role == "user" and not messages[-1].has_tool_results:
            since_prompt.clear()
    if client.calls_last:
        for message in messages:
            if message.role == "assistant":
                message.blocks.sort(key=lambda block: block.get("type") == "tool_use")
    return messages


def _pair_calls(messages: list[Entry], client: Client) -> list[Entry]:
    if not client.drops_orphans:
        return messages
    paired: list[Entry] = []
    answered: set[str] = set()
    for index, message in enumerate(messages):
        before = messages[index - 1].calls if index and message.role == "user" else []
        if message.role == "user":
            message.blocks = _paired_blocks(message.blocks, before, answered)
            if not message.blocks and index == len(messages) - 1:
                break
            if not message.blocks:
                message.blocks = [text_block(_NO_CONTENT if index else _ORPHANED_TEXT)]
        paired.append(message)
        if client.answers_reused_ids:
            answered.difference_update(message.calls)
        last = index + 1 == len(messages)
        unanswered = not client.answers_prompts if last else messages[index + 1].role == "assistant"
        if message.calls and unanswered:
            answered.update(message.calls)
            paired.append(Entry("user", [_missing_result(call) for call in message.calls]))
    return paired


def _paired_blocks(blocks: Blocks, calls: list[str], answered: set[str]) -> Blocks:
    remaining: Blocks = []
    expected = set(calls)
    for block in blocks:
        if block.get("type") == "tool_result":
            call = str(block.get("tool_use_id"))
            if call not in expected or call in answered:
                continue
            answered.add(call)
        remaining.append(block)
    return [*(_missing_result(call) for call in calls if call not in answered), *remaining]


def _missing_result(call: str) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call, "content": _MISSING_RESULT_TEXT, "is_error": True}
