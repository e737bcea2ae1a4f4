"""What `toolUseResult` holds for tasks, to-do lists and sub-agents.

Generated from catalogue.json by tools/make_views.py; do not edit.
"""

from typing import Any

from msgspec import field

from steno.format.views.base import View


class CacheCreation(View, frozen=True):
    """`cache_creation` in `usage` in The result of `Agent`."""

    ephemeral_1h_input_tokens: int | float | None = None
    ephemeral_5m_input_tokens: int | float | None = None


class OutputTokensDetails(View, frozen=True):
    """`output_tokens_details` in `usage` in The result of `Agent`."""

    thinking_tokens: int | float | None = None


class ServerToolUse(View, frozen=True):
    """`server_tool_use` in `usage` in The result of `Agent`."""

    web_fetch_requests: int | float | None = None
    web_search_requests: int | float | None = None


class Usage(View, frozen=True):
    """`usage` in The result of `Agent`."""

    cache_creation: CacheCreation | None = None
    cache_creation_input_tokens: int | float | None = None
    cache_read_input_tokens: int | float | None = None
    fallback_credit: Any = None
    inference_geo: str | None = None
    input_tokens: int | float | None = None
    iterations: list[Any] | None = None
    output_tokens: int | float | None = None
    output_tokens_details: OutputTokensDetails | None = None
    server_tool_use: ServerToolUse | None = None
    service_tier: str | None = None
    speed: str | None = None


class AgentResult(View, frozen=True):
    """The result of `Agent`."""

    agent_id: str | None = field(default=None, name="agentId")
    agent_id_snake: Any = field(default=None, name="agent_id")
    agent_type: str | None = field(default=None, name="agentType")
    can_continue_agent: bool | None = field(default=None, name="canContinueAgent")
    can_read_output_file: bool | None = field(default=None, name="canReadOutputFile")
    color: Any = None
    content: list[Any] | None = None
    description: str | None = None
    is_async: bool | None = field(default=None, name="isAsync")
    is_splitpane: Any = None
    model: Any = None
    name: Any = None
    output_file: str | None = field(default=None, name="outputFile")
    plan_mode_required: Any = None
    prompt: str | None = None
    resolved_model: str | None = field(default=None, name="resolvedModel")
    status: str | None = None
    team_name: Any = None
    teammate_id: Any = None
    tmux_pane_id: Any = None
    tmux_session_name: Any = None
    tmux_window_name: Any = None
    tool_stats: dict[str, Any] | None = field(default=None, name="toolStats")
    total_duration_ms: int | float | None = field(default=None, name="totalDurationMs")
    total_tokens: int | float | None = field(default=None, name="totalTokens")
    total_tool_use_count: int | float | None = field(default=None, name="totalToolUseCount")
    usage: Usage | None = None


class SendMessageResult(View, frozen=True):
    """The result of `SendMessage`."""

    message: str | None = None
    request_id: Any = None
    routing: Any = None
    success: bool | None = None
    target: Any = None


class ContentItem(View, frozen=True):
    """`contentItem` in The result of `Task`."""

    text: str | None = None
    type: str | None = None


class TaskResult(View, frozen=True):
    """The result of `Task`."""

    agent_id: str | None = field(default=None, name="agentId")
    can_read_output_file: bool | None = field(default=None, name="canReadOutputFile")
    content: list[ContentItem] | None = None
    description: str | None = None
    is_async: bool | None = field(default=None, name="isAsync")
    output_file: str | None = field(default=None, name="outputFile")
    prompt: str | None = None
    status: str | None = None
    total_duration_ms: int | float | None = field(default=None, name="totalDurationMs")
    total_tokens: int | float | None = field(default=None, name="totalTokens")
    total_tool_use_count: int | float | None = field(default=None, name="totalToolUseCount")
    usage: Usage | None = None


class Task(View, frozen=True):
    """`task` in The result of `TaskCreate`."""

    description: str | None = None
    id: str | None = None
    subject: str | None = None


class TaskCreateResult(View, frozen=True):
    """The result of `TaskCreate`."""

    task: Task | None = None


class TaskGetResultTask(View, frozen=True):
    """`task` in The result of `TaskGet`."""

    blocked_by: list[Any] | None = field(default=None, name="blockedBy")
    blocks: list[Any] | None = None
    description: str | None = None
    id: str | None = None
    status: str | None = None
    subject: str | None = None


class TaskGetResult(View, frozen=True):
    """The result of `TaskGet`."""

    task: TaskGetResultTask | None = None


class TaskListResultTask(View, frozen=True):
    """`task` in The result of `TaskList`."""

    blocked_by: list[Any] | None = field(default=None, name="blockedBy")
    id: str | None = None
    status: str | None = None
    subject: str | None = None


class TaskListResult(View, frozen=True):
    """The result of `TaskList`."""

    tasks: list[TaskListResultTask] | None = None


class TaskOutputResultTask(View, frozen=True):
    """`task` in The result of `TaskOutput`."""

    description: str | None = None
    exit_code: int | float | None = field(default=None, name="exitCode")
    output: str | None = None
    status: str | None = None
    task_id: str | None = None
    task_type: str | None = None


class TaskOutputResult(View, frozen=True):
    """The result of `TaskOutput`."""

    retrieval_status: str | None = None
    task: TaskOutputResultTask | None = None


class TaskStopResult(View, frozen=True):
    """The result of `TaskStop`."""

    command: str | None = None
    message: str | None = None
    task_id: str | None = None
    task_type: str | None = None


class StatusChange(View, frozen=True):
    """`statusChange` in The result of `TaskUpdate`."""

    from_: str | None = field(default=None, name="from")
    to: str | None = None


class TaskUpdateResult(View, frozen=True):
    """The result of `TaskUpdate`."""

    error: str | None = None
    status_change: StatusChange | None = field(default=None, name="statusChange")
    success: bool | None = None
    task_id: str | None = field(default=None, name="taskId")
    updated_fields: list[str] | None = field(default=None, name="updatedFields")
    verification_nudge_needed: bool | None = field(default=None, name="verificationNudgeNeeded")


class TeamCreateResult(View, frozen=True):
    """The result of `TeamCreate`."""

    lead_agent_id: Any = None
    team_file_path: Any = None
    team_name: Any = None


class TeamDeleteResult(View, frozen=True):
    """The result of `TeamDelete`."""

    message: str | None = None
    success: bool | None = None
    team_name: Any = None


class NewTodo(View, frozen=True):
    """`newTodo` in The result of `TodoWrite`."""

    active_form: str | None = field(default=None, name="activeForm")
    content: str | None = None
    id: str | None = None
    priority: str | None = None
    status: str | None = None


class OldTodo(View, frozen=True):
    """`oldTodo` in The result of `TodoWrite`."""

    active_form: str | None = field(default=None, name="activeForm")
    content: str | None = None
    id: str | None = None
    priority: str | None = None
    status: str | None = None


class TodoWriteResult(View, frozen=True):
    """The result of `TodoWrite`."""

    new_todos: list[NewTodo] | None = field(default=None, name="newTodos")
    old_todos: list[OldTodo] | None = field(default=None, name="oldTodos")
