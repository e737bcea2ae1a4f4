"""What a session leaves behind: its records, its bytes, all its files."""

import copy

from tests.builders.blocks import Json
from tests.builders.clock import Clock
from tests.builders.damage import Damage
from tests.builders.dialects import place, translate
from tests.builders.paths import agent_path, task_path, todo_name

from steno.format.encode import encode, encode_line
from steno.format.paths import meta_path, session_path

__all__ = ["Output"]


class Output(Damage):
    """The ways to ask for the result."""

    def records(self) -> list[Json]:
        """Return the records as built, before any damage."""
        if self.dialect:
            return translate(self._records, self.dialect)
        return copy.deepcopy(self._records)

    def lines(self) -> list[bytes]:
        r"""Return the file's lines, split at `\n` alone and without it."""
        data = self._data()
        return data.removesuffix(b"\n").split(b"\n") if data else []

    def uuids(self) -> list[str]:
        """Return the uuids of the chain records in file order."""
        return [str(record["uuid"]) for record in self.records() if "uuid" in record]

    @property
    def ended(self) -> int:
        """When the last record that tells the time was written, in milliseconds."""
        stamps = [str(record["timestamp"]) for record in self._records if "timestamp" in record]
        return Clock(stamps[-1]).ms if stamps else self.started

    @property
    def file(self) -> str:
        """Where the session lies below the configuration folder."""
        if self.dialect:
            stamp = self.clock.stamp(self.started)
            return place(self.dialect, self.cwd, self.session_id, stamp)
        return session_path(self.folder, self.session_id)

    def files(self) -> dict[str, bytes]:
        """Return all files the session leaves behind, by path below the configuration folder."""
        made = {self.file: self._data()}
        beside = self.gen.layout == "beside"
        for transcript in self.transcripts:
            name = agent_path(self.folder, self.session_id, transcript.agent_id, next_to_session=beside)
            made[name] = b"".join(encode_line(record) for record in transcript.records)
            if transcript.meta is not None:
                made[meta_path(name)] = encode(transcript.meta)
        return {**made, **self.extra_files, **self._lists()}

    def _data(self) -> bytes:
        return self._damaged(self.records())

    def _lists(self) -> dict[str, bytes]:
        made: dict[str, bytes] = {}
        if not self.gen.tail and (self.full or self.room.todos):
            made[f"todos/{todo_name(self.session_id)}"] = encode(self.room.todos)
        for number, task in enumerate(self.room.tasks, 1):
            made[task_path(self.session_id, number)] = encode(task)
        return made
