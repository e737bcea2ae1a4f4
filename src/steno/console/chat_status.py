"""The status of a chat: header, queue, status line, window title, notifications.

`statusLine` in the settings can name a command that writes the status line, as in Claude Code: it gets the state as
JSON on standard input, and the first line of its output is shown.
"""

import asyncio
import os
import re
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import msgspec

from steno.format.encode import encode
from steno.format.paths import SHORT_ID_LENGTH
from steno.report import humanize
from steno.report.humanize import MICRO_DOLLARS_PER_DOLLAR
from steno.sanitize.terminal import StyledLine, clean, display_width, one_line, truncate, wrap

if TYPE_CHECKING:
    from steno.agent.agent_session import AgentSession
    from steno.console.chat import Chat


_UNICODE_FRAMES: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_ASCII_FRAMES: Final = "|/-\\"
_FRAMES_PER_SECOND: Final = 4
_MINUTE: Final = 60


def spinner_frame(moment: float, *, unicode: bool) -> str:
    """Return the spinner frame for a moment in seconds."""
    frames = _UNICODE_FRAMES if unicode else _ASCII_FRAMES
    return frames[int(moment * _FRAMES_PER_SECOND) % len(frames)]


def elapsed_text(seconds: float) -> str:
    """Return an elapsed time such as `0:42`."""
    total_seconds = int(seconds)
    return f"{total_seconds // _MINUTE}:{total_seconds % _MINUTE:02}"


MODE_LABELS: Final = {
    "default": "default",
    "acceptEdits": "accept edits",
    "plan": "plan",
    "bypassPermissions": "bypass permissions",
    "dontAsk": "do not ask",
}
"""Names of the permission modes in the status line."""
MODE_DESCRIPTIONS: Final = {
    "default": "ask before edits and commands",
    "acceptEdits": "accept file edits without asking",
    "plan": "read only, then propose a plan",
    "bypassPermissions": "approve everything",
    "dontAsk": "deny calls that need approval",
}
"""What each permission mode does."""
_BAR_WIDTH: Final = 10
_WARNING_PERCENT: Final = 80
_BAR_MIN_COLUMNS: Final = 90
_COMMAND_TIMEOUT: Final = 5.0
_SGR: Final = re.compile(r"\x1b\[([0-9;]*)m")
_SGR_STYLES: Final = {
    "1": "bold",
    "2": "dim",
    "3": "italic",
    "4": "underline",
    **{str(30 + at): name for at, name in enumerate(("", "red", "green", "yellow", "blue", "magenta", "cyan", ""))},
    **{str(90 + at): name for at, name in enumerate(("", "red", "green", "yellow", "blue", "magenta", "cyan", ""))},
}


class StatusState(msgspec.Struct, kw_only=True):
    """The values that the status line shows."""

    model: str = ""
    branch: str = ""
    turn: int = 0
    is_waiting: bool = False
    """Whether a dialog waits for the user."""
    seconds: float | None = None
    """Seconds since the turn started; None between turns."""
    context: int = 0
    window: int = 0
    cost: int = 0
    """Cost of the session in micro-dollars."""
    mode: str = "default"
    background_tasks: int = 0
    """Number of running background tasks."""


def status_line(state: StatusState, columns: int, moment: float, *, unicode: bool = True) -> StyledLine:
    """Return the status line; the least important parts are dropped when it is too wide."""
    if not state.model:
        return [(" Starting…", "dim")]
    parts: list[tuple[int, StyledLine]] = [(0, [(humanize.model_name(state.model), "bold")])]
    if state.seconds is not None:
        activity = "waiting for input" if state.is_waiting else "working"
        mark = "●" if state.is_waiting else spinner_frame(moment, unicode=unicode)
        style = "yellow" if state.is_waiting else "green"
        turn_text = f"turn {state.turn}, {activity} {elapsed_text(state.seconds)}"
        parts.append((1, [(f"{mark} ", style), turn_text]))
    if state.window:
        percentage = min(round(100 * state.context / state.window), 100)
        style = "yellow" if percentage >= _WARNING_PERCENT else ""
        filled = round(percentage * _BAR_WIDTH / 100)
        bar: StyledLine = [(" " + "█" * filled, "blue"), ("░" * (_BAR_WIDTH - filled), "dim")]
        has_room = columns > _BAR_MIN_COLUMNS
        parts.append((2, [(f"context {percentage}%", style), *(bar if has_room else ())]))
    parts.append((3, [f"${state.cost / MICRO_DOLLARS_PER_DOLLAR:.2f}"]))
    if state.branch:
        parts.append((6, [(truncate(clean(state.branch), 24), "dim")]))
    parts.append((1, [(MODE_LABELS.get(state.mode, state.mode), "yellow" if state.mode != "default" else "")]))
    if state.background_tasks:
        parts.append((4, [humanize.count(state.background_tasks, "task") + " running"]))
    parts.append((8, [("? for shortcuts", "dim")]))
    while len(parts) > 1 and _parts_width(parts) > columns:
        parts.remove(max(parts, key=lambda part: part[0]))
    line: StyledLine = [" "]
    for number, (_, bits) in enumerate(parts):
        line += ["   " if number else "", *bits]
    return line


