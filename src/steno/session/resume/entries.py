"""Converts a chain of nodes to entries with API blocks, settles open calls, and drops empty responses."""

import json
from collections.abc import Iterator
from typing import Any, Final, Literal, TypeAlias, cast

from steno.format.message import SYNTHETIC, THINKING_TYPES
from steno.session.resume.clients import Client
from steno.session.transcript import Node, Transcript

Json: TypeAlias = dict[str, Any]
Blocks: TypeAlias = list[Json]
EntryKind: TypeAlias = Literal["message", "command", "reminder", "synthetic"]
_COMMAND_STARTS: Final = ("Caveat: ", "<local-command-", "<command-name>", "<bash-input>", "<bash-stdout>")
_QUEUED_TEXT: Final = "<system-reminder>\nThe user sent a new message while you were working:\n{}\n</system-reminder>"
_READ_CALL_TEXT: Final = "<system-reminder>\nCalled the Read tool with the following input: {}\n</system-reminder>"
_READ_TYPES: Final = frozenset({"file", "directory"})
"""Attachment types presented as Read calls."""
_READ_RESULT_TEXT: Final = "<system-reminder>\nResult of calling the Read tool:\n{}\n</system-reminder>"


class Entry:
    """One contribution of a record to the conversation.

    `group` is the response of an assistant entry; an `alone` entry is not merged with the next one; `error` marks a
    synthetic answer.
    """

    __slots__ = ("alone", "blocks", "error", "group", "kind", "leading", "role")

    def __init__(
        self,
        role: str,
        blocks: Blocks,
        *,
        kind: EntryKind = "message",
        group: object = None,
        error: bool = False,
        alone: bool = False,
    ) -> None:
        self.role = role
        self.blocks = blocks
        self.kind: EntryKind = kind
        self.group = group
        self.error = error
        self.alone = alone
        self.leading: int | None = None

    def merge(self, blocks: Blocks, *, newline: bool) -> None:
        """Merge blocks into this entry, results first; text followed by text ends in a newline."""
        if self.leading is None:
            self.leading = self._results_first()
        own_last, other_first = self.blocks[-1:], blocks[:1]
        if newline and own_last and other_first and own_last[0].get("type") == other_first[0].get("type") == "text":
            self.blocks[-1] = {**own_last[0], "text": f"{own_last[0].get('text', '')}\n"}
        results = [block for block in blocks if block.get("type") == "tool_result"]
        self.blocks[self.leading : self.leading] = results
        self.leading += len(results)
        self.blocks.extend(block for block in blocks if block.get("type") != "tool_result")

    def _results_first(self) -> int:
        results = [block for block in self.blocks if block.get("type") == "tool_result"]
        rest = [block for block in self.blocks if block.get("type") != "tool_result"]
        self.blocks = [*results, *rest]
        return len(results)

    @property
    def has_tool_results(self) -> bool:
        """Whether this is a user entry with tool results."""
        return self.role == "user" and has_results(self.blocks)

    @property
    def calls(self) -> list[str]:
        """IDs of the tool calls."""
        return [str(block.get("id")) for block in self.blocks if block.get("type") == "tool_use"]


def has_results(blocks: Blocks) -> bool:
    """Return whether any block is a tool result."""
    return any(block.get("type") == "tool_result" for block in blocks)


def only_thinking(blocks: Blocks) -> bool:
    """Return whether all blocks are thinking."""
    return all(block.get("type") in THINKING_TYPES for block in blocks)


def without_thinking(blocks: Blocks) -> Blocks:
    """Return the blocks that are not thinking."""
    return [block for block in blocks if block.get("type") not in THINKING_TYPES]


def text_block(text: str) -> dict[str, Any]:
    """Return a text block."""
    return {"type": "text", "text": text}


def entries_of(transcript: Transcript, chain: list[Node], client: Client) -> Iterator[Entry]:
    """Yield the entries of the records in a chain; most records have none."""
    system_turns = client.system_turns and any(_is_snapshot(transcript, node) for node in chain)
    model = _model_for(chain, client)
    for node in chain:
        if node.is_message:
            if node.has_content:
                entry = _message_entry(transcript, node, client)
                if model and node.type == "assistant" and node.model not in (model, SYNTHETIC):
                    entry.blocks = without_thinking(entry.blocks)
                yield entry
        elif node.type == "attachment":
            yield from _attachment_entries(transcript, node, client, system_turns=system_turns)
        elif node.subtype == "local_command" and client.sends_local_commands:
            fields = transcript.record(node).fields
            content = fields.get("content")
            if isinstance(content, str) and content and not fields.get("isDisplayOnly"):
                yield Entry("user", [text_block(content)], kind="command")


