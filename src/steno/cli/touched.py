"""Files as people read them: all that were touched, those of a session, how rebuilding went."""

from collections.abc import Iterable, Iterator, Sequence

from steno.cli.table import Column, layout
from steno.report import words
from steno.report.files.session import Mine
from steno.report.files.timeline import brief_day
from steno.report.files.touched import Touched
from steno.report.files.verify import Trial
from steno.report.words import below
from steno.safe.terminal import Line, one_line, short_path, wrap

__all__ = ["list_lines", "minus", "plus", "session_lines", "trial_lines"]

_SECOND = 1000
_SHORT = 8
_WRONG = 20


def plus(number: int) -> str:
    """Return how many lines came; nothing for none."""
    return f"+{number:,}" if number else ""


def minus(number: int) -> str:
    """Return how many lines went; nothing for none."""
    return f"\N{MINUS SIGN}{number:,}" if number else ""


def list_lines(rows: Sequence[Touched], width: int, now: float, *, more: bool) -> Iterator[Line]:
    """Yield a table of files."""
    if not rows:
        yield ["No session touched a file."]
        return
    columns = [
        Column("FILE", [one_line(row.path) for row in rows], "bold", flexible=True),
        Column("EDITS", [f"{row.edits:,}" if row.edits else "" for row in rows], right=True),
        Column("+", [plus(row.added) for row in rows], "green", right=True, needs=24),
        Column("\N{MINUS SIGN}", [minus(row.removed) for row in rows], "red", right=True, needs=24),
        Column(
            "READS", [f"{row.reads:,}" if row.reads else "" for row in rows], right=True, needs=26
        ),
        Column("SESSIONS", [f"{row.sessions:,}" for row in rows], right=True, needs=30),
        *_sources(rows),
        Column("LAST", [_when(row.last, now) for row in rows], "dim", needs=20),
    ]
    yield from _table(columns, width, rows)
    if more:
        yield [(f" the first {len(rows):,}; --limit 0 shows all", "dim")]


def _sources(rows: Sequence[Touched | Mine]) -> list[Column]:
    """Return a column that marks files known from backups alone, where there are such files."""
    marks = [f"snapshot ({row.backups})" if row.source == "snapshot" else "" for row in rows]
    return [Column("SOURCE", marks, "yellow", needs=30)] if any(marks) else []


def _table(columns: list[Column], width: int, rows: Sequence[Touched | Mine]) -> Iterator[Line]:
    """Yield a table whose first column has paths: of a long one the folder gives way."""
    heads, _ = layout(columns, width - 1)
    room = len(heads[0][0]) if heads else 0
    columns[0].cells = ["".join(short_path(cell, room)) for cell in columns[0].cells]
    heads, lines = layout(columns, width - 1)
    yield [" ", *heads]
    for line, _ in zip(lines, rows, strict=True):
        yield [" ", *line]


def _when(last: int | None, now: float) -> str:
    if last is None:
        return ""
    seconds = last / _SECOND
    return f"{brief_day(seconds, now)} {words.clock(seconds)}"


def session_lines(
    found: Sequence[Mine], session: str, title: str, project: str, width: int
) -> Iterator[Line]:
    """Yield the files of a session."""
    yield [(session[:_SHORT], "bold"), "  ", one_line(title, max(12, width - 10)) or "(no title)"]
    if project:
        yield [(one_line(project, width), "dim")]
    yield []
    if not found:
        yield ["It touched no file."]
        return
    columns = [
        Column(
            "FILE", [below(one_line(each.path), project) for each in found], "bold", flexible=True
        ),
        Column("EDITS", [f"{each.edits:,}" if each.edits else "" for each in found], right=True),
        Column("+", [plus(each.added) for each in found], "green", right=True),
        Column("\N{MINUS SIGN}", [minus(each.removed) for each in found], "red", right=True),
        Column("READS", [f"{each.reads:,}" if each.reads else "" for each in found], right=True),
        *_sources(found),
        Column("TURNS", [_turns(each) for each in found], "dim", most=24, needs=24),
    ]
    yield from _table(columns, width, found)
    yield []
    yield [_sum(found)]


def _turns(mine: Mine) -> str:
    told = _stretches(sorted(mine.turns))
    if mine.agents:
        told.append("sub-agents" if len(mine.agents) > 1 else "a sub-agent")
    return ", ".join(told)


def _stretches(numbers: list[int]) -> list[str]:
    """Return numbers as stretches.

    >>> _stretches([1, 2, 3, 7])
    ['1-3', '7']
    """
    made: list[list[int]] = []
    for number in numbers:
        if made and number == made[-1][-1] + 1:
            made[-1].append(number)
        else:
            made.append([number])
    return [f"{each[0]}-{each[-1]}" if len(each) > 1 else str(each[0]) for each in made]


def _sum(found: Iterable[Mine]) -> str:
    some = list(found)
    changed = [each for each in some if each.edits]
    alone = sum(each.source == "snapshot" for each in some)
    added, removed = sum(each.added for each in some), sum(each.removed for each in some)
    said = f"{words.count(len(changed), 'file')} changed"
    if changed:
        said += f", +{added:,} \N{MINUS SIGN}{removed:,}"
    if alone:
        said += f"; {words.count(alone, 'more file')} backed up by the client, named by no call"
    read = len(some) - len(changed) - alone
    return f"{said}; {words.count(read, 'file')} only read" if read else said


def trial_lines(trial: Trial, width: int) -> Iterator[Line]:
    """Yield how rebuilding went."""
    said = (
        (trial.transcripts, "transcript", "read"),
        (trial.changes, "change", f"of {words.count(trial.files, 'file')} in them"),
        (trial.rebuilt, "change", "rebuilt: the whole file after it is known"),
        (trial.befores, "change", "held against the file before, as recorded"),
        (trial.patches, "change", "held against the recorded patch"),
        (trial.chained, "change", "rebuilt once more from the calls alone, with the same result"),
        (trial.gaps, "time", "something else changed a file in between"),
    )
    for number, noun, rest in said:
        yield [f"{number:>9,} ", f"{noun if number == 1 else noun + 's'} {rest}"]
    for reason, number in sorted(trial.unknown.items()):
        for text in wrap(f"{number:>9,} could not be rebuilt. {reason}", width):
            yield [(text, "yellow")]
    if trial.unreadable:
        yield [(f"{trial.unreadable:>9,} transcripts could not be read", "yellow")]
    if not trial.wrong:
        yield [("        0 rebuilt otherwise than recorded", "green")]
        return
    yield [(f"{len(trial.wrong):>9,} rebuilt otherwise than recorded:", "red")]
    for each in trial.wrong[:_WRONG]:
        where = f"{each.session[:_SHORT]} at byte {each.offset:,}"
        yield ["          ", one_line(f"{each.tool} {each.path}: {each.why} ({where})", width - 10)]
