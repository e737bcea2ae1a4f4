"""Briefs as lines for a terminal."""

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final

from steno.cli.brief_turn import client_notes, full_turn
from steno.report import words
from steno.safe.terminal import Bit, Line, cut, one_line, short_path, width

if TYPE_CHECKING:
    from steno.report.brief.values import Asked, Brief, Decision, Open, Tested, Trouble, Work

__all__ = ["brief_lines"]

_MINUS: Final = "\N{MINUS SIGN}"
_ROWS: Final = 8
_INDENT: Final = 2
_MARKS: Final[dict[str, tuple[str, str]]] = {
    "interrupted": ("◻", "yellow"),
    "question": ("?", "yellow"),
    "todo": ("◻", "yellow"),
    "tests": ("✗", "red"),
    "error": ("✗", "red"),
    "running": ("▪", "yellow"),
}
_DECIDED: Final = {"plan": "plan", "answer": "answered", "refused": "refused", "said": "said"}


def brief_lines(
    briefs: "Sequence[Brief]", further: int, columns: int, now: float, *, full: bool = False
) -> Iterator[Line]:
    """Yield the briefs, one behind the other; `full` with every text and call."""
    for place, brief in enumerate(briefs):
        if place:
            yield []
            yield [("─" * min(columns, 72), "dim")]
            yield []
        yield from _Lines(brief, columns, now, full=full).all()
    if further:
        yield []
        yield [(f"{words.count(further, 'more session')}; --last N tells so many", "dim")]


