"""Views of questions, plans, skills, messages, MCP tools and sub-agents."""

from typing import Any, Final, cast

import msgspec

from steno.format.catalogue import MCP_PREFIX
from steno.format.message import Text, read_blocks
from steno.report import humanize as say
from steno.report.humanize import MS_PER_SECOND
from steno.sanitize.html import SafeHtml
from steno.session.turns.prompts import tag_content
from steno.session.turns.steps import Step
from steno.web.templating import render_part
from steno.web.tool_views.components import (
    Fact,
    Link,
    box,
    call_links,
    clip,
    fact_list,
    join_html,
    link_row,
    markdown_html,
    note_box,
    record_links,
)
from steno.web.tool_views.event_views import record_text
from steno.web.tool_views.generic_view import arguments_view, result_view
from steno.web.tool_views.view_context import (
    ToolCall,
    ViewContext,
    as_fields,
    as_items,
    as_number,
    as_text,
    first_text,
    tool_call,
)

_MAX_QUESTIONS: Final = 100


class _AnswerOption(msgspec.Struct, frozen=True):
    label: str
    description: str
    chosen: bool


class _Question(msgspec.Struct, frozen=True):
    header: str
    text: str
    multi_select: bool
    options: list[_AnswerOption]
    free_text: str
    """An answer that matches none of the options."""


def question_view(call: ToolCall) -> SafeHtml:
    """Return questions with their options and answers."""
    items = as_items(call.result_fields.get("questions")) or as_items(call.tool_input.get("questions"))
    answers = as_fields(call.result_fields.get("answers")) or as_fields(call.tool_input.get("answers"))
    question_views = [_build_question(as_fields(item), answers) for item in items[:_MAX_QUESTIONS]]
    if not question_views:
        return SafeHtml("")
    body = SafeHtml(render_part("body-questions.html.j2", questions=question_views))
    header_links = call_links(call)
    html = box(body, links=header_links, label="Questions")
    return html if answers else join_html(html, result_view(call))


def _build_question(fields: dict[str, Any], answers: dict[str, Any]) -> _Question:
    question_text = as_text(fields.get("question"))
    answer = answers.get(question_text)
    text = as_text(answer) or ", ".join(map(as_text, as_items(answer)))
    labels = [first_text(as_fields(option), "label") or as_text(option) for option in _option_items(fields)]
    chosen = {label for label in labels if text == label or label in text.split(", ")}
    options = [
        _AnswerOption(clip(label), clip(as_text(as_fields(each).get("description"))), label in chosen)
        for label, each in zip(labels, _option_items(fields), strict=True)
    ]
    free_text = clip(text) if text and not chosen else ""
    header = clip(as_text(fields.get("header")))
    return _Question(header, clip(question_text), fields.get("multiSelect") is True, options, free_text)


def _option_items(fields: dict[str, Any]) -> list[Any]:
    return as_items(fields.get("options"))[:_MAX_QUESTIONS]


def plan_view(call: ToolCall) -> SafeHtml:
    """Return a plan and whether it was approved."""
    fields = call.result_fields
    text = first_text(fields, "plan") or first_text(call.tool_input, "plan")
    where = first_text(fields, "filePath") or first_text(call.tool_input, "planFilePath")
    header_links = call_links(call)
    if not text and not where:
        message = first_text(fields, "message") or call.result_text
        return (
            box(note_box(message), label=call.tool, links=header_links) if message and not call.failed else SafeHtml("")
        )
    outcome = {"ok": "approved", "denied": "not approved", "failed": "not approved"}.get(call.step.state, "")
    html = markdown_html(text, call.context, offset=call.offset) if text else SafeHtml("")
    tags = (outcome,) if outcome else ()
    plan_box = box(html, label="Plan", title=where, tags=tags, links=header_links, kind="page-of")
    return join_html(plan_box, result_view(call)) if call.failed else plan_box


def skill_view(call: ToolCall) -> SafeHtml:
    """Return the skill or command that a call invoked."""
    fields = call.result_fields
    name = first_text(fields, "commandName") or first_text(call.tool_input, "skill", "command")
    if not name:
        return SafeHtml("")
    tools = ", ".join(map(as_text, as_items(fields.get("allowedTools"))))
    body = fact_list(
        Fact("name", name),
        Fact("arguments", first_text(call.tool_input, "args")),
        Fact("allowed tools", tools),
        Fact("output", "" if call.failed else call.result_text[:600]),
    )
    header_links = call_links(call)
    html = box(body, label=call.tool, links=header_links)
    return join_html(html, result_view(call)) if call.failed else html


def message_view(call: ToolCall) -> SafeHtml:
    """Return a message from one agent to another."""
    content: Any = call.tool_input.get("message", call.tool_input.get("content"))
    text = content if isinstance(content, str) else ""
    if not text or call.step.call is None:
        return SafeHtml("")
    to = first_text(call.tool_input, "to", "recipient")
    body = join_html(
        fact_list(Fact("to", to), Fact("summary", first_text(call.tool_input, "summary"))),
        markdown_html(text, call.context, offset=call.step.call.offset),
    )
    return join_html(body, result_view(call))


def mcp_view(call: ToolCall) -> SafeHtml:
    """Return a call to an MCP tool: server, tool, arguments and result."""
    server, _, tool = call.tool.removeprefix(MCP_PREFIX).partition("__")
    facts_html = fact_list(Fact("server", server), Fact("tool", tool))
    return join_html(facts_html, arguments_view(call, title=tool or call.tool), _mcp_result(call))


