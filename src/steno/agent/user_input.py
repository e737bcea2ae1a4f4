"""User input: prompts, companion messages, files mentioned with `@`, and submission.

    look at @src/a.py, @src/, @src/a.py#L3-9 and @"a file.py"

Files that a deny rule matches are not attached, and names that match no file stay text. Files that the
user mentions may be anywhere; files mentioned by a command or piped input are attached only if reading
them needs no approval.
"""

import asyncio
import os
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from steno.agent import events
from steno.agent.context.token_usage import message_text
from steno.agent.conversation import content_blocks
from steno.agent.events import Notice
from steno.agent.recorder import AttachmentRecord, new_uuid
from steno.errors import StenoError
from steno.format.encode import encode
from steno.format.tool_catalogue import SHELL
from steno.llm.messages_api import Block
from steno.permissions.permission_rules import Decision
from steno.tools.file_content import resolve_tool_path
from steno.tools.output import format_size, json_safe_name, quote_name
from steno.tools.protocol import ToolFailure, ToolResult

if TYPE_CHECKING:
    from steno.agent.loop import Agent


class CompanionMessage(msgspec.Struct, frozen=True, kw_only=True):
    """A text that is sent after a prompt or call on behalf of the user: the content of a command or skill."""

    text: str
    fields: dict[str, Any] = {}
    """Additional fields of the record."""
    mentions: tuple[str, ...] = ()
    """The files that the text mentions."""
    records: tuple[AttachmentRecord, ...] = ()
    """Attachments recorded after the text."""

    @property
    def content(self) -> list[Block]:
        """The text as message content."""
        return [{"type": "text", "text": self.text}]


