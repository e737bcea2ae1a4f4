"""One session of a client: prompts in, ordered updates and permission requests out."""

import asyncio
import os
from collections.abc import Callable, Iterable
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Protocol, TypeAlias

import msgspec
from acp import helpers
from acp.exceptions import RequestError
from acp.schema import (
    AllowedOutcome,
    AvailableCommand,
    AvailableCommandInput,
    PermissionOption,
    PermissionOptionKind,
    RequestPermissionResponse,
    SessionMode,
    SessionModeState,
    StopReason,
    ToolCallUpdate,
    UnstructuredCommandInput,
)

from steno.acp import tool_calls
from steno.acp.message_conversion import PromptContent, Update, UpdateBuilder, convert_prompt, replay_updates
from steno.agent.agent_session import AgentSession, build_session
from steno.agent.config.agent_options import AgentCallbacks, AgentOptions
from steno.agent.context.token_usage import PriceResponse
from steno.agent.events import EndReason, Event, ToolEnded, TurnEnded
from steno.agent.loop import ModelClient
from steno.agent.slash_dispatch import CLEAR, parse_slash_prompt
from steno.agent.tool_executor import Approval
from steno.agent.writable_session import WritableSession
from steno.errors import BadRequest, Busy, StenoError
from steno.format.lenient_json import as_list, as_object
from steno.permissions.permission_rules import Decision, PermissionMode
from steno.permissions.project_trust import effective_files, trust_folder
from steno.sanitize.terminal import one_line
from steno.session.session import Session
from steno.session.transcript import load
from steno.store.file_source import FileSource


class ServerConfig(msgspec.Struct, kw_only=True):
    """Configuration of the server, supplied by the caller."""

    make_options: Callable[[str], AgentOptions]
    """Returns the agent options for a session in a directory."""
    open_model: Callable[[], AbstractAsyncContextManager[ModelClient]]
    """Returns the model client; raises `MissingKey` without an API key."""
    price_response: PriceResponse


_Choice: TypeAlias = tuple[str, str, PermissionOptionKind]
"""ID, label and kind of an option."""
_REJECTED_MESSAGE: Final = "The user rejected this tool call."
_MAX_RULE: Final = 60
_PLAN_CHOICES: Final[tuple[_Choice, ...]] = (
    ("acceptEdits", "Yes, and accept edits", "allow_always"),
    ("default", "Yes, and approve each edit", "allow_once"),
    ("no", "No, keep planning", "reject_once"),
)
_ENTER_PLAN_CHOICES: Final[tuple[_Choice, ...]] = (
    ("yes", "Yes, plan first", "allow_once"),
    ("no", "No, start now", "reject_once"),
)
_TRUST_CHOICES: Final[tuple[_Choice, ...]] = (
    ("yes", "Trust this directory", "allow_always"),
    ("no", "Not now", "reject_once"),
)
_TRUST_EXPLANATION: Final = (
    "This directory contains agent instructions, settings or commands that run automatically. They "
    "have no effect unless you trust the directory."
)


class PermissionClient(Protocol):
    """A client that asks the user for permission."""

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption]
    ) -> RequestPermissionResponse:
        """Ask the user to choose an option."""
        ...


