"""What `steno export --format steps` and `steno sync --steps` print, and the loop of `--watch`."""

import os
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import msgspec

from steno.cli.names import text_of
from steno.cli.progress import planned
from steno.cli.screen import Screen, complain
from steno.report import words
from steno.report.export.steps_folder import StepsJob, StepsReport, sync_steps
from steno.safe.terminal import Line

if TYPE_CHECKING:
    from queue import SimpleQueue

__all__ = [
    "complain_of_failures",
    "print_steps_report",
    "steps_json",
    "steps_line",
    "write_steps_once",
    "write_steps_while_watching",
]

_MOST_COMPLAINTS: Final = 5
_SHORTEST_REST: Final = 0.2
_LONGEST_REST: Final = 10.0
_REST: Final = 4.0
"""How much longer than a run took is waited before the next."""
_LONGEST_WAIT: Final = 86_400.0


def steps_line(report: StepsReport) -> Line:
    """Return the summary of a run in one line."""
    written = words.count(len(report.written), "session")
    line = f"Wrote {written}, {len(report.unchanged):,} unchanged, {len(report.removed):,} removed"
    return [line, (_skipped_words(report), "dim")]


def _skipped_words(report: StepsReport) -> str:
    if not report.skipped:
        return ""
    reasons = Counter(
        "not written (see above)" if each.failed else each.reason for each in report.skipped
    )
    listed = ", ".join(f"{reason} ({count:,})" for reason, count in reasons.most_common())
    return f"; skipped {words.count(len(report.skipped), 'file')}: {listed}"


def steps_json(report: StepsReport, out: str) -> dict[str, Any]:
    """Return a report for programs."""
    return {
        "folder": text_of(out),
        "written": [text_of(os.path.join(out, name)) for name in report.written],
        "unchanged": [text_of(os.path.join(out, name)) for name in report.unchanged],
        "removed": [text_of(os.path.join(out, name)) for name in report.removed],
        "skipped": [
            {"path": text_of(each.path), "reason": text_of(each.reason), "failed": each.failed}
            for each in report.skipped
        ],
        "problems": [
            {"kind": each.kind, "path": text_of(each.path), "message": each.message}
            for each in report.problems
        ],
    }


def complain_of_failures(report: StepsReport) -> None:
    """Say which sessions could not be written, and which folders could not be read."""
    for problem in report.problems:
        if problem.kind in ("denied", "unreadable", "missing"):
            said = f"cannot read {problem.path}: {problem.message.lower()}"
            complain(said, "folders of deleted sessions are kept until it can be read")
    for each in report.failed[:_MOST_COMPLAINTS]:
        complain(each.reason, _hint(each.reason))
    if more := len(report.failed[_MOST_COMPLAINTS:]):
        complain(f"{words.count(more, 'more session')} could not be written; --json lists them")


def _hint(reason: str) -> str:
    """Return what to do about a session that could not be written."""
    if "not written by steno" in reason:
        return "Move it away, or use `steno export --format steps --force`."
    return "Move it away." if "not a readable folder" in reason else ""


def print_steps_report(
    report: StepsReport, job: StepsJob, screen: Screen, *, as_json: bool
) -> None:
    """Print what a run did."""
    complain_of_failures(report)
    if as_json:
        # One line for each run, as long as it watches.
        sys.stdout.buffer.write(msgspec.json.encode(steps_json(report, job.out)) + b"\n")
    else:
        screen.lines([steps_line(report)])
    sys.stdout.flush()


def write_steps_once(job: StepsJob, screen: Screen, *, as_json: bool) -> StepsReport:
    """Bring a folder of steps up to date, and print what was done."""
    with planned("Writing steps") as plan:
        report = sync_steps(msgspec.structs.replace(job, planned=plan))
    print_steps_report(report, job, screen, as_json=as_json)
    return report


def write_steps_while_watching(
    job: StepsJob, screen: Screen, report: StepsReport, *, as_json: bool
) -> None:
    """Keep a folder of steps up to date until Ctrl-C.

    Runs when a session file changes, and when the status of a running session does because nothing is
    written to it any more.
    """
    from contextlib import suppress
    from queue import SimpleQueue
    from threading import Thread

    from steno.store.watch import Watch

    changes: SimpleQueue[bool] = SimpleQueue()
    if screen.tty and not as_json:
        screen.lines([[("Watching. Press Ctrl-C to stop.", "dim")]])
    with suppress(KeyboardInterrupt), Watch(job.roots) as watch:

        def listen() -> None:
            for _ in watch:
                changes.put(True)
            changes.put(False)

        thread = Thread(target=listen, daemon=True)
        thread.start()
        try:
            while _wait(changes, report):
                report = _run_again(job, screen, report, as_json=as_json)
        finally:
            watch.stop()
            thread.join()


def _run_again(job: StepsJob, screen: Screen, before: StepsReport, *, as_json: bool) -> StepsReport:
    """Run once more; what was said of the run before is not said again."""
    from time import monotonic, sleep

    began = monotonic()
    report = sync_steps(job)
    if report.changed or report.failed != before.failed:
        print_steps_report(report, job, screen, as_json=as_json)
    # Whoever writes many records is not followed record by record.
    sleep(min(_LONGEST_REST, max(_SHORTEST_REST, (monotonic() - began) * _REST)))
    return report


def _wait(changes: "SimpleQueue[bool]", report: StepsReport) -> bool:
    """Wait until there is something to do; False when the watch has ended."""
    from queue import Empty

    from steno.store import clock

    until = report.status_changes_at
    wait = _LONGEST_WAIT if until is None else min(_LONGEST_WAIT, max(0.0, until - clock.now()) + 1)
    try:
        going_on = changes.get(timeout=wait)
        while going_on:
            going_on = changes.get_nowait()
    except Empty:
        return True
    return going_on
