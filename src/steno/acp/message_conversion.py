"""Converts prompts to agent input, and agent events and past records to updates."""

import os
from base64 import b64decode
from binascii import Error as BadBase64
from collections.abc import Iterator
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from acp import helpers
from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    AudioContentBlock,
    AvailableCommandsUpdate,
    BlobResourceContents,
    CurrentModeUpdate,
    EmbeddedResourceContentBlock,
    ImageContentBlock,
    PlanEntryStatus,
    ResourceContentBlock,
    TextContentBlock,
    ToolCallProgress,
    ToolCallStart,
    UserMessageChunk,
)

from steno.acp import tool_calls
from steno.agent import events
from steno.agent.events import Event
from steno.errors import BadRequest
from steno.format.lenient_json import as_list, as_object
from steno.format.message import Image, Text, Thinking, ToolResult, ToolUse
from steno.format.records import Record
from steno.llm.messages_api import Block, Response
from steno.session.session import Session
from steno.session.transcript import Node
from steno.session.turns.prompts import PERSON_ORIGINS, origin_of, read_prompt
from steno.tools.file_content import image_result
from steno.tools.protocol import ToolFailure

PromptContent = (
    TextContentBlock | ImageContentBlock | AudioContentBlock | ResourceContentBlock | EmbeddedResourceContentBlock
)


def convert_prompt(blocks: list[PromptContent], cwd: str) -> str | list[Block]:
    """Convert a prompt; text alone becomes a string, so that slash commands are recognized.

    Raises:
        BadRequest: empty prompt, or unsupported content.
    """
    texts: list[str] = []
    context_texts: list[str] = []
    images: list[Block] = []
    for block in blocks:
        match block:
            case TextContentBlock():
                texts.append(block.text)
            case ImageContentBlock():
                images += _image_blocks(block.data, block.uri or "an image")
            case ResourceContentBlock():
                texts.append(_mention(block.uri, cwd))
            case EmbeddedResourceContentBlock():
                resource = block.resource
                texts.append(_mention(resource.uri, cwd, attached=True))
                if isinstance(resource, BlobResourceContents):
                    images += _resource_image(resource)
                else:
                    context_texts.append(_context_text(resource.uri, resource.text))
            case AudioContentBlock():
                raise BadRequest("audio is not supported", hint="Send text.")
    return _join_content("\n\n".join(filter(None, ("".join(texts), *context_texts))), images)


def _join_content(text: str, images: list[Block]) -> str | list[Block]:
    if not text.strip() and not images:
        raise BadRequest("the prompt is empty")
    if not images:
        return text
    return [*([{"type": "text", "text": text}] if text else []), *images]


def _resource_image(resource: BlobResourceContents) -> list[Block]:
    if not (resource.mime_type or "").startswith("image/"):
        raise BadRequest(f"{resource.uri} is neither text nor an image")
    return _image_blocks(resource.blob, resource.uri)


def _image_blocks(data: str, name: str) -> list[Block]:
    try:
        result = image_result(name, b64decode(data, validate=True))
    except (BadBase64, ValueError):
        raise BadRequest(f"{name} is not valid base64") from None
    except ToolFailure as error:
        raise BadRequest(str(error)) from None
    content: Any = result.content
    return content


def _mention(uri: str, cwd: str, *, attached: bool = False) -> str:
    """Return the text that refers to a resource: an `@` mention for files, which makes the agent read them.

    Attached files are named without `@`, because their content is already in the prompt.
    """
    parts = urlsplit(uri)
    if parts.scheme not in ("", "file"):
        return uri
    path = unquote(parts.path)
    relative = os.path.relpath(path, cwd) if os.path.isabs(path) else path
    displayed = path if relative.startswith(os.pardir) else relative
    if attached:
        return displayed
    return f'@"{displayed}"' if any(character.isspace() for character in displayed) else f"@{displayed}"


def _context_text(uri: str, text: str) -> str:
    return f'<context ref="{uri}">\n{text}\n</context>'


_STATUSES: Final = ("pending", "in_progress", "completed")


