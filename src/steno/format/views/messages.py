"""What user and assistant records carry beside the envelope and the message.

Generated from catalogue.json by tools/make_views.py; do not edit.
"""

from typing import Any

from msgspec import field

from steno.format.views.base import View


class ApiErrorParams(View, frozen=True):
    """`apiErrorParams` in `assistant/api_error`."""

    cut: str | None = None


class AssistantApiError(View, frozen=True):
    """`assistant/api_error`, 1.0.128 to 2.1.325."""

    api_error: str | None = field(default=None, name="apiError")
    api_error_is_transient: bool | None = field(default=None, name="apiErrorIsTransient")
    api_error_params: ApiErrorParams | None = field(default=None, name="apiErrorParams")
    api_error_status: int | float | None = field(default=None, name="apiErrorStatus")
    api_error_type: str | None = field(default=None, name="apiErrorType")
    error: str | None = None
    failed_response_had_no_tool_call: bool | None = field(
        default=None, name="failedResponseHadNoToolCall"
    )
    is_api_error_message: bool | None = field(default=None, name="isApiErrorMessage")
    made_by: str | None = field(default=None, name="madeBy")
    per_turn_effort: str | None = field(default=None, name="perTurnEffort")
    refused_message_id: str | None = field(default=None, name="refusedMessageId")
    refusing_model: str | None = field(default=None, name="refusingModel")
    stream_cut_cause: str | None = field(default=None, name="streamCutCause")
    truncated_after_output: bool | None = field(default=None, name="truncatedAfterOutput")


class AssistantCommand(View, frozen=True):
    """`assistant/command`, published in spec-000."""

    is_aborted: bool | None = field(default=None, name="isAborted")
    is_deleted: bool | None = field(default=None, name="isDeleted")
    is_error: bool | None = field(default=None, name="isError")
    is_meta: bool | None = field(default=None, name="isMeta")


class AssistantError(View, frozen=True):
    """`assistant/error`, published in spec-000."""

    is_aborted: bool | None = field(default=None, name="isAborted")
    is_deleted: bool | None = field(default=None, name="isDeleted")
    is_error: bool | None = field(default=None, name="isError")
    is_meta: bool | None = field(default=None, name="isMeta")


class AssistantRedactedThinking(View, frozen=True):
    """`assistant/redacted_thinking`, 1.0.128 to 2.1.325."""

    api_block_index: int | float | None = field(default=None, name="apiBlockIndex")
    effort: str | None = None
    made_by: str | None = field(default=None, name="madeBy")
    per_turn_effort: str | None = field(default=None, name="perTurnEffort")
    prompt_cache_requested: str | None = field(default=None, name="promptCacheRequested")
    request_ref: str | None = field(default=None, name="requestRef")
    requested_model: str | None = field(default=None, name="requestedModel")


class AssistantResponse(View, frozen=True):
    """`assistant/response`, published in spec-000."""

    is_aborted: bool | None = field(default=None, name="isAborted")
    is_deleted: bool | None = field(default=None, name="isDeleted")
    is_error: bool | None = field(default=None, name="isError")
    is_meta: bool | None = field(default=None, name="isMeta")


