"""Deeds → what was done: tools, files, commands, tests, sub-agents."""

from collections import Counter
from collections.abc import Iterable
from typing import Final

from steno.format.tool_catalogue import AGENT
from steno.report.brief.values import Changed, Helper, Ran, Tested
from steno.report.deeds.deed import Deed
from steno.report.deeds.shell import Shell, named
from steno.report.words import below
from steno.session.story.threads import Thread

__all__ = ["changed", "helpers", "looks", "ran", "tested", "tools"]

_COMMAND: Final = 400
_REPORT: Final = 2_000


def tools(deeds: Iterable[Deed]) -> dict[str, int]:
    """Return how often each tool was called by the session itself, the most frequent first."""
    counts = Counter(
        AGENT if deed.step.kind == "agent" else deed.step.verb
        for deed in deeds
        if deed.is_call and not deed.agent
    )
    return dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def changed(deeds: Iterable[Deed], project: str) -> tuple[Changed, ...]:
    """Return the files that were changed, those with the most lines first."""
    sums: dict[str, list[int]] = {}
    for deed in deeds:
        touch = deed.step.touch
        if touch is None or not touch.changes or not touch.path or deed.step.state != "ok":
            continue
        mine = sums.setdefault(below(touch.path, project), [0, 0, 0])
        mine[0] += 1
        mine[1] += touch.added
        mine[2] += touch.removed
    found = [
        Changed(path=path, edits=edits, added=added, removed=removed)
        for path, (edits, added, removed) in sums.items()
    ]
    return tuple(sorted(found, key=lambda each: (-each.added - each.removed, each.path)))


def ran(deeds: Iterable[Deed], project: str) -> tuple[Ran, ...]:
    """Return the commands that did something and are no tests, each once, as it ended last."""
    found: dict[str, Ran] = {}
    for deed in deeds:
        shell = deed.shell
        if shell is None or shell.only_looks or deed.tests or _told_elsewhere(shell):
            continue
        words = named(deed.step.command, project)[:_COMMAND]
        before = found.pop(words, None)
        found[words] = Ran(
            command=words,
            outcome=deed.step.outcome,
            state=deed.step.state,
            times=1 + (before.times if before else 0),
            failed=(deed.step.state == "failed") + (before.failed if before else 0),
            turn=deed.turn,
        )
    return tuple(found.values())


def _told_elsewhere(shell: Shell) -> bool:
    return shell.runs("git", "commit") or shell.runs("gh", "pr", "create")


def looks(deeds: Iterable[Deed]) -> int:
    """Return how many commands only looked at something."""
    return sum(deed.shell is not None and deed.shell.only_looks for deed in deeds)


def tested(deeds: Iterable[Deed], project: str) -> tuple[Tested, ...]:
    """Return the commands that ran tests, each once, in the order of their last run."""
    found: dict[str, Tested] = {}
    for deed in deeds:
        if deed.tests is None:
            continue
        ok, numbers = deed.tests.ok, deed.tests.numbers
        words = named(deed.step.command, project)[:_COMMAND]
        before = found.pop(words, None)
        found[words] = Tested(
            command=words,
            ok=ok,
            passed=numbers.passed if numbers and (numbers.passed or ok) else None,
            failed=numbers.failed if numbers else None,
            times=1 + (before.times if before else 0),
            bad=(not ok) + (before.bad if before else 0),
            turn=deed.turn,
        )
    return tuple(found.values())


def helpers(deeds: Iterable[Deed]) -> tuple[Helper, ...]:
    """Return the sub-agents that the session itself started; what they started is theirs."""
    found: dict[int, Helper] = {}
    for deed in deeds:
        if deed.agent or deed.step.kind != "agent":
            continue
        thread = deed.step.agent
        if thread is not None:
            if id(thread) not in found:
                found[id(thread)] = _helper(thread, deed)
        elif deed.is_call:
            found[-id(deed)] = _unheard(deed)
    return tuple(found.values())


def _helper(thread: Thread, deed: Deed) -> Helper:
    steps = [step for each in thread.family() for step in each.steps]
    paths = {step.touch.path for step in steps if step.touch is not None and step.touch.changes}
    return Helper(
        kind=thread.kind or deed.step.verb,
        task=thread.description or deed.step.subject,
        status=thread.status,
        steps=sum(step.kind in ("tool", "agent") for step in steps),
        failed=sum(step.state == "failed" for step in steps),
        changed=len(paths),
        report=thread.report[:_REPORT],
        turn=deed.turn,
    )


def _unheard(deed: Deed) -> Helper:
    """Return a sub-agent of which nothing is left but what it reported."""
    step, count = deed.step, deed.kept.get("totalToolUseCount")
    return Helper(
        kind=step.verb,
        task=step.subject,
        status=deed.told_status,
        steps=max(0, count) if isinstance(count, int) else 0,
        report=deed.told_report[:_REPORT],
        turn=deed.turn,
    )
