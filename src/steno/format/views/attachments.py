"""What attachment records carry.

Generated from catalogue.json by tools/make_views.py; do not edit.
"""

from typing import Any

from msgspec import field

from steno.format.views.base import View


class RenderedItem(View, frozen=True):
    """`renderedItem` in `attachment/agent_listing_delta`."""

    content: str | None = None


class AgentListingDelta(View, frozen=True):
    """`attachment/agent_listing_delta`, 2.1.92 to 2.1.325."""

    added_lines: list[str] | None = field(default=None, name="addedLines")
    added_types: list[str] | None = field(default=None, name="addedTypes")
    built_in_plugin_types: list[Any] | None = field(default=None, name="builtInPluginTypes")
    built_in_types: list[str] | None = field(default=None, name="builtInTypes")
    is_initial: bool | None = field(default=None, name="isInitial")
    removed_types: list[str] | None = field(default=None, name="removedTypes")
    rendered: list[RenderedItem] | None = None
    rendered_role: str | None = field(default=None, name="renderedRole")
    show_concurrency_note: bool | None = field(default=None, name="showConcurrencyNote")


class AutoMode(View, frozen=True):
    """`attachment/auto_mode`, 2.1.325."""

    auto_mode_consent_flow: bool | None = field(default=None, name="autoModeConsentFlow")
    bash_first: bool | None = field(default=None, name="bashFirst")
    bash_first_steer: str | None = field(default=None, name="bashFirstSteer")
    bypass: bool | None = None
    finish_exposed_work: bool | None = field(default=None, name="finishExposedWork")
    rendered: list[RenderedItem] | None = None
    rendered_role: str | None = field(default=None, name="renderedRole")
    steer_only: bool | None = field(default=None, name="steerOnly")


class CommandPermissions(View, frozen=True):
    """`attachment/command_permissions`, 2.1.92 to 2.1.325."""

    allowed_tools: list[Any] | None = field(default=None, name="allowedTools")


class Date(View, frozen=True):
    """`attachment/date`, 2.1.325."""

    date: str | None = None
    rendered: list[RenderedItem] | None = None
    rendered_role: str | None = field(default=None, name="renderedRole")


class DeferredToolsDelta(View, frozen=True):
    """`attachment/deferred_tools_delta`, 2.1.92 to 2.1.325."""

    added_lines: list[str] | None = field(default=None, name="addedLines")
    added_names: list[str] | None = field(default=None, name="addedNames")
    failed_mcp_servers: list[Any] | None = field(default=None, name="failedMcpServers")
    needs_auth_mcp_servers: list[Any] | None = field(default=None, name="needsAuthMcpServers")
    pending_mcp_servers: list[Any] | None = field(default=None, name="pendingMcpServers")
    readded_names: list[Any] | None = field(default=None, name="readdedNames")
    removed_names: list[str] | None = field(default=None, name="removedNames")
    rendered: list[RenderedItem] | None = None
    rendered_role: str | None = field(default=None, name="renderedRole")
    wire_hidden_names: list[Any] | None = field(default=None, name="wireHiddenNames")


class Entry(View, frozen=True):
    """`entry` in `attachment/deferred_tools_record`."""

    defer_loading: bool | None = None
    description: str | None = None
    input_schema: dict[str, Any] | None = None
    name: str | None = None


class DeferredToolsRecord(View, frozen=True):
    """`attachment/deferred_tools_record`, 2.1.325."""

    entries: list[Entry] | None = None


class Snapshot(View, frozen=True):
    """`snapshot` in `attachment/environment`."""

    additional_working_directories: list[Any] | None = field(
        default=None, name="additionalWorkingDirectories"
    )
    is_git_repo: bool | None = field(default=None, name="isGitRepo")
    is_worktree: bool | None = field(default=None, name="isWorktree")
    os_version: str | None = field(default=None, name="osVersion")
    platform: str | None = None
    shell: str | None = None
    working_directory: str | None = field(default=None, name="workingDirectory")