class AssistantText(View, frozen=True):
    """`assistant/text`, 1.0.17 to 2.1.325."""

    advisor_model: str | None = field(default=None, name="advisorModel")
    api_block_index: int | float | None = field(default=None, name="apiBlockIndex")
    attribution_agent: str | None = field(default=None, name="attributionAgent")
    attribution_mcp_server: str | None = field(default=None, name="attributionMcpServer")
    attribution_mcp_tool: str | None = field(default=None, name="attributionMcpTool")
    attribution_plugin: str | None = field(default=None, name="attributionPlugin")
    attribution_skill: str | None = field(default=None, name="attributionSkill")
    compact_metadata: dict[str, Any] | None = field(default=None, name="compactMetadata")
    effort: str | None = None
    is_aborted: bool | None = field(default=None, name="isAborted")
    is_aborted_mid_stream: bool | None = field(default=None, name="isAbortedMidStream")
    is_active: bool | None = None
    is_api_error_message: bool | None = field(default=None, name="isApiErrorMessage")
    is_deleted: bool | None = field(default=None, name="isDeleted")
    is_error: bool | None = field(default=None, name="isError")
    is_meta: bool | None = field(default=None, name="isMeta")
    made_by: str | None = field(default=None, name="madeBy")
    per_turn_effort: str | None = field(default=None, name="perTurnEffort")
    prompt_cache_requested: str | None = field(default=None, name="promptCacheRequested")
    request_ref: str | None = field(default=None, name="requestRef")
    requested_model: str | None = field(default=None, name="requestedModel")
    server_classifier_request: str | None = field(default=None, name="serverClassifierRequest")
    wire_tool_inputs: Any = field(default=None, name="wireToolInputs")


class AssistantThinking(View, frozen=True):
    """`assistant/thinking`, 1.0.128 to 2.1.325."""

    advisor_model: str | None = field(default=None, name="advisorModel")
    api_block_index: int | float | None = field(default=None, name="apiBlockIndex")
    attribution_plugin: str | None = field(default=None, name="attributionPlugin")
    attribution_skill: str | None = field(default=None, name="attributionSkill")
    compact_metadata: dict[str, Any] | None = field(default=None, name="compactMetadata")
    effort: str | None = None
    is_aborted: bool | None = field(default=None, name="isAborted")
    is_active: bool | None = None
    is_deleted: bool | None = field(default=None, name="isDeleted")
    is_error: bool | None = field(default=None, name="isError")
    is_meta: bool | None = field(default=None, name="isMeta")
    made_by: str | None = field(default=None, name="madeBy")
    per_turn_effort: str | None = field(default=None, name="perTurnEffort")
    prompt_cache_requested: str | None = field(default=None, name="promptCacheRequested")
    request_ref: str | None = field(default=None, name="requestRef")
    requested_model: str | None = field(default=None, name="requestedModel")
    thinking_display: str | None = field(default=None, name="thinkingDisplay")
    thinking_duration_ms: int | float | None = field(default=None, name="thinkingDurationMs")
    wire_tool_inputs: Any = field(default=None, name="wireToolInputs")


class AssistantToolUse(View, frozen=True):
    """`assistant/tool_use`, 1.0.17 to 2.1.325."""

    advisor_model: str | None = field(default=None, name="advisorModel")
    api_block_index: int | float | None = field(default=None, name="apiBlockIndex")
    attribution_agent: str | None = field(default=None, name="attributionAgent")
    attribution_mcp_server: str | None = field(default=None, name="attributionMcpServer")
    attribution_mcp_tool: str | None = field(default=None, name="attributionMcpTool")
    attribution_plugin: str | None = field(default=None, name="attributionPlugin")
    attribution_skill: str | None = field(default=None, name="attributionSkill")
    compact_metadata: dict[str, Any] | None = field(default=None, name="compactMetadata")
    effort: str | None = None
    is_aborted: bool | None = field(default=None, name="isAborted")
    is_active: bool | None = None
    is_deleted: bool | None = field(default=None, name="isDeleted")
    is_error: bool | None = field(default=None, name="isError")
    is_meta: bool | None = field(default=None, name="isMeta")
    made_by: str | None = field(default=None, name="madeBy")
    per_turn_effort: str | None = field(default=None, name="perTurnEffort")
    prompt_cache_requested: str | None = field(default=None, name="promptCacheRequested")
    request_ref: str | None = field(default=None, name="requestRef")
    requested_model: str | None = field(default=None, name="requestedModel")
    server_classifier_request: str | None = field(default=None, name="serverClassifierRequest")
    tool_arguments: dict[str, Any] | None = field(default=None, name="toolArguments")
    tool_input_stream_ms: int | float | None = field(default=None, name="toolInputStreamMs")
    tool_name: str | None = field(default=None, name="toolName")
    wire_ingest_context: dict[str, Any] | None = field(default=None, name="wireIngestContext")
    wire_tool_inputs: Any = field(default=None, name="wireToolInputs")


