"""Views of other steps: thinking, text, queued prompts, notes, API errors, hooks."""

from typing import Any, Final

from steno.format.lenient_json import decode_lenient
from steno.format.message import RedactedThinking, Text, Thinking, ToolResult, ToolUse, UnknownBlock, read_blocks
from steno.format.records import Record, read_time
from steno.report import humanize as say
from steno.report.humanize import MS_PER_SECOND
from steno.sanitize.html import SafeHtml, trusted_markup
from steno.session.transcript import Node
from steno.session.turns.prompts import tag_content
from steno.session.turns.steps import Step, one_line
from steno.web.templating import render_part
from steno.web.tool_views.components import (
    Excerpt,
    Fact,
    box,
    clip,
    fact_list,
    join_html,
    link_row,
    markdown_html,
    note_box,
    record_links,
    table,
    terminal_output,
)
from steno.web.tool_views.generic_view import json_view, object_view
from steno.web.tool_views.record_images import image_gallery
from steno.web.tool_views.view_context import Fields, ViewContext, as_fields, as_items, as_number, as_text, first_text

_THINKING_TYPES: Final = (Thinking, RedactedThinking)
_OUTPUT_TAGS: Final = ("local-command-stdout", "local-command-stderr", "bash-stdout", "bash-stderr")
_COMMAND_TAGS: Final = ("command-name", "command-message", "command-args")
ENVELOPE_FIELDS: Final = frozenset(
    (
        "agentId",
        "cwd",
        "entrypoint",
        "forkedFrom",
        "gitBranch",
        "isMeta",
        "isSidechain",
        "level",
        "parentUuid",
        "requestId",
        "sessionId",
        "sessionKind",
        "session_id",
        "slug",
        "subtype",
        "timestamp",
        "type",
        "userType",
        "uuid",
        "version",
    )
)
"""Record fields shared by all types; not shown with the content."""


def record_text(record: Record) -> str:
    """Return the text of a message, an attached prompt or a queue entry."""
    if record.text:
        return record.text
    envelope = record.envelope
    attached = as_fields(decode_lenient(envelope.attachment)) if envelope.attachment else {}
    value: Any = attached.get("prompt")
    if value is None and envelope.content:
        value = decode_lenient(envelope.content)
    return "\n\n".join(block.text for block in read_blocks(value) if isinstance(block, Text))


# The model


def thinking_view(step: Step, context: ViewContext) -> SafeHtml:
    """Return thinking as Markdown, or a note if its text is redacted or was not recorded."""
    if step.call is None:
        return SafeHtml("")
    record = context.transcript.record(step.call)
    blocks = [candidate for candidate in record.blocks if isinstance(candidate, _THINKING_TYPES)]
    is_multiple = len(blocks) > 1
    matching = [each for each in blocks if _first_line(each) == step.subject] if is_multiple else blocks
    parts: list[SafeHtml] = []
    for block in (matching or blocks)[: 1 if matching else None]:
        if isinstance(block, RedactedThinking):
            size = f"{len(block.data):,}"
            message = f"Redacted thinking: {size} encrypted characters."
            parts.append(note_box(message, icon="think"))
        elif block.thinking.strip():
            parts.append(markdown_html(block.thinking, context, kind="think", offset=record.offset))
        else:
            signature_label = f"Signature: {len(block.signature):,} characters." if block.signature else ""
            message = f"Claude Code did not record the text of this thinking block. {signature_label}".strip()
            parts.append(note_box(message, icon="think"))
    return join_html(*parts, _record_link(context, record))


def _first_line(block: Thinking | RedactedThinking) -> str:
    return one_line(block.thinking) if isinstance(block, Thinking) else ""


def text_view(step: Step, context: ViewContext) -> SafeHtml:
    """Return text that the model wrote between two tool calls."""
    if step.call is None:
        return SafeHtml("")
    record = context.transcript.record(step.call)
    texts = [block.text for block in record.blocks if isinstance(block, Text)]
    is_multiple = len(texts) > 1
    matching = [text for text in texts if one_line(text) == step.subject] if is_multiple else texts
    text = matching[0] if matching else "\n\n".join(texts)
    return SafeHtml(markdown_html(text, context, offset=record.offset) + _record_link(context, record))


def _record_link(context: ViewContext, record: Record) -> SafeHtml:
    return link_row(*record_links(context, record.offset)) if context.links.live else SafeHtml("")


# People