class PermissionDialogs:
    """Permission requests, questions and plan approval in one session."""

    def __init__(
        self, client: PermissionClient, session_id: str, cwd: Callable[[], str], on_disconnect: Callable[[], None]
    ) -> None:
        self._client = client
        self._session_id = session_id
        self._cwd = cwd
        self._on_disconnect = on_disconnect

    async def approve_call(self, call: dict[str, Any], decision: Decision) -> Approval:
        """Ask the user to approve a tool call."""
        choices: list[_Choice] = [("once", "Allow once", "allow_once")]
        if decision.offers:
            rule = one_line(decision.offers[0], _MAX_RULE)
            choices.append(("session", f"Allow {rule} in this session", "allow_always"))
            choices.append(("local", f"Always allow {rule} in this project", "allow_always"))
        choices.append(("no", "Reject", "reject_once"))
        tool_call = tool_calls.pending_call_update(call, self._cwd())
        tool_call.content = [*_text_content(f"Needs approval: {decision.reason}"), *(tool_call.content or [])]
        answer = await self._choose(tool_call, choices)
        rules = decision.offers[:1]
        match answer:
            case "once":
                return Approval(granted=True)
            case "session" if rules:
                return Approval(granted=True, rules=rules)
            case "local" if rules:
                return Approval(granted=True, rules=rules, scope="local")
            case _:
                return Approval(granted=False, message=_REJECTED_MESSAGE)

    async def answer_tool(self, kind: str, request: dict[str, Any]) -> dict[str, Any] | None:
        """Ask the user on behalf of a tool."""
        if kind == "plan":
            return await self._ask_plan(request)
        return await self._ask_questions(request) if kind == "question" else None

    async def ask_trust(self, folder: str, files: list[str]) -> bool:
        """Ask whether to trust a directory, listing the files that would take effect."""
        tool_call = ToolCallUpdate(
            tool_call_id="trust",
            title=f"Do you trust {one_line(folder)}?",
            kind="other",
            status="pending",
            content=_text_content(f"{_TRUST_EXPLANATION}\n\n{', '.join(files)}"),
        )
        return await self._choose(tool_call, _TRUST_CHOICES) == "yes"

    async def _ask_plan(self, request: dict[str, Any]) -> dict[str, Any]:
        is_entering = request.get("step") == "enter"
        plan = str(request.get("plan") or "The plan is empty.")
        tool_call = ToolCallUpdate(
            tool_call_id=str(request.get("call")),
            title="Enter plan mode?" if is_entering else "Approve this plan?",
            kind="switch_mode",
            status="pending",
            content=[] if is_entering else _text_content(plan),
        )
        answer = await self._choose(tool_call, _ENTER_PLAN_CHOICES if is_entering else _PLAN_CHOICES)
        if answer in ("", "no"):
            return {"approved": False}
        return {"approved": True} if is_entering else {"approved": True, "mode": answer}

    async def _ask_questions(self, request: dict[str, Any]) -> dict[str, Any]:
        """Ask questions one by one; multiple-choice questions get one answer."""
        answers: dict[str, str] = {}
        for item in as_list(request.get("questions")) or []:
            question = as_object(item) or {}
            options = [as_object(option) or {} for option in as_list(question.get("options")) or []]
            labels = [str(one.get("label")) for one in options]
            choices: list[_Choice] = [(str(index), label, "allow_once") for index, label in enumerate(labels)]
            lines = (f"- **{one.get('label')}**: {one.get('description')}" for one in options)
            tool_call = ToolCallUpdate(
                tool_call_id=str(request.get("call")),
                title=one_line(str(question.get("question"))),
                kind="think",
                status="pending",
                content=_text_content("\n".join(lines)),
            )
            answer = await self._choose(tool_call, [*choices, ("no", "Skip", "reject_once")])
            if not answer.isdecimal() or int(answer) >= len(labels):
                return {"answers": {}}
            answers[str(question.get("question"))] = labels[int(answer)]
        return {"answers": answers}

    async def _choose(self, tool_call: ToolCallUpdate, choices: Iterable[_Choice]) -> str:
        options = [PermissionOption(option_id=option_id, name=label, kind=kind) for option_id, label, kind in choices]
        try:
            reply = await self._client.request_permission(self._session_id, tool_call, options)
        except ConnectionError:
            # The client disconnected, which is not an answer: interrupt the turn.
            self._on_disconnect()
            await asyncio.get_running_loop().create_future()
            return ""
        except RequestError:
            return ""
        outcome = reply.outcome
        return outcome.option_id if isinstance(outcome, AllowedOutcome) else ""


def _text_content(text: str) -> list[tool_calls.Content]:
    return [helpers.tool_content(helpers.text_block(text))] if text else []


class EditorClient(PermissionClient, Protocol):
    """The client methods that a session uses."""

    async def session_update(self, session_id: str, update: Update) -> None:
        """Send an update to the client."""
        ...


class UpdateQueue:
    """Sends the updates of one session in order."""

    def __init__(self, editor: EditorClient, session_id: str) -> None:
        self._editor = editor
        self._session_id = session_id
        self._updates: asyncio.Queue[Update] = asyncio.Queue()
        self._sender = asyncio.ensure_future(self._send_updates())

    def put(self, *updates: Update) -> None:
        """Queue updates for sending."""
        for update in updates:
            self._updates.put_nowait(update)

    async def flush(self) -> None:
        """Wait until all queued updates are sent."""
        await self._updates.join()

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption]
    ) -> RequestPermissionResponse:
        """Ask the user after all queued updates are sent."""
        await self.flush()
        return await self._editor.request_permission(session_id, tool_call, options)

    async def close(self) -> None:
        """Stop sending."""
        self._sender.cancel()
        await asyncio.gather(self._sender, return_exceptions=True)

    async def _send_updates(self) -> None:
        is_disconnected = False
        while True:
            update = await self._updates.get()
            try:
                if not is_disconnected:
                    await self._editor.session_update(self._session_id, update)
            except ConnectionError:
                # Drop updates after a disconnect, so that `flush` returns.
                is_disconnected = True
            finally:
                self._updates.task_done()


