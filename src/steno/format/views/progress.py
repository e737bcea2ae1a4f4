"""What progress records carry.

Generated from catalogue.json by tools/make_views.py; do not edit.
"""

from typing import Any

from msgspec import field

from steno.format.views.base import View


class AgentProgress(View, frozen=True):
    """`progress/agent_progress`, 2.1.12 to 2.1.81."""

    agent_id: str | None = field(default=None, name="agentId")
    message: dict[str, Any] | None = None
    normalized_messages: list[Any] | None = field(default=None, name="normalizedMessages")
    parent_tool_use_id: str | None = field(default=None, name="parentToolUseID")
    prompt: str | None = None
    resume: Any = None
    tool_use_id: str | None = field(default=None, name="toolUseID")


class BashProgress(View, frozen=True):
    """`progress/bash_progress`, 2.1.12 to 2.1.63."""

    elapsed_time_seconds: int | float | None = field(default=None, name="elapsedTimeSeconds")
    full_output: str | None = field(default=None, name="fullOutput")
    output: str | None = None
    parent_tool_use_id: str | None = field(default=None, name="parentToolUseID")
    task_id: str | None = field(default=None, name="taskId")
    timeout_ms: int | float | None = field(default=None, name="timeoutMs")
    tool_use_id: str | None = field(default=None, name="toolUseID")
    total_bytes: int | float | None = field(default=None, name="totalBytes")
    total_lines: int | float | None = field(default=None, name="totalLines")


class HookProgress(View, frozen=True):
    """`progress/hook_progress`, 2.1.12 to 2.1.81."""

    command: str | None = None
    hook_event: str | None = field(default=None, name="hookEvent")
    hook_name: str | None = field(default=None, name="hookName")
    parent_tool_use_id: str | None = field(default=None, name="parentToolUseID")
    tool_use_id: str | None = field(default=None, name="toolUseID")


class McpProgress(View, frozen=True):
    """`progress/mcp_progress`, 2.1.12 to 2.1.49."""

    elapsed_time_ms: int | float | None = field(default=None, name="elapsedTimeMs")
    parent_tool_use_id: str | None = field(default=None, name="parentToolUseID")
    server_name: str | None = field(default=None, name="serverName")
    status: str | None = None
    tool_name: str | None = field(default=None, name="toolName")
    tool_use_id: str | None = field(default=None, name="toolUseID")


class QueryUpdate(View, frozen=True):
    """`progress/query_update`, 2.1.17 to 2.1.81."""

    parent_tool_use_id: str | None = field(default=None, name="parentToolUseID")
    query: str | None = None
    tool_use_id: str | None = field(default=None, name="toolUseID")


class SearchResultsReceived(View, frozen=True):
    """`progress/search_results_received`, 2.1.17 to 2.1.81."""

    parent_tool_use_id: str | None = field(default=None, name="parentToolUseID")
    query: str | None = None
    result_count: int | float | None = field(default=None, name="resultCount")
    tool_use_id: str | None = field(default=None, name="toolUseID")


class WaitingForTask(View, frozen=True):
    """`progress/waiting_for_task`, 2.1.25 to 2.1.49."""

    parent_tool_use_id: str | None = field(default=None, name="parentToolUseID")
    task_description: str | None = field(default=None, name="taskDescription")
    task_type: str | None = field(default=None, name="taskType")
    tool_use_id: str | None = field(default=None, name="toolUseID")
