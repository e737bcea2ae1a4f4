"""Connects agent, screen and prompt: one action at a time, the prompt always available."""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec

from steno.console.chat_status import ChatStatus
from steno.console.prompt import Prompt, PromptCompleter, PromptHistory
from steno.errors import StenoError
from steno.sanitize.terminal import StyledLine

if TYPE_CHECKING:
    from collections.abc import Awaitable
    from contextlib import AbstractAsyncContextManager

    from prompt_toolkit.buffer import Buffer

    from steno.agent.agent_session import AgentSession
    from steno.agent.config.agent_options import AgentOptions
    from steno.agent.context.token_usage import PriceResponse
    from steno.agent.events import Event, TurnEnded
    from steno.agent.loop import ModelClient
    from steno.agent.tool_executor import CallPermissionChecker
    from steno.agent.writable_session import WritableSession
    from steno.console.approval_dialogs import PermissionDialogs, ToolDialogs
    from steno.console.commands import CommandTable
    from steno.console.event_renderer import EventRenderer
    from steno.console.screen import TerminalScreen


class AgentSetup(msgspec.Struct, kw_only=True):
    """The options, session and model client that an agent needs to start."""

    options: "AgentOptions"
    open_session: "Callable[[], WritableSession]"
    """Opens the session; called after the user has answered the trust question."""
    open_model: "Callable[[], AbstractAsyncContextManager[ModelClient]]"
    price_response: "PriceResponse"


class ChatConfig(msgspec.Struct, kw_only=True):
    """Settings and callbacks from the caller."""

    prepare: Callable[[], AgentSetup]
    """Does the slow preparation; called when the prompt is on the screen."""
    render_last_turns: Callable[[str, int, int], Iterator[StyledLine]]
    """Renders the last turns of a session: its path, number of turns, columns."""
    use_vi: bool = False
    """Whether the prompt uses vi keys."""
    first_prompt: str = ""
    """The prompt to submit first."""
    tour_steps: tuple[tuple[str, str], ...] = ()
    """Steps of a guided tour, used for demos: a prompt, and an explanation of what it shows."""
    exit_message: str = "Resume this session: steno chat --resume {session}"
    """Printed on exit; `{session}` is replaced by the session ID."""


_SIGNAL_NAMES: Final = ("SIGHUP", "SIGTERM")


@contextmanager
def handle_exit_signals(on_signal: Callable[[], None]) -> Generator[None]:
    """Call `on_signal` on SIGHUP and SIGTERM, on systems that have them."""
    loop = asyncio.get_running_loop()
    numbers = [getattr(signal, name) for name in _SIGNAL_NAMES if hasattr(signal, name)]
    for number in numbers:
        with suppress(NotImplementedError, ValueError, RuntimeError):
            loop.add_signal_handler(number, on_signal)
    try:
        yield
    finally:
        for number in numbers:
            with suppress(NotImplementedError, ValueError, RuntimeError):
                loop.remove_signal_handler(number)


_REFRESH_SECONDS: Final = 0.25
_NOTIFY_AFTER_SECONDS: Final = 10.0
_SHOWN_TURNS: Final = 3
_CYCLED_MODES: Final = ("default", "acceptEdits", "plan")
_EXIT_HINT: Final = "Press again to exit"


