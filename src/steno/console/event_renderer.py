"""Renders agent events: finished lines, printed once, and a live view of what is running.

renderer.handle(event)              # each event of the agent
renderer.live(columns, rows)        # the live view
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from steno.agent import events
from steno.agent.events import Event
from steno.console.chat_status import elapsed_text, spinner_frame
from steno.console.prompt import PROMPT_MARK
from steno.console.step_lines import StepView, body_lines, call_label, call_subject, step_line, view_step
from steno.format.lenient_json import as_list, as_object
from steno.format.tool_catalogue import ASKING_TOOLS
from steno.report import humanize
from steno.report.humanize import MICRO_DOLLARS_PER_DOLLAR
from steno.report.markdown_renderer import MarkdownStream, markdown_lines
from steno.sanitize.terminal import StyledLine, StyledText, display_width, one_line, pad, strip_colours, truncate, wrap

if TYPE_CHECKING:
    from steno.console.screen import TerminalScreen


_RUNNING_LABEL_WIDTH: Final = 8
_MAX_OUTPUT_TAIL: Final = 400
_MIN_OUTCOME_WIDTH: Final = 6


class RunningCall:
    """A running tool call."""

    def __init__(self, call: dict[str, Any], started_at: float) -> None:
        self.call = call
        self._started_at = started_at
        self._output = ""

    def add_output(self, text: str) -> None:
        """Append output; only the last line is shown."""
        self._output = (self._output + text)[-_MAX_OUTPUT_TAIL:]

    def line(self, columns: int, now: float, subagent: "RunningSubagent | None", *, unicode: bool) -> StyledLine:
        """Return the call as one line."""
        if subagent is not None:
            return subagent.status_line(columns, now, unicode=unicode)
        last_line = strip_colours(self._output).strip().rpartition("\n")[2]
        step = StepView(label=call_label(self.call), subject=call_subject(self.call), outcome=last_line)
        return _running_line(step, columns, now, self._started_at, unicode=unicode)

    def interrupted_step(self, now: float) -> StepView:
        """Return the call as an interrupted step."""
        return StepView(
            label=call_label(self.call),
            subject=call_subject(self.call),
            outcome="interrupted",
            state="interrupted",
            seconds=now - self._started_at,
        )


class RunningSubagent:
    """A running sub-agent."""

    def __init__(self, agent_type: str, description: str, style: str, started_at: float) -> None:
        self._agent_type = agent_type
        self._description = description
        self._style = style
        self._started_at = started_at
        self._steps = 0
        self._tokens = 0
        self._activity = ""
        self.in_background = False

    def handle(self, event: Event) -> None:
        """Update the state from an event of the sub-agent."""
        match event:
            case events.ToolStarted(call):
                self._activity = f"{call_label(call)} {call_subject(call)}"
            case events.ToolEnded():
                self._steps += 1
            case events.ResponseReceived(response, _):
                output_tokens = response.usage.get("output_tokens")
                self._tokens += output_tokens if isinstance(output_tokens, int) else 0
            case events.Notice(text, _):
                self._activity = text
            case _:
                pass

    def status_line(self, columns: int, now: float, *, unicode: bool) -> StyledLine:
        """Return the sub-agent as one line."""
        steps = humanize.count(self._steps, "step") if self._steps else ""
        step = StepView(label=self._agent_type, subject=self._description, outcome=steps, style=self._style)
        return _running_line(step, columns, now, self._started_at, unicode=unicode)

    def activity_lines(self, columns: int) -> list[StyledLine]:
        """Return the current activity, as a line below the status line."""
        if not self._activity:
            return []
        return [[("    └ ", self._style), (one_line(self._activity, max(columns - 7, 8)), "dim")]]

    def finished_step(self, step: StepView, now: float) -> StepView:
        """Return the sub-agent as a finished step."""
        return StepView(
            label=self._agent_type,
            subject=self._description,
            outcome=step.outcome if step.state != "ok" else humanize.count(self._steps, "step"),
            state=step.state,
            tokens=self._tokens,
            seconds=step.seconds if step.seconds is not None else now - self._started_at,
            style=self._style,
        )


def _running_line(step: StepView, columns: int, now: float, started_at: float, *, unicode: bool) -> StyledLine:
    label = pad(one_line(step.label, 15), max(_RUNNING_LABEL_WIDTH, display_width(one_line(step.label, 15))))
    elapsed = elapsed_text(now - started_at)
    available = max(columns - display_width(label) - len(elapsed) - 8, 8)
    subject_text = one_line(step.subject, available)
    outcome_width = available - display_width(subject_text) - 2
    outcome_text = one_line(step.outcome, outcome_width) if outcome_width > _MIN_OUTCOME_WIDTH else ""
    return [
        (f"  {spinner_frame(now, unicode=unicode)} ", "green"),
        (label, f"bold {step.style}".strip()),
        " ",
        subject_text,
        (f"  {outcome_text}" if outcome_text else "", "dim"),
        (f"  {elapsed}", "dim"),
    ]


_MAX_PROSE_WIDTH: Final = 96
_TAIL_LINES: Final = 6
_MAX_TODOS: Final = 5
_AGENT_STYLES: Final = ("magenta", "cyan")
_END_MESSAGES: Final = {
    "empty": "The response was empty",
    "max_turns": "Reached --max-turns",
    "max_budget": "Reached --max-budget-usd",
    "max_time": "Reached --max-time",
}
_DECLINED_MESSAGE: Final = "The model declined to answer. Rephrase the prompt, or use /rewind."
_RETRY_HINT: Final = "Press up, then enter to retry."
_KEY_HINT: Final = "Exit, set a valid ANTHROPIC_API_KEY, then run `steno chat -c` to continue."
_TODO_MARKS: Final = {
    "completed": ("✓", "green", "dim"),
    "in_progress": ("▸", "yellow", "bold"),
    "pending": ("◻", "", ""),
}


class EventRenderer:
    """Renders the events of one session on one screen."""

    def __init__(self, screen: "TerminalScreen", project: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._screen = screen
        self._project = project
        self._clock = clock
        self._markdown: MarkdownStream | None = None
        self._had_line_end = False
        """Whether the previous piece of text contained a line end."""
        self._thinking_text = ""
        self._thinking_started_at = 0.0
        self._running_calls: dict[str, RunningCall] = {}
        self._subagents: dict[str, RunningSubagent] = {}
        self._subagent_count = 0
        self._running_hooks: Counter[str] = Counter()
        """Running hooks by event name."""
        self._denied_calls: set[str] = set()
        self._last_kind = ""
        self._step_count = 0
        self._last_usage: dict[str, int] = {}
        self._last_cost = 0
        self.todos: list[dict[str, Any]] = []
        self.turn_started_at = 0.0
        """Start of the current turn; 0 between turns."""
        self._retry_text = ""
        """The error and delay of the next retry."""
        self._failure_text = ""
        self._response_kind = ""
        """How the last response of the turn ended: answered, declined, or empty if none has arrived."""

    # Finished lines

    def print_block(self, lines: Sequence[Sequence[StyledText]], kind: str) -> None:
        """Print finished lines, after a blank line if the kind of content changes."""
        if not lines:
            return
        separator: list[Sequence[StyledText]] = [[]] if self._last_kind and self._last_kind != kind else []
        self._last_kind = kind
        self._screen.print([*separator, *lines])

    def print_user_text(self, text: str, *, mark: str = PROMPT_MARK) -> None:
        """Print the text of the user."""
        lines = wrap(text, max(self._screen.width - 3, 10))
        visible = lines if len(lines) <= _MAX_PROSE_WIDTH else [*lines[:20], f"… {len(lines):,} lines in total"]
        marked_lines: list[StyledLine] = [
            [(mark if not index else "  ", "bold blue"), line] for index, line in enumerate(visible)
        ]
        self._last_kind = self._last_kind or "start"
        self.print_block(marked_lines, f"user {len(text)}")
        self._last_kind = "prompt"

    def print_note(self, text: str, style: str = "yellow") -> None:
        """Print a note."""
        lines = wrap(text, max(self._screen.width - 5, 10))
        mark = "!" if style != "dim" else "·"
        self.print_block(
            [[("  " + (mark if not index else " ") + " ", style), line] for index, line in enumerate(lines)], "note"
        )

    def print_markdown(self, text: str) -> None:
        """Print a complete Markdown text."""
        # A separate kind, so that a blank line follows the streamed text before it.
        self.print_block(self._render_markdown(text), "whole prose")

    def reset(self) -> None:
        """Clear the state of the previous session."""
        self._last_usage, self._last_cost = {}, 0
        self._running_calls.clear()
        self._subagents.clear()
        self.todos = []
        self.turn_started_at = 0.0

    def begin_turn(self) -> None:
        """Start a turn."""
        self.turn_started_at = self._clock()
        self._step_count = 0
        self._response_kind = ""

    def handle(self, event: Event) -> None:
        """Handle one event."""
        match event:
            case events.ContentDelta():
                self._handle_delta(event)
            case events.ResponseReceived(response, _):
                self._response_kind = "declined" if response.stop_reason == "refusal" else "answered"
                self._finish_text()
            case events.ToolStarted(call):
                self._running_calls[str(call.get("id"))] = RunningCall(call, self._clock())
            case events.ToolOutput(call, text):
                if call in self._running_calls:
                    self._running_calls[call].add_output(text)
            case events.ToolEnded():
                self._finish_call(event)
            case events.CallDenied(call, _):
                self._denied_calls.add(str(call.get("id")))
            case events.SubagentEvent(call, inner):
                self._handle_subagent_event(call, inner)
            case _:
                self._handle_other(event)
        self._screen.refresh()

    def _handle_other(self, event: Event) -> None:
        match event:
            case events.Retrying(attempt, max_attempts, delay, error):
                # A retry repeats the text that has already arrived.
                self._markdown = None
                self._failure_text = str(error)
                self._retry_text = f"{error}; retry {attempt} of {max_attempts} in {delay:.0f} s"
                if self._screen.is_screen_reader:
                    self.print_note(self._retry_text)
            case events.Compacted(trigger, tokens_before, tokens_after, _):
                self._print_seam(f"compacted ({trigger})", tokens_before, tokens_after)
            case events.Trimmed(tokens_before, tokens_after, call_ids):
                self._print_seam(
                    f"output of {humanize.count(len(call_ids), 'call')} removed", tokens_before, tokens_after
                )
            case events.Notice(text, level):
                self.print_note(text, "dim" if level == "info" else "yellow" if level == "warning" else "red")
            case events.HookStarted(name, _):
                self._running_hooks[name] += 1
            case events.HookEnded(name, _):
                self._running_hooks[name] -= 1
            case events.Interrupted():
                self._finish_text()
                self.interrupt_running()
                self.print_block([[("  ◻ ", "yellow"), ("Interrupted · type what to do instead", "dim")]], "end")
            case events.TurnEnded():
                self._finish_turn(event)
            case _:
                pass

    def interrupt_running(self) -> None:
        """Print running calls as interrupted."""
        running, self._running_calls = self._running_calls, {}
        for call_id, running_call in running.items():
            subagent = self._subagents.pop(call_id, None)
            step = running_call.interrupted_step(self._clock())
            step = subagent.finished_step(step, self._clock()) if subagent is not None else step
            self._print_step([step_line(step, self._columns, self._project)])

    def _handle_delta(self, event: events.ContentDelta) -> None:
        if self._failure_text:
            self.print_note(f"{self._failure_text}; retried", "dim")
            self._failure_text = self._retry_text = ""
        if event.kind == "thinking":
            self._thinking_started_at = self._thinking_started_at or self._clock()
            self._thinking_text += event.text
            return
        self._finish_thinking()
        if event.kind == "text":
            if self._markdown is None:
                self._markdown = MarkdownStream(self._render_markdown)
            self._markdown.feed(event.text)
            # Text settles only at a line end, or with the first piece after it.
            had_line_end, self._had_line_end = self._had_line_end, "\n" in event.text
            if had_line_end or self._had_line_end:
                self.print_settled()

    def print_settled(self) -> None:
        """Print the part of the answer that can no longer change."""
        if self._markdown is not None:
            settled = self._markdown.take_settled(_TAIL_LINES)
            if settled:
                self.print_block(settled, "prose")

    def _render_markdown(self, text: str) -> list[StyledLine]:
        width = max(min(self._screen.width - 3, _MAX_PROSE_WIDTH), 16)
        unicode = self._screen.paint.unicode
        lines = list(markdown_lines(text, width, unicode=unicode))
        while lines and not lines[-1]:
            lines.pop()
        return [["  ", *line] for line in lines]

    def _finish_text(self) -> None:
        self._finish_thinking()
        if self._markdown is not None:
            text, self._markdown = self._markdown, None
            self.print_block(text.finish(), "prose")

    def _finish_thinking(self) -> None:
        text, self._thinking_text = self._thinking_text.strip(), ""
        started_at, self._thinking_started_at = self._thinking_started_at, 0.0
        if not text:
            return
        step = StepView(label="Thought", subject=text, seconds=self._clock() - started_at)
        self._print_step([step_line(step, self._columns, self._project)])

    def _print_step(self, lines: list[StyledLine]) -> None:
        self.print_block(lines, "steps")

    @property
    def _columns(self) -> int:
        return min(self._screen.width, 120) - 1

    def _finish_call(self, event: events.ToolEnded) -> None:
        call_id = str(event.call.get("id"))
        running_call = self._running_calls.pop(call_id, None)
        if running_call is not None:
            # The user may have edited the call before approving it.
            event = msgspec.structs.replace(event, call=running_call.call)
        self._step_count += 1
        denied = call_id in self._denied_calls
        self._denied_calls.discard(call_id)
        subagent = self._subagents.get(call_id)
        detail = as_object(event.result.detail) or {}
        if str(event.call.get("name")) == "TodoWrite" and not event.result.is_error:
            todos = as_list(detail.get("newTodos")) or []
            self.todos = [as_object(todo) or {} for todo in todos]
        if subagent is not None and detail.get("isAsync") is True:
            subagent.in_background = True
            return
        step = view_step(event.call, event.result, event.seconds, denied=denied)
        if subagent is not None:
            del self._subagents[call_id]
            self._print_step([step_line(subagent.finished_step(step, self._clock()), self._columns, self._project)])
            return
        body = list(body_lines(event.call, event.result, step, self._columns))
        mark = "▾" if body else "▸"
        self._print_step([step_line(step, self._columns, self._project, mark), *body])

    def _handle_subagent_event(self, call_id: str, event: Event) -> None:
        subagent = self._subagents.get(call_id)
        if subagent is None:
            running_call = self._running_calls.get(call_id)
            call: dict[str, Any] = running_call.call if running_call is not None else {}
            style = _AGENT_STYLES[self._subagent_count % len(_AGENT_STYLES)]
            self._subagent_count += 1
            subagent = self._subagents[call_id] = RunningSubagent(
                call_label(call) if call else "agent", call_subject(call), style, self._clock()
            )
        subagent.handle(event)
        if isinstance(event, events.TurnEnded) and subagent.in_background:
            del self._subagents[call_id]
            step = subagent.finished_step(StepView(label=""), self._clock())
            self._print_step([step_line(step, self._columns, self._project)])

    def _print_seam(self, label: str, tokens_before: int, tokens_after: int) -> None:
        seam_text = f"╌╌╌╌  {label}  {humanize.tokens(tokens_before)} → {humanize.tokens(tokens_after)} tokens  ╌╌╌╌"
        self.print_block([[(truncate(seam_text, self._columns), "yellow")]], "seam")

    def _finish_turn(self, event: events.TurnEnded) -> None:
        self._finish_text()
        if event.problem:
            self.interrupt_running()
        self._running_calls.clear()
        self._failure_text = self._retry_text = ""
        if event.problem:
            self.print_note(event.problem, "red")
        elif event.reason in _END_MESSAGES:
            self.print_note(_END_MESSAGES[event.reason])
        elif event.reason == "refused":
            # The text of a response is already printed; the message of a hook is not.
            if not self._response_kind and event.text:
                self.print_note(event.text)
            elif self._response_kind == "declined":
                self.print_note(_DECLINED_MESSAGE)
        elif event.reason == "error" and event.text:
            self.print_note(event.text, "red")
            is_key_problem = "api-key" in event.text or "authentication" in event.text
            self.print_note(_KEY_HINT if is_key_problem else _RETRY_HINT, "dim")
        footer = self._turn_footer(event)
        self._last_usage, self._last_cost = dict(event.usage), event.cost
        self.turn_started_at = 0.0
        if event.requests and footer:
            self.print_block([[("  " + truncate(footer, self._columns - 2), "dim")]], "foot")

    def _turn_footer(self, event: events.TurnEnded) -> str:
        usage = {name: count - self._last_usage.get(name, 0) for name, count in event.usage.items()}
        cached_tokens = usage.get("cache_read_input_tokens", 0)
        input_tokens = usage.get("input_tokens", 0) + usage.get("cache_creation_input_tokens", 0) + cached_tokens
        parts = [humanize.count(self._step_count, "step")] if self._step_count else []
        parts.append(humanize.duration(event.seconds))
        if input_tokens:
            cached_text = f" ({cached_tokens * 100 // input_tokens}% cached)" if cached_tokens else ""
            parts += [
                f"{humanize.tokens(input_tokens)} in{cached_text}",
                f"{humanize.tokens(usage.get('output_tokens', 0))} out",
            ]
        cost = event.cost - self._last_cost
        if cost:
            parts.append(f"${cost / MICRO_DOLLARS_PER_DOLLAR:.2f}")
        return "  ".join(parts)

    # Live view

    def live(self, columns: int, rows: int) -> list[StyledLine]:
        """Return the live view in at most `rows` lines."""
        running_lines = self._running_lines(columns)
        needs_separator = bool(running_lines) and (self._markdown is not None or self._last_kind != "steps")
        todos = self.todo_lines(columns, _MAX_TODOS)
        running_lines += [[], *todos] if todos and not running_lines else todos
        if needs_separator:
            running_lines.insert(0, [])
        running_lines = running_lines[: max(rows - 2, 1)]
        text_rows = min(rows - len(running_lines), _TAIL_LINES + 1)
        text_lines: list[StyledLine] = []
        if self._markdown is not None:
            text_lines = self._markdown.open_tail(text_rows - 1)
            if text_lines and (self._markdown.needs_separator or self._last_kind not in ("", "prose")):
                text_lines.insert(0, [])
        elif self._thinking_text:
            thought = wrap(self._thinking_text[-2000:], max(columns - 4, 10))[-min(text_rows, 3) :]
            text_lines = [[("  │ ", "dim"), (line, "dim")] for line in thought]
        return [*text_lines, *running_lines]

    def _running_lines(self, columns: int) -> list[StyledLine]:
        now, unicode = self._clock(), self._screen.paint.unicode
        lines: list[StyledLine] = []
        for call_id, running_call in self._running_calls.items():
            # Their dialog is visible, so they need no line here.
            if running_call.call.get("name") in ASKING_TOOLS:
                continue
            subagent = self._subagents.get(call_id)
            lines.append(running_call.line(columns, now, subagent, unicode=unicode))
            lines += subagent.activity_lines(columns) if subagent is not None else []
        for call_id, subagent in self._subagents.items():
            if call_id not in self._running_calls:
                lines.append(subagent.status_line(columns, now, unicode=unicode))
        for call_id in +self._running_hooks:
            lines.append([("  · ", "dim"), (one_line(f"hook {call_id}", columns - 5), "dim")])
        if self._retry_text:
            lines.append([("  ! ", "yellow"), one_line(self._retry_text, columns - 5)])
        return lines

    def todo_lines(self, columns: int, max_rows: int = 100) -> list[StyledLine]:
        """Return the to-do items around the one in progress; empty if all are completed."""
        todos = self.todos
        if not todos or all(todo.get("status") == "completed" for todo in todos):
            return []
        current = next((index for index, each in enumerate(todos) if each.get("status") != "completed"), 0)
        start = max(0, min(current - 1, len(todos) - max_rows))
        lines: list[StyledLine] = []
        for each in todos[start : start + max_rows]:
            status = str(each.get("status"))
            mark, style, text_style = _TODO_MARKS.get(status, ("◻", "", ""))
            todo_text = one_line(str(each.get("content")), max(columns - 5, 8))
            lines.append([("  " + mark + " ", style), (todo_text, text_style)])
        hidden_count = len(todos) - len(lines)
        if hidden_count > 0 and max_rows < len(todos):
            completed_count = sum(each.get("status") == "completed" for each in todos)
            lines[-1] = [("    ", ""), (f"{completed_count} of {len(todos)} done · /todos to show all", "dim")]
        return lines