class CompactPrelude(View, frozen=True):
    """`compact_prelude`, published in spec-004."""

    compact_metadata: dict[str, Any] | None = field(default=None, name="compactMetadata")
    is_aborted: bool | None = field(default=None, name="isAborted")
    is_active: bool | None = None
    is_deleted: bool | None = field(default=None, name="isDeleted")
    is_error: bool | None = field(default=None, name="isError")
    is_meta: bool | None = field(default=None, name="isMeta")


class CompactRecap(View, frozen=True):
    """`compact_recap`, published in spec-004."""

    compact_metadata: dict[str, Any] | None = field(default=None, name="compactMetadata")
    is_aborted: bool | None = field(default=None, name="isAborted")
    is_active: bool | None = None
    is_deleted: bool | None = field(default=None, name="isDeleted")
    is_error: bool | None = field(default=None, name="isError")
    is_meta: bool | None = field(default=None, name="isMeta")


class Metadata(View, frozen=True):
    """`metadata` in `compact_system`."""

    compression_ratio: int | float | None = field(default=None, name="compressionRatio")
    preserved_messages: int | float | None = field(default=None, name="preservedMessages")
    total_messages: int | float | None = field(default=None, name="totalMessages")


class CompactSystem(View, frozen=True):
    """`compact_system`, published in spec-000."""

    is_aborted: bool | None = field(default=None, name="isAborted")
    is_deleted: bool | None = field(default=None, name="isDeleted")
    is_error: bool | None = field(default=None, name="isError")
    is_meta: bool | None = field(default=None, name="isMeta")
    metadata: Metadata | None = None


class Human(View, frozen=True):
    """`human`, published in spec-004."""

    compact_metadata: dict[str, Any] | None = field(default=None, name="compactMetadata")
    is_aborted: bool | None = field(default=None, name="isAborted")
    is_active: bool | None = None
    is_deleted: bool | None = field(default=None, name="isDeleted")
    is_error: bool | None = field(default=None, name="isError")
    is_meta: bool | None = field(default=None, name="isMeta")


class ToolResult(View, frozen=True):
    """`tool_result`, published in spec-004."""

    compact_metadata: dict[str, Any] | None = field(default=None, name="compactMetadata")
    is_aborted: bool | None = field(default=None, name="isAborted")
    is_active: bool | None = None
    is_deleted: bool | None = field(default=None, name="isDeleted")
    is_error: bool | None = field(default=None, name="isError")
    is_meta: bool | None = field(default=None, name="isMeta")


class TurnPosition(View, frozen=True):
    """`turnPosition` in `user/compact_summary`."""

    prompt_index: int | float | None = field(default=None, name="promptIndex")
    turn_index: int | float | None = field(default=None, name="turnIndex")


class UserCompactSummary(View, frozen=True):
    """`user/compact_summary`, 1.0.128 to 2.1.325."""

    is_compact_summary: bool | None = field(default=None, name="isCompactSummary")
    is_visible_in_transcript_only: bool | None = field(
        default=None, name="isVisibleInTranscriptOnly"
    )
    prompt_id: str | None = field(default=None, name="promptId")
    summarized_turn_prompt_uuids: list[str] | None = field(
        default=None, name="summarizedTurnPromptUuids"
    )
    turn_origin: str | None = field(default=None, name="turnOrigin")
    turn_position: TurnPosition | None = field(default=None, name="turnPosition")


class UserMeta(View, frozen=True):
    """`user/meta`, 1.0.98 to 2.1.325."""

    is_meta: bool | None = field(default=None, name="isMeta")
    prompt_id: str | None = field(default=None, name="promptId")
    queue_skip_attachments: bool | None = field(default=None, name="queueSkipAttachments")
    refused_message_id: str | None = field(default=None, name="refusedMessageId")
    source_tool_use_id: str | None = field(default=None, name="sourceToolUseID")
    turn_companion: bool | None = field(default=None, name="turnCompanion")


