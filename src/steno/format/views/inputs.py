"""What tools are called with.

Generated from catalogue.json by tools/make_views.py; do not edit.
"""

from typing import Any

from msgspec import field

from steno.format.views.base import View


class AgentInput(View, frozen=True):
    """The input of `Agent`."""

    description: str | None = None
    effort: str | None = None
    isolation: str | None = None
    model: str | None = None
    name: str | None = None
    prompt: str | None = None
    run_in_background: bool | None = None
    subagent_type: str | None = None
    team_name: str | None = None


class Option(View, frozen=True):
    """`option` in `question` in The input of `AskUserQuestion`."""

    description: str | None = None
    label: str | None = None


class Question(View, frozen=True):
    """`question` in The input of `AskUserQuestion`."""

    header: str | None = None
    multi_select: bool | None = field(default=None, name="multiSelect")
    options: list[Option] | None = None
    question: str | None = None


class AskUserQuestionInput(View, frozen=True):
    """The input of `AskUserQuestion`."""

    annotations: dict[str, Any] | None = None
    answers: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    questions: list[Question] | None = None


class BashInput(View, frozen=True):
    """The input of `Bash`."""

    command: str | None = None
    dangerously_disable_sandbox: bool | None = field(default=None, name="dangerouslyDisableSandbox")
    description: str | None = None
    run_in_background: bool | None = None
    timeout: int | float | None = None


class BashOutputInput(View, frozen=True):
    """The input of `BashOutput`."""

    bash_id: str | None = None


class CronCreateInput(View, frozen=True):
    """The input of `CronCreate`."""

    cron: str | None = None
    durable: bool | None = None
    prompt: str | None = None
    recurring: bool | None = None


class CronDeleteInput(View, frozen=True):
    """The input of `CronDelete`."""

    id: str | None = None


class EditInput(View, frozen=True):
    """The input of `Edit`."""

    file_path: str | None = None
    new_string: str | None = None
    old_string: str | None = None
    replace_all: bool | None = None


class EnterWorktreeInput(View, frozen=True):
    """The input of `EnterWorktree`."""

    name: str | None = None
    path: str | None = None


class ExitPlanModeInput(View, frozen=True):
    """The input of `ExitPlanMode`."""

    allowed_prompts: list[Any] | None = field(default=None, name="allowedPrompts")
    plan: str | None = None
    plan_file_path: str | None = field(default=None, name="planFilePath")


class ExitWorktreeInput(View, frozen=True):
    """The input of `ExitWorktree`."""

    action: str | None = None
    discard_changes: bool | None = None


class GlobInput(View, frozen=True):
    """The input of `Glob`."""

    path: str | None = None
    pattern: str | None = None


class GrepInput(View, frozen=True):
    """The input of `Grep`."""

    after: int | float | None = field(default=None, name="-A")
    around: int | float | None = field(default=None, name="-C")
    before: int | float | None = field(default=None, name="-B")
    context: int | float | None = None
    glob: str | None = None
    head_limit: int | float | None = None
    ignore_case: bool | None = field(default=None, name="-i")
    line_numbers: bool | None = field(default=None, name="-n")
    multiline: bool | None = None
    offset: int | float | None = None
    only_matching: bool | None = field(default=None, name="-o")
    output_mode: str | None = None
    path: str | None = None
    pattern: str | None = None
    type: str | None = None


class KillBashInput(View, frozen=True):
    """The input of `KillBash`."""

    shell_id: str | None = None


class LSInput(View, frozen=True):
    """The input of `LS`."""

    path: str | None = None


class LSPInput(View, frozen=True):
    """The input of `LSP`."""

    character: int | float | None = None
    file_path: str | None = field(default=None, name="filePath")
    line: int | float | None = None
    operation: str | None = None


class ListAgentsInput(View, frozen=True):
    """The input of `ListAgents`."""

    channel: str | None = None
    q: str | None = None


class MonitorInput(View, frozen=True):
    """The input of `Monitor`."""

    command: str | None = None
    description: str | None = None
    timeout_ms: int | float | None = None
    ws: dict[str, Any] | None = None


class Edit(View, frozen=True):
    """`edit` in The input of `MultiEdit`."""

    new_string: str | None = None
    old_string: str | None = None


class MultiEditInput(View, frozen=True):
    """The input of `MultiEdit`."""

    edits: list[Edit] | None = None
    file_path: str | None = None


class NotebookEditInput(View, frozen=True):
    """The input of `NotebookEdit`."""

    cell_id: str | None = None
    cell_number: int | float | None = None
    cell_type: str | None = None
    edit_mode: str | None = None
    new_source: str | None = None
    notebook_path: str | None = None