class Environment(View, frozen=True):
    """`attachment/environment`, 2.1.325."""

    changes: list[Any] | None = None
    rendered: list[RenderedItem] | None = None
    rendered_role: str | None = field(default=None, name="renderedRole")
    snapshot: Snapshot | None = None


class ForkBriefing(View, frozen=True):
    """`attachment/fork_briefing`, 2.1.325."""

    rendered: list[RenderedItem] | None = None
    rendered_role: str | None = field(default=None, name="renderedRole")
    text: str | None = None


class GoalStatus(View, frozen=True):
    """`attachment/goal_status`, 2.1.325."""

    condition: str | None = None
    met: bool | None = None
    sentinel: bool | None = None


class McpInstructionsDelta(View, frozen=True):
    """`attachment/mcp_instructions_delta`, 2.1.92 to 2.1.237."""

    added_blocks: list[str] | None = field(default=None, name="addedBlocks")
    added_names: list[str] | None = field(default=None, name="addedNames")
    removed_names: list[str] | None = field(default=None, name="removedNames")


class Identity(View, frozen=True):
    """`identity` in `attachment/model`."""

    knowledge_cutoff: str | None = field(default=None, name="knowledgeCutoff")
    marketing_name: str | None = field(default=None, name="marketingName")
    model_id: str | None = field(default=None, name="modelId")


class Model(View, frozen=True):
    """`attachment/model`, 2.1.325."""

    identity: Identity | None = None
    rendered: list[RenderedItem] | None = None
    rendered_role: str | None = field(default=None, name="renderedRole")
    text: str | None = None


class PlanMode(View, frozen=True):
    """`attachment/plan_mode`, 2.1.92 to 2.1.325."""

    is_sub_agent: bool | None = field(default=None, name="isSubAgent")
    plan_exists: bool | None = field(default=None, name="planExists")
    plan_file_path: str | None = field(default=None, name="planFilePath")
    reminder_type: str | None = field(default=None, name="reminderType")
    rendered: list[RenderedItem] | None = None
    rendered_role: str | None = field(default=None, name="renderedRole")


class PlanModeExit(View, frozen=True):
    """`attachment/plan_mode_exit`, 2.1.92 to 2.1.325."""

    plan_exists: bool | None = field(default=None, name="planExists")
    plan_file_path: str | None = field(default=None, name="planFilePath")
    rendered: list[RenderedItem] | None = None
    rendered_role: str | None = field(default=None, name="renderedRole")


class PromptSnapshot(View, frozen=True):
    """`attachment/prompt_snapshot`, 2.1.325."""

    cli_prefix: str | None = field(default=None, name="cliPrefix")
    context_rendering: str | None = field(default=None, name="contextRendering")
    echo_wire_tool_inputs: bool | None = field(default=None, name="echoWireToolInputs")
    inline_tools: bool | None = field(default=None, name="inlineTools")
    kept_reminders: bool | None = field(default=None, name="keptReminders")
    reminder_fold: bool | None = field(default=None, name="reminderFold")
    system_prompt: list[Any] | None = field(default=None, name="systemPrompt")
    system_turns: bool | None = field(default=None, name="systemTurns")
    tool_change_header: bool | None = field(default=None, name="toolChangeHeader")
    tools: list[Any] | None = None


class Origin(View, frozen=True):
    """`origin` in `attachment/queued_command`."""

    kind: str | None = None
    producer: str | None = None


class RenderedInHumanTurnItem(View, frozen=True):
    """`renderedInHumanTurnItem` in `attachment/queued_command`."""

    content: str | None = None


