"""`steno tail`: sessions as they are written, turn by turn."""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

import click
import msgspec

from steno.cli.options import COLOR, JSON, MAYBE_SESSION, WHERE, WIDTH, options, roots
from steno.cli.screen import Screen, complain, harmless, write_bytes
from steno.errors import NotFound, Unreadable
from steno.report import clock, words
from steno.safe.terminal import ColourMode
from steno.session.recall import Recall
from steno.session.story.status import LIVE
from steno.store.discover import Discovery, Found
from steno.store.library import find, newest_first, roots_of, seen
from steno.store.watch.company import Company, Told

__all__ = ["command"]

_SUFFIX: Final = ".jsonl"


class _Asked(msgspec.Struct):
    """What was asked for, beside the session's name."""

    everyone: bool = False
    last: int | None = None
    since: str | None = None
    thinking: bool = False
    notes: bool = False
    as_json: bool = False
    no_follow: bool = False


@click.command("tail", short_help="Follow live sessions.")
@MAYBE_SESSION
@click.option("--all", "everyone", is_flag=True, help="Every session, also those that begin later.")
@click.option(
    "--last", metavar="N", type=click.IntRange(0), help="Begin with the last N turns.  [default: 1]"
)
@click.option("--since", metavar="WHEN", help="Begin with the turns since then: 10m, 3h, today, …")
@click.option("--thinking", is_flag=True, help="Show thoughts in full.")
@click.option("--notes", is_flag=True, help="Notes, hooks and long output too.")
@click.option("-n", "--no-follow", is_flag=True, help="Print what there is and leave.")
@options(WHERE, JSON)
@WIDTH
@options(COLOR)
def command(
    name: str | None,
    root: tuple[str, ...],
    color: ColourMode,
    width: int | None,
    *,
    demo: bool,
    **asked: Any,
) -> None:
    """Follow a session while it is written: prompts, steps, outcomes, answers, sub-agents.

    SESSION is a path, an id, the first letters of one, a title or part of one, or `last`. Without
    it, the session of this folder that was written last is followed, else the last of all.

    It begins with the last turn and goes on until Ctrl-C. With --json each event is one line.
    """
    wanted = _Asked(**asked)
    if name and wanted.everyone:
        raise click.UsageError("--all and a session exclude each other")
    if wanted.last is not None and wanted.since is not None:
        raise click.UsageError("--last and --since exclude each other")
    where = roots(root, demo=demo)
    scene = _Everyone(where, wanted) if wanted.everyone else _One(_chosen(name, where), wanted)
    voice = _Json() if wanted.as_json else _Text(Screen(color, width), wanted)
    try:
        _follow(scene, voice, wanted)
    except KeyboardInterrupt:
        return


def _chosen(name: str | None, where: tuple[str, ...] | None) -> Found:
    found = find(name, where) if name else _of_this_folder(where) or find("last", where)
    if not os.path.exists(found.path):
        raise NotFound(f"{os.path.basename(found.path)} is not on disk any more")
    return found


def _of_this_folder(where: tuple[str, ...] | None) -> Found | None:
    """Return the session that was written last in the project around the current folder."""
    here = os.getcwd()
    for found, look in seen(newest_first(where)):
        project = look.project
        inside = project and (here + os.sep).startswith(project.rstrip(os.sep) + os.sep)
        if inside and not look.hidden and os.path.exists(found.path):
            return found
    return None


def _follow(scene: "_One | _Everyone", voice: "_Text | _Json", wanted: _Asked) -> None:
    if wanted.no_follow:
        voice.past(scene.begin())
        return
    from steno.store.watch import Watch

    begun = False
    with Watch(scene.roots) as watch:
        for changes in watch:
            if not begun:
                begun = True
                voice.past(scene.begin())
                voice.waiting(scene.about)
                if watch.deaf:
                    complain("the system cannot watch files; looking every 2 s", watch.deaf)
                continue
            paths = set(changes.paths)
            if changes.rescan:
                paths.update(scene.news())
            for told in scene.company.hear(paths):
                voice.now(told)