def queued_prompt_view(step: Step, context: ViewContext) -> SafeHtml:
    """Return a queued prompt and the times it was queued and delivered."""
    if step.call is None:
        return SafeHtml("")
    record = context.transcript.record(step.call)
    envelope = record.envelope
    attached = as_fields(decode_lenient(envelope.attachment)) if envelope.attachment else {}
    text = record_text(record)
    queued_at = read_time(as_text(attached.get("timestamp"))) or record.time
    queue = attached or envelope.operation
    head = f"Queued {say.local_second(queued_at)}".strip() if queue else "Sent during the turn"
    taken_label = f", delivered {say.local_second(record.time)}" if attached else ""
    mode = as_text(attached.get("commandMode"))
    body = markdown_html(text, context, offset=record.offset)
    tagline = f"{head}{taken_label}" + (f", mode {mode}" if mode and mode != "prompt" else "")
    prompt_html = SafeHtml(render_part("body-queued.html.j2", tagline=clip(tagline), body=trusted_markup(body)))
    return join_html(prompt_html, image_gallery(record, context), _record_link(context, record))


# The client


def user_note_view(record: Record, context: ViewContext) -> SafeHtml:
    """Return the content of a user record that Claude Code added."""
    text = record.text
    offset = record.offset
    parts: list[SafeHtml] = []
    if b'"isCompactSummary":true' in record.line:
        parts.append(markdown_html(text, context, offset=offset))
    elif any(f"<{tag}>" in text for tag in (*_OUTPUT_TAGS, *_COMMAND_TAGS)):
        parts.append(_command_view(text, context, offset))
    elif text.strip():
        body, excerpt, _ = terminal_output(text, context, offset=offset)
        parts.append(box(body, links=record_links(context, offset), excerpt=excerpt))
    parts += [other_blocks_view(record, context), image_gallery(record, context)]
    return join_html(*parts)


def _command_view(text: str, context: ViewContext, offset: int) -> SafeHtml:
    name = tag_content(text, "command-name")
    parts = [fact_list(Fact("command", name), Fact("arguments", tag_content(text, "command-args")))]
    header_links = record_links(context, offset)
    for tag in _OUTPUT_TAGS:
        output = tag_content(text, tag)
        if output:
            body, excerpt, _ = terminal_output(output, context, offset=offset)
            plain = "stderr" if tag.endswith("stderr") else ""
            parts.append(box(body, label=plain, links=header_links, excerpt=excerpt))
    if not any(parts) or not (name or any(tag_content(text, tag) for tag in _OUTPUT_TAGS)):
        body, excerpt, _ = terminal_output(text, context, offset=offset)
        parts.append(box(body, links=header_links, excerpt=excerpt))
    return join_html(*parts)


def other_blocks_view(record: Record, context: ViewContext) -> SafeHtml:
    """Return the blocks of a message other than text, images and tool calls."""
    boxes: list[SafeHtml] = []
    for block in record.blocks:
        if isinstance(block, UnknownBlock):
            boxes.append(box(json_view(block.fields, full=context.full), title=block.type or "block"))
        elif block.type == "document" or isinstance(block, ToolUse | ToolResult):
            boxes.append(fact_list(Fact(block.type, getattr(block, "media_type", "") or block.type)))
    return join_html(*boxes)


def system_view(record: Record, context: ViewContext, next_node: Node | None = None) -> SafeHtml:
    """Return the content of a system record."""
    fields = record.fields
    content = as_text(fields.get("content"))
    parts: list[SafeHtml] = []
    if any(f"<{tag}>" in content for tag in (*_OUTPUT_TAGS, *_COMMAND_TAGS)):
        parts.append(_command_view(content, context, record.offset))
    elif content.strip():
        body, excerpt, _ = terminal_output(content, context, offset=record.offset)
        parts.append(box(body, links=record_links(context, record.offset), excerpt=excerpt))
    leave = ENVELOPE_FIELDS | {"content"}
    parts.append(object_view(fields, context, offset=record.offset, skipped=leave))
    if next_node is not None:
        parts.append(system_view(context.transcript.record(next_node), context))
    return join_html(*parts)


def unknown_view(step: Step, context: ViewContext) -> SafeHtml:
    """Return a block or record of an unknown type as JSON."""
    if step.call is None:
        return SafeHtml("")
    record = context.transcript.record(step.call)
    unknown_blocks = [block for block in record.blocks if isinstance(block, UnknownBlock)]
    matching = [block for block in unknown_blocks if (block.type or "block") == step.verb]
    header_links = record_links(context, record.offset)
    boxes = [
        box(json_view(block.fields, full=context.full), title=block.type or "block", links=header_links)
        for block in matching
    ]
    return join_html(*boxes)


_RETRY_DISTANCE: Final = 400
"""Number of records before and after a step that are searched for its retries."""
_MAX_RETRIES: Final = 50
_HIDDEN_FIELDS: Final = ENVELOPE_FIELDS | {
    "content",
    "error",
    "maxRetries",
    "message",
    "retryAttempt",
    "retryInMs",
    "isApiErrorMessage",
}


