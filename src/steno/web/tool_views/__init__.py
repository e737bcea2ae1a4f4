"""HTML inside an opened step, a record or a gap.

view_context       step or record to show and how much of it; a call with its result
components         boxes, facts, tables, excerpts of long texts
record_images      images inside records
generic_view       any tool: arguments and result; JSON values
file_views, shell_view, search_views, task_board, interaction_views   tools by family
event_views        thinking, text, queued prompts, client notes, hooks, API errors
record_views       attachments, raw records, gaps

Unknown shapes are shown as formatted JSON, so every record shows something.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from steno.format.catalogue import MCP_PREFIX
from steno.format.tool_catalogue import View, tool_facts
from steno.sanitize.html import SafeHtml
from steno.web.tool_views.components import join_html
from steno.web.tool_views.event_views import (
    api_error_view,
    hook_view,
    queued_prompt_view,
    system_view,
    text_view,
    thinking_view,
    unknown_view,
    user_note_view,
)
from steno.web.tool_views.file_views import change_view, read_view
from steno.web.tool_views.generic_view import generic_tool_view, permission_facts, refusal_note
from steno.web.tool_views.interaction_views import (
    mcp_view,
    message_view,
    plan_view,
    question_view,
    skill_view,
    subagent_brief,
    subagent_report,
    subagent_view,
)
from steno.web.tool_views.record_views import attachment_view, gap_view, record_view
from steno.web.tool_views.search_views import (
    directory_view,
    glob_view,
    grep_view,
    tool_search_view,
    web_fetch_view,
    web_search_view,
)
from steno.web.tool_views.shell_view import shell_command_view, task_output_view
from steno.web.tool_views.task_board import task_view, todo_view
from steno.web.tool_views.view_context import ToolCall, ViewContext, tool_call

if TYPE_CHECKING:
    from steno.session.turns.steps import Step

__all__ = ["ViewContext", "gap_view", "record_view", "step_content", "subagent_brief", "subagent_report"]

_TOOL_VIEWS: Final[dict[View, Callable[[ToolCall], SafeHtml]]] = {
    "plain": generic_tool_view,
    "changes": change_view,
    "command": shell_command_view,
    "file": read_view,
    "files": glob_view,
    "listing": directory_view,
    "matches": grep_view,
    "message": message_view,
    "output": task_output_view,
    "page": web_fetch_view,
    "plan": plan_view,
    "questions": question_view,
    "skill": skill_view,
    "tasks": task_view,
    "todos": todo_view,
    "tools": tool_search_view,
    "web_search": web_search_view,
}
_NOT_EXECUTED: Final = ("denied", "interrupted")


def step_content(step: "Step", context: ViewContext) -> SafeHtml:
    """Return the HTML of an opened step."""
    html = _KIND_VIEWS[step.kind](step, context)
    if html and not html.isspace():
        return html
    nodes = [node for node in (step.call, step.result) if node is not None]
    records = [context.transcript.record(node) for node in nodes]
    return join_html(*(record_view(record, context) for record in records))


def _tool_view(step: "Step", context: ViewContext) -> SafeHtml:
    call = tool_call(step, context)
    view = mcp_view if call.tool.startswith(MCP_PREFIX) else _TOOL_VIEWS[tool_facts(call.tool).view]
    html = view(call)
    if not html or html.isspace():
        html = generic_tool_view(call)
    if step.state in _NOT_EXECUTED:
        html = join_html(refusal_note(call), html)
    if call.record is not None and call.record.envelope.permission_decision:
        html = join_html(html, permission_facts(call, call.record))
    return html


def _note_view(step: "Step", context: ViewContext) -> SafeHtml:
    if step.call is None:
        return SafeHtml("")
    record = context.transcript.record(step.call)
    if record.type == "attachment":
        return attachment_view(record, context)
    if record.type == "system":
        return system_view(record, context, step.result)
    return user_note_view(record, context)


_KIND_VIEWS: Final[dict[str, Callable[["Step", ViewContext], SafeHtml]]] = {
    "tool": _tool_view,
    "agent": subagent_view,
    "thought": thinking_view,
    "words": text_view,
    "queued": queued_prompt_view,
    "hook": hook_view,
    "error": api_error_view,
    "note": _note_view,
    "unknown": unknown_view,
}
