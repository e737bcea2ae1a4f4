"""Searches for established words find a module, class or function with that name."""

import importlib
import inspect
import pkgutil
import re
from types import ModuleType

import pytest

HOMES = [
    ("agent loop", "steno.agent.loop"),
    ("stream accumulator", "steno.agent.stream_accumulator:StreamAccumulator"),
    ("message buffer", "steno.agent.conversation:MessageBuffer"),
    ("conversation", "steno.agent.conversation:Conversation"),
    ("session recorder", "steno.agent.recorder:Recorder"),
    ("tool executor", "steno.agent.tool_executor:ToolExecutor"),
    ("side query", "steno.agent.side_query"),
    ("sub-agents", "steno.agent.subagents"),
    ("headless agent", "steno.agent.headless"),
    ("system prompt", "steno.agent.context.system_prompt:system_prompt"),
    ("memory", "steno.agent.context.system_prompt:Memory"),
    ("token estimate", "steno.agent.context.token_usage:estimate_messages"),
    ("usage meter", "steno.agent.context.token_usage:UsageMeter"),
    ("compaction", "steno.agent.context.compaction:ContextCompactor"),
    ("hook event", "steno.agent.hooks.hook_events:HookEvent"),
    ("hook dispatcher", "steno.agent.hooks.dispatcher:HookDispatcher"),
    ("hook outcome", "steno.agent.hooks.dispatcher:HookOutcome"),
    ("file checkpointer", "steno.agent.checkpoints.checkpointer:FileCheckpointer"),
    ("slash commands", "steno.agent.config.skills:SlashCommand"),
    ("slash dispatch", "steno.agent.slash_dispatch:SlashDispatcher"),
    ("skills", "steno.agent.config.skills:Skill"),
    ("client settings", "steno.format.client_settings"),
    ("settings", "steno.agent.config.settings:Settings"),
    ("mcp connections", "steno.agent.mcp.connections:McpConnections"),
    ("command sandbox", "steno.agent.command_sandbox:CommandSandbox"),
    ("tool registry", "steno.tools.registry:ToolRegistry"),
    ("tool context", "steno.tools.context:ToolContext"),
    ("tool catalogue", "steno.format.tool_catalogue"),
    ("retry policy", "steno.llm.retry_policy:RetryPolicy"),
    ("api client", "steno.llm.client:ApiClient"),
    ("api endpoint", "steno.llm.endpoint:Endpoint"),
    ("stream decoder", "steno.llm.stream_decoder"),
    ("sse parser", "steno.llm.stream_decoder:SseParser"),
    ("test server", "steno.llm.testserver"),
    ("permission rules", "steno.permissions.permission_rules:PermissionRule"),
    ("permission checker", "steno.permissions.permission_checker:PermissionChecker"),
    ("permission store", "steno.agent.permission_store"),
    ("project trust", "steno.permissions.project_trust"),
    ("sandbox", "steno.permissions.sandbox"),
    ("sandbox policy", "steno.permissions.sandbox.policy:SandboxPolicy"),
    ("shell parser", "steno.permissions.shell.parser"),
    ("query parser", "steno.index.search.query_parser"),
    ("search index", "steno.index.search"),
    ("text index", "steno.index.text_index:TextIndex"),
    ("highlight", "steno.cli.output.search_results:highlighted_lines"),
    ("search excerpt", "steno.index.search.hit_text:Excerpt"),
    ("row builder", "steno.index.sync.row_builder:RowBuilder"),
    ("batch writer", "steno.index.sync.batch_writer:BatchWriter"),
    ("price table", "steno.report.pricing:PriceTable"),
    ("pricing", "steno.report.pricing"),
    ("provider prices", "steno.report.price_sources:ProviderPrices"),
    ("usage report", "steno.report.usage.usage_report:UsageReport"),
    ("brief", "steno.report.brief.brief_document:Brief"),
    ("blame", "steno.report.blame:FileBlame"),
    ("file history", "steno.report.file_history.history"),
    ("session comparison", "steno.report.compare.comparison:Comparison"),
    ("export formats", "steno.report.export.export_formats"),
    ("retention", "steno.report.retention:Retention"),
    ("session list", "steno.report.session_list:SessionFilter"),
    ("humanize", "steno.report.humanize"),
    ("atomic write", "steno.store.atomic"),
    ("temporary files", "steno.store.atomic:TempFile"),
    ("append", "steno.store.append:Appender"),
    ("file watcher", "steno.store.watch.watcher:FileWatcher"),
    ("incremental reader", "steno.store.watch.incremental:IncrementalReader"),
    ("session lock", "steno.store.session_lock:SessionLock"),
    ("session discovery", "steno.store.discovery:Discovery"),
    ("session lookup", "steno.store.session_lookup"),
    ("session summary", "steno.store.summary:SessionSummary"),
    ("archive", "steno.store.archive.archive:Archive"),
    ("record envelope", "steno.format.message:Envelope"),
    ("salvage damaged lines", "steno.format.salvage"),
    ("catalogue", "steno.format.catalogue:Catalogue"),
    ("choose leaf", "steno.session.resume.record_chain:choose_leaf"),
    ("record chain", "steno.session.resume.record_chain"),
    ("replay", "steno.session.resume.replay"),
    ("turn builder", "steno.session.turns.turn_builder:TurnBuilder"),
    ("session title", "steno.session.turns.prompts:Title"),
    ("drift", "steno.check.drift"),
    ("doctor", "steno.check.doctor"),
    ("repair job", "steno.check.repair.repair_job:RepairJob"),
    ("findings", "steno.check.findings:Finding"),
    ("secret masker", "steno.sanitize.secret_masker:Masker"),
    ("session masking", "steno.report.export.session_masking:MaskedSession"),
    ("auth", "steno.web.auth:AuthMiddleware"),
    ("session cache", "steno.web.state.caches:SessionCache"),
    ("event stream", "steno.web.routes.session:session_stream"),
    ("pubsub", "steno.web.state.pubsub:PubSub"),
    ("app state", "steno.web.state.app_state:AppState"),
    ("health monitor", "steno.web.state.health_monitor:HealthMonitor"),
    ("html markdown", "steno.web.render.markdown"),
    ("diff", "steno.format.line_diff"),
    ("patch", "steno.tools.patch"),
    ("markdown renderer", "steno.report.markdown_renderer"),
    ("event renderer", "steno.console.event_renderer:EventRenderer"),
    ("status line", "steno.console.chat_status:status_line"),
    ("key bindings", "steno.console.key_bindings"),
    ("approval dialogs", "steno.console.approval_dialogs:PermissionDialogs"),
    ("progress bar", "steno.cli.output.progress:ProgressBar"),
]
_PLURAL = re.compile(r"(?<=\w{2})(?<!s)s\b")