def _mcp_result(call: ToolCall) -> SafeHtml:
    """Return the result. Skip lists of blocks: their text and images are shown separately."""
    result_data = call.result_data
    if isinstance(result_data, list) and not _are_blocks(cast("list[Any]", result_data)) and not call.result_text:
        return result_view(call)
    return (
        result_view(msgspec.structs.replace(call, result_data=None, result_fields={}))
        if isinstance(result_data, list)
        else result_view(call)
    )


def _are_blocks(items: list[Any]) -> bool:
    return all("type" in as_fields(item) for item in items)


_AGENT_ID_PREFIX: Final = "agentId:"
_MAX_SUMMARY: Final = 400


def subagent_view(step: Step, context: ViewContext) -> SafeHtml:
    """Return the prompt, usage and report of a sub-agent."""
    return join_html(subagent_brief(step, context), subagent_report(step, context)) or SafeHtml("")


def subagent_brief(step: Step, context: ViewContext) -> SafeHtml:
    """Return the prompt of a sub-agent."""
    if _is_notification(step):
        return SafeHtml("")
    call = tool_call(step, context)
    brief = first_text(call.tool_input, "prompt") or first_text(call.result_fields, "prompt")
    if not brief and step.agent is not None:
        brief = step.agent.prompt
    brief_html = markdown_html(brief, context, kind="think", offset=call.offset) if brief else SafeHtml("")
    facts_html = fact_list(
        Fact("type", first_text(call.tool_input, "subagent_type") or first_text(call.result_fields, "agentType")),
        Fact(
            "description", first_text(call.tool_input, "description") or first_text(call.result_fields, "description")
        ),
        Fact("model", first_text(call.tool_input, "model") or first_text(call.result_fields, "resolvedModel")),
        Fact("mode", "in background" if _is_background(call) else ""),
        Fact("isolation", first_text(call.tool_input, "isolation")),
        Fact("team", first_text(call.tool_input, "team_name")),
    )
    return join_html(facts_html, brief_html)


def subagent_report(step: Step, context: ViewContext) -> SafeHtml:
    """Return the usage and the report of a sub-agent, or the reason why the report is missing."""
    if _is_notification(step):
        return _notification_view(step, context)
    call = tool_call(step, context)
    fields = call.result_fields
    figures = _figures_html(call)
    report = _report_text(call)
    parts = [figures]
    if call.failed or (step.result is not None and not report and not fields):
        parts.append(result_view(call))
    elif report:
        parts.append(SafeHtml('<h4 class="part">Report</h4>'))
        parts.append(markdown_html(report, context, offset=call.offset))
    elif step.result is None:
        parts.append(note_box("No report", icon="clock"))
    return join_html(*parts, _subagent_links(step, context, call))


def _is_background(call: ToolCall) -> bool:
    return call.tool_input.get("run_in_background") is True or call.result_fields.get("isAsync") is True


def _figures_html(call: ToolCall) -> SafeHtml:
    fields = call.result_fields
    steps, token_count = (as_number(fields.get("totalToolUseCount")), as_number(fields.get("totalTokens")))
    duration_ms = as_number(fields.get("totalDurationMs"))
    usage = as_fields(fields.get("usage"))
    output_tokens = as_number(usage.get("output_tokens"))
    return fact_list(
        Fact("status", first_text(fields, "status")),
        Fact("tool calls", f"{steps:,}" if steps is not None else ""),
        Fact("tokens", say.tokens(token_count) if token_count is not None else ""),
        Fact("output tokens", say.tokens(output_tokens) if output_tokens is not None else ""),
        Fact("duration", say.spaced_duration(duration_ms / MS_PER_SECOND) if duration_ms is not None else ""),
        Fact("output file", first_text(fields, "output fileFile")),
    )


def _report_text(call: ToolCall) -> str:
    """Return the report without the text that Claude Code adds for the model."""
    content: Any = call.result_fields.get("content")
    blocks = read_blocks(content)
    content_texts = [block.text for block in blocks if isinstance(block, Text)]
    if content_texts:
        return "\n\n".join(content_texts)
    texts = [block.text for block in call.result_blocks if isinstance(block, Text)]
    without_id = [text for text in texts if not text.lstrip().startswith(_AGENT_ID_PREFIX)]
    return "\n\n".join(without_id or texts)


def _subagent_links(step: Step, context: ViewContext, call: ToolCall) -> SafeHtml:
    header_links = list(call_links(call))
    subagent = step.agent
    if subagent is not None and subagent.agent_id and not subagent.inline:
        header_links.insert(0, Link("Sub-agent page", context.links.agent(context.key, subagent.agent_id)))
    return link_row(*header_links)


# Notifications of background sub-agents


def _is_notification(step: Step) -> bool:
    return not step.call_id


def _notification_view(step: Step, context: ViewContext) -> SafeHtml:
    if step.call is None:
        return SafeHtml("")
    record = context.transcript.record(step.call)
    text = record_text(record)
    report = tag_content(text, "result") or tag_content(text, "summary") or text
    facts_html = fact_list(
        Fact("status", tag_content(text, "status")),
        Fact("task", tag_content(text, "task-id")),
        Fact("summary", tag_content(text, "summary")[:_MAX_SUMMARY]),
        Fact("output file", tag_content(text, "output file-file")),
    )
    report_html = markdown_html(as_text(report), context, offset=record.offset)
    return join_html(facts_html, report_html, link_row(*record_links(context, record.offset)))
