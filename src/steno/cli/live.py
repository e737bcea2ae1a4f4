"""Events of sessions that are being written, as lines: the words and marks of `steno show`."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any, Final

import msgspec

from steno.cli.names import text_of
from steno.cli.story import seam_json, step_json
from steno.cli.transcript import (
    AGENT_STYLES,
    Manner,
    StepTeller,
    figures,
    prompt_lines,
    prose_lines,
    seam_lines,
    verb_column,
)
from steno.errors import Unreadable
from steno.report import words
from steno.safe.terminal import Line, cut, one_line, width
from steno.session.events import Event
from steno.session.story.steps import Step
from steno.session.transcript import Transcript
from steno.store.read import PathSource
from steno.store.watch.company import Speaker, Told

__all__ = ["Live", "event_json"]

_RAIL: Final = 6
_SHORT: Final = 4
_TITLE: Final = 12
_ENDS: Final = {
    "answered": ("! ", "waits for you"),
    "asks": ("! ", "waits for your answer"),
    "interrupted": ("◻ ", "interrupted"),
    "failed": ("✗ ", "failed"),
    "left": ("", "the client was closed"),
}
_Who = tuple[str, str, str]


class _Setting(msgspec.Struct):
    """How one event is told."""

    manner: Manner
    pages: Transcript
    waits: bool = True
    final: bool = False
    """Whether its speaker has nothing more to say for now."""
    nested: bool = False


class Live:
    """Tells events to one screen, in order. Remembers who spoke last."""

    def __init__(self, manner: Manner) -> None:
        self._manner = manner
        self._column = 6
        self._last: _Who | None = None
        self._session = ""
        self._call = ""
        self._blank = True
        self._styles: dict[_Who, str] = {}

    def lines(
        self, told: Sequence[Told], *, past: bool = False, stale: Collection[str] = ()
    ) -> Iterator[Line]:
        """Yield the lines of some events that came together.

        With `past` the records behind them are read again, else each speaker still has them;
        of files that are `stale` nobody waits for an answer any more.
        """
        opened: dict[str, Transcript] = {}
        if past:
            teller = StepTeller(self._manner)
            steps = [each.event.step for each in told if each.event.step is not None]
            self._column = verb_column(filter(teller.is_shown, steps), self._column)
        answered = {
            (each.speaker.path, each.event.step.call_id)
            for each in told
            if each.event.kind == "outcome" and each.event.step is not None
        }
        last = _last_words(told)
        for place, each in enumerate(told):
            step = each.event.step
            if each.event.kind == "step" and step is not None and step.state == "open":
                if (each.speaker.path, step.call_id) in answered:
                    continue
                self._column = verb_column([step], self._column)
            pages = self._pages(each.speaker, opened) if past else each.speaker.follower.pages
            at = _Setting(self._manner, pages, waits=place in last)
            at.waits = at.waits and each.speaker.path not in stale
            at.final = place + 1 < len(told) and told[place + 1].event.kind == "end"
            for line in self._told(each, at):
                self._blank = not line
                yield line

    @staticmethod
    def _pages(speaker: Speaker, opened: dict[str, Transcript]) -> Transcript:
        if speaker.path not in opened:
            try:
                opened[speaker.path] = Transcript(PathSource(speaker.path), [], [])
            except Unreadable:
                opened[speaker.path] = speaker.follower.pages
        return opened[speaker.path]

    def _told(self, told: Told, at: _Setting) -> Iterator[Line]:
        speaker, event = told.speaker, told.event
        at.nested = bool(speaker.agent_id or event.agent)
        room = self._manner.width - (_RAIL if at.nested else 0)
        project = speaker.follower.project
        at.manner = msgspec.structs.replace(self._manner, project=project, width=room)
        before, self._blank = self._blank, self._blank and speaker.session_id == self._session
        lines = list(self._event(event, at))
        self._blank = before
        if not lines:
            return
        call = event.step.call_id if event.kind == "step" and event.step is not None else ""
        yield from self._label(speaker, event)
        style = self._styles.get(_who(speaker, event), "")
        for line in lines:
            yield ["    ", ("│ ", style), *line] if at.nested else line
        self._call = call

    # Who speaks

    def _label(self, speaker: Speaker, event: Event) -> Iterator[Line]:
        who = _who(speaker, event)
        if who == self._last:
            return
        self._last, self._call = who, ""
        if speaker.session_id != self._session:
            self._session = speaker.session_id
            if not self._blank:
                yield []
            yield self._session_label(speaker.owner or speaker)
        if who[1] or who[2]:
            yield self._agent_label(speaker, event, who)

    def _session_label(self, speaker: Speaker) -> Line:
        follower = speaker.follower
        project = one_line(words.project_name(follower.project), 24)
        name = one_line(speaker.session_id[:_SHORT])
        room = max(self._manner.width - width(project) - width(name) - 6, _TITLE)
        title = one_line(follower.title or follower.asked or "(no title yet)", room)
        return [("● ", "green"), (name, "bold green"), "  ", (title, "bold"), f"  {project}"]

    def _agent_label(self, speaker: Speaker, event: Event, who: _Who) -> Line:
        if who not in self._styles:
            self._styles[who] = AGENT_STYLES[len(self._styles) % len(AGENT_STYLES)]
        brief = speaker.brief(event.agent)
        name = one_line(brief.kind or "sub-agent", 24)
        asked = speaker.follower.asked if speaker.agent_id else ""
        about = brief.description or asked or speaker.agent_id
        room = max(self._manner.width - width(name) - 8, _TITLE)
        style = self._styles[who]
        about = one_line(about, room)
        return ["    ", ("┌ ", style), (name, f"bold {style}"), "  ", about]

    # What is said

    def _event(self, event: Event, at: _Setting) -> Iterator[Line]:
        match event.kind:
            case "turn":
                yield from self._prompt(event, at)
            case "outcome" if event.step is not None:
                yield from self._outcome(event.step, at)
            case "words":
                if at.final and not self._blank:
                    yield []
                for line in prose_lines(event.text, at.manner):
                    yield ["    ", *line]
            case "seam" if event.compaction is not None:
                yield []
                yield from seam_lines(event.compaction, at.manner)
            case "end":
                yield from self._end(event, at)
            case _ if event.step is not None:
                yield from self._step(event.step, at)
            case _:
                said = cut(_trouble(event), at.manner.width - 4)
                yield [("  ! ", "yellow"), (said, "yellow")]

    def _prompt(self, event: Event, at: _Setting) -> Iterator[Line]:
        if at.nested:
            return
        prompt = event.prompt
        if prompt is not None and prompt.origin == "summary":
            prompt = msgspec.structs.replace(prompt, text=one_line(prompt.text, 200))
        if not self._blank:
            yield []
        if event.back:
            said = "╌╌ went back to here; what came behind it is abandoned"
            yield [(cut(said, at.manner.width), "dim")]
        yield from prompt_lines(prompt, event.turn, event.time, at.manner)
        yield []

    def _step(self, step: Step, at: _Setting) -> Iterator[Line]:
        teller = StepTeller(at.manner)
        if not teller.is_shown(step):
            return
        if step.state == "open":
            yield teller.called(step, _narrow(self._column, at))
            return
        self._column = verb_column([step], self._column)
        column = _narrow(self._column, at)
        try:
            yield from list(teller.step(at.pages, step, column))
        except Unreadable:
            # The file is another one by now; what is known of the step is told.
            bare = msgspec.structs.replace(step, call=None, result=None)
            yield from teller.step(at.pages, bare, column)

    def _outcome(self, step: Step, at: _Setting) -> Iterator[Line]:
        if not step.call_id or step.call_id != self._call:
            yield from self._step(step, at)
            return
        teller = StepTeller(at.manner)
        yield teller.came(step)
        try:
            yield from list(teller.body(at.pages, step))
        except Unreadable:
            return

    def _end(self, event: Event, at: _Setting) -> Iterator[Line]:
        mark, said = _ENDS[event.ending]
        if event.ending in ("answered", "asks") and (at.nested or not at.waits):
            mark = said = ""
        parts = figures(event.steps, event.duration, event.usage)
        room = at.manner.width - 6 - width(mark + said)
        while len(parts) > 1 and width("  ".join(parts)) > room:
            parts.pop()
        if not parts and not said:
            return
        if not self._blank and not at.nested:
            yield []
        style = "red" if event.ending == "failed" else "yellow" if mark else "dim"
        numbers = "  ".join(parts)
        yield ["    ", (numbers, "dim"), "  " if numbers and said else "", (mark + said, style)]


def _narrow(column: int, at: _Setting) -> int:
    """Return the columns for verbs that a narrow screen can spare."""
    return min(column, max(at.manner.width // 5, 6))


def _last_words(told: Sequence[Told]) -> set[int]:
    """Return the places of the ends that nothing of the same speaker comes behind."""
    last: dict[str, int] = {}
    for place, each in enumerate(told):
        if each.event.kind in ("turn", "end"):
            last[each.speaker.path] = place
    return set(last.values())


def _who(speaker: Speaker, event: Event) -> _Who:
    return speaker.session_id, speaker.agent_id, event.agent


def _trouble(event: Event) -> str:
    match event.kind:
        case "damage":
            return f"{words.size(event.size)} that are no record ({event.text})"
        case "anew":
            return "the file was cut short or replaced: it began anew"
        case _:
            return "the file is gone"


def event_json(told: Told) -> dict[str, Any]:
    """Return an event for programs; what does not apply is left out."""
    speaker, event = told.speaker, told.event
    prompt, seam = event.prompt, event.compaction
    agent = event.agent or speaker.agent_id
    brief = speaker.brief(event.agent) if agent else None
    made: dict[str, Any] = {
        "event": event.kind,
        "session": text_of(speaker.session_id),
        "path": text_of(speaker.path),
        "project": speaker.follower.project or None,
        "agent": agent or None,
        "agent_type": (brief.kind or None) if brief else None,
        "agent_description": (brief.description or None) if brief else None,
        "time": event.time,
        "turn": event.turn or None,
        "prompt": prompt
        and {"text": prompt.text, "origin": prompt.origin, "images": prompt.images},
        "back": event.back or None,
        "step": event.step and step_json(event.step),
        "text": event.text or None,
        "compaction": seam and seam_json(seam),
    }
    if event.kind == "end":
        made["ending"] = event.ending
        made["steps"] = event.steps
        made["duration"] = event.duration
        made["usage"] = msgspec.to_builtins(event.usage)
    if event.kind == "damage":
        made["size"] = event.size
    return {name: value for name, value in made.items() if value is not None}
