"""File checkpoints: saves files before they change, and restores their state at a prompt.

checkpointer = FileCheckpointer(config, recorder, project)
checkpointer.resume(transcript)                  # for a resumed session
await checkpointer.begin(prompt)                 # at each prompt, after its record
context.before_change = checkpointer.before_change
async with checkpointer.track_call(tool.spec.name):    # around each tool call
    ...
checkpointer.plan(prompt); checkpointer.restore(prompt)

Backups and records have the format of Claude Code, which can restore files from them as well.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Final, Literal

import msgspec

from steno.agent.checkpoints.backup_store import (
    DELTA_TYPE,
    MODE_BITS,
    SNAPSHOT_TYPE,
    Backup,
    BackupStore,
    ContentState,
    Journal,
    SnapshotHistory,
    is_encodable,
    link_atomically,
    missing_parents,
    read_chunks,
    regular_file_status,
    write_atomically,
)
from steno.agent.checkpoints.working_tree import FileChange, TreeLimits, TreeSnapshot, WorkingTree, changes_between
from steno.agent.recorder import Recorder, increasing_clock, new_uuid
from steno.errors import Busy, NotFound, Unreadable, Unwritable
from steno.format.tool_catalogue import SHELL
from steno.session.transcript import Transcript
from steno.store.discovery import is_below
from steno.store.environment import steno_home


class FileRestore(msgspec.Struct, frozen=True):
    """A file in a restore operation, planned or executed."""

    path: str
    action: Literal["write", "delete", "unchanged"]
    changed_externally: bool = False
    """Whether another program has changed the file: its content matches no known state."""
    obstacle: str = ""
    """Reason why the file cannot be restored; such a file is left unchanged."""


class RestoreResult(msgspec.Struct, frozen=True):
    """The result of a restore operation."""

    restored: tuple[FileRestore, ...]
    skipped: tuple[FileRestore, ...]
    """Files that could not be restored, with the reason in `obstacle`."""
    undo_prompt: str = ""
    """The checkpoint that restores the previous state; empty if nothing was changed."""


class FileRestorer:
    """Restores files to an earlier state, unless something prevents it."""

    def __init__(self, project: str, history: SnapshotHistory, backups: BackupStore, journal: Journal) -> None:
        self._project = project
        self._history = history
        self._backups = backups
        self._journal = journal

    def plan_file(self, path: str, number: int) -> FileRestore:
        """Return the planned restore of a file to its state at a prompt."""
        backup = self._history.backup_at(path, number)
        target = self._backups.stored_state(backup)
        action = "delete" if backup.name is None else "write"
        if target is None:
            return FileRestore(path, action, obstacle="the backup is missing")
        try:
            current = self._backups.state(path)
        except Unreadable as error:
            return FileRestore(path, action, obstacle=str(error))
        if current.matches(target):
            return FileRestore(path, "unchanged")
        foreign = bool(current.digest) and not self._is_known(path, current)
        return FileRestore(path, action, foreign, self._obstacle(path, backup))

    def restore_file(self, file_restore: FileRestore, number: int) -> FileRestore:
        """Restore a file to its state at a prompt; return the result."""
        if file_restore.obstacle:
            return file_restore
        path = file_restore.path
        backup = self._history.backup_at(path, number)
        try:
            latest = self._backups.stored_state(self._history.latest_backup(path))
            if latest is None or not self._backups.state(path).matches(latest):
                raise Unwritable("the file changed during the restore")
            if file_restore.action == "delete":
                os.unlink(path)
            else:
                self._write_backup(path, backup)
        except (FileNotFoundError, NotADirectoryError):
            return file_restore
        except OSError as error:
            reason = str(error) if isinstance(error, Unreadable | Unwritable) else error.strerror
            return msgspec.structs.replace(file_restore, obstacle=reason or type(error).__name__)
        return file_restore

    def remove_created_folders(self, removed_paths: Iterable[str]) -> None:
        """Remove directories that the agent created and that are empty now."""
        for path in removed_paths:
            folder = os.path.dirname(path)
            while folder in self._journal.created_folders:
                try:
                    os.rmdir(folder)
                except OSError:
                    break
                folder = os.path.dirname(folder)

    def _is_known(self, path: str, current: ContentState) -> bool:
        if self._journal.left_digests.get(path) == current.digest:
            return True
        stored_states = (self._backups.stored_state(backup) for _, backup in reversed(self._history.files[path]))
        return any(state is not None and state.digest == current.digest for state in stored_states)

    def _obstacle(self, path: str, backup: Backup) -> str:
        """Return the reason why a path from an untrusted record must not be written; empty if it may be written."""
        is_inside = is_below(path, self._project)
        if not is_inside and path not in self._journal.left_digests:
            return "the file is outside the project"
        real_folder = os.path.realpath(os.path.dirname(path))
        if is_inside and not is_below(real_folder, self._project, or_equal=True):
            return f"its directory resolves to {real_folder}, outside the project"
        if not is_inside and real_folder != (backup.parent or real_folder):
            return f"its directory now resolves to {real_folder}"
        if backup.parent and is_below(backup.parent, self._project) and real_folder != backup.parent:
            return f"its directory now resolves to {real_folder}"
        return ""

    def _write_backup(self, path: str, backup: Backup) -> None:
        target = self._backups.stored_state(backup)
        source = os.path.join(self._backups.folder, backup.name or "")
        if target is None:
            raise Unreadable("the backup is missing")
        os.makedirs(os.path.dirname(path), exist_ok=True)
        # Check again now that all directories exist.
        obstacle = self._obstacle(path, backup)
        if obstacle:
            raise Unwritable(obstacle)
        if target.is_link:
            link_atomically(path, b"".join(read_chunks(source)))
            return
        current_status = regular_file_status(path)
        mode = target.mode or (current_status.st_mode if current_status is not None else 0o666 & ~_umask())
        write_atomically(path, read_chunks(source), mode & MODE_BITS, owner_status=current_status, digest=target.digest)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


_MAX_LISTED: Final = 5


class FileCheckpointer:
    """The file checkpoints of one session."""

    def __init__(
        self, config_folder: str, recorder: Recorder, project: str, *, home: str = "", limits: TreeLimits | None = None
    ) -> None:
        home = home or steno_home()
        self.recorder = recorder
        self.project = os.path.realpath(project)
        self.notice: Callable[[str], None] = lambda _words: None
        """Called with messages for the user, in the thread of the caller."""
        self._pending_notices: list[str] = []
        self.has_background_commands: Callable[[], bool] = lambda: False
        """Returns whether background commands are running; their changes must be tracked as well."""
        self._config_folder = os.path.realpath(config_folder)
        history = os.path.join(self._config_folder, "file-history")
        self._own_folders = (os.path.join(self._config_folder, "projects"), history, os.path.realpath(home))
        self._working_tree = WorkingTree(self.project, home=home, skip=(self._config_folder,), limits=limits)
        self._journal = Journal(self._journal_path(recorder.session_id))
        self._now = increasing_clock()
        self._history = SnapshotHistory(self.project, self._is_tracked)
        folder = os.path.join(history, recorder.session_id)
        self._backups = BackupStore(folder, self._journal, self._now)
        self._restorer = FileRestorer(self.project, self._history, self._backups, self._journal)
        self._changed_paths: set[str] = set()
        self._last_snapshot: TreeSnapshot | None = None
        self._states_before: dict[str, ContentState] = {}
        self._running_commands = 0
        self._background_running = False
        self._lock = asyncio.Lock()

    @property
    def prompts(self) -> tuple[str, ...]:
        """IDs of the prompts with a checkpoint, oldest first."""
        return tuple(self._history.prompt_numbers)

    # During a turn

    async def begin(self, prompt: str) -> None:
        """Create a checkpoint of all tracked files for a prompt."""
        async with self._lock:
            await self._record_command_changes()
            try:
                backups = await asyncio.to_thread(self._current_backups)
            except Unwritable as error:
                self._pending_notices.append(f"No checkpoint for this prompt: {error}.")
            else:
                self._record_snapshot(prompt, backups)
            self._emit_notices()

    def before_change(self, path: str) -> None:
        """Back up a file that a tool is about to change.

        Raises:
            Unreadable: The file cannot be read.
            Unwritable: The backup cannot be written; the file should not be changed then.
        """
        folder, name = os.path.split(os.path.abspath(path))
        path = os.path.join(os.path.realpath(folder), name)
        if not self._history.last_prompt or not self._is_tracked(path):
            return
        self._changed_paths.add(path)
        if path not in self._history.files:
            self._journal.add_created_folders(missing_parents(path))
            self._record_delta(path, self._back_up(path))

    @asynccontextmanager
    async def track_call(self, tool: str, *, background: bool = False) -> AsyncGenerator[None, None]:
        """Track the changes of a call; only commands and MCP tools require a scan of the project."""
        runs_command = tool == SHELL or tool.startswith("mcp__")
        if runs_command:
            await self.before_command(background=background)
        try:
            yield
        finally:
            if runs_command:
                await self.after_command()
            else:
                self._journal_left_states()

    async def before_command(self, *, background: bool = False) -> None:
        """Scan the project before a command that may change any file."""
        async with self._lock:
            if self._running_commands or self._background_running:
                await self._record_command_changes()
            else:
                self._last_snapshot = await asyncio.to_thread(self._take_snapshot)
            self._states_before = await asyncio.to_thread(self._known_states)
            self._emit_notices()
            self._running_commands += 1
            self._background_running = self._background_running or background

    async def after_command(self) -> None:
        """Scan the project after a command and back up the previous content of changed files."""
        try:
            async with self._lock:
                await self._record_command_changes()
        finally:
            self._running_commands -= 1

    # Restoring

    def resume(self, transcript: Transcript, *, origin: str = "") -> None:
        """Load the checkpoints of a session; `origin` is the session that it was forked from."""
        for node in transcript.nodes:
            if node.type in (SNAPSHOT_TYPE, DELTA_TYPE):
                self._history.read_record(transcript.record(node).fields)
        self._journal.read(self._journal_path(origin))
        self._journal.read(self._journal_path(self.recorder.session_id))
        if origin:
            source = os.path.join(os.path.dirname(self._backups.folder), origin)
            names = {backup.name for entries in self._history.files.values() for _, backup in entries if backup.name}
            self._backups.copy_backups(source, names)

    def plan(self, prompt: str) -> list[FileRestore]:
        """Return the planned restore of every file to its state at a prompt, sorted by path.

        Raises:
            NotFound: The prompt has no checkpoint.
        """
        number = self._history.prompt_numbers.get(prompt)
        if number is None:
            raise NotFound(f"no checkpoint for prompt {prompt!r}")
        return [self._restorer.plan_file(path, number) for path in sorted(self._history.files)]

    def content(self, prompt: str, path: str) -> bytes | None:
        """Return the content of a tracked file at a prompt; None if it did not exist.

        Raises:
            NotFound: The prompt has no checkpoint, or the file is not tracked.
            Unreadable: The backup cannot be read.
        """
        number = self._history.prompt_numbers.get(prompt)
        if number is None or path not in self._history.files:
            raise NotFound(f"no checkpoint for prompt {prompt!r}")
        backup = self._history.backup_at(path, number)
        if backup.name is None:
            return None
        try:
            with open(os.path.join(self._backups.folder, backup.name), "rb") as file:
                return file.read()
        except OSError as error:
            raise Unreadable(f"cannot read the backup of {path}") from error

    def restore(self, prompt: str, *, force: bool = False) -> RestoreResult:
        """Restore all files to their state at a prompt.

        No turn may run meanwhile. Files are replaced atomically, and their current state is saved first, so that
        the operation can be undone.

        Raises:
            NotFound: The prompt has no checkpoint.
            Busy: Another program has changed files; nothing was restored, unless `force` is set.
            Unwritable: The current state cannot be saved; nothing was restored.
        """
        plan = self.plan(prompt)
        foreign = [
            file_restore.path for file_restore in plan if file_restore.changed_externally and not file_restore.obstacle
        ]
        if foreign and not force:
            raise Busy(f"changed by another program: {_join_paths(foreign)}", hint="Nothing was restored.")
        changes = [each for each in plan if each.action != "unchanged"]
        if all(each.obstacle for each in changes):
            return RestoreResult((), tuple(changes))
        undo_prompt = new_uuid()
        number = self._history.prompt_numbers[prompt]
        self._record_snapshot(undo_prompt, self._current_backups())
        # Delete first: a file may be in the way of a directory that must be restored.
        deletes = [each for each in changes if each.action == "delete"]
        attempted = [self._restorer.restore_file(each, number) for each in deletes]
        self._restorer.remove_created_folders(each.path for each in attempted if not each.obstacle)
        attempted += [self._restorer.restore_file(each, number) for each in changes if each.action == "write"]
        self._changed_paths.update(each.path for each in attempted)
        self._journal_left_states()
        self._emit_notices()
        return RestoreResult(
            tuple(each for each in attempted if not each.obstacle),
            tuple(each for each in attempted if each.obstacle),
            undo_prompt,
        )

    # Tracked files

    def _journal_path(self, session: str) -> str:
        return os.path.join(self._working_tree.folder, "sessions", f"{session}.jsonl")

    def _is_tracked(self, path: str) -> bool:
        if "\0" in path or not is_encodable(path):
            return False
        return not any(is_below(path, folder) for folder in self._own_folders)

    def _known_states(self) -> dict[str, ContentState]:
        states: dict[str, ContentState] = {}
        for path in list(self._history.files):
            with suppress(OSError):
                states[path] = self._backups.state(path)
        return states

    # Backups

    def _current_backups(self) -> dict[str, Backup]:
        """Return the latest backup of every file, with new backups of files that changed."""
        backups: dict[str, Backup] = {}
        for path in list(self._history.files):
            latest = self._history.latest_backup(path)
            backups[path] = latest
            try:
                state = self._backups.state(path)
                stored = self._backups.stored_state(latest)
                if stored is None or not state.matches(stored):
                    backups[path] = self._back_up(path)
            except Unreadable as error:
                self._pending_notices.append(f"No checkpoint for a file: {error}.")
        return backups

    def _back_up(self, path: str) -> Backup:
        return self._backups.back_up(path, self._history.next_version(path))

    def _record_delta(self, path: str, backup: Backup) -> None:
        history = self._history
        history.add_backup(path, history.prompt_numbers[history.last_prompt], backup)
        self.recorder.write(history.delta_record(path, backup, self.recorder.leaf, self._now()))

    def _record_snapshot(self, prompt: str, backups: dict[str, Backup]) -> None:
        number = self._history.add_prompt(prompt)
        for path, backup in backups.items():
            self._history.add_backup(path, number, backup)
        self.recorder.write(self._history.snapshot_record(backups, self._now()))

    def _journal_left_states(self) -> None:
        """Store the state in which tools left files, to distinguish it from changes of other programs."""
        paths, self._changed_paths = self._changed_paths, set()
        for path in paths:
            with suppress(OSError):
                self._journal.add_left_state(path, self._backups.state(path))

    def _emit_notices(self) -> None:
        notices, self._pending_notices = self._pending_notices, []
        for notice in notices:
            self.notice(notice)

    # Commands

    def _take_snapshot(self) -> TreeSnapshot | None:
        was_watched = not self._working_tree.too_big
        try:
            snapshot = self._working_tree.scan()
        except OSError as error:
            self._working_tree.too_big = f"Changes made by commands are not tracked: {error}."
            snapshot = None
        if was_watched and self._working_tree.too_big:
            self._pending_notices.append(self._working_tree.too_big)
        return snapshot

    async def _record_command_changes(self) -> None:
        """Record the changes that commands made since the last scan."""
        if not (self._running_commands or self._background_running):
            return
        previous, self._last_snapshot = (self._last_snapshot, await asyncio.to_thread(self._take_snapshot))
        if previous is not None and self._last_snapshot is not None and self._history.last_prompt:
            self._journal.add_created_folders(
                os.path.join(self.project, folder) for folder in sorted(self._last_snapshot.folders - previous.folders)
            )
            changes = changes_between(previous, self._last_snapshot)
            for path, backup in await asyncio.to_thread(lambda: list(self._back_up_command_changes(changes))):
                self._record_delta(path, backup)
        states = await asyncio.to_thread(self._known_states)
        for path, state in states.items():
            if state != self._states_before.get(path):
                self._journal.add_left_state(path, state)
        self._states_before = states
        self._background_running = self.has_background_commands()
        self._emit_notices()

    def _back_up_command_changes(self, changes: list[FileChange]) -> Iterator[tuple[str, Backup]]:
        for change in changes:
            path = os.path.join(self.project, change.path)
            if path in self._history.files or not self._is_tracked(path):
                continue
            before, version = change.before, self._history.next_version(path)
            try:
                if before is None:
                    yield path, self._backups.create(path, version, None)
                elif before.digest:
                    data = self._working_tree.content(before.digest)
                    yield path, self._backups.create(path, version, before.mode, [data])
                else:
                    self._pending_notices.append(f"{change.path} was {change.kind} and cannot be restored.")
            except (Unreadable, Unwritable) as error:
                self._pending_notices.append(f"{change.path} was {change.kind} and cannot be restored: {error}")


def _join_paths(paths: list[str]) -> str:
    rest = f" and {len(paths) - _MAX_LISTED} more" if len(paths) > _MAX_LISTED else ""
    return ", ".join(paths[:_MAX_LISTED]) + rest
