"""What is seen of a talk besides what it says: greeting, queue, status line, title, notices."""

import os
import time
from typing import TYPE_CHECKING, Final

from steno.console.status import State, StatusCommand, status_line
from steno.report import words
from steno.safe.terminal import Line, clean, one_line, width, wrap

if TYPE_CHECKING:
    from steno.agent.started import Started
    from steno.console.talk import Talk

__all__ = ["Face"]

_QUEUED: Final = 3
_TITLE: Final = 60
_SHOWN_HOW: Final = 2
_MEANWHILE: Final = "esc breaks in; what you type meanwhile is heard between two steps"
_HINT: Final = "say what you want done; / lists commands, @ names a file, ? shows keys"


class Face:
    """The looks of one console."""

    def __init__(self, talk: "Talk") -> None:
        self._talk = talk
        self._own: StatusCommand | None = None
        self._tour = list(talk.setting.steps)
        talk.prompt.status = self.status
        talk.prompt.live = self.live

    def greet(self) -> None:
        """Say where one is, and what one can do."""
        talk, started = self._talk, self._talk.started
        if started is None:
            return
        place = started.agent.talk.recorder.compose.place
        left = "  ".join(filter(None, (words.project_name(place.cwd), place.git_branch)))
        right = f"session {place.session_id[:8]}"
        head = clean(f"steno chat  {left}  {words.model_name(started.agent.course.model)}")
        space = talk.screen.width - 1 - width(head) - width(right)
        line: Line = [(head, "dim")]
        if space > 1:
            line.append((" " * space + right, "dim"))
        talk.stream.block([line], "head")
        talk.prompt.hint = "" if self._tour else _HINT
        self.lead_on()
        if talk.prompt.buffer.text and not self._talk.setting.steps:
            # What could be meant was not known when it was typed.
            talk.prompt.buffer.start_completion()

    def lead_on(self) -> None:
        """On a tour: say what has happened and put the next thing to say into the prompt."""
        if not self._tour or self._talk.started is None:
            return
        text, about = self._tour.pop(0)
        self._talk.prompt.put(text)
        lines = wrap(about, max(self._talk.screen.width - 5, 10))
        marks = ("  → ", "    ")
        self._talk.stream.block(
            [[(marks[at > 0], "green"), line] for at, line in enumerate(lines)], f"tour {text}"
        )

    def live(self, columns: int, rows: int) -> list[Line]:
        """Return what goes on now, and what waits behind it."""
        talk = self._talk
        if talk.started is None:
            return []
        lines = talk.stream.live(columns, rows)
        for text in talk.waiting[:_QUEUED]:
            said = one_line(text, max(columns - 13, 8))
            lines.append([("  ┊ ", "blue"), ("queued  ", "dim"), said])
        if len(talk.waiting) > _QUEUED:
            lines.append([("  ┊ ", "blue"), (f"and {len(talk.waiting) - _QUEUED} more", "dim")])
        # The prompt stands apart from what is above it.
        return [*lines, []] if lines else []

    def status(self, columns: int) -> Line:
        """Return the last line."""
        if self._own is not None and self._own.line:
            return self._own.line
        unicode = self._talk.screen.paint.unicode
        return status_line(self.state(), columns, time.monotonic(), unicode=unicode)

    def state(self) -> State:
        """Return what is known at this moment."""
        talk, started = self._talk, self._talk.started
        if started is None:
            return State()
        agent = started.agent
        since = talk.stream.began
        tasks = agent.caller.context.background.tasks.values()
        return State(
            model=agent.course.model,
            branch=agent.talk.recorder.compose.place.git_branch,
            turn=talk.turns,
            waiting=talk.consents.asking or talk.asking.asking,
            seconds=time.monotonic() - since if since and talk.is_busy() else None,
            context=agent.meter.context,
            window=started.compactor.window(agent),
            cost=agent.meter.spent,
            mode=started.mode(),
            tasks=sum(task.status == "running" for task in tasks),
        )

    def own_status(self, started: "Started") -> None:
        """Let a command of the user's write the last line, where the settings name one."""
        command, context = started.settings.status_line, started.agent.caller.context
        self._own = StatusCommand(command, context.project, context.env) if command else None

    def changed(self) -> None:
        """Bring everything that is seen up to date."""
        started = self._talk.started
        if self._own is not None and started is not None:
            from steno.console.facts import facts_of

            self._own.ask(facts_of(started), self._talk.screen.refresh)
        self._talk.screen.refresh()

    async def close(self) -> None:
        """End what still runs for it."""
        own, self._own = self._own, None
        if own is not None:
            await own.close()

    def begin(self, text: str) -> None:
        """A turn begins: name the window, and say at first what can be done meanwhile."""
        self.title(text)
        if self._talk.turns <= _SHOWN_HOW:
            self._talk.prompt.hint = _MEANWHILE

    def title(self, text: str) -> None:
        """Name the window."""
        self._talk.screen.output.set_title(f"steno: {one_line(text, _TITLE)}")

    def ended_beside(self, said: str) -> None:
        """Tell at once what has ended in the background; the model hears of it at its next chance."""
        from steno.session.story.prompts import inside

        talk = self._talk
        about = inside(said, "summary") or "Something in the background has ended"
        failed = inside(said, "status") == "failed"
        talk.stream.note(f"{about}; /tasks shows it", "yellow" if failed else "dim")
        if not talk.is_busy():
            self.notify("something in the background has ended")

    def notify(self, said: str) -> None:
        """Let the user know who may look elsewhere."""
        from steno.console.notify import sequence_for

        started = self._talk.started
        channel = started.settings.notices if started is not None else ""
        sequence = sequence_for(f"steno: {said}", channel, os.environ)
        if sequence:
            self._talk.screen.send(sequence)
