"""What side records carry: titles, modes, snapshots, totals.

Generated from catalogue.json by tools/make_views.py; do not edit.
"""

from typing import Any

from msgspec import field

from steno.format.views.base import View


class AgentColor(View, frozen=True):
    """`agent-color`, 2.1.325."""

    agent_color: str | None = field(default=None, name="agentColor")


class AgentName(View, frozen=True):
    """`agent-name`, 2.1.81 to 2.1.325."""

    agent_name: str | None = field(default=None, name="agentName")


class AgentSetting(View, frozen=True):
    """`agent-setting`, 2.1.42 to 2.1.325."""

    agent_setting: str | None = field(default=None, name="agentSetting")


class AiTitle(View, frozen=True):
    """`ai-title`, 2.1.112 to 2.1.325."""

    ai_title: str | None = field(default=None, name="aiTitle")


class CacheControlItem(View, frozen=True):
    """`cacheControlItem` in `api-request`."""

    path: list[Any] | None = None
    value: dict[str, Any] | None = None


class Params(View, frozen=True):
    """`params` in `api-request`."""

    betas: list[str] | None = None
    context_management: dict[str, Any] | None = None
    max_tokens: int | float | None = None
    model: str | None = None
    output_config: dict[str, Any] | None = None
    thinking: dict[str, Any] | None = None


class ApiRequest(View, frozen=True):
    """`api-request`, 2.1.325."""

    base: str | None = None
    cache_control: list[CacheControlItem] | None = field(default=None, name="cacheControl")
    id: str | None = None
    keep: int | float | None = None
    params: Params | None = None
    query_source: str | None = field(default=None, name="querySource")
    request_digest: str | None = field(default=None, name="requestDigest")
    shape_hash: str | None = field(default=None, name="shapeHash")
    tail: list[str] | None = None


class OutputConfig(View, frozen=True):
    """`output_config` in `message` in `api-request-blob`."""

    effort: str | None = None


class Message(View, frozen=True):
    """`message` in `api-request-blob`."""

    content: str | list[Any] | None = None
    output_config: OutputConfig | None = None
    role: str | None = None


class ApiRequestBlob(View, frozen=True):
    """`api-request-blob`, 2.1.325."""

    hash: str | None = None
    message: Message | None = None


class ApiRequestShape(View, frozen=True):
    """`api-request-shape`, 2.1.325."""

    shape: dict[str, Any] | None = None
    shape_hash: str | None = field(default=None, name="shapeHash")


class AtisLatch(View, frozen=True):
    """`atis-latch`, 2.1.237 to 2.1.325."""

    atis: str | None = None


class BridgeSession(View, frozen=True):
    """`bridge-session`, 2.1.220 to 2.1.221."""

    bridge_session_id: str | None = field(default=None, name="bridgeSessionId")
    last_sequence_num: int | float | None = field(default=None, name="lastSequenceNum")


class ContentReplacement(View, frozen=True):
    """`content-replacement`, known from others only."""

    replacements: list[Any] | None = None


class ModelUsageItem(View, frozen=True):
    """`modelUsageItem` in `cost-state`."""

    cache_creation_ephemeral1h_input_tokens: int | float | None = field(
        default=None, name="cacheCreationEphemeral1hInputTokens"
    )
    cache_creation_ephemeral5m_input_tokens: int | float | None = field(
        default=None, name="cacheCreationEphemeral5mInputTokens"
    )
    cache_creation_input_tokens: int | float | None = field(
        default=None, name="cacheCreationInputTokens"
    )
    cache_read_input_tokens: int | float | None = field(default=None, name="cacheReadInputTokens")
    cost_usd: int | float | None = field(default=None, name="costUSD")
    input_tokens: int | float | None = field(default=None, name="inputTokens")
    output_tokens: int | float | None = field(default=None, name="outputTokens")
    thinking_tokens: int | float | None = field(default=None, name="thinkingTokens")
    web_search_requests: int | float | None = field(default=None, name="webSearchRequests")


class CostState(View, frozen=True):
    """`cost-state`, 2.1.325."""

    has_unknown_model_cost: bool | None = field(default=None, name="hasUnknownModelCost")
    model_usage: dict[str, ModelUsageItem] | None = field(default=None, name="modelUsage")
    start_time: int | float | None = field(default=None, name="startTime")
    total_api_duration: int | float | None = field(default=None, name="totalAPIDuration")
    total_api_duration_without_retries: int | float | None = field(
        default=None, name="totalAPIDurationWithoutRetries"
    )
    total_cost_usd: int | float | None = field(default=None, name="totalCostUSD")
    total_duration: int | float | None = field(default=None, name="totalDuration")
    total_lines_added: int | float | None = field(default=None, name="totalLinesAdded")
    total_lines_removed: int | float | None = field(default=None, name="totalLinesRemoved")
    total_tool_duration: int | float | None = field(default=None, name="totalToolDuration")


class CustomTitle(View, frozen=True):
    """`custom-title`, 2.0.76 to 2.1.325."""

    custom_title: str | None = field(default=None, name="customTitle")


