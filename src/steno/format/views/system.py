"""What system records carry.

Generated from catalogue.json by tools/make_views.py; do not edit.
"""

from typing import Any

from msgspec import field

from steno.format.views.base import View


class System(View, frozen=True):
    """`system`, published in spec-000."""

    is_aborted: bool | None = field(default=None, name="isAborted")
    is_deleted: bool | None = field(default=None, name="isDeleted")
    is_error: bool | None = field(default=None, name="isError")
    is_meta: bool | None = field(default=None, name="isMeta")


class ApiErrorError(View, frozen=True):
    """`error` in `system/api_error`."""

    cause: dict[str, Any] | None = None
    connection: Any = None
    formatted: str | None = None
    is_network_down: bool | None = field(default=None, name="isNetworkDown")
    message: str | None = None
    no_response: Any = field(default=None, name="noResponse")
    rate_limits: Any = field(default=None, name="rateLimits")
    request_id: str | None = field(default=None, name="requestId")
    status: int | float | None = None


class ApiError(View, frozen=True):
    """`system/api_error`, 2.0.5 to 2.1.325."""

    cause: dict[str, Any] | None = None
    error: ApiErrorError | None = None
    level: str | None = None
    max_retries: int | float | None = field(default=None, name="maxRetries")
    retry_attempt: int | float | None = field(default=None, name="retryAttempt")
    retry_in_ms: int | float | None = field(default=None, name="retryInMs")
    source: str | None = None


class AwaySummary(View, frozen=True):
    """`system/away_summary`, 2.1.231."""

    content: str | None = None
    is_meta: bool | None = field(default=None, name="isMeta")


class PreservedMessages(View, frozen=True):
    """`preservedMessages` in `compactMetadata` in `system/compact_boundary`."""

    all_uuids: list[str] | None = field(default=None, name="allUuids")
    anchor_uuid: str | None = field(default=None, name="anchorUuid")
    uuids: list[str] | None = None


class PreservedSegment(View, frozen=True):
    """`preservedSegment` in `compactMetadata` in `system/compact_boundary`."""

    anchor_uuid: str | None = field(default=None, name="anchorUuid")
    head_uuid: str | None = field(default=None, name="headUuid")
    tail_uuid: str | None = field(default=None, name="tailUuid")


class CompactMetadata(View, frozen=True):
    """`compactMetadata` in `system/compact_boundary`."""

    cumulative_dropped_tokens: int | float | None = field(
        default=None, name="cumulativeDroppedTokens"
    )
    duration_ms: int | float | None = field(default=None, name="durationMs")
    messages_summarized: int | float | None = field(default=None, name="messagesSummarized")
    post_tokens: int | float | None = field(default=None, name="postTokens")
    pre_compact_discovered_tools: list[Any] | None = field(
        default=None, name="preCompactDiscoveredTools"
    )
    pre_tokens: int | float | None = field(default=None, name="preTokens")
    preserved_messages: PreservedMessages | None = field(default=None, name="preservedMessages")
    preserved_segment: PreservedSegment | None = field(default=None, name="preservedSegment")
    running_turn_prompt: dict[str, Any] | None = field(default=None, name="runningTurnPrompt")
    trigger: str | None = None


class CompactBoundary(View, frozen=True):
    """`system/compact_boundary`, 1.0.128 to 2.1.325."""

    compact_metadata: CompactMetadata | None = field(default=None, name="compactMetadata")
    content: str | None = None
    is_meta: bool | None = field(default=None, name="isMeta")
    level: str | None = None
    logical_parent_uuid: str | None = field(default=None, name="logicalParentUuid")


class Error(View, frozen=True):
    """`system/error`, published in spec-000."""

    is_aborted: bool | None = field(default=None, name="isAborted")
    is_deleted: bool | None = field(default=None, name="isDeleted")
    is_error: bool | None = field(default=None, name="isError")
    is_meta: bool | None = field(default=None, name="isMeta")


class Ending(View, frozen=True):
    """`ending` in `promptSubmitEnding` in `system/informational`."""

    kind: str | None = None
    reason: str | None = None


class PromptSubmitEnding(View, frozen=True):
    """`promptSubmitEnding` in `system/informational`."""

    ending: Ending | None = None
    prompt_kept: bool | None = field(default=None, name="promptKept")


class Informational(View, frozen=True):
    """`system/informational`, 2.1.325."""

    content: str | None = None
    is_meta: bool | None = field(default=None, name="isMeta")
    level: str | None = None
    prevent_continuation: bool | None = field(default=None, name="preventContinuation")
    prompt_submit_ending: PromptSubmitEnding | None = field(default=None, name="promptSubmitEnding")


class CommandRun(View, frozen=True):
    """`commandRun` in `system/local_command`."""

    args: str | None = None
    command: str | None = None


class Category(View, frozen=True):
    """`category` in `contextUsage` in `system/local_command`."""

    kind: str | None = None
    name: str | None = None
    tokens: int | float | None = None


class Skill(View, frozen=True):
    """`skill` in `contextUsage` in `system/local_command`."""

    name: str | None = None
    source: str | None = None
    tokens: int | float | None = None