class _One:
    """One session and its sub-agents."""

    def __init__(self, found: Found, wanted: _Asked) -> None:
        self._found = found
        self._wanted = wanted
        self.company = Company(found.path)
        self.about = ""

    @property
    def roots(self) -> tuple[str, ...]:
        """Where to watch: the project's folder; of a file that lies elsewhere only the file."""
        path = self._found.path
        if self._found.place.slug:
            return (os.path.dirname(path) or os.curdir,)
        return path, path.removesuffix(_SUFFIX)

    def begin(self) -> list[Told]:
        """Return the last turns."""
        found = self._found
        told = self.company.recall(found, _recall(self._wanted))
        agents = [] if found.place.role == "agent" else self.company.agents(found)
        return _merged(told, *(self._agent(agent, told) for agent in agents))

    def _agent(self, found: Found, told: Sequence[Told]) -> list[Told]:
        """Return what a sub-agent said since the first of those turns began."""
        times = [each.event.time for each in told if each.event.time is not None]
        if not times:
            self.company.ignore(found)
            return []
        return self.company.recall(found, Recall(since=min(times).timestamp()))

    def news(self) -> Iterator[str]:
        """Yield the files to look at when nobody knows what changed."""
        yield self._found.path
        try:
            yield from (agent.path for agent in self.company.agents(self._found))
        except Unreadable:
            return


class _Everyone:
    """Every session below the roots."""

    def __init__(self, where: tuple[str, ...] | None, wanted: _Asked) -> None:
        self.roots = roots_of(where)
        self._wanted = wanted
        self.company = Company()
        self.about = ""

    def begin(self) -> list[Told]:
        """Return the last turns of the sessions that are alive, or were written since then."""
        now = clock.now()
        since = clock.when(self._wanted.since, now)[0] if self._wanted.since else now - LIVE
        known = list(self._transcripts())
        for found in known:
            self.company.ignore(found)
        alive = [found for found in known if found.mtime_ns >= since * 1e9]
        told = _merged(
            *(
                self.company.recall(found, _recall(self._wanted))
                for found in alive
                if found.place.role != "agent"
            )
        )
        first = min((each.event.time for each in told if each.event.time), default=None)
        agents = [found for found in alive if first and found.place.role == "agent"]
        begun = first.timestamp() if first else 0.0
        self.about = f"watching {words.count(len(known), 'file')}"
        return _merged(told, *(self.company.recall(each, Recall(since=begun)) for each in agents))

    def news(self) -> Iterator[str]:
        """Yield the files to look at when nobody knows what changed."""
        return (each.path for each in self._transcripts() if self.company.is_news(each))

    def _transcripts(self) -> Iterator[Found]:
        for root in self.roots:
            yield from Discovery(root).transcripts()


def _recall(wanted: _Asked) -> Recall:
    if wanted.since is not None:
        return Recall(since=clock.when(wanted.since, clock.now())[0])
    return Recall(1 if wanted.last is None else wanted.last)


def _merged(*several: Iterable[Told]) -> list[Told]:
    """Return the events of several speakers by their time; each one's own stay in order."""
    timed: list[tuple[float, Told]] = []
    for told in several:
        latest = 0.0
        for each in told:
            if each.event.time is not None:
                latest = max(latest, each.event.time.timestamp())
            timed.append((latest, each))
    timed.sort(key=_time)
    return [each for _, each in timed]


def _time(timed: tuple[float, Told]) -> float:
    return timed[0]


def _age(path: str, now: float) -> float:
    """Return how many seconds ago a file was written."""
    try:
        return now - os.stat(path).st_mtime
    except OSError:
        return float("inf")


class _Text:
    """Tells it to people."""

    def __init__(self, screen: Screen, wanted: _Asked) -> None:
        from steno.cli.live import Live
        from steno.cli.transcript import Manner

        self._screen = screen
        manner = Manner(
            width=screen.width,
            thinking=wanted.thinking,
            everything=wanted.notes,
            unicode=screen.paint.unicode,
        )
        self._live = Live(manner)

    def past(self, told: list[Told]) -> None:
        """Tell what was there before."""
        now = clock.now()
        stale = {path for path in {each.speaker.path for each in told} if _age(path, now) > LIVE}
        self._screen.lines(self._live.lines(told, past=True, stale=stale))
        sys.stdout.flush()

    def waiting(self, about: str) -> None:
        """Say to a person that it goes on."""
        if self._screen.tty and about:
            self._screen.lines([[(f"{about}; Ctrl-C ends", "dim")]])
            sys.stdout.flush()

    def now(self, told: list[Told]) -> None:
        """Tell what has just been written."""
        self._screen.lines(self._live.lines(told))
        sys.stdout.flush()


class _Json:
    """Tells it to programs: one line an event."""

    def past(self, told: list[Told]) -> None:
        """Write what was there before."""
        self.now(told)

    def waiting(self, about: str) -> None:
        """Say that what was there before is told, and that the files are watched now."""
        _ = about
        write_bytes(b'{"event":"watching"}\n')
        sys.stdout.buffer.flush()

    def now(self, told: list[Told]) -> None:
        """Write some events and hand them over at once."""
        from steno.cli.live import event_json
        from steno.format.encode import encode_line

        for each in told:
            write_bytes(harmless(encode_line(msgspec.to_builtins(event_json(each)))))
        sys.stdout.buffer.flush()