class Backup(View, frozen=True):
    """`backup` in `file-history-delta`."""

    backup_file_name: str | None = field(default=None, name="backupFileName")
    backup_time: str | None = field(default=None, name="backupTime")
    real_parent_dir: str | None = field(default=None, name="realParentDir")
    version: int | float | None = None


class FileHistoryDelta(View, frozen=True):
    """`file-history-delta`, 2.1.220 to 2.1.325."""

    backup: Backup | None = None
    message_id: str | None = field(default=None, name="messageId")
    snapshot_message_id: str | None = field(default=None, name="snapshotMessageId")
    tracking_path: str | None = field(default=None, name="trackingPath")


class TrackedFileBackup(View, frozen=True):
    """`trackedFileBackup` in `snapshot` in `file-history-snapshot`."""

    backup_file_name: str | None = field(default=None, name="backupFileName")
    backup_time: str | None = field(default=None, name="backupTime")
    real_parent_dir: str | None = field(default=None, name="realParentDir")
    version: int | float | None = None


class Snapshot(View, frozen=True):
    """`snapshot` in `file-history-snapshot`."""

    message_id: str | None = field(default=None, name="messageId")
    timestamp: str | None = None
    tracked_file_backups: dict[str, TrackedFileBackup] | None = field(
        default=None, name="trackedFileBackups"
    )


class FileHistorySnapshot(View, frozen=True):
    """`file-history-snapshot`, 2.0.5 to 2.1.325."""

    is_snapshot_update: bool | None = field(default=None, name="isSnapshotUpdate")
    message_id: str | None = field(default=None, name="messageId")
    snapshot: Snapshot | None = None


class ForkContextRef(View, frozen=True):
    """`fork-context-ref`, known from others only."""

    context_length: int | float | None = field(default=None, name="contextLength")
    parent_last_uuid: str | None = field(default=None, name="parentLastUuid")
    parent_session_id: str | None = field(default=None, name="parentSessionId")


class LastPrompt(View, frozen=True):
    """`last-prompt`, 2.1.81 to 2.1.325."""

    explicit: bool | None = None
    last_prompt: str | None = field(default=None, name="lastPrompt")
    leaf_uuid: str | None = field(default=None, name="leafUuid")


class Mode(View, frozen=True):
    """`mode`, 2.1.200 to 2.1.325."""

    mode: str | None = None


class PermissionMode(View, frozen=True):
    """`permission-mode`, 2.1.200 to 2.1.325."""

    permission_mode: str | None = field(default=None, name="permissionMode")


class PrLink(View, frozen=True):
    """`pr-link`, 2.1.29 to 2.1.221."""

    pr_number: int | float | None = field(default=None, name="prNumber")
    pr_repository: str | None = field(default=None, name="prRepository")
    pr_url: str | None = field(default=None, name="prUrl")


class Dequeue(View, frozen=True):
    """`queue-operation/dequeue`, 2.0.76 to 2.1.325."""

    operation: str | None = None


class Enqueue(View, frozen=True):
    """`queue-operation/enqueue`, 2.0.76 to 2.1.325."""

    content: str | None = None
    operation: str | None = None


class PopAll(View, frozen=True):
    """`queue-operation/popAll`, 2.0.76 to 2.1.231."""

    content: str | None = None
    operation: str | None = None


class Remove(View, frozen=True):
    """`queue-operation/remove`, 2.0.76 to 2.1.325."""

    command_uuid: str | None = field(default=None, name="commandUuid")
    content: str | None = None
    delivery_id: str | None = field(default=None, name="deliveryId")
    operation: str | None = None
    reason: str | None = None


class Relocated(View, frozen=True):
    """`relocated`, 2.1.200 to 2.1.325."""

    relocated_cwd: str | None = field(default=None, name="relocatedCwd")


class StenoAside(View, frozen=True):
    """`steno-aside`, known from others only."""

    finding: str | None = None
    record: dict[str, Any] | None = None


class Summary(View, frozen=True):
    """`summary`, 1.0.17 to 2.1.22."""

    leaf_uuid: str | None = field(default=None, name="leafUuid")
    summary: str | None = None


class Tag(View, frozen=True):
    """`tag`, known from others only."""

    tag: str | None = None


class ToolsUsed(View, frozen=True):
    """`tools-used`, 2.1.325."""

    tools: list[str] | None = None


class WorktreeSession(View, frozen=True):
    """`worktreeSession` in `worktree-state`."""

    original_branch: str | None = field(default=None, name="originalBranch")
    original_cwd: str | None = field(default=None, name="originalCwd")
    original_head_commit: str | None = field(default=None, name="originalHeadCommit")
    pre_enter_original_cwd: str | None = field(default=None, name="preEnterOriginalCwd")
    session_id: str | None = field(default=None, name="sessionId")
    worktree_branch: str | None = field(default=None, name="worktreeBranch")
    worktree_name: str | None = field(default=None, name="worktreeName")
    worktree_path: str | None = field(default=None, name="worktreePath")


class WorktreeState(View, frozen=True):
    """`worktree-state`, 2.1.200 to 2.1.325."""

    worktree_session: WorktreeSession | None = field(default=None, name="worktreeSession")