class ReadInput(View, frozen=True):
    """The input of `Read`."""

    allow_large: bool | None = None
    file_path: str | None = None
    limit: int | float | None = None
    offset: str | int | float | None = None
    pages: str | None = None


class ReportFindingsInput(View, frozen=True):
    """The input of `ReportFindings`."""

    findings: list[Any] | None = None
    level: str | None = None


class ScheduleWakeupInput(View, frozen=True):
    """The input of `ScheduleWakeup`."""

    delay_seconds: int | float | None = field(default=None, name="delaySeconds")
    noop: bool | None = None
    prompt: str | None = None
    reason: str | None = None
    stop: bool | None = None


class SendMessageInput(View, frozen=True):
    """The input of `SendMessage`."""

    content: str | None = None
    message: str | dict[str, Any] | None = None
    notify_when_idle: bool | None = None
    recipient: str | None = None
    summary: str | None = None
    to: str | None = None
    type: str | None = None


class SendUserFileInput(View, frozen=True):
    """The input of `SendUserFile`."""

    caption: str | None = None
    display: str | None = None
    files: list[Any] | None = None
    status: str | None = None


class SkillInput(View, frozen=True):
    """The input of `Skill`."""

    args: str | None = None
    skill: str | None = None


class SlashCommandInput(View, frozen=True):
    """The input of `SlashCommand`."""

    command: str | None = None


class StructuredOutputInput(View, frozen=True):
    """The input of `StructuredOutput`."""

    findings: dict[str, Any] | list[Any] | None = None


class TaskInput(View, frozen=True):
    """The input of `Task`."""

    description: str | None = None
    max_turns: int | float | None = None
    model: str | None = None
    prompt: str | None = None
    resume: str | None = None
    run_in_background: bool | None = None
    subagent_type: str | None = None


class TaskCreateInput(View, frozen=True):
    """The input of `TaskCreate`."""

    active_form: str | None = field(default=None, name="activeForm")
    description: str | None = None
    metadata: dict[str, Any] | None = None
    subject: str | None = None


class TaskGetInput(View, frozen=True):
    """The input of `TaskGet`."""

    task_id: str | None = field(default=None, name="taskId")


class TaskOutputInput(View, frozen=True):
    """The input of `TaskOutput`."""

    block: bool | None = None
    task_id: str | None = None
    timeout: int | float | None = None


class TaskStopInput(View, frozen=True):
    """The input of `TaskStop`."""

    shell_id: str | None = None
    task_id: str | None = None


class TaskUpdateInput(View, frozen=True):
    """The input of `TaskUpdate`."""

    active_form: str | None = field(default=None, name="activeForm")
    add_blocked_by: list[Any] | None = field(default=None, name="addBlockedBy")
    add_blocks: list[Any] | None = field(default=None, name="addBlocks")
    description: str | None = None
    metadata: dict[str, Any] | None = None
    owner: str | None = None
    status: str | None = None
    subject: str | None = None
    task_id: str | None = field(default=None, name="taskId")


class TeamCreateInput(View, frozen=True):
    """The input of `TeamCreate`."""

    agent_type: str | None = None
    description: str | None = None
    team_name: str | None = None


class Todo(View, frozen=True):
    """`todo` in The input of `TodoWrite`."""

    active_form: str | None = field(default=None, name="activeForm")
    content: str | None = None
    id: str | None = None
    priority: str | None = None
    status: str | None = None


class TodoWriteInput(View, frozen=True):
    """The input of `TodoWrite`."""

    todos: list[Todo] | None = None


class ToolSearchInput(View, frozen=True):
    """The input of `ToolSearch`."""

    max_results: int | float | None = None
    query: str | None = None


class WebFetchInput(View, frozen=True):
    """The input of `WebFetch`."""

    offset: int | float | None = None
    prompt: str | None = None
    url: str | None = None


class WebSearchInput(View, frozen=True):
    """The input of `WebSearch`."""

    allowed_domains: list[Any] | None = None
    blocked_domains: list[Any] | None = None
    query: str | None = None


class WorkflowInput(View, frozen=True):
    """The input of `Workflow`."""

    args: Any = None
    description: str | None = None
    name: str | None = None
    resume_from_run_id: str | None = field(default=None, name="resumeFromRunId")
    script: str | None = None
    script_path: str | None = field(default=None, name="scriptPath")
    title: str | None = None


class WriteInput(View, frozen=True):
    """The input of `Write`."""

    content: str | None = None
    file_path: str | None = None
