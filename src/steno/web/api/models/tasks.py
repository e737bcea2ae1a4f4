"""Responses with tasks, as a published description has them."""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from steno.web.api.models.base import Count, Cursor, Model, Timestamp

StepType: TypeAlias = Literal["user_message", "assistant_message", "tool_call", "tool_result"]


class TaskItem(Model, frozen=True, kw_only=True):
    """A session as a task. `id`, `title` and `completed_at` repeat fields under other names."""

    id: Annotated[str, Meta(description="The key of the session.")]
    session_id: str
    title: str
    name: Annotated[str, Meta(description="As `title`.")]
    status: Literal["running", "completed"]
    agent_type: Literal["claude"]
    project_path: str
    started_at: Timestamp | None
    ended_at: Annotated[Timestamp | None, Meta(description="Null while it is running.")]
    completed_at: Annotated[Timestamp | None, Meta(description="As `ended_at`.")]
    last_activity: Timestamp | None
    duration_ms: Annotated[int, Meta(ge=0, description="From its first to its last step.")]
    step_count: Count
    tool_call_count: Count


class TaskList(Model, frozen=True, kw_only=True):
    """A page of tasks."""

    tasks: list[TaskItem]
    total: Annotated[int, Meta(ge=0, description="How many tasks there are, on all pages.")]
    next_cursor: Cursor | None


class TaskStep(Model, frozen=True, kw_only=True):
    """A step of a task."""

    step_id: Annotated[int, Meta(ge=1)]
    type: StepType
    timestamp: str | None
    content: str
    tool_name: str | None
    tool_status: Literal["pending", "success", "error"] | None
    tool_result: str | None


class ToolUse(Model, frozen=True, kw_only=True):
    """How often a tool was called."""

    name: str
    count: Count


class TaskSummary(Model, frozen=True, kw_only=True):
    """Figures of a task."""

    total_duration_ms: Count
    user_message_count: Count
    assistant_message_count: Count
    tool_call_count: Count
    tool_success_count: Count
    tool_error_count: Count
    most_used_tools: Annotated[list[ToolUse], Meta(description="The five most used.")]


class TaskDetail(TaskItem, frozen=True, kw_only=True):
    """A task with a page of its steps."""

    user_message_count: Count
    assistant_message_count: Count
    steps: list[TaskStep]
    steps_total: Count
    steps_offset: Annotated[int, Meta(ge=0, description="How many steps precede this page.")]
    has_more_steps: bool
    summary: Annotated[TaskSummary | None, Meta(description="Null while it is running.")]
    next_cursor: Cursor | None
