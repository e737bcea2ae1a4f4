"""File checkpoints: what every file was when a prompt was sent, and the way back to it.

points = Checkpoints(config, recorder, project)
points.resume(transcript)                  # of a session that goes on
await points.begin(prompt)                 # at each prompt, after its record
context.before_change = points.before_change
async with points.call(tool.spec.name):    # around each call of a tool
    ...
points.plan(prompt); points.restore(prompt)

Backups and records are those of the real client, which can take files back by them as well. What
it has no place for, modes and what we have left in a file, is in a journal in steno's own folder.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from steno.agent.checkpoint_backups import Backups
from steno.agent.checkpoint_journal import Journal
from steno.agent.checkpoint_records import DELTA, SNAPSHOT, Backup, History
from steno.agent.file_paths import is_in, is_speakable, missing_folders
from steno.agent.file_states import State
from steno.agent.recorder import Recorder, new_id, rising
from steno.agent.restoring import Restore, Restored, Restoring
from steno.agent.tree import Change, Limits, Scan, Tree, changed
from steno.errors import Busy, NotFound, Unreadable, Unwritable
from steno.format.tool_catalogue import SHELL
from steno.session.transcript import Transcript
from steno.store.places import steno_home

__all__ = ["Checkpoints"]

_NAMED: Final = 5


class Checkpoints:
    """What is known of the files of one session."""

    def __init__(
        self,
        config_folder: str,
        recorder: Recorder,
        project: str,
        *,
        home: str = "",
        limits: Limits | None = None,
    ) -> None:
        home = home or steno_home()
        self.recorder = recorder
        self.project = os.path.realpath(project)
        self.notice: Callable[[str], None] = lambda _words: None
        """Told what the user should know, in the thread of the caller."""
        self._words: list[str] = []
        self.at_large: Callable[[], bool] = lambda: False
        """Says whether commands run in the background, whose changes are looked for as well."""
        self._config = os.path.realpath(config_folder)
        history = os.path.join(self._config, "file-history")
        self._ours = (os.path.join(self._config, "projects"), history, os.path.realpath(home))
        self._tree = Tree(self.project, home=home, skip=(self._config,), limits=limits)
        self._journal = Journal(self._journal_of(recorder.session_id))
        self._now = rising()
        self._history = History(self.project, self._is_tracked)
        folder = os.path.join(history, recorder.session_id)
        self._backups = Backups(folder, self._journal, self._now)
        self._restoring = Restoring(self.project, self._history, self._backups, self._journal)
        self._pending: set[str] = set()
        self._scan: Scan | None = None
        self._before: dict[str, State] = {}
        self._running = 0
        self._loose = False
        self._lock = asyncio.Lock()

    @property
    def prompts(self) -> tuple[str, ...]:
        """What files can be taken back to, oldest first."""
        return tuple(self._history.moments)

    # As the work goes on

    async def begin(self, prompt: str) -> None:
        """Note what all known files are now that a prompt was sent."""
        async with self._lock:
            await self._catch_up()
            try:
                found = await asyncio.to_thread(self._survey)
            except Unwritable as error:
                self._words.append(f"No checkpoint of this prompt: {error}.")
            else:
                self._mark(prompt, found)
            self._speak()

    def before_change(self, path: str) -> None:
        """Keep a file as it is, since a tool is about to change it.

        Raises:
            Unreadable: it cannot be read.
            Unwritable: it cannot be kept; it should not be changed then.
        """
        folder, name = os.path.split(os.path.abspath(path))
        path = os.path.join(os.path.realpath(folder), name)
        if not self._history.prompt or not self._is_tracked(path):
            return
        self._pending.add(path)
        if path not in self._history.files:
            self._journal.add_made(missing_folders(path))
            self._learn(path, self._keep(path))

    @asynccontextmanager
    async def call(self, tool: str, *, background: bool = False) -> AsyncGenerator[None, None]:
        """Look after what a call changes; only commands and foreign tools need a look around."""
        looks = tool == SHELL or tool.startswith("mcp__")
        if looks:
            await self.before_command(background=background)
        try:
            yield
        finally:
            if looks:
                await self.after_command()
            else:
                self._settle()

    async def before_command(self, *, background: bool = False) -> None:
        """Look around before a command that may change anything."""
        async with self._lock:
            if self._running or self._loose:
                await self._catch_up()
            else:
                self._scan = await asyncio.to_thread(self._look_around)
            self._before = await asyncio.to_thread(self._known_states)
            self._speak()
            self._running += 1
            self._loose = self._loose or background

    async def after_command(self) -> None:
        """Look around behind it: what has changed gets its backup from what was seen before."""
        try:
            async with self._lock:
                await self._catch_up()
        finally:
            self._running -= 1

    # As it was, and back

    def resume(self, transcript: Transcript, *, origin: str = "") -> None:
        """Learn from the records of a session what is known; `origin` is what it was forked from."""
        for node in transcript.nodes:
            if node.type in (SNAPSHOT, DELTA):
                self._history.take(transcript.record(node).fields)
        self._journal.read(self._journal_of(origin))
        self._journal.read(self._journal_of(self.recorder.session_id))
        if origin:
            source = os.path.join(os.path.dirname(self._backups.folder), origin)
            names = {
                b.name for entries in self._history.files.values() for _, b in entries if b.name
            }
            self._backups.adopt(source, names)

    def plan(self, prompt: str) -> list[Restore]:
        """Return what taking all files back to a prompt would do, by path.

        Raises:
            NotFound: nothing is known of that prompt.
        """
        number = self._history.moments.get(prompt)
        if number is None:
            raise NotFound(f"no files are kept of prompt {prompt!r}")
        return [self._restoring.planned(path, number) for path in sorted(self._history.files)]

    def content(self, prompt: str, path: str) -> bytes | None:
        """Return what a known file held when a prompt was sent; None where there was none.

        Raises:
            NotFound: nothing is known of that prompt or file.
            Unreadable: its backup is lost.
        """
        number = self._history.moments.get(prompt)
        if number is None or path not in self._history.files:
            raise NotFound(f"no files are kept of prompt {prompt!r}")
        backup = self._history.at(path, number)
        if backup.name is None:
            return None
        try:
            with open(os.path.join(self._backups.folder, backup.name), "rb") as file:
                return file.read()
        except OSError as error:
            raise Unreadable(f"the backup of {path} cannot be read") from error

    def restore(self, prompt: str, *, force: bool = False) -> Restored:
        """Take all files back to what they were when a prompt was sent.

        No turn may be at work meanwhile. Each file is the old or the new one at any moment, and
        everything is kept first, so that it can be undone.

        Raises:
            NotFound: nothing is known of that prompt.
            Busy: somebody else has changed files; nothing is done then, unless it is forced.
            Unwritable: what is there now cannot be kept; nothing is done then.
        """
        planned = self.plan(prompt)
        foreign = [each.path for each in planned if each.foreign and not each.obstacle]
        if foreign and not force:
            raise Busy(
                f"changed by somebody else since: {_listed(foreign)}",
                hint="nothing was done; it can be forced",
            )
        wanted = [each for each in planned if each.action != "unchanged"]
        if all(each.obstacle for each in wanted):
            return Restored((), tuple(wanted))
        undo = new_id()
        number = self._history.moments[prompt]
        self._mark(undo, self._survey())
        # First what has to go: it may lie where something else has to come back.
        deletes = [each for each in wanted if each.action == "delete"]
        done = [self._restoring.attempt(each, number) for each in deletes]
        self._restoring.clear_folders(each.path for each in done if not each.obstacle)
        done += [self._restoring.attempt(each, number) for each in wanted if each.action == "write"]
        self._pending.update(each.path for each in done)
        self._settle()
        self._speak()
        return Restored(
            tuple(each for each in done if not each.obstacle),
            tuple(each for each in done if each.obstacle),
            undo,
        )

    # What is known

    def _journal_of(self, session: str) -> str:
        return os.path.join(self._tree.folder, "sessions", f"{session}.jsonl")

    def _is_tracked(self, path: str) -> bool:
        if "\0" in path or not is_speakable(path):
            return False
        return not any(is_in(path, folder) for folder in self._ours)

    def _known_states(self) -> dict[str, State]:
        states: dict[str, State] = {}
        for path in list(self._history.files):
            with suppress(OSError):
                states[path] = self._backups.state(path)
        return states

    # Keeping

    def _survey(self) -> dict[str, Backup]:
        """Return the newest backup of every file; of what has changed since, a new one is made."""
        found: dict[str, Backup] = {}
        for path in list(self._history.files):
            last = self._history.last(path)
            found[path] = last
            try:
                state = self._backups.state(path)
                kept = self._backups.kept(last)
                if kept is None or not state.same(kept):
                    found[path] = self._keep(path)
            except Unreadable as error:
                self._words.append(f"No checkpoint of a file: {error}.")
        return found

    def _keep(self, path: str) -> Backup:
        """Make a backup of what a file is now."""
        return self._backups.keep(path, self._history.next_version(path))

    def _learn(self, path: str, backup: Backup) -> None:
        """Note a file that is changed for the first time."""
        history = self._history
        history.remember(path, history.moments[history.prompt], backup)
        self.recorder.write(history.told_delta(path, backup, self.recorder.leaf, self._now()))

    def _mark(self, prompt: str, found: dict[str, Backup]) -> None:
        number = self._history.mark(prompt)
        for path, backup in found.items():
            self._history.remember(path, number, backup)
        self.recorder.write(self._history.told_snapshot(found, self._now()))

    def _settle(self) -> None:
        """Note what tools have left in the files they changed, to know it from others' changes."""
        waiting, self._pending = self._pending, set()
        for path in waiting:
            with suppress(OSError):
                self._journal.add_left(path, self._backups.state(path))

    def _speak(self) -> None:
        words, self._words = self._words, []
        for each in words:
            self.notice(each)

    # Commands

    def _look_around(self) -> Scan | None:
        was_fine = not self._tree.too_big
        try:
            scan = self._tree.scan()
        except OSError as error:
            self._tree.too_big = f"Not watching what commands change: {error}."
            scan = None
        if was_fine and self._tree.too_big:
            self._words.append(self._tree.too_big)
        return scan

    async def _catch_up(self) -> None:
        """Take in what commands have changed since the last look."""
        if not (self._running or self._loose):
            return
        before, self._scan = self._scan, await asyncio.to_thread(self._look_around)
        if before is not None and self._scan is not None and self._history.prompt:
            self._journal.add_made(
                os.path.join(self.project, each)
                for each in sorted(self._scan.folders - before.folders)
            )
            new = changed(before, self._scan)
            for path, backup in await asyncio.to_thread(lambda: list(self._backed_up(new))):
                self._learn(path, backup)
        states = await asyncio.to_thread(self._known_states)
        for path, state in states.items():
            if state != self._before.get(path):
                self._journal.add_left(path, state)
        self._before = states
        self._loose = self.at_large()
        self._speak()

    def _backed_up(self, changes: list[Change]) -> Iterator[tuple[str, Backup]]:
        for change in changes:
            path = os.path.join(self.project, change.path)
            if path in self._history.files or not self._is_tracked(path):
                continue
            before, version = change.before, self._history.next_version(path)
            try:
                if before is None:
                    yield path, self._backups.make(path, version, None)
                elif before.digest:
                    data = self._tree.content(before.digest)
                    yield path, self._backups.make(path, version, before.mode, [data])
                else:
                    self._words.append(
                        f"{change.path} was {change.kind}, and cannot be brought back."
                    )
            except (Unreadable, Unwritable) as error:
                self._words.append(
                    f"{change.path} was {change.kind}, and cannot be brought back: {error}"
                )


def _listed(paths: list[str]) -> str:
    more = f" and {len(paths) - _NAMED} more" if len(paths) > _NAMED else ""
    return ", ".join(paths[:_NAMED]) + more