def first_line(thing: object) -> str:
    return (inspect.getdoc(thing) or "").partition("\n")[0]


def is_found(words: str, home: str) -> bool:
    """Return whether a search in names and first docstring lines finds a module or object.

    At least one word must be in the name.
    """
    wanted = _PLURAL.sub("", words.replace("-", "")).split()
    module = home.partition(":")[0]
    name = re.sub(r"[\W_]", "", home.removeprefix("steno.")).lower()
    described = (first_line(importlib.import_module(module)) + first_line(resolve(home))).lower()
    return any(word in name for word in wanted) and all(word in name or word in described for word in wanted)


def resolve(home: str) -> object:
    return pkgutil.resolve_name(home)


@pytest.mark.parametrize(("words", "home"), HOMES, ids=[words for words, _ in HOMES])
def test_a_search_for_established_words_finds_the_module(words: str, home: str) -> None:
    thing = resolve(home)
    assert isinstance(thing, ModuleType) or inspect.isclass(thing) or inspect.isfunction(thing)
    assert is_found(words, home)


def test_an_unrelated_name_is_not_found() -> None:
    assert is_found("retry policy", "steno.llm.retry_policy")
    assert not is_found("retry policy", "steno.llm.client")
    assert not is_found("price table", "steno.report.humanize")


def test_there_are_enough_distinct_words() -> None:
    assert len({words for words, _ in HOMES}) == len(HOMES) >= 40