class ContextUsage(View, frozen=True):
    """`contextUsage` in `system/local_command`."""

    agents: list[Any] | None = None
    categories: list[Category] | None = None
    mcp_tools: list[Any] | None = None
    memory_files: list[Any] | None = None
    model: str | None = None
    percentage: int | float | None = None
    raw_max_tokens: int | float | None = None
    skills: list[Skill] | None = None
    total_tokens: int | float | None = None


class LocalCommand(View, frozen=True):
    """`system/local_command`, 2.1.12 to 2.1.325."""

    command_run: CommandRun | None = field(default=None, name="commandRun")
    content: str | None = None
    context_usage: ContextUsage | None = field(default=None, name="contextUsage")
    is_display_only: bool | None = field(default=None, name="isDisplayOnly")
    is_meta: bool | None = field(default=None, name="isMeta")
    level: str | None = None


class Meta(View, frozen=True):
    """`system/meta`, published in spec-000."""

    is_aborted: bool | None = field(default=None, name="isAborted")
    is_deleted: bool | None = field(default=None, name="isDeleted")
    is_error: bool | None = field(default=None, name="isError")
    is_meta: bool | None = field(default=None, name="isMeta")


class MicrocompactMetadata(View, frozen=True):
    """`microcompactMetadata` in `system/microcompact_boundary`."""

    cleared_attachment_uuids: list[Any] | None = field(default=None, name="clearedAttachmentUUIDs")
    compacted_tool_ids: list[str] | None = field(default=None, name="compactedToolIds")
    pre_tokens: int | float | None = field(default=None, name="preTokens")
    tokens_saved: int | float | None = field(default=None, name="tokensSaved")
    trigger: str | None = None


class MicrocompactBoundary(View, frozen=True):
    """`system/microcompact_boundary`, 2.1.12 to 2.1.22."""

    content: str | None = None
    is_meta: bool | None = field(default=None, name="isMeta")
    level: str | None = None
    microcompact_metadata: MicrocompactMetadata | None = field(
        default=None, name="microcompactMetadata"
    )


class ModelRefusalFallback(View, frozen=True):
    """`system/model_refusal_fallback`, known from others only."""

    api_refusal_category: str | None = field(default=None, name="apiRefusalCategory")
    api_refusal_explanation: str | None = field(default=None, name="apiRefusalExplanation")
    content: str | None = None
    direction: str | None = None
    fallback_model: str | None = field(default=None, name="fallbackModel")
    level: str | None = None
    original_model: str | None = field(default=None, name="originalModel")
    refused_user_message_uuid: str | None = field(default=None, name="refusedUserMessageUuid")
    retracted_message_uuids: list[str] | None = field(default=None, name="retractedMessageUuids")
    trigger: str | None = None


class ModelRefusalNoFallback(View, frozen=True):
    """`system/model_refusal_no_fallback`, 2.1.325."""

    api_refusal_category: Any = field(default=None, name="apiRefusalCategory")
    api_refusal_explanation: Any = field(default=None, name="apiRefusalExplanation")
    content: str | None = None
    is_meta: bool | None = field(default=None, name="isMeta")
    level: str | None = None
    original_model: str | None = field(default=None, name="originalModel")
    refused_user_message_uuid: str | None = field(default=None, name="refusedUserMessageUuid")


class ScheduledTaskFire(View, frozen=True):
    """`system/scheduled_task_fire`, 2.1.221."""

    content: str | None = None
    is_meta: bool | None = field(default=None, name="isMeta")


class HookInfo(View, frozen=True):
    """`hookInfo` in `system/stop_hook_summary`."""

    command: str | None = None
    duration_ms: int | float | None = field(default=None, name="durationMs")
    prompt_text: str | None = field(default=None, name="promptText")


class StopHookSummary(View, frozen=True):
    """`system/stop_hook_summary`, 2.0.64 to 2.1.325."""

    has_output: bool | None = field(default=None, name="hasOutput")
    hook_additional_context: list[Any] | None = field(default=None, name="hookAdditionalContext")
    hook_count: int | float | None = field(default=None, name="hookCount")
    hook_errors: list[str] | None = field(default=None, name="hookErrors")
    hook_infos: list[HookInfo] | None = field(default=None, name="hookInfos")
    level: str | None = None
    prevented_continuation: bool | None = field(default=None, name="preventedContinuation")
    stop_reason: str | None = field(default=None, name="stopReason")
    tool_use_id: str | None = field(default=None, name="toolUseID")


class ToolResult(View, frozen=True):
    """`system/tool_result`, published in spec-000."""

    is_aborted: bool | None = field(default=None, name="isAborted")
    is_deleted: bool | None = field(default=None, name="isDeleted")
    is_error: bool | None = field(default=None, name="isError")
    is_meta: bool | None = field(default=None, name="isMeta")


class TurnDuration(View, frozen=True):
    """`system/turn_duration`, 2.1.1 to 2.1.325."""

    duration_ms: int | float | None = field(default=None, name="durationMs")
    is_meta: bool | None = field(default=None, name="isMeta")
    message_count: int | float | None = field(default=None, name="messageCount")
    pending_background_agent_count: int | float | None = field(
        default=None, name="pendingBackgroundAgentCount"
    )