def api_error_view(step: Step, context: ViewContext) -> SafeHtml:
    """Return the retries of an API request and its outcome."""
    node = step.call
    if node is None:
        return SafeHtml("")
    retries = _retry_nodes(step, node, context)
    record = context.transcript.record(node)
    boxes: list[SafeHtml] = []
    if retries:
        rows = [_retry_row(context.transcript.record(retry)) for retry in retries[:_MAX_RETRIES]]
        if step.state == "ok":
            rows.append(("", "", trusted_markup('<span class="ok">succeeded</span>'), ""))
        table_html = table(("Attempt", "Time", "Error", "Delay"), rows, numbers=(3,))
        header_links = record_links(context, retries[0].offset)
        more = len(retries) - _MAX_RETRIES
        footer = (Fact("", f"{more:,} more attempts" if more > 0 else ""),)
        boxes.append(box(table_html, links=header_links, footer=footer))
    if record.role == "assistant" or not retries:
        boxes.append(_error_box(record, context))
    return join_html(*boxes)


def _retry_nodes(step: Step, node: Node, context: ViewContext) -> list[Node]:
    """Return the records of the retries before or after the record of a step."""
    nodes = context.transcript.nodes
    if _is_retry(node):
        nearby = nodes[node.index : node.index + _RETRY_DISTANCE]
        return [candidate for candidate in nearby if _is_retry(candidate)][: step.retries]
    nearby = nodes[max(0, node.index - _RETRY_DISTANCE) : node.index]
    earlier = [each for each in nearby if _is_retry(each)]
    return earlier[-step.retries :] if step.retries else []


def _is_retry(node: Node) -> bool:
    return node.type == "system" and node.subtype == "api_error"


def _retry_row(record: Record) -> tuple[Any, ...]:
    fields = record.fields
    attempt, max_retries = (as_number(fields.get("retryAttempt")), as_number(fields.get("maxRetries")))
    waited = as_number(fields.get("retryInMs"))
    of = f" of {max_retries}" if max_retries is not None else ""
    return (
        f"{attempt}{of}" if attempt is not None else "",
        say.local_second(record.time),
        _error_message(fields.get("error")),
        say.spaced_duration(waited / MS_PER_SECOND) if waited is not None else "",
    )


def _error_message(value: Any) -> str:
    """Return the API's error message from any recorded shape."""
    fields = as_fields(value)
    status = as_number(fields.get("status"))
    inner = as_fields(as_fields(fields.get("error")).get("error")) or as_fields(fields.get("error"))
    cause = as_fields(fields.get("cause"))
    message = first_text(fields, "message", "formatted") or first_text(inner, "message", "type")
    message = message or first_text(cause, "code", "message") or as_text(value)
    head = f"{status} " if status is not None and str(status) not in message[:12] else ""
    return f"{head}{message}"[:600] or "no response"


def _error_box(record: Record, context: ViewContext) -> SafeHtml:
    message = record.text or as_text(record.fields.get("content"))
    body = markdown_html(message, context, offset=record.offset) if message.strip() else SafeHtml("")
    other_fields = object_view(record.fields, context, offset=record.offset, skipped=_HIDDEN_FIELDS)
    detail = as_fields(record.fields.get("error"))
    error_fields = object_view(detail, context, offset=record.offset, skipped=frozenset())
    inside = join_html(body, error_fields, other_fields)
    return box(inside, label="Error", links=record_links(context, record.offset))


_KNOWN_FIELDS: Final = frozenset(
    (
        "blockingError",
        "command",
        "content",
        "durationMs",
        "exitCode",
        "hookEvent",
        "hookName",
        "stderr",
        "stdout",
        "toolUseID",
        "type",
    )
)
_OUTCOME_LABELS: Final = {
    "hook_success": "ran",
    "hook_blocking_error": "blocked",
    "hook_non_blocking_error": "failed",
    "hook_cancelled": "cancelled",
    "hook_progress": "started",
    "hook_additional_context": "added to the context",
    "hook_system_message": "system message",
    "hook_stopped_continuation": "stopped the turn",
    "hook_permission_decision": "decided",
}
_FAILED_KINDS: Final = frozenset(("hook_blocking_error", "hook_non_blocking_error"))


def hook_view(step: Step, context: ViewContext) -> SafeHtml:
    """Return the records of a hook run and of its summary."""
    first, last = step.call, step.result
    html = _hook_record_view(first, context) if first is not None else SafeHtml("")
    if last is None or last is first:
        return html
    return join_html(html, _hook_record_view(last, context))


def _hook_record_view(node: Node, context: ViewContext) -> SafeHtml:
    record = context.transcript.record(node)
    if record.type == "system":
        return _stop_summary_view(record, context)
    return user_note_view(record, context) if record.role == "user" else _hook_run_view(record, context)