def _model_for(chain: list[Node], client: Client) -> str:
    if not client.default_model:
        return ""
    models = (node.model for node in reversed(chain) if node.type == "assistant")
    last = next((model for model in models if model not in ("", SYNTHETIC)), "")
    return client.model_for(last)


def _message_entry(transcript: Transcript, node: Node, client: Client) -> Entry:
    blocks = _blocks(transcript.record(node).fields.get("message"))
    if node.type == "user":
        return Entry("user", blocks, kind="command" if _is_command(blocks) else "message")
    nameless = node.message_id is None and not node.model and not client.merges_nameless
    group = node if nameless else node.message_id
    return Entry("assistant", blocks, group=group, error=node.synthetic_error)


def _is_command(blocks: Blocks) -> bool:
    text = str(blocks[0].get("text", "")) if len(blocks) == 1 else ""
    return text.startswith(_COMMAND_STARTS)


def _blocks(message: Any) -> Blocks:
    fields = cast("dict[str, Any]", message) if isinstance(message, dict) else {}
    content = fields.get("content")
    if isinstance(content, str):
        return [text_block(content)]
    return [sound for block in _dicts_in(content) if (sound := _usable_block(block)) is not None]


def _usable_block(block: dict[str, Any]) -> dict[str, Any] | None:
    match block.get("type"):
        case "tool_use":
            return block if isinstance(block.get("id"), str) else None
        case "tool_result" if isinstance(block.get("tool_use_id"), str):
            content = block.get("content")
            if content is None or isinstance(content, str):
                return block
            inner = [sound for inner_block in _dicts_in(content) if (sound := _usable_block(inner_block)) is not None]
            return {**block, "content": inner}
        case "tool_result":
            return None
        case kind:
            return block if isinstance(kind, str) else None


def _dicts_in(value: Any) -> list[dict[str, Any]]:
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    return [cast("dict[str, Any]", item) for item in items if isinstance(item, dict)]


def _is_snapshot(transcript: Transcript, node: Node) -> bool:
    """Return whether this record stores system prompt content that was sent with the conversation."""
    return node.type == "attachment" and transcript.record(node).kind == "attachment/prompt_snapshot"


def _attachment_entries(transcript: Transcript, node: Node, client: Client, *, system_turns: bool) -> Iterator[Entry]:
    fields = transcript.record(node).fields
    body = fields.get("attachment")
    attachment = cast("dict[str, Any]", body) if isinstance(body, dict) else {}
    rendered = fields.get("rendered")
    apart = client.tells_reads_apart and str(attachment.get("type")) in _READ_TYPES
    if isinstance(rendered, list) and client.sends_rendered:
        role = "system" if system_turns and fields.get("renderedRole") == "system" else "user"
        for index, item in enumerate(cast("list[Any]", rendered)):
            content = cast("dict[str, Any]", item).get("content") if isinstance(item, dict) else None
            if isinstance(content, str):
                yield _reminder_entry(content, role, alone=apart and not index)
    elif attachment.get("type") == "file":
        yield from _file_entries(attachment, alone=apart)
    elif attachment.get("type") == "queued_command":
        yield _reminder_entry(_QUEUED_TEXT.format(attachment.get("prompt", "")))


def _file_entries(attachment: dict[str, Any], *, alone: bool) -> Iterator[Entry]:
    """Yield a mentioned file as Claude Code presents it: as the result of a Read call."""
    content = attachment.get("content")
    inner = cast("dict[str, Any]", content).get("file") if isinstance(content, dict) else None
    if not isinstance(inner, dict):
        return
    file = cast("dict[str, Any]", inner)
    name = {"file_path": attachment.get("filename")}
    path = json.dumps(name, separators=(",", ":"), ensure_ascii=False)
    yield _reminder_entry(_READ_CALL_TEXT.format(path), alone=alone)
    if isinstance(file.get("base64"), str) and cast("Json", content).get("type") == "image":
        source = {"type": "base64", "media_type": file.get("type"), "data": file["base64"]}
        yield Entry("user", [{"type": "image", "source": source}], kind="reminder")
        return
    first = file.get("startLine")
    start = first if isinstance(first, int) else 1
    lines = str(file.get("content", "")).split("\n")
    numbered = "\n".join(f"{number}\t{line}" for number, line in enumerate(lines, start))
    yield _reminder_entry(_READ_RESULT_TEXT.format(numbered))


def _reminder_entry(text: str, role: str = "user", *, alone: bool = False) -> Entry:
    if role == "system":
        text = text.removeprefix("<system-reminder>\n").removesuffix("\n</system-reminder>")
    return Entry(role, [text_block(text)], kind="reminder", alone=alone)