class TodoPlan:
    """The to-do list, built from tool calls."""

    def __init__(self) -> None:
        self._tasks: dict[str, tuple[str, PlanEntryStatus]] = {}

    def update(self, call: dict[str, Any], detail: Any) -> AgentPlanUpdate | None:
        """Apply a completed tool call; return the plan if it changed."""
        tool_input = as_object(call.get("input")) or {}
        match call.get("name"):
            case "TodoWrite":
                todos = [as_object(todo) or {} for todo in as_list(tool_input.get("todos")) or []]
                self._tasks = {
                    str(index): (str(each.get("content", "")), _plan_status(each.get("status")))
                    for index, each in enumerate(todos)
                }
            case "TaskCreate":
                task = as_object((as_object(detail) or {}).get("task")) or {}
                self._tasks[str(task.get("id"))] = (str(tool_input.get("subject", "")), "pending")
            case "TaskUpdate":
                self._update_task(str(tool_input.get("taskId")), tool_input)
            case _:
                return None
        return helpers.update_plan(helpers.plan_entry(text, status=status) for text, status in self._tasks.values())

    def _update_task(self, task_id: str, tool_input: dict[str, Any]) -> None:
        if tool_input.get("status") == "deleted":
            self._tasks.pop(task_id, None)
        elif task_id in self._tasks:
            text, status = self._tasks[task_id]
            subject = str(tool_input.get("subject") or text)
            self._tasks[task_id] = (subject, _plan_status(tool_input.get("status") or status))


def _plan_status(value: Any) -> PlanEntryStatus:
    return value if value in _STATUSES else "pending"


Update = (
    AgentMessageChunk
    | AgentPlanUpdate
    | AgentThoughtChunk
    | AvailableCommandsUpdate
    | CurrentModeUpdate
    | ToolCallProgress
    | ToolCallStart
    | UserMessageChunk
)
_MAX_OUTPUT_TAIL: Final = 8_000
"""Characters of command output that are shown while it runs, from the end."""
_INTERRUPTED_TEXT: Final = "Interrupted."


def thought_text(text: str) -> AgentThoughtChunk:
    """Return a status message that is not part of the answer."""
    return helpers.update_agent_thought_text(f"{text}\n\n")


def tool_call_start(call: dict[str, Any], cwd: str, *, on_disk: bool = True) -> ToolCallStart:
    """Return the update for a tool call of the model."""
    return helpers.start_tool_call(
        str(call.get("id")),
        tool_calls.call_title(call, cwd),
        kind=tool_calls.tool_kind(str(call.get("name"))),
        status="pending",
        content=tool_calls.call_changes(call, cwd, on_disk=on_disk),
        locations=tool_calls.call_locations(call, cwd),
        raw_input=call.get("input"),
    )


def tool_call_end(call: dict[str, Any], content: str | list[dict[str, Any]], *, failed: bool) -> ToolCallProgress:
    """Return the update for a tool result; successful edits keep the displayed diff."""
    name = str(call.get("name"))
    keeps_content = tool_calls.tool_kind(name) == "edit" and not failed
    return helpers.update_tool_call(
        str(call.get("id")),
        status="failed" if failed else "completed",
        content=None if keeps_content else tool_calls.result_content(name, content),
    )