class UserInput(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt with its companion message and attachments."""

    content: str | list[Block]
    typed: str = ""
    """The text that the user typed, if different from the content."""
    companion: CompanionMessage | None = None
    records: tuple[AttachmentRecord, ...] = ()
    refusal: str = ""
    """The reason why the prompt is rejected; empty if it is submitted."""


PromptInput: TypeAlias = str | list[Block] | UserInput | Callable[[], Awaitable[UserInput]]
"""A prompt for an agent: text, blocks, or a function that builds the input."""


def permissions_record(allowed_tools: tuple[str, ...]) -> AttachmentRecord:
    """Return the record of the tools that a command or skill may use without approval."""
    return AttachmentRecord(fields={"type": "command_permissions", "allowedTools": list(allowed_tools)})


_MENTION: Final = re.compile(r'(?:^|(?<=[\s(\[{]))@(?:"(?P<quoted>[^"\n]+)"|(?P<bare>[^\s"]+))')
_LINE_RANGE: Final = re.compile(r"#L(?P<first>\d{1,9})(?:-L?(?P<last>\d{1,9}))?$")
_AGENT_PREFIX: Final = "agent-"
_TRAILING_PUNCTUATION: Final = ".,;:!?)]}'>`"
_MAX_MENTIONS: Final = 50
_MAX_FILE_BYTES: Final = 256 << 10
_MAX_FOLDER_NAMES: Final = 1_000
_CALL_TEXT: Final = "Called the {} tool with the following input: {}"
_RESULT_TEXT: Final = "Result of calling the {} tool:\n{}"
_NOT_ENVELOPED: Final = {"enveloped": False}
"""Marks text that Claude Code must not wrap in another envelope."""
_TRUNCATED_NOTE: Final = (
    "Note: The file {} was too large and has been truncated to the first {} lines. No need to "
    "mention the truncation. Use Read to read more of the file if you need."
)
_NOT_ATTACHED_NOTE: Final = (
    "The user mentioned {} ({}). It is not attached: {}. Use Read for the parts that you need, or search it with Grep."
)
_AGENT_REQUESTED_NOTE: Final = "The user requests the sub-agent {!r}. Call it with all necessary context."


class Mention(msgspec.Struct, frozen=True):
    """A name after `@`, with an optional line range."""

    name: str
    first: int = 0
    last: int = 0
    """Last line; 0 for the whole file."""


def parse_mentions(text: str) -> list[Mention]:
    """Return the mentions in a text, in order and without duplicates.

    >>> [each.name for each in parse_mentions('see @a.py, (@b) and @"c d#L2-3", not me@e.org')]
    ['a.py,', 'b)', 'c d']
    """
    mentioned_names = (match["quoted"] or match["bare"] for match in _MENTION.finditer(text))
    return list(dict.fromkeys(map(_parse_mention, mentioned_names)))[:_MAX_MENTIONS]


def _parse_mention(name: str) -> Mention:
    match = _LINE_RANGE.search(name.rstrip(_TRAILING_PUNCTUATION))
    if match is None:
        return Mention(name)
    first = int(match["first"])
    return Mention(name[: match.start()], max(first, 1), max(int(match["last"] or first), 1))


async def read_mentions(agent: "Agent", typed: str, extra_names: Iterable[str] = ()) -> tuple[AttachmentRecord, ...]:
    """Return the attachments for the files that the user, a command or piped input mentions."""
    user_mentions = parse_mentions(typed.removesuffix(agent.piped_input))
    all_mentions = (*user_mentions, *parse_mentions(typed), *map(_parse_mention, extra_names))
    records: dict[str, AttachmentRecord | None] = {}
    for mention in dict.fromkeys(all_mentions):
        path = next(
            filter(None, (_resolve_mention(agent, candidate) for candidate in _possible_names(mention.name))), ""
        )
        key = f"{path}#{mention.first}" if path else mention.name
        if key in records:
            continue
        if path:
            records[key] = await _read_mention(agent, path, mention, is_user_mention=mention in user_mentions)
        else:
            records[key] = _agent_mention_record(agent, mention.name)
    return tuple(each for each in records.values() if each is not None)


def _possible_names(name: str) -> Iterator[str]:
    """Yield the candidates for a name: with and without trailing punctuation."""
    yield name
    while name and name[-1] in _TRAILING_PUNCTUATION:
        name = name[:-1]
        yield name


def _resolve_mention(agent: "Agent", name: str) -> str:
    """Return the path of an existing file or directory; empty if it does not exist."""
    try:
        path = resolve_tool_path(name, agent.executor.context)
    except ToolFailure:
        return ""
    return path if os.path.isfile(path) or os.path.isdir(path) else ""


def _agent_mention_record(agent: "Agent", name: str) -> AttachmentRecord | None:
    """Return the attachment for a mentioned sub-agent type; None for another name."""
    agent_types = (
        candidate.removeprefix(_AGENT_PREFIX)
        for candidate in _possible_names(name)
        if candidate.startswith(_AGENT_PREFIX)
    )
    agent_type = next((each for each in agent_types if each in agent.subagent_types), None)
    fields = {"type": "agent_mention", "agentType": agent_type}
    return (
        None if agent_type is None else AttachmentRecord(fields=fields, text=_AGENT_REQUESTED_NOTE.format(agent_type))
    )


async def _read_mention(
    agent: "Agent", path: str, mention: Mention, *, is_user_mention: bool
) -> AttachmentRecord | None:
    """Return the attachment for a file or directory; if it cannot be read, notify the user."""
    decision = agent.executor.permission_checker.judge("Read", {"file_path": path}, cwd=agent.executor.context.cwd)
    reason = decision.reason
    if decision.verdict == "allow" or (is_user_mention and decision.verdict == "ask"):
        reader = _MentionReader(agent, path, mention, decision)
        try:
            return await (reader.read_folder() if _is_directory(path) else reader.read_file())
        except (StenoError, OSError, ValueError) as error:
            reason = str(error)
    agent.emit(Notice(f"{quote_name(path)} not attached: {reason}", "warning"))
    return None


class _MentionReader:
    """Reads a mentioned file or directory."""

    def __init__(self, agent: "Agent", path: str, mention: Mention, decision: Decision) -> None:
        self._agent = agent
        self._context = agent.executor.context
        self._path = path
        self._mention = mention
        self._decision = decision
        self._display_fields = {"displayPath": json_safe_name(os.path.relpath(path, self._context.cwd))}

    async def read_folder(self) -> AttachmentRecord | None:
        """Return the listing of a directory, without names hidden by deny rules."""
        path = self._path
        names = await asyncio.to_thread(os.listdir, path)
        is_visible = self._context.visibility_filter(path)
        visible_names = sorted(json_safe_name(name) for name in names if is_visible(name))
        if names and not visible_names:
            return None
        listing = "\n".join(visible_names[:_MAX_FOLDER_NAMES])
        if len(visible_names) > _MAX_FOLDER_NAMES:
            listing += f"\n… and {len(visible_names) - _MAX_FOLDER_NAMES:,} more"
        fields = {"type": "directory", "path": json_safe_name(path), "content": listing, **self._display_fields}
        tool_input = {"command": f"ls {json_safe_name(path)}", "description": f"Lists files in {json_safe_name(path)}"}
        return AttachmentRecord(
            fields=fields, parts=(_call_text(SHELL, tool_input), _RESULT_TEXT.format(SHELL, listing))
        )

    async def read_file(self) -> AttachmentRecord:
        """Return the content of a file, or a reference to a file that is too large."""
        size = _file_size(self._path)
        if size > _MAX_FILE_BYTES and not self._mention.first and not _is_image(self._path):
            return self._not_attached_record(size, "it is too large to attach")
        result = await self._read()
        content_type = result.detail["type"]
        if content_type not in {"text", "image", "notebook"}:
            return self._not_attached_record(size, "it is not a text file")
        fields = {"type": "file", "filename": json_safe_name(self._path), "content": result.detail}
        call_text = _call_text("Read", {"file_path": json_safe_name(self._path)})
        if content_type == "image":
            (block,) = content_blocks(result.content)
            if not self._agent.conversation.has_room_for(block):
                return self._not_attached_record(size, "the conversation already contains many images")
            return AttachmentRecord(
                fields={**fields, **self._display_fields, "savedCopyFraming": _NOT_ENVELOPED},
                parts=(call_text,),
                image=block,
            )
        parts = [call_text, _RESULT_TEXT.format("Read", _file_text(result))]
        file = result.detail["file"]
        if content_type == "text" and not self._mention.first and file["numLines"] < file["totalLines"]:
            fields["truncated"] = True
            parts.append(_TRUNCATED_NOTE.format(json_safe_name(self._path), file["numLines"]))
        return AttachmentRecord(
            fields={**fields, **self._display_fields, "savedCopyFraming": _NOT_ENVELOPED}, parts=tuple(parts)
        )

    async def _read(self) -> ToolResult:
        from steno.tools.builtin.read import Read

        tool_input: dict[str, Any] = {"file_path": self._path}
        first, last = self._mention.first, self._mention.last
        if first:
            tool_input |= {"offset": first, "limit": max(last - first + 1, 1)}
        call_id = new_uuid()
        # Read may only open the path that was checked, even if links change in between.
        self._context.approved_paths[call_id] = self._decision.paths
        try:
            return await Read().run(tool_input, self._context, call_id)
        finally:
            self._context.approved_paths.pop(call_id, None)

    def _not_attached_record(self, size: int, reason: str) -> AttachmentRecord:
        path = json_safe_name(self._path)
        fields = {
            "type": "at_mention_reference",
            "mentions": [path],
            "unread": "too_large",
            "fileSize": size,
            **self._display_fields,
        }
        return AttachmentRecord(fields=fields, text=_NOT_ATTACHED_NOTE.format(path, format_size(size), reason))


def _call_text(tool: str, tool_input: dict[str, str]) -> str:
    return _CALL_TEXT.format(tool, encode(tool_input).decode("utf-8"))


def _file_text(result: ToolResult) -> str:
    """Return the text of a read result for the model; of a notebook, the cells without images."""
    content, file = result.content, result.detail["file"]
    if file.get("content"):
        lines = enumerate(file["content"].split("\n"), file["startLine"])
        return "\n".join(f"{number}\t{line}" for number, line in lines)
    if isinstance(content, str):
        return content
    return encode([block for block in content if block.get("type") == "text"]).decode("utf-8")


def _is_directory(path: str) -> bool:
    return os.path.isdir(path)


def _file_size(path: str) -> int:
    return os.path.getsize(path)


def _is_image(path: str) -> bool:
    from steno.tools.file_content import detect_image_type

    with open(path, "rb") as file:
        return bool(detect_image_type(file.read(1 << 12)))


_BLOCKED_BY_HOOK: Final = "Prompt blocked by a hook."


async def submit_prompt(agent: "Agent", user_input: UserInput) -> str:
    """Record a prompt with its attachments; return why it was rejected, or an empty string."""
    if user_input.refusal:
        return _record_refusal(agent, user_input.records, user_input.refusal)
    conversation = agent.conversation
    typed = user_input.typed or message_text(user_input.content)
    outcome = await agent.executor.hooks.dispatch(agent.turn_events.start_event(typed))
    agent.emit_notices(outcome)
    if outcome.blocked and not outcome.ends_turn:
        return _record_refusal(agent, outcome.records, outcome.reason)
    while agent.pending_attachments:
        conversation.add_attachments(agent.pending_attachments[:1])
        # Removed only after it was saved; otherwise it is kept for the next prompt.
        del agent.pending_attachments[0]
    uuid = _record_prompt(agent, user_input.content, typed)
    await agent.executor.checkpointer.begin(uuid)
    agent.emit(events.PromptSubmitted(typed, uuid))
    # The prompt of a sub-agent is not typed by the user.
    typed_by_user = "" if agent.turn_events.agent_facts else typed
    if user_input.companion is not None:
        await submit_companion(agent, user_input.companion, typed_by_user)
    else:
        conversation.add_attachments(await read_mentions(agent, typed_by_user))
    conversation.add_attachments((*user_input.records, *(record for record in outcome.records if not record.subtype)))
    for context_text in outcome.context:
        conversation.add_prompt(context_text, meta=True)
    if not outcome.ends_turn:
        return ""
    conversation.add_prompt(_refusal_text(outcome.records, outcome.reason), meta=True)
    return _record_refusal(agent, outcome.records, outcome.reason)


def _record_prompt(agent: "Agent", content: str | list[Block], typed: str) -> str:
    if agent.turn_events.agent_facts:
        return agent.conversation.add_prompt(content, typed=typed)
    mode, interactive = agent.executor.permission_checker.mode, agent.interactive
    return agent.conversation.add_user_prompt(content, typed=typed, mode=mode, interactive=interactive)


async def submit_companion(agent: "Agent", companion: CompanionMessage, typed: str = "") -> None:
    """Record a companion message with the files that it mentions."""
    fields: dict[str, Any] = {"turnCompanion": True, **companion.fields}
    agent.conversation.add_prompt(companion.content, meta=True, **fields)
    agent.conversation.add_attachments(await read_mentions(agent, typed, companion.mentions))
    agent.conversation.add_attachments(companion.records)


def _record_refusal(agent: "Agent", records: tuple[AttachmentRecord, ...], reason: str) -> str:
    """Record that a prompt was rejected; return the reason."""
    for record in records:
        if record.subtype:
            (uuid,) = agent.conversation.add_attachments((record,))
            agent.emit(events.PromptBlocked(record.fields, uuid))
    return _refusal_text(records, reason)


def _refusal_text(records: tuple[AttachmentRecord, ...], reason: str) -> str:
    texts = (str(record.fields["content"]) for record in records if record.subtype)
    return next(texts, reason or _BLOCKED_BY_HOOK)
