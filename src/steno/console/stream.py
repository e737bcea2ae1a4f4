"""What the engine does, for the eye: finished lines, printed once, and what goes on now.

stream.take(event)                # each event of the engine
stream.live(columns, rows)        # what the region shows meanwhile
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

import msgspec

from steno.agent import events
from steno.agent.events import Event
from steno.console.growing import Growing
from steno.console.markdown import markdown_lines
from steno.console.prompt import MARK
from steno.console.steps import Told, body_lines, step_line, subject, told, verb_of
from steno.console.work import Agent, Working
from steno.format.tool_catalogue import ASKING_TOOLS
from steno.format.values import as_list, as_object
from steno.report import words
from steno.safe.terminal import Bit, Line, cut, one_line, wrap

if TYPE_CHECKING:
    from steno.console.screen import Screen

__all__ = ["Stream"]

_PROSE: Final = 96
_TAIL: Final = 6
_TODOS: Final = 5
_MICRO: Final = 1_000_000
_AGENT_STYLES: Final = ("magenta", "cyan")
_ENDINGS: Final = {
    "empty": "the model answered nothing",
    "max_turns": "not done after as many requests as are allowed",
    "max_budget": "not done for as much money as is allowed",
    "max_time": "not done in the time there was",
}
_DECLINED: Final = "the model declined; say it another way, or /rewind"
_AGAIN: Final = "up and enter say it again"
_KEY: Final = "leave, set another ANTHROPIC_API_KEY, and steno chat -c goes on here"
_TODO_MARKS: Final = {
    "completed": ("✓", "green", "dim"),
    "in_progress": ("▸", "yellow", "bold"),
    "pending": ("◻", "", ""),
}


class Stream:
    """Tells one session on one screen."""

    def __init__(
        self, screen: "Screen", project: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._screen = screen
        self._project = project
        self._clock = clock
        self._text: Growing | None = None
        self._broken = False
        """Whether the last piece of an answer had the end of a line in it."""
        self._thought = ""
        self._thinking_since = 0.0
        self._working: dict[str, Working] = {}
        self._agents: dict[str, Agent] = {}
        self._colours = 0
        self._hooks: Counter[str] = Counter()
        """The hooks that run, by the event that they run at."""
        self._refused: set[str] = set()
        self._last = ""
        self._steps = 0
        self._usage: dict[str, int] = {}
        self._cost = 0
        self.todos: list[dict[str, Any]] = []
        self.began = 0.0
        """When the turn that is under way began; 0 while there is none."""
        self._retrying = ""
        """Why the model is asked again, and when."""
        self._failing = ""
        self._heard = ""
        """How the model answered last in this turn, if it has."""

    # What has happened

    def block(self, lines: Sequence[Sequence[Bit]], kind: str) -> None:
        """Print finished lines, with an empty one before them where another kind of thing begins."""
        if not lines:
            return
        apart: list[Sequence[Bit]] = [[]] if self._last and self._last != kind else []
        self._last = kind
        self._screen.print([*apart, *lines])

    def said(self, text: str, *, mark: str = MARK) -> None:
        """Print what the user said."""
        lines = wrap(text, max(self._screen.width - 3, 10))
        shown = lines if len(lines) <= _PROSE else [*lines[:20], f"… {len(lines):,} lines in all"]
        head: list[Line] = [
            [(mark if not at else "  ", "bold blue"), line] for at, line in enumerate(shown)
        ]
        self._last = self._last or "start"
        self.block(head, f"said {len(text)}")
        self._last = "prompt"

    def note(self, text: str, style: str = "yellow") -> None:
        """Print a notice."""
        lines = wrap(text, max(self._screen.width - 5, 10))
        mark = "!" if style != "dim" else "·"
        self.block(
            [
                [("  " + (mark if not at else " ") + " ", style), line]
                for at, line in enumerate(lines)
            ],
            "note",
        )

    def prose(self, text: str) -> None:
        """Print Markdown that is whole."""
        # It is a thing of its own, whatever the model said before it.
        self.block(self._rendered(text), "whole prose")

    def anew(self) -> None:
        """Another session begins: what was counted so far was not its own."""
        self._usage, self._cost = {}, 0
        self._working.clear()
        self._agents.clear()
        self.todos = []
        self.began = 0.0

    def begin(self) -> None:
        """A turn begins."""
        self.began = self._clock()
        self._steps = 0
        self._heard = ""

    def take(self, event: Event) -> None:
        """Take one event."""
        match event:
            case events.Grew():
                self._grow(event)
            case events.Answered(response, _):
                self._heard = "declined" if response.stop_reason == "refusal" else "answered"
                self._answered()
            case events.ToolStarted(call):
                self._working[str(call.get("id"))] = Working(call, self._clock())
            case events.ToolGrew(call, text):
                if call in self._working:
                    self._working[call].printed(text)
            case events.ToolEnded():
                self._ended_step(event)
            case events.Refused(call, _):
                self._refused.add(str(call.get("id")))
            case events.Within(call, inner):
                self._within(call, inner)
            case _:
                self._other(event)
        self._screen.refresh()

    def _other(self, event: Event) -> None:
        match event:
            case events.Retrying(attempt, of, delay, error):
                # What has come so far comes again.
                self._text = None
                self._failing = str(error)
                self._retrying = f"{error}; try {attempt} of {of} in {delay:.0f} s"
                if self._screen.reader:
                    self.note(self._retrying)
            case events.Compacted(trigger, before, after, _):
                self._seam(f"compacted ({trigger})", before, after)
            case events.Trimmed(before, after, calls):
                self._seam(f"output of {words.count(len(calls), 'call')} left out", before, after)
            case events.Noticed(said, level):
                self.note(
                    said, "dim" if level == "info" else "yellow" if level == "warning" else "red"
                )
            case events.HookStarted(name, _):
                self._hooks[name] += 1
            case events.HookEnded(name, _):
                self._hooks[name] -= 1
            case events.Interrupted():
                self._answered()
                self.break_off()
                self.block(
                    [[("  ◻ ", "yellow"), ("interrupted; say what to do instead", "dim")]], "end"
                )
            case events.Ended():
                self._ended(event)
            case _:
                pass

    def break_off(self) -> None:
        """Tell what was being done as broken off."""
        working, self._working = self._working, {}
        for name, work in working.items():
            agent = self._agents.pop(name, None)
            step = work.broken_off(self._clock())
            step = agent.told(step, self._clock()) if agent is not None else step
            self._step([step_line(step, self._columns, self._project)])

    def _grow(self, event: events.Grew) -> None:
        if self._failing:
            self.note(f"{self._failing}; it was asked again", "dim")
            self._failing = self._retrying = ""
        if event.kind == "thinking":
            self._thinking_since = self._thinking_since or self._clock()
            self._thought += event.text
            return
        self._thought_is_over()
        if event.kind == "text":
            if self._text is None:
                self._text = Growing(self._rendered)
            self._text.grow(event.text)
            # Within a line nothing settles; what is above it does with its first word.
            broken, self._broken = self._broken, "\n" in event.text
            if broken or self._broken:
                self.flow()

    def flow(self) -> None:
        """Print what of the answer will not change any more."""
        if self._text is not None:
            settled = self._text.settled(_TAIL)
            if settled:
                self.block(settled, "prose")

    def _rendered(self, text: str) -> list[Line]:
        room = max(min(self._screen.width - 3, _PROSE), 16)
        unicode = self._screen.paint.unicode
        lines = list(markdown_lines(text, room, unicode=unicode))
        while lines and not lines[-1]:
            lines.pop()
        return [["  ", *line] for line in lines]

    def _answered(self) -> None:
        self._thought_is_over()
        if self._text is not None:
            text, self._text = self._text, None
            self.block(text.finished(), "prose")

    def _thought_is_over(self) -> None:
        thought, self._thought = self._thought.strip(), ""
        began, self._thinking_since = self._thinking_since, 0.0
        if not thought:
            return
        step = Told(verb="Thought", subject=thought, seconds=self._clock() - began)
        self._step([step_line(step, self._columns, self._project)])

    def _step(self, lines: list[Line]) -> None:
        self.block(lines, "steps")

    @property
    def _columns(self) -> int:
        return min(self._screen.width, 120) - 1

    def _ended_step(self, event: events.ToolEnded) -> None:
        name = str(event.call.get("id"))
        working = self._working.pop(name, None)
        if working is not None:
            # What was really done: the user may have asked for something else.
            event = msgspec.structs.replace(event, call=working.call)
        self._steps += 1
        refused = name in self._refused
        self._refused.discard(name)
        agent = self._agents.get(name)
        detail = as_object(event.outcome.detail) or {}
        if str(event.call.get("name")) == "TodoWrite" and not event.outcome.is_error:
            todos = as_list(detail.get("newTodos")) or []
            self.todos = [as_object(each) or {} for each in todos]
        if agent is not None and detail.get("isAsync") is True:
            agent.in_background = True
            return
        step = told(event.call, event.outcome, event.seconds, refused=refused)
        if agent is not None:
            del self._agents[name]
            self._step([step_line(agent.told(step, self._clock()), self._columns, self._project)])
            return
        body = list(body_lines(event.call, event.outcome, step, self._columns))
        mark = "▾" if body else "▸"
        self._step([step_line(step, self._columns, self._project, mark), *body])

    def _within(self, call: str, event: Event) -> None:
        agent = self._agents.get(call)
        if agent is None:
            known = self._working.get(call)
            given: dict[str, Any] = known.call if known is not None else {}
            style = _AGENT_STYLES[self._colours % len(_AGENT_STYLES)]
            self._colours += 1
            agent = self._agents[call] = Agent(
                verb_of(given) if given else "agent", subject(given), style, self._clock()
            )
        agent.take(event)
        if isinstance(event, events.Ended) and agent.in_background:
            del self._agents[call]
            step = agent.told(Told(verb=""), self._clock())
            self._step([step_line(step, self._columns, self._project)])

    def _seam(self, what: str, before: int, after: int) -> None:
        said = f"╌╌╌╌  {what}  {words.tokens(before)} → {words.tokens(after)} tokens  ╌╌╌╌"
        self.block([[(cut(said, self._columns), "yellow")]], "seam")

    def _ended(self, event: events.Ended) -> None:
        self._answered()
        if event.problem:
            self.break_off()
        self._working.clear()
        self._failing = self._retrying = ""
        if event.problem:
            self.note(event.problem, "red")
        elif event.reason in _ENDINGS:
            self.note(_ENDINGS[event.reason])
        elif event.reason == "refused":
            # What the model said itself stands there already; what a hook says does not.
            if not self._heard and event.text:
                self.note(event.text)
            elif self._heard == "declined":
                self.note(_DECLINED)
        elif event.reason == "error" and event.text:
            self.note(event.text, "red")
            key = "api-key" in event.text or "authentication" in event.text
            self.note(_KEY if key else _AGAIN, "dim")
        foot = self._foot(event)
        self._usage, self._cost = dict(event.usage), event.cost
        self.began = 0.0
        if event.requests and foot:
            self.block([[("  " + cut(foot, self._columns - 2), "dim")]], "foot")

    def _foot(self, event: events.Ended) -> str:
        used = {name: count - self._usage.get(name, 0) for name, count in event.usage.items()}
        cached = used.get("cache_read_input_tokens", 0)
        taken = used.get("input_tokens", 0) + used.get("cache_creation_input_tokens", 0) + cached
        parts = [words.count(self._steps, "step")] if self._steps else []
        parts.append(words.duration(event.seconds))
        if taken:
            share = f" ({cached * 100 // taken}% cached)" if cached else ""
            parts += [
                f"{words.tokens(taken)} in{share}",
                f"{words.tokens(used.get('output_tokens', 0))} out",
            ]
        cost = event.cost - self._cost
        if cost:
            parts.append(f"${cost / _MICRO:.2f}")
        return "  ".join(parts)

    # What goes on

    def live(self, columns: int, rows: int) -> list[Line]:
        """Return what goes on now, in at most so many lines."""
        below = self._at_work(columns)
        apart = bool(below) and (self._text is not None or self._last != "steps")
        todos = self.todo_lines(columns, _TODOS)
        below += [[], *todos] if todos and not below else todos
        if apart:
            below.insert(0, [])
        below = below[: max(rows - 2, 1)]
        room = min(rows - len(below), _TAIL + 1)
        above: list[Line] = []
        if self._text is not None:
            above = self._text.tail(room - 1)
            if above and (self._text.between or self._last not in ("", "prose")):
                above.insert(0, [])
        elif self._thought:
            thought = wrap(self._thought[-2000:], max(columns - 4, 10))[-min(room, 3) :]
            above = [[("  │ ", "dim"), (line, "dim")] for line in thought]
        return [*above, *below]

    def _at_work(self, columns: int) -> list[Line]:
        """Return a line for everything that is being done."""
        moment, unicode = self._clock(), self._screen.paint.unicode
        lines: list[Line] = []
        for name, work in self._working.items():
            # Their question is seen, so they need no line of their own.
            if work.call.get("name") in ASKING_TOOLS:
                continue
            agent = self._agents.get(name)
            lines.append(work.line(columns, moment, agent, unicode=unicode))
            lines += agent.lines(columns) if agent is not None else []
        for name, agent in self._agents.items():
            if name not in self._working:
                lines.append(agent.line(columns, moment, unicode=unicode))
        for name in +self._hooks:
            lines.append([("  · ", "dim"), (one_line(f"hook {name}", columns - 5), "dim")])
        if self._retrying:
            lines.append([("  ! ", "yellow"), one_line(self._retrying, columns - 5)])
        return lines

    def todo_lines(self, columns: int, most: int = 100) -> list[Line]:
        """Return the list of things to do, around what is in progress; nothing once all is done."""
        todos = self.todos
        if not todos or all(each.get("status") == "completed" for each in todos):
            return []
        here = next((at for at, each in enumerate(todos) if each.get("status") != "completed"), 0)
        start = max(0, min(here - 1, len(todos) - most))
        lines: list[Line] = []
        for each in todos[start : start + most]:
            status = str(each.get("status"))
            mark, style, text = _TODO_MARKS.get(status, ("◻", "", ""))
            said = one_line(str(each.get("content")), max(columns - 5, 8))
            lines.append([("  " + mark + " ", style), (said, text)])
        left = len(todos) - len(lines)
        if left > 0 and most < len(todos):
            done = sum(each.get("status") == "completed" for each in todos)
            lines[-1] = [("    ", ""), (f"{done} of {len(todos)} done; /todos shows all", "dim")]
        return lines