class QueuedCommand(View, frozen=True):
    """`attachment/queued_command`, 2.1.92 to 2.1.325."""

    command_mode: str | None = field(default=None, name="commandMode")
    delivery_id: str | None = None
    human_turn: bool | None = field(default=None, name="humanTurn")
    image_paste_ids: list[Any] | None = field(default=None, name="imagePasteIds")
    origin: Origin | None = None
    prompt: str | None = None
    rendered: list[RenderedItem] | None = None
    rendered_in_human_turn: list[RenderedInHumanTurnItem] | None = field(
        default=None, name="renderedInHumanTurn"
    )
    rendered_role: str | None = field(default=None, name="renderedRole")
    run_id: str | None = field(default=None, name="runId")
    source_uuid: str | None = None
    timestamp: str | None = None
    tools_used_delta: list[Any] | None = field(default=None, name="toolsUsedDelta")
    usage: dict[str, Any] | None = None


class RemoteSessionChange(View, frozen=True):
    """`attachment/remote_session_change`, 2.1.325."""

    commit: str | None = None
    managed_commit: bool | None = field(default=None, name="managedCommit")
    managed_pr: bool | None = field(default=None, name="managedPr")
    pr: str | None = None
    rendered: list[RenderedItem] | None = None
    rendered_beside_tool_result: bool | None = field(default=None, name="renderedBesideToolResult")
    rendered_role: str | None = field(default=None, name="renderedRole")
    send_user_file_hint: bool | None = field(default=None, name="sendUserFileHint")
    url: Any = None


class Context(View, frozen=True):
    """`context` in `attachment/session_context`."""

    git_status: str | None = field(default=None, name="gitStatus")


class SessionContext(View, frozen=True):
    """`attachment/session_context`, 2.1.325."""

    context: Context | None = None
    rendered: list[RenderedItem] | None = None
    rendered_role: str | None = field(default=None, name="renderedRole")


class SilentTurnReminder(View, frozen=True):
    """`attachment/silent_turn_reminder`, 2.1.325."""

    rendered: list[RenderedItem] | None = None
    rendered_role: str | None = field(default=None, name="renderedRole")
    text: str | None = None


class SkillListing(View, frozen=True):
    """`attachment/skill_listing`, 2.1.92 to 2.1.325."""

    content: str | None = None
    digests: list[str] | None = None
    is_initial: bool | None = field(default=None, name="isInitial")
    names: list[str] | None = None
    rendered: list[RenderedItem] | None = None
    rendered_role: str | None = field(default=None, name="renderedRole")
    skill_count: int | float | None = field(default=None, name="skillCount")


class StructuredOutput(View, frozen=True):
    """`attachment/structured_output`, 2.1.92 to 2.1.237."""

    data: dict[str, Any] | None = None
    tool_use_id: str | None = field(default=None, name="toolUseID")


class TaskReminder(View, frozen=True):
    """`attachment/task_reminder`, 2.1.92 to 2.1.325."""

    content: list[Any] | None = None
    item_count: int | float | None = field(default=None, name="itemCount")
    rendered: list[RenderedItem] | None = None
    rendered_role: str | None = field(default=None, name="renderedRole")


class TodoReminder(View, frozen=True):
    """`attachment/todo_reminder`, 2.1.92 to 2.1.237."""

    content: list[Any] | None = None
    item_count: int | float | None = field(default=None, name="itemCount")


class TotalTokensReminder(View, frozen=True):
    """`attachment/total_tokens_reminder`, 2.1.92 to 2.1.237."""

    text: str | None = None


class UltrathinkEffort(View, frozen=True):
    """`attachment/ultrathink_effort`, 2.1.200 to 2.1.325."""

    rendered: list[RenderedItem] | None = None
    rendered_role: str | None = field(default=None, name="renderedRole")


class UnknownCommandFallback(View, frozen=True):
    """`attachment/unknown_command_fallback`, 2.1.325."""

    available_command_count: int | float | None = field(default=None, name="availableCommandCount")
    available_command_names: list[str] | None = field(default=None, name="availableCommandNames")
    command_name: str | None = field(default=None, name="commandName")
    rendered: list[RenderedItem] | None = None
    rendered_role: str | None = field(default=None, name="renderedRole")