def _parts_width(parts: list[tuple[int, StyledLine]]) -> int:
    texts = (bit[0] if isinstance(bit, tuple) else bit for _, bits in parts for bit in bits)
    return sum(map(display_width, texts)) + 3 * (len(parts) - 1) + 1


def status_command_input(session: "AgentSession") -> dict[str, Any]:
    """Return the JSON input of a status line command."""
    from steno.agent.recorder import VERSION

    agent = session.agent
    context, recorder, meter = agent.executor.context, agent.conversation.recorder, agent.meter
    window = session.compactor.window(agent)
    used_percentage = round(100 * meter.context_size / window) if window else 0
    return {
        "hook_event_name": "Status",
        "session_id": recorder.session_id,
        "transcript_path": recorder.path,
        "cwd": context.cwd,
        "model": {"id": agent.request_config.model, "display_name": humanize.model_name(agent.request_config.model)},
        "workspace": {"current_dir": context.cwd, "project_dir": context.project},
        "version": VERSION,
        "output_style": {"name": session.settings.output_style or "default"},
        "permission_mode": session.permission_mode(),
        "git_branch": recorder.composer.context.git_branch,
        "cost": {"total_cost_usd": meter.total_cost / MICRO_DOLLARS_PER_DOLLAR},
        "context_window": {
            "total_input_tokens": meter.usage.get("input_tokens", 0),
            "total_output_tokens": meter.usage.get("output_tokens", 0),
            "context_window_size": window,
            "used_percentage": used_percentage,
            "remaining_percentage": 100 - used_percentage,
        },
    }


