"""A brief for pasting: into a new conversation, a CLAUDE.md, a pull request.

Our own words are plain; every word that comes from a session stands in a code span or in a fenced
block, and the first lines say so.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import Final

from steno.errors import BadRequest
from steno.report import clock, words
from steno.report.brief.mask import masked
from steno.report.brief.pack import packed
from steno.report.brief.quote import NOTICE, block, span, tokens_in
from steno.report.brief.tool_inputs import with_short_inputs
from steno.report.brief.turn_markdown import (
    STATES,
    TextLimits,
    content_after,
    content_before,
    conversation,
    quoted,
)
from steno.report.brief.values import (
    Asked,
    Brief,
    Commit,
    Decision,
    Helper,
    Open,
    Pull,
    Ran,
    Tested,
    Trouble,
    Work,
)

__all__ = ["LEAST", "as_markdown"]

LEAST: Final = 100
"""The smallest budget that leaves room for anything."""
_MINUS: Final = "\N{MINUS SIGN}"
_WORDS: Final = 240
_COMMAND: Final = 140
_PATH: Final = 120
_TEXT: Final = 1_500
_PLAN: Final = 3_000
_ANY: Final = 1 << 62
_PACKED: Final = TextLimits(_TEXT, 160)
_WHOLE: Final = TextLimits(_ANY, 240)
_FULL: Final = TextLimits(_ANY, _ANY, blocks=True)
_FILES: Final = 20
_ROWS: Final = 40
_COMMANDS: Final = 12
_HEADINGS: Final = re.compile(r"^#+ .*$", re.MULTILINE)
_OMITTED: Final = {
    "open": ("open end", "open ends"),
    "turns": ("turn", "turns"),
    "answers": ("answer", "answers"),
    "meanwhile": ("prompt sent meanwhile", "prompts sent meanwhile"),
    "commits": ("commit", "commits"),
    "pulls": ("pull request", "pull requests"),
    "files": ("file", "files"),
    "snapshot_files": ("file known from backups", "files known from backups"),
    "tests": ("test command", "test commands"),
    "helpers": ("sub-agent summary", "sub-agent summaries"),
    "decisions": ("decision", "decisions"),
    "troubles": ("failure", "failures"),
    "commands": ("command", "commands"),
    "tools": ("tool count", "tool counts"),
    "looks": ("command that only looked", "commands that only looked"),
    "slips": ("smaller failure", "smaller failures"),
    "turn_work": ("list of work in a turn", "lists of work in turns"),
    "texts": ("text", "texts"),
    "calls": ("call", "calls"),
    "agents": ("sub-agent", "sub-agents"),
    "agent_texts": ("text of sub-agents", "texts of sub-agents"),
    "agent_calls": ("call of sub-agents", "calls of sub-agents"),
    "backups": ("file backup", "file backups"),
    "compactions": ("compaction", "compactions"),
    "queue": ("queue operation", "queue operations"),
}
_TOLD: Final = frozenset(("notification", "teammate", "other"))
"""Origins of turns that nobody asked for."""
_STANDING: Final = {
    "running": "still at work",
    "waiting": "waiting for the user",
    "finished": "finished",
    "interrupted": "interrupted",
    "failed": "failed",
}


def as_markdown(
    brief: Brief | Sequence[Brief],
    budget: int | None = None,
    *,
    redact: bool = True,
    further: int = 0,
    full: bool = False,
) -> str:
    """Return one or several briefs, newest first, as Markdown.

    `budget` is the most tokens it may take by `tokens_in`; without one every text and call is
    there. `redact` masks what looks like a secret; `further` is how many more sessions there are
    that nobody looked at; `full` writes parameters of calls as long as the briefs have them.

    Raises:
        BadRequest: the budget is too small for anything.
    """
    briefs = [brief] if isinstance(brief, Brief) else list(brief)
    if redact:
        briefs = [masked(each) for each in briefs]
    if not full:
        briefs = [with_short_inputs(each) for each in briefs]
    if budget is None:
        return _written(briefs, further, len(briefs), _FULL if full else _WHOLE)
    if budget < LEAST:
        raise BadRequest(f"a brief needs a budget of at least {LEAST} tokens")
    total = len(briefs)

    def fits(some: list[Brief]) -> bool:
        return tokens_in(_written(some, further, total, _PACKED)) <= budget

    return _written(packed(briefs, fits, budget), further, total, _PACKED)


def _written(briefs: list[Brief], further: int, total: int, limits: TextLimits) -> str:
    several = total > 1
    head = f"# Brief of {words.count(total, 'session')}" if several or not briefs else ""
    parts = [head] if head else []
    for place, each in enumerate(briefs):
        parts += _session(each, "##" if several else "#", limits)
        if not place and not several:
            parts.insert(1, NOTICE)
    if head:
        parts.insert(1, NOTICE)
    missing = further + total - len(briefs)
    if missing:
        parts.append(f"{words.count(missing, 'more session')} left out.")
    return "\n\n".join(parts) + "\n"


def _session(brief: Brief, level: str, limits: TextLimits) -> Iterator[str]:
    title = span(brief.title, 120) or "(no title)"
    yield f"{level} {title}" if level == "##" else f"{level} Brief: {title}"
    yield _facts(brief)
    sections = (
        ("Left open", _open(brief.open)),
        ("Done", _done(brief.work)),
        ("Decided", _decided(brief.work.decisions, limits)),
        ("Went wrong", _wrong(brief.work)),
    )
    for name, lines in sections:
        body = list(lines)
        if body:
            yield f"{level}# {name}"
            yield "\n".join(body)
    turns = [turn for turn in brief.turns if not turn.idle]
    if turns:
        yield f"{level}# Turns"
    for turn in brief.turns:
        if turn.idle:
            # Nothing came of it, but what was left out of the context is told.
            yield from conversation((), (), limits, turn.compactions)
            continue
        alone = len(turns) == 1 and not brief.elsewhere
        yield from _turn(turn, f"{level}##", limits, alone=alone)
    if brief.omitted:
        left = ", ".join(
            words.count(number, *_OMITTED[name]) for name, number in brief.omitted.items()
        )
        yield f"Left out of this session to fit the budget: {left}."


def _facts(brief: Brief) -> str:
    shown = sum(not turn.idle for turn in brief.turns) + brief.omitted.get("turns", 0)
    facts = [
        f"Session {span(brief.id, 80)}",
        f"project {span(brief.project, 160)}" if brief.project else "",
        f"branch {span(brief.branch, 80)}" if brief.branch else "",
        _span_of_time(brief),
        words.count(shown, "turn")
        + (f" of {shown + brief.elsewhere:,}" if brief.elsewhere else "")
        + (f", {words.duration(brief.seconds)} of work" if brief.seconds else ""),
        ", ".join(span(words.model_name(model), 40) for model in brief.models[:3]),
        _STANDING[brief.standing],
        f"{words.count(brief.gaps, 'damaged stretch', 'damaged stretches')} in the file"
        if brief.gaps
        else "",
    ]
    return " · ".join(fact for fact in facts if fact)


def _span_of_time(brief: Brief) -> str:
    start, end = _moment(brief.started), _moment(brief.ended)
    if not start or not end:
        return start or end
    if start == end:
        return f"{start} UTC"
    return f"{start} to {end[11:] if start[:10] == end[:10] else end} UTC"


def _moment(seconds: float | None) -> str:
    return (clock.iso(seconds) or "")[:16].replace("T", " ")


def _rows(lines: Iterable[str]) -> Iterator[str]:
    """Yield the first lines of a list, and how many more there are."""
    rows = list(lines)
    yield from (f"- {row}" for row in rows[:_ROWS])
    if len(rows) > _ROWS:
        yield f"- … and {len(rows) - _ROWS:,} more"


def _row(listed: Sequence[str], total: int) -> str:
    shown = listed[:_FILES]
    more = f" and {total - len(shown):,} more" if total > len(shown) else ""
    return ", ".join(shown) + more


# What is open


def _open(some: Sequence[Open]) -> Iterator[str]:
    for kind, group in groupby(some, key=lambda each: each.kind):
        items = list(group)
        if kind == "uncommitted":
            paths = [span(each.text, _PATH) for each in items]
            were = words.count(items[0].of, "file")
            yield f"- {were} changed, in no commit of this session: {_row(paths, items[0].of)}"
        else:
            yield from _rows(_opened(each) for each in items)


def _opened(each: Open) -> str:
    text = span(each.text, _WORDS)
    about = span(each.about, _WORDS)
    match each.kind:
        case "interrupted":
            return f"The last turn was cut off: {text}"
        case "question":
            return f"Asked, and not answered: {text}"
        case "todo":
            return f"To do{' (begun)' if each.about == 'in_progress' else ''}: {text}"
        case "tests":
            return f"The last tests failed: {text} ({about})"
        case "running":
            return f"A sub-agent never reported: {text}"
        case _:
            return f"Failed, and not seen to work since: {text}" + (f", {about}" if about else "")


# What was done


def _done(work: Work) -> Iterator[str]:
    yield from _rows(map(_commit, work.commits))
    yield from _rows(map(_pull, work.pulls))
    if work.files:
        yield f"- {_files(work, _FILES)}"
    if work.snapshot_files:
        paths = [span(path, _PATH) for path in work.snapshot_files[:_FILES]]
        number = len(work.snapshot_files)
        more = "more file" if work.files else "file"
        known = words.count(number, more) + " changed, known from the client's backups alone"
        yield f"- {known}: {_row(paths, number)}"
    yield from _rows(f"Tests: {_tested(each)}" for each in work.tests[-_ROWS:])
    yield from _rows(map(_helper, work.helpers))
    if work.commands:
        yield f"- Ran {_commands(work.commands, _COMMANDS)}"
    if work.tools:
        yield f"- Calls: {_tools(work)}"


def _commit(each: Commit) -> str:
    name = f"{span(each.hash, 40)} " if each.hash else ""
    size = f"{words.count(each.files, 'file')}, +{each.added:,} {_MINUS}{each.removed:,}"
    more = ", ".join(
        part for part in (size if each.files else "", "pushed" if each.pushed else "") if part
    )
    return f"Commit {name}{span(each.subject, _WORDS)}" + (f" ({more})" if more else "")


def _pull(each: Pull) -> str:
    title = span(each.title, _WORDS)
    return f"Pull request {span(each.url, 200)}" + (f" {title}" if title else "")


def _files(work: Work, most: int) -> str:
    listed = [
        f"{span(each.path, _PATH)} +{each.added:,} {_MINUS}{each.removed:,}"
        for each in work.files[:most]
    ]
    lines = f"+{work.added:,} {_MINUS}{work.removed:,}"
    return f"{words.count(work.changed, 'file')} changed, {lines}: {_row(listed, work.changed)}"


def _tested(each: Tested) -> str:
    numbers = [
        f"{number:,} {name}"
        for number, name in ((each.failed, "failed"), (each.passed, "passed"))
        if number or (number == 0 and name == "passed" and each.ok)
    ]
    said = ", ".join(numbers) or ("passed" if each.ok else "failed")
    runs = f"; {each.times:,} runs, {each.bad:,} of them failed" if each.times > 1 else ""
    return f"{span(each.command, _COMMAND)} → {said}{runs if each.bad else ''}"


def _helper(each: Helper) -> str:
    did = words.count(each.steps, "step") if each.steps else ""
    files = f"{words.count(each.changed, 'file')} changed" if each.changed else ""
    facts = ", ".join(part for part in (span(each.status, 40), did, files) if part)
    report = span(_HEADINGS.sub("", each.report), _WORDS)
    told = f"; reported {report}" if report else ""
    return f"Sub-agent {span(each.kind, 60)} {span(each.task, _COMMAND)} ({facts}){told}"


def _commands(some: Sequence[Ran], most: int) -> str:
    # The last are shown: they are nearer to how things stand.
    listed = ", ".join(
        span(each.command, _COMMAND)
        + ("" if each.state == "ok" else f" ({span(each.outcome, 80) or STATES[each.state]})")
        for each in some[-most:]
    )
    more = f"{len(some) - most:,} commands, at last " if len(some) > most else ""
    return more + listed


def _tools(work: Work) -> str:
    named = ", ".join(f"{span(name, 60)} {number:,}" for name, number in work.tools.items())
    looks = f"; {words.count(work.looks, 'command')} only looked" if work.looks else ""
    return named + looks


# What was decided, and what went wrong


def _decided(some: Iterable[Decision], limits: TextLimits) -> Iterator[str]:
    for each in some:
        match each.kind:
            case "plan":
                yield f"- Plan approved in turn {each.turn}:\n\n{block(each.text, max(_PLAN, limits.text))}\n"
            case "answer":
                yield f"- {span(each.about, _WORDS)} was answered {span(each.text, _WORDS)}"
            case "refused":
                told = span(each.text, _WORDS)
                yield f"- Not allowed: {span(each.about, _COMMAND)}" + (
                    f"; said instead {told}" if told else ""
                )
            case _:
                yield f"- Said in turn {each.turn}: {span(each.text, _TEXT)}"


def _wrong(work: Work) -> Iterator[str]:
    yield from _rows(map(_trouble, work.troubles))
    if work.slips and work.troubles:
        yield f"- {words.count(work.slips, 'smaller call')} failed too: no match, a file not read before."


def _trouble(each: Trouble) -> str:
    times = f" {each.times:,} times" if each.times > 1 else ""
    said = span(each.said, _WORDS)
    failed = f"{span(each.what, _COMMAND)} failed{times}" + (f": {said}" if said else "")
    if not each.solved:
        return f"{failed}. Not seen to work since."
    where = f" in turn {each.until}" if each.until != each.turn else ""
    after = ", ".join(span(path, _PATH) for path in each.after)
    return f"{failed}. Worked{where or ' later'}" + (
        f" after changes to {after}." if after else "."
    )


# Turn by turn


def _turn(turn: Asked, level: str, limits: TextLimits, *, alone: bool) -> Iterator[str]:
    """Yield a turn; what the only one did was told already."""
    started = (clock.iso(turn.started) or "")[11:16]
    marks = [
        f"Turn {turn.number}",
        f"{started} UTC" if started else "",
        words.duration(turn.seconds),
        "interrupted" if turn.interrupted else "",
        "behind a compaction" if turn.compacted else "",
        "" if turn.origin in ("human", "") else f"by {turn.origin}",
    ]
    yield f"{level} {' · '.join(mark for mark in marks if mark)}"
    yield from content_before(turn, limits)
    if turn.text:
        pictures = f" (and {words.count(turn.images, 'picture')})" if turn.images else ""
        asked = "Told" if turn.origin in _TOLD else "Asked"
        yield f"{asked}{pictures}:{quoted(turn.text, limits.text)}"
    for said in turn.meanwhile:
        yield f"Said meanwhile:{quoted(said, limits.text)}"
    done = list(_did(turn.work))
    if done and not alone:
        yield f"Did: {'; '.join(done)}."
    texts = [text for text in turn.texts if not text.final]
    within = [each for each in turn.compactions if each.order >= 0]
    yield from conversation(texts, turn.calls, limits, within)
    yield from content_after(turn, limits)
    if turn.answer:
        yield f"Answered:{quoted(turn.answer, limits.text)}"


def _did(work: Work) -> Iterator[str]:
    """Yield what was done in a turn, shorter than for a session."""
    if work.tools:
        yield _tools(work)
    if work.files:
        yield _files(work, 6)
    yield from (f"tests {_tested(each)}" for each in work.tests[-2:])
    yield from (f"commit {span(each.hash or each.subject, 80)}" for each in work.commits)
    if work.commands:
        yield f"ran {_commands(work.commands, 4)}"
    failed = sum(not each.solved for each in work.troubles)
    if failed:
        yield f"{words.count(failed, 'failure')} not solved"