class UpdateBuilder:
    """Converts the agent events of one session to updates."""

    def __init__(self, cwd: str) -> None:
        self.cwd = cwd
        self._open_calls: dict[str, dict[str, Any]] = {}
        """Announced tool calls without a result, by ID."""
        self._output: dict[str, str] = {}
        self._todos = TodoPlan()
        self._has_text = False
        self.last_response: Response | None = None
        """Last response of the turn."""
        self.failure: events.RequestFailed | None = None
        self.prompt_blocked = False
        """Whether a hook blocked the prompt."""

    def begin_turn(self) -> None:
        """Reset the state for a new turn."""
        self._has_text = self.prompt_blocked = False
        self.last_response = self.failure = None

    def handle(self, event: Event) -> Iterator[Update]:
        """Convert an event to updates."""
        match event:
            case events.ContentDelta("text", text, _):
                self._has_text = True
                yield helpers.update_agent_message_text(text)
            case events.ContentDelta("thinking", text, _):
                yield helpers.update_agent_thought_text(text)
            case events.ResponseReceived(response, _):
                self.last_response = response
                yield from self._requested_calls(response)
            case events.SubagentEvent(_, inner):
                yield from self._subagent_updates(inner)
            case events.RequestFailed():
                self.failure = event
            case events.PromptBlocked():
                self.prompt_blocked = True
            case events.TurnEnded():
                yield from self._turn_ended(event)
            case _:
                yield from self._tool_updates(event)
                yield from self._notice_updates(event)

    def _requested_calls(self, response: Response) -> Iterator[Update]:
        for block in response.blocks:
            if block.get("type") == "tool_use":
                self._open_calls[str(block.get("id"))] = block
                yield tool_call_start(block, self.cwd)

    def _subagent_updates(self, event: Event) -> Iterator[Update]:
        match event:
            case events.ResponseReceived(response, _):
                yield from self._requested_calls(response)
            case events.SubagentEvent(_, inner):
                yield from self._subagent_updates(inner)
            case _:
                yield from self._tool_updates(event)

    def _tool_updates(self, event: Event) -> Iterator[Update]:
        match event:
            case events.ToolStarted(call):
                yield from self._tool_started(call)
            case events.ToolOutput(call, text):
                yield from self._tool_output(call, text)
            case events.ToolEnded(call, result, _, _):
                self._forget_call(str(call.get("id")))
                yield tool_call_end(call, result.content, failed=result.is_error)
                plan = None if result.is_error else self._todos.update(call, result.detail)
                if plan is not None:
                    yield plan
            case _:
                pass

    def _tool_started(self, call: dict[str, Any]) -> Iterator[Update]:
        call_id = str(call.get("id"))
        announced = self._open_calls.get(call_id)
        self._open_calls[call_id] = call
        if announced is None:
            yield tool_call_start(call, self.cwd)
        elif announced.get("input") != call.get("input"):
            yield ToolCallProgress(
                session_update="tool_call_update",
                **tool_calls.pending_call_update(call, self.cwd).model_dump(exclude_none=True),
            )
        yield helpers.update_tool_call(call_id, status="in_progress")

    def _tool_output(self, call_id: str, text: str) -> Iterator[Update]:
        call = self._open_calls.get(call_id)
        if call is None:
            return
        self._output[call_id] = (self._output.get(call_id, "") + text)[-_MAX_OUTPUT_TAIL:]
        content = tool_calls.result_content(str(call.get("name")), self._output[call_id])
        yield helpers.update_tool_call(call_id, status="in_progress", content=content)

    def _notice_updates(self, event: Event) -> Iterator[Update]:
        match event:
            case events.Notice(text, _):
                yield thought_text(text)
            case events.Retrying(attempt, max_attempts, delay, error):
                yield thought_text(f"{error}; retrying in {delay:.1f} s (attempt {attempt} of {max_attempts})")
            case events.Compacted(_, before, after, _):
                yield thought_text(f"Compacted the conversation: {before} → {after} tokens.")
            case _:
                pass

    def _turn_ended(self, event: events.TurnEnded) -> Iterator[Update]:
        """Yield the final updates of a turn."""
        for call in list(self._open_calls.values()):
            yield tool_call_end(call, _INTERRUPTED_TEXT, failed=True)
        self._open_calls.clear()
        self._output.clear()
        # Text that did not come from the model: output of a slash command or a hook.
        if event.text and not self._has_text and event.reason != "error":
            yield helpers.update_agent_message_text(event.text)

    def _forget_call(self, call_id: str) -> None:
        self._open_calls.pop(call_id, None)
        self._output.pop(call_id, None)


_UNKNOWN_RESULT: Final = "No result was recorded."


def replay_updates(session: Session, cwd: str) -> Iterator[Update]:
    """Yield the updates of a whole recorded session, across compactions."""
    open_calls: dict[str, dict[str, Any]] = {}
    todo_plan = TodoPlan()
    plan = None
    for node in session.conversation():
        record = session.transcript.record(node)
        if record.type == "assistant":
            yield from _assistant_updates(record, cwd, open_calls)
        elif record.type == "user":
            yield from _user_updates(record, node)
            for block in record.tool_results:
                call = open_calls.pop(block.tool_use_id, None)
                if call is None:
                    continue
                failed = block.is_error is True
                yield tool_call_end(call, _result_blocks(block), failed=failed)
                if not failed:
                    plan = todo_plan.update(call, record.fields.get("toolUseResult")) or plan
    for call in open_calls.values():
        yield tool_call_end(call, _UNKNOWN_RESULT, failed=True)
    if plan is not None:
        yield plan


def _assistant_updates(record: Record, cwd: str, open_calls: dict[str, dict[str, Any]]) -> Iterator[Update]:
    for block in record.blocks:
        match block:
            case Text() if block.text.strip():
                yield helpers.update_agent_message_text(block.text)
            case Thinking() if block.thinking.strip():
                yield helpers.update_agent_thought_text(block.thinking)
            case ToolUse():
                call = {"id": block.id, "name": block.name, "input": block.input}
                open_calls[block.id] = call
                yield tool_call_start(call, cwd, on_disk=False)
            case _:
                pass


def _user_updates(record: Record, node: Node) -> Iterator[Update]:
    origin = origin_of(record)
    if origin not in PERSON_ORIGINS:
        return
    text = read_prompt(record, node, origin).text
    if text.strip():
        yield helpers.update_user_message_text(text)
    for block in record.blocks:
        if isinstance(block, Image) and block.source.get("type") == "base64":
            image = helpers.image_block(str(block.source.get("data")), block.media_type)
            yield helpers.update_user_message(image)


def _result_blocks(block: ToolResult) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = []
    for item in block.blocks:
        if isinstance(item, Text):
            blocks.append({"type": "text", "text": item.text})
        elif isinstance(item, Image):
            blocks.append({"type": "image", "source": item.source})
    return blocks