class StatusCommand:
    """The user's status line command: runs after changes, one process at a time."""

    def __init__(self, command: str, cwd: str, env: dict[str, str]) -> None:
        self._command = command
        self._cwd = cwd
        self._env = env
        self._task: asyncio.Task[None] | None = None
        self._pending_input: dict[str, Any] | None = None
        self.line: StyledLine = []

    def request_update(self, status_input: dict[str, Any], on_update: Callable[[], None]) -> None:
        """Run the command, or run it again after the current run; call `on_update` after each run."""
        self._pending_input = status_input
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._run_pending(on_update))

    async def close(self) -> None:
        """Cancel the running command."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run_pending(self, on_update: Callable[[], None]) -> None:
        while self._pending_input is not None:
            status_input, self._pending_input = self._pending_input, None
            await self._run(status_input)
            on_update()

    async def _run(self, status_input: dict[str, Any]) -> None:
        try:
            process = await asyncio.create_subprocess_shell(
                self._command,
                cwd=self._cwd,
                env=self._env,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
            )
        except OSError:
            return
        try:
            output, _ = await asyncio.wait_for(process.communicate(encode(status_input)), _COMMAND_TIMEOUT)
        except TimeoutError:
            output = b""
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
        self.line = parse_colours(output.decode("utf-8", "replace").split("\n")[0])


def parse_colours(text: str) -> StyledLine:
    """Return one line of program output with its 16 ANSI colours; drop all other control sequences."""
    line: StyledLine = []
    style: list[str] = []
    for number, part in enumerate(_SGR.split(text)):
        if number % 2 == 0:
            line.append((clean(part), " ".join(style)))
            continue
        for code in part.split(";"):
            if code in ("", "0"):
                style = []
            elif _SGR_STYLES.get(code):
                style.append(_SGR_STYLES[code])
    return [bit for bit in line if bit[0]]


_BELL: Final = "\a"
_OSC9_TERMINALS: Final = frozenset({"iTerm.app", "WezTerm", "ghostty", "kitty", "WarpTerminal"})
"""Terminals that show OSC 9 messages as notifications."""
_MAX_MESSAGE: Final = 120


def notification_sequence(message: str, channel: str, env: Mapping[str, str]) -> str:
    """Return the sequence for a notification; `channel` is the setting `preferredNotifChannel`."""
    osc9_message = f"\x1b]9;{one_line(message, _MAX_MESSAGE)}\x1b\\"
    match channel:
        case "notifications_disabled":
            return ""
        case "terminal_bell":
            return _BELL
        case "iterm2":
            return osc9_message
        case "iterm2_with_bell":
            return osc9_message + _BELL
        case _:
            return osc9_message if env.get("TERM_PROGRAM") in _OSC9_TERMINALS else _BELL


_MAX_QUEUED: Final = 3
_MAX_TITLE: Final = 60
_HINT_TURNS: Final = 2
_WORKING_HINT: Final = "esc to interrupt · enter to queue a message"
_PROMPT_HINT: Final = "Type a prompt · / for commands · @ for files · ? for shortcuts"


class ChatStatus:
    """Shows the status of one chat."""

    def __init__(self, chat: "Chat") -> None:
        self._chat = chat
        self._status_command: StatusCommand | None = None
        self._tour_steps = list(chat.config.tour_steps)
        chat.prompt.status_line = self.status
        chat.prompt.live_lines = self.live

    def print_greeting(self) -> None:
        """Print the header line and show the first hint."""
        chat, session = self._chat, self._chat.session
        if session is None:
            return
        context = session.agent.conversation.recorder.composer.context
        header_left = "  ".join(filter(None, (humanize.project_name(context.cwd), context.git_branch)))
        header_right = f"session {context.session_id[:SHORT_ID_LENGTH]}"
        head = clean(f"steno chat  {header_left}  {humanize.model_name(session.agent.request_config.model)}")
        space = chat.screen.width - 1 - display_width(head) - display_width(header_right)
        line: StyledLine = [(head, "dim")]
        if space > 1:
            line.append((" " * space + header_right, "dim"))
        chat.renderer.print_block([line], "head")
        chat.prompt.hint = "" if self._tour_steps else _PROMPT_HINT
        self.show_tour_step()
        if chat.prompt.buffer.text and not self._chat.config.tour_steps:
            # Completions were not loaded yet when the text was typed.
            chat.prompt.buffer.start_completion()

    def show_tour_step(self) -> None:
        """Print the next explanation of the tour and put its prompt into the input."""
        if not self._tour_steps or self._chat.session is None:
            return
        text, explanation = self._tour_steps.pop(0)
        self._chat.prompt.set_text(text)
        lines = wrap(explanation, max(self._chat.screen.width - 5, 10))
        prefixes = ("  → ", "    ")
        self._chat.renderer.print_block(
            [[(prefixes[index > 0], "green"), line] for index, line in enumerate(lines)], f"tour {text}"
        )

    def live(self, columns: int, rows: int) -> list[StyledLine]:
        """Return the live view followed by the queued prompts."""
        chat = self._chat
        if chat.session is None:
            return []
        lines = chat.renderer.live(columns, rows)
        for text in chat.queued_prompts[:_MAX_QUEUED]:
            queued_text = one_line(text, max(columns - 13, 8))
            lines.append([("  ┊ ", "blue"), ("queued  ", "dim"), queued_text])
        if len(chat.queued_prompts) > _MAX_QUEUED:
            lines.append([("  ┊ ", "blue"), (f"and {len(chat.queued_prompts) - _MAX_QUEUED} more", "dim")])
        # Separate the prompt from the lines above it.
        return [*lines, []] if lines else []

    def status(self, columns: int) -> StyledLine:
        """Return the status line."""
        if self._status_command is not None and self._status_command.line:
            return self._status_command.line
        unicode = self._chat.screen.paint.unicode
        return status_line(self.state(), columns, time.monotonic(), unicode=unicode)

    def state(self) -> StatusState:
        """Return the current values for the status line."""
        chat, session = self._chat, self._chat.session
        if session is None:
            return StatusState()
        agent = session.agent
        turn_started_at = chat.renderer.turn_started_at
        tasks = agent.executor.context.background.tasks.values()
        return StatusState(
            model=agent.request_config.model,
            branch=agent.conversation.recorder.composer.context.git_branch,
            turn=chat.turns,
            is_waiting=chat.permission_dialogs.is_open or chat.tool_dialogs.is_open,
            seconds=time.monotonic() - turn_started_at if turn_started_at and chat.is_busy() else None,
            context=agent.meter.context_size,
            window=session.compactor.window(agent),
            cost=agent.meter.total_cost,
            mode=session.permission_mode(),
            background_tasks=sum(task.status == "running" for task in tasks),
        )

    def set_status_command(self, session: "AgentSession") -> None:
        """Use the status line command of the settings, if any."""
        command, context = session.settings.status_line, session.agent.executor.context
        self._status_command = StatusCommand(command, context.project, context.env) if command else None

    def refresh(self) -> None:
        """Update the status line."""
        session = self._chat.session
        if self._status_command is not None and session is not None:
            self._status_command.request_update(status_command_input(session), self._chat.screen.refresh)
        self._chat.screen.refresh()

    async def close(self) -> None:
        """Stop the status line command."""
        status_command, self._status_command = self._status_command, None
        if status_command is not None:
            await status_command.close()

    def begin_turn(self, text: str) -> None:
        """Set the window title to the prompt; show a hint in the first turns."""
        self.set_title(text)
        if self._chat.turns <= _HINT_TURNS:
            self._chat.prompt.hint = _WORKING_HINT

    def set_title(self, text: str) -> None:
        """Set the window title."""
        self._chat.screen.output.set_title(f"steno: {one_line(text, _MAX_TITLE)}")

    def note_background_end(self, notification: str) -> None:
        """Print a note when a background task ends; the model is notified with its next request."""
        from steno.session.turns.prompts import tag_content

        chat = self._chat
        summary = tag_content(notification, "summary") or "Background task ended"
        failed = tag_content(notification, "status") == "failed"
        chat.renderer.print_note(f"{summary} · /tasks to list tasks", "yellow" if failed else "dim")
        if not chat.is_busy():
            self.notify("background task ended")

    def notify(self, message: str) -> None:
        """Send a desktop notification or a bell."""
        session = self._chat.session
        channel = session.settings.notification_channel if session is not None else ""
        sequence = notification_sequence(f"steno: {message}", channel, os.environ)
        if sequence:
            self._chat.screen.send(sequence)