def _hook_run_view(record: Record, context: ViewContext) -> SafeHtml:
    envelope = record.envelope
    raw = envelope.attachment or envelope.data
    data = as_fields(decode_lenient(raw)) if raw else {}
    kind = as_text(data.get("type"))
    command, stdout = as_text(data.get("command")), as_text(data.get("stdout"))
    context_text = _content_text(data.get("content"))
    blocking = ""
    if "blockingError" in data:
        block = as_fields(data["blockingError"])
        command = command or as_text(block.get("command"))
        blocking = first_text(block, "blockingError") or as_text(data["blockingError"])
    excerpt = Excerpt("")
    inside = ""
    if command or stdout.strip():
        inside, excerpt, _ = terminal_output(stdout, context, command=command, offset=record.offset)
    for label, text in (("stderr", as_text(data.get("stderr"))), ("blocked", blocking)):
        if text and not text.isspace():
            output_html = terminal_output(text, context, offset=record.offset)[0]
            inside += f'<div class="err"><h4>{label}</h4>{output_html}</div>'
    if context_text and context_text.strip() not in ("", stdout.strip()):
        output_html = terminal_output(context_text, context, offset=record.offset)[0]
        inside += f'<div class="told"><h4>sent to the model</h4>{output_html}</div>'
    run_box = box(
        SafeHtml(inside),
        label=first_text(data, "hookName", "hookEvent") or "Hook",
        end=as_text(data.get("hookEvent")),
        links=record_links(context, record.offset),
        footer=_run_footer(data, kind),
        excerpt=excerpt,
    )
    other_fields = SafeHtml("")
    if not data.keys() <= _KNOWN_FIELDS:
        other_fields = object_view(data, context, offset=record.offset, skipped=_KNOWN_FIELDS)
    return join_html(run_box, _decision_facts(stdout), other_fields)


def _run_footer(data: Fields, kind: str) -> list[Fact]:
    code, duration_ms = as_number(data.get("exitCode")), as_number(data.get("durationMs"))
    ended = _OUTCOME_LABELS.get(kind) or kind.replace("_", " ")
    footer = [Fact("", ended, "bad" if kind in _FAILED_KINDS else "")]
    if code is not None:
        footer.append(Fact("exit", str(code), "bad" if code else ""))
    if duration_ms is not None:
        footer.append(Fact("", say.spaced_duration(duration_ms / MS_PER_SECOND)))
    return footer


def _content_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(map(as_text, as_items(content)))


def _decision_facts(stdout: str) -> SafeHtml:
    """Return the decision that a hook printed as JSON."""
    if not stdout.lstrip().startswith("{"):
        return SafeHtml("")
    value = as_fields(decode_lenient(stdout.strip().encode("utf-8", "replace")))
    hook_output = as_fields(value.get("hookSpecificOutput"))
    decision = first_text(hook_output, "permissionDecision") or first_text(value, "decision")
    stopped = "stop" if value.get("continue") is False else ""
    return fact_list(
        Fact("decision", decision or stopped),
        Fact(
            "reason", first_text(hook_output, "permissionDecisionReason") or first_text(value, "reason", "stopReason")
        ),
        Fact("context", first_text(hook_output, "additionalContext")),
        Fact("message", first_text(value, "systemMessage")),
    )


def _stop_summary_view(record: Record, context: ViewContext) -> SafeHtml:
    """Return the summary of the hooks that ran at the end of a turn."""
    fields = record.fields
    infos = [as_fields(info) for info in as_items(fields.get("hookInfos"))]
    rows = [(clip(as_text(info.get("command"))), _format_milliseconds(info.get("durationMs"))) for info in infos[:100]]
    table_html = table(("Command", "Time"), rows, numbers=(1,)) if rows else SafeHtml("")
    count = as_number(fields.get("hookCount"))
    boxes = [
        box(
            table_html,
            label=say.count(count if count is not None else len(infos), "hook") + " at turn end",
            links=record_links(context, record.offset),
            footer=(
                Fact("", "turn continued" if fields.get("preventedContinuation") else ""),
                Fact("reason", as_text(fields.get("stopReason"))),
            ),
        )
    ]
    errors = as_items(fields.get("hookErrors"))
    boxes += [note_box(as_text(error) or str(error)[:2_000], "bad", "warn") for error in errors[:20]]
    added = [as_text(text) for text in as_items(fields.get("hookAdditionalContext"))]
    boxes += [note_box(each) for each in added[:20] if each]
    return join_html(*boxes)


def _format_milliseconds(value: Any) -> str:
    milliseconds = as_number(value)
    return say.spaced_duration(milliseconds / MS_PER_SECOND) if milliseconds is not None else ""