class _Lines:
    """One brief, for a screen so wide."""

    def __init__(self, brief: "Brief", columns: int, now: float, *, full: bool) -> None:
        self._brief = brief
        self._wide = columns
        self._now = now
        self._full = full

    def all(self) -> Iterator[Line]:
        """Yield everything: what is open first, the turns last."""
        yield from self._head()
        work = self._brief.work
        sections = (
            ("Left open", self._open(self._brief.open)),
            ("Done", self._done(work)),
            ("Decided", self._decided(work.decisions)),
            ("Went wrong", self._wrong(work)),
            ("Turns", self._turns()),
        )
        for name, lines in sections:
            body = list(lines)
            if body:
                yield []
                yield [(name, "bold")]
                yield from body

    def _head(self) -> Iterator[Line]:
        brief = self._brief
        yield [(one_line(brief.title, self._wide), "bold")]
        shown = sum(not turn.idle for turn in brief.turns)
        parts = (
            words.project_name(brief.project),
            brief.branch,
            ", ".join(words.model_name(model) for model in brief.models[:3]),
            f"{words.day(brief.ended, self._now)} {words.clock(brief.ended)}"
            if brief.ended
            else "",
            words.count(shown, "turn")
            + (f" of {shown + brief.elsewhere:,}" if brief.elsewhere else ""),
            words.duration(brief.seconds) if brief.seconds else "",
            brief.standing,
            words.count(brief.gaps, "damaged stretch", "damaged stretches") if brief.gaps else "",
        )
        name = one_line(brief.id[:8])
        yield [(name, "bold"), (f"  {cut(_apart(*parts), self._wide - width(name) - 2)}", "dim")]

    def _row(self, mark: tuple[str, str], said: str, *more: str) -> Line:
        """Return a line: a mark, some words, and what stands behind them as long as there is room."""
        tail = _apart(*more)
        room = self._wide - _INDENT - 2
        behind = cut(tail, room * 2 // 3)
        text = one_line(said, max(room - width(behind) - 2 * bool(behind), room // 3))
        bits: list[Bit] = ["  ", (mark[0], mark[1]), " ", text]
        if behind:
            bits.append((f"  {cut(behind, room - width(text) - 2)}", "dim"))
        return bits

    # What is open

    def _open(self, some: "Sequence[Open]") -> Iterator[Line]:
        for kind, group in groupby(some, key=lambda each: each.kind):
            items = list(group)
            if kind == "uncommitted":
                said = f"{words.count(len(items), 'file')} changed, in no commit of the session"
                yield self._row(("±", "yellow"), said)
                yield from self._paths([each.text for each in items])
                continue
            for each in items:
                begun = "begun" if each.about == "in_progress" else ""
                about = begun if kind == "todo" else each.about
                said = f"cut off: {each.text}" if kind == "interrupted" else each.text
                yield self._row(_MARKS.get(kind, ("✗", "red")), said, about)

    def _paths(self, paths: Sequence[str]) -> Iterator[Line]:
        for path in paths[:_ROWS]:
            folder, name = short_path(path, self._wide - 6)
            yield ["      ", (folder, "dim"), name]
        if len(paths) > _ROWS:
            yield [(f"      … and {len(paths) - _ROWS:,} more", "dim")]

    # What was done

    def _done(self, work: "Work") -> Iterator[Line]:
        good = ("✓", "green")
        for each in work.commits:
            size = f"{words.count(each.files, 'file')} +{each.added:,} {_MINUS}{each.removed:,}"
            parts = (each.hash, size if each.files else "", "pushed" if each.pushed else "")
            yield self._row(good, f"commit {each.subject}", *parts)
        for pull in work.pulls:
            yield self._row(good, f"pull request {pull.url}", pull.title)
        yield from self._files(work)
        if work.snapshot_files:
            number = len(work.snapshot_files)
            said = f"{words.count(number, 'file')} changed, known from the client's backups alone"
            yield self._row(("±", "cyan"), said)
            yield from self._paths(list(work.snapshot_files))
        for test in work.tests[-_ROWS:]:
            mark = good if test.ok else ("✗", "red")
            yield self._row(mark, test.command, *_result(test))
        for helper in work.helpers:
            steps = words.count(helper.steps, "step") if helper.steps else ""
            said = f"{helper.kind} {helper.task}"
            yield self._row(("▪", "magenta"), said, helper.status, steps)
        for ran in work.commands[-_ROWS:]:
            mark = ("▸", "dim") if ran.state in ("ok", "unknown") else ("✗", "red")
            yield self._row(mark, ran.command, "" if ran.state == "ok" else ran.outcome)
        if len(work.commands) > _ROWS:
            more = words.count(len(work.commands) - _ROWS, "command")
            yield [(f"    and {more} before", "dim")]
        if work.tools:
            yield [("    " + cut(_apart(*_calls(work)), self._wide - 4), "dim")]

    def _files(self, work: "Work") -> Iterator[Line]:
        if not work.files:
            return
        yield [
            "  ",
            ("±", "cyan"),
            f" {words.count(len(work.files), 'file')} changed",
            *_lines(work.added, work.removed),
        ]
        for each in work.files[:_ROWS]:
            size = _lines(each.added, each.removed)
            room = self._wide - 6 - sum(width(bit[0]) for bit in size)
            folder, name = short_path(each.path, room)
            yield ["      ", (folder, "dim"), name, *size]
        if len(work.files) > _ROWS:
            yield [(f"      … and {len(work.files) - _ROWS:,} more", "dim")]

    # What was decided, and what went wrong

    def _decided(self, some: "Sequence[Decision]") -> Iterator[Line]:
        for each in some:
            said = each.text or each.about
            about = each.about if each.text else ""
            yield self._row(("◆", "blue"), said, _DECIDED[each.kind], about, f"turn {each.turn}")

    def _wrong(self, work: "Work") -> Iterator[Line]:
        for each in work.troubles:
            mark = ("✓", "green") if each.solved else ("✗", "red")
            times = f"{each.times:,} times" if each.times > 1 else ""
            yield self._row(mark, each.what, times, _became(each))
            if each.said:
                yield [("      " + one_line(each.said, self._wide - 6), "dim")]

    # Turn by turn

    def _turns(self) -> Iterator[Line]:
        for turn in self._brief.turns:
            if not turn.idle:
                yield from self._turn(turn)
                continue
            for line in client_notes(turn):
                yield [(f"       {cut(line, self._wide - 7)}", "dim")]

    def _turn(self, turn: "Asked") -> Iterator[Line]:
        head = f"{turn.number:>3}  {words.clock(turn.started):5}  "
        room = self._wide - len(head) - 2
        asked = turn.text or f"({turn.origin or 'nobody asked'})"
        if self._full:
            yield from full_turn(turn, head, self._wide)
            return
        yield [(head, "bold"), ("│ ", "blue"), one_line(asked, room)]
        for said in turn.meanwhile:
            yield [" " * len(head), ("│ ", "blue"), (one_line(said, room), "dim")]
        cut_off = "interrupted" if turn.interrupted else ""
        texts = words.count(len(turn.texts), "text") if len(turn.texts) > 1 else ""
        facts = _apart(*_calls(turn.work), texts, words.duration(turn.seconds), cut_off)
        if facts:
            yield [(" " * len(head) + "  " + cut(facts, room), "dim")]
        for line in client_notes(turn):
            yield [(" " * len(head) + "  " + cut(line, room), "dim")]
        if turn.answer:
            yield [" " * len(head) + "  ", one_line(turn.answer, room)]


def _lines(added: int, removed: int) -> list[tuple[str, str]]:
    return [(f"  +{added:,}", "green"), (f" {_MINUS}{removed:,}", "red")]


def _apart(*parts: str) -> str:
    """Return some words side by side, each on one line."""
    return "  ".join(one_line(part) for part in parts if part)


def _calls(work: "Work") -> list[str]:
    return [f"{name} {number:,}" for name, number in work.tools.items()]


def _result(test: "Tested") -> tuple[str, str]:
    numbers = [f"{test.failed:,} failed"] if test.failed else []
    numbers += [f"{test.passed:,} passed"] if test.passed else []
    said = ", ".join(numbers) or ("passed" if test.ok else "failed")
    several = test.bad and test.times > 1
    return said, f"{test.times:,} runs, {test.bad:,} failed" if several else ""


def _became(trouble: "Trouble") -> str:
    if not trouble.solved:
        return "not seen to work since"
    after = ", ".join(trouble.after)
    return f"worked after changes to {after}" if after else "worked later"