class Origin(View, frozen=True):
    """`origin` in `user/prompt`."""

    kind: str | None = None
    producer: str | None = None
    run_id: str | None = field(default=None, name="runId")


class Trigger(View, frozen=True):
    """`trigger` in `thinkingMetadata` in `user/prompt`."""

    end: int | float | None = None
    start: int | float | None = None
    text: str | None = None


class ThinkingMetadata(View, frozen=True):
    """`thinkingMetadata` in `user/prompt`."""

    disabled: bool | None = None
    level: str | None = None
    max_thinking_tokens: int | float | None = field(default=None, name="maxThinkingTokens")
    triggers: list[Trigger] | None = None


class UserPrompt(View, frozen=True):
    """`user/prompt`, 1.0.17 to 2.1.325."""

    classifier_meta_lines: str | None = field(default=None, name="classifierMetaLines")
    image_paste_ids: list[Any] | None = field(default=None, name="imagePasteIds")
    interrupted_by_shutdown: bool | None = field(default=None, name="interruptedByShutdown")
    interrupted_message_id: str | None = field(default=None, name="interruptedMessageId")
    is_aborted: bool | None = field(default=None, name="isAborted")
    is_deleted: bool | None = field(default=None, name="isDeleted")
    is_error: bool | None = field(default=None, name="isError")
    is_meta: bool | None = field(default=None, name="isMeta")
    is_visible_in_transcript_only: bool | None = field(
        default=None, name="isVisibleInTranscriptOnly"
    )
    origin: Origin | None = None
    permission_mode: str | None = field(default=None, name="permissionMode")
    plan_content: str | None = field(default=None, name="planContent")
    prompt_id: str | None = field(default=None, name="promptId")
    prompt_source: str | None = field(default=None, name="promptSource")
    queue_priority: str | None = field(default=None, name="queuePriority")
    queue_skip_attachments: bool | None = field(default=None, name="queueSkipAttachments")
    queue_transcript_only: bool | None = field(default=None, name="queueTranscriptOnly")
    repeats_compact_summary: bool | None = field(default=None, name="repeatsCompactSummary")
    thinking_metadata: ThinkingMetadata | None = field(default=None, name="thinkingMetadata")
    todos: list[Any] | None = None
    turn_origin: str | None = field(default=None, name="turnOrigin")
    turn_position: TurnPosition | None = field(default=None, name="turnPosition")


class McpMeta(View, frozen=True):
    """`mcpMeta` in `user/tool_result`."""

    meta: dict[str, Any] | None = field(default=None, name="_meta")
    structured_content: dict[str, Any] | None = field(default=None, name="structuredContent")


class PermissionDecision(View, frozen=True):
    """`permissionDecision` in `user/tool_result`."""

    decision: str | None = None
    grant_scope: str | None = field(default=None, name="grantScope")
    reason_code: str | None = field(default=None, name="reasonCode")
    reason_type: str | None = field(default=None, name="reasonType")
    rule_source: str | None = field(default=None, name="ruleSource")
    source: str | None = None


class UserToolResult(View, frozen=True):
    """`user/tool_result`, 1.0.17 to 2.1.325."""

    mcp_call_not_read_only: str | None = field(default=None, name="mcpCallNotReadOnly")
    mcp_meta: McpMeta | None = field(default=None, name="mcpMeta")
    permission_decision: PermissionDecision | None = field(default=None, name="permissionDecision")
    prompt_id: str | None = field(default=None, name="promptId")
    sandboxed: bool | None = None
    source_tool_assistant_uuid: str | None = field(default=None, name="sourceToolAssistantUUID")
    tool_denial_kind: str | None = field(default=None, name="toolDenialKind")
    tool_ends_turn: bool | None = field(default=None, name="toolEndsTurn")
    user_feedback: str | None = field(default=None, name="userFeedback")