AUTH_REQUIRED: Final = -32000
"""JSON-RPC error code for a missing or invalid API key."""
INTERNAL_ERROR: Final = -32603
_AUTH_STATUSES: Final = (401, 403)
_MODE_DESCRIPTIONS: Final[dict[PermissionMode, tuple[str, str]]] = {
    "default": ("Default", "Asks for approval unless a permission rule allows the tool call"),
    "acceptEdits": ("Accept edits", "Edits files in the working directory without approval"),
    "plan": ("Plan", "Reads and plans; changes nothing until you approve the plan"),
    "dontAsk": ("Don't ask", "Denies tool calls that no permission rule allows"),
    "bypassPermissions": ("Bypass", "Skips approval; only deny rules apply"),
}
_BUILT_IN_COMMANDS: Final = (
    ("compact", "Compact the conversation into a summary", "instructions for the summary"),
    ("context", "Show context usage", ""),
    ("cost", "Show the cost of the session", ""),
)
_STOP_REASONS: Final[dict[EndReason, StopReason]] = {
    "done": "end_turn",
    "empty": "end_turn",
    "refused": "end_turn",
    "interrupted": "cancelled",
    "max_turns": "max_turn_requests",
    "max_budget": "max_turn_requests",
    "max_time": "max_turn_requests",
}
_LIMIT_MESSAGES: Final[dict[EndReason, str]] = {
    "max_budget": "Reached --max-budget-usd.",
    "max_time": "Reached --max-time.",
}
_SERVER_TIMEOUT: Final = 5.0
"""Seconds to wait for the MCP servers of the client."""
_CLEAR_MESSAGE: Final = "This conversation is unchanged. Start a new thread for a new conversation."