INTERRUPTED_CALL: Final = "[Tool call interrupted: the session ended before this call's result was recorded]"
NO_RESPONSE: Final = "No response requested."
_CONTINUE: Final = "Continue from where you left off."


def fix_entries(entries: list[Entry], client: Client, *, ends_with_message: bool = True) -> list[Entry]:
    """Settle open calls, drop empty responses, and answer an unanswered prompt.

    `ends_with_message`: whether the last record is a message rather than a note or event.
    """
    entries = _without_empty_responses(entries)
    entries = _settle_calls(entries, client)
    entries = _without_empty_responses(entries)
    if client.answers_prompts:
        entries = _with_final_answer(entries, client, ends_with_message=ends_with_message)
    return [entry for entry in entries if not (entry.error or _is_blank(entry))]


def _settle_calls(entries: list[Entry], client: Client) -> list[Entry]:
    answered = {
        block.get("tool_use_id") for entry in entries for block in entry.blocks if block.get("type") == "tool_result"
    }
    open_calls = {call for entry in entries for call in entry.calls if call not in answered}
    if not open_calls:
        return entries
    cut_off, kept_open = _open_at_the_end(entries, open_calls) if client.answers_interrupted else ([], set[str]())
    dropped = open_calls - kept_open - set(cut_off)
    for entry in entries:
        if dropped.intersection(entry.calls):
            entry.blocks = [block for block in entry.blocks if block.get("id") not in dropped]
    return [*entries, *(Entry("user", [_interrupted_result(call)], kind="synthetic") for call in cut_off)]


def _open_at_the_end(entries: list[Entry], open_calls: set[str]) -> tuple[list[str], set[str]]:
    """Return the calls that the end of the session interrupted, and the other open calls of its turn."""
    messages = [entry for entry in entries if entry.kind == "message"]
    while messages and messages[-1].role == "assistant" and only_thinking(messages[-1].blocks):
        messages.pop()
    if not messages:
        return [], set()
    prompts = [at for at, entry in enumerate(messages) if _is_prompt(entry)]
    turn = messages[prompts[-1] + 1 :] if prompts else messages
    last = next((entry for entry in reversed(turn) if entry.role == "assistant"), None)
    if last is None:
        return [], set()
    response = [entry for entry in turn if entry.group == last.group]
    cut_off = [call for entry in response for call in entry.calls if call in open_calls]
    if not turn[-1].has_tool_results:
        return cut_off, set()
    return cut_off, {call for entry in turn for call in entry.calls if call in open_calls}


def _is_prompt(entry: Entry) -> bool:
    return entry.role == "user" and not entry.has_tool_results


def _interrupted_result(call: str) -> dict[str, Any]:
    return {"type": "tool_result", "content": INTERRUPTED_CALL, "is_error": True, "tool_use_id": call}


def _is_blank(entry: Entry) -> bool:
    if entry.role != "assistant":
        return False
    return all(block.get("type") == "text" and not str(block.get("text", "")).strip() for block in entry.blocks)


def _without_empty_responses(entries: list[Entry]) -> list[Entry]:
    """Drop responses that contain only blank text and thinking."""
    substantial = {entry.group for entry in entries if _is_substantial(entry)}
    return [e for e in entries if e.role != "assistant" or e.group in substantial or e.error]


def _is_substantial(entry: Entry) -> bool:
    if entry.role != "assistant" or entry.error:
        return False
    return not _is_blank(entry) and not only_thinking(entry.blocks)


def _skip_reminders(entries: list[Entry], index: int) -> int:
    while index < len(entries) and entries[index].kind == "reminder":
        index += 1
    return index


def _with_final_answer(entries: list[Entry], client: Client, *, ends_with_message: bool) -> list[Entry]:
    """Append an answer to a last prompt or result without one."""
    for index in range(len(entries) - 1, -1, -1):
        entry = entries[index]
        if entry.kind not in ("message", "synthetic"):
            continue
        if entry.role == "assistant":
            return entries
        counts = client.answers_only == "last record or result" and entry.has_tool_results
        if client.answers_only and not (ends_with_message or counts):
            return entries
        answer = Entry("assistant", [text_block(NO_RESPONSE)], kind="synthetic", group=object())
        if client.asks_to_continue and entry.has_tool_results:
            prompt = Entry("user", [text_block(_CONTINUE)], kind="synthetic")
            return [*entries, prompt, answer]
        end = _skip_reminders(entries, index + 1)
        return [*entries[:end], answer, *entries[end:]]
    return entries
