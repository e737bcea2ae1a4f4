"""What is being worked on: a call with its spinner and clock, a sub-agent with its last step."""

from typing import Any, Final

from steno.agent import events
from steno.agent.events import Event
from steno.console.steps import Told, subject, verb_of
from steno.console.ticks import clock, spinner
from steno.report import words
from steno.safe.terminal import Line, one_line, pad, width, without_colours

__all__ = ["Agent", "Working"]

_VERB: Final = 8
_KEPT: Final = 400
_LEAST: Final = 6


class Working:
    """A call that is being made."""

    def __init__(self, call: dict[str, Any], began: float) -> None:
        self.call = call
        self._began = began
        self._said = ""

    def printed(self, text: str) -> None:
        """Take what it prints; only the last line is shown."""
        self._said = (self._said + text)[-_KEPT:]

    def line(self, columns: int, moment: float, agent: "Agent | None", *, unicode: bool) -> Line:
        """Return it on one line."""
        if agent is not None:
            return agent.line(columns, moment, unicode=unicode)
        last = without_colours(self._said).strip().rpartition("\n")[2]
        head = Told(verb=verb_of(self.call), subject=subject(self.call), outcome=last)
        return _running(head, columns, moment, self._began, unicode=unicode)

    def broken_off(self, moment: float) -> Told:
        """Return it as a step that did not come to its end."""
        return Told(
            verb=verb_of(self.call),
            subject=subject(self.call),
            outcome="interrupted",
            state="interrupted",
            seconds=moment - self._began,
        )


class Agent:
    """A sub-agent at work."""

    def __init__(self, kind: str, about: str, style: str, began: float) -> None:
        self._kind = kind
        self._about = about
        self._style = style
        self._began = began
        self._steps = 0
        self._tokens = 0
        self._now = ""
        self.in_background = False

    def take(self, event: Event) -> None:
        """Take something it did."""
        match event:
            case events.ToolStarted(call):
                self._now = f"{verb_of(call)} {subject(call)}"
            case events.ToolEnded():
                self._steps += 1
            case events.Answered(response, _):
                counted = response.usage.get("output_tokens")
                self._tokens += counted if isinstance(counted, int) else 0
            case events.Noticed(said, _):
                self._now = said
            case _:
                pass

    def line(self, columns: int, moment: float, *, unicode: bool) -> Line:
        """Return it on one line."""
        steps = words.count(self._steps, "step") if self._steps else ""
        head = Told(verb=self._kind, subject=self._about, outcome=steps, who=self._style)
        return _running(head, columns, moment, self._began, unicode=unicode)

    def lines(self, columns: int) -> list[Line]:
        """Return what it is at, below its line."""
        if not self._now:
            return []
        return [[("    └ ", self._style), (one_line(self._now, max(columns - 7, 8)), "dim")]]

    def told(self, step: Told, moment: float) -> Told:
        """Return it as a step that is done."""
        return Told(
            verb=self._kind,
            subject=self._about,
            outcome=step.outcome if step.state != "ok" else words.count(self._steps, "step"),
            state=step.state,
            tokens=self._tokens,
            seconds=step.seconds if step.seconds is not None else moment - self._began,
            who=self._style,
        )


def _running(head: Told, columns: int, moment: float, began: float, *, unicode: bool) -> Line:
    verb = pad(one_line(head.verb, 15), max(_VERB, width(one_line(head.verb, 15))))
    time = clock(moment - began)
    room = max(columns - width(verb) - len(time) - 8, 8)
    about = one_line(head.subject, room)
    left = room - width(about) - 2
    said = one_line(head.outcome, left) if left > _LEAST else ""
    return [
        (f"  {spinner(moment, unicode=unicode)} ", "green"),
        (verb, f"bold {head.who}".strip()),
        " ",
        about,
        (f"  {said}" if said else "", "dim"),
        (f"  {time}", "dim"),
    ]