class EditorSession:
    """An open session and its agent."""

    def __init__(
        self,
        editor: EditorClient,
        server_config: ServerConfig,
        model: ModelClient,
        options: AgentOptions,
        writable_session: WritableSession,
    ) -> None:
        self._server_config = server_config
        self._model = model
        self._options = options
        self._writable_session = writable_session
        self.id = writable_session.id
        self._updates = UpdateQueue(editor, self.id)
        self._update_builder = UpdateBuilder(options.cwd)
        self._dialogs = PermissionDialogs(self._updates, self.id, self._cwd, self.cancel)
        self._agent_session = self._build_agent_session(writable_session)
        self._mode = self._agent_session.permission_mode()
        self._early_updates: list[Update] = []
        """Updates held back until the client has received the session ID."""
        self._turn_task: asyncio.Task[StopReason] | None = None
        self._cancelled = False
        self._is_first_prompt = True

    def _build_agent_session(self, writable_session: WritableSession) -> AgentSession:
        callbacks = AgentCallbacks(
            emit=self._handle_event, request_approval=self._dialogs.approve_call, ask_user=self._dialogs.answer_tool
        )
        return build_session(
            self._options, writable_session, self._model, callbacks, self._server_config.price_response
        )

    def _cwd(self) -> str:
        return self._agent_session.agent.executor.context.cwd

    # Lifecycle

    async def open(self) -> None:
        """Open the agent session."""
        await self._agent_session.open()

    def send_commands(self) -> None:
        """Send the available slash commands."""
        commands = [
            *self._agent_session.slash_dispatcher.callable_prompts,
            *(command[:2] for command in _BUILT_IN_COMMANDS),
        ]
        hints = {name: hint for name, _, hint in _BUILT_IN_COMMANDS}
        self._updates.put(
            helpers.update_available_commands(
                AvailableCommand(
                    name=name, description=description or name, input=_command_input(hints.get(name, "arguments"))
                )
                for name, description in commands
            )
        )

    async def replay(self) -> None:
        """Send the history of the session."""
        path = self._writable_session.conversation.recorder.path
        # Records that this process appended only complete interrupted tool calls.
        with Session(load(FileSource(path))) as session:
            for update in await asyncio.to_thread(lambda: list(replay_updates(session, self._options.cwd))):
                self._updates.put(update)
        await self._updates.flush()

    async def close(self) -> None:
        """Cancel the running turn and close the session."""
        self.cancel()
        if self._turn_task is not None:
            await asyncio.gather(self._turn_task, return_exceptions=True)
        await self._agent_session.close("other")
        await self._updates.close()

    # Modes

    def modes(self) -> SessionModeState:
        """Return the available permission modes and the current one."""
        return SessionModeState(
            current_mode_id=self._agent_session.permission_mode(),
            available_modes=[
                SessionMode(id=mode, name=_MODE_DESCRIPTIONS[mode][0], description=_MODE_DESCRIPTIONS[mode][1])
                for mode in self._allowed_modes()
            ],
        )

    def _allowed_modes(self) -> list[PermissionMode]:
        forbidden = self._agent_session.settings.permissions.bypass_disabled
        return [mode for mode in _MODE_DESCRIPTIONS if mode != "bypassPermissions" or not forbidden]

    def set_mode(self, mode: str) -> None:
        """Set the permission mode.

        Raises:
            BadRequest: unknown mode, or not allowed by the settings.
        """
        allowed = self._allowed_modes()
        if mode not in allowed:
            raise BadRequest(f"unknown mode {mode!r}", hint=f"Available modes: {', '.join(allowed)}.")
        self._agent_session.agent.executor.context.plan.permission_mode = mode
        self._mode = self._agent_session.permission_mode()

    # Turns

    async def run_prompt(self, content: list[PromptContent]) -> StopReason:
        """Run a prompt to its end; return the stop reason.

        Raises:
            Busy: a turn is running.
            BadRequest: invalid prompt.
            RequestError: the model request failed.
        """
        if self._turn_task is not None:
            raise Busy("a turn is running in this session", hint="Cancel it or wait until it ends.")
        self._cancelled = False
        self._turn_task = asyncio.ensure_future(self._process_prompt(content))
        try:
            return await self._turn_task
        finally:
            self._turn_task = None

    def cancel(self) -> None:
        """Interrupt the running turn."""
        self._cancelled = True
        self._agent_session.agent.interrupt()

    async def _process_prompt(self, blocks: list[PromptContent]) -> StopReason:
        self._updates.put(*self._early_updates)
        self._early_updates.clear()
        content = await asyncio.to_thread(convert_prompt, blocks, self._cwd())
        invocation = parse_slash_prompt(content)
        if invocation is not None and invocation[0] == CLEAR:
            self._updates.put(helpers.update_agent_message_text(_CLEAR_MESSAGE))
            await self._updates.flush()
            return "end_turn"
        if self._is_first_prompt:
            self._is_first_prompt = False
            await self._ask_trust()
            # Explicitly configured servers should be ready for the first request.
            await self._agent_session.mcp_connections.wait_until_ready(
                _SERVER_TIMEOUT if self._options.mcp_config else 0
            )
        if self._cancelled:
            return "cancelled"
        self._update_builder.begin_turn()
        ended = await self._agent_session.submit(content)
        if ended.reason in _LIMIT_MESSAGES:
            self._updates.put(helpers.update_agent_message_text(_LIMIT_MESSAGES[ended.reason]))
        await self._updates.flush()
        return self._stop_reason(ended)

    def _stop_reason(self, ended: TurnEnded) -> StopReason:
        failed, response = self._update_builder.failure, self._update_builder.last_response
        if ended.reason == "error":
            status = failed.error.status if failed is not None else 0
            code = AUTH_REQUIRED if status in _AUTH_STATUSES else INTERNAL_ERROR
            raise RequestError(code, ended.text, {"status": status})
        if ended.reason == "not_saved":
            raise RequestError(INTERNAL_ERROR, ended.problem)
        if self._update_builder.prompt_blocked or (response is not None and response.stop_reason == "refusal"):
            return "refusal"
        if ended.reason == "done" and response is not None:
            stop_reason = response.stop_reason
            return "max_tokens" if stop_reason == "max_tokens" else "end_turn"
        return _STOP_REASONS[ended.reason]

    async def _ask_trust(self) -> None:
        """Ask for trust if the directory has project files; if granted, reopen the session with them."""
        options = self._options
        files = effective_files(options.cwd)
        if options.trusted or not files or not await self._dialogs.ask_trust(options.cwd, files):
            return
        try:
            trust_folder(options.cwd)
        except StenoError as error:
            self._updates.put(helpers.update_agent_thought_text(str(error)))
            return
        options.trusted = True
        mode = self._mode
        await self._agent_session.close("other")
        self._agent_session = self._build_agent_session(self._reopen())
        self._agent_session.agent.executor.context.plan.permission_mode = mode
        await self._agent_session.open()
        self._send_early_updates()
        self.send_commands()

    def _reopen(self) -> WritableSession:
        from steno.agent.writable_session import new_session, resume_session

        path = self._writable_session.conversation.recorder.path
        if os.path.exists(path):
            self._writable_session = resume_session(path, self._options.cwd)
        else:
            self._writable_session = new_session(self._options.config, self._options.cwd, session_id=self.id)
        return self._writable_session

    def _send_early_updates(self) -> None:
        self._updates.put(*self._early_updates)
        self._early_updates.clear()

    # Events

    def _handle_event(self, event: Event) -> None:
        updates = list(self._update_builder.handle(event))
        if self._turn_task is None:
            self._early_updates += updates
            return
        self._updates.put(*updates)
        if isinstance(event, ToolEnded | TurnEnded) and self._agent_session.permission_mode() != self._mode:
            self._mode = self._agent_session.permission_mode()
            self._updates.put(helpers.update_current_mode(self._mode))


def _command_input(hint: str) -> AvailableCommandInput | None:
    return AvailableCommandInput(root=UnstructuredCommandInput(hint=hint)) if hint else None
