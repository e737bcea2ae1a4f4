"""The conversation, as messages to send and as records in the session file.

Both have the same content. The messages in memory are built by the rules that apply when the file is read, so a
resumed session sends the same bytes as before and the prompt cache applies. Messages are sanitized before they are
recorded, because the API rejects blank text, invalid images and lone surrogates. Only the end of the message
buffer can still change; earlier messages are kept as encoded bytes, so the cost of encoding a request depends
only on its new messages.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, Final, cast

import msgspec

from steno.agent.context.token_usage import estimate_blocks, estimate_messages, message_text
from steno.agent.recorder import AttachmentRecord, Recorder, new_uuid, plan_slug, session_slug
from steno.errors import StenoError
from steno.format.encode import Timings
from steno.llm.messages_api import Block, Message, Response, encode_message
from steno.session.resume.api_rules import MANY_IMAGES, NO_CONTENT, fix_block, is_blank
from steno.session.resume.clients import STENO
from steno.session.resume.entries import Entry, EntryKind, only_thinking, text_block
from steno.session.resume.replay import (
    MICROCOMPACT_SUBTYPE,
    MessageValidator,
    flaw_among_many_images,
    images_in,
    join_user_entries,
    trim_message,
    without_images,
)
from steno.session.turns.compactions import repeated_id
from steno.tools.protocol import ToolResult


def sanitize_content(content: str | list[Block]) -> str | list[Block]:
    """Return user content that the API accepts."""
    if isinstance(content, str):
        return _replace_lone_surrogates(content) if content.strip() else NO_CONTENT
    fixed_blocks = [fixed for block in content if (fixed := fix_block(block, "user")) is not None]
    return _replace_lone_surrogates(fixed_blocks) or NO_CONTENT


def sanitize_result(result: ToolResult) -> ToolResult:
    """Return a tool result that the API accepts."""
    block = {"type": "tool_result", "tool_use_id": "x", "content": result.content}
    fixed = fix_block({**block, "is_error": result.is_error}, "user") or block
    return msgspec.structs.replace(
        result, content=_replace_lone_surrogates(fixed["content"]), detail=_replace_lone_surrogates(result.detail)
    )


def sanitize_response(response: Response) -> Response:
    """Remove blank blocks from a response; a response with only thinking becomes empty."""
    blocks = [
        block if only_thinking([block]) else _replace_lone_surrogates(block)
        for block in response.blocks
        if not is_blank(block)
    ]
    return msgspec.structs.replace(response, blocks=[] if only_thinking(blocks) else blocks)


def _replace_lone_surrogates(value: Any) -> Any:
    """Replace lone surrogates, which cannot be encoded as UTF-8."""
    try:
        msgspec.json.encode(value)
    except (UnicodeEncodeError, OverflowError):
        return _replace_surrogates_in(value)
    return value


def _replace_surrogates_in(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    if isinstance(value, dict):
        items = cast("dict[Any, Any]", value).items()
        return {_replace_surrogates_in(key): _replace_surrogates_in(item) for key, item in items}
    if isinstance(value, list | tuple):
        return [_replace_surrogates_in(each) for each in cast("list[Any]", value)]
    return value


_REMINDER: Final = "<system-reminder>\n{}\n</system-reminder>"
_REMINDER_MARKS: Final = _REMINDER.split("{}")


class MessageBuffer:
    """The messages of a conversation, in the form in which they are sent."""

    def __init__(self, messages: Sequence[Message] = ()) -> None:
        self._validator = MessageValidator()
        self._settled: list[Message] = []
        self._tokens = 0
        """Estimated tokens of the settled messages."""
        self._encoded: list[msgspec.Raw] = []
        """Encoded settled messages that were already sent."""
        self._last_answer: Entry | None = None
        """The last response, until a user message follows it."""
        self._user_entries: list[Entry] = []
        """User entries since the last response, kept separate because reminders are reordered on joining."""
        entries = [Entry(message["role"], content_blocks(message["content"])) for message in messages]
        if entries and entries[-1].role == "user":
            self._user_entries = _split_reminders(entries.pop().blocks)
        elif entries:
            self._last_answer = entries.pop()
        self._settle_entries(entries)

    @property
    def settled_messages(self) -> Sequence[Message]:
        """The messages that no longer change, except for trimmed tool results."""
        return self._settled

    @property
    def tokens(self) -> int:
        """Estimated tokens of all messages."""
        return self._tokens + estimate_messages(self._open_messages())

    @property
    def user_tokens(self) -> int:
        """Estimated tokens of the user entries since the last response."""
        return sum(estimate_blocks(entry.blocks) for entry in self._user_entries)

    def messages(self) -> list[Message]:
        """Return all messages, valid for the API."""
        return [*self._settled, *self._open_messages()]

    def wire(self) -> list[Message | msgspec.Raw]:
        """Return all messages for a request, with a cache mark on the last block."""
        for message in self._settled[len(self._encoded) :]:
            self._encoded.append(encode_message(message))
        open_messages = self._open_messages()
        if open_messages:
            return [*self._encoded, *open_messages[:-1], _with_cache_mark(open_messages[-1])]
        return [*self._encoded[:-1], *map(_with_cache_mark, self._settled[-1:])]

    def append(self, role: str, blocks: list[Block], kind: EntryKind = "message") -> None:
        """Add content; consecutive user content is joined into one message."""
        if not blocks:
            return
        if role == "user":
            self._settle_last_answer()
            self._user_entries.append(Entry(role, list(blocks), kind=kind))
            return
        self._settle_last_answer()
        user_entries, self._user_entries = self._user_entries, []
        self._settle_entries(join_user_entries(user_entries, STENO))
        self._last_answer = Entry(role, list(blocks))

    def append_error(self, text: str) -> None:
        """Add the error of a failed request; reminders are not moved up past it."""
        self._user_entries.append(Entry("assistant", [text_block(text)], error=True))

    def trim(self, call_ids: Collection[str]) -> None:
        """Replace the results of tool calls by a note."""
        for index, message in enumerate(self._settled):
            trimmed_message = trim_message(message, call_ids)
            if trimmed_message is message:
                continue
            self._settled[index] = trimmed_message
            self._tokens += estimate_messages([trimmed_message]) - estimate_messages([message])
            if index < len(self._encoded):
                self._encoded[index] = encode_message(trimmed_message)

    def _settle_last_answer(self) -> None:
        answer, self._last_answer = self._last_answer, None
        if answer is not None:
            self._settle_entries([answer])

    def _settle_entries(self, entries: list[Entry]) -> None:
        for entry in entries:
            if entry.blocks:
                valid_messages = self._validator.add(_to_message(entry))
                self._settled += valid_messages
                self._tokens += estimate_messages(valid_messages)

    def _open_messages(self) -> list[Message]:
        # Once user content follows, the last response is settled and no longer open.
        entries = [self._last_answer] if self._last_answer is not None else join_user_entries(self._user_entries, STENO)
        return [message for entry in entries if entry.blocks for message in self._validator.preview(_to_message(entry))]


def content_blocks(content: str | list[Block]) -> list[Block]:
    """Return the content of a message as blocks."""
    return [text_block(content)] if isinstance(content, str) else list(content)


def format_reminder(text: str) -> str:
    """Wrap text in a system reminder."""
    return _REMINDER.format(text)


def _to_message(entry: Entry) -> Message:
    return {"role": entry.role, "content": list(entry.blocks)}


def _with_cache_mark(message: Message) -> Message:
    """Return a message with a cache mark on its last block."""
    blocks: list[dict[str, Any]] = message["content"]
    if blocks[-1].get("type") in ("thinking", "redacted_thinking"):
        return message
    marked = {**blocks[-1], "cache_control": {"type": "ephemeral"}}
    return {**message, "content": [*blocks[:-1], marked]}


def _without_joined_newline(block: Block) -> Block:
    """Return a block without the newline added when it was joined."""
    return text_block(str(block["text"]).rstrip("\n")) if "text" in block else block


def _split_reminders(blocks: list[Block]) -> list[Entry]:
    """Split a joined user message into its entries, reminders first."""
    reminder_count = 0
    opening, closing = _REMINDER_MARKS
    for block in blocks:
        text = str(block.get("text", ""))
        is_image = reminder_count and block.get("type") == "image"
        is_reminder = text.startswith(opening) and text.rstrip("\n").endswith(closing.strip())
        if not is_reminder and not is_image:
            break
        reminder_count += 1
    entries = [Entry("user", [_without_joined_newline(block)], kind="reminder") for block in blocks[:reminder_count]]
    return [*entries, Entry("user", blocks[reminder_count:])] if blocks[reminder_count:] else entries


INTERRUPTION_TEXTS: Final = ("[Request interrupted by user]", "[Request interrupted by user for tool use]")
"""Texts recorded for an interruption during a response and during tool calls."""
_CALL_ID_FIELDS: Final = {"tool_use": "id", "tool_result": "tool_use_id"}


class RetainedTail(msgspec.Struct, frozen=True):
    """The last messages of a conversation, which a compaction keeps."""

    messages: list[Message]
    model: str
    """The model that wrote the responses."""


class SessionCounters(msgspec.Struct):
    """Counters of a session that continue across its records."""

    turn_index: int = 0
    """Number of turns."""
    prompt_index: int = 0
    """Number of prompts that the user typed."""
    dropped_tokens: int = 0
    """Number of tokens removed by compactions."""

    def position(self) -> dict[str, int]:
        """Return the position in the session as recorded in `turnPosition`."""
        return {"promptIndex": self.prompt_index, "turnIndex": self.turn_index}


class Conversation:
    """The messages of a session and the recorder of its file."""

    def __init__(
        self, recorder: Recorder, messages: Sequence[Message] = (), counters: SessionCounters | None = None
    ) -> None:
        self.recorder = recorder
        self.counters = counters or SessionCounters()
        self._buffer = MessageBuffer(messages)
        self._open_calls: dict[str, Block] = {}
        self.last_prompt = ""
        self.uncounted_tokens = self._buffer.tokens
        """Estimated tokens added since the last usage reported by the API."""

    def reset(self, messages: Sequence[Message], last_prompt: str, counters: SessionCounters) -> None:
        """Reset the conversation to the state in the file, after a record could not be saved."""
        self.counters = counters
        self._buffer = MessageBuffer(messages)
        self._open_calls = {}
        self.last_prompt = last_prompt
        self.uncounted_tokens = self._buffer.tokens

    def messages(self) -> list[Message]:
        """Return the messages to send, valid for the API."""
        return self._buffer.messages()

    @property
    def tokens(self) -> int:
        """Estimated tokens of all messages, as sent."""
        return self._buffer.tokens

    def wire(self) -> list[Message | msgspec.Raw]:
        """Return the messages to send; messages that were sent before are returned as encoded bytes."""
        return self._buffer.wire()

    @property
    def settled_messages(self) -> Sequence[Message]:
        """The messages that no longer change."""
        return self._buffer.settled_messages

    def count_from_last_answer(self) -> None:
        """Treat everything up to the last response as counted by the API."""
        self.uncounted_tokens = self._buffer.user_tokens

    @property
    def open_calls(self) -> list[Block]:
        """The tool calls without a result, in order."""
        return list(self._open_calls.values())

    def add_prompt(
        self, content: str | list[Block], *, meta: bool = False, typed: str | None = None, **fields: Any
    ) -> str:
        """Record a user message; `meta` for text that the user did not write.

        `typed` is the text that the user typed, if different.
        """
        content = self._drop_excess_images(sanitize_content(content))
        if meta:
            fields["isMeta"] = True
        else:
            # A command expanded from an empty typed text leaves the last prompt unchanged.
            prompt_text = message_text(content if typed is None else typed and sanitize_content(typed))
            self.last_prompt = prompt_text or self.last_prompt
        (uuid,) = self.recorder.write(self.recorder.composer.prompt(content, **fields))
        self._append("user", content_blocks(content))
        return uuid

    def add_user_prompt(self, content: str | list[Block], *, typed: str, mode: str, interactive: bool) -> str:
        """Record a prompt that begins a turn in a permission mode.

        `typed` is the text that the user typed, if different.
        """
        counters = self.counters
        counters.turn_index += 1
        counters.prompt_index += interactive
        if mode == "plan":
            self.recorder.set_slug(plan_slug(self.recorder.session_id, message_text(content)))
        origin_fields: dict[str, Any] = {"promptSource": "sdk", "turnOrigin": "sdk"}
        if interactive:
            origin_fields = {"origin": {"kind": "human"}, "promptSource": "typed", "turnOrigin": "human"}
        try:
            return self.add_prompt(
                content, typed=typed, permissionMode=mode, **origin_fields, turnPosition=counters.position()
            )
        except StenoError:
            counters.turn_index -= 1
            counters.prompt_index -= interactive
            raise

    def add_interruption(self, *, calls: bool) -> None:
        """Record an interruption, which does not count as a prompt."""
        last_prompt = self.last_prompt
        self.add_prompt(INTERRUPTION_TEXTS[calls])
        self.last_prompt = last_prompt

    def add_response(
        self, response: Response, timings: Timings | None = None, **request_fields: str
    ) -> tuple[str, ...]:
        """Record a response, one record per block; nothing for an empty response.

        `timings` has the durations of its blocks; `request_fields` has parameters of the request:
        `requestedModel`, `effort`.
        """
        blocks = response.blocks
        if not blocks:
            return ()
        records = self.recorder.composer.response(
            blocks,
            message_id=response.id,
            model=response.model,
            stop_reason=response.stop_reason,
            stop_sequence=response.stop_sequence,
            usage=response.usage,
            request_id=response.request_id,
            timings=timings,
            **{"requestedModel": response.model, **request_fields},
        )
        uuids = self.recorder.write(*records)
        self._append("assistant", blocks)
        self.uncounted_tokens = 0
        for block in blocks:
            if block.get("type") == "tool_use":
                self._open_calls[str(block.get("id"))] = block
        return uuids

    def add_attachments(self, attachments: Iterable[AttachmentRecord]) -> tuple[str, ...]:
        """Record attachments and add the parts for the model to the messages."""
        compose = self.recorder.composer
        uuids: tuple[str, ...] = ()
        for attachment in attachments:
            if attachment.subtype:
                uuids += self.recorder.write(compose.note(attachment.subtype, **attachment.fields))
                continue
            texts = tuple(map(format_reminder, attachment.parts or filter(None, (attachment.text,))))
            # The image is in the attachment itself: Claude Code derives the message from it.
            recorded_texts = () if attachment.image is not None else texts
            role = "user" if attachment.parts else attachment.role
            record = compose.attachment(attachment.fields, *recorded_texts, role=role, beside=attachment.call_id)
            uuids += self.recorder.write(record)
            blocks = [*map(text_block, texts), *filter(None, (attachment.image,))]
            for block in blocks:
                self._append("user", [block], kind="reminder")
        return uuids

    def has_room_for(self, image: Block) -> bool:
        """Return whether the API accepts another image in addition to the previous ones."""
        return self._drop_excess_images([image]) == [image]

    def add_local_command(self, text: str, **fields: Any) -> None:
        """Record the output of a local command."""
        compose = self.recorder.composer
        record_fields = {"content": text, "level": "info", "isMeta": False, **fields}
        self.recorder.write(compose.note("local_command", **record_fields))
        self._append("user", [text_block(text)])

    def add_result(self, call_id: str, result: ToolResult, **fields: Any) -> str:
        """Record the result of a tool call; `fields` are additional fields of the record."""
        result = sanitize_result(result)
        record = self.recorder.composer.result(
            call_id, self._drop_excess_images(result.content), is_error=result.is_error, detail=result.detail, **fields
        )
        (uuid,) = self.recorder.write(record)
        self._append("user", record["message"]["content"])
        self._open_calls.pop(call_id, None)
        return uuid

    def add_pending_result(self, call_id: str, result: ToolResult, *, source: str | None) -> None:
        """Queue a result for a call of the record `source` that the messages already contain.

        The result is written with the next record: until then, another process may still work on the call.
        """
        self.recorder.write_with_next(
            self.recorder.composer.result(
                call_id,
                result.content,
                is_error=result.is_error,
                detail=f"Error: {result.content}",
                sourceToolAssistantUUID=source,
            )
        )

    def add_failure(self, text: str, **fields: Any) -> str:
        """Record a failed request with additional `fields`; the text is not sent."""
        (uuid,) = self.recorder.write(self.recorder.composer.failure(text, **fields))
        # Reminders must not move up past the failure.
        self._buffer.append_error(text)
        return uuid

    def replace_by_summary(
        self, summary: str, tail: RetainedTail, *, trigger: str, tokens_before: int, tokens_after: int, seconds: float
    ) -> None:
        """Replace all messages by a summary, followed by the tail, which is recorded again.

        `tokens_before` and `tokens_after` are the tokens of the messages; `tokens_after` excludes the system
        prompt and the tools. `seconds` is the duration of the compaction.
        """
        counters, recorder = self.counters, self.recorder
        dropped_tokens = counters.dropped_tokens + max(tokens_before - tokens_after, 0)
        metadata = {
            "trigger": trigger,
            "preTokens": tokens_before,
            "durationMs": round(seconds * 1000),
            "postTokens": tokens_after,
            "cumulativeDroppedTokens": dropped_tokens,
        }
        recorder.set_slug(session_slug(recorder.session_id))
        recorder.write(*recorder.composer.compaction(summary, metadata=metadata, position=counters.position()))
        counters.dropped_tokens = dropped_tokens
        self._buffer = MessageBuffer()
        self._open_calls = {}
        self._append("user", content_blocks(summary))
        # With new call IDs, because Claude Code searches the whole file for the result of a call.
        new_ids: dict[str, str] = {}
        for message in tail.messages:
            blocks = [_with_new_call_id(block, new_ids) for block in content_blocks(message["content"])]
            self._repeat_message(message["role"], blocks, tail.model)

    def trim_results(self, call_ids: Sequence[str], *, tokens_before: int, tokens_saved: int) -> None:
        """Replace tool results by a note in all later requests; the file keeps them."""
        metadata = {
            "trigger": "auto",
            "preTokens": tokens_before,
            "tokensSaved": tokens_saved,
            "compactedToolIds": list(call_ids),
            "clearedAttachmentUUIDs": [],
        }
        self.recorder.write(
            self.recorder.composer.note(
                MICROCOMPACT_SUBTYPE,
                content="Context microcompacted",
                isMeta=False,
                level="info",
                microcompactMetadata=metadata,
            )
        )
        self._buffer.trim(frozenset(call_ids))

    def add_turn_duration(self, seconds: float, *, pending_agents: int) -> None:
        """Record the duration of a turn and the number of sub-agents still running."""
        recorder = self.recorder
        recorder.write(
            recorder.composer.turn_duration(
                round(seconds * 1000), messages=recorder.message_count, pending_agents=pending_agents
            )
        )

    def end_turn(self) -> None:
        """Record the state of the session at the end of a turn."""
        self.recorder.end_turn(self.last_prompt)

    def _drop_excess_images(self, content: str | list[Block]) -> str | list[Block]:
        """Return the content without images that the API would reject in addition to the previous ones."""
        if isinstance(content, str) or not any(images_in(content)):
            return content
        images = [image for message in self.messages() for image in images_in(message["content"])]

        def reason(image: Block) -> str:
            candidates = [*images, image]
            flaws = [flaw for candidate in candidates if (flaw := flaw_among_many_images(candidate))]
            if flaws and len(candidates) > MANY_IMAGES:
                return flaws[0]
            images.append(image)
            return ""

        return without_images(content, reason)

    def _repeat_message(self, role: str, blocks: list[Block], model: str) -> None:
        if role == "assistant":
            message_id, has_calls = (
                repeated_id(self.recorder.leaf),
                any(part.get("type") == "tool_use" for part in blocks),
            )
            reason = "tool_use" if has_calls else "end_turn"
            self.add_response(Response(id=message_id, model=model, blocks=blocks, stop_reason=reason))
            return
        for block in blocks:
            if block.get("type") == "tool_result":
                result = ToolResult(block.get("content", ""), is_error=bool(block.get("is_error", False)))
                self.add_result(str(block.get("tool_use_id")), result)
        other_blocks = [block for block in blocks if block.get("type") != "tool_result"]
        if other_blocks:
            last_prompt = self.last_prompt
            self.add_prompt(other_blocks, repeatsCompactSummary=True)
            self.last_prompt = last_prompt

    def _append(self, role: str, blocks: list[Block], kind: EntryKind = "message") -> None:
        self.uncounted_tokens += estimate_blocks(blocks)
        self._buffer.append(role, blocks, kind)


def _with_new_call_id(block: Block, new_ids: dict[str, str]) -> Block:
    """Return a block with a new ID for its call."""
    id_field = _CALL_ID_FIELDS.get(str(block.get("type")))
    if id_field is None:
        return block
    old_id = str(block.get(id_field))
    return {**block, id_field: new_ids.setdefault(old_id, f"toolu_{new_uuid().replace('-', '')[:24]}")}
