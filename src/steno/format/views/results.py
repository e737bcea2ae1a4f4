"""What `toolUseResult` holds for all other tools.

Generated from catalogue.json by tools/make_views.py; do not edit.
"""

from typing import Any

from msgspec import field

from steno.format.views.base import View


class Option(View, frozen=True):
    """`option` in `question` in The result of `AskUserQuestion`."""

    description: str | None = None
    label: str | None = None


class Question(View, frozen=True):
    """`question` in The result of `AskUserQuestion`."""

    header: str | None = None
    multi_select: bool | None = field(default=None, name="multiSelect")
    options: list[Option] | None = None
    question: str | None = None


class AskUserQuestionResult(View, frozen=True):
    """The result of `AskUserQuestion`."""

    annotations: dict[str, Any] | None = None
    answers: dict[str, Any] | None = None
    questions: list[Question] | None = None


class BashResult(View, frozen=True):
    """The result of `Bash`."""

    background_task_id: str | None = field(default=None, name="backgroundTaskId")
    interrupted: bool | None = None
    is_image: bool | None = field(default=None, name="isImage")
    no_output_expected: bool | None = field(default=None, name="noOutputExpected")
    persisted_output_path: str | None = field(default=None, name="persistedOutputPath")
    persisted_output_size: int | float | None = field(default=None, name="persistedOutputSize")
    return_code_interpretation: str | None = field(default=None, name="returnCodeInterpretation")
    sandbox: bool | None = None
    stderr: str | None = None
    stdout: str | None = None


class BashOutputResult(View, frozen=True):
    """The result of `BashOutput`."""

    command: str | None = None
    exit_code: Any = field(default=None, name="exitCode")
    shell_id: str | None = field(default=None, name="shellId")
    status: str | None = None
    stderr: str | None = None
    stderr_lines: int | float | None = field(default=None, name="stderrLines")
    stdout: str | None = None
    stdout_lines: int | float | None = field(default=None, name="stdoutLines")
    timestamp: str | None = None


class EnterPlanModeResult(View, frozen=True):
    """The result of `EnterPlanMode`."""

    message: str | None = None


class EnterWorktreeResult(View, frozen=True):
    """The result of `EnterWorktree`."""

    message: str | None = None
    worktree_branch: str | None = field(default=None, name="worktreeBranch")
    worktree_path: str | None = field(default=None, name="worktreePath")


class ExitPlanModeResult(View, frozen=True):
    """The result of `ExitPlanMode`."""

    file_path: str | None = field(default=None, name="filePath")
    has_task_tool: bool | None = field(default=None, name="hasTaskTool")
    is_agent: bool | None = field(default=None, name="isAgent")
    plan: str | None = None


class ExitWorktreeResult(View, frozen=True):
    """The result of `ExitWorktree`."""

    action: str | None = None
    discarded_commits: int | float | None = field(default=None, name="discardedCommits")
    discarded_files: int | float | None = field(default=None, name="discardedFiles")
    message: str | None = None
    original_cwd: str | None = field(default=None, name="originalCwd")
    original_cwd_missing: bool | None = field(default=None, name="originalCwdMissing")
    restored_cwd: str | None = field(default=None, name="restoredCwd")
    worktree_branch: str | None = field(default=None, name="worktreeBranch")
    worktree_path: str | None = field(default=None, name="worktreePath")


class KillBashResult(View, frozen=True):
    """The result of `KillBash`."""

    message: str | None = None
    shell_id: str | None = None
    success: bool | None = None


class KillShellResult(View, frozen=True):
    """The result of `KillShell`."""

    message: str | None = None
    shell_id: str | None = None


class ScheduleWakeupResult(View, frozen=True):
    """The result of `ScheduleWakeup`."""

    clamped_delay_seconds: int | float | None = field(default=None, name="clampedDelaySeconds")
    scheduled_for: Any = field(default=None, name="scheduledFor")
    was_clamped: bool | None = field(default=None, name="wasClamped")


class SendUserFileResult(View, frozen=True):
    """The result of `SendUserFile`."""

    attachments: Any = None
    caption: Any = None
    display: Any = None


class SkillResult(View, frozen=True):
    """The result of `Skill`."""

    allowed_tools: list[str] | None = field(default=None, name="allowedTools")
    command_name: str | None = field(default=None, name="commandName")
    success: bool | None = None


class SlashCommandResult(View, frozen=True):
    """The result of `SlashCommand`."""

    command_name: str | None = field(default=None, name="commandName")
    success: bool | None = None


class ToolSearchResult(View, frozen=True):
    """The result of `ToolSearch`."""

    matches: list[str] | None = None
    query: str | None = None
    total_deferred_tools: int | float | None = None


class WebFetchResult(View, frozen=True):
    """The result of `WebFetch`."""

    bytes: int | float | None = None
    code: int | float | None = None
    code_text: str | None = field(default=None, name="codeText")
    duration_ms: int | float | None = field(default=None, name="durationMs")
    result: str | None = None
    url: str | None = None


class WebSearchResult(View, frozen=True):
    """The result of `WebSearch`."""

    duration_seconds: int | float | None = field(default=None, name="durationSeconds")
    query: str | None = None
    results: list[Any] | None = None
    search_count: int | float | None = field(default=None, name="searchCount")