class Chat:
    """A chat in one console."""

    def __init__(self, screen: "TerminalScreen", config: "ChatConfig") -> None:
        self.screen = screen
        self.config = config
        self.prompt = Prompt(screen, self, history=PromptHistory(), vi=config.use_vi)
        self.prompt.buffer.on_text_changed += self._on_text_changed
        self.status = ChatStatus(self)
        self.queued_prompts: list[str] = []
        """Prompts that are not submitted yet."""
        self.turns = 0
        self.last_session_id = ""
        """ID of the last session that has a file."""
        self.renderer: EventRenderer
        self.agent_setup: AgentSetup
        self.session: AgentSession | None = None
        self.command_table: CommandTable
        self.permission_dialogs: PermissionDialogs
        self.tool_dialogs: ToolDialogs
        self._model: ModelClient
        self._wake_up = asyncio.Event()
        self._is_leaving = False
        self._carried_permissions: tuple[str, tuple[str, ...]] = ("", ())
        self._current_task: asyncio.Task[Any] | None = None
        self._background_tasks: set[asyncio.Task[Any]] = set()
        # State of slash commands between calls, and child processes that end with the console.
        self.command_state: dict[str, Any] = {}
        self.child_processes: list[asyncio.subprocess.Process] = []

    # Life cycle

    async def run(self) -> int:
        """Run the console until the user exits; return the exit code."""
        app = self.prompt.app
        draw_task = asyncio.ensure_future(app.run_async(handle_sigint=False))
        queue_task = asyncio.ensure_future(self._run_queue())
        with handle_exit_signals(self.exit):
            try:
                await asyncio.wait({draw_task, queue_task}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                self._is_leaving = True
                if self.session is not None:
                    self.session.agent.interrupt()
                queue_task.cancel()
                outcome = (await asyncio.gather(queue_task, return_exceptions=True))[0]
                await self._stop_background()
                self.screen.output.clear_title()
                if not draw_task.done() and app.is_running:
                    app.exit()
                await asyncio.gather(draw_task, return_exceptions=True)
        if isinstance(outcome, Exception):
            raise outcome
        return 0

    async def _run_queue(self) -> None:
        """Start the agent, then process queued prompts until the user exits."""
        self.agent_setup = await asyncio.to_thread(self._prepare)
        from steno.console import approval_dialogs
        from steno.report.markdown_renderer import preload_renderer

        await approval_dialogs.ask_trust_once(self.prompt, self.renderer, self.agent_setup.options)
        async with self.agent_setup.open_model() as model:
            self._model = model
            try:
                await self.enter_session(self.agent_setup.open_session())
                self.status.print_greeting()
                self.run_in_background(asyncio.to_thread(preload_renderer))
                if self.config.first_prompt:
                    self.queued_prompts.append(self.config.first_prompt)
                while not self._is_leaving:
                    await self._run_next()
            finally:
                await self._close_session("prompt_input_exit")

    def _prepare(self) -> "AgentSetup":
        """Import the modules that the first prompt does not need, while the user can already type."""
        from steno.console.approval_dialogs import PermissionDialogs, ToolDialogs
        from steno.console.commands import CommandTable
        from steno.console.event_renderer import EventRenderer

        agent_setup = self.config.prepare()
        options = agent_setup.options
        self.renderer = EventRenderer(self.screen, os.path.realpath(options.cwd))
        self.command_table = CommandTable()
        env = dict(options.env)
        self.permission_dialogs = PermissionDialogs(
            self.prompt, self.renderer, self._get_permissions, self._get_cwd, env
        )
        self.tool_dialogs = ToolDialogs(self.prompt, self.renderer)
        for dialogs in (self.permission_dialogs, self.tool_dialogs):
            dialogs.on_waiting = self.status.notify
            dialogs.on_cancel = self.interrupt
        completions = PromptCompleter(self._command_descriptions, self._get_cwd)
        self.prompt.completer = completions
        self.prompt.complete_now = completions.complete_now
        return agent_setup

    async def leave_session(self) -> None:
        """Close the session before another one is opened."""
        await self._close_session("other")

    async def switch_session(
        self, open_session: "Callable[[], WritableSession]", *, show_history: bool = True
    ) -> "WritableSession":
        """Close the session and open another; open a new session if that fails."""
        from steno.agent.writable_session import new_session

        options = self.agent_setup.options
        await self.leave_session()
        try:
            writable_session = await asyncio.to_thread(open_session)
        except (StenoError, OSError):
            await self.enter_session(new_session(options.config, options.cwd), show_history=False)
            raise
        await self.enter_session(writable_session, "resume", show_history=show_history)
        return writable_session

    async def enter_session(
        self, writable_session: "WritableSession", source: str = "", *, show_history: bool = True
    ) -> None:
        """Make a session the current one; close the previous one."""
        from steno.agent.agent_session import build_session
        from steno.agent.config.agent_options import AgentCallbacks

        await self._close_session("clear" if source == "clear" else "other")
        path = writable_session.conversation.recorder.path
        is_resumed = _exists(path)
        callbacks = AgentCallbacks(
            emit=self._handle_event, request_approval=self.permission_dialogs, ask_user=self.tool_dialogs
        )
        try:
            session = build_session(
                self.agent_setup.options, writable_session, self._model, callbacks, self.agent_setup.price_response
            )
        except BaseException:
            writable_session.conversation.recorder.close()
            raise
        session.start_source = source or session.start_source
        context = session.agent.executor.context
        forward_notification = context.notify
        context.notify = lambda notification: self._on_background_notification(notification, forward_notification)
        mode, rules = self._carried_permissions
        if mode:
            context.plan.permission_mode = mode
        if not show_history:
            # A fork or a rewind continues the same work, so granted rules stay in effect.
            session.granted_rules.rules = rules
        self.session = session
        self.turns = 0
        self.renderer.reset()
        self.status.set_status_command(session)
        if is_resumed and show_history:
            width = self.screen.width
            history_lines = await asyncio.to_thread(
                lambda: list(self.config.render_last_turns(path, _SHOWN_TURNS, width))
            )
            self.renderer.print_block(history_lines, "history")
        await session.open()
        self.refresh_status()

    async def _close_session(self, reason: str) -> None:
        session, self.session = self.session, None
        await self.status.close()
        if session is not None:
            recorder = session.agent.conversation.recorder
            self.last_session_id = recorder.session_id if _exists(recorder.path) else self.last_session_id
            self._carried_permissions = (session.permission_mode(), session.granted_rules.rules)
            await session.close(reason)

    async def _stop_background(self) -> None:
        for task in self._background_tasks:
            task.cancel()
        await asyncio.gather(*self._background_tasks, return_exceptions=True)
        for process in self.child_processes:
            if process.returncode is None:
                process.terminate()
                await process.wait()

    def exit(self) -> None:
        """Exit the console."""
        self._is_leaving = True
        if self.prompt.dialog is not None:
            self.prompt.dialog.reply(None)
        self.interrupt()
        self._wake_up.set()

    def session_path(self) -> str:
        """Return the path of the session file, or an empty string before the first prompt."""
        path = self.session.agent.conversation.recorder.path if self.session is not None else ""
        return path if path and _exists(path) else ""

    # Prompts

    def is_busy(self) -> bool:
        """Whether a turn or command is running."""
        return self._current_task is not None

    def submit(self, text: str) -> None:
        """Accept typed text: run some commands at once, queue everything else."""
        self.prompt.hint = ""
        invocation = self.command_table.parse(text) if self.session is not None else None
        if invocation is not None and invocation[0].runs_anytime and self.is_busy():
            self.renderer.print_user_text(text)
            self.run_in_background(invocation[0].run(self, invocation[1]))
            return
        self.queued_prompts.append(text)
        self._wake_up.set()
        self.screen.refresh()

    def _on_text_changed(self, _buffer: "Buffer") -> None:
        if self.prompt.hint == _EXIT_HINT:
            self.prompt.hint = ""

    def run_in_background(self, awaitable: "Awaitable[Any]") -> None:
        """Run an awaitable in the background and print its errors."""
        task = asyncio.ensure_future(self._report_errors(awaitable))
        self._background_tasks.add(task)
        task.add_done_callback(self._background_tasks.discard)

    def unqueue(self) -> str:
        """Remove the last queued prompt and return it."""
        return self.queued_prompts.pop() if self.queued_prompts else ""

    def interrupt(self) -> None:
        """Interrupt the running action; move queued prompts back into the prompt."""
        if self.queued_prompts and not self._is_leaving:
            queued, self.queued_prompts = self.queued_prompts, []
            self.prompt.set_text("\n".join([*queued, *filter(None, [self.prompt.buffer.text])]))
        agent = self.session.agent if self.session is not None else None
        if agent is not None and agent.is_running:
            agent.interrupt()
        elif self._current_task is not None:
            self._current_task.cancel()

    def perform(self, action: str) -> None:
        """Perform the action bound to a key."""
        if action == "leave":
            if self.prompt.hint == _EXIT_HINT:
                self.exit()
            self.prompt.hint = _EXIT_HINT
            self.screen.refresh()
        elif self.session is None:
            return
        elif action == "mode":
            mode_index = _CYCLED_MODES.index(mode) if (mode := self.session.permission_mode()) in _CYCLED_MODES else -1
            self.set_mode(_CYCLED_MODES[(mode_index + 1) % len(_CYCLED_MODES)])
        elif action == "rewind":
            self.submit("/rewind")
        else:
            command = self.command_table.by_name(action)
            self.run_in_background(command.run(self, ""))

    def set_mode(self, mode: str) -> None:
        """Set the permission mode."""
        if self.session is not None:
            self.session.agent.executor.context.plan.permission_mode = mode
            self.refresh_status()

    async def _run_next(self) -> None:
        """Process the next queued prompt, or wait for one."""
        if not self.queued_prompts:
            self._wake_up.clear()
            await self._wake_up.wait()
            return
        text = self.queued_prompts.pop(0)
        self._current_task = asyncio.ensure_future(self._report_errors(self._process_input(text)))
        refresh_task = asyncio.ensure_future(self._refresh_periodically())
        try:
            await self._current_task
        except asyncio.CancelledError:
            current_task = asyncio.current_task()
            if self._is_leaving or (current_task is not None and current_task.cancelling()):
                raise
        finally:
            self._current_task = None
            self.prompt.hint = ""
            refresh_task.cancel()
            self.refresh_status()
        self.status.show_tour_step()

    async def _report_errors(self, awaitable: "Awaitable[Any]") -> None:
        """Wait for an awaitable; print its errors instead of raising them."""
        try:
            await awaitable
        except StenoError as error:
            self.renderer.print_note(str(error), "red")
            if error.hint:
                self.renderer.print_note(error.hint, "dim")
        except OSError as error:
            self.renderer.print_note(error.strerror or str(error), "red")

    async def _process_input(self, text: str) -> None:
        from steno.console import local_input
        from steno.console.commands import unknown_command_message

        invocation = self.command_table.parse(text)
        if invocation is not None:
            self.renderer.print_user_text(text)
            await invocation[0].run(self, invocation[1])
        elif text.startswith("!") and text[1:].strip():
            self.renderer.print_user_text(text)
            await local_input.run_shell_command(self, text[1:].strip())
        elif text.startswith("#") and "\n" not in text and text.strip("# "):
            self.renderer.print_user_text(text)
            await local_input.add_memory(self, text.lstrip("# "))
        elif message := unknown_command_message(text, self._command_descriptions()):
            self.renderer.print_user_text(text)
            self.renderer.print_note(message)
            if not self.prompt.buffer.text:
                self.prompt.set_text(text)
        else:
            await self.run_prompt(text)

    async def run_prompt(self, text: str) -> "TurnEnded | None":
        """Run a prompt until its turn ends."""
        from steno.console.local_input import attach_images

        if self.session is None:
            return None
        self.turns += 1
        self.renderer.print_user_text(text)
        content, image_names = await asyncio.to_thread(attach_images, text, self._get_cwd())
        for name in image_names:
            self.renderer.print_note(f"Attached {name}", "dim")
        self.renderer.begin_turn()
        self.status.begin_turn(text)
        started_at = time.monotonic()
        turn_ended = await self.session.submit(content)
        if time.monotonic() - started_at > _NOTIFY_AFTER_SECONDS:
            self.status.notify("done")
        return turn_ended

    # Events

    def _handle_event(self, event: "Event") -> None:
        from steno.agent.events import ResponseReceived, ToolEnded

        if isinstance(event, ToolEnded):
            self._forward_queued_prompts()
        self.renderer.handle(event)
        if isinstance(event, ResponseReceived | ToolEnded):
            self.refresh_status()

    def _forward_queued_prompts(self) -> None:
        """Send queued prompts to the model in the running turn; commands stay queued."""
        while self.session is not None and self.queued_prompts and self.queued_prompts[0][:1] not in ("/", "!", "#"):
            text = self.queued_prompts.pop(0)
            self.session.agent.inbox.append((text, False))
            self.renderer.print_user_text(text)

    def _on_background_notification(self, notification: str, forward_notification: Any) -> None:
        forward_notification(notification)
        self.status.note_background_end(notification)

    async def _refresh_periodically(self) -> None:
        """Redraw spinners and timers; a screen reader gets no animation."""
        while not self.screen.is_screen_reader:
            await asyncio.sleep(_REFRESH_SECONDS)
            self.screen.refresh()

    def refresh_status(self) -> None:
        """Redraw the status line."""
        self.status.refresh()

    def _get_permissions(self) -> "CallPermissionChecker | None":
        return self.session.agent.executor.permission_checker if self.session is not None else None

    def _get_cwd(self) -> str:
        session = self.session
        return session.agent.executor.context.cwd if session is not None else os.getcwd()

    def _command_descriptions(self) -> list[tuple[str, str]]:
        console_commands = self.command_table.descriptions()
        if self.session is None:
            return console_commands
        console_names = {name for name, _ in console_commands}
        return [
            *console_commands,
            *(command for command in self.session.slash_dispatcher.callable_prompts if command[0] not in console_names),
        ]


def _exists(path: str) -> bool:
    return os.path.exists(path)
